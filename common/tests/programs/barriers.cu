// cuda::barrier, cuda::pipeline and cuda::atomic_ref.
#include <cooperative_groups.h>

#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>

#include "check.h"

namespace cg = cooperative_groups;
using block_barrier = cuda::barrier<cuda::thread_scope_block>;

// What is written before a thread arrives is there for all that have waited.
__global__ void arrive_and_wait() {
  __shared__ block_barrier barrier;
  __shared__ int held[64];
  const int t = threadIdx.x;
  if (t == 0) init(&barrier, 64);
  __syncthreads();
  for (int round = 0; round < 5; ++round) {
    held[t] = t + round;
    block_barrier::arrival_token token = barrier.arrive();
    const int meanwhile = t * t;
    barrier.wait(std::move(token));
    CHECK(held[(t + 1) % 64] == (t + 1) % 64 + round && meanwhile == t * t);
    barrier.arrive_and_wait();
  }
}

// Half of the threads produce, the others consume: two barriers, of which each waits at one.
__global__ void produce_and_consume() {
  __shared__ block_barrier full, empty;
  __shared__ int held[32];
  const int t = threadIdx.x % 32;
  if (threadIdx.x == 0) init(&full, 64), init(&empty, 64);
  __syncthreads();
  for (int round = 0; round < 4; ++round) {
    if (threadIdx.x < 32) {
      held[t] = round * 100 + t;
      static_cast<void>(full.arrive());
      empty.arrive_and_wait();
    } else {
      full.arrive_and_wait();
      CHECK(held[31 - t] == round * 100 + 31 - t);
      static_cast<void>(empty.arrive());
    }
  }
}

// A sum that goes from thread to thread, over more barriers than any stage has.
__global__ void many_barriers() {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  for (int round = 0; round < 70000; ++round) {
    __syncthreads();
    if (threadIdx.x == round % blockDim.x) ++sum;
  }
  __syncthreads();
  CHECK(sum == 70000);
}

__global__ void copy_with_barrier(const int* from) {
  __shared__ block_barrier barrier;
  __shared__ alignas(16) int held[128];
  const auto block = cg::this_thread_block();
  if (block.thread_rank() == 0) init(&barrier, block.size());
  block.sync();
  cuda::memcpy_async(block, held, from, sizeof(held), barrier);
  barrier.arrive_and_wait();
  CHECK(held[127 - threadIdx.x] == 127 - int(threadIdx.x));
}

// Two tiles on their way while one is added up.
template <typename Pipeline>
__device__ int sum_tiles(Pipeline& pipe, int (*held)[128], const int* from, int tiles) {
  const auto block = cg::this_thread_block();
  int sum = 0;
  for (int tile = 0, next = 0; tile < tiles; ++tile) {
    for (; next < tiles && next < tile + 2; ++next) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, held[next % 2], from + next * 128, sizeof(held[0]), pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    for (int i = 0; i < 128; ++i) sum += held[tile % 2][i];
    pipe.consumer_release();
  }
  return sum;
}

__global__ void pipelines(const int* from) {
  __shared__ alignas(16) int held[2][128];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto pipe = cuda::make_pipeline(cg::this_thread_block(), &state);
  CHECK(sum_tiles(pipe, held, from, 8) == 1024 * 1023 / 2);
}

// One warp copies, three add.
__global__ void roles(const int* from, bool by_count) {
  constexpr int STAGES = 2;
  __shared__ alignas(16) int held[STAGES][128];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES> state;
  const auto block = cg::this_thread_block();
  const bool copies = block.thread_rank() < 32;
  auto pipe = by_count ? cuda::make_pipeline(block, &state, std::size_t{32})
                       : cuda::make_pipeline(block, &state,
                                             copies ? cuda::pipeline_role::producer
                                                    : cuda::pipeline_role::consumer);
  int sum = 0;
  for (int tile = 0; tile < 8; ++tile) {
    if (copies) {
      pipe.producer_acquire();
      cuda::memcpy_async(cg::tiled_partition<32>(block), held[tile % STAGES], from + tile * 128,
                         sizeof(held[0]), pipe);
      pipe.producer_commit();
    } else {
      pipe.consumer_wait();
      for (int i = 0; i < 128; ++i) sum += held[tile % STAGES][i];
      pipe.consumer_release();
    }
  }
  CHECK(copies || sum == 1024 * 1023 / 2);
}

