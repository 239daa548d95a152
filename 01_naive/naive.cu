// Stage 01: one thread computes one output, straight from the definition.
//
// Every multiplication fetches both of its operands from global memory: two loads per two FLOP.
// The caches catch most of it, L1's data pipe does not: watch the global load requests.
// What hurts: that pipe has several turns for each multiplication of a warp. Each input value is asked
// for K·R·S/stride² times, each filter value N·P·Q times. Stage 02 turns the same sum into one matrix
// product and lets a library do it.
#include "common/core/add_bias.h"
#include "common/core/launch.h"
#include "common/core/stage.h"

namespace convladder {
namespace {

constexpr int THREADS = 256;  // per block: 8 warps, each 32 neighbouring outputs

__global__ void conv2d_naive(ConvShape shape, int blocks_per_image,
                             const float* __restrict__ input,    // [N,C,H,W]
                             const float* __restrict__ filters,  // [K,C,R,S]
                             float* __restrict__ output) {       // [N,K,P,Q]
  const int n = blockIdx.x / blocks_per_image;
  const int kpq = blockIdx.x % blocks_per_image * THREADS + threadIdx.x;
  if (kpq >= shape.output_pitch()) return;
  const int q = kpq % shape.Q();  // neighbouring threads: neighbouring q
  const int p = kpq / shape.Q() % shape.P();
  const int k = kpq / shape.PQ();  // counts all groups' filters

  const float* image = input + n * shape.input_pitch() + k / shape.K * shape.CHW();
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
  const int64_t blocks_per_image = ceil_div(shape.output_pitch(), THREADS);
  conv2d_naive<<<grid_x(blocks_per_image * shape.N), THREADS, 0, stream>>>(
      shape, static_cast<int>(blocks_per_image), conv.input, conv.filters, conv.output);
  add_bias(conv, stream);
}

CONVLADDER_REGISTER_STAGE({"01_naive", "one thread per output", enqueue, nullptr, false});

}  // namespace
}  // namespace convladder
