#include "common/command/selection.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include "common/check/backend.h"
#include "common/check/files.h"
#include "common/core/choice.h"
#include "common/core/extents.h"
#include "common/core/platform.h"

namespace convladder {
namespace {

std::string option(const Extent& extent) { return std::string("--") + extent.name; }

// The option that sets an extent along both axes: --stride for stride_h and stride_w.
std::string option_for_both(const Extent& extent) {
  const std::string name = option(extent);
  return name.substr(0, name.find('_'));
}

bool has_extent(const Options& options) {
  return std::any_of(std::begin(EXTENTS), std::end(EXTENTS), [&](const Extent& extent) {
    return options.has(option(extent)) || options.has(option_for_both(extent));
  });
}

}  // namespace

std::vector<OptionSpec> stage_options() {
  return {{"--stage", "NAME", "only this stage; may be repeated (default: all)", true},
          precision_option(),
          {"--relu", "", "apply ReLU, in the stages that fuse it"},
          {"--seed", "S", "of the random data (default 1)"},
          {"--json", "FILE", "write the records there"},
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
  for (const Extent& e : EXTENTS) {
    specs.push_back({option(e), "X", e.meaning});
    if (option(e).back() != 'w' || is_needed(e)) continue;
    const std::string both = option_for_both(e);
    specs.push_back({both, "X", "both " + both + "_h and " + both + "_w"});
  }
  return specs;
}

std::vector<Stage> selected_stages(const Options& options) {
  const std::vector<std::string> names = options.all("--stage");
  const std::string precision = options.text("--precision", "both");
  if (precision != "fp32" && precision != "tf32" && precision != "both") {
    throw UsageError("--precision = '" + precision + "': must be fp32, tf32 or both");
  }
  std::vector<Stage> selected;
  for (const std::string& name : names) find_stage(name);
  for (const Stage& stage : stages()) {
    const bool named = std::count(names.begin(), names.end(), stage.name) > 0;
    if (!named && !names.empty()) continue;
    if (precision == "both" || precision == to_string(stage.precision)) selected.push_back(stage);
  }
  if (std::count(names.begin(), names.end(), auto_stage().name) > 0 && precision != "tf32") {
    selected.push_back(auto_stage());
  }
  if (selected.empty()) {
    throw UsageError("--precision = '" + precision + "': no stage " +
                     (names.empty() ? "here" : "of --stage") + " has it");
  }
  return selected;
}

std::vector<Stage> capable_stages(const Options& options) {
  std::vector<Stage> capable;
  std::string lack;
  for (const Stage& stage : selected_stages(options)) {
    const bool can = stage.fuses_relu || !options.has("--relu");
    lack = can ? lack_of(stage) : "does not apply ReLU";
    if (lack.empty()) capable.push_back(stage);
    lack = stage.name + (" " + lack);
  }
  if (capable.empty()) throw UsageError(lack);
  return capable;
}

bool names_problem(const Options& options) { return options.has("--shape") || has_extent(options); }

std::vector<Problem> named_problems(const Options& options, const ConvArguments& base) {
  std::vector<Problem> problems;
  for (const std::string& name : options.all("--shape")) {
    problems.push_back(problem_called(options, name));
    if (has_extent(options)) problems.back().name += " (changed)";
  }
  if (problems.empty() && options.has("--shapes")) {
    throw UsageError("--shapes is where --shape is found: it needs one");
  }
  if (problems.empty()) problems.push_back({"command line", base});
  for (Problem& problem : problems) {
    ConvArguments& a = problem.arguments;
    for (const Extent& e : EXTENTS) {
      a.*e.given = options.integer(option_for_both(e), a.*e.given);
      a.*e.given = options.integer(option(e), a.*e.given);
    }
  }
  return problems;
}

uint64_t seed_of(const Options& options) {
  return static_cast<uint64_t>(options.integer("--seed", 1, 0));
}

std::string problems_file(const Options& options) {
  return options.text("--shapes", repository_path("common/problems.csv"));
}

Problem problem_called(const Options& options, const std::string& name) {
  const std::string path = problems_file(options);
  return find_problem(read_problems(path), name, shortened(path));
}

double max_gmac(const Options& options, double fallback) {
  return options.number("--max-gmac", on_gpu() ? INFINITY : fallback, 1e-6);
}

std::string cut_down(Problem& problem, double max_gmac) {
  if (multiply_adds(problem.arguments) <= max_gmac * 1e9) return "";
  problem.arguments = reduce(problem.arguments, max_gmac * 1e9);
  return fmt::format("cut down to {} (--max-gmac {:.3g})",
                     to_string(make_conv_shape(problem.arguments)), max_gmac);
}

namespace {
// What is written must be neither an argument nor written twice.
void require_files_apart(const Options& options) {
  const auto file = [&](const char* name) {
    std::error_code ignored;
    return std::filesystem::weakly_canonical(options.text(name), ignored);
  };
  for (const char* written : {"--json", "--output", "--trace"}) {
    for (const char* other :
         {"--input", "--filters", "--bias", "--shapes", "--json", "--output", "--trace"}) {
      const bool both = std::string(written) != other && options.has(written) && options.has(other);
      if (both && file(written) == file(other)) {
        throw UsageError(fmt::format("{} and {} are the same file, {}: it would be overwritten",
                                     other, written, options.text(written)));
      }
    }
  }
}
}  // namespace

std::string json_path(const Options& options, const char* name) {
  require_files_apart(options);
  std::string path = options.text("--json");
  if (!options.has("--json") && name) {
    const std::string folder = report_folder();
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

namespace {
// What is installed beside the program; nothing where it was built in the repository.
std::filesystem::path installed() {
  std::error_code ignored;  // a program that was built anew since it was started
  const std::filesystem::path program = std::filesystem::canonical(own_file(), ignored);
  const auto shared = program.parent_path().parent_path() / "share/convladder";
  return std::filesystem::exists(shared) ? shared : "";
}
}  // namespace

std::string repository_path(const std::string& relative) {
  const std::filesystem::path shared = installed();
  return (shared.empty() ? CONVLADDER_SOURCE_DIR : shared) / relative;
}

std::string report_folder() {
  return installed().empty() ? repository_path("build/report") : "convladder_report";
}

}  // namespace convladder
