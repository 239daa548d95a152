// Calls that CUDA refuses, by a program that doesn't ask for errors.
// seen: cudaMemcpy() at {null}: its source is null
// seen: cudaFree() at {twice}: nothing begins there
// seen: cudaFreeHost() at {other}: nothing begins there
// seen: a copy at {symbol}: 8 bytes from byte 12 on, of a variable of 16
// status: 1
#include <cuda_runtime.h>

__constant__ int four[4];

int main() {
  int numbers[2] = {};
  cudaMemcpyToSymbol(four, numbers, 8, 12);  // symbol
  int *values, *others;
  cudaMalloc(&values, 128);
  cudaMemcpy(values, nullptr, 128, cudaMemcpyHostToDevice);  // null
  cudaFree(values);
  cudaFree(values);  // twice
  cudaMalloc(&others, 128);
  cudaFreeHost(others);  // other
  cudaFree(others);
}
