// Stage 07: stage 06, with filters and offsets put in the order of their use beforehand.
//
// A first kernel turns the filters into tiles, which are then copied 16 bytes at a time, and lists
// where each tap lies in the input, so that no thread counts channels, rows and columns. The list is
// copied, too, two tiles ahead of its use.
// Should drop: copies of the filters, to a quarter; instructions per copy.
// What hurts: stores whose lanes lie four pixels apart, since a thread has four neighbours.
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
  float sum[TM][TN] = {};
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
  UNROLL for (int j = 0; j < TN; ++j) {
    const Pixel out = pixels[tx * 4 + j % 4 + j / 4 * (BN / 2)];
    float* to = output + offset(out, k1, shape);
    UNROLL for (int m = 0; m < TM; ++m) {
      if (out.n < shape.N && k1 + m < block.k_end) to[m * shape.PQ()] = sum[m][j];
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

CONVLADDER_REGISTER_STAGE({"07_packed_filters", "filters in order of use", enqueue, workspace,
                           true});

}  // namespace
}  // namespace convladder
