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
  if (work.library_products > 0) members.push_back({"library_products", work.library_products});
  const std::pair<const char*, const std::map<int64_t, int64_t>&> amounts[] = {
      {"products", work.products},
      {"wavefronts", work.wavefronts},
      {"tensor_instructions", work.tensor_instructions}};
  for (const auto& [name, by_amount] : amounts) {
    if (!by_amount.empty()) members.push_back({name, amounts_json(by_amount)});
  }
  return members;
}

// What this kernel's launches ask for; equal ones that follow each other stand once, with how many times.
// The stage's first launch is marked: it alone begins with a cold L2.
Json work_json(const std::string& kernel, const std::vector<StageLaunch>& launches) {
  struct Entry {
    Json members;
    std::string text;
    int64_t times;
  };
  std::vector<Entry> entries;
  for (const StageLaunch& launch : launches) {
    if (launch.kernel != kernel) continue;
    Json members = work_members(launch.work);
    if (&launch == launches.data()) members.push_back({"first", true});
    const std::string text = members.dump();
    if (entries.empty() || entries.back().text != text) entries.push_back({members, text, 0});
    ++entries.back().times;
  }
  std::vector<Json> all;
  for (Entry& entry : entries) {
    if (entry.times > 1) entry.members.push_back({"times", entry.times});
    all.push_back(entry.members);
  }
  return Json(all);
}

class CountingProfiler : public Profiler {
 public:
  CountingProfiler(const Options& options, std::size_t stages) : trace_(options, stages) {}

  std::vector<ProfiledKernel> profile(const Stage& stage, const Workload& job,
                                      const Trial& trial) override {
    simulator::take_kernel_counts();  // what came before is not the trial's
    trace_.begin();
    trial.enqueue();
    trial.wait();
    const std::vector<KernelCounts> counts = simulator::take_kernel_counts();
    trace_.end(stage.name, trial);
    const std::vector<StageLaunch> launches = counted_launches(counts);
    const auto of_whole = launches_of_whole(stage, job, counts);
    std::vector<ProfiledKernel> kernels;
    for (const KernelCounts& kernel : counts) {
      Json members = {{"work", work_json(kernel.kernel, launches)}};
      if (of_whole) members.push_back({"whole_work", work_json(kernel.kernel, *of_whole)});
      for (const auto& [name, value] : metrics(kernel)) members.push_back({name, number(value)});
      kernels.push_back({kernel.kernel, kernel.launches, kernel.library, members});
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
