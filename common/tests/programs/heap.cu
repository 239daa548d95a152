// The heap of kernels: 8 MB, or what the program says before its first kernel that uses it. Beyond it, a null
// pointer.
#include <cstdlib>

#include "check.h"

constexpr int KB = 1024, MOST = 4096;

__global__ void too_much() {
  CHECK(malloc(64 << 20) == nullptr);
  CHECK(new (std::nothrow) char[64 << 20] == nullptr);
}
__global__ void fill(char** blocks, int least, int most) {
  int count = 0;
  for (; count < MOST; ++count) {
    blocks[count] = static_cast<char*>(malloc(KB));
    if (!blocks[count]) break;
    blocks[count][KB - 1] = 1;
  }
  CHECK(least <= count && count <= most);
}
__global__ void free_all(char** blocks) {
  for (int i = 0; i < MOST && blocks[i]; ++i) free(blocks[i]);
}
void fill_and_free(char** blocks, int least, int most) {
  fill<<<1, 1>>>(blocks, least, most);
  free_all<<<1, 1>>>(blocks);
}

int main() {
  char** blocks;
  size_t limit = 0;
  cudaMalloc(&blocks, MOST * sizeof(char*));
  cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize);
  bool right = limit == 8 << 20;
  cudaDeviceSetLimit(cudaLimitMallocHeapSize, 1 << 20);
  cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize);
  right &= limit == 1 << 20;
  too_much<<<1, 4>>>();
  fill_and_free(blocks, 900, 1024);
  fill_and_free(blocks, 900, 1024);
  cudaDeviceSynchronize();
  right &= cudaDeviceSetLimit(cudaLimitMallocHeapSize, 2 << 20) == cudaErrorInvalidValue;
  cudaGetLastError();
  if (!right) printf("wrong limits\n");
  const int failed = finish();

  cudaDeviceReset();  // begins anew
  cudaMalloc(&blocks, MOST * sizeof(char*));
  right &= cudaDeviceSetLimit(cudaLimitMallocHeapSize, 2 << 20) == cudaSuccess;
  fill_and_free(blocks, 1800, 2048);
  return finish() || failed || !right;
}
