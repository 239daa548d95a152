// What the stage-to-stage table of `profile` compares, and what it was the last time: a line of a file
// below build/report/last for each stage and problem.
#pragma once

#include <optional>
#include <string>

#include "common/command/run_job.h"

namespace convladder {

// Of the JSON that `profile` writes, and of that file. Increase it whenever a reader would go wrong with
// what is written now.
constexpr int PROFILE_VERSION = 1;

// Of one stage. A library's kernels are in dram_bytes only.
struct Traffic {
  double requests = 0;    // to global memory, per warp
  double sectors = 0;     // asked of L1
  double wavefronts = 0;  // of shared memory
  double dram_bytes = 0;  // at the least
};

// None where none was kept by this PROFILE_VERSION.
std::optional<Traffic> last_traffic(const std::string& stage, const RunJob& job);

// Takes the place of the last. Where that can't be written, a line on stdout says so.
void keep_traffic(const std::string& stage, const RunJob& job, const Traffic& traffic);

}  // namespace convladder
