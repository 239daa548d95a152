// Multiplies 64 pixels by 32 filters with four warps: pixel p has 32 p + k at tap k, and filter f has a 1 at tap f, so
// that the sum of pixel p and filter f must be 32 p + f.
#include <cstdio>

#include "common/core/hopper.h"

using namespace convladder;

constexpr int PIXELS = 64, FILTERS = 32, TAPS = 32;

__device__ float value(int pixel, int tap) { return 32 * pixel + tap; }

__global__ void multiply_once(float (*sums)[FILTERS]) {
  __shared__ __align__(1024) float w[FILTERS * TAPS];
  const int tid = threadIdx.x;
  for (int e = tid; e < FILTERS * TAPS; e += 128) {
    const int f = e / TAPS, k = e % TAPS;
    w[swizzled(f, k)] = f == k;  // filter f has a 1 at tap f
  }
  fence_async_proxy();  // tensor cores take another path to shared memory
  __syncthreads();

  const int t = tid % 4, pixel = tid / 32 * 16 + tid % 32 / 4;
  float x[TAPS / 2], sum[FILTERS / 2];
  UNROLL for (int e = 0; e < TAPS / 2; ++e) x[e] = value(pixel + e % 2 * 8, e / 2 * 4 + t);
  const uint64_t filters = descriptor(w);
  products_begin();  // x is ready
  UNROLL for (int k = 0; k < TAPS / 8; ++k) {
    multiply<FILTERS>(sum, x + 4 * k, filters + 2 * k, k > 0);
  }
  products_commit();  // the four of them are a group
  products_wait(sum);
  UNROLL for (int j = 0; j < FILTERS / 2; ++j) {
    sums[pixel + j / 2 % 2 * 8][j / 4 * 8 + t * 2 + j % 2] = sum[j];
  }
}

int main() {
  static float sums[PIXELS][FILTERS];
  float(*there)[FILTERS];
  cudaMalloc(&there, sizeof(sums));
  multiply_once<<<1, 128>>>(there);
  cudaMemcpy(sums, there, sizeof(sums), cudaMemcpyDeviceToHost);
  for (const int pixel : {0, 9}) {
    std::printf("pixel %d:", pixel);
    for (const float sum : sums[pixel]) std::printf(" %g", sum);
    std::printf("\n");
  }
  cudaFree(there);
}
