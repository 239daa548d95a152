// One product of a warp. Pixel p has the value 10 p + k at tap k. Filter f has a 1 at tap f, and filter 8 + f a -1
// there, so that a sum says which pixel and which tap have been multiplied.
#include <cstdio>

#include "common/core/mma.h"

using namespace convladder;

constexpr int FILTERS = 16, TAPS = 8, PIXELS = 8;

__global__ void multiply_once(const float (*w)[TAPS], const float (*x)[PIXELS],
                              float (*sums)[PIXELS]) {
  const int lane = threadIdx.x, ty = lane / 4, t = lane % 4;
  const float a[4] = {w[ty][t], w[ty + 8][t], w[ty][t + 4], w[ty + 8][t + 4]};
  const float b[2] = {x[t][ty], x[t + 4][ty]};
  float sum[2] = {}, below[2] = {};
  mma_tf32(sum, below, a, b);
  sums[ty][2 * t] = sum[0], sums[ty][2 * t + 1] = sum[1];
  sums[ty + 8][2 * t] = below[0], sums[ty + 8][2 * t + 1] = below[1];
}

int main() {
  float filters[FILTERS][TAPS] = {}, pixels[TAPS][PIXELS], results[FILTERS][PIXELS];
  for (int f = 0; f < FILTERS; ++f) filters[f][f % 8] = f < 8 ? 1 : -1;
  for (int k = 0; k < TAPS; ++k) {
    for (int p = 0; p < PIXELS; ++p) pixels[k][p] = 10 * p + k;
  }
  float(*w)[TAPS], (*x)[PIXELS], (*sums)[PIXELS];
  cudaMalloc(&w, sizeof(filters));
  cudaMalloc(&x, sizeof(pixels));
  cudaMalloc(&sums, sizeof(results));
  cudaMemcpy(w, filters, sizeof(filters), cudaMemcpyHostToDevice);
  cudaMemcpy(x, pixels, sizeof(pixels), cudaMemcpyHostToDevice);
  multiply_once<<<1, 32>>>(w, x, sums);
  cudaMemcpy(results, sums, sizeof(results), cudaMemcpyDeviceToHost);
  for (const int f : {0, 1, 8, 9}) {
    std::printf("filter %d:", f);
    for (const float value : results[f]) std::printf(" %3g", value);
    std::printf("\n");
  }
  cudaFree(w);
  cudaFree(x);
  cudaFree(sums);
}
