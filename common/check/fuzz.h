// `check --fuzz`: random problems for every stage, each failure with the line that repeats it.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "common/core/stage.h"

namespace convladder {

struct FuzzSettings {
  std::vector<Stage> stages;
  uint64_t seed = 1;
  int64_t count = 0;          // problems for each stage
  double seconds = INFINITY;  // begin no problem but the first after so long
  double max_macs = 0;        // of a problem
};

struct StageFuzz {
  std::string stage;
  int64_t problems = 0;                     // that ran
  int64_t misaligned = 0;                   // of these: with tensors off their alignment
  int64_t failed = 0;                       // of these
  std::vector<std::string> reproduce = {};  // a command line for each failure
};

// Prints a line for every failure as it comes: the command that repeats it, and why. Ends early
// where the GPU becomes unusable.
std::vector<StageFuzz> fuzz(const FuzzSettings& settings);

}  // namespace convladder
