// A program's macros, also before it includes CUDA's headers, are no names of ours.
#define A 1
#define K 3
#define M 5
#define N 100
#define SIZE 64
#define T float
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_fp16.h>
#include <curand_kernel.h>
#include <mma.h>

#include <cstdio>

#include <cuda/barrier>
#include <cuda/pipeline>

namespace cg = cooperative_groups;

__global__ void sums(T* out) {
  int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  __shared__ T values[SIZE];
  values[threadIdx.x] = M, values[threadIdx.x + 32] = N;
  __syncthreads();
  const T sum = values[threadIdx.x] + values[threadIdx.x + 32] + A;
  out[lane] = cg::reduce(warp, sum, cg::plus<T>()) + K;
}

int main() {
  T* out = nullptr;
  cudaMallocManaged(&out, 32 * sizeof(T));
  sums<<<1, 32>>>(out);
  cudaDeviceSynchronize();
  const bool right = out[31] == 32 * (M + N + A) + K;
  std::printf(right ? "all right\n" : "wrong\n");
  cudaFree(out);
  return right ? 0 : 1;
}
