#include "common/check/fuzz.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/check/backend.h"
#include "common/check/checker.h"
#include "common/check/progress.h"
#include "common/check/random_problem.h"
#include "common/core/extents.h"
#include "kernels_digest.h"  // made by common/command/cmake/KernelsDigest.cmake

namespace convladder {
namespace {

std::string extents(const ConvShape& shape) {
  std::string text;
  const ConvArguments a = to_arguments(shape);
  for (const Extent& e : EXTENTS) {
    text += std::string(" --") + e.name + " " + std::to_string(a.*e.given);
  }
  return text;
}

// The line that does the same again, in a shell at the repository's root.
std::string command_line(const RandomProblem& problem, const std::string& stage) {
  const std::array<int, 4>& o = problem.placement.offsets;
  std::string line = "./ladder check --backend " + std::string(backend_name());
  if (!on_gpu()) line = "CONVLADDER_SIM_SEED=" + std::to_string(problem.order_seed) + " " + line;
  line += " --stage " + stage + extents(problem.shape);
  line += problem.bias ? " --bias 1" : " --bias 0";
  if (problem.relu) line += " --relu";
  if (problem.is_misaligned()) {
    line += " --offset " + std::to_string(o[0]) + "," + std::to_string(o[1]) + "," +
            std::to_string(o[2]) + "," + std::to_string(o[3]);
  }
  if (problem.placement.least_workspace) line += " --least-workspace";
  return line + " --seed " + std::to_string(problem.seed);
}

class Fuzzer {
 public:
  explicit Fuzzer(const FuzzSettings& settings)
      : settings_(settings), progress_(settings.count), checker_([](const std::string&) {}) {
    for (const Stage& stage : settings.stages) results_.push_back({stage.name});
  }

  std::vector<StageFuzz> run() {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now();
    for (int64_t i = 0; i < settings_.count && !checker_.device_lost(); ++i) {
      const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
      if (i > 0 && settings_.seconds > 0 && elapsed > settings_.seconds) break;
      progress_.show(i + 1, "problems");
      check(random_problem(settings_.seed, static_cast<uint64_t>(i), settings_.max_macs));
    }
    return results_;
  }

 private:
  // With ReLU, if it was drawn, in the stages that have it.
  void check(RandomProblem problem) {
#ifndef CUDART_VERSION
    simulator::set_thread_order_seed(problem.order_seed);
#endif
    const bool relu = problem.relu;
    for (const bool fuses_relu : {false, true}) {
      std::vector<Stage> stages;
      for (const Stage& stage : settings_.stages) {
        if (stage.fuses_relu == fuses_relu) stages.push_back(stage);
      }
      if (stages.empty()) continue;
      problem.relu = relu && fuses_relu;
      for (const Record& record : checker_.check(problem, stages)) tally(record, problem);
    }
  }

  void tally(const Record& record, const RandomProblem& problem) {
    if (record.status == "skipped") return;  // the GPU is lost
    StageFuzz& result = *std::find_if(results_.begin(), results_.end(),
                                      [&](const StageFuzz& r) { return r.stage == record.stage; });
    ++result.problems;
    result.misaligned += problem.is_misaligned();
    if (record.status == "pass") return;
    ++result.failed;
    result.reproduce.push_back(command_line(problem, record.stage));
    progress_.clear();
    std::printf("%s  # %s: %s\n", result.reproduce.back().c_str(), record.status.c_str(),
                record.message.c_str());
    flush_output();
  }

  const FuzzSettings& settings_;
  Progress progress_;
  Checker checker_;
  std::vector<StageFuzz> results_;
};

}  // namespace

std::vector<StageFuzz> fuzz(const FuzzSettings& settings) { return Fuzzer(settings).run(); }

Json fuzz_json(const FuzzSettings& settings, const std::vector<StageFuzz>& results) {
  Json stages = Json::object();
  for (const StageFuzz& result : results) {
    stages[result.stage] = {{"problems", result.problems},
                            {"failed", result.failed},
                            {"misaligned", result.misaligned},
                            {"reproduce", result.reproduce}};
  }
  return {{"format", "convladder fuzz"},
          {"version", 1},
          {"kernels", KERNELS_DIGEST},
          {"backend", backend_name()},
          {"device", device_name()},
          {"seed", settings.seed},
          {"stages", stages}};
}

}  // namespace convladder
