// `check`: stages against the reference, on any problems, by both rules.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <new>
#include <stdexcept>

#include "common/check/problems.h"
#include "common/check/test_data.h"
#include "common/core/launch.h"
#include "common/harness/backend.h"
#include "common/harness/commands.h"
#include "common/harness/progress.h"
#include "common/harness/selection.h"
#include "common/harness/table.h"
#include "common/harness/trial.h"

namespace convladder {
namespace {

constexpr const char* HELP =
    "usage: convladder check [OPTION...]\n"
    "\n"
    "Holds stages against a float64 reference. Each problem runs three times: with small integers\n"
    "and with integers too wide for TF32, where every bit must be right, and with real numbers in\n"
    "[-1, 1), where the rounding error must stay within its bound. Outputs begin as NaN, guard\n"
    "zones stand around every tensor, and the inputs must come out unchanged.\n"
    "\n"
    "Without --shape or an extent: every problem of --shapes, by default common/problems.csv.\n"
    "Status 1 if anything failed, if a problem named on the command line was rejected, or if\n"
    "nothing passed at all. Rows of a file that describe no legal problem are reported as "
    "rejected\n"
    "and don't count as failures.\n"
    "\n";

std::vector<OptionSpec> option_specs() {
  std::vector<OptionSpec> specs = problem_options();
  specs.push_back({"--bias", "0|1", "without or with bias (default 1)"});
  specs.push_back({"--shapes", "FILE.csv", "problems, one per row"});
  specs.push_back({"--offset", "FLOATS", "0 to 3: shift every tensor off its alignment"});
  specs.push_back({"--no-guards", "", "bare tensors: no NaN, no guard zones; for a sanitizer"});
  for (const OptionSpec& spec : stage_options()) specs.push_back(spec);
  specs.push_back({"--help", "", "this text"});
  return specs;
}

struct Kind {
  const char* name;
  DataKind data;
  Rule rule;
};
constexpr Kind KINDS[] = {{"small integers", DataKind::kSmallInteger, Rule::kExact},
                          {"wide integers", DataKind::kWideInteger, Rule::kExact},
                          {"real numbers", DataKind::kUniform, Rule::kBounded}};

void append(std::string& message, const std::string& more) {
  if (!more.empty()) message += (message.empty() ? "" : "; ") + more;
}

// A kernel that went astray leaves the GPU unusable: every later call fails as well.
bool device_lost() { return cudaDeviceSynchronize() != cudaSuccess; }

class Checker {
 public:
  Checker(const Options& options, const std::vector<Problem>& problems)
      : options_(options),
        stages_(selected_stages(options)),
        seed_(static_cast<uint64_t>(options.integer("--seed", 1, 0))),
        offset_(static_cast<int>(options.integer("--offset", 0, 0, 3))),
        guards_(options.has("--no-guards") ? Guards::kNone : Guards::kZones),
        progress_(static_cast<int64_t>(problems.size())) {
    for (const Stage& stage : stages_) widen(stage_width_, stage.name);
    for (const Problem& problem : problems) widen(problem_width_, problem.name);
  }

  // `listed`: a row of a file, which may rightly describe a problem that must be rejected.
  void check(Problem problem, bool listed) {
    const std::string note = fit_to_backend(problem, options_);
    std::vector<Record> records;
    for (const Stage& stage : stages_) records.push_back(new_record(stage, problem, note));
    try {
      const ConvShape shape = make_conv_shape(problem.arguments);
      if (options_.has("--relu")) skip_stages_without_relu(records);
      for (const Kind& kind : KINDS) check_kind(kind, shape, problem, records);
      for (Record& record : records) {
        if (record.status == "rejected") ok_ = false;  // a legal problem: every stage takes those
      }
    } catch (const InvalidArgument& error) {
      set_all(records, "rejected", error.what());
      ok_ = ok_ && listed;
    } catch (const std::bad_alloc&) {
      set_all(records, "fail", "out of host memory");
    } catch (const std::runtime_error& error) {
      set_all(records, "fail", error.what());
    }
    finish(records);
  }

  // The summary line; returns the exit status.
  int summarise() {
    const int64_t passed = count("pass"), failed = count("fail");
    std::printf("%lld passed, %lld failed, %lld rejected, %lld skipped (backend: %s)\n",
                static_cast<long long>(passed), static_cast<long long>(failed),
                static_cast<long long>(count("rejected")), static_cast<long long>(count("skipped")),
                backend_name());
    return ok_ && failed == 0 && passed > 0 ? 0 : 1;
  }

  // What last kept a stage from running; empty if all ran.
  const std::string& error() const { return error_; }

  Json json() const {
    std::vector<Json> items;
    for (const Record& record : records_) items.push_back(Json::object(json_members(record)));
    return Json::array(items);
  }

 private:
  static void widen(int& width, const std::string& text) {
    width = std::max(width, static_cast<int>(text.size()));
  }

