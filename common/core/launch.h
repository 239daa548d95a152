// How every kernel here is launched, and how every CUDA call is checked.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "common/core/conv_shape.h"

// Asks for a loop to be unrolled: UNROLL for (...), or UNROLL_BY(n) for (...) with n passes in one.
// Macros, so that the formatter leaves them there.
#define CONVLADDER_PRAGMA(text) _Pragma(#text)
#ifdef __CUDACC__
#define UNROLL CONVLADDER_PRAGMA(unroll)
#define UNROLL_BY(n) CONVLADDER_PRAGMA(unroll(n))
#else
#define UNROLL CONVLADDER_PRAGMA(GCC unroll 16)
#define UNROLL_BY(n) UNROLL
#endif

namespace convladder {

// A CUDA or cuBLAS call that failed; the message names the call and the runtime's reason.
struct CudaError : std::runtime_error {
  CudaError(const std::string& what, cudaError_t code)
      : std::runtime_error(what + ": " + cudaGetErrorString(code)), code(code) {}
  explicit CudaError(const std::string& what) : std::runtime_error(what) {}
  cudaError_t code = cudaErrorUnknown;
};

inline void check_cuda(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  cudaGetLastError();  // a launch error would otherwise be reported again by the next call
  throw CudaError(what, code);
}

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// `blocks` as the x extent of a grid. Throws InvalidArgument beyond 2^31-1, where CUDA's x ends
// (y and z end at 65,535, which is why the stages count blocks along x).
inline unsigned grid_x(int64_t blocks) {
  if (blocks > INT64_C(0x7fffffff)) {
    throw InvalidArgument("the problem needs " + std::to_string(blocks) +
                          " blocks, more than a grid holds (2147483647)");
  }
  return static_cast<unsigned>(blocks);
}

// Multiprocessors of the current device. The simulator answers for an H200, so that what a stage
// makes of the number is the same there.
inline int multiprocessors() {
  int device = 0, count = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device),
             "cudaDeviceGetAttribute");
  return count;
}

// Told of each launch just before it, where set: `profile` on a GPU learns a stage's kernels by it.
using LaunchObserver = void (*)(const void* kernel, dim3 grid, dim3 block);
inline LaunchObserver launch_observer = nullptr;

// Enqueues kernel(args...) on `stream`, with `bytes` of dynamic shared memory for each block; throws
// CudaError when the launch is refused. `<<<>>>` is not C++, so it stands here alone: without nvcc the
// same call goes to the simulator. Host sources of the GPU backend (CUDA's headers, but not nvcc)
// launch nothing and have no launch().
#if defined(__CUDACC__) || !defined(CUDART_VERSION)
template <typename... Params, typename... Args>
void launch(void (*kernel)(Params...), dim3 grid, dim3 block, std::size_t bytes,
            cudaStream_t stream, Args... args) {
  if (launch_observer) launch_observer(reinterpret_cast<const void*>(kernel), grid, block);
#ifdef __CUDACC__
  // More than 48 KB, static shared memory included, CUDA gives only to a kernel that has asked for it.
  if (bytes > 32 * 1024) {  // no kernel here has 16 KB of static memory
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(bytes)),
               "cudaFuncSetAttribute");
  }
  kernel<<<grid, block, bytes, stream>>>(args...);
#else
  simulator::launch(
      grid, block, bytes, stream, [=] { kernel(args...); }, reinterpret_cast<const void*>(kernel));
#endif
  check_cuda(cudaGetLastError(), "kernel launch");
}

template <typename... Params, typename... Args>
void launch(void (*kernel)(Params...), dim3 grid, dim3 block, cudaStream_t stream, Args... args) {
  launch(kernel, grid, block, std::size_t{0}, stream, args...);
}

// The block's dynamic shared memory: as many T as the launch has bytes for.
template <typename T>
__device__ T* dynamic_shared() {
#ifdef __CUDACC__
  extern __shared__ __align__(128) char dynamic_shared_memory[];
  return reinterpret_cast<T*>(dynamic_shared_memory);
#else
  return reinterpret_cast<T*>(simulator::dynamic_shared_memory);
#endif
}
#endif

}  // namespace convladder
