#include "common/bench/competitor_bench.h"

#include <new>

#include "common/device/backend.h"

namespace convladder {
namespace {

CompetitorRecord new_record(const CompetitorInfo& info) {
  CompetitorRecord record;
  record.info = info;
  record.bench.record.stage = label(info);
  return record;
}

}  // namespace

CompetitorBench::CompetitorBench(const Competitors& competitors, const HostProblem& problem,
                                 const Reference& reference, std::vector<CompetitorRecord>& records)
    : competitors_(competitors),
      problem_(problem),
      reference_(reference),
      records_(records),
      samples_(competitors.size()) {
  records_.clear();
  for (const auto& competitor : competitors_) records_.push_back(new_record(competitor->info()));
}

CompetitorBench::~CompetitorBench() {
  for (const auto& competitor : competitors_) competitor->release();
}

// For a competitor that is still in it: one whose status says nothing yet.
void CompetitorBench::attempt(std::size_t i, const std::function<void()>& action) {
  Record& record = records_[i].bench.record;
  if (!record.status.empty()) return;
  const auto drop_out = [&](const char* status, const std::string& why) {
    record.status = status;
    record.message = why;
    competitors_[i]->release();
  };
  try {
    action();
  } catch (const Skipped& reason) {
    drop_out("skipped", reason.what());
  } catch (const std::bad_alloc&) {
    drop_out("fail", "out of host memory");
  } catch (const std::runtime_error& error) {
    drop_out("fail", error.what());
  }
}

void CompetitorBench::prepare(const std::function<double(const ConvShape&)>& stage_bytes,
                              double available, Stopwatch& stopwatch,
                              const std::function<void(const std::string&)>& show) {
  const bool bias = problem_.bias != nullptr;
  const auto all_bytes = [&](const ConvShape& shape) {
    double bytes = stage_bytes(shape);
    for (const auto& competitor : competitors_) bytes += competitor->bytes(shape, bias);
    return bytes;
  };
  for (std::size_t i = 0; i < competitors_.size(); ++i) {
    Competitor& competitor = *competitors_[i];
    show("prepare: " + label(competitor.info()));
    attempt(i, [&] {
      const double needed = competitor.bytes(problem_.shape, bias), free = free_device_memory();
      if (needed > free) {
        throw Skipped(memory_shortage(needed, label(competitor.info()) + " beside the stages", free,
                                      largest_batch(problem_.shape, available, all_bytes)));
      }
      const Choice choice = competitor.prepare(problem_, reference_, stopwatch);
      records_[i].algorithm = choice.algorithm;
      records_[i].bench.record.message = choice.remark;
    });
  }
}

void CompetitorBench::take_turns(Stopwatch& stopwatch) {
  for (std::size_t i = 0; i < competitors_.size(); ++i) {
    attempt(i, [&] { competitors_[i]->time(stopwatch, samples_[i]); });
  }
}

void CompetitorBench::drop_samples() {
  for (Samples& samples : samples_) samples.drop();
}

void CompetitorBench::finish(const Machine& machine) {
  // Winograd's algorithm and tensor cores need less than the FLOP at the FP32 peak: of the floor
  // the bytes remain.
  Work work = work_of(problem_.shape, problem_.bias != nullptr);
  work.needed_flops = 0;
  for (std::size_t i = 0; i < competitors_.size(); ++i) {
    attempt(i, [&] {
      BenchRecord& bench = records_[i].bench;
      const Comparison result = competitors_[i]->check(problem_, reference_);
      bench.record.max_error_ratio = result.max_error_ratio;
      if (!result.pass) throw std::runtime_error(result.message);
      set_times(bench, samples_[i]);
      bench.record.status = "pass";
      flag_impossible(bench, work, machine);
    });
  }
}

}  // namespace convladder
