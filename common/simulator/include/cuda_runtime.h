// The simulator's <cuda_runtime.h>: CUDA's names for the host compiler. Names, types and meanings are
// CUDA's; where the simulator differs, it is said here. How kernels run: docs/simulator.md.
#pragma once

// NOLINTBEGIN(bugprone-reserved-identifier): CUDA's names
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cstddef>
#include <cstdint>

// ---- Qualifiers ----

#ifndef CONVLADDER_TRANSLATED  // else simulator/translate.py puts in what these mean
#define __host__
#define __device__
#ifndef CONVLADDER_COUNTING
#define __global__
#else  // all that a kernel calls becomes part of it, so that a place in the code names one access
#define __global__ __attribute__((flatten))
#endif
// One block at a time runs on a worker thread, so what a block shares is what a thread owns. The
// simulator fills it with NaN before each block; `used` forbids the compiler to count on the zeros
// that a static variable begins with. A GPU's shared memory begins at a bank's first line as well.
#define __shared__ static thread_local __attribute__((used, aligned(128)))
#endif
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))

// ---- Inside a kernel ----

// A variable that lies away from others on both sides, so that an access beyond the end of shared
// memory, which may be its neighbour, doesn't pass for one of it.
struct KeepsAway {
  alignas(128) char unused[64];
};
template <typename T>
struct Apart : KeepsAway, T {
  Apart& operator=(const T& value) {
    T::operator=(value);
    return *this;
  }
};

// Set by the scheduler whenever it goes to another thread; a kernel only reads them.
inline thread_local Apart<uint3> threadIdx{}, blockIdx{};
inline thread_local Apart<dim3> blockDim{}, gridDim{};
constexpr int warpSize = 32;

// Waits for all threads of the block. It is an error if some have left the kernel.
void __syncthreads();
// Waits for the lanes of this warp named in `mask` that have not left the kernel.
void __syncwarp(unsigned mask = 0xffffffff);

template <typename T>
T __ldg(const T* address) {
  return *address;
}

#define CONVLADDER_LEAST_AND_MOST(result, first, second)            \
  constexpr result min(first a, second b) {                         \
    return static_cast<result>(b) < static_cast<result>(a) ? b : a; \
  }                                                                 \
  constexpr result max(first a, second b) {                         \
    return static_cast<result>(b) > static_cast<result>(a) ? b : a; \
  }
CONVLADDER_LEAST_AND_MOST(int, int, int)
CONVLADDER_LEAST_AND_MOST(unsigned, unsigned, unsigned)
CONVLADDER_LEAST_AND_MOST(unsigned, int, unsigned)
CONVLADDER_LEAST_AND_MOST(unsigned, unsigned, int)
CONVLADDER_LEAST_AND_MOST(long, long, long)
CONVLADDER_LEAST_AND_MOST(unsigned long, unsigned long, unsigned long)
CONVLADDER_LEAST_AND_MOST(unsigned long, long, unsigned long)
CONVLADDER_LEAST_AND_MOST(unsigned long, unsigned long, long)
CONVLADDER_LEAST_AND_MOST(long long, long long, long long)
CONVLADDER_LEAST_AND_MOST(unsigned long long, unsigned long long, unsigned long long)
CONVLADDER_LEAST_AND_MOST(unsigned long long, long long, unsigned long long)
CONVLADDER_LEAST_AND_MOST(unsigned long long, unsigned long long, long long)
#undef CONVLADDER_LEAST_AND_MOST
// As on the device, the number wins over the NaN: max(NAN, 0.0f) is 0.
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline double min(float a, double b) { return fmin(a, b); }
inline double max(float a, double b) { return fmax(a, b); }
inline double min(double a, float b) { return fmin(a, b); }
inline double max(double a, float b) { return fmax(a, b); }

#include "common/simulator/launch.h"
// NOLINTEND(bugprone-reserved-identifier)
