// What Hopper's tensor cores do at the most: nothing but wgmma, of tiles that lie in shared memory.
#include "common/check/backend.h"
#include "common/check/device_buffer.h"
#include "common/core/hopper.h"
#include "common/core/launch.h"
#include "common/measure/bench.h"

namespace convladder {
namespace {

constexpr int WARPGROUPS = 2, M = 64, N = 256, K = 8, TILE = 32;  // of a warpgroup's product
constexpr int ITERATIONS = 4000, REPEATS = 15;

__global__ void __launch_bounds__(WARPGROUPS * 128) wgmma_loop(float* sink) {
  __shared__ alignas(1024) float tiles[(M + N) * TILE];
  for (int i = threadIdx.x; i < (M + N) * TILE; i += blockDim.x) tiles[i] = 1.0f;
  fence_async_proxy();
  __syncthreads();  // the tiles are complete, for the tensor cores as well
  float sums[M * N / 128] = {};
  for (int i = 0; i < ITERATIONS; ++i) {
    products_begin();
    UNROLL for (int k = 0; k < TILE / K; ++k) {
      // 8 numbers on is 2 more
      multiply<N>(sums, descriptor(tiles) + 2 * k, descriptor(tiles + M * TILE) + 2 * k, 1);
    }
    products_commit();
    products_wait<1>();
  }
  products_wait(sums);
  // In a case that never comes, which the compiler can't know: so nothing is left out.
  UNROLL for (float sum : sums) {
    if (sum == -1.0f) *sink = sum;
  }
}

}  // namespace

double measure_wgmma(int multiprocessors) {
  int blocks_each = 0;
  check_cuda(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_each, wgmma_loop, WARPGROUPS * 128, 0),
      "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  const int64_t blocks = int64_t{multiprocessors} * blocks_each;
  const DeviceBuffer sink(1);
  const Timing timing = time_on_backend(
      [&] {
        wgmma_loop<<<grid_x(blocks), WARPGROUPS * 128>>>(sink.data());
        check_cuda(cudaGetLastError(), "kernel launch");
      },
      REPEATS);
  const double flop = 2.0 * M * N * TILE * WARPGROUPS * ITERATIONS * static_cast<double>(blocks);
  return flop / (timing.milliseconds * 1e-3);
}

}  // namespace convladder
