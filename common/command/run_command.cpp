// `run`: the stages on one problem, checked and timed, as a table; pictures of what they computed.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include "common/check/backend.h"
#include "common/check/files.h"
#include "common/check/filter_bank.h"
#include "common/check/image.h"
#include "common/check/npy.h"
#include "common/check/photo.h"
#include "common/check/progress.h"
#include "common/check/record.h"
#include "common/check/trial.h"
#include "common/command/commands.h"
#include "common/command/selection.h"
#include "common/command/workload.h"
#include "common/core/launch.h"
#include "common/measure/profile.h"

namespace convladder {
namespace {

constexpr int TIMED_RUNS = 5;
constexpr const char* REPORT_FILES[] = {"run.json", "input.png", "filters.png", "feature_maps.png"};
constexpr int FILTER_SCALE = 6, MAP_SCALE = 2, GAP = 6;  // pixels of the pictures

constexpr const char* HELP = R"(usage: convladder run [OPTION...]

Runs the stages on AlexNet's first layer: a photograph, normalised as ImageNet's images are,
and 96 Gabor filters. Checks each result against the reference, prints the table, and writes
pictures and run.json to the report folder. With --shape or an extent: another problem, with
random data and without pictures. With --input and --filters: these, with stride
1 and no padding unless an option says otherwise.

)";

std::vector<OptionSpec> option_specs() {
  std::vector<OptionSpec> specs = workload_options();
  specs.push_back(
      {"--output", "Y.npy",
       "write the output of the last stage that passed, of TF32 only if none of FP32 has"});
  specs.push_back({"--report", "DIR", "where pictures and run.json go (default build/report)"});
  specs.push_back({"--once", "", "launch each stage once and check nothing: for a profiler"});
  for (const OptionSpec& spec : stage_options()) specs.push_back(spec);
  for (const OptionSpec& spec : problem_options()) specs.push_back(spec);
  return specs;
}

struct Result {
  Record record;
  std::optional<Timing> timing;
};

// What the last stage that passed has computed.
struct Output {
  const Stage* stage = nullptr;
  std::vector<float> values;
};

double tflops(const ConvShape& shape, const Timing& timing) {
  return shape.flops() / (timing.milliseconds * 1e9);
}

void print_heading(const Workload& job) {
  fmt::print("{}: {}{}{}\n", job.name, to_string(job.shape), job.bias ? ", bias" : "",
             job.relu ? ", ReLU" : "");
  fmt::print("output {}x{}, {:.3g} GFLOP; data: {}; backend: {} ({})\n\n", job.shape.P(),
             job.shape.Q(), job.shape.flops() / 1e9, job.source, backend_name(), device_name());
}

// Times first and checks afterwards, so that the result checked is one that was timed. A stage that
// can't run gives a result as well, and the others still run. `output` is left alone unless the stage
// passes, and by TF32, which rounds more, if it is FP32's.
Result try_stage(const Stage& stage, const Workload& job, const Reference& reference,
                 Output& output) {
  Result result = {new_record(stage, job.name, job.relu), {}};
  Record& record = result.record;
  begin(record, stage, job.shape);
  if (!record.status.empty()) return result;
  record.status = "fail";
  try {
    const Trial trial(stage, job);
    result.timing = time_on_backend([&] { trial.enqueue(); }, TIMED_RUNS);
    trial.wait();
    std::vector<float> values = trial.output();
    const Comparison check = check_output(trial, values, reference, Rule::kBounded, job.signs);
    record.max_error_ratio = check.max_error_ratio;
    if (!check.message.empty()) record.message = check.message;  // else why auto takes its stage
    if (!check.pass) return result;
    record.status = "pass";
    const bool less = stage.precision != Precision::kFp32 && output.stage &&
                      output.stage->precision == Precision::kFp32;
    if (!less) output = {&stage, std::move(values)};
  } catch (const InvalidArgument& error) {
    record.message = error.what();
  } catch (const CudaError& error) {
    record.message = error.what();
  }
  return result;
}

// A line of the table, whose rows are printed as their stages end: two columns of text, then numbers, and
// the status.
void print_cells(const std::vector<std::size_t>& widths, const std::vector<std::string>& cells) {
  for (std::size_t i = 0; i + 1 < cells.size(); ++i) {
    fmt::print(i < 2 ? "{:<{}}  " : "{:>{}}  ", cells[i], widths[i]);
  }
  fmt::print("{}\n", cells.back());
}

// Returns the widths of the columns.
std::vector<std::size_t> print_header(const std::vector<Stage>& stages) {
  std::vector<std::string> header = {"stage", "idea", "simulated in [ms]", "max error / allowed",
                                     "check"};
  if (on_gpu()) header = {"stage", "idea", "time [ms]", "TFLOP/s", "max error / allowed", "check"};
  std::vector<std::size_t> widths;
  for (const std::string& name : header) widths.push_back(name.size());
  for (const Stage& stage : stages) {
    widths[0] = std::max(widths[0], std::strlen(stage.name));
    widths[1] = std::max(widths[1], std::strlen(stage.summary));
  }
  std::vector<std::string> rule;
  for (const std::size_t width : widths) rule.emplace_back(width, '-');
  print_cells(widths, header);
  print_cells(widths, rule);
  return widths;
}

std::vector<std::string> cells_of(const Stage& stage, const Result& result,
                                  const ConvShape& shape) {
  const auto& [record, timing] = result;
  std::vector<std::string> cells = {stage.name, stage.summary};
  cells.push_back(timing ? fmt::format("{:.3g}", timing->milliseconds) : "-");
  if (on_gpu()) cells.push_back(timing ? fmt::format("{:.1f}", tflops(shape, *timing)) : "-");
  const bool ran = !std::isnan(record.max_error_ratio);
  cells.push_back(ran ? fmt::format("{:.3f}", record.max_error_ratio) : "-");
  cells.push_back(record.status);
  return cells;
}

// Whether the stage is a form of one that stands in the table: 15_copy_engine_tf32 of 15_copy_engine.
bool is_form_of_another(const Stage& stage, const std::vector<Stage>& stages) {
  return std::any_of(stages.begin(), stages.end(), [&](const Stage& other) {
    return std::string_view(stage.name).rfind(std::string(other.name) + "_", 0) == 0;
  });
}

// What stands below the table.
void print_remarks(const std::vector<Result>& results, const std::vector<std::string>& forms) {
  fmt::print("\n");
  if (!forms.empty()) {
    fmt::print("These pass as well, and --stage NAME shows them: {}\n", fmt::join(forms, ", "));
  }
  for (const Result& result : results) {
    if (result.record.message.empty()) continue;
    fmt::print("{}: {}\n", result.record.stage, result.record.message);
  }
  if (on_gpu()) {
    fmt::print("Time: median of {} runs after a warm-up, caches warm.\n", TIMED_RUNS);
  } else {
    fmt::print("The time is what this machine took to simulate: it says nothing about a GPU.\n");
  }
}

Json to_json(const Workload& job, const std::vector<Result>& results) {
  Json records = Json::array();
  for (const Result& result : results) {
    Json record = to_json(result.record);
    if (result.timing) {
      record["time_ms"] = result.timing->milliseconds;
      record["time_source"] = on_gpu() ? "cuda_events" : "simulator_wall_time";
      record["runs"] = result.timing->runs;
      if (on_gpu()) record["tflops"] = tflops(job.shape, *result.timing);
    }
    records.push_back(record);
  }
  return {{"version", RUN_VERSION},
          {"backend", backend_name()},
          {"device", device_name()},
          {"problem", job.name},
          {"shape", to_string(job.shape)},
          {"flop", number(job.shape.flops())},
          {"data", job.source},
          {"pictures",
           {{"columns", BANK_COLUMNS},
            {"gap", GAP},
            {"filter_scale", FILTER_SCALE},
            {"map_scale", MAP_SCALE}}},
          {"stages", records}};
}

void write_report(const Workload& job, const std::vector<float>& output, const std::string& folder,
                  const Json& json) {
  write_json(folder + "/run.json", json);  // first: it says whose the others are
  std::vector<std::string> written;
  const auto write = [&](const char* name, const Image& image) {
    written.emplace_back(name);
    write_image(folder + "/" + name, image);
  };
  const ConvShape& s = job.shape;
  write("input.png", draw_filters(job.data.input.data(), 1, s.H, s.W)[0]);
  write("filters.png", montage(draw_filters(job.data.filters.data(), s.K, s.R, s.S), BANK_COLUMNS,
                               FILTER_SCALE, GAP));
  if (!output.empty()) {
    write("feature_maps.png", montage(draw_feature_maps(output.data(), job.bias, s.K, s.P(), s.Q()),
                                      BANK_COLUMNS, MAP_SCALE, GAP));
  } else {  // an earlier run's
    std::filesystem::remove(folder + "/feature_maps.png");
  }
  fmt::print("wrote to {}: {}, run.json\n", shortened(folder), fmt::join(written, ", "));
}

// Before anything is measured.
void require_consistent(const Options& options) {
  if (options.has("--once")) {
    for (const char* name : {"--json", "--output", "--report"}) {
      if (options.has(name)) {
        throw UsageError(std::string(name) + " can't be given with --once, which writes nothing");
      }
    }
  }
  if (options.has("--report") && names_problem(options)) {
    throw UsageError(
        "--report is for the photograph or given arrays, without --shape, --stride and the like");
  }
}

// What the report writes must be none of the files that the command line names.
void require_apart_from_report(const Options& options, const std::string& folder) {
  const auto whole = [](const std::string& path) {
    std::error_code ignored;
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path), ignored);
  };
  for (const char* file : REPORT_FILES) {
    for (const char* name : {"--input", "--filters", "--bias", "--output", "--json"}) {
      if (!options.has(name) || whole(options.text(name)) != whole(folder + "/" + file)) continue;
      throw UsageError(
          fmt::format("{} and the report's {} are the same file, {}: it would be overwritten", name,
                      file, options.text(name)));
    }
  }
}

