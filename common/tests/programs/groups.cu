// Cooperative groups: blocks, tiles, lanes that are together, the grid.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include "check.h"

namespace cg = cooperative_groups;

// As in the Programming Guide: the same for any group.
__device__ int reduce_sum(cg::thread_group group, int* held, int value) {
  const int lane = group.thread_rank();
  for (int i = group.size() / 2; i > 0; i /= 2) {
    held[lane] = value;
    group.sync();
    if (lane < i) value += held[lane + i];
    group.sync();
  }
  return value;
}

template <int SIZE>
__device__ void check_tile(const cg::thread_block& block) {
  const auto tile = cg::tiled_partition<SIZE>(block);
  const int rank = tile.thread_rank(), first = block.thread_rank() - rank;
  CHECK(tile.size() == SIZE && tile.num_threads() == SIZE &&
        rank == int(block.thread_rank() % SIZE));
  CHECK(int(tile.meta_group_rank()) == first / SIZE &&
        tile.meta_group_size() == block.size() / SIZE);
  CHECK(tile.shfl(first + rank, SIZE - 1) == first + SIZE - 1);
  CHECK(tile.shfl_down(rank, 1) == (rank + 1 < SIZE ? rank + 1 : rank));
  CHECK(tile.shfl_up(rank, 1) == (rank > 0 ? rank - 1 : 0) &&
        tile.shfl_xor(rank, SIZE / 2) == (rank ^ SIZE / 2));
  CHECK(tile.ballot(rank == 0) == 1 && tile.any(rank == 0) && (SIZE == 1 || !tile.all(rank == 0)));
  CHECK(cg::reduce(tile, rank, cg::plus<int>()) == SIZE * (SIZE - 1) / 2);
  CHECK(cg::reduce(tile, rank, cg::greater<int>()) == SIZE - 1);
  CHECK(cg::inclusive_scan(tile, 1) == rank + 1 && cg::exclusive_scan(tile, 1) == rank);
}

__global__ void groups() {
  __shared__ int held[128];
  const cg::thread_block block = cg::this_thread_block();
  CHECK(block.thread_rank() == threadIdx.x + blockDim.x * threadIdx.y && block.size() == 128);
  CHECK(block.group_index().x == blockIdx.x && block.thread_index().y == threadIdx.y);
  const int sum = reduce_sum(block, held, block.thread_rank());
  if (block.thread_rank() == 0) CHECK(sum == 128 * 127 / 2);
  block.sync();
  check_tile<32>(block);
  check_tile<16>(block);
  check_tile<4>(block);
  check_tile<1>(block);
  const auto tile = cg::tiled_partition<32>(block);
  const int of_tile = reduce_sum(tile, held + block.thread_rank() / 32 * 32, 1);
  if (tile.thread_rank() == 0) CHECK(of_tile == 32);

  if (block.thread_rank() % 32 < 5) {  // those of a branch
    const cg::coalesced_group together = cg::coalesced_threads();
    CHECK(together.size() >= 1 && together.size() <= 5 && together.thread_rank() < together.size());
    const int first = together.shfl(int(block.thread_rank()), 0);
    CHECK(first <= int(block.thread_rank()) && first / 32 == int(block.thread_rank()) / 32);
    CHECK(cg::reduce(together, 1, cg::plus<int>()) == int(together.size()));
  }
  __shared__ int called;
  if (tile.meta_group_rank() == 0) {
    if (tile.thread_rank() == 0) called = 0;
    cg::invoke_one(
        tile, [](int by) { called += by; }, 3);
    tile.sync();
    CHECK(called == 3);
  }
  const auto parts = cg::labeled_partition(tile, tile.thread_rank() % 3);
  CHECK(parts.size() == (tile.thread_rank() % 3 < 2 ? 11u : 10u) &&
        parts.thread_rank() == tile.thread_rank() / 3 && parts.meta_group_size() == 3 &&
        parts.meta_group_rank() == tile.thread_rank() % 3);
  const auto half = cg::binary_partition(tile, tile.thread_rank() < 12);
  CHECK(half.size() == (tile.thread_rank() < 12 ? 12u : 20u) && half.meta_group_size() == 2 &&
        half.meta_group_rank() == (tile.thread_rank() < 12));
  CHECK(cg::binary_partition(tile, true).meta_group_size() == 1);
  const cg::coalesced_group fours = cg::tiled_partition(half, 8);  // by rank, not by lane
  CHECK(fours.thread_rank() == half.thread_rank() % 8 &&
        fours.meta_group_rank() == half.thread_rank() / 8 &&
        fours.size() == (half.thread_rank() / 8 * 8 + 8 <= half.size() ? 8 : 4));
  CHECK(fours.shfl(int(half.thread_rank()), 0) == int(half.thread_rank()) / 8 * 8);
  block.barrier_wait(block.barrier_arrive());
}

// One addition for all lanes that are together: those of the other arm are not, though both call this.
__device__ int add_one(int* count) {
  const cg::coalesced_group group = cg::coalesced_threads();
  int first = 0;
  if (group.thread_rank() == 0) first = atomicAdd(count, int(group.size()));
  return group.shfl(first, 0) + int(group.thread_rank());
}

__global__ void both_arms() {
  __shared__ int small, large;
  if (threadIdx.x == 0) small = large = 0;
  __syncthreads();
  if (threadIdx.x % 32 < 10) {
    CHECK(add_one(&small) < 20);
  } else {
    CHECK(add_one(&large) < 44);
  }
  __syncthreads();
  CHECK(small == 20 && large == 44);
}

// The last tile of a block of 40 threads has eight.
__global__ void last_tile() {
  const auto tile = cg::tiled_partition(cg::this_thread_block(), 32);
  CHECK(tile.size() == (threadIdx.x < 32 ? 32u : 8u) && tile.thread_rank() == threadIdx.x % 32);
}

__global__ void copy(const int* from, int* to) {
  __shared__ alignas(16) int held[256];
  const cg::thread_block block = cg::this_thread_block();
  cg::memcpy_async(block, held, from + blockIdx.x * 256, sizeof(held));
  cg::wait(block);
  to[blockIdx.x * 256 + block.thread_rank()] = held[255 - block.thread_rank()];
}

// Every block reads what all blocks have written before the barrier.
__global__ void rotate(int* values, int rounds) {
  const cg::grid_group grid = cg::this_grid();
  const unsigned rank = grid.thread_rank(), size = grid.size();
  for (int round = 0; round < rounds; ++round) {
    const int next = values[(rank + 1) % size];
    grid.sync();
    values[rank] = next;
    grid.sync();
  }
}

__global__ void check(const int* values, const int* copied) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  CHECK(values[i] == (i + 5) % 1024);
  CHECK(copied[i] == i / 256 * 256 + 255 - i % 256);
}

int main() {
  groups<<<2, dim3(32, 4)>>>();
  both_arms<<<1, 64>>>();
  last_tile<<<1, 40>>>();
  int values[1024], *device, rounds = 5;
  for (int i = 0; i < 1024; ++i) values[i] = i;
  cudaMalloc(&device, 2 * sizeof(values));
  cudaMemcpy(device, values, sizeof(values), cudaMemcpyHostToDevice);
  copy<<<4, 256>>>(device, device + 1024);
  void* arguments[] = {&device, &rounds};
  cudaLaunchCooperativeKernel((void*)rotate, dim3(16), dim3(64), arguments, 0, nullptr);
  check<<<4, 256>>>(device, device + 1024);
  cudaFree(device);
  return finish();
}
