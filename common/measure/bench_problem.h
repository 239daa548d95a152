// The stages and the libraries beside them on one problem: checked, timed in turns, checked again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/check/problems.h"
#include "common/measure/bench.h"
#include "common/measure/competitor.h"

namespace convladder {

struct BenchSettings {
  std::vector<Stage> stages;
  int repeats = 15;        // rounds that count
  uint64_t seed = 1;       // of the random data
  std::string cudnn = "";  // its version; empty: without it
  PyTorch* pytorch = nullptr;
  // Is told what is going on, before each step.
  std::function<void(const std::string&)> show = [](const std::string&) {};
  bool wrong_too = false;  // time also what is wrong: its record fails, and has times
};

// The record of the problem, as common/show/records.py describes it. What keeps a stage, a library or the
// whole problem from being measured is in it, not thrown.
Json bench_problem(const Problem& problem, const BenchSettings& settings, const Machine& machine);

}  // namespace convladder
