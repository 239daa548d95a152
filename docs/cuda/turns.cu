// Whose products are made first: two warpgroups begin as many as a tile of stages 14 and 15 has, one some cycles
// after the other. Times are a GPU's; the simulator has no clock.
#include <cstdio>

#include "common/core/hopper.h"

using namespace convladder;

constexpr int FILTERS = 128, CHAIN = 12, ROUNDS = 200;  // instructions of a chain

struct Times {
  long long begin, begun, end;  // its first product, behind its last, and when all are made
};

__global__ void turns(int late, Times (*times)[2], float* sink) {  // [ROUNDS][warpgroup]
  __shared__ __align__(1024) float w[FILTERS * 32];
  for (int i = threadIdx.x; i < FILTERS * 32; i += blockDim.x) w[i] = 1.0f;
  fence_async_proxy();
  const int warpgroup = threadIdx.x / 128;
  float x[16], sum[FILTERS / 2] = {};
  for (float& value : x) value = threadIdx.x;
  for (int round = 0; round < ROUNDS; ++round) {
    __syncthreads();
    if (warpgroup == 1) {
      for (const long long until = clock64() + late; clock64() < until;) continue;
    }
    Times own{clock64(), 0, 0};
    products_begin();
    UNROLL for (int k = 0; k < CHAIN; ++k) {
      multiply<FILTERS>(sum, x + 4 * (k % 4), descriptor(w) + 2 * (k % 4), 1);
    }
    products_commit();
    own.begun = clock64();
    products_wait(sum);
    own.end = clock64();
    if (threadIdx.x % 128 == 0) times[round][warpgroup] = own;
  }
  UNROLL for (const float one : sum) {  // never: so that nothing is left out
    if (one == -1.0f) *sink = one;
  }
}

int main() {
  Times(*times)[2];
  float* sink;
  cudaMallocManaged(&times, ROUNDS * sizeof(*times));
  cudaMalloc(&sink, sizeof(float));
  std::printf(
      "cycles, means: the second begins later by, the first has begun all, they are made, "
      "the second's, it ends later by\n");
  for (const int late : {0, 80, 160, 320, 640, 1280}) {
    turns<<<1, 256>>>(late, times, sink);
    if (const cudaError_t error = cudaDeviceSynchronize()) {
      std::printf("%s\n", cudaGetErrorString(error));
      return 1;
    }
    double apart = 0, begun = 0, first = 0, second = 0, after = 0;
    for (int round = 0; round < ROUNDS; ++round) {
      const bool is_0 = times[round][0].begin <= times[round][1].begin;
      const Times one = times[round][is_0 ? 0 : 1], other = times[round][is_0 ? 1 : 0];
      apart += other.begin - one.begin, begun += one.begun - one.begin;
      first += one.end - one.begin;
      second += other.end - other.begin, after += other.end - one.end;
    }
    for (const double sum : {apart, begun, first, second, after})
      std::printf("%8.0f", sum / ROUNDS);
    std::printf("\n");
  }
  cudaFree(times);
  cudaFree(sink);
}
