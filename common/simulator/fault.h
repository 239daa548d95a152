// Faults on demand: for tests of what happens when a call to the runtime fails.
#pragma once

#include <cstddef>
#include <cstdint>

namespace convladder::simulator {

// cuBLAS's calls are one kind, the making of a handle among them.
enum class Call { kMalloc, kMemcpy, kMemset, kLaunch, kCublas };

// Has the call of this kind that comes after `skip` others, from whatever host thread, do nothing
// and fail: for want of memory where it allocates, else for reasons unknown. One fault at a time.
void inject_fault(Call call, int64_t skip);

// Takes the fault back; true where it has happened.
bool clear_fault();

// What cudaMalloc gave and cudaFree has not taken back.
std::size_t allocation_count();

// For the runtime: whether this call is to fail.
bool fault_due(Call call);

}  // namespace convladder::simulator
