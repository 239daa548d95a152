#include "common/check/fuzz.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>

#include "common/check/backend.h"
#include "common/check/checker.h"
#include "common/check/progress.h"
#include "common/check/random_problem.h"
#include "common/core/extents.h"

namespace convladder {
namespace {

// The line that does the same again, in a shell at the repository's root.
std::string command_line(const RandomProblem& problem, const std::string& stage) {
  std::string line = fmt::format("./ladder check --backend {} --stage {}", backend_name(), stage);
  if (!on_gpu()) line = fmt::format("CONVLADDER_SIM_SEED={} {}", problem.order_seed, line);
  const ConvArguments arguments = to_arguments(problem.shape);
  for (const Extent& e : EXTENTS) line += fmt::format(" --{} {}", e.name, arguments.*e.given);
  line += problem.bias ? " --bias 1" : " --bias 0";
  if (problem.relu) line += " --relu";
  if (problem.is_misaligned()) {
    line += fmt::format(" --offset {}", fmt::join(problem.placement.offsets, ","));
  }
  if (problem.placement.least_workspace) line += " --least-workspace";
  return fmt::format("{} --seed {}", line, problem.seed);
}

// Counts what became of a problem; prints the line that repeats a failure.
void tally(const Record& record, const RandomProblem& problem, StageFuzz& result) {
  if (record.status == "skipped") return;  // the GPU is lost
  ++result.problems;
  result.misaligned += problem.is_misaligned();
  if (record.status == "pass") return;
  ++result.failed;
  result.reproduce.push_back(command_line(problem, record.stage));
  fmt::print("{}  # {}: {}\n", result.reproduce.back(), record.status, record.message);
  flush_output();
}

}  // namespace

std::vector<StageFuzz> fuzz(const FuzzSettings& settings) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  Progress progress(settings.count);
  Checker checker([](const std::string&) {});
  std::vector<StageFuzz> results(settings.stages.size());
  for (std::size_t s = 0; s < results.size(); ++s) results[s].stage = settings.stages[s].name;
  for (int64_t i = 0; i < settings.count && !checker.device_lost(); ++i) {
    const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
    if (i > 0 && elapsed > settings.seconds) break;
    progress.show(i + 1, "problems");
    const RandomProblem drawn =
        random_problem(settings.seed, static_cast<uint64_t>(i), settings.max_macs);
#ifndef CUDART_VERSION
    simulator::set_thread_order_seed(drawn.order_seed);
#endif
    for (const bool fuses_relu :
         {false, true}) {  // ReLU, if it was drawn, in the stages that have it
      std::vector<Stage> stages;
      std::vector<StageFuzz*> theirs;
      for (std::size_t s = 0; s < results.size(); ++s) {
        if (settings.stages[s].fuses_relu != fuses_relu) continue;
        stages.push_back(settings.stages[s]);
        theirs.push_back(&results[s]);
      }
      if (stages.empty()) continue;
      RandomProblem problem = drawn;
      problem.relu &= fuses_relu;
      const std::vector<Record> records = checker.check(problem, stages);
      progress.clear();
      for (std::size_t s = 0; s < records.size(); ++s) tally(records[s], problem, *theirs[s]);
    }
  }
  return results;
}

}  // namespace convladder
