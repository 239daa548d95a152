// Stage 04: stage 03's tiles, but each thread holds a TM x TN tile of outputs in registers.
//
// TM + TN values read from shared memory now serve TM·TN multiplications instead of one. Three tiles
// lie in shared memory at a time: while one is multiplied, asynchronous copies fill the other two,
// so that arithmetic covers the latency of global memory. The filters are put in tile order first.
// Should drop: values read from shared memory per multiplication, from 2 to (TM + TN) / (TM·TN).
// What hurts: one copy instruction per input value, stores in runs of four outputs (4x the sectors
// where they cannot be 16 bytes wide), and the bias, which still takes a pass of its own.
#include <cuda_pipeline.h>

#include "common/core/add_bias.h"
#include "common/core/filter_tiles.h"
#include "common/core/indexing.h"
#include "common/core/launch.h"
#include "common/core/stage.h"

namespace convladder {
namespace {

constexpr int THREADS_N = 16;  // threads across the pixels
constexpr int THREADS_M = 8;   // threads across the filters
constexpr int THREADS = THREADS_M * THREADS_N;
constexpr int TN = 8;               // pixels per thread: 4, and 4 more BN/2 further on
constexpr int BN = THREADS_N * TN;  // output pixels per block, any of the N·P·Q
constexpr int BK = 8;               // filter taps (c,r,s) per tile
constexpr int SLOTS = 3;            // tiles in shared memory
static_assert(THREADS == BN, "each thread copies the taps of one pixel");

// TM: filters per thread, whose registers allow 3, 4 or 5 blocks per multiprocessor.
template <int TM>
__global__ void __launch_bounds__(THREADS, 3 + 8 / TM)
    conv2d_register_blocking(ConvShape shape, int blocks_m, int padded_CRS,
                             const float* __restrict__ input,     // [N,C,H,W]
                             const float* __restrict__ filters,   // [blocks_m][padded_CRS][BM]
                             const FilterRow* __restrict__ taps,  // [padded_CRS]
                             float* __restrict__ output,          // [N,K,P,Q]
                             bool vector_stores) {
  constexpr int BM = THREADS_M * TM;  // filters per block
  __shared__ __align__(16) float w_tile[SLOTS][BK][BM];
  __shared__ __align__(16) float x_tile[SLOTS][BK][BN];
  const int tid = threadIdx.x, block_m = blockIdx.x % blocks_m, k0 = block_m * BM;
  const PixelRange pixels(int64_t{blockIdx.x / blocks_m} * BN, shape.P(), shape.Q());

  // What this thread copies: some 16-byte pieces of the filters, and all taps of one pixel.
  const Pixel at = pixels[tid];
  const bool exists = at.n < shape.N;
  const int h0 = exists ? at.p * shape.stride_h - shape.pad_h : OUTSIDE;
  const int w0 = at.q * shape.stride_w - shape.pad_w;
  const float* corner = zeros;
  if (exists) corner = input + at.n * int64_t{shape.CHW()} + (h0 * shape.W + w0);
  const float* w_from = filters + int64_t{block_m} * padded_CRS * BM + tid * 4;
  const auto copy_tile = [&](int slot) {
    UNROLL for (int i = 0; i < BK * BM; i += THREADS * 4) {
      float* to = &w_tile[slot][0][0] + i + tid * 4;
      if (i + tid * 4 < BK * BM) __pipeline_memcpy_async(to, w_from + i, 16);
    }
    UNROLL for (int i = 0; i < BK; ++i) {
      const FilterRow tap = taps[i];
      const bool inside = within(h0 + tap.h, shape.H) & within(w0 + tap.w, shape.W);
      __pipeline_memcpy_async(&x_tile[slot][i][tid], inside ? corner + tap.offset : zeros, 4);
    }
    w_from += BK * BM, taps += BK;
  };

  const int tx = tid % THREADS_N, ty = tid / THREADS_N, tiles = padded_CRS / BK;
  __align__(16) float sum[TM][TN] = {};
  for (int tile = 0; tile < SLOTS - 1; ++tile) {
    if (tile < tiles) copy_tile(tile);
    __pipeline_commit();
  }
  for (int tile = 0, slot = 0; tile < tiles; ++tile, slot = slot == SLOTS - 1 ? 0 : slot + 1) {
    __pipeline_wait_prior(SLOTS - 2);
    __syncthreads();  // this tile is complete, and the one before is read to the end
    if (tile + SLOTS - 1 < tiles) copy_tile(slot == 0 ? SLOTS - 1 : slot - 1);
    __pipeline_commit();
    UNROLL for (int i = 0; i < BK; ++i) {
      __align__(16) float w[TM], x[TN];
      UNROLL for (int m = 0; m < TM; m += 4) { vec4(w + m) = vec4(&w_tile[slot][i][ty * TM + m]); }
      UNROLL for (int j = 0; j < TN; j += 4) {
        vec4(x + j) = vec4(&x_tile[slot][i][tx * 4 + j / 4 * (BN / 2)]);
      }
      UNROLL for (int m = 0; m < TM; ++m) {
        UNROLL for (int j = 0; j < TN; ++j) sum[m][j] += w[m] * x[j];
      }
    }
  }

  const int k1 = k0 + ty * TM;
  const int64_t PQ = shape.PQ();
  UNROLL for (int j = 0; j < TN; ++j) {
    const Pixel out = pixels[tx * 4 + j % 4 + j / 4 * (BN / 2)];
    if (out.n >= shape.N || (vector_stores && j % 4 != 0)) continue;
    float* to = output + (int64_t{out.n} * shape.K + k1) * PQ + out.p * shape.Q() + out.q;
    UNROLL for (int m = 0; m < TM; ++m, to += PQ) {
      if (k1 + m >= shape.K) continue;
      if (vector_stores) {
        vec4(to) = vec4(&sum[m][j / 4 * 4]);
      } else {
        *to = sum[m][j];
      }
    }
  }
}

void enqueue(const Convolution& conv, cudaStream_t stream) {
  const ConvShape& shape = conv.shape;
  const bool vector_stores = planes_are_aligned(conv.output, shape.PQ());
  const int64_t blocks_n = ceil_div(int64_t{shape.N} * shape.PQ(), BN);
  choose_filters_per_thread(blocks_n, shape.K, [&](auto tm) {
    const FilterTiles w = arrange_filters(conv, THREADS_M * tm(), BK, 1, stream);
    launch(conv2d_register_blocking<tm()>, grid_x(blocks_n * w.blocks_m), THREADS, stream, shape,
           w.blocks_m, w.padded_CRS, conv.input, w.filters, w.rows, conv.output, vector_stores);
  });
  add_bias(conv, stream);
}

CONVLADDER_REGISTER_STAGE({"04_register_blocking", "a tile of outputs per thread", enqueue,
                           filter_tiles_workspace, false});

}  // namespace
}  // namespace convladder
