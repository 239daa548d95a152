// What a descriptor addresses: a tile as wgmma reads it, rows of 128 bytes, swizzled.
#include "common/core/add_bias.h"
#include "common/core/hopper.h"
#include "common/core/indexing.h"
#include "common/core/launch.h"
#include "common/core/mma.h"
#include "common/core/stage.h"

namespace convladder {
namespace {

constexpr int BM = 64, BN = 64, BK = 32;  // filters, output pixels and taps of a tile
constexpr int THREADS = 128;              // a warpgroup

// What ordinary stores have written is seen by the tensor cores, which read shared memory by another way.
__device__ void show_stores() { asm volatile("fence.proxy.async;" ::: "memory"); }

// ---- your part ----
// Where number k of a row lies in a tile. A row has BK numbers, 128 bytes.
__device__ int place(int row, int k) { return row * BK + k; }

// sum += x * w for the 64 pixels (rows of x) and 64 filters (rows of w), a thread's sums as wgmma deals them out.
__device__ void multiply_tile(float* sum, const float* x, const float* w) {
  const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4, col = lane % 4;
  for (int k = 0; k < BK; ++k) {
    const float of_pixel[2] = {x[place(row, k)], x[place(row + 8, k)]};
    UNROLL for (int filter = 0; filter < BM / 4; ++filter) {  // each of two pixels
      const float of_filter = w[place(filter / 2 * 8 + col * 2 + filter % 2, k)];
      const int j = filter / 2 * 4 + filter % 2;
      sum[j] += of_pixel[0] * of_filter;
      sum[j + 2] += of_pixel[1] * of_filter;
    }
  }
}
// ---- end of your part ----

__global__ void __launch_bounds__(THREADS) conv2d(ConvShape shape, int blocks_m,
                                                  const float* __restrict__ input,    // [N,C,H,W]
                                                  const float* __restrict__ filters,  // [K,C,R,S]
                                                  float* __restrict__ output) {       // [N,K,P,Q]
  __shared__ __align__(1024) float x[BN * BK];
  __shared__ __align__(1024) float w[BM * BK];
  const int k0 = blockIdx.x % blocks_m * BM, tid = threadIdx.x;
  const PixelRange pixels(int64_t{blockIdx.x / blocks_m} * BN, shape);
  const int column = tid % BN;  // the pixel of which this thread loads taps
  const Pixel at = pixels[column];
  const bool exists = at.n < shape.N;
  const float* image = input + (exists ? at.n * shape.input_pitch() : 0);
  const int h0 = exists ? at.p * shape.stride_h - shape.pad_h : OUTSIDE;
  const int w0 = at.q * shape.stride_w - shape.pad_w;
  TapWalk tap(tid / BN, THREADS / BN, shape);

  float sum[BM / 2] = {};
  for (int crs = 0; crs < shape.CRS(); crs += BK) {
    for (int k = tid / BN; k < BK; k += THREADS / BN) {
      const int h = h0 + tap.r * shape.dil_h, w = w0 + tap.s * shape.dil_w;
      const bool inside = within(h, shape.H) && within(w, shape.W) && tap.c < shape.C;
      x[place(column, k)] = to_tf32(inside ? image[(tap.c * shape.H + h) * shape.W + w] : 0.0f);
      tap.next(shape);
    }
    for (int i = tid; i < BM * BK; i += THREADS) {
      const int m = i / BK, k = i % BK;
      const bool inside = k0 + m < shape.K && crs + k < shape.CRS();
      w[place(m, k)] = to_tf32(inside ? filters[(k0 + m) * shape.CRS() + crs + k] : 0.0f);
    }
    show_stores();
    __syncthreads();  // the tiles are complete
    multiply_tile(sum, x, w);
    __syncthreads();  // the tiles are read to the end
  }
  const int lane = tid % 32, row = tid / 32 * 16 + lane / 4, col = lane % 4;
  UNROLL for (int j = 0; j < BM / 2; ++j) {
    const Pixel to = pixels[row + j / 2 % 2 * 8];
    const int k = k0 + j / 4 * 8 + col * 2 + j % 2;
    if (to.n < shape.N && k < shape.K) output[offset(to, k, shape)] = sum[j];
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

CONVLADDER_REGISTER_STAGE({"descriptor", "products by a warpgroup", enqueue, nullptr, false, TF32,
                           true, 90});

}  // namespace
}  // namespace convladder
