// What all that launches kernels needs, and how every CUDA call is checked.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <atomic>
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

// An attribute of the current device, none of which is negative. Asking CUDA's runtime takes longer than a
// plan does, so that each device is asked once. The simulator's may change, and is asked every time.
template <cudaDeviceAttr ATTRIBUTE>
int device_attribute() {
  int device = 0, value = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
#ifdef CUDART_VERSION
  static std::array<std::atomic<int>, 64> known;  // one more than the value; 0: not asked
  const bool kept = device < static_cast<int>(known.size());
  if (kept && known[device] > 0) return known[device] - 1;
#endif
  check_cuda(cudaDeviceGetAttribute(&value, ATTRIBUTE, device), "cudaDeviceGetAttribute");
#ifdef CUDART_VERSION
  if (kept) known[device] = value + 1;
#endif
  return value;
}

// Multiprocessors of the current device. The simulator answers for an H200, so that what a stage
// makes of the number is the same there.
inline int multiprocessors() { return device_attribute<cudaDevAttrMultiProcessorCount>(); }

}  // namespace convladder
