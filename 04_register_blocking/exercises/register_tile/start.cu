// A tile of outputs in registers: few values read for many products.
#include "common/core/add_bias.h"
#include "common/core/indexing.h"
#include "common/core/launch.h"
#include "common/core/stage.h"

namespace convladder {
namespace {

// ---- your part ----
constexpr int TM = 1, TN = 1;  // filters and output pixels per thread

// The products of one tap. `w` points at this thread's TM filters, `x` at its TN pixels, in shared memory.
__device__ void multiply(float (&sum)[TM][TN], const float* w, const float* x) {
  sum[0][0] += w[0] * x[0];
}
// ---- end of your part ----

constexpr int BM = 16 * TM, BN = 16 * TN;  // filters and output pixels per block
constexpr int BK = 8;                      // taps of a tile
constexpr int THREADS = BM / TM * (BN / TN);

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
  __shared__ __align__(16) float w_tile[BK][BM + 4];
  __shared__ __align__(16) float x_tile[BK][BN];
  const int tid = threadIdx.x, k0 = blockIdx.x % blocks_m * BM;
  const PixelRange pixels(int64_t{blockIdx.x / blocks_m} * BN, shape);
  const int row = tid / BN, col = tid % BN;  // this thread fetches inputs of pixel col
  const Pixel at = pixels[col];
  const bool exists = at.n < shape.N;
  const float* image = input + (exists ? at.n * shape.input_pitch() : 0);
  const int h0 = exists ? at.p * shape.stride_h - shape.pad_h : OUTSIDE;
  const int w0 = at.q * shape.stride_w - shape.pad_w;

  const int tx = tid % (BN / TN), ty = tid / (BN / TN);  // its TN pixels, and its TM filters
  __align__(16) float sum[TM][TN] = {};
  for (int crs = 0; crs < shape.CRS(); crs += BK) {
    for (int i = tid; i < BM * BK; i += THREADS) {
      w_tile[i % BK][i / BK] = filter_at(filters, k0 + i / BK, crs + i % BK, shape);
    }
    for (int i = row; i < BK; i += THREADS / BN) {
      x_tile[i][col] = input_at(image, h0, w0, crs + i, shape);
    }
    __syncthreads();  // the tiles are complete
    UNROLL for (int i = 0; i < BK; ++i) multiply(sum, &w_tile[i][ty * TM], &x_tile[i][tx * TN]);
    __syncthreads();  // the tiles are read to the end
  }
  for (int m = 0; m < TM; ++m) {
    for (int j = 0; j < TN; ++j) {
      const Pixel out = pixels[tx * TN + j];
      const int k = k0 + ty * TM + m;
      if (out.n < shape.N && k < shape.K) output[offset(out, k, shape)] = sum[m][j];
    }
  }
}

void enqueue(const Convolution& conv, cudaStream_t stream) {
  const ConvShape& shape = conv.shape;
  const int blocks_m = static_cast<int>(ceil_div(shape.K, BM));
  const int64_t blocks_n = ceil_div(int64_t{shape.N} * shape.PQ(), BN);
  conv2d<<<grid_x(blocks_m * blocks_n), THREADS, 0, stream>>>(shape, blocks_m, conv.input,
                                                              conv.filters, conv.output);
  add_bias(conv, stream);
}

CONVLADDER_REGISTER_STAGE({"register_tile", "a tile of outputs per thread", enqueue, nullptr,
                           false});

}  // namespace
}  // namespace convladder
