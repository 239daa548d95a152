// What the simulator counts of each kernel, for its record.
#include <stdexcept>

#include "common/measure/enlarge.h"
#include "common/measure/profile.h"
#include "common/measure/trace_file.h"
#include "common/simulator/counts_json.h"
#include "common/simulator/observer.h"

namespace convladder {
namespace {

using simulator::KernelCounts;
using simulator::LaunchWork;

// What this kernel's launches ask for. The stage's first launch alone begins with a cold L2.
Json work_of_kernel(const std::string& kernel, const std::vector<StageLaunch>& launches) {
  std::vector<const LaunchWork*> own;
  for (const StageLaunch& launch : launches) {
    if (launch.kernel == kernel) own.push_back(&launch.work);
  }
  return simulator::work_json(own, &launches.data()->work);
}

class CountingProfiler : public Profiler {
 public:
  explicit CountingProfiler(const Options& options) : trace_(options) {}

  std::vector<Json> profile(const Stage& stage, const Workload& job, const Trial& trial) override {
    simulator::take_kernel_counts();  // what came before is not the trial's
    trace_.begin();
    trial.enqueue();
    trial.wait();
    const std::vector<KernelCounts> counts = simulator::take_kernel_counts();
    trace_.end(stage.name, trial, counts);
    const std::vector<StageLaunch> launches = counted_launches(counts);
    const auto of_whole = launches_of_whole(stage, job, counts);
    std::vector<Json> kernels;
    for (const KernelCounts& kernel : counts) {
      Json members = {{"kernel", kernel.kernel},
                      {"launches", kernel.launches},
                      {"library", kernel.library},
                      {"work", work_of_kernel(kernel.kernel, launches)}};
      if (of_whole) members["whole_work"] = work_of_kernel(kernel.kernel, *of_whole);
      for (const auto& [name, value] : metrics(kernel)) members[name] = number(value);
      kernels.push_back(members);
    }
    return kernels;
  }

  void finish(const Workload& job) override { trace_.write(job); }

 private:
  TraceFile trace_;
};

}  // namespace

ProfileBackend profile_backend() {
  return {
      "Counts what the stages' kernels ask of memory, under the names of Nsight Compute's "
      "counters, and\nfinds races and accesses out of bounds on the way (docs/counting.md): on",
      trace_options(), "simulator"};
}

std::unique_ptr<Profiler> make_profiler(const Options& options) {
  if (!simulator::COUNTING) {
    throw std::runtime_error("this build doesn't count: cmake --preset sim-count makes one");
  }
  return std::make_unique<CountingProfiler>(options);
}

}  // namespace convladder
