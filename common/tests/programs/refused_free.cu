// Calls that CUDA refuses, by a program that doesn't ask for errors.
// seen: cudaMemcpy() at {null}: its source is null
// seen: cudaFree() at {twice}: nothing begins there
// seen: cudaFreeHost() at {other}: nothing begins there
// status: 1
#include <cuda_runtime.h>

int main() {
  int *values, *others;
  cudaMalloc(&values, 128);
  cudaMemcpy(values, nullptr, 128, cudaMemcpyHostToDevice);  // null
  cudaFree(values);
  cudaFree(values);  // twice
  cudaMalloc(&others, 128);
  cudaFreeHost(others);  // other
  cudaFree(others);
}