// Whether a run has written there before.
bool is_report(const std::string& folder) {
  std::ifstream file(folder + "/run.json");
  const Json json = Json::parse(file, nullptr, false);
  return json.is_object() && json.contains("pictures");
}

void require_report_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw std::runtime_error(folder + ": can't be made: " + error.message());
  require_writable(folder + "/run.json");
  if (folder == report_folder() || is_report(folder)) return;
  for (const char* file : REPORT_FILES) {
    if (std::filesystem::exists(folder + "/" + file)) {
      throw UsageError(
          fmt::format("{}/{}: no run has made it, and it would be overwritten", folder, file));
    }
  }
}

// A partial sum may be as large as all products together, and is rounded as the least number is.
void require_within_float32(const Reference& reference) {
  constexpr double LEAST = FLT_MIN / FLT_EPSILON;
  for (const double sum : reference.magnitude) {
    if (sum == 0 || (sum >= LEAST && sum <= FLT_MAX)) continue;
    throw std::runtime_error(
        fmt::format("the data's products add up to {:.3g} in one output, and float32 is exact "
                    "from {:.3g} to {:.3g}: no stage can be held to that",
                    sum, LEAST, FLT_MAX));
  }
}

// Launches each stage once, for a profiler, and runs no other kernel. Prints which kernels those were, and
// how often each.
int run_once(const Workload& job, const std::vector<Stage>& stages) {
  for (const Stage& stage : stages) {
    Record record;
    begin(record, stage, job.shape);
    if (!record.status.empty()) {
      fmt::print("{}: {}\n", stage.name, record.message);
      continue;
    }
    fmt::print("{}: launched once, result NOT checked (--once):", stage.name);
    for (const auto& [kernel, count] : own_launches(Trial(stage, job))) {
      fmt::print(" {}*{}", kernel, count);
    }
    fmt::print("\n");
  }
  return 0;
}

}  // namespace

