// `bench`: the stages timed on a GPU, with a cold and a warm L2.
//
// By CUDA events and a plain loop. Google Benchmark repeats one benchmark after the other, or in
// an order drawn over all of them, so that the tensors of all problems had to stay in memory; here
// the stages take turns on one problem, and a cold and a warm run come in pairs. Turns matter: what
// changes in the meantime (clock, temperature, another program) then meets all stages alike.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <memory>
#include <new>
#include <stdexcept>
#include <utility>

#include "common/check/problems.h"
#include "common/check/test_data.h"
#include "common/core/launch.h"
#include "common/harness/bench.h"
#include "common/harness/event.h"
#include "common/harness/progress.h"
#include "common/harness/selection.h"
#include "common/harness/table.h"
#include "common/harness/trial.h"

namespace convladder {
namespace {

constexpr int WARM_UPS = 2;  // rounds before those that count: the clock rises from its idle state

constexpr const char* HEADLINE_PROBLEMS[] = {"alexnet_conv1", "kernelbench_63",
                                             "resnet50_conv1_b64", "resnet50_3x3_64_b64",
                                             "vgg16_conv3_2_b32"};

constexpr const char* HELP =
    "usage: convladder bench [OPTION...]\n"
    "\n"
    "Times the stages on a GPU, on random numbers in [-1, 1). In every round each stage has its\n"
    "turn: once cold, after a buffer of twice the L2's size was written, and once more, warm. The\n"
    "result is checked before the first run and after the last. Ceiling (a loop of FMAs) and copy\n"
    "rate are measured in the same run; a median below the physical floor, the longer of FLOP /\n"
    "peak and least bytes / copy rate, is reported as impossible.\n"
    "\n"
    "Without --shape: every problem of --shapes, by default five well-known layers. Status 1 if\n"
    "anything failed or was impossible, if a problem named on the command line was rejected, or "
    "if\n"
    "nothing passed at all.\n"
    "\n";

std::vector<OptionSpec> option_specs() {
  return {{"--shape", "NAME", "a problem of common/problems.csv or --shapes; may be repeated"},
          {"--shapes", "FILE.csv", "problems, one per row"},
          {"--stage", "NAME", "only this stage; may be repeated (default: all)"},
          {"--batch", "N", "images, instead of the problem's own number"},
          {"--bias", "0|1", "without or with bias, whatever the problem says"},
          {"--repeats", "N", "rounds that count (default 15)"},
          {"--seed", "S", "of the random data (default 1)"},
          {"--json", "FILE", "write the records there, too"},
          {"--help", "", "this text"}};
}

std::vector<Problem> selected_problems(const Options& options) {
  const std::vector<Problem> all = read_problems(problems_file(options));
  std::vector<std::string> names = options.all("--shape");
  if (names.empty() && options.has("--shapes")) return all;
  if (names.empty()) names.assign(std::begin(HEADLINE_PROBLEMS), std::end(HEADLINE_PROBLEMS));
  std::vector<Problem> selected;
  try {
    for (const std::string& name : names) selected.push_back(find_problem(all, name));
  } catch (const InvalidArgument& error) {
    throw UsageError(error.what());
  }
  return selected;
}

std::vector<Problem> wanted_problems(const Options& options) {
  std::vector<Problem> problems = selected_problems(options);
  for (Problem& problem : problems) {
    if (options.has("--bias")) problem.bias = options.integer("--bias", 1, 0, 1) == 1;
    if (!options.has("--batch")) continue;
    problem.arguments.n = options.integer("--batch", 1, 1);
    problem.name += " (changed)";
  }
  return problems;
}

// Says how much would fit where trials of all `stages` at once don't.
void require_device_memory(const std::vector<Stage>& stages, const ConvShape& shape, bool bias) {
  std::size_t free = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  const auto bytes = [&](const ConvShape& s) { return trial_bytes(stages, s, bias); };
  const double available = static_cast<double>(free), needed = bytes(shape);
  if (needed <= available) return;
  const int batch = largest_batch(shape, available, bytes);
  throw std::runtime_error(
      "out of device memory: " + fixed(needed, 0) + " bytes needed (" +
      std::to_string(stages.size()) + " stages at once), " + fixed(available, 0) + " free; " +
      (batch > 0 ? "--batch " + std::to_string(batch) + " would fit" : "no batch would fit"));
}

// Takes the place of whatever the L2 holds.
class CacheFlush {
 public:
  explicit CacheFlush(double l2_bytes)
      : buffer_(static_cast<int64_t>(2 * l2_bytes / sizeof(float))) {}

  void enqueue() const {
    check_cuda(cudaMemsetAsync(buffer_.data(), 0, buffer_.count() * sizeof(float), nullptr),
               "cudaMemsetAsync");
  }

