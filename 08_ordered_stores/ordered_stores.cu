// Stage 08: stage 07, with outputs that go through shared memory, so that a warp stores neighbours.
//
// A thread's sums are twice four pixels of each of TM filters: stored from where they are, the lanes of a
// warp lie four pixels apart, and a store touches four times the sectors it fills. A panel of one
// filter per row of threads is turned at a time, as stage 07 turns the filters.
// Should drop: sectors per store, to a quarter. The tiles are what they were.
// What hurts: rows of a tile that no filter fills, a third of them where there are 64 filters. Stage
// 09 has tiles of three sizes.
#include "common/core/copy_async.h"
#include "common/core/indexing.h"
#include "common/core/launch.h"
#include "common/core/pack.h"
#include "common/core/plan.h"
#include "common/core/stage.h"

namespace convladder {
namespace {

constexpr int TM = 12, TN = 8;            // filters and output pixels per thread
constexpr int BM = 8 * TM, BN = 16 * TN;  // filters and output pixels (any of the N·P·Q) per block
constexpr int BK = 8;                     // filter taps (c,r,s) per tile
constexpr int SLOTS = 3;                  // tiles in shared memory: one is read, the others filled
constexpr int THREADS = BM / TM * (BN / TN);

struct Tile {
  float w[BK][BM], x[BK][BN];
  Tap taps[BK];  // of the tile whose inputs are copied while this one is multiplied
};

__global__ void __launch_bounds__(THREADS, 3)
    conv2d_tiled(ConvShape shape,
                 const float* __restrict__ input,   // [N,C,H,W]
                 const float* __restrict__ packed,  // [rows][tiles * BK][BM]
                 const Tap* __restrict__ taps,      // [tiles * BK + ...]
                 const float* __restrict__ bias,    // [K], or null
                 float* __restrict__ output,        // [N,K,P,Q]
                 bool relu) {
  __shared__ __align__(16) Tile slots[SLOTS];
  __shared__ __align__(16) float panel[BM / TM][BN];
  const int tid = threadIdx.x, tiles = (shape.CRS() + BK - 1) / BK;
  const Block block(blockIdx.x, shape, BM);
  const PixelRange pixels(int64_t{block.column} * BN, shape);

  // What this thread loads of x: all taps of one pixel.
  const Pixel at = pixels[tid];
  const bool exists = at.n < shape.N;
  const int h0 = exists ? at.p * shape.stride_h - shape.pad_h : OUTSIDE;
  const int w0 = at.q * shape.stride_w - shape.pad_w;
  input += block.group * shape.CHW();
  const float* corner = exists ? input + at.n * shape.input_pitch() + h0 * shape.W + w0 : packed;
  packed += int64_t{block.row} * BM * tiles * BK + tid * 4;
  if (tid < (SLOTS - 1) * BK) slots[1 + tid / BK].taps[tid % BK] = taps[tid];  // of the first tiles

  const int tx = tid % (BN / TN), ty = tid / (BN / TN);
  __align__(16) float sum[TM][TN] = {};
  Tile* slot = slots;
  for (int tile = 1 - SLOTS; tile < tiles; ++tile) {
    __pipeline_wait_prior(SLOTS - 2);  // this thread's copies of this tile are done
    __syncthreads();                   // everybody's are, and the tile before is read to the end
    const bool more = tile + SLOTS - 1 < tiles;
    Tile* const next = slot == &slots[SLOTS - 1] ? slots : slot + 1;  // the oldest tile
    UNROLL for (int i = 0; i < BM * BK; i += THREADS * 4) {
      if (i + tid * 4 < BM * BK) copy_async<16>(slot->w[0] + tid * 4 + i, packed + i, more);
    }
    Tap tap[BK];  // all of them first: none is read while copies begin
    UNROLL for (int i = 0; i < BK; ++i) tap[i] = next->taps[i];
    UNROLL for (int i = 0; i < BK; ++i) {
      const bool inside = within(h0 + tap[i].h, shape.H) & within(w0 + tap[i].w, shape.W);
      copy_async<4>(&slot->x[i][tid], corner + tap[i].offset, inside);
    }
    if (tid < BK) copy_async<16>(&slot->taps[tid], &taps[(tile + 2 * SLOTS - 2) * BK + tid]);
    packed += BM * BK;
    __pipeline_commit();
    slot = next;
    if (tile < 0) continue;
    UNROLL for (int i = 0; i < BK; ++i) {
      __align__(16) float w[TM], x[TN];
      UNROLL for (int m = 0; m < TM; m += 4) vec4(w + m) = vec4(&slot->w[i][ty * TM + m]);
      UNROLL for (int j = 0; j < TN; j += 4) vec4(x + j) = vec4(&slot->x[i][tx * 4 + j * (BN / 8)]);
      UNROLL for (int m = 0; m < TM; ++m) {
        UNROLL for (int t = 0; t < TN; ++t) {
          const int j = m % 2 ? TN - 1 - t : t;  // to and fro: the last x is the next one, too
          sum[m][j] += w[m] * x[j];
        }
      }
    }
  }
  __pipeline_wait_prior(0);  // no copy is left under way when the block ends

  const int k1 = block.k0 + ty * TM;
  UNROLL for (int m = 0; m < TM; ++m) {
    const float b = bias && k1 + m < block.k_end ? bias[k1 + m] : 0.0f;
    UNROLL for (int j = 0; j < TN; ++j) {
      sum[m][j] += b;
      if (relu && sum[m][j] < 0.0f) sum[m][j] = 0.0f;  // false for NaN, which stays
    }
  }
  const Pixel out = pixels[tid];
  const bool is_output = out.n < shape.N;
  const int64_t PQ = shape.PQ();
  UNROLL for (int m = 0; m < TM; ++m) {
    __syncthreads();  // the panel before is read to the end
    UNROLL for (int j = 0; j < TN; j += 4) vec4(&panel[ty][tx * 4 + j * (BN / 8)]) =
        vec4(&sum[m][j]);
    __syncthreads();  // this panel is complete
    float* to = output + offset(out, block.k0 + m, shape);
    UNROLL for (int i = 0; i < BM / TM; ++i, to += TM * PQ) {
      if (is_output & (block.k0 + i * TM + m < block.k_end)) *to = panel[i][tid];
    }
  }
}

std::size_t workspace(const ConvShape& shape, std::size_t) {
  return Packed(shape, BM, BK, nullptr).bytes;
}

void enqueue(const Convolution& conv, cudaStream_t stream) {
  const ConvShape& shape = conv.shape;
  const Packed to(shape, BM, BK, conv.workspace);
  pack<BM><<<to.blocks, dim3(32, 32), 0, stream>>>(shape, conv.filters, to);
  conv2d_tiled<<<tile_grid(shape, BM, BN), THREADS, 0, stream>>>(
      shape, conv.input, to.filters, to.taps, conv.bias, conv.output, conv.relu);
}

CONVLADDER_REGISTER_STAGE({"08_ordered_stores", "neighbours stored together", enqueue, workspace,
                           true});

}  // namespace
}  // namespace convladder
