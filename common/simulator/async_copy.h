// What the functions of <cuda_pipeline.h> do.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/simulator/copy_queue.h"
#include "common/simulator/kernel_error.h"
#include "common/simulator/shared_memory.h"

namespace convladder::simulator {

// Throws KernelError unless `bytes` is 4, 8 or 16, both pointers are aligned to it, and the
// destination is in shared memory.
inline void require_valid_copy(const void* to_shared, const void* from_global, std::size_t bytes,
                               std::size_t zfill) {
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
}

}  // namespace convladder::simulator
