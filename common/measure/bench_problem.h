// The stages and their competitors on one problem: checked, timed in turns, checked again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/check/problems.h"
#include "common/check/trial.h"
#include "common/core/stage.h"
#include "common/measure/bench.h"
#include "common/measure/competitor.h"
#include "common/measure/stopwatch.h"

namespace convladder {

struct BenchSettings {
  std::vector<Stage> stages;
  int repeats = 15;   // rounds that count
  uint64_t seed = 1;  // of the random data
  Competitors competitors = {};
};

class ProblemBench {
 public:
  // `show` is told what is going on, before each step; what it throws ends the problem at once,
  // unless it is a std::runtime_error.
  ProblemBench(const BenchSettings& settings, const Machine& machine,
               const std::function<void(const std::string&)>& show);

  // What keeps a stage, a competitor or the whole problem from being measured is in the result, not
  // thrown.
  BenchResult run(const Problem& problem);

 private:
  void measure(BenchResult& result);
  void check_once(const Stage& stage, const HostProblem& host, const Reference& reference,
                  BenchRecord& bench);
  void time_stages(const HostProblem& host, const Reference& reference, BenchResult& result);

  const BenchSettings settings_;
  const Machine machine_;
  const std::function<void(const std::string&)> show_;
  Stopwatch stopwatch_;
  std::vector<float> output_;  // the last that was read: gigabytes, and one memory for all
  double available_ = 0;       // bytes of device memory, before anything of the problem was there
};

}  // namespace convladder
