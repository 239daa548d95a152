// Adds up tiles of 256 numbers. One thread has the copy engine bring them, eight warps add: between them lies
// a ring of three slots.
#include <cstdio>
#include <vector>

#include "common/core/hopper.h"

using namespace convladder;

constexpr int COUNT = 3, TILE = 256;  // slots; numbers of a tile, and threads that add

__global__ void add_tiles(int tiles, const float* values, float* sums) {
  __shared__ __align__(16) float slots[COUNT][TILE];
  __shared__ Barrier full[COUNT], empty[COUNT];
  const int tid = threadIdx.x;
  if (tid == 0) {
    for (Barrier& barrier : full) init_barrier(&barrier, 1);
    for (Barrier& barrier : empty) init_barrier(&barrier, TILE / 32);
    start_barriers();
  }
  __syncthreads();

  if (tid == TILE) {  // the one that copies
    for (int tile = 0; tile < tiles; ++tile) {
      const int i = tile % COUNT;
      wait(&empty[i], tile / COUNT % 2 ^ 1);  // until the tile that was there is read
      arrive_and_expect(&full[i], sizeof(slots[i]));
      copy_bulk(slots[i], values + tile * TILE, sizeof(slots[i]), &full[i]);
    }
  }
  if (tid >= TILE) return;

  float sum = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    const int i = tile % COUNT;
    wait(&full[i], tile / COUNT % 2);  // until the tile is there
    sum += slots[i][tid];
    fence_async_proxy();
    __syncwarp();  // all lanes have read, and made their fence
    if (tid % 32 == 0) arrive(&empty[i]);
  }
  sums[tid] = sum;
}

int main() {
  const int tiles = 8;
  std::vector<float> values(tiles * TILE), sums(TILE);
  for (int i = 0; i < tiles * TILE; ++i) values[i] = i / TILE;
  float *values_there, *sums_there;
  cudaMalloc(&values_there, values.size() * sizeof(float));
  cudaMalloc(&sums_there, sums.size() * sizeof(float));
  cudaMemcpy(values_there, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice);
  add_tiles<<<1, TILE + 32>>>(tiles, values_there, sums_there);
  cudaMemcpy(sums.data(), sums_there, sums.size() * sizeof(float), cudaMemcpyDeviceToHost);
  std::printf("%g %g ... %g\n", sums[0], sums[1], sums[TILE - 1]);
  cudaFree(values_there);
  cudaFree(sums_there);
}
