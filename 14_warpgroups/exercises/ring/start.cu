// Phases: warps that copy ahead of those that multiply, as far as there are slots.
#include "common/core/add_bias.h"
#include "common/core/copy_async.h"
#include "common/core/hopper.h"
#include "common/core/indexing.h"
#include "common/core/launch.h"
#include "common/core/stage.h"

namespace convladder {
namespace {

constexpr int BM = 8, BN = 128, BK = 16;           // filters, output pixels and taps of a tile
constexpr int MULTIPLYING = BN, THREADS = 2 * BN;  // the other half copies

struct Tile {
  float w[BK][BM], x[BK][BN];
};

__global__ void __launch_bounds__(THREADS) conv2d(ConvShape shape, int blocks_m,
                                                  const float* __restrict__ input,    // [N,C,H,W]
                                                  const float* __restrict__ filters,  // [K,C,R,S]
                                                  float* __restrict__ output) {       // [N,K,P,Q]
  const int k0 = blockIdx.x % blocks_m * BM, tiles = (shape.CRS() + BK - 1) / BK;
  const PixelRange pixels(int64_t{blockIdx.x / blocks_m} * BN, shape);
  const int tid = threadIdx.x, column = tid % BN;  // a pixel of the tile
  const Pixel at = pixels[column];
  const bool exists = at.n < shape.N;
  const float* image = input + (exists ? at.n * shape.input_pitch() : 0);
  const int h0 = exists ? at.p * shape.stride_h - shape.pad_h : OUTSIDE;
  const int w0 = at.q * shape.stride_w - shape.pad_w;

  // Begins to copy this thread's part of a tile: two values of the filters, and all taps of its pixel. Tiles
  // must come one after the other, since `tap` walks along with them.
  TapWalk tap(0, 1, shape);
  const auto copy = [&](Tile& to, int tile) {
    for (int i = column; i < BK * BM; i += BN) {
      const int k = k0 + i / BK, crs = tile * BK + i % BK;
      const bool inside = k < shape.K && crs < shape.CRS();
      copy_async<4>(&to.w[i % BK][i / BK], &filters[inside ? k * shape.CRS() + crs : 0], inside);
    }
    for (int i = 0; i < BK; ++i) {
      const int h = h0 + tap.r * shape.dil_h, w = w0 + tap.s * shape.dil_w;
      const bool inside = within(h, shape.H) && within(w, shape.W) && tap.c < shape.C;
      copy_async<4>(&to.x[i][column], &image[inside ? (tap.c * shape.H + h) * shape.W + w : 0],
                    inside);
      tap.next(shape);
    }
  };
  float sum[BM] = {};
  const auto multiply_tile = [&](const Tile& from) {
    for (int i = 0; i < BK; ++i) {
      UNROLL for (int m = 0; m < BM; ++m) sum[m] += from.w[i][m] * from.x[i][column];
    }
  };

  // ---- your part ----
  // All tiles go through one slot: it is filled, read, and filled again.
  __shared__ Tile slot;
  __shared__ Barrier full, empty;  // a phase ends when the slot is filled; when it is read
  if (tid == 0) init_barrier(&full, BN), init_barrier(&empty, MULTIPLYING), start_barriers();
  __syncthreads();  // the barriers are ready
  if (tid >= MULTIPLYING) {
    for (int tile = 0; tile < tiles; ++tile) {
      wait(&empty, tile % 2 ^ 1);  // tile - 1 is read
      copy(slot, tile);
      arrive_when_copied(&full);  // as soon as what this thread copies is there
    }
    return;
  }
  for (int tile = 0; tile < tiles; ++tile) {
    wait(&full, tile % 2);  // the tile is there
    multiply_tile(slot);
    arrive(&empty);
  }
  // ---- end of your part ----
  UNROLL for (int m = 0; m < BM; ++m) {
    if (exists && k0 + m < shape.K) output[offset(at, k0 + m, shape)] = sum[m];
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

CONVLADDER_REGISTER_STAGE({"ring", "tiles through slots", enqueue, nullptr, false, FP32, false,
                           90});

}  // namespace
}  // namespace convladder