 private:
  DeviceBuffer buffer_;
};

struct Samples {
  std::vector<double> cold, warm;  // ms
};

// A stage cold, then warm. Nothing is waited for in between: while the flush runs, the rest is
// enqueued, so that the GPU never waits for the host inside a timed window.
class Stopwatch {
 public:
  explicit Stopwatch(double l2_bytes) : flush_(l2_bytes) {}

  void time(const Trial& trial, Samples& samples) {
    flush_.enqueue();
    start_.record();
    trial.enqueue();
    between_.record();
    trial.enqueue();
    stop_.record();
    samples.warm.push_back(stop_.milliseconds_since(between_));
    samples.cold.push_back(between_.milliseconds_since(start_));
  }

 private:
  CacheFlush flush_;
  Event start_, between_, stop_;
};

class Bench {
 public:
  // Understands the options before it measures the machine.
  Bench(const Options& options, std::size_t problems)
      : stages_(selected_stages(options)),
        repeats_(static_cast<int>(options.integer("--repeats", 15, 1, 100000))),
        seed_(static_cast<uint64_t>(options.integer("--seed", 1, 0))),
        machine_(measure_machine()),
        stopwatch_(machine_.l2_bytes),
        progress_(static_cast<int64_t>(problems)) {
    print_machine();
  }

  // `listed`: a row of a file, which may rightly describe a problem that must be rejected.
  void run(const Problem& problem, bool listed) {
    BenchResult result = new_result(problem);
    try {
      result.shape = make_conv_shape(problem.arguments);
      measure(*result.shape, result);
    } catch (const InvalidArgument& error) {
      set_undecided(result, "rejected", error.what());
    } catch (const std::bad_alloc&) {
      set_undecided(result, "fail", "out of host memory");
    } catch (const std::runtime_error& error) {
      set_undecided(result, "fail", error.what());
    }
    // A stage that rejects a legal problem is at fault.
    const bool may_reject = listed && !result.shape;
    for (const BenchRecord& bench : result.records) {
      const std::string& status = bench.record.status;
      passed_ += status == "pass";
      ok_ = ok_ && (status == "pass" || (status == "rejected" && may_reject));
    }
    print(result);
    results_.push_back(result);
  }

  // The last lines; returns the exit status.
  int conclude() const {
    std::printf(
        "Medians of %d runs; cold: after a flush of the L2, warm: right after the cold run.\n"
        "TFLOP/s and percentages are of the cold median; copy rate: least bytes / time.\n",
        repeats_);
    return ok_ && passed_ > 0 ? 0 : 1;
  }

  Json json() const { return bench_json(machine_, results_); }

 private:
  BenchResult new_result(const Problem& problem) const {
    BenchResult result;
    result.problem = problem.name;
    result.bias = problem.bias;
    for (const Stage& stage : stages_) {
      BenchRecord bench;
      bench.record.stage = stage.name;
      bench.record.problem = problem.name;
      result.records.push_back(bench);
    }
    return result;
  }

  static void set(BenchRecord& bench, const char* status, const std::string& why) {
    bench.record.status = status;
    bench.record.message = why;
    bench.cold.reset();  // the time of a result that is wrong is none
    bench.warm.reset();
  }

  // For what ended a problem: all stages that have no final result yet.
  static void set_undecided(BenchResult& result, const char* status, const std::string& why) {
    for (BenchRecord& bench : result.records) {
      const bool decided =
          bench.cold || bench.record.status == "fail" || bench.record.status == "rejected";
      if (!decided) set(bench, status, why);
    }
  }

  void show(const BenchResult& result, const std::string& what) {
    progress_.show(static_cast<int64_t>(results_.size()) + 1, result.problem + ": " + what);
  }

  void measure(const ConvShape& shape, BenchResult& result) {
    require_memory_for(shape);
    reject_stages(shape, result);
    show(result, "reference");
    const TestData data = make_test_data(shape, DataKind::kUniform, seed_);
    const HostProblem host{shape, data.input.data(), data.filters.data(),
                           result.bias ? data.bias.data() : nullptr};
    const Reference reference = affordable_reference(host, seed_);
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      if (!result.records[i].record.status.empty()) continue;
      show(result, std::string("check: ") + stages_[i].name);
      check_once(stages_[i], host, reference, result.records[i]);
    }
    time_stages(host, reference, result);
    for (BenchRecord& bench : result.records) {
      flag_impossible(bench, work_of(shape, result.bias), machine_);
    }
  }

  // Stages that can't take the shape; then it must fit the others.
  void reject_stages(const ConvShape& shape, BenchResult& result) {
    std::vector<Stage> rest;
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      try {
        workspace_bytes(stages_[i], shape);
        rest.push_back(stages_[i]);
      } catch (const InvalidArgument& error) {
        set(result.records[i], "rejected", error.what());
      }
    }
    require_device_memory(rest, shape, result.bias);
  }

  static void check(const Trial& trial, const HostProblem& host, const Reference& reference,
                    BenchRecord& bench) {
    const Comparison result =
        judge(trial, trial.output(), host, reference, Rule::kBounded, error_factor(host.shape));
    Record& record = bench.record;
    record.status = "pass";
    record.max_error_ratio = std::fmax(record.max_error_ratio, result.max_error_ratio);
    if (!result.pass) set(bench, "fail", result.message);
  }

