// Prints how fast each level of this GPU's memory can be read: docs/memory.md.
#include <cstdio>
#include <exception>

#include "common/check/backend.h"
#include "common/core/launch.h"
#include "common/measure/memory_rates.h"

namespace convladder {
namespace {

void print_rate(const char* what, double bytes_per_second) {
  std::printf("  %-44s %7.2f TB/s\n", what, bytes_per_second * 1e-12);
}

void print_rates() {
  require_device();
  int device = 0, l2_bytes = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, device),
             "cudaDeviceGetAttribute");
  std::printf("%s, %d multiprocessors, L2 %.0f MiB; reading, medians of %d runs\n",
              device_name().c_str(), multiprocessors(), l2_bytes / 1048576.0, MEMORY_RATE_RUNS);
  const MemoryRates rates = measure_memory_rates(int64_t{2} << 30, l2_bytes);
  print_rate("DRAM: 2 GiB, once", rates.dram);
  print_rate("L2: a quarter of it, 64 times", rates.l2);
  print_rate("L1: 32 KiB per block, two blocks each", rates.l1);
  print_rate("shared memory: 32 KiB per block", rates.shared);
}

}  // namespace
}  // namespace convladder

int main() {
  try {
    convladder::print_rates();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "memory_rates: error: %s\n", error.what());
    return 1;
  }
}
