// Two tiles in turn: the next one is copied while this one is multiplied.
#include "common/core/add_bias.h"
#include "common/core/copy_async.h"
#include "common/core/indexing.h"
#include "common/core/launch.h"
#include "common/core/stage.h"

namespace convladder {
namespace {

constexpr int BM = 16, BN = 16, BK = 16;  // filters, output pixels and taps of a tile
constexpr int THREADS = BM * BN;          // one output each

struct Tile {
  float w[BM][BK], x[BK][BN];
};

__global__ void __launch_bounds__(THREADS) conv2d(ConvShape shape, int blocks_m,
                                                  const float* __restrict__ input,    // [N,C,H,W]
                                                  const float* __restrict__ filters,  // [K,C,R,S]
                                                  float* __restrict__ output) {       // [N,K,P,Q]
  __shared__ Tile slots[2];
  const int k0 = blockIdx.x % blocks_m * BM, tiles = (shape.CRS() + BK - 1) / BK;
  const PixelRange pixels(int64_t{blockIdx.x / blocks_m} * BN, shape);
  const int tx = threadIdx.x % BN, ty = threadIdx.x / BN;  // this thread's pixel, and its filter
  const Pixel at = pixels[tx];
  const bool exists = at.n < shape.N;
  const float* image = input + (exists ? at.n * shape.input_pitch() : 0);
  const int h0 = exists ? at.p * shape.stride_h - shape.pad_h : OUTSIDE;
  const int w0 = at.q * shape.stride_w - shape.pad_w;

  // Begins to copy this thread's two values of tile number `tile`; zeros where there is nothing. Tiles must be
  // asked for one after the other, since `tap` walks along with them.
  TapWalk tap(ty, BK, shape);
  const auto begin_copies = [&](Tile& to, int tile) {
    const int k = k0 + ty, crs = tile * BK + tx;
    const bool in_filter = k < shape.K && crs < shape.CRS();
    copy_async<4>(&to.w[ty][tx], filters + (in_filter ? k * shape.CRS() + crs : 0), in_filter);
    const int h = h0 + tap.r * shape.dil_h, w = w0 + tap.s * shape.dil_w;
    const bool in_image = within(h, shape.H) && within(w, shape.W) && tap.c < shape.C;
    copy_async<4>(&to.x[ty][tx], &image[in_image ? (tap.c * shape.H + h) * shape.W + w : 0],
                  in_image);
    tap.next(shape);
    __pipeline_commit();
  };
  float sum = 0.0f;
  const auto multiply = [&](const Tile& from) {
    for (int i = 0; i < BK; ++i) sum += from.w[ty][i] * from.x[i][tx];
  };

  // ---- your part ----
  // One tile: it is copied, and everybody waits; it is multiplied, and nothing is copied.
  for (int tile = 0; tile < tiles; ++tile) {
    begin_copies(slots[0], tile);
    __pipeline_wait_prior(0);  // this thread's copies are done
    __syncthreads();           // everybody's are
    multiply(slots[0]);
    __syncthreads();  // the tile is read to the end
  }
  // ---- end of your part ----
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

CONVLADDER_REGISTER_STAGE({"double_buffer", "two tiles in turn", enqueue, nullptr, false});

}  // namespace
}  // namespace convladder
