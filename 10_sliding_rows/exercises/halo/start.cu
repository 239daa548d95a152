// What the windows of a row share, copied once.
#include "common/core/add_bias.h"
#include "common/core/indexing.h"
#include "common/core/launch.h"
#include "common/core/stage.h"

namespace convladder {
namespace {

constexpr int BQ = 64, BM = 8;  // of a block: neighbouring pixels of one row, and filters
constexpr int BS = 8;           // taps of a row of the filter at a time
constexpr int ROOM = BS * BQ;   // floats of the input in shared memory

// The input at (h,w) of a plane; zero on padding.
__device__ float input_at(const float* plane, int h, int w, const ConvShape& shape) {
  return within(h, shape.H) && within(w, shape.W) ? plane[h * shape.W + w] : 0.0f;
}

__global__ void __launch_bounds__(BQ) conv2d(ConvShape shape, int blocks_m, int blocks_q,
                                             const float* __restrict__ input,    // [N,C,H,W]
                                             const float* __restrict__ filters,  // [K,C,R,S]
                                             float* __restrict__ output) {       // [N,K,P,Q]
  __shared__ float taps[BM][BS];
  __shared__ float x[ROOM];
  const int tid = threadIdx.x, k0 = blockIdx.x % blocks_m * BM;
  const int q0 = blockIdx.x / blocks_m % blocks_q * BQ;
  const int p = blockIdx.x / blocks_m / blocks_q % shape.P();
  const int n = blockIdx.x / blocks_m / blocks_q / shape.P();
  const float* image = input + n * shape.input_pitch();
  const int step = shape.stride_w, dil = shape.dil_w;

  float sum[BM] = {};
  for (int cr = 0; cr < shape.C * shape.R; ++cr) {
    const float* plane = image + cr / shape.R * shape.H * shape.W;
    const int h = p * shape.stride_h - shape.pad_h + cr % shape.R * shape.dil_h;
    for (int s0 = 0; s0 < shape.S; s0 += BS) {
      const int count = min(BS, shape.S - s0);                   // taps s0, s0 + 1, ...
      const int w0 = q0 * step - shape.pad_w + s0 * dil;         // the first pixel's first input
      const int span = (BQ - 1) * step + (count - 1) * dil + 1;  // to the last pixel's last one
      __syncthreads();  // what was there is read to the end
      for (int i = tid; i < BM * BS; i += BQ) {
        const int m = i / BS, s = i % BS;
        const bool exists = k0 + m < shape.K && s < count;
        taps[m][s] =
            exists ? filters[((k0 + m) * shape.C * shape.R + cr) * shape.S + s0 + s] : 0.0f;
      }
      // ---- your part ----
      // Pixel by pixel and tap by tap, as im2col: x[s][pixel].
      (void)span;
      for (int s = 0; s < count; ++s)
        x[s * BQ + tid] = input_at(plane, h, w0 + tid * step + s * dil, shape);
      __syncthreads();  // all is there
      for (int s = 0; s < count; ++s) {
        for (int m = 0; m < BM; ++m) sum[m] += taps[m][s] * x[s * BQ + tid];
      }
      // ---- end of your part ----
    }
  }
  const int q = q0 + tid;
  for (int m = 0; m < BM; ++m) {
    if (q < shape.Q() && k0 + m < shape.K) output[offset({n, p, q}, k0 + m, shape)] = sum[m];
  }
}

void enqueue(const Convolution& conv, cudaStream_t stream) {
  const ConvShape& shape = conv.shape;
  const int blocks_m = static_cast<int>(ceil_div(shape.K, BM));
  const int blocks_q = static_cast<int>(ceil_div(shape.Q(), BQ));
  conv2d<<<grid_x(int64_t{shape.N} * shape.P() * blocks_m * blocks_q), BQ, 0, stream>>>(
      shape, blocks_m, blocks_q, conv.input, conv.filters, conv.output);
  add_bias(conv, stream);
}

CONVLADDER_REGISTER_STAGE({"halo", "inputs of a row copied once", enqueue, nullptr, false});

}  // namespace
}  // namespace convladder
