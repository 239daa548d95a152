// Ways in which the lanes of a warp can address memory: one kernel launch each, so that what Nsight
// Compute reads of a launch is what one instruction costs. The simulator's rules are held against
// these readings.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

namespace convladder {

struct LanePattern {
  std::string name;
  std::array<int, 32> word;  // of each lane, 0 to 1023; -1: the lane takes no part
};

// Every subset of the lane's bits as address, strides, permutations, partial warps, the reads of
// the stages, and random ones: the same list every time.
std::vector<LanePattern> lane_patterns();

// Launches all patterns for words of 4, 8 and 16 bytes: reads of shared memory, writes (of patterns
// with no word twice) and reads of global memory. Calls launched("shared_read", bytes, pattern)
// after each.
void launch_lane_patterns(
    const std::function<void(const std::string&, int, const LanePattern&)>& launched);

}  // namespace convladder