  static Record new_record(const Stage& stage, const Problem& problem, const std::string& note) {
    Record record;
    record.stage = stage.name;
    record.problem = problem.name;
    record.message = note;
    return record;
  }

  // For what kept a stage from running, as opposed to a result that is wrong.
  void set(Record& record, const char* status, const std::string& why) {
    record.status = status;
    append(record.message, why);
    error_ = why;
  }

  void set_all(std::vector<Record>& records, const char* status, const std::string& why) {
    for (Record& record : records) set(record, status, why);
  }

  void skip_stages_without_relu(std::vector<Record>& records) const {
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      if (stages_[i].fuses_relu) continue;
      records[i].status = "skipped";
      append(records[i].message, "does not fuse ReLU");
    }
  }

  void check_kind(const Kind& kind, const ConvShape& shape, const Problem& problem,
                  std::vector<Record>& records) {
    require_memory_for(shape);
    progress_.show(done_ + 1, problem.name + ": " + kind.name);
    TestData data;
    try {
      data = make_test_data(shape, kind.data, seed_);
    } catch (const InvalidArgument& error) {  // the sum is too long to be exact in float32
      for (Record& record : records) append(record.message, std::string("no ") + kind.name);
      return;
    }
    const HostProblem host{shape, data.input.data(), data.filters.data(),
                           problem.bias ? data.bias.data() : nullptr, options_.has("--relu")};
    const Reference reference = affordable_reference(host, seed_);
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      if (!records[i].status.empty() && records[i].status != "pass") continue;
      progress_.show(done_ + 1, problem.name + ": " + kind.name + ": " + stages_[i].name);
      check_stage(stages_[i], kind, host, reference, records[i]);
    }
  }

  void check_stage(const Stage& stage, const Kind& kind, const HostProblem& host,
                   const Reference& reference, Record& record) {
    if (lost_) {
      record.status = "skipped";
      append(record.message, "an earlier error made the GPU unusable");
      return;
    }
    try {
      const Trial trial(stage, host, offset_, guards_);
      trial.enqueue();
      trial.wait();
      const Comparison result =
          judge(trial, trial.output(), host, reference, kind.rule, error_factor(host.shape));
      record.status = result.pass ? "pass" : "fail";
      record.max_error_ratio = std::fmax(record.max_error_ratio, result.max_error_ratio);
      if (!result.pass) append(record.message, std::string(kind.name) + ": " + result.message);
    } catch (const InvalidArgument& error) {
      set(record, "rejected", error.what());
    } catch (const CudaError& error) {
      set(record, "fail", std::string(kind.name) + ": " + error.what());
      lost_ = device_lost();
    }
  }

  void finish(const std::vector<Record>& records) {
    progress_.clear();
    for (const Record& record : records) {
      const bool ran = !std::isnan(record.max_error_ratio);
      const std::string ratio = ran ? "error " + fixed(record.max_error_ratio, 3) : "";
      std::printf("%-*s  %-*s  %-8s  %-11s  %s\n", stage_width_, record.stage.c_str(),
                  problem_width_, record.problem.c_str(), record.status.c_str(), ratio.c_str(),
                  record.message.c_str());
      records_.push_back(record);
    }
    std::fflush(stdout);
    ++done_;
  }

  int64_t count(const std::string& status) const {
    return std::count_if(records_.begin(), records_.end(),
                         [&](const Record& record) { return record.status == status; });
  }

  const Options& options_;
  const std::vector<Stage> stages_;
  const uint64_t seed_;
  const int offset_;
  const Guards guards_;
  Progress progress_;
  int stage_width_ = 0, problem_width_ = 0;  // columns of the output
  int64_t done_ = 0;
  std::vector<Record> records_;
  std::string error_;
  bool ok_ = true;     // no rejection where none was due
  bool lost_ = false;  // the GPU can't be used any more
};

}  // namespace

int check_command(const std::vector<std::string>& arguments) {
  const Options options(option_specs(), arguments);
  if (options.has("--help")) {
    std::printf("%s%s", HELP, describe(option_specs()).c_str());
    return 0;
  }
  const bool named = names_problem(options);
  std::vector<Problem> problems;
  if (named) {
    problems.push_back(named_problem(options));
  } else {
    problems = read_problems(problems_file(options));
  }
  const int64_t bias = options.integer("--bias", -1, 0, 1);  // -1: as the problem says
  const std::string records = json_path(options);

  Checker checker(options, problems);
  require_device();
  for (Problem& problem : problems) {
    if (bias >= 0) problem.bias = bias == 1;
    checker.check(problem, !named);
  }
  const int status = checker.summarise();
  if (!records.empty()) write_json(records, checker.json());
  // In a list the line of the problem says it; a single problem that can't run is an error.
  if (named && !checker.error().empty()) throw std::runtime_error(checker.error());
  return status;
}

}  // namespace convladder
