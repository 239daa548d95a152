// Many threads, one sum: atomicAdd(), and how few of them are enough.
#include "common/core/add_bias.h"
#include "common/core/indexing.h"
#include "common/core/launch.h"
#include "common/core/stage.h"

namespace convladder {
namespace {

constexpr int THREADS = 64;           // of a block, for one output
constexpr unsigned WHOLE_WARP = ~0u;  // a mask with a bit for each lane

// Tap crs = (c,r,s) of the window that begins at row h0, column w0; zero on padding.
__device__ float input_at(const float* image, int h0, int w0, int crs, const ConvShape& shape) {
  const Tap tap = tap_at(crs, shape);
  const bool inside = within(h0 + tap.h, shape.H) && within(w0 + tap.w, shape.W);
  return inside ? image[h0 * shape.W + w0 + tap.offset] : 0.0f;
}

// Before: every output is 0.
__global__ void clear(int64_t count, float* __restrict__ output) {
  const int64_t i = int64_t{blockIdx.x} * THREADS + threadIdx.x;
  if (i < count) output[i] = 0.0f;
}

__global__ void __launch_bounds__(THREADS) conv2d(ConvShape shape,
                                                  const float* __restrict__ input,    // [N,C,H,W]
                                                  const float* __restrict__ filters,  // [K,C,R,S]
                                                  float* __restrict__ output) {       // [N,K,P,Q]
  const int tid = threadIdx.x, k = blockIdx.x % shape.K;
  const Pixel at = PixelRange(blockIdx.x / shape.K, shape)[0];
  const float* image = input + at.n * shape.input_pitch();
  const float* filter = filters + int64_t{k} * shape.CRS();
  const int h0 = at.p * shape.stride_h - shape.pad_h, w0 = at.q * shape.stride_w - shape.pad_w;
  float* const to = output + offset(at, k, shape);
  // ---- your part ----
  // A thread has every 64th tap, and adds each product where the output lies. Two threads may do so at a time.
  for (int crs = tid; crs < shape.CRS(); crs += THREADS) {
    atomicAdd(to, filter[crs] * input_at(image, h0, w0, crs, shape));
  }
  (void)WHOLE_WARP;  // not used yet
  // ---- end of your part ----
}

void enqueue(const Convolution& conv, cudaStream_t stream) {
  const ConvShape& shape = conv.shape;
  const int64_t outputs = shape.N * shape.output_pitch();
  clear<<<grid_x(ceil_div(outputs, THREADS)), THREADS, 0, stream>>>(outputs, conv.output);
  conv2d<<<grid_x(outputs), THREADS, 0, stream>>>(shape, conv.input, conv.filters, conv.output);
  add_bias(conv, stream);
}

CONVLADDER_REGISTER_STAGE({"atomics", "sums of many threads", enqueue, nullptr, false});

}  // namespace
}  // namespace convladder
