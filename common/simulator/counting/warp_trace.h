// Where a kernel's counts come from: each memory instruction with what it costs over the whole
// launch, and, of some warps, the addresses of all 32 lanes.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/core/program.h"
#include "common/simulator/counting/traffic.h"

namespace convladder::simulator {

// What the executions of one instruction by all warps cost.
struct InstructionCounts {
  int64_t requests = 0;                 // executions, each by at least one lane of a warp
  int64_t sectors = 0;                  // of global memory
  int64_t wavefronts = 0;               // of shared memory, ...
  int64_t conflicts = 0;                // ... and those of them due to bank conflicts
  int64_t unique_bytes = 0;             // different bytes per request, added up
  uint64_t first_address = UINT64_MAX;  // the lowest that any lane has asked for

  void add(const WarpAccess& access);
  // Here, for the builds that count nothing: they write no trace, but hold what would.
  InstructionCounts& operator+=(const InstructionCounts& other) {
    requests += other.requests;
    sectors += other.sectors;
    wavefronts += other.wavefronts;
    conflicts += other.conflicts;
    unique_bytes += other.unique_bytes;
    first_address = std::min(first_address, other.first_address);
    return *this;
  }
};
// By LaneLog's `what`: the instruction, and which side of it where it is a copy.
using CountsByInstruction = std::unordered_map<uint64_t, InstructionCounts>;

struct TracedInstruction {
  // Where in the source, "01_naive/naive.cu:41"; then who called that, where it was inlined.
  std::vector<std::string> lines;
  Space space;
  Operation operation;
  unsigned bytes;  // per lane
  InstructionCounts counts;
};

struct TracedExecution {
  uint64_t what;                // as LaneLog has it; take_trace() sees to `instruction`
  std::size_t instruction = 0;  // its place in TracedKernel::instructions
  WarpAccess access;
  int cost, conflicts;  // sectors; of shared memory wavefronts, and those due to conflicts
};

// In the order in which the lanes come to the instructions, lane 0 first.
struct TracedWarp {
  uint64_t block;  // counted along x first
  unsigned warp;
  std::vector<TracedExecution> executions;
  std::unordered_map<uint64_t, int> times = {};  // by `what`, those that were not kept included
  std::set<std::size_t> cut = {};  // instructions of which only the first executions are here
};

// All launches of one kernel; the warps are those of its first launch.
struct TracedKernel {
  std::string kernel;
  int launches = 0;
  dim3 blocks, threads;
  std::vector<SharedVariable> shared;
  std::vector<TracedInstruction> instructions;  // in the order of the code
  std::vector<TracedWarp> warps;
};

// Which warps to keep: this block (warp), or where none is given a few, from the first to the last.
struct TraceSample {
  std::optional<uint64_t> block;
  std::optional<unsigned> warp;
};

// From now on, launches are traced. Addresses of shared memory count from its begin, as those of the
// variables in TracedKernel::shared do.
void start_trace(const TraceSample& sample);

// What has been traced since; ends it.
std::vector<TracedKernel> take_trace();

// ---- For the observer of blocks ----

bool tracing();
void trace_launch(const std::string& kernel, dim3 blocks, dim3 threads,
                  const std::vector<SharedVariable>& shared);
// Null unless the warp is one of the sample.
TracedWarp* traced_warp(uint64_t block, unsigned warp);
void keep(TracedWarp& warp, uint64_t what, const WarpAccess& access);
void add_to_trace(const CountsByInstruction& counts);
}  // namespace convladder::simulator
