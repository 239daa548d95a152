// A sum over the lanes of a warp: no shared memory, and no barrier.
#include "common/core/add_bias.h"
#include "common/core/indexing.h"
#include "common/core/launch.h"
#include "common/core/stage.h"

namespace convladder {
namespace {

constexpr int THREADS = 128;          // per block
constexpr unsigned WHOLE_WARP = ~0u;  // a mask with a bit for each lane

// The input under a tap of the window that begins at row h0, column w0; zero on padding.
__device__ float input_at(const float* image, int h0, int w0, const TapWalk& tap,
                          const ConvShape& shape) {
  const int h = h0 + tap.r * shape.dil_h, w = w0 + tap.s * shape.dil_w;
  const bool inside = within(h, shape.H) && within(w, shape.W);
  return inside ? image[(tap.c * shape.H + h) * shape.W + w] : 0.0f;
}

// A warp has 32 neighbouring filters of one pixel.
__global__ void __launch_bounds__(THREADS) conv2d(ConvShape shape, int64_t warps,
                                                  const float* __restrict__ input,    // [N,C,H,W]
                                                  const float* __restrict__ filters,  // [K,C,R,S]
                                                  float* __restrict__ output) {       // [N,K,P,Q]
  const int lane = threadIdx.x % 32, groups = (shape.K + 31) / 32;
  const int64_t warp = int64_t{blockIdx.x} * (THREADS / 32) + threadIdx.x / 32;
  if (warp >= warps) return;
  const int k0 = static_cast<int>(warp % groups) * 32;
  const Pixel at = PixelRange(warp / groups, shape)[0];
  const float* image = input + at.n * shape.input_pitch();
  const int h0 = at.p * shape.stride_h - shape.pad_h, w0 = at.q * shape.stride_w - shape.pad_w;

  // ---- your part ----
  // Each lane has a filter, and adds up all of its taps.
  const int k = k0 + lane;
  float sum = 0.0f;
  TapWalk tap(0, 1, shape);  // tap 0, then the next, and so on
  for (int crs = 0; k < shape.K && crs < shape.CRS(); ++crs) {
    sum += input_at(image, h0, w0, tap, shape) * filters[int64_t{k} * shape.CRS() + crs];
    tap.next(shape);
  }
  if (k < shape.K) output[offset(at, k, shape)] = sum;
  (void)WHOLE_WARP;  // not used yet
  // ---- end of your part ----
}

void enqueue(const Convolution& conv, cudaStream_t stream) {
  const ConvShape& shape = conv.shape;
  const int64_t warps = ceil_div(shape.K, 32) * shape.N * shape.PQ();
  conv2d<<<grid_x(ceil_div(warps, THREADS / 32)), THREADS, 0, stream>>>(shape, warps, conv.input,
                                                                        conv.filters, conv.output);
  add_bias(conv, stream);
}

CONVLADDER_REGISTER_STAGE({"warp_sum", "a sum over a warp", enqueue, nullptr, false});

}  // namespace
}  // namespace convladder
