// Multiplies 64 pixels by 32 filters with four warps: filter f has a 1 at tap f, and a pixel's tap k is k, so that
// each sum must be its filter's number.
#include <cstdio>
#include <vector>

#include "common/core/hopper.h"

using namespace convladder;

constexpr int PIXELS = 64, FILTERS = 32, TAPS = 32;

__global__ void multiply_once(float* sums) {  // [PIXELS][FILTERS]
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
  // Taps t, t + 4, t + 8, ... of two pixels, by turns: the same values, since every pixel's tap k is k.
  UNROLL for (int e = 0; e < TAPS / 2; ++e) x[e] = e / 2 * 4 + t;
  const uint64_t filters = descriptor(w);
  products_begin();  // x is ready
  UNROLL for (int k = 0; k < TAPS / 8; ++k) {
    multiply<FILTERS>(sum, x + 4 * k, filters + 2 * k, k > 0);
  }
  products_commit();  // the four of them are a group
  products_wait(sum);
  UNROLL for (int j = 0; j < FILTERS / 2; ++j) {  // two pixels, 8 apart; pairs of filters, 8 apart
    sums[(pixel + j / 2 % 2 * 8) * FILTERS + j / 4 * 8 + t * 2 + j % 2] = sum[j];
  }
}

int main() {
  std::vector<float> sums(PIXELS * FILTERS);
  float* there;
  cudaMalloc(&there, sums.size() * sizeof(float));
  multiply_once<<<1, 128>>>(there);
  cudaMemcpy(sums.data(), there, sums.size() * sizeof(float), cudaMemcpyDeviceToHost);
  for (int f = 0; f < FILTERS; ++f) std::printf("%g ", sums[f]);  // of pixel 0
  std::printf("\n");
  cudaFree(there);
}
