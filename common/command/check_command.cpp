// `check`: stages against the reference, on any problems, by both rules.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include <fmt/format.h>
#include "common/check/backend.h"
#include "common/check/checker.h"
#include "common/check/fuzz.h"
#include "common/check/problems.h"
#include "common/check/progress.h"
#include "common/check/record.h"
#include "common/command/commands.h"
#include "common/command/selection.h"

namespace convladder {
namespace {

constexpr const char* HELP = R"(usage: convladder check [OPTION...]

Holds stages against a float64 reference. Each problem runs three times: with small integers
and with integers too wide for TF32, where every bit must be right, and with real numbers in
[-1, 1), where the rounding error must stay within its bound. (With --precision tf32 wide
integers have TF32's bound, too.) Outputs begin as NaN, guard
zones stand around every tensor, and the inputs must come out unchanged.

Without --shape or an extent: every problem of --shapes, by default common/problems.csv; on
the simulator, cut down to what takes each stage a minute on two cores.
Status 1 if anything failed, if a problem named on the command line was rejected, or if
nothing passed at all; 2 for an option that makes no sense. Rows of a file that describe no
legal problem are reported as rejected and don't count as failures.

With --fuzz: legal problems drawn at random, half of them with pointers aligned to 4 bytes
only. The same --seed gives the same problems. For every failure one line says how to repeat
it.

)";

constexpr double FUZZ_MAX_GMAC = 0.001;

std::vector<OptionSpec> option_specs() {
  std::vector<OptionSpec> specs = problem_options();
  specs.front().repeats = true;  // --shape
  specs.front().help += "; may be repeated";
  specs.push_back({"--bias", "0|1", "without or with bias (default 1)"});
  specs.push_back({"--shapes", "FILE.csv", "problems, one per row"});
  specs.push_back(
      {"--offset", "FLOATS", "0 to 3: shift tensors off their alignment; or four such: 0,1,2,3"});
  specs.push_back({"--least-workspace", "", "no more of it than the stage must have"});
  specs.push_back({"--no-guards", "", "bare tensors: no NaN, no guard zones; for a sanitizer"});
  specs.push_back({"--fuzz", "COUNT", "COUNT random problems (up to 0.001 by --max-gmac)"});
  specs.push_back({"--seconds", "T", "begin no random problem but the first after so long"});
  for (const OptionSpec& spec : stage_options()) specs.push_back(spec);
  return specs;
}

// "2" for all four tensors, or "0,1,2,3" for one after the other.
std::array<int, 4> parse_offsets(const std::string& text) {
  const bool four = text.size() == 7 && text[1] == ',' && text[3] == ',' && text[5] == ',';
  std::array<int, 4> offsets;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    offsets[i] = text[four ? 2 * i : 0] - '0';
    if ((!four && text.size() != 1) || offsets[i] < 0 || offsets[i] > 3) {
      throw UsageError("--offset = '" + text + "': must be 0 to 3, or four such numbers: 0,1,2,3");
    }
  }
  return offsets;
}

// What the command line says of every problem.
CheckCase case_of(const Options& options) {
  CheckCase c;
  c.relu = options.has("--relu");
  c.seed = seed_of(options);
  c.placement.offsets = parse_offsets(options.text("--offset", "0"));
  c.placement.least_workspace = options.has("--least-workspace");
  c.guards = options.has("--no-guards") ? Guards::kNone : Guards::kZones;
  return c;
}

int check_problems(const Options& options) {
  const bool named = names_problem(options);
  std::vector<Problem> problems =
      named ? named_problems(options) : read_problems(problems_file(options));
  const std::vector<Stage> stages = selected_stages(options);
  const int64_t bias = options.integer("--bias", -1, 0, 1);  // -1: as the problem says
  const double most = max_gmac(options, named ? ALONE_MAX_GMAC : LISTED_MAX_GMAC);
  CheckCase c = case_of(options);
  const std::string path = json_path(options);
  require_device();

  std::size_t stage_width = 0, problem_width = 0;
  for (const Stage& stage : stages) {
    stage_width = std::max(stage_width, std::string(stage.name).size());
  }
  for (const Problem& problem : problems) {
    problem_width = std::max(problem_width, problem.name.size());
  }
  Json records = Json::array();
  std::map<std::string, int> counts;  // by status
  int64_t done = 0, cut = 0;          // problems: all, and those cut down
  std::string rejection;              // why the last one that is none was rejected
  bool ok = true;                     // no rejection where none was due
  Progress progress(static_cast<int64_t>(problems.size()));
  Checker checker([&](const std::string& what) { progress.show(done + 1, what); });
  const auto finish = [&](const Record& record) {
    progress.clear();
    const bool ran = !std::isnan(record.max_error_ratio);
    fmt::print("{:{}}  {:{}}  {:8}  {:11}  {}\n", record.stage, stage_width, record.problem,
               problem_width, record.status,
               ran ? fmt::format("error {:.3f}", record.max_error_ratio) : "", record.message);
    ++counts[is_not_for_shape(record) ? NOT_FOR_SHAPE : record.status];
    records.push_back(to_json(record));
    flush_output();
  };
  for (Problem& problem : problems) {
    const std::string note = cut_down(problem, most);
    cut += !note.empty();
    c.name = problem.name;
    c.bias = bias >= 0 ? bias == 1 : problem.bias;
    try {
      c.shape = make_conv_shape(problem.arguments);
      checker.check(c, stages, [&](Record record) {
        if (record.status == "rejected") ok = false;  // a legal problem: every stage takes those
        if (!note.empty() && !is_not_for_shape(record))
          record.message = note + (record.message.empty() ? "" : "; ") + record.message;
        finish(record);
      });
    } catch (const InvalidArgument& error) {
      rejection = error.what();
      for (const Stage& stage : stages) {
        Record record = new_record(stage, problem.name, false);
        record.status = "rejected";
        record.message = rejection;
        finish(record);
      }
    }
    ++done;
  }
  if (cut > 0) {
    fmt::print("{} of {} problems were cut down, as their lines say; --max-gmac overrides\n", cut,
               done);
  }
  const int unfit = counts[NOT_FOR_SHAPE];
  fmt::print("{} passed, {} failed, {} rejected, {} skipped{} (backend: {})\n", counts["pass"],
             counts["fail"], counts["rejected"], counts["skipped"],
             unfit > 0 ? fmt::format(", {} {}", unfit, NOT_FOR_SHAPE) : "", backend_name());
  if (!path.empty()) write_json(path, records);
  // A row of a file may rightly describe no legal problem; one that is named and can't run is an error.
  if (named && !rejection.empty()) throw UsageError(rejection);
  if (named && !checker.error().empty()) throw std::runtime_error(checker.error());
  return ok && counts["fail"] == 0 && counts["pass"] > 0 ? 0 : 1;
}

FuzzSettings fuzz_settings(const Options& options) {
  for (const OptionSpec& spec : option_specs()) {
    const bool taken = spec.name == "--fuzz" || spec.name == "--seconds" ||
                       spec.name == "--max-gmac" || spec.name == "--stage" ||
                       spec.name == "--precision" || spec.name == "--seed";
    if (!taken && options.has(spec.name)) {
      throw UsageError(spec.name + " can't be given with --fuzz, which draws the problems itself");
    }
  }
  FuzzSettings settings;
  settings.stages = selected_stages(options);
  settings.seed = seed_of(options);
  settings.count = options.integer("--fuzz", 0, 1);
  settings.seconds = options.number("--seconds", INFINITY, 0);
  settings.max_macs = 1e9 * options.number("--max-gmac", FUZZ_MAX_GMAC, 1e-5);
  return settings;
}

int check_random_problems(const Options& options) {
  const FuzzSettings settings = fuzz_settings(options);
  require_device();
  const std::vector<StageFuzz> results = fuzz(settings);
  bool ok = true;
  int64_t problems = 0, failed = 0;
  for (const StageFuzz& result : results) {
    problems += result.problems, failed += result.failed;
    fmt::print("{:22}  {} random problem{}, {} of them misaligned: {} failed\n", result.stage,
               result.problems, result.problems == 1 ? "" : "s", result.misaligned, result.failed);
    ok = ok && result.problems > 0 && result.failed == 0;
  }
  fmt::print("{} random problem{}, {} failed; seed {} (backend: {})\n", problems,
             problems == 1 ? "" : "s", failed, settings.seed, backend_name());
  return ok ? 0 : 1;
}

}  // namespace

int check_command(const std::vector<std::string>& arguments) {
  const Options options(option_specs(), arguments);
  if (options.has("--help")) {
    std::printf("%s%s", HELP, options.help().c_str());
    return 0;
  }
  if (options.has("--fuzz")) return check_random_problems(options);
  if (options.has("--seconds")) throw UsageError("--seconds is for --fuzz");
  return check_problems(options);
}

}  // namespace convladder
