// What the simulator counts of each kernel, for its record.
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "common/measure/enlarge.h"
#include "common/measure/profile.h"
#include "common/measure/trace_file.h"
#include "common/simulator/counts.h"
#include "common/simulator/observer.h"

namespace convladder {
namespace {

using simulator::KernelCounts;
using simulator::LaunchWork;

// [[amount, how many blocks ask for as much]]
Json amounts_json(const std::map<int64_t, int64_t>& amounts) {
  Json pairs = Json::array();
  for (const auto& [amount, blocks] : amounts) pairs.push_back(Json::array({amount, blocks}));
  return pairs;
}

Json work_members(const LaunchWork& work) {
  Json members = {{"blocks", work.blocks},
                  {"sectors_read", work.sectors_read},
                  {"sectors_written", work.sectors_written}};
  if (work.library_products > 0) members["library_products"] = work.library_products;
  if (!work.products.empty()) members["products"] = amounts_json(work.products);
  if (!work.wavefronts.empty()) members["wavefronts"] = amounts_json(work.wavefronts);
  if (!work.tensor_instructions.empty()) {
    members["tensor_instructions"] = amounts_json(work.tensor_instructions);
  }
  return members;
}

// What this kernel's launches ask for; equal ones that follow each other stand once, with how many times.
// The stage's first launch is marked: it alone begins with a cold L2.
Json work_json(const std::string& kernel, const std::vector<StageLaunch>& launches) {
  Json all = Json::array();
  Json last;  // as its members are without how many times
  for (const StageLaunch& launch : launches) {
    if (launch.kernel != kernel) continue;
    Json members = work_members(launch.work);
    if (&launch == launches.data()) members["first"] = true;
    if (members == last) {
      all.back()["times"] = all.back().value("times", 1) + 1;
    } else {
      all.push_back(members);
      last = members;
    }
  }
  return all;
}

class CountingProfiler : public Profiler {
 public:
  CountingProfiler(const Options& options, std::size_t stages) : trace_(options, stages) {}

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
                      {"work", work_json(kernel.kernel, launches)}};
      if (of_whole) members["whole_work"] = work_json(kernel.kernel, *of_whole);
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

std::unique_ptr<Profiler> make_profiler(const Options& options, std::size_t stages) {
  if (!simulator::COUNTING) {
    throw std::runtime_error("this build doesn't count: cmake --preset sim-count makes one");
  }
  return std::make_unique<CountingProfiler>(options, stages);
}

}  // namespace convladder
