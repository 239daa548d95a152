// As few sectors and wavefronts as you can: the naive kernel, to begin with.
#include "common/core/add_bias.h"
#include "common/core/launch.h"
#include "common/core/stage.h"

namespace convladder {
namespace {

constexpr int THREADS = 256;  // per block: 8 warps, each 32 neighbouring outputs

__global__ void conv2d(ConvShape shape, int blocks_per_image,
                       const float* __restrict__ input,    // [N,C,H,W]
                       const float* __restrict__ filters,  // [K,C,R,S]
                       float* __restrict__ output) {       // [N,K,P,Q]
  const int n = blockIdx.x / blocks_per_image;
  const int kpq = blockIdx.x % blocks_per_image * THREADS + threadIdx.x;
  if (kpq >= shape.KPQ()) return;
  const int q = kpq % shape.Q();  // neighbouring threads: neighbouring q
  const int p = kpq / shape.Q() % shape.P();
  const int k = kpq / shape.PQ();

  const float* image = input + n * shape.input_pitch();
  const float* filter = filters + k * shape.CRS();
  float sum = 0.0f;
  for (int c = 0; c < shape.C; ++c) {
    for (int r = 0; r < shape.R; ++r) {
      const int h = p * shape.stride_h - shape.pad_h + r * shape.dil_h;
      if (h < 0 || h >= shape.H) continue;  // padding: zeros add nothing
      for (int s = 0; s < shape.S; ++s) {
        const int w = q * shape.stride_w - shape.pad_w + s * shape.dil_w;
        if (w < 0 || w >= shape.W) continue;
        sum += image[(c * shape.H + h) * shape.W + w] * filter[(c * shape.R + r) * shape.S + s];
      }
    }
  }
  output[n * shape.output_pitch() + kpq] = sum;
}

void enqueue(const Convolution& conv, cudaStream_t stream) {
  const ConvShape& shape = conv.shape;
  const int64_t blocks_per_image = ceil_div(shape.KPQ(), THREADS);
  launch(conv2d, grid_x(blocks_per_image * shape.N), THREADS, stream, shape,
         static_cast<int>(blocks_per_image), conv.input, conv.filters, conv.output);
  add_bias(conv, stream);
}

CONVLADDER_REGISTER_STAGE({"golf", "as little traffic as can be", enqueue, nullptr, false});

}  // namespace
}  // namespace convladder
