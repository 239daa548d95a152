// A tile in shared memory: fetched once, used by 32 threads.
#include "common/core/add_bias.h"
#include "common/core/indexing.h"
#include "common/core/launch.h"
#include "common/core/stage.h"

namespace convladder {
namespace {

constexpr int BM = 32, BN = 32, BK = 32;  // filters, output pixels and taps of a tile
constexpr int THREADS = BM * BN;          // one output each

// Tap crs = (c,r,s) of filter k; zero where there is none.
__device__ float filter_at(const float* filters, int k, int crs, const ConvShape& shape) {
  const bool exists = k < shape.K && crs < shape.CRS();
  return exists ? filters[k * shape.CRS() + crs] : 0.0f;
}

// The input of `image` under tap crs of the window that begins at row h0, column w0; zero on padding.
__device__ float input_at(const float* image, int h0, int w0, int crs, const ConvShape& shape) {
  const Tap tap = tap_at(crs, shape);
  const bool inside = within(h0 + tap.h, shape.H) && within(w0 + tap.w, shape.W);
  return inside ? image[h0 * shape.W + w0 + tap.offset] : 0.0f;
}

__global__ void __launch_bounds__(THREADS) conv2d(ConvShape shape, int blocks_m,
                                                  const float* __restrict__ input,    // [N,C,H,W]
                                                  const float* __restrict__ filters,  // [K,C,R,S]
                                                  float* __restrict__ output) {       // [N,K,P,Q]
  __shared__ __align__(16) float w_tile[BM][BK];
  __shared__ __align__(16) float x_tile[BK][BN];
  const int k0 = blockIdx.x % blocks_m * BM;
  const PixelRange pixels(int64_t{blockIdx.x / blocks_m} * BN, shape);
  const int tx = threadIdx.x % BN, ty = threadIdx.x / BN;  // this thread's pixel, and its filter
  const Pixel at = pixels[tx];
  const bool exists = at.n < shape.N;
  const float* image = input + (exists ? at.n * shape.input_pitch() : 0);
  const int h0 = exists ? at.p * shape.stride_h - shape.pad_h : OUTSIDE;
  const int w0 = at.q * shape.stride_w - shape.pad_w;

  float sum = 0.0f;
  for (int crs = 0; crs < shape.CRS(); crs += BK) {
    // ---- your part ----
    // Every thread fetches 32 taps and 32 inputs itself; the tiles are not used.
    UNROLL_BY(4) for (int i = 0; i < BK; ++i) {
      sum += filter_at(filters, k0 + ty, crs + i, shape) * input_at(image, h0, w0, crs + i, shape);
    }
    (void)w_tile, (void)x_tile;
    // ---- end of your part ----
  }
  if (exists && k0 + ty < shape.K) output[offset(at, k0 + ty, shape)] = sum;
}

void enqueue(const Convolution& conv, cudaStream_t stream) {
  const ConvShape& shape = conv.shape;
  const int blocks_m = static_cast<int>(ceil_div(shape.K, BM));
  const int64_t blocks_n = ceil_div(int64_t{shape.N} * shape.PQ(), BN);
  conv2d<<<grid_x(blocks_m * blocks_n), THREADS, 0, stream>>>(shape, blocks_m, conv.input,
                                                              conv.filters, conv.output);
  add_bias(conv, stream);
}

CONVLADDER_REGISTER_STAGE({"tile", "tiles in shared memory", enqueue, nullptr, false});

}  // namespace
}  // namespace convladder
