// `check`: stages against the reference, on any problems, by both rules.
#include <algorithm>
#include <cmath>
#include <cstdio>
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
nothing passed at all. Rows of a file that describe no legal problem are reported as rejected
and don't count as failures.

With --fuzz: legal problems drawn at random, half of them with pointers aligned to 4 bytes
only. The same --seed gives the same problems. For every failure one line says how to repeat
it.

)";

constexpr double FUZZ_MAX_GMAC = 0.001;

std::vector<OptionSpec> option_specs() {
  std::vector<OptionSpec> specs = problem_options();
  specs.front().repeats = true;  // --shape
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

// Puts problem after problem to the stages that the options select, and prints the outcome.
class CheckRun {
 public:
  CheckRun(const Options& options, const std::vector<Problem>& problems)
      : options_(options),
        stages_(selected_stages(options)),
        progress_(static_cast<int64_t>(problems.size())),
        checker_([this](const std::string& what) { progress_.show(done_ + 1, what); }) {
    settings_.relu = options.has("--relu");
    settings_.seed = seed_of(options);
    settings_.placement.offsets = parse_offsets(options.text("--offset", "0"));
    settings_.placement.least_workspace = options.has("--least-workspace");
    settings_.guards = options.has("--no-guards") ? Guards::kNone : Guards::kZones;
    for (const Stage& stage : stages_) widen(stage_width_, stage.name);
    for (const Problem& problem : problems) widen(problem_width_, problem.name);
  }

  // `listed`: a row of a file, which may rightly describe a problem that must be rejected.
  void check(Problem problem, bool listed) {
    const std::string note =
        cut_down(problem, max_gmac(options_, listed ? LISTED_MAX_GMAC : ALONE_MAX_GMAC));
    cut_ += !note.empty();
    try {
      CheckCase c = settings_;
      c.name = problem.name;
      c.shape = make_conv_shape(problem.arguments);
      c.bias = problem.bias;
      checker_.check(c, stages_, [&](Record record) {
        if (record.status == "rejected") ok_ = false;  // a legal problem: every stage takes those
        if (!note.empty()) {
          record.message = note + (record.message.empty() ? "" : "; ") + record.message;
        }
        finish(record);
      });
      if (!checker_.error().empty()) error_ = checker_.error();
    } catch (const InvalidArgument& error) {
      reject(problem, error.what());
      rejection_ = error.what();
      ok_ = ok_ && listed;
    }
    ++done_;
  }

  // The summary line; returns the exit status.
  int summarise() {
    if (cut_ > 0) {
      std::printf("%lld of %lld problems were cut down, as their lines say; --max-gmac overrides\n",
                  static_cast<long long>(cut_), static_cast<long long>(done_));
    }
    const int64_t passed = count("pass"), failed = count("fail");
    std::printf("%lld passed, %lld failed, %lld rejected, %lld skipped (backend: %s)\n",
                static_cast<long long>(passed), static_cast<long long>(failed),
                static_cast<long long>(count("rejected")), static_cast<long long>(count("skipped")),
                backend_name());
    return ok_ && failed == 0 && passed > 0 ? 0 : 1;
  }

  // What last kept a stage from running; empty if all ran.
  const std::string& error() const { return error_; }
  // Why the last problem that is none was rejected; empty if there was none.
  const std::string& rejection() const { return rejection_; }

  Json json() const {
    Json items = Json::array();
    for (const Record& record : records_) items.push_back(to_json(record));
    return items;
  }

 private:
  static void widen(int& width, const std::string& text) {
    width = std::max(width, static_cast<int>(text.size()));
  }

  void reject(const Problem& problem, const std::string& why) {
    for (const Stage& stage : stages_) {
      Record record = new_record(stage, problem.name, false);
      record.status = "rejected";
      record.message = why;
      finish(record);
    }
  }

  void finish(const Record& record) {
    progress_.clear();
    const bool ran = !std::isnan(record.max_error_ratio);
    const std::string ratio = ran ? "error " + fmt::format("{:.3f}", record.max_error_ratio) : "";
    std::printf("%-*s  %-*s  %-8s  %-11s  %s\n", stage_width_, record.stage.c_str(), problem_width_,
                record.problem.c_str(), record.status.c_str(), ratio.c_str(),
                record.message.c_str());
    records_.push_back(record);
    flush_output();
  }

  int64_t count(const std::string& status) const {
    return std::count_if(records_.begin(), records_.end(),
                         [&](const Record& record) { return record.status == status; });
  }

  const Options& options_;
  const std::vector<Stage> stages_;
  CheckCase settings_;  // all but the problem
  Progress progress_;
  int64_t done_ = 0, cut_ = 0;  // problems: all, and those cut down
  Checker checker_;
  int stage_width_ = 0, problem_width_ = 0;  // columns of the output
  std::vector<Record> records_;
  std::string error_, rejection_;
  bool ok_ = true;  // no rejection where none was due
};

int check_problems(const Options& options) {
  require_different_files(options, {"--json"}, {"--shapes"});
  const bool named = names_problem(options);
  std::vector<Problem> problems =
      named ? named_problems(options) : read_problems(problems_file(options));
  const int64_t bias = options.integer("--bias", -1, 0, 1);  // -1: as the problem says
  const std::string records = json_path(options);

  CheckRun run(options, problems);
  require_device();
  for (Problem& problem : problems) {
    if (bias >= 0) problem.bias = bias == 1;
    run.check(problem, !named);
  }
  const int status = run.summarise();
  if (!records.empty()) write_json(records, run.json());
  // In a list the line of the problem says it; a problem that is named and can't run is an error.
  if (named && !run.rejection().empty()) throw UsageError(run.rejection());
  if (named && !run.error().empty()) throw std::runtime_error(run.error());
  return status;
}

FuzzSettings fuzz_settings(const Options& options) {
  for (const OptionSpec& spec : option_specs()) {
    const bool taken = spec.name == "--fuzz" || spec.name == "--seconds" ||
                       spec.name == "--max-gmac" || spec.name == "--stage" ||
                       spec.name == "--precision" || spec.name == "--seed" || spec.name == "--json";
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
  const std::string path = json_path(options);
  require_device();
  const std::vector<StageFuzz> results = fuzz(settings);
  bool ok = true;
  int64_t problems = 0, failed = 0;
  for (const StageFuzz& result : results) {
    problems += result.problems, failed += result.failed;
    std::printf("%-22s  %lld random problems, %lld of them misaligned: %lld failed\n",
                result.stage.c_str(), static_cast<long long>(result.problems),
                static_cast<long long>(result.misaligned), static_cast<long long>(result.failed));
    ok = ok && result.problems > 0 && result.failed == 0;
  }
  std::printf("%lld random problems, %lld failed; seed %llu (backend: %s)\n",
              static_cast<long long>(problems), static_cast<long long>(failed),
              static_cast<unsigned long long>(settings.seed), backend_name());
  if (!path.empty()) write_json(path, fuzz_json(settings, results));
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
