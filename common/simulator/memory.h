// How much memory the machine has left.
#pragma once

#include <cstddef>

namespace convladder::simulator {

struct HostMemory {
  std::size_t free, total;  // bytes
};

// What this process may still take without swapping, and what it might have taken at most: of the
// machine, or of its control group (cgroup v2) where that allows less.
HostMemory host_memory();

// What cudaMalloc gave and cudaFree has not taken back.
std::size_t allocation_count();

}  // namespace convladder::simulator
