// The stages on one problem: checked, timed in turns, checked again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/check/problems.h"
#include "common/core/stage.h"
#include "common/harness/bench.h"
#include "common/harness/event.h"
#include "common/harness/trial.h"

namespace convladder {

struct BenchSettings {
  std::vector<Stage> stages;
  int repeats = 15;   // rounds that count
  uint64_t seed = 1;  // of the random data
};

struct Samples {
  std::vector<double> cold, warm;  // ms
};

// Times a stage, cold and then warm.
class Stopwatch {
 public:
  // Throws CudaError when there is no room for the buffer that flushes the L2: twice its size.
  explicit Stopwatch(double l2_bytes);

  // Adds one sample to each list. What goes wrong in a kernel is thrown here, as CudaError.
  void time(const Trial& trial, Samples& samples);

 private:
  DeviceBuffer flush_;
  Event start_, between_, stop_;
};

class ProblemBench {
 public:
  // `show` is told what is going on.
  ProblemBench(const BenchSettings& settings, const Machine& machine,
               const std::function<void(const std::string&)>& show);

  // What keeps a stage or the whole problem from being measured is in the result, not thrown.
  BenchResult run(const Problem& problem);

 private:
  void measure(BenchResult& result);
  void check_once(const Stage& stage, const HostProblem& host, const Reference& reference,
                  BenchRecord& bench) const;
  void time_stages(const HostProblem& host, const Reference& reference, BenchResult& result);
  std::vector<Samples> take_samples(const std::vector<std::unique_ptr<Trial>>& trials);

  const BenchSettings settings_;
  const Machine machine_;
  const std::function<void(const std::string&)> show_;
  Stopwatch stopwatch_;
};

}  // namespace convladder
