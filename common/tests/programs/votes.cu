// The lanes of a warp, and the threads of a block, vote and reduce.
#include "check.h"

constexpr unsigned ALL = 0xffffffff;

__global__ void vote() {
  const int lane = threadIdx.x % 32;
  CHECK(__ballot_sync(ALL, lane % 3 == 0) == 0x49249249);
  CHECK(__any_sync(ALL, lane == 31) && !__any_sync(ALL, lane > 31));
  CHECK(__all_sync(ALL, lane < 32) && !__all_sync(ALL, lane != 5));
  CHECK(__match_any_sync(ALL, lane / 8) == 0xffu << lane / 8 * 8);
  CHECK(__match_any_sync(ALL, lane % 2 == 0 ? 1.5 : -2.0) == 0x55555555u << lane % 2);
  int same = -1;
  CHECK(__match_all_sync(ALL, 7ll, &same) == ALL && same);
  CHECK(__match_all_sync(ALL, lane / 31, &same) == 0 && !same);

  CHECK(__reduce_add_sync(ALL, lane - 16) == -16);
  CHECK(__reduce_min_sync(ALL, lane - 16) == -16 && __reduce_max_sync(ALL, lane - 16) == 15);
  CHECK(__reduce_add_sync(ALL, unsigned(lane)) == 496u &&
        __reduce_max_sync(ALL, ~0u - lane) == ~0u);
  CHECK(__reduce_and_sync(ALL, ~(1u << lane)) == 0 && __reduce_or_sync(ALL, 1u << lane) == ALL);
  CHECK(__reduce_xor_sync(ALL, 3u << lane) == 0x1u);

  // A mask names those that vote; others may be elsewhere.
  if (lane < 10) {
    CHECK(__ballot_sync(0x3ff, lane > 3) == 0x3f0);
    CHECK(__reduce_add_sync(0x3ff, 1) == 10);
    const unsigned together = __activemask();  // at least this lane; at most those that came here
    CHECK((together >> lane & 1) && (together & ~0x3ffu) == 0);
  }
  __syncwarp();
  if (lane == 3) return;
  CHECK(__ballot_sync(ALL, 1) == ~8u);  // those that have left are not there
}

__global__ void vote_in_block() {
  const int t = threadIdx.x;
  CHECK(__syncthreads_count(t % 3 == 0) == 32);
  CHECK(__syncthreads_or(t == 95) && !__syncthreads_or(t == 96));
  CHECK(__syncthreads_and(t < 96) && !__syncthreads_and(t != 0));
}

// Lanes that append to a list do so with one atomic operation for all that are together.
__global__ void append(int* list, int* count) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t % 5 != 0) return;
  const unsigned together = __activemask();
  const int lane = threadIdx.x % 32, leader = __ffs(together) - 1;
  int at = 0;
  if (lane == leader) at = atomicAdd(count, __popc(together));
  at = __shfl_sync(together, at, leader) + __popc(together & ((1u << lane) - 1));
  list[at] = t;
}

__global__ void check_list(const int* list, const int* count) {
  CHECK(*count == 205);
  int found = 0;
  for (int i = 0; i < *count; ++i) found += list[i] % 5 == 0;
  CHECK(found == 205);
}

int main() {
  vote<<<2, 64>>>();
  vote_in_block<<<2, 96>>>();
  int* device;
  cudaMalloc(&device, 1025 * sizeof(int));
  cudaMemset(device, 0, sizeof(int));
  append<<<8, 128>>>(device + 1, device);
  check_list<<<1, 1>>>(device + 1, device);
  cudaFree(device);
  return finish();
}
