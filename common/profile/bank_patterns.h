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

// Crossings of 128-byte lines: runs and strides from every word of a line, and rows that end within the
// warp, as stage 01's outputs have them.
std::vector<LanePattern> line_patterns();

// Told after each launch: "shared_read", the bytes of a lane's access, the pattern.
using Launched = std::function<void(const std::string&, int, const LanePattern&)>;

// Launches all patterns for words of 4, 8 and 16 bytes: reads of shared memory, writes (of patterns
// with no word twice) and reads of global memory. Throws CudaError.
void launch_lane_patterns(const Launched& launched);

// The same for asynchronous copies: "copy_to_shared" with the pattern in shared memory (none with a
// word twice), "copy_global" with the pattern in global memory.
void launch_copy_patterns(const Launched& launched);

// Reads and writes of global memory alone, "global_read" and "global_write", of both lists of patterns.
void launch_global_patterns(const Launched& launched);

}  // namespace convladder
