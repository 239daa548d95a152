// The simulator's <cuda_runtime.h>: the CUDA names that the stages and the harness use, for the
// host compiler. Names, types and meanings are CUDA's; where the simulator differs, it is said
// here. How kernels run: docs/simulator.md.
#pragma once

// NOLINTBEGIN(bugprone-reserved-identifier): CUDA's names
#include <math.h>

#include <cstddef>
#include <cstdint>

// ---- Qualifiers ----

#define __host__
#define __device__
#ifndef CONVLADDER_COUNTING
#define __global__
#else  // all that a kernel calls becomes part of it, so that a place in the code names one access
#define __global__ __attribute__((flatten))
#endif
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))
// One block at a time runs on a worker thread, so what a block shares is what a thread owns. The
// simulator fills it with NaN before each block; `used` forbids the compiler to count on the zeros
// that a static variable begins with. A GPU's shared memory begins at a bank's first line as well.
#define __shared__ static thread_local __attribute__((used, aligned(128)))

// ---- Vectors ----

struct alignas(8) int2 {
  int x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct uint3 {
  unsigned x, y, z;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};

inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};

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

inline int min(int a, int b) { return b < a ? b : a; }
inline int max(int a, int b) { return a < b ? b : a; }
inline unsigned min(unsigned a, unsigned b) { return b < a ? b : a; }
inline unsigned max(unsigned a, unsigned b) { return a < b ? b : a; }
inline int64_t min(int64_t a, int64_t b) { return b < a ? b : a; }
inline int64_t max(int64_t a, int64_t b) { return a < b ? b : a; }
// As on the device, the number wins over the NaN: max(NAN, 0.0f) is 0.
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }

// ---- Errors ----

// The last error belongs to the host thread that caused it, and reading it clears it, even where
// CUDA would keep it for good (a kernel that failed).
#define CONVLADDER_CUDA_ERRORS(ERROR)                                             \
  ERROR(cudaSuccess, 0, "no error")                                               \
  ERROR(cudaErrorInvalidValue, 1, "invalid argument")                             \
  ERROR(cudaErrorMemoryAllocation, 2, "out of memory")                            \
  ERROR(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")       \
  ERROR(cudaErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy") \
  ERROR(cudaErrorNoDevice, 100, "no device")                                      \
  ERROR(cudaErrorInvalidDevice, 101, "invalid device ordinal")                    \
  ERROR(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")           \
  ERROR(cudaErrorNotReady, 600, "device not ready")                               \
  ERROR(cudaErrorIllegalAddress, 700, "illegal memory access")                    \
  ERROR(cudaErrorMisalignedAddress, 716, "misaligned address")                    \
  ERROR(cudaErrorLaunchFailure, 719, "the kernel failed")                         \
  ERROR(cudaErrorUnknown, 999, "unknown error")

#define CONVLADDER_ENUMERATOR(name, code, text) name = (code),
enum cudaError_t { CONVLADDER_CUDA_ERRORS(CONVLADDER_ENUMERATOR) };
#undef CONVLADDER_ENUMERATOR

const char* cudaGetErrorName(cudaError_t error);
// For the error that this thread's last failed kernel gave: with kernel, block, thread and reason,
// valid until the next such error.
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();

// ---- The device ----

struct cudaDeviceProp {
  char name[256];
  std::size_t totalGlobalMem;
  std::size_t sharedMemPerBlock;
  int warpSize;
  int maxThreadsPerBlock;
  int maxThreadsDim[3];
  int maxGridSize[3];
  int major, minor;  // 0.0: no compute capability
  int multiProcessorCount;
};

// An H200's number of multiprocessors, unless a test has set another: a kernel that is launched
// according to it is launched alike on both backends.
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount = 16 };

cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceSynchronize();

enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9
};
// A hint that has nothing to act on here. (Dynamic shared memory isn't simulated.)
template <typename Kernel>
cudaError_t cudaFuncSetAttribute(Kernel*, cudaFuncAttribute, int) {
  return cudaSuccess;
}

// ---- Memory ----

// Aligned to 256 bytes and filled with NaN, so that reading what nobody wrote shows. What the
// machine has not left is refused with cudaErrorMemoryAllocation.
cudaError_t cudaMalloc(void** pointer, std::size_t bytes);
template <typename T>
cudaError_t cudaMalloc(T** pointer, std::size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(pointer), bytes);
}
cudaError_t cudaFree(void* pointer);
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total);

// ---- Streams and events ----

// Every call does its work before it returns, which is one of the orders that CUDA allows.
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;

cudaError_t cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream);

enum { cudaStreamDefault = 0, cudaStreamNonBlocking = 1 };
enum { cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2 };

cudaError_t cudaStreamCreate(cudaStream_t* stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);

cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);  // never cudaErrorNotReady: see above
// Milliseconds of the host's clock.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop);

enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4
};

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemset(void* to, int value, std::size_t bytes);
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream = nullptr);

#include "common/simulator/launch.h"
// NOLINTEND(bugprone-reserved-identifier)
