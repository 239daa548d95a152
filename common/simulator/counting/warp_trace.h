// What some warps do at each memory instruction: the addresses of all 32 lanes, and what serves them.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/core/program.h"
#include "common/simulator/counting/traffic.h"

namespace convladder::simulator {

struct TracedInstruction : Instruction {
  // Where in the source, "01_naive/naive.cu:41"; then who called that, where it was inlined.
  std::vector<std::string> lines;
  InstructionCounts counts;
};

struct TracedExecution {
  uint64_t what;                // as LaneLog has it; take_trace() sees to `instruction`
  std::size_t instruction = 0;  // its place in TracedKernel::instructions
  WarpAccess access;
  std::vector<Service> services;  // the sectors or wavefronts that it costs
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

// What has been traced since, with what take_kernel_counts() has of the same launches; ends it.
std::vector<TracedKernel> take_trace(const std::vector<KernelCounts>& counts);

// ---- For the observer of blocks ----

void trace_launch(const std::string& kernel, dim3 blocks, dim3 threads,
                  const std::vector<SharedVariable>& shared);
// Null unless the warp is one of the sample.
TracedWarp* traced_warp(uint64_t block, unsigned warp);
void keep(TracedWarp& warp, uint64_t what, const WarpAccess& access);

}  // namespace convladder::simulator
