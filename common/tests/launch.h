// Launches of kernels from tests, plain C++ included: what fails is thrown at once.
#pragma once

#include "common/core/launch.h"

#ifndef CUDART_VERSION
#include "common/simulator/launch.h"
#endif

namespace convladder {

// kernel<<<grid, block, 0, stream>>>(args...). Throws CudaError when the launch is refused, in the
// simulator also when the kernel fails.
#if defined(__CUDACC__) || !defined(CUDART_VERSION)
template <typename... Params, typename... Args>
void launch(void (*kernel)(Params...), dim3 grid, dim3 block, cudaStream_t stream, Args... args) {
#ifdef __CUDACC__
  kernel<<<grid, block, 0, stream>>>(args...);
#else
  simulator::kernel(kernel).on(grid, block, 0, stream)(args...);
#endif
  check_cuda(cudaGetLastError(), "kernel launch");
}
#endif

}  // namespace convladder
