#include "common/measure/bench_problem.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>
#include <stdexcept>

#include "common/check/backend.h"
#include "common/check/test_data.h"
#include "common/core/launch.h"

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
    result.records.push_back({new_record(stage, problem.name, false), {}, {}, 0, stage.precision});
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

void check(const Trial& trial, const Reference& reference, std::vector<float>& output,
           BenchRecord& bench) {
  trial.read_output(output);
  const Comparison result = judge(trial, output, reference, Rule::kBounded);
  set(bench, result.pass ? "pass" : "fail", result.message);
  bench.record.max_error_ratio = std::fmax(bench.record.max_error_ratio, result.max_error_ratio);
}

// The competitors' part. Whatever goes wrong with one of them ends in its record; nothing but
// Interrupted is thrown.
class CompetitorBench {
 public:
  // All must outlive this. `records` will hold one for each competitor.
  CompetitorBench(const Competitors& competitors, const HostProblem& problem,
                  const Reference& reference, std::vector<CompetitorRecord>& records)
      : competitors_(competitors),
        problem_(problem),
        reference_(reference),
        records_(records),
        samples_(competitors.size()) {
    records_.resize(competitors.size());
    for (std::size_t i = 0; i < competitors.size(); ++i) {
      records_[i].info = competitors[i]->info();
      records_[i].bench.record.stage = label(records_[i].info);
    }
  }
  // Gives back what the competitors hold on the device.
  ~CompetitorBench() {
    for (const auto& competitor : competitors_) competitor->release();
  }
  CompetitorBench(const CompetitorBench&) = delete;

  // Gets each one ready, or skips it where its tensors don't fit beside the stages'. For the batch
  // that would: `stage_bytes` is what the stages take, of `available` before they did.
  void prepare(const std::function<double(const ConvShape&)>& stage_bytes, double available,
               Stopwatch& stopwatch, const std::function<void(const std::string&)>& show) {
    const bool bias = problem_.bias != nullptr;
    const auto all_bytes = [&](const ConvShape& shape) {
      double bytes = stage_bytes(shape);
      for (const auto& competitor : competitors_) bytes += competitor->bytes(shape, bias);
      return bytes;
    };
    attempt_each([&](Competitor& competitor, CompetitorRecord& record, Samples&) {
      const std::string name = label(competitor.info());
      show("prepare: " + name);
      const double needed = competitor.bytes(problem_.shape, bias), free = free_device_memory();
      if (needed > free) {
        throw Skipped(memory_shortage(needed, name + " beside the stages", free,
                                      largest_batch(problem_.shape, available, all_bytes)));
      }
      const Choice choice = competitor.prepare(problem_, reference_, stopwatch);
      record.algorithm = choice.algorithm;
      record.bench.record.message = choice.remark;
    });
  }

  // One cold and one warm sample each.
  void take_turns(Stopwatch& stopwatch) {
    attempt_each([&](Competitor& competitor, CompetitorRecord&, Samples& samples) {
      competitor.time(stopwatch, samples);
    });
  }

  void drop_samples() {  // those so far were to warm up
    for (Samples& samples : samples_) samples.drop();
  }

  // Checks the results, and turns the samples into statistics.
  void finish(const Machine& machine) {
    // Winograd's algorithm and tensor cores need less than the FLOP at the FP32 peak: of the floor
    // the bytes remain.
    Work work = work_of(problem_.shape, problem_.bias != nullptr);
    work.needed_flops = 0;
    attempt_each([&](Competitor& competitor, CompetitorRecord& record, Samples& samples) {
      BenchRecord& bench = record.bench;
      const Comparison result = competitor.check(problem_, reference_);
      bench.record.max_error_ratio = result.max_error_ratio;
      if (!result.pass) throw std::runtime_error(result.message);
      set_times(bench, samples);
      bench.record.status = "pass";
      flag_impossible(bench, work, machine);
    });
  }

 private:
  // action(competitor, record, samples) for those that are still in it: whose status says nothing yet.
  template <typename Action>
  void attempt_each(const Action& action) {
    for (std::size_t i = 0; i < competitors_.size(); ++i) {
      if (!records_[i].bench.record.status.empty()) continue;
      const auto drop_out = [&](const char* status, const std::string& why) {
        set(records_[i].bench, status, why);
        competitors_[i]->release();
      };
      try {
        action(*competitors_[i], records_[i], samples_[i]);
      } catch (const Skipped& reason) {
        drop_out("skipped", reason.what());
      } catch (const std::bad_alloc&) {
        drop_out("fail", "out of host memory");
      } catch (const std::runtime_error& error) {
        drop_out("fail", error.what());
      }
    }
  }

  const Competitors& competitors_;
  const HostProblem& problem_;
  const Reference& reference_;
  std::vector<CompetitorRecord>& records_;
  std::vector<Samples> samples_;
};

// In turns: what changes in the meantime (clock, temperature, another program) meets all alike.
std::vector<Samples> take_samples(const std::vector<std::unique_ptr<Trial>>& trials,
                                  CompetitorBench& competitors, int repeats, Stopwatch& stopwatch,
                                  const std::function<void(const std::string&)>& show) {
  std::vector<Samples> samples(trials.size());
  for (int round = -WARM_UPS; round < repeats; ++round) {
    show("round " + std::to_string(std::max(0, round + 1)) + " of " + std::to_string(repeats));
    if (round == 0) {
      for (Samples& warm_up : samples) warm_up.drop();
      competitors.drop_samples();
    }
    for (std::size_t i = 0; i < trials.size(); ++i) {
      if (trials[i]) stopwatch.time([&] { trials[i]->enqueue(); }, samples[i]);
    }
    competitors.take_turns(stopwatch);
  }
  return samples;
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
  output_ = std::vector<float>();  // the last problem's memory is this one's
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
                              const Reference& reference, BenchRecord& bench) {
  show_(std::string("check: ") + stage.name);
  try {
    const Trial trial(stage, host);
    trial.enqueue();
    trial.wait();
    check(trial, reference, output_, bench);
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
  const std::vector<Samples> samples =
      take_samples(trials, competitors, settings_.repeats, stopwatch_, show_);
  result.after = query_gpu_state(machine_.pci_bus_id);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (!trials[i]) continue;
    BenchRecord& bench = result.records[i];
    show_(std::string("check: ") + stages[i].name);
    check(*trials[i], reference, output_, bench);
    if (bench.record.status != "pass") continue;  // the time of a wrong result is none
    set_times(bench, samples[i]);
    Work work = work_of(host.shape, result.bias);
    if (stages[i].tensor_cores) work.needed_flops = 0;  // no work for the FP32 units
    flag_impossible(bench, work, machine_);
  }
  show_("check: competitors");
  competitors.finish(machine_);
}

}  // namespace convladder
