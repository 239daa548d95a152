// What the counting simulator counts, as a user of it sees it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
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

// Hopper's own instructions.
struct HopperCounts {
  int64_t products = 0;            // wgmma, by warps: four for each
  int64_t columns = 0;             // of their sums, added up: of each wgmma once
  int64_t operand_wavefronts = 0;  // passes through the banks in which they read operands
  int64_t copies = 0;              // instructions that have the copy engine load
  int64_t copied_sectors = 0;      // 32-byte sectors that it reads for these, zeros among them
};

enum class Space : uint8_t { kGlobal, kShared };
// kCopy: an asynchronous copy, seen from the global or from the shared side.
enum class Operation : uint8_t { kLoad, kStore, kCopy, kAtomic };

// A memory instruction of a kernel; a copy is two of them.
struct Instruction {
  uint32_t code;  // code_offset() of core/program.h
  Space space;
  Operation operation;
  unsigned bytes;  // per lane

  bool operator<(const Instruction& other) const {
    return std::tie(code, space, operation, bytes) <
           std::tie(other.code, other.space, other.operation, other.bytes);
  }
};

// What its executions by all warps cost.
struct InstructionCounts {
  int64_t requests = 0;           // executions, each by at least one lane
  int64_t cost = 0;               // sectors of global memory, or wavefronts of shared memory
  int64_t conflicts = 0;          // as in SharedCounts
  int64_t bytes = 0;              // as in GlobalCounts
  uint64_t address = UINT64_MAX;  // one in the memory that it accesses; the same in every run

  InstructionCounts& operator+=(const InstructionCounts& other);
};

// What one launch, or a library's call, asks of the multiprocessors. Of one that was only planned,
// the blocks alone are known; of a library's, which has other kernels, all but its blocks.
struct LaunchWork {
  const void* code = nullptr;  // the kernel's; null: a library's
  int64_t blocks = 0;
  double library_products = 0;                    // multiplications of floats by a library's call
  int64_t sectors_read = 0, sectors_written = 0;  // as in KernelCounts
  int64_t blocks_y = 1;                           // of a plan: the grid's extent along y
  // By amount, how many blocks ask for as much.
  std::map<int64_t, int64_t> products = {};             // multiplications of floats
  std::map<int64_t, int64_t> wavefronts = {};           // KernelCounts::pipe_wavefronts
  std::map<int64_t, int64_t> tensor_instructions = {};  // m16n8k8 in TF32, by warps
  std::map<int64_t, int64_t> wgmma_columns = {};        // of each wgmma the sum's, added up
};

// All launches of one kernel since take_kernel_counts(), added up.
struct KernelCounts {
  std::string kernel;
  int launches = 0;
  bool library = false;  // a library's: only the sectors touched, and its products, are known

  GlobalCounts load, store;
  GlobalCounts copy_through_l1, copy_past_l1;  // asynchronous copies of 4 or 8, and of 16 bytes
  SharedCounts shared_load, shared_store, shared_copy;

  // Cycles that L1's data pipe of a multiprocessor is busy with these, at the least: passes through
  // the banks, which global memory's loads and stores make as well.
  int64_t pipe_wavefronts = 0;

  // Different 32-byte sectors that a launch reads (writes) at all: the least that DRAM can move.
  int64_t sectors_read = 0, sectors_written = 0;

  // Products of floats, by all threads; unknown where the program's code can't be read (program.h).
  double products = 0;
  bool knows_products = false;

  std::vector<LaunchWork> work;     // one per launch
  int64_t tensor_instructions = 0;  // by warps

  // Atomic operations whose result nobody uses, and others; in shared memory both.
  GlobalCounts reduction, atomic;
  SharedCounts shared_atomic;
  int64_t constant_words = 0;  // of __constant__ memory: different ones per instruction
  HopperCounts hopper;

  int64_t blocks = 0;
  int64_t barriers = 0;      // __syncthreads() of each block, added up
  int64_t shared_bytes = 0;  // of __shared__ variables, per block

  std::map<Instruction, InstructionCounts> instructions;

  KernelCounts& operator+=(const KernelCounts& other);  // but for the name
};

// How often, so far, a thread has read a volatile value again since another had not written it. Each time counts as an
// access; how often it is, the order of the threads decides.
int64_t vain_reads();

// The counts of all kernels launched since the last call, in the order of their first launch. None
// in a build that doesn't count.
std::vector<KernelCounts> take_kernel_counts();

// The counts under the names that Nsight Compute gives them. What it has no counter for is named
// here in the same manner (sectors_touched_*, shared_requests_*, pipe_wavefronts_at_least). What they
// all mean: common/show/metrics.csv. A library's kernel has only the sectors touched.
std::vector<std::pair<std::string, double>> metrics(const KernelCounts& counts);

}  // namespace convladder::simulator
