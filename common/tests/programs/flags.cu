// Threads that wait for what other threads, or other blocks, write: fences, flags, locks.
#include "check.h"

// Of the Programming Guide's example of __threadfence(): the last block to come adds up what all wrote.
__device__ unsigned arrived = 0;
__global__ void sum(const int* values, int count, int* partial, int* total) {
  __shared__ int block_sum, is_last;
  if (threadIdx.x == 0) block_sum = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    atomicAdd(&block_sum, values[i]);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = block_sum;
    __threadfence();  // before the block says that it is done
    is_last = atomicInc(&arrived, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last || threadIdx.x > 0) return;
  int sum = 0;
  for (unsigned block = 0; block < gridDim.x; ++block) sum += partial[block];
  *total = sum;
}

// Each block adds what the one before it came to: it waits for a flag that the other sets.
__global__ void chain(volatile int* flags, int* sums, unsigned* ticket) {
  __shared__ int block;
  if (threadIdx.x == 0) block = atomicAdd(ticket, 1);  // the order in which blocks run
  __syncthreads();
  if (threadIdx.x == 0) {
    int before = 0;
    if (block > 0) {
      while (flags[block - 1] == 0) {
      }
      __threadfence();
      before = sums[block - 1];
    }
    sums[block] = before + block + 1;
    __threadfence();
    flags[block] = 1;
  }
}

// A lock, taken by threads of all blocks, one at a time.
__global__ void count_under_lock(int* lock, volatile int* count) {
  for (bool done = false; !done;) {
    if (atomicCAS(lock, 0, 1) != 0) continue;
    __threadfence();
    *count = *count + 1;
    __threadfence();
    atomicExch(lock, 0);
    done = true;
  }
}

// A thread of the last warp waits for one of the first, and the other way round.
__global__ void ping_pong(int* turns) {
  __shared__ int turn;
  if (threadIdx.x == 0) turn = 0;
  __syncthreads();
  const int own = threadIdx.x == 0 ? 0 : 1;
  if (threadIdx.x == 0 || threadIdx.x == 63) {
    for (int i = 0; i < 20; ++i) {
      while (atomicAdd(&turn, 0) != 2 * i + own) __nanosleep(20);
      atomicAdd(&turn, 1);
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) *turns = turn;
}

// The last block has what the first hands over, by PTX's orders.
__global__ void hand_over(int* flag, int* values) {
  int here = 0;
  if (blockIdx.x == 0) {
    values[0] = 5;
    asm volatile("st.release.gpu.s32 [%0], 1;" ::"l"(flag) : "memory");
  } else if (blockIdx.x == 1) {
    while (here == 0)
      asm volatile("ld.acquire.gpu.s32 %0, [%1];" : "=r"(here) : "l"(flag) : "memory");
    values[1] = values[0] + 1;
    asm volatile("atom.release.gpu.exch.b32 %0, [%1], 2;" : "=r"(here) : "l"(flag) : "memory");
  } else {
    while (here < 2)
      asm volatile("ld.relaxed.gpu.s32 %0, [%1];" : "=r"(here) : "l"(flag) : "memory");
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    values[2] = values[1] + 1;
  }
}

// Asks many times for what nobody changes, but not for ever.
__global__ void ask_often(volatile int* asked) {
  int sum = 0;
  for (int i = 0; i < 50'000; ++i) sum += asked[0];
  asked[1 + blockIdx.x] = sum;
}

// Each block sets the same flag when it is its turn.
__global__ void take_turns(volatile int* turn, volatile int* found) {
  if (threadIdx.x > 0) return;
  while (*turn != int(blockIdx.x)) continue;
  *found = 1;
  __threadfence();
  *turn = *turn + 1;
}

__global__ void check(const int* numbers, const int* sums) {
  CHECK(numbers[0] == 1000 * 999 / 2);
  CHECK(numbers[1] == 8 * 33);
  CHECK(numbers[2] == 40);
  CHECK(numbers[22] == 0);
  CHECK(numbers[33] == 7);
  CHECK(numbers[40] == 8 && numbers[41] == 1);
  for (int i = 0; i < 40; ++i) CHECK(sums[i] == (i + 1) * (i + 2) / 2);
}

int main() {
  int values[1000], *device;
  for (int i = 0; i < 1000; ++i) values[i] = i;
  cudaMalloc(&device, 2000 * sizeof(int));
  cudaMemset(device, 0, 2000 * sizeof(int));
  int *numbers = device + 1000, *partial = device + 1100, *sums = device + 1200,
      *flags = device + 1300;
  cudaMemcpy(device, values, sizeof(values), cudaMemcpyHostToDevice);
  sum<<<7, 64>>>(device, 1000, partial, &numbers[0]);
  count_under_lock<<<8, 33>>>(&numbers[10], &numbers[1]);
  ping_pong<<<1, 64>>>(&numbers[2]);
  chain<<<40, 32>>>(flags, sums, reinterpret_cast<unsigned*>(&numbers[11]));
  ask_often<<<2, 1>>>(numbers + 20);
  hand_over<<<3, 1>>>(numbers + 30, numbers + 31);
  take_turns<<<8, 32>>>(numbers + 40, numbers + 41);
  check<<<1, 1>>>(numbers, sums);
  cudaFree(device);
  return finish();
}
