// `profile`: runs each stage, says whether its result is right, and writes records of its kernels. Tables
// of them are common/show's, and `./ladder profile` prints those.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>
#include "common/check/backend.h"
#include "common/check/launches.h"
#include "common/check/progress.h"
#include "common/check/record.h"
#include "common/command/commands.h"
#include "common/command/selection.h"
#include "common/core/launch.h"
#include "common/measure/profile.h"
#include "common/measure/work.h"

namespace convladder {
namespace {

constexpr int VERSION =
    1;  // of the records: increase it whenever a reader would go wrong with a new one

constexpr const char* HELP =
    "usage: convladder profile [OPTION...]\n"
    "\n"
    "%s\n"
    "AlexNet's first layer; with --shape or an extent another problem. Results are held against "
    "the\n"
    "reference first: a stage whose results are wrong has no records, and the status is 1.\n"
    "./ladder profile shows the records as tables (docs/profiling.md).\n"
    "\n";

std::vector<OptionSpec> option_specs() {
  std::vector<OptionSpec> specs = workload_options();
  for (const OptionSpec& spec : profile_backend().options) specs.push_back(spec);
  for (const OptionSpec& spec : stage_options()) specs.push_back(spec);
  for (const OptionSpec& spec : problem_options()) specs.push_back(spec);
  return specs;
}

// The members that the records of all kernels have.
Json common_members(const Stage& stage, const Workload& job) {
  const bool bias = job.bias != nullptr;
  const Work work = work_of(job.shape, bias);
  Json members = {{"version", VERSION},
                  {"stage", stage.name},
                  {"problem", job.name},
                  {"shape", to_string(job.shape)},
                  {"bias", bias},
                  {"source", profile_backend().source},
                  {"flop", number(work.flops)},
                  {"least_bytes", number(work.bytes)}};
  if (job.whole) {
    members["whole_shape"] = to_string(*job.whole);
    members["whole_flop"] = number(job.whole->flops());
  }
  return members;
}

// The line for a stage: "right", or "wrong: N of M outputs" and more.
std::string verdict(const Comparison& result, const ConvShape& shape) {
  if (result.pass)
    return fmt::format("right (max error / allowed: {:.3f})", result.max_error_ratio);
  if (result.failures == 0) return "wrong: " + result.message;
  // Values may have been compared of a sample alone, but NaNs are looked for everywhere.
  const int64_t all = result.failures > result.checked ? shape.output_count() : result.checked;
  return fmt::format("wrong: {} of {} outputs; {}", result.failures, all, result.message);
}

}  // namespace

std::map<std::string, int> own_launches(const Trial& trial) {
  std::map<std::string, int> launches;
  for (const KernelLaunch& each : launches_of(trial.stage(), trial.arguments())) {
    ++launches[each.kernel];
  }
  trial.enqueue();
  trial.wait();
  return launches;
}

int profile_command(const std::vector<std::string>& arguments) {
  const Options options(option_specs(), arguments);
  if (options.has("--help")) {
    std::printf(HELP, profile_backend().about);
    std::printf("%s", options.help().c_str());
    return 0;
  }
  const std::vector<Stage> stages = capable_stages(options);
  const std::string path = json_path(options, "profile.json");
  const std::unique_ptr<Profiler> profiler = make_profiler(options);
  const Workload job = make_workload(options);
  std::printf("%s: %s%s; %s GFLOP; backend: %s\n\n", job.name.c_str(), to_string(job.shape).c_str(),
              job.bias ? ", bias" : "", fmt::format("{:.3g}", job.shape.flops() / 1e9).c_str(),
              backend_name());
  flush_output();
  Progress progress(static_cast<int64_t>(stages.size()));
  progress.show(0, "reference");
  const Reference reference = affordable_reference(job, 1);
  std::vector<Json> records;
  std::size_t begun = 0, right = 0, unfit = 0;
  for (const Stage& stage : stages) {
    progress.show(static_cast<int64_t>(++begun), stage.name);
    Record record;
    begin(record, stage, job.shape);
    if (!record.status.empty()) {
      ++unfit;
      progress.clear();
      std::printf("%s: %s\n", stage.name, record.message.c_str());
      continue;
    }
    const Trial trial(stage, job);
    const std::vector<Json> kernels = profiler->profile(stage, job, trial);
    const Comparison result =
        check_output(trial, trial.output(), reference, Rule::kBounded, job.signs);
    progress.clear();
    std::printf("%s: %s\n", stage.name, verdict(result, job.shape).c_str());
    flush_output();
    if (!result.pass) continue;
    ++right;
    for (const Json& kernel : kernels) {
      records.push_back(common_members(stage, job));
      records.back().update(kernel);
    }
  }
  if (right == 0) return 1;
  write_json(path, Json(records));
  profiler->finish(job);
  std::printf("wrote %s\n", shortened(path).c_str());
  return right + unfit == stages.size() ? 0 : 1;
}

}  // namespace convladder
