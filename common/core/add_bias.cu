#include "common/core/add_bias.h"

#include <algorithm>

#include "common/core/launch.h"

namespace convladder {
namespace {

constexpr int THREADS = 256;
constexpr int64_t MOST_BLOCKS = 0x7fffffff;  // in a grid
constexpr int PER_THREAD = 4;  // independent loads in flight per thread, to cover DRAM latency

// One block: up to THREADS * PER_THREAD consecutive elements of one [P,Q] plane, so that the bias
// is one value per block.
__global__ void add_bias_kernel(float* output,      // [N,K,P,Q]
                                const float* bias,  // [K]
                                int K, int PQ, int blocks_per_plane) {
  const int plane = blockIdx.x / blocks_per_plane;
  const int first = (blockIdx.x % blocks_per_plane) * (THREADS * PER_THREAD) + threadIdx.x;
  const float b = bias[plane % K];
  float* out = output + int64_t{plane} * PQ;
  float value[PER_THREAD] = {};  // read all, then write all: a read could not pass an earlier write
  UNROLL for (int i = 0; i < PER_THREAD; ++i) {
    if (first + i * THREADS < PQ) value[i] = out[first + i * THREADS];
  }
  UNROLL for (int i = 0; i < PER_THREAD; ++i) {
    if (first + i * THREADS < PQ) out[first + i * THREADS] = value[i] + b;
  }
}

}  // namespace

void add_bias(const Convolution& conv, cudaStream_t stream) {
  if (!conv.bias) return;
  const ConvShape& shape = conv.shape;
  const int64_t blocks_per_plane = ceil_div(shape.PQ(), THREADS * PER_THREAD);
  const int64_t blocks_per_image = shape.total_K() * blocks_per_plane;
  const int64_t most = MOST_BLOCKS / blocks_per_image;  // images of one launch
  for (int64_t n = 0; n < shape.N; n += most) {
    const int64_t images = std::min(most, shape.N - n);
    add_bias_kernel<<<grid_x(images * blocks_per_image), THREADS, 0, stream>>>(
        conv.output + n * shape.output_pitch(), conv.bias, shape.total_K(), shape.PQ(),
        static_cast<int>(blocks_per_plane));
  }
}

}  // namespace convladder
