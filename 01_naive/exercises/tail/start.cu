// 97 filters, and blocks of 8: the last block is rarely full.
#include "common/core/add_bias.h"
#include "common/core/launch.h"
#include "common/core/stage.h"

namespace convladder {
namespace {

constexpr int PIXELS = 32, FILTERS = 8;  // of a block: a thread for each pair

__global__ void conv2d(ConvShape shape, int blocks_k, int blocks_pq,
                       const float* __restrict__ input,    // [N,C,H,W]
                       const float* __restrict__ filters,  // [K,C,R,S]
                       float* __restrict__ output) {       // [N,K,P,Q]
  const int n = blockIdx.x / (blocks_k * blocks_pq);
  const int k = blockIdx.x % blocks_k * FILTERS + threadIdx.y;
  const int pq = blockIdx.x / blocks_k % blocks_pq * PIXELS + threadIdx.x;
  // ---- your part ----
  // The grid is rounded up: with 97 filters, 13 blocks of 8 have 104 rows of threads. What must the
  // threads without an output do?
  // ---- end of your part ----
  const int p = pq / shape.Q(), q = pq % shape.Q();

  const float* image = input + n * shape.input_pitch();
  const float* filter = filters + k * shape.CRS();
  float sum = 0.0f;
  for (int c = 0; c < shape.C; ++c) {
    for (int r = 0; r < shape.R; ++r) {
      const int h = p * shape.stride_h - shape.pad_h + r * shape.dil_h;
      if (h < 0 || h >= shape.H) continue;
      for (int s = 0; s < shape.S; ++s) {
        const int w = q * shape.stride_w - shape.pad_w + s * shape.dil_w;
        if (w < 0 || w >= shape.W) continue;
        sum += image[(c * shape.H + h) * shape.W + w] * filter[(c * shape.R + r) * shape.S + s];
      }
    }
  }
  output[n * shape.output_pitch() + k * shape.PQ() + pq] = sum;
}

void enqueue(const Convolution& conv, cudaStream_t stream) {
  const ConvShape& shape = conv.shape;
  const int64_t blocks_k = ceil_div(shape.K, FILTERS), blocks_pq = ceil_div(shape.PQ(), PIXELS);
  launch(conv2d, grid_x(blocks_k * blocks_pq * shape.N), dim3(PIXELS, FILTERS), stream, shape,
         static_cast<int>(blocks_k), static_cast<int>(blocks_pq), conv.input, conv.filters,
         conv.output);
  add_bias(conv, stream);
}

CONVLADDER_REGISTER_STAGE({"tail", "blocks that are not full", enqueue, nullptr, false});

}  // namespace
}  // namespace convladder
