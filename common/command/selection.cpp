#include "common/command/selection.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include "common/check/backend.h"
#include "common/check/files.h"
#include "common/core/extents.h"

namespace convladder {
namespace {

// Options that set two extents at once; the single ones override them.
struct Both {
  const char* name;
  const char* meaning;
  int64_t ConvArguments::*along_h;
  int64_t ConvArguments::*along_w;
};

using A = ConvArguments;
constexpr Both BOTH[] = {{"stride", "both strides", &A::stride_h, &A::stride_w},
                         {"pad", "both pads", &A::pad_h, &A::pad_w},
                         {"dil", "both dilations", &A::dil_h, &A::dil_w}};

std::string option(const char* name) { return std::string("--") + name; }

bool has_extent(const Options& options) {
  const auto given = [&](const auto& extent) { return options.has(option(extent.name)); };
  return std::any_of(std::begin(EXTENTS), std::end(EXTENTS), given) ||
         std::any_of(std::begin(BOTH), std::end(BOTH), given);
}

}  // namespace

std::vector<OptionSpec> stage_options() {
  return {{"--stage", "NAME", "only this stage; may be repeated (default: all)", true},
          precision_option(),
          {"--relu", "", "apply ReLU, in the stages that fuse it"},
          {"--seed", "S", "of the random data (default 1)"},
          {"--json", "FILE", "write the records there, too"},
          {"--max-gmac", "X",
           "cut problems down to X billion multiply-adds (default on the simulator: " +
               fmt::format("{:.3g}", ALONE_MAX_GMAC) + ", of a list " +
               fmt::format("{:.3g}", LISTED_MAX_GMAC) + "; none on a GPU)"}};
}

OptionSpec precision_option() {
  return {"--precision", "P", "the stages of fp32, of tf32, or both (default)"};
}

std::vector<OptionSpec> problem_options() {
  std::vector<OptionSpec> specs = {
      {"--shape", "NAME",
       "a problem of common/problems.csv; the options below change it. "
       "Without it each is 1 unless given, a pad 0"}};
  for (const Extent& e : EXTENTS) specs.push_back({option(e.name), "X", e.meaning});
  for (const Both& both : BOTH) specs.push_back({option(both.name), "X", both.meaning});
  return specs;
}

std::vector<Stage> selected_stages(const Options& options) {
  const std::vector<std::string> names = options.all("--stage");
  const std::string precision = options.text("--precision", "both");
  if (precision != "fp32" && precision != "tf32" && precision != "both") {
    throw UsageError("--precision = '" + precision + "': must be fp32, tf32 or both");
  }
  std::vector<Stage> selected;
  try {
    for (const std::string& name : names) find_stage(name);
    for (const Stage& stage : stages()) {
      const bool named = std::count(names.begin(), names.end(), stage.name) > 0;
      if (!named && !names.empty()) continue;
      if (precision == "both" || precision == to_string(stage.precision)) selected.push_back(stage);
    }
  } catch (const InvalidArgument& error) {
    throw UsageError(error.what());
  }
  if (selected.empty()) throw UsageError("--precision = '" + precision + "': no stage here has it");
  return selected;
}

std::vector<Stage> capable_stages(const Options& options) {
  std::vector<Stage> capable;
  for (const Stage& stage : selected_stages(options)) {
    if (stage.fuses_relu || !options.has("--relu")) capable.push_back(stage);
  }
  return capable;
}

bool names_problem(const Options& options) { return options.has("--shape") || has_extent(options); }

Problem named_problem(const Options& options) {
  Problem problem;
  problem.name = "command line";
  if (options.has("--shape")) {
    try {
      problem = find_problem(read_problems(problems_file(options)), options.text("--shape"));
    } catch (const InvalidArgument& error) {
      throw UsageError(error.what());
    }
    if (has_extent(options)) problem.name += " (changed)";
  }
  ConvArguments& a = problem.arguments;
  for (const Both& both : BOTH) {
    for (const auto given : {both.along_h, both.along_w}) {
      a.*given = options.integer(option(both.name), a.*given);
    }
  }
  for (const Extent& e : EXTENTS) a.*e.given = options.integer(option(e.name), a.*e.given);
  return problem;
}

std::string problems_file(const Options& options) {
  return options.text("--shapes", repository_path("common/problems.csv"));
}

std::string fit_to_backend(Problem& problem, const Options& options, double max_gmac) {
  max_gmac = options.number("--max-gmac", max_gmac, 1e-6);
  if (on_gpu() && !options.has("--max-gmac")) return "";
  if (multiply_adds(problem.arguments) <= max_gmac * 1e9) return "";
  problem.arguments = reduce(problem.arguments, max_gmac * 1e9);
  return "cut down to " + to_string(make_conv_shape(problem.arguments)) + " (--max-gmac " +
         fmt::format("{:.3g}", max_gmac) + ")";
}

std::string json_path(const Options& options, const char* name) {
  std::string path = options.text("--json");
  if (!options.has("--json") && name) {
    const std::string folder = repository_path("build/report");
    std::error_code ignored;  // if it is missing afterwards, the next line says so
    std::filesystem::create_directories(folder, ignored);
    path = folder + "/" + name;
  }
  if (options.has("--json") || name) require_writable(path);
  return path;
}

std::string shortened(const std::string& path) {
  const std::string relative = std::filesystem::proximate(path).string();
  return relative.rfind("..", 0) == 0 ? path : relative;
}

std::string repository_path(const std::string& relative) {
  return std::string(CONVLADDER_SOURCE_DIR) + "/" + relative;
}

}  // namespace convladder
