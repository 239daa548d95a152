// Which thread computes which output: a matter of addresses.
#include "common/core/add_bias.h"
#include "common/core/launch.h"
#include "common/core/stage.h"

namespace convladder {
namespace {

constexpr int THREADS = 256;  // per block

__global__ void conv2d(ConvShape shape, int blocks_per_image,
                       const float* __restrict__ input,    // [N,C,H,W]
                       const float* __restrict__ filters,  // [K,C,R,S]
                       float* __restrict__ output) {       // [N,K,P,Q]
  const int n = blockIdx.x / blocks_per_image;
  const int i = blockIdx.x % blocks_per_image * THREADS + threadIdx.x;  // 0 ... K*P*Q - 1
  if (i >= shape.KPQ()) return;
  // ---- your part ----
  // Threads i and i + 1 are neighbours in a warp. Here they are neighbours along p.
  const int p = i % shape.P();
  const int q = i / shape.P() % shape.Q();
  const int k = i / shape.PQ();
  // ---- end of your part ----

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
  output[n * shape.output_pitch() + (k * shape.P() + p) * shape.Q() + q] = sum;
}

void enqueue(const Convolution& conv, cudaStream_t stream) {
  const ConvShape& shape = conv.shape;
  const int64_t blocks_per_image = ceil_div(shape.KPQ(), THREADS);
  launch(conv2d, grid_x(blocks_per_image * shape.N), THREADS, stream, shape,
         static_cast<int>(blocks_per_image), conv.input, conv.filters, conv.output);
  add_bias(conv, stream);
}

CONVLADDER_REGISTER_STAGE({"coalesce", "neighbouring threads, neighbouring addresses", enqueue,
                           nullptr, false});

}  // namespace
}  // namespace convladder
