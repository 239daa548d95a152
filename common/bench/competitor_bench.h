// The competitors' part in the bench of one problem. Whatever goes wrong with one of them ends in
// its record; nothing but Interrupted is thrown.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/bench/bench.h"
#include "common/bench/competitor.h"

namespace convladder {

class CompetitorBench {
 public:
  // All must outlive this. Adds a record for each competitor to `records`.
  CompetitorBench(const Competitors& competitors, const HostProblem& problem,
                  const Reference& reference, std::vector<CompetitorRecord>& records);
  // Gives back what the competitors hold on the device.
  ~CompetitorBench();
  CompetitorBench(const CompetitorBench&) = delete;

  // Gets each one ready, or skips it where its tensors don't fit beside the stages'. For the batch
  // that would: `stage_bytes` is what the stages take, of `available` before they did.
  void prepare(const std::function<double(const ConvShape&)>& stage_bytes, double available,
               Stopwatch& stopwatch, const std::function<void(const std::string&)>& show);
  // One cold and one warm sample each.
  void take_turns(Stopwatch& stopwatch);
  void drop_samples();  // those so far were to warm up
  // Checks the results, and turns the samples into statistics.
  void finish(const Machine& machine);

 private:
  void attempt(std::size_t i, const std::function<void()>& action);

  const Competitors& competitors_;
  const HostProblem& problem_;
  const Reference& reference_;
  std::vector<CompetitorRecord>& records_;
  std::vector<Samples> samples_;
};

}  // namespace convladder
