// What the counting simulator counts, as a user of it sees it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace convladder::simulator {

// Warp instructions that access global memory.
struct GlobalCounts {
  int64_t requests = 0;  // instructions, each with at least one lane
  int64_t sectors = 0;   // different 32-byte sectors per instruction, added up
  int64_t bytes = 0;     // likewise, single ones: what several lanes ask for counts once
};

// Warp instructions that access shared memory.
struct SharedCounts {
  int64_t requests = 0;
  int64_t wavefronts = 0;  // passes through the banks, as instructions say
  int64_t conflicts = 0;   // those of them due to bank conflicts
};

// Warp instructions at one place in the code: one of `requests` to global memory costs sectors, one
// to shared memory wavefronts.
struct PlaceCounts {
  int64_t requests = 0, cost = 0;
};

// What one launch asks of the multiprocessors: by amount, how many blocks ask for as much.
struct LaunchWork {
  const void* code = nullptr;  // the kernel's; null: a library's kernel, whose blocks nobody knows
  int64_t blocks = 0;
  std::map<int64_t, int64_t> products;             // multiplications of floats
  std::map<int64_t, int64_t> wavefronts;           // KernelCounts::pipe_wavefronts
  std::map<int64_t, int64_t> tensor_instructions;  // m16n8k8 in TF32, by warps
  double library_products = 0;                     // of a library's kernel, all of them
  int64_t sectors_read = 0, sectors_written = 0;   // as in KernelCounts
};

// A launch, or a library's call, that was not carried out.
struct PlannedLaunch {
  const void* code;  // the kernel's; null: a library's
  int64_t blocks;
  // Of a library's call, whose blocks nobody knows: multiplications, and the sectors of its matrices.
  double library_products = 0;
  int64_t sectors_read = 0, sectors_written = 0;
  int64_t blocks_y = 1;  // the grid's extent along y: the parts of a sum
};

// All launches of one kernel since take_kernel_counts(), added up.
struct KernelCounts {
  std::string kernel;
  int launches = 0;
  bool library =
      false;  // a library's kernel: only the sectors touched, and its products, are known

  GlobalCounts load, store;
  GlobalCounts copy_through_l1, copy_past_l1;  // asynchronous copies of 4 or 8, and of 16 bytes
  SharedCounts shared_load, shared_store, shared_copy;

  // Cycles that L1's data pipe of a multiprocessor is busy with these, at the least: passes through
  // the banks, which global memory's loads and stores make as well.
  int64_t pipe_wavefronts = 0;

  // Different 32-byte sectors that a launch reads (writes) at all: the least that DRAM can move.
  int64_t sectors_read = 0, sectors_written = 0;

  // Products of floats, by all threads; unknown where the program's code can't be read (arithmetic.h).
  double products = 0;
  bool knows_products = false;

  std::vector<LaunchWork> work;     // one per launch
  int64_t tensor_instructions = 0;  // by warps

  int64_t blocks = 0;
  int64_t barriers = 0;      // __syncthreads() of each block, added up
  int64_t shared_bytes = 0;  // of __shared__ variables, per block

  // By place: code_offset() of counting/source_line.h, and whether it is to shared memory.
  std::map<std::pair<uint32_t, bool>, PlaceCounts> places;

  KernelCounts& operator+=(const KernelCounts& other);  // but for the name
};

// True if this build counts; else no kernel is ever listed.
bool counts_kernels();

// The counts of all kernels launched since the last call, in the order of their first launch.
std::vector<KernelCounts> take_kernel_counts();

// The counts under the names that Nsight Compute gives them. What it has no counter for is named
// here in the same manner (sectors_touched_*, pipe_wavefronts_at_least). A library's kernel has only
// the sectors touched.
std::vector<std::pair<std::string, double>> metrics(const KernelCounts& counts);

}  // namespace convladder::simulator