// A barrier that lies in global memory is one, too.
__device__ cuda::barrier<cuda::thread_scope_device> of_device;
__global__ void wait_in_global_memory(int* out) {
  if (threadIdx.x == 0) init(&of_device, 64);
  __syncthreads();
  out[threadIdx.x] = threadIdx.x;
  of_device.arrive_and_wait();
  CHECK(out[63 - threadIdx.x] == 63 - int(threadIdx.x));
}

// Phases by their parity; a thread that leaves.
__global__ void parities() {
  __shared__ block_barrier barrier;
  __shared__ int held[64];
  const int t = threadIdx.x;
  if (t == 0) init(&barrier, 64);
  __syncthreads();
  for (int round = 0; round < 4; ++round) {
    held[t] = round;
    static_cast<void>(barrier.arrive());
    barrier.wait_parity(round % 2);
    CHECK(held[t ^ 32] == round && barrier.try_wait_parity(round % 2));
    __syncthreads();
  }
  if (t == 63) return barrier.arrive_and_drop();
  barrier.arrive_and_wait();
  barrier.arrive_and_wait();
}

__global__ void own_pipeline(const int* from) {
  __shared__ alignas(16) int held[2][32];
  cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
  for (int i = 0; i < 2; ++i) {
    pipe.producer_acquire();
    cuda::memcpy_async(&held[i][threadIdx.x], &from[i * 32 + threadIdx.x], sizeof(int), pipe);
    pipe.producer_commit();
  }
  for (int i = 0; i < 2; ++i) {
    pipe.consumer_wait();
    CHECK(held[i][threadIdx.x] == i * 32 + int(threadIdx.x));
    pipe.consumer_release();
  }
}

__global__ void atomics(int* cells) {
  cuda::atomic_ref<int, cuda::thread_scope_device> sum(cells[0]), flag(cells[1]);
  sum.fetch_add(2, cuda::memory_order_relaxed);
  cuda::atomic_ref<unsigned, cuda::thread_scope_block> bits(
      reinterpret_cast<unsigned&>(cells[3 + blockIdx.x]));
  bits |= 1u << threadIdx.x;
  bits ^= 0;
  sum -= 3;
  --sum;
  sum--;
  sum += 5;
  bits &= ~0u;
  if (threadIdx.x == 0 && blockIdx.x == 0) {
    cells[2] = 42;
    flag.store(1, cuda::std::memory_order_release);
  }
  if (threadIdx.x == 0 && blockIdx.x == 1) {
    while (flag.load(cuda::memory_order_acquire) == 0) {
    }
    CHECK(cells[2] == 42);
  }
}
__global__ void check_atomics(const int* cells) {
  CHECK(cells[0] == 2 * 64 && cells[3] == -1 && cells[4] == -1);
}

int main() {
  many_barriers<<<1, 2>>>();
  arrive_and_wait<<<2, 64>>>();
  produce_and_consume<<<2, 64>>>();
  int values[1024], *device;
  for (int i = 0; i < 1024; ++i) values[i] = i;
  cudaMalloc(&device, sizeof(values));
  cudaMemcpy(device, values, sizeof(values), cudaMemcpyHostToDevice);
  copy_with_barrier<<<2, 128>>>(device);
  pipelines<<<2, 128>>>(device);
  roles<<<2, 128>>>(device, true);
  roles<<<2, 128>>>(device, false);
  parities<<<1, 64>>>();
  own_pipeline<<<1, 32>>>(device);
  wait_in_global_memory<<<1, 64>>>(device);
  cudaMemset(device, 0, sizeof(values));
  atomics<<<2, 32>>>(device);
  check_atomics<<<1, 1>>>(device);
  cudaFree(device);
  return finish();
}
