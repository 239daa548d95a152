// The simulator's <cuda_pipeline.h>: asynchronous copies from global to shared memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/simulator/copy_queue.h"
#include "common/simulator/kernel_error.h"
#include "common/simulator/shared_memory.h"

// Copies `bytes` (4, 8 or 16, to which both pointers are aligned) to shared memory, the last
// `zfill` of them as zeros. When it takes effect: see CopyQueue. Fails the kernel for any other
// size, a pointer not aligned to it, or a destination that isn't in shared memory.
inline void __pipeline_memcpy_async(void* to_shared, const void* from_global, std::size_t bytes,
                                    std::size_t zfill = 0) {
  using namespace convladder::simulator;
  if ((bytes != 4 && bytes != 8 && bytes != 16) || zfill > bytes) {
    throw KernelError(cudaErrorInvalidValue, "__pipeline_memcpy_async: bytes must be 4, 8 or 16");
  }
  const auto addresses =
      reinterpret_cast<uintptr_t>(to_shared) | reinterpret_cast<uintptr_t>(from_global);
  if (addresses % bytes != 0) {
    throw KernelError(cudaErrorMisalignedAddress,
                      "__pipeline_memcpy_async: a pointer is not aligned to the bytes copied");
  }
  if (!shared_memory.contains(to_shared, bytes)) {
    throw KernelError(cudaErrorIllegalAddress,
                      "__pipeline_memcpy_async: the destination is not in shared memory");
  }
  copy_queue->push(to_shared, from_global, bytes, zfill);
}

// The copies issued since the last commit become a group, which may be empty.
inline void __pipeline_commit() { convladder::simulator::copy_queue->commit(); }

// Waits for all of this thread's groups but the last `pending`.
inline void __pipeline_wait_prior(std::size_t pending) {
  convladder::simulator::copy_queue->wait(pending);
}
