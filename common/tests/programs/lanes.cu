// What orders the lanes of a warp, and blocks: barriers of some lanes, many barriers, an update behind a grid's.
// seen: many: 4 launches, nothing found
// seen: part: 1 launch, nothing found
// seen: rounds: 1 launch, nothing found
// seen: update: 1 launch, nothing found
// seen: other_tile: 1 launch, 1 found
// seen: thread (16,0,0): data race: reads 4 bytes of shared memory (held + 0 bytes) at {read}
// seen: halves: 1 launch, 1 found
// seen: thread (15,0,0): data race: reads 4 bytes of shared memory (held + 0 bytes) at {half}
// status: 1
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__global__ void many(int* x, int times) {
  __shared__ int held[32];
  held[threadIdx.x] = threadIdx.x;
  for (int i = 0; i < times; ++i) __syncwarp();
  x[threadIdx.x] = held[31 - threadIdx.x];
}
__global__ void part(int* x) {
  __shared__ int held;
  if (threadIdx.x < 16) {
    __syncwarp(0xffff);
    if (threadIdx.x == 0) held = 1;
  }
  __syncwarp();
  x[threadIdx.x] = held;
}
__global__ void rounds(int* x) {
  __shared__ int held[64];
  held[threadIdx.x] = threadIdx.x;
  for (int i = 0; i < 1 << 14; ++i) __syncthreads();
  x[threadIdx.x] = held[63 - threadIdx.x];
}
__global__ void update(int* x) {
  const auto grid = cg::this_grid();
  const int i = grid.thread_rank(), n = grid.size();
  x[i] = i;
  grid.sync();
  const int next = x[(i + 1) % n];
  grid.sync();
  x[i] += next;
}
__global__ void other_tile(int* x) {
  __shared__ int held;
  const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  if (threadIdx.x == 0) held = 1;
  tile.sync();
  if (threadIdx.x == 16) x[0] = held;  // read
}
__global__ void halves(int* x) {
  __shared__ int held;
  if (threadIdx.x < 16) __syncwarp(0xffff);
  if (threadIdx.x == 16) held = 1;
  if (threadIdx.x == 15) x[0] = held;  // half
}

int main() {
  int* x = nullptr;
  cudaMalloc(&x, 128 * sizeof(int));
  for (const int times : {8, 48, 64, 1000}) many<<<1, 32>>>(x, times);
  part<<<1, 32>>>(x);
  rounds<<<1, 64>>>(x);
  void* arguments[] = {&x};
  cudaLaunchCooperativeKernel(update, 4, 32, arguments);
  other_tile<<<1, 32>>>(x);
  halves<<<1, 32>>>(x);
  return cudaDeviceSynchronize();
}
