// Ways in which the lanes of a warp can address memory: one kernel launch each, so that what Nsight
// Compute reads of a launch is what one instruction costs. The simulator's rules are held against
// these readings.
#pragma once

#include <array>
#include <functional>
#include <string>

namespace convladder {

struct LanePattern {
  std::string name;
  std::array<int, 32> word;  // of each lane, 0 to 1023; -1: the lane takes no part
};

// Which accesses are launched with the patterns.
enum class Accesses {
  // "shared_read" and "shared_write" (of patterns with no word twice).
  kShared,
  // Asynchronous ones: "copy_to_shared" with the pattern in shared memory (none with a word twice),
  // "copy_global" with the pattern in global memory.
  kCopies,
  // "global_read" and "global_write", also of patterns that cross 128-byte lines.
  kGlobal,
};

// Told after each launch: "shared_read", the bytes of a lane's access, the pattern.
using Launched = std::function<void(const std::string&, int, const LanePattern&)>;

// Launches all patterns for words of 4, 8 and 16 bytes: the same list every time. Throws CudaError.
void launch_patterns(Accesses accesses, const Launched& launched);

}  // namespace convladder
