#include "common/bench/bench_problem.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <stdexcept>

#include "common/check/test_data.h"
#include "common/core/launch.h"
#include "common/device/backend.h"
#include "common/io/table.h"

namespace convladder {
namespace {

constexpr int WARM_UPS = 2;  // rounds before those that count: the clock rises from its idle state

void set(BenchRecord& bench, const char* status, const std::string& why) {
  bench.record.status = status;
  bench.record.message = why;
}

BenchResult new_result(const Problem& problem, const std::vector<Stage>& stages) {
  BenchResult result;
  result.problem = problem.name;
  result.bias = problem.bias;
  for (const Stage& stage : stages) {
    BenchRecord bench;
    bench.record.stage = stage.name;
    bench.record.problem = problem.name;
    result.records.push_back(bench);
  }
  return result;
}

// For what ended the whole problem: it befalls all that have no final result yet.
void end_problem(BenchResult& result, const char* status, const std::string& why) {
  result.error = why;
  for (BenchRecord& bench : result.records) {
    const bool rejected = bench.record.status == "rejected", failed = bench.record.status == "fail";
    if (!bench.cold && !rejected && !failed) set(bench, status, why);
  }
  for (CompetitorRecord& competitor : result.competitors) {
    if (competitor.bench.record.status.empty()) set(competitor.bench, "skipped", why);
  }
}

// The stages that take the shape; the others are set to rejected.
std::vector<Stage> able_stages(const std::vector<Stage>& stages, BenchResult& result) {
  std::vector<Stage> able;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    try {
      workspace_bytes(stages[i], *result.shape);
      able.push_back(stages[i]);
    } catch (const InvalidArgument& error) {
      set(result.records[i], "rejected", error.what());
    }
  }
  return able;
}

// Says how much would fit where trials of all `stages` at once don't.
void require_device_memory(const std::vector<Stage>& stages, const ConvShape& shape, bool bias,
                           double available) {
  const auto bytes = [&](const ConvShape& s) { return trial_bytes(stages, s, bias); };
  const double needed = bytes(shape);
  if (needed <= available) return;
  throw std::runtime_error(
      memory_shortage(needed, "all stages at once (" + std::to_string(stages.size()) + ")",
                      available, largest_batch(shape, available, bytes)));
}

void check(const Trial& trial, const Reference& reference, BenchRecord& bench) {
  const Comparison result = judge(trial, trial.output(), reference, Rule::kBounded);
  set(bench, result.pass ? "pass" : "fail", result.message);
  bench.record.max_error_ratio = std::fmax(bench.record.max_error_ratio, result.max_error_ratio);
}

}  // namespace

ProblemBench::ProblemBench(const BenchSettings& settings, const Machine& machine,
                           const std::function<void(const std::string&)>& show)
    : settings_(settings), machine_(machine), show_(show), stopwatch_(machine.l2_bytes) {}

BenchResult ProblemBench::run(const Problem& problem) {
  BenchResult result = new_result(problem, settings_.stages);
  try {
    result.shape = make_conv_shape(problem.arguments);
    measure(result);
  } catch (const InvalidArgument& error) {
    end_problem(result, "rejected", error.what());
  } catch (const std::bad_alloc&) {
    end_problem(result, "fail", "out of host memory");
  } catch (const std::runtime_error& error) {
    end_problem(result, "fail", error.what());
  }
  return result;
}

void ProblemBench::measure(BenchResult& result) {
  const ConvShape& shape = *result.shape;
  available_ = free_device_memory();
  require_device_memory(able_stages(settings_.stages, result), shape, result.bias, available_);
  require_memory_for(shape);
  show_("reference");
  const TestData data = make_test_data(shape, DataKind::kUniform, settings_.seed);
  const HostProblem host = host_problem(shape, data, result.bias);
  const Reference reference = affordable_reference(host, settings_.seed);
  for (std::size_t i = 0; i < settings_.stages.size(); ++i) {
    if (result.records[i].record.status == "rejected") continue;
    check_once(settings_.stages[i], host, reference, result.records[i]);
  }
  time_stages(host, reference, result);
}

void ProblemBench::check_once(const Stage& stage, const HostProblem& host,
                              const Reference& reference, BenchRecord& bench) const {
  show_(std::string("check: ") + stage.name);
  try {
    const Trial trial(stage, host);
    trial.enqueue();
    trial.wait();
    check(trial, reference, bench);
  } catch (const InvalidArgument& error) {
    set(bench, "rejected", error.what());
  } catch (const CudaError& error) {
    set(bench, "fail", error.what());
  }
}

// Only stages that have passed. Their outputs begin as NaN again, and each has its own, so that
// what is checked at the end is what was timed.
void ProblemBench::time_stages(const HostProblem& host, const Reference& reference,
                               BenchResult& result) {
  const std::vector<Stage>& stages = settings_.stages;
  std::vector<std::unique_ptr<Trial>> trials(stages.size());
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (result.records[i].record.status != "pass") continue;
    trials[i] = std::make_unique<Trial>(stages[i], host);
  }
  CompetitorBench competitors(settings_.competitors, host, reference, result.competitors);
  const std::vector<Stage> able = able_stages(stages, result);
  competitors.prepare([&](const ConvShape& s) { return trial_bytes(able, s, result.bias); },
                      available_, stopwatch_, show_);
  result.before = query_gpu_state(machine_.pci_bus_id);
  const std::vector<Samples> samples = take_samples(trials, competitors);
  result.after = query_gpu_state(machine_.pci_bus_id);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (!trials[i]) continue;
    BenchRecord& bench = result.records[i];
    show_(std::string("check: ") + stages[i].name);
    check(*trials[i], reference, bench);
    if (bench.record.status != "pass") continue;  // the time of a wrong result is none
    set_times(bench, samples[i]);
    Work work = work_of(host.shape, result.bias);
    if (stages[i].tf32_name) work.needed_flops = 0;  // no work for the FP32 units
    flag_impossible(bench, work, machine_);
  }
  show_("check: competitors");
  competitors.finish(machine_);
}

// In turns: what changes in the meantime (clock, temperature, another program) meets all alike.
std::vector<Samples> ProblemBench::take_samples(const std::vector<std::unique_ptr<Trial>>& trials,
                                                CompetitorBench& competitors) {
  std::vector<Samples> samples(trials.size());
  for (int round = -WARM_UPS; round < settings_.repeats; ++round) {
    show_("round " + std::to_string(std::max(0, round + 1)) + " of " +
          std::to_string(settings_.repeats));
    if (round == 0) {
      for (Samples& warm_up : samples) warm_up.drop();
      competitors.drop_samples();
    }
    for (std::size_t i = 0; i < trials.size(); ++i) {
      if (trials[i]) stopwatch_.time([&] { trials[i]->enqueue(); }, samples[i]);
    }
    competitors.take_turns(stopwatch_);
  }
  return samples;
}

}  // namespace convladder
