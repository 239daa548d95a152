// Races and memory that nobody has written: found with their lines, while the program goes on.
// seen: sum 1976
// seen: neighbour: 2 launches, 1 found
// seen: data race: reads 4 bytes of shared memory (held + 0 bytes) at {read}; block (0,0,0), thread (0,0,0) touched it at {write}, and no barrier lies between
// seen: count: 1 launch
// seen: thread (0,0,0) touched it at {increment}, and nothing orders the blocks of a grid
// seen: unwritten: 1 launch, 1 found
// seen: reads 4 bytes of global memory that nobody has written, at {unwritten} (64 times)
// seen: sum: 1 launch, nothing found
// status: 1
#include <cstdio>

__global__ void neighbour(int* x) {
  __shared__ int held[64];
  held[threadIdx.x] = threadIdx.x;                                   // write
  x[threadIdx.x] = threadIdx.x == 40 ? held[0] : held[threadIdx.x];  // read
}
__device__ int counter;
__global__ void count() {
  if (threadIdx.x == 0) ++counter;  // increment
}
__global__ void unwritten(const int* x, int* y) {
  y[threadIdx.x] = x[threadIdx.x];  // unwritten
}
__global__ void sum(int* x) {
  if (threadIdx.x > 0) return;
  int total = 0;
  for (int i = 0; i < 64; ++i) total += x[i];
  x[0] = total;
}

int main() {
  int *x = nullptr, *y = nullptr, total = 0;
  cudaMalloc(&x, 64 * sizeof(int));
  cudaMalloc(&y, 64 * sizeof(int));
  unwritten<<<1, 64>>>(x, y);
  neighbour<<<1, 64>>>(x);
  count<<<2, 32>>>();
  neighbour<<<1, 64>>>(x), sum<<<1, 64>>>(x);
  cudaMemcpy(&total, x, sizeof(int), cudaMemcpyDeviceToHost);
  printf("sum %d\n", total);
}
