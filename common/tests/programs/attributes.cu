// Launches with attributes, and a flag in managed memory on which the host waits.
#include "check.h"

__global__ void add(int* x, float more) {
  cudaGridDependencySynchronize();
  atomicAdd(x, static_cast<int>(more));
  cudaTriggerProgrammaticLaunchCompletion();
}
__global__ void tell(volatile int* flag, int* value) {
  *value = 5;
  __threadfence_system();
  *flag = 1;
}
__global__ void expect(const int* x, int value) { CHECK(*x == value); }

int main() {
  int *x, *flag, *value;
  cudaMalloc(&x, sizeof(int));
  cudaMemset(x, 0, sizeof(int));
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim.x = attributes[1].val.clusterDim.y = attributes[1].val.clusterDim.z =
      1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(2);
  config.blockDim = dim3(32);
  config.attrs = attributes;
  config.numAttrs = 2;
  if (cudaLaunchKernelEx(&config, add, x, 3) != cudaSuccess) return 1;
  expect<<<1, 1>>>(x, 2 * 32 * 3);
#ifdef CONVLADDER_COUNTING  // a GPU has clusters
  attributes[1].val.clusterDim.x = 2;
  if (cudaLaunchKernelEx(&config, add, x, 3) != cudaErrorNotSupported) return 1;
#endif
  cudaMallocManaged(&flag, sizeof(int));
  cudaMallocManaged(&value, sizeof(int));
  *flag = 0;
  tell<<<1, 1>>>(flag, value);
  while (*static_cast<volatile int*>(flag) == 0) {
  }
  if (*value != 5) return 1;
  return finish();
}