  static void check_once(const Stage& stage, const HostProblem& host, const Reference& reference,
                         BenchRecord& bench) {
    try {
      const Trial trial(stage, host);
      trial.enqueue();
      trial.wait();
      check(trial, host, reference, bench);
    } catch (const InvalidArgument& error) {
      set(bench, "rejected", error.what());
    } catch (const CudaError& error) {
      set(bench, "fail", error.what());
    }
  }

  // Only stages that have passed. Their outputs begin as NaN again, and each has its own, so that
  // what is checked at the end is what was timed.
  void time_stages(const HostProblem& host, const Reference& reference, BenchResult& result) {
    std::vector<std::unique_ptr<Trial>> trials(stages_.size());
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      if (result.records[i].record.status != "pass") continue;
      trials[i] = std::make_unique<Trial>(stages_[i], host);
    }
    result.before = query_gpu_state(machine_.pci_bus_id);
    const std::vector<Samples> samples = take_samples(trials, result);
    result.after = query_gpu_state(machine_.pci_bus_id);
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      if (!trials[i]) continue;
      show(result, std::string("check: ") + stages_[i].name);
      BenchRecord& bench = result.records[i];
      check(*trials[i], host, reference, bench);
      if (bench.record.status != "pass") continue;
      bench.cold = summarise(samples[i].cold);
      bench.warm = summarise(samples[i].warm);
    }
  }

  std::vector<Samples> take_samples(const std::vector<std::unique_ptr<Trial>>& trials,
                                    const BenchResult& result) {
    std::vector<Samples> samples(trials.size());
    for (int round = -WARM_UPS; round < repeats_; ++round) {
      show(result,
           "round " + std::to_string(std::max(0, round + 1)) + " of " + std::to_string(repeats_));
      if (round == 0) samples.assign(trials.size(), {});
      for (std::size_t i = 0; i < trials.size(); ++i) {
        if (trials[i]) stopwatch_.time(*trials[i], samples[i]);
      }
    }
    return samples;
  }

  void print(const BenchResult& result) {
    progress_.clear();
    print_heading(result);
    std::printf("%s", bench_table(result, machine_).c_str());
    for (const BenchRecord& bench : result.records) {
      if (bench.record.message.empty()) continue;
      std::printf("%s: %s\n", bench.record.stage.c_str(), bench.record.message.c_str());
    }
    if (result.before && result.after) {
      std::printf("GPU before: %s; after: %s\n", to_string(*result.before).c_str(),
                  to_string(*result.after).c_str());
    }
    std::printf("\n");
    std::fflush(stdout);
  }

  void print_machine() const {
    const Machine& m = machine_;
    const std::string driver = m.driver.empty() ? "" : "driver " + m.driver + ", ";
    std::printf("%s, %d multiprocessors, L2 %.0f MiB; %sCUDA runtime %s\n", m.name.c_str(),
                m.multiprocessors, m.l2_bytes / (1 << 20), driver.c_str(), m.cuda_runtime.c_str());
    std::printf(
        "FP32 ceiling: %.1f TFLOP/s by a loop of FMAs (%.1f at %.0f MHz); copy: %.2f TB/s\n\n",
        m.fma_flops * 1e-12, m.peak_flops * 1e-12, m.clock_hz * 1e-6, m.copy_bytes * 1e-12);
  }

  void print_heading(const BenchResult& result) const {
    std::printf("%s", result.problem.c_str());
    if (result.shape) {
      const Work work = work_of(*result.shape, result.bias);
      std::printf(": %s%s; %.4g GFLOP, at least %.3g GB and %.3g ms",
                  to_string(*result.shape).c_str(), result.bias ? ", bias" : "", work.flops * 1e-9,
                  work.bytes * 1e-9, floor_ms(work, machine_, Cache::kCold));
    }
    std::printf("\n");
  }

  const std::vector<Stage> stages_;
  const int repeats_;
  const uint64_t seed_;
  const Machine machine_;
  Stopwatch stopwatch_;
  Progress progress_;
  std::vector<BenchResult> results_;
  int passed_ = 0;
  bool ok_ = true;  // nothing failed, and no rejection where none was due
};

}  // namespace

int bench_command(const std::vector<std::string>& arguments) {
  const Options options(option_specs(), arguments);
  if (options.has("--help")) {
    std::printf("%s%s", HELP, describe(option_specs()).c_str());
    return 0;
  }
  const std::vector<Problem> problems = wanted_problems(options);
  Bench bench(options, problems.size());
  const bool listed = options.has("--shapes") && !options.has("--shape");
  for (const Problem& problem : problems) bench.run(problem, listed);
  const int status = bench.conclude();
  if (options.has("--json")) write_json(options.text("--json"), bench.json());
  return status;
}

}  // namespace convladder
