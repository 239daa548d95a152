#include "common/harness/selection.h"

#include <algorithm>
#include <filesystem>

#include "common/harness/backend.h"
#include "common/harness/table.h"
#include "common/io/atomic_file.h"

namespace convladder {
namespace {

constexpr double DEFAULT_MAX_GMAC = 2;

// Options that set two extents at once come first, so that the single ones override them.
struct Extent {
  const char* option;
  const char* help;
  std::vector<int64_t ConvArguments::*> targets;
};

const std::vector<Extent>& extents() {
  using A = ConvArguments;
  static const std::vector<Extent> all = {
      {"--n", "images", {&A::n}},
      {"--c", "input channels", {&A::c}},
      {"--h", "input height", {&A::h}},
      {"--w", "input width", {&A::w}},
      {"--k", "filters, that is output channels", {&A::k}},
      {"--r", "filter height", {&A::r}},
      {"--s", "filter width", {&A::s}},
      {"--stride", "both strides", {&A::stride_h, &A::stride_w}},
      {"--pad", "both pads", {&A::pad_h, &A::pad_w}},
      {"--dil", "both dilations", {&A::dil_h, &A::dil_w}},
      {"--stride_h", "stride along h", {&A::stride_h}},
      {"--stride_w", "stride along w", {&A::stride_w}},
      {"--pad_h", "rows of zeros above and below", {&A::pad_h}},
      {"--pad_w", "columns of zeros left and right", {&A::pad_w}},
      {"--dil_h", "dilation along h", {&A::dil_h}},
      {"--dil_w", "dilation along w", {&A::dil_w}},
      {"--groups", "must be 1: grouped convolution is not supported", {&A::groups}}};
  return all;
}

bool has_extent(const Options& options) {
  return std::any_of(extents().begin(), extents().end(),
                     [&](const Extent& extent) { return options.has(extent.option); });
}

}  // namespace

std::vector<OptionSpec> stage_options() {
  return {{"--stage", "NAME", "only this stage; may be repeated (default: all)"},
          {"--relu", "", "apply ReLU, in the stages that fuse it"},
          {"--seed", "S", "of the random data (default 1)"},
          {"--json", "FILE", "write the records there, too"},
          {"--max-gmac", "X",
           "cut problems down to X billion multiply-adds (default: " +
               significant(DEFAULT_MAX_GMAC, 3) + " on the simulator, none on a GPU)"}};
}

std::vector<OptionSpec> problem_options() {
  std::vector<OptionSpec> specs = {{"--shape", "NAME", "a problem of common/problems.csv"}};
  for (const Extent& extent : extents()) specs.push_back({extent.option, "X", extent.help});
  return specs;
}

std::vector<Stage> selected_stages(const Options& options) {
  const std::vector<std::string> names = options.all("--stage");
  if (names.empty()) return stages();
  try {
    for (const std::string& name : names) find_stage(name);
  } catch (const InvalidArgument& error) {
    throw UsageError(error.what());
  }
  std::vector<Stage> selected;
  for (const Stage& stage : stages()) {
    if (std::count(names.begin(), names.end(), stage.name) > 0) selected.push_back(stage);
  }
  return selected;
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
  for (const Extent& extent : extents()) {
    for (auto target : extent.targets) {
      problem.arguments.*target = options.integer(extent.option, problem.arguments.*target);
    }
  }
  return problem;
}

std::string problems_file(const Options& options) {
  return options.text("--shapes", repository_path("common/problems.csv"));
}

std::string fit_to_backend(Problem& problem, const Options& options) {
  const double max_gmac = options.number("--max-gmac", DEFAULT_MAX_GMAC, 1e-6);
  if (on_gpu() && !options.has("--max-gmac")) return "";
  if (multiply_adds(problem.arguments) <= max_gmac * 1e9) return "";
  problem.arguments = reduce(problem.arguments, max_gmac * 1e9);
  return "cut down to " + to_string(make_conv_shape(problem.arguments)) + " (--max-gmac " +
         significant(max_gmac, 3) + ")";
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
