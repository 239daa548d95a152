// Gathers what the workers count during a launch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/core/program.h"
#include "common/simulator/counting/shadow.h"
#include "common/simulator/counts.h"

namespace convladder::simulator {

// A kernel that may still run on a GPU.
struct KernelBefore {
  const Symbols* symbols = nullptr;  // null: there is none
  dim3 blocks, threads;
  cudaStream_t stream = nullptr;
};

// The launch under way, as the workers see it.
struct Launch {
  uint64_t number = 0;               // counts up
  const Symbols* symbols = nullptr;  // the kernel's
  BlockProducts products;
  const void* argument = nullptr;  // of the kernel: constant memory on a GPU
  std::size_t argument_bytes = 0;
  Allocations memory;
  const Grid* grid = nullptr;
  int64_t findings = 0;  // before it
  KernelBefore before;   // where it was launched early
};
const Launch& current_launch();

// Whether accesses are counted, and not only looked at for bugs.
bool counts_accesses();

void add_block(const KernelCounts& block);  // of the launch under way

}  // namespace convladder::simulator
