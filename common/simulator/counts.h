// What the counting simulator counts, as a user of it sees it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace convladder::simulator {

// Warp instructions that access global memory.
struct GlobalCounts {
  int64_t requests = 0;      // instructions, each with at least one lane
  int64_t sectors = 0;       // different 32-byte sectors per instruction, added up
  int64_t bytes = 0;         // asked for: lanes times bytes per lane
  int64_t unique_bytes = 0;  // different bytes per instruction, added up
};

// Warp instructions that access shared memory.
struct SharedCounts {
  int64_t requests = 0;
  int64_t wavefronts = 0;  // passes through the banks
  int64_t conflicts = 0;   // those of them due to bank conflicts
};

// All launches of one kernel since take_kernel_counts(), added up.
struct KernelCounts {
  std::string kernel;
  int launches = 0;
  bool library = false;  // a library's kernel: only the sectors touched are known

  GlobalCounts load, store;
  GlobalCounts copy_through_l1, copy_past_l1;  // asynchronous copies of 4 or 8, and of 16 bytes
  SharedCounts shared_load, shared_store, shared_copy;

  // Different 32-byte sectors that a launch reads (writes) at all: the least that DRAM can move.
  int64_t sectors_read = 0, sectors_written = 0;

  KernelCounts& operator+=(const KernelCounts& other);  // but for the name
};

// True if this build counts; else no kernel is ever listed.
bool counts_kernels();

// The counts of all kernels launched since the last call, in the order of their first launch.
std::vector<KernelCounts> take_kernel_counts();

// The counts under the names that Nsight Compute gives them. What it has no counter for is named
// here in the same manner (sectors_touched_*). A library's kernel has only the latter.
std::vector<std::pair<std::string, double>> metrics(const KernelCounts& counts);

}  // namespace convladder::simulator
