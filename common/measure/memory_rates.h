// How many bytes per second each level of a GPU's memory gives when it is read: docs/memory.md.
#pragma once

#include <cstdint>

namespace convladder {

constexpr int MEMORY_RATE_RUNS = 15;  // whose median is taken

// Bytes per second, all multiprocessors together. Of reads alone: nothing is written.
struct MemoryRates {
  double dram = 0;    // a region far larger than L2, once
  double l2 = 0;      // a quarter of what L2 holds, 64 times
  double l1 = 0;      // 32 KiB per block, two blocks on each multiprocessor
  double shared = 0;  // shared memory, likewise
};

// Measures the current device: some 0.3 s. `dram_bytes` is the region read for DRAM's rate,
// `l2_bytes` what L2 holds. Throws CudaError. In a build for a GPU only.
MemoryRates measure_memory_rates(int64_t dram_bytes, int64_t l2_bytes);

}  // namespace convladder
