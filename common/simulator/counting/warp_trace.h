// The memory instructions of one warp, one by one: where a count comes from, and what pictures are
// drawn from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/simulator/counting/traffic.h"

namespace convladder::simulator {

struct TracedAccess {
  std::string kernel;
  std::string line;      // "01_naive/naive.cu:41"
  std::string variable;  // of shared memory; empty for global memory
  WarpAccess access;     // addresses in shared memory count from the variable's begin
};

// From now on, keeps what warp `warp` of block `block` (counted along x first) does in every launch.
// Within a launch the order is that in which the lanes come to the instructions, lane 0 first.
void trace_warp(uint64_t block, unsigned warp);

// What has been kept since the last call.
std::vector<TracedAccess> take_trace();

// For the observer of blocks.
bool is_traced(uint64_t block, unsigned warp);
void keep(TracedAccess access);

}  // namespace convladder::simulator
