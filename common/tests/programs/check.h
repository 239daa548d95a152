// For programs that check themselves: what CUDA's Programming Guide promises, on a GPU and in the
// simulator. main() ends with `return finish();`.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>

__device__ int failures = 0;

#define CHECK(condition)                                                              \
  do {                                                                                \
    if (!(condition)) {                                                               \
      printf("%s:%d: block %d, thread %d: %s\n", __FILE__, __LINE__, int(blockIdx.x), \
             int(threadIdx.x), #condition);                                           \
      atomicAdd(&failures, 1);                                                        \
    }                                                                                 \
  } while (0)

__global__ void read_failures(int* total) { *total = failures; }

inline int finish() {
  const cudaError_t before = cudaDeviceSynchronize();
  int *total, result = 1;
  cudaMalloc(&total, sizeof(int));
  read_failures<<<1, 1>>>(total);
  cudaMemcpy(&result, total, sizeof(int), cudaMemcpyDeviceToHost);
  cudaFree(total);
  const cudaError_t error = before != cudaSuccess ? before : cudaGetLastError();
  if (error != cudaSuccess) printf("%s\n", cudaGetErrorString(error));
  printf(result == 0 && error == cudaSuccess ? "all right\n" : "wrong\n");
  return result != 0 || error != cudaSuccess;
}
