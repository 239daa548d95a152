// Asynchronous copies from global to shared memory, with zeros where there is nothing to copy.
#pragma once

#include <cuda_pipeline.h>
#include <cuda_runtime.h>

namespace convladder {

// Begins to copy BYTES (4, 8 or 16, to which both pointers are aligned) to shared memory, or to write
// as many zeros where `exists` is false: then `from` may point anywhere. Done when
// __pipeline_wait_prior() says so. As __pipeline_memcpy_async() with a zfill that nvcc need not know:
// of that it makes two instructions.
template <int BYTES, class T>
__device__ inline void copy_async(T* to_shared, const T* from, bool exists = true) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800  // older ones have no such instruction
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(to_shared));
  const int bytes = exists ? BYTES : 0;
  if constexpr (BYTES == 16) {  // past L1
    asm volatile("cp.async.cg.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(BYTES),
                 "r"(bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(BYTES),
                 "r"(bytes)
                 : "memory");
  }
#else
  __pipeline_memcpy_async(to_shared, from, BYTES, exists ? 0 : BYTES);
#endif
}

}  // namespace convladder
