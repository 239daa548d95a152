// What some warps do at each memory instruction: the addresses of all 32 lanes, and what serves them.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/core/program.h"
#include "common/simulator/counting/traffic.h"

namespace convladder::simulator {

struct TracedExecution {
  Instruction instruction;
  WarpAccess access;
  std::vector<Service> services;  // the sectors or wavefronts that it costs
};

constexpr int MOST_TIMES = 512;  // that an instruction of a warp is kept

// In the order in which the lanes come to the instructions, lane 0 first.
struct TracedWarp {
  uint64_t block;  // counted along x first
  unsigned warp;
  std::vector<TracedExecution> executions = {};
  std::map<Instruction, int> times = {};  // with those that are not kept
};

// All launches of one kernel; the warps are those of its first launch.
struct TracedKernel {
  std::string kernel;
  int launches = 0;
  dim3 blocks, threads;
  std::vector<SharedVariable> shared;
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

void trace_launch(const std::string& kernel, dim3 blocks, dim3 threads,
                  const std::vector<SharedVariable>& shared);
// Null unless the warp is one of the sample.
TracedWarp* traced_warp(uint64_t block, unsigned warp);
void keep(TracedWarp& warp, uint64_t what, const WarpAccess& access);

}  // namespace convladder::simulator
