// A product of two small matrices by a whole warp: which lane holds what of them.
#include "common/core/add_bias.h"
#include "common/core/indexing.h"
#include "common/core/launch.h"
#include "common/core/mma.h"
#include "common/core/stage.h"

namespace convladder {
namespace {

constexpr int BM = 16, BN = 8, BK = 8;  // filters, output pixels and taps of a product
constexpr int WARP = 32;                // threads of a block: one warp

// Tap crs = (c,r,s) of filter k; zero where there is none.
__device__ float filter_at(const float* filters, int k, int crs, const ConvShape& shape) {
  const bool exists = k < shape.K && crs < shape.CRS();
  return exists ? filters[k * shape.CRS() + crs] : 0.0f;
}

// The input under tap crs of the window of pixel `at`; zero on padding, and where there is none.
__device__ float input_at(const float* input, const Pixel& at, int crs, const ConvShape& shape) {
  const Tap tap = tap_at(crs, shape);
  const int h0 = at.p * shape.stride_h - shape.pad_h, w0 = at.q * shape.stride_w - shape.pad_w;
  const bool inside = within(h0 + tap.h, shape.H) && within(w0 + tap.w, shape.W);
  if (at.n >= shape.N || !inside) return 0.0f;
  return input[at.n * shape.input_pitch() + h0 * shape.W + w0 + tap.offset];
}

// sum += a * b by the tensor core: filters [16 x 8] and input [8 x 8], each lane's parts of them. All
// lanes must come here together. As good as FP32, as in stage 13: factors cut in two, three products,
// and only 8 taps of a sum inside of the tensor core.
__device__ void multiply_add(float (&sum)[4], const float (&a)[4], const float (&b)[2]) {
  float a_high[4], a_low[4], b_high[2], b_low[2], eight[4] = {};
  UNROLL for (int i = 0; i < 4; ++i) a_high[i] = to_tf32(a[i]),
                                     a_low[i] = to_tf32(a[i] - a_high[i]);
  UNROLL for (int i = 0; i < 2; ++i) b_high[i] = to_tf32(b[i]),
                                     b_low[i] = to_tf32(b[i] - b_high[i]);
  mma_tf32(eight, eight + 2, a_low, b_high);
  mma_tf32(eight, eight + 2, a_high, b_low);
  mma_tf32(eight, eight + 2, a_high, b_high);
  UNROLL for (int i = 0; i < 4; ++i) sum[i] += eight[i];
}

__global__ void __launch_bounds__(WARP) conv2d(ConvShape shape, int blocks_m,
                                               const float* __restrict__ input,    // [N,C,H,W]
                                               const float* __restrict__ filters,  // [K,C,R,S]
                                               float* __restrict__ output) {       // [N,K,P,Q]
  const int lane = threadIdx.x, k0 = blockIdx.x % blocks_m * BM;
  const PixelRange pixels(int64_t{blockIdx.x / blocks_m} * BN, shape);
  float sum[4] = {};
  // ---- your part ----
  // Without the tensor core: one filter and four neighbouring pixels to each lane, tap by tap.
  const int k = k0 + lane / 2, first = lane % 2 * 4;
  for (int crs = 0; crs < shape.CRS(); ++crs) {
    const float w = filter_at(filters, k, crs, shape);
    UNROLL for (int i = 0; i < 4; ++i) sum[i] += w * input_at(input, pixels[first + i], crs, shape);
  }
  UNROLL for (int i = 0; i < 4; ++i) {
    const Pixel at = pixels[first + i];
    if (at.n < shape.N && k < shape.K) output[offset(at, k, shape)] = sum[i];
  }
  // ---- end of your part ----
}

void enqueue(const Convolution& conv, cudaStream_t stream) {
  const ConvShape& shape = conv.shape;
  const int blocks_m = static_cast<int>(ceil_div(shape.K, BM));
  const int64_t blocks_n = ceil_div(int64_t{shape.N} * shape.PQ(), BN);
  conv2d<<<grid_x(blocks_m * blocks_n), WARP, 0, stream>>>(shape, blocks_m, conv.input,
                                                           conv.filters, conv.output);
  add_bias(conv, stream);
}

CONVLADDER_REGISTER_STAGE({"fragment", "products by a warp", enqueue, nullptr, false});

}  // namespace
}  // namespace convladder