int run_command(const std::vector<std::string>& arguments) {
  const Options options(option_specs(), arguments);
  if (options.has("--help")) {
    std::printf("%s%s", HELP, options.help().c_str());
    return 0;
  }
  const std::vector<Stage> stages = selected_stages(options);
  require_consistent(options);
  bool report = !names_problem(options) && !options.has("--once");
  const std::string folder = options.text("--report", report_folder());
  if (report) require_apart_from_report(options, folder);
  if (report) require_report_folder(folder);
  const std::string records = json_path(options);
  if (options.has("--output")) require_writable(options.text("--output"));
  require_device();
  const Workload job = make_workload(options);
  if (options.has("--once")) {
    print_heading(job);
    return run_once(job, stages);
  }
  report &= job.shape.C == BANK_CHANNELS && job.shape.groups == 1;  // arrays need not be pictures

  Progress progress(static_cast<int64_t>(stages.size()));
  progress.show(0, "reference");
  const Reference reference = affordable_reference(job, 1);
  progress.clear();
  require_within_float32(reference);
  print_heading(job);
  std::vector<Result> results;
  Output output;
  std::vector<std::string> forms;  // which have no row
  const std::vector<std::size_t> widths = print_header(stages);
  for (const Stage& stage : stages) {
    progress.show(static_cast<int64_t>(results.size()) + 1, stage.name);
    results.push_back(try_stage(stage, job, reference, output));
    progress.clear();
    // Unless it was asked for by its name, a form that passes has no row, nor has a stage that did not run.
    const std::string& status = results.back().record.status;
    if (!options.has("--stage")) {
      const bool is_form = is_form_of_another(stage, stages);
      if (status == "pass" && is_form) forms.emplace_back(stage.name);
      if (status == "skipped" || (status == "pass" && is_form)) continue;
    }
    print_cells(widths, cells_of(stage, results.back(), job.shape));
    flush_output();
  }
  print_remarks(results, forms);

  const Json json = to_json(job, results);
  if (report) write_report(job, output.values, folder, json);
  if (!records.empty()) write_json(records, json);
  if (options.has("--output") && output.stage) {
    const ConvShape& s = job.shape;
    write_npy(options.text("--output"), {s.N, s.total_K(), s.P(), s.Q()}, output.values.data());
    fmt::print("wrote {}: the output of {}\n", options.text("--output"), output.stage->name);
  }
  const auto passed = [](const Result& result) { return result.record.status == "pass"; };
  const auto failed = [](const Result& result) { return result.record.status == "fail"; };
  return std::any_of(results.begin(), results.end(), passed) &&
                 std::none_of(results.begin(), results.end(), failed)
             ? 0
             : 1;
}

}  // namespace convladder
