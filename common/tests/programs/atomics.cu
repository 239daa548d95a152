// Atomic operations: each takes effect as one, in some order, on global and on shared memory.
#include <cuda_fp16.h>

#include <cstring>

#include "check.h"

constexpr int BLOCKS = 16, THREADS = 96, ALL = BLOCKS * THREADS;

struct Cells {
  int sum, difference, least, most, exchanged, swapped;
  unsigned up, down, conjunction, disjunction, parity, inverse;
  unsigned long long long_sum, long_most;
  long long long_least;
  float float_sum;
  double double_sum;
  __half2 pair_sum;
};

__device__ void begin(Cells& cells) {
  cells.sum = cells.difference = cells.least = cells.most = cells.exchanged = cells.swapped = 0;
  cells.up = cells.down = cells.disjunction = cells.parity = 0;
  cells.conjunction = cells.inverse = ~0u;
  cells.long_sum = cells.long_most = 0;
  cells.long_least = 0;
  cells.float_sum = 0;
  cells.double_sum = 0;
  cells.pair_sum = __floats2half2_rn(0, 0);
}

__device__ void work(Cells& cells, int i, unsigned* tickets) {
  atomicAdd(&cells.sum, i);
  atomicSub(&cells.difference, 1);
  atomicMin(&cells.least, -i);
  atomicMax(&cells.most, i);
  atomicExch(&cells.exchanged, i);
  if (tickets) {
    const unsigned old = atomicInc(&cells.up, 9);  // 0 .. 9, and again
    atomicAdd(&tickets[old], 1);
  }
  atomicDec(&cells.down, 6);
  atomicAnd(&cells.conjunction, ~(1u << i % 32));
  atomicOr(&cells.disjunction, 1u << i % 31);
  atomicXor(&cells.parity, 1u << i % 32);
  atomicAdd_block(&cells.inverse, ~0u);
  atomicAdd(&cells.long_sum, 1ull << 33);
  atomicMax(&cells.long_most, 1ull << 40 | i);
  atomicMin(&cells.long_least, -(1ll << 40));
  atomicAdd(&cells.float_sum, 0.5f);
  atomicAdd(&cells.double_sum, 0.25);
  atomicAdd(&cells.pair_sum, __floats2half2_rn(1, 2));
  int seen = 0, before;  // what a loop of atomicCAS makes: any operation at all
  do {
    before = seen;
    seen = atomicCAS(&cells.swapped, before, before + 2);
  } while (seen != before);
}

__device__ void check(const Cells& cells, int count, bool of_block) {
  CHECK(cells.sum == count * (count - 1) / 2 && cells.difference == -count);
  CHECK(cells.least == 1 - count && cells.most == count - 1);
  CHECK(cells.exchanged >= 0 && cells.exchanged < count && cells.swapped == 2 * count);
  CHECK(cells.down == (7 - count % 7) % 7);
  CHECK(cells.conjunction == 0 && cells.disjunction == 0x7fffffff);
  CHECK(cells.parity == (count / 32 % 2 == 1 ? ~0u : 0));
  if (of_block) CHECK(cells.inverse == ~0u - count);
  CHECK(cells.long_sum == (static_cast<unsigned long long>(count) << 33));
  CHECK(cells.long_most == (1ull << 40 | (count - 1)) || count > 1024);
  CHECK(cells.long_least == -(1ll << 40));
  CHECK(cells.float_sum == 0.5f * count && cells.double_sum == 0.25 * count);
  CHECK(__low2float(cells.pair_sum) == count && __high2float(cells.pair_sum) == 2 * count);
}

__global__ void begin_global(Cells* cells, unsigned* tickets) {
  begin(*cells);
  for (int i = 0; i < 10; ++i) tickets[i] = 0;
}
__global__ void work_on_global(Cells* cells, unsigned* tickets) {
  work(*cells, blockIdx.x * blockDim.x + threadIdx.x, tickets);
}
__global__ void check_global(const Cells* cells, const unsigned* tickets) {
  check(*cells, ALL, false);
  for (int i = 0; i < 10; ++i) CHECK(tickets[i] == (ALL + 9 - i) / 10);
}
__global__ void work_on_shared() {
  __shared__ Cells cells;
  if (threadIdx.x == 0) begin(cells);
  __syncthreads();
  work(cells, threadIdx.x, nullptr);
  __syncthreads();
  if (threadIdx.x == 0) check(cells, THREADS, true);
}

// A histogram: in shared memory first, then all blocks' together.
__global__ void histogram(const unsigned char* bytes, int count, unsigned* bins) {
  __shared__ unsigned own[64];
  if (threadIdx.x < 64) own[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    atomicAdd(&own[bytes[i] % 64], 1u);
  }
  __syncthreads();
  if (threadIdx.x < 64) atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

int main() {
  Cells* cells;
  unsigned* tickets;
  cudaMalloc(&cells, sizeof(Cells));
  cudaMalloc(&tickets, 10 * sizeof(unsigned));
  begin_global<<<1, 1>>>(cells, tickets);
  work_on_global<<<BLOCKS, THREADS>>>(cells, tickets);
  check_global<<<1, 1>>>(cells, tickets);
  work_on_shared<<<3, THREADS>>>();
  cudaFree(cells);
  cudaFree(tickets);

  constexpr int COUNT = 5000;
  unsigned char bytes[COUNT], *device_bytes;
  unsigned bins[64], expected[64] = {}, *device_bins;
  for (int i = 0; i < COUNT; ++i) ++expected[(bytes[i] = i * i / 7 % 251) % 64];
  cudaMalloc(&device_bytes, COUNT);
  cudaMalloc(&device_bins, sizeof(bins));
  cudaMemcpy(device_bytes, bytes, COUNT, cudaMemcpyHostToDevice);
  cudaMemset(device_bins, 0, sizeof(bins));
  histogram<<<5, 128>>>(device_bytes, COUNT, device_bins);
  cudaMemcpy(bins, device_bins, sizeof(bins), cudaMemcpyDeviceToHost);
  if (std::memcmp(bins, expected, sizeof(bins)) != 0) return puts("the histogram is wrong"), 1;
  cudaFree(device_bytes);
  cudaFree(device_bins);
  return finish();
}
