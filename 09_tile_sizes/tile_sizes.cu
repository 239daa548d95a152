// Stage 09: stage 08, with tiles of three sizes, of which the problem chooses one.
//
// A tile's rows of filters that do not exist are multiplied all the same: of 96 rows, 64 filters leave
// a third empty. So TM is compiled as 8, 12 and 16. Blocks run in waves, as many at a time as the GPU
// has room for, and the last wave is seldom full: the size is taken that by an estimate (plan.h) leaves
// the busiest multiprocessor the least to do.
// Should drop: multiplications by nothing; the time of a last wave that is nearly empty.
// What hurts: a copy of 4 bytes for each tap of each pixel, though neighbouring taps want nearly the
// same pixels. Stage 10 copies those once.
#include "common/core/copy_async.h"
#include "common/core/indexing.h"
#include "common/core/launch.h"
#include "common/core/pack.h"
#include "common/core/plan.h"
#include "common/core/stage.h"

namespace convladder {
namespace {

constexpr int TN = 8, BN = 16 * TN;  // output pixels (any of the N·P·Q) per thread and block
constexpr int RUN = 4;               // filters of a thread that are neighbours, as in one read
constexpr int BK = 8;                // filter taps (c,r,s) per tile
constexpr int SLOTS = 3;             // tiles in shared memory: one is read, the others filled
constexpr int THREADS = 8 * (BN / TN);

template <int BM>  // filters per block
struct Tiles {
  static constexpr int W = BM * BK;  // so many values of the filters
  float w[BK][BM], x[BK][BN];
  Tap taps[BK];  // of the tile whose inputs are copied while this one is multiplied
};

// As many as have room for TM x TN sums in each thread's registers.
constexpr int blocks_per_sm(int TM) { return TM <= 8 ? 4 : TM == 12 ? 3 : 2; }

template <int TM>  // filters per thread
__global__ void __launch_bounds__(THREADS, blocks_per_sm(TM))
    conv2d_tiled(ConvShape shape,
                 const float* __restrict__ input,   // [N,C,H,W]
                 const float* __restrict__ packed,  // [rows][tiles * BK][BM]
                 const Tap* __restrict__ taps,      // [tiles * BK + ...]
                 const float* __restrict__ bias,    // [K], or null
                 float* __restrict__ output,        // [N,K,P,Q]
                 bool relu) {
  constexpr int BM = 8 * TM;
  using Tile = Tiles<BM>;
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
  packed += int64_t{block.row} * tiles * Tile::W + tid * 4;
  if (tid < (SLOTS - 1) * BK) slots[1 + tid / BK].taps[tid % BK] = taps[tid];  // of the first tiles

  const int tx = tid % (BN / TN), ty = tid / (BN / TN);
  __align__(16) float sum[TM][TN] = {};
  Tile* slot = slots;
  for (int tile = 1 - SLOTS; tile < tiles; ++tile) {
    __pipeline_wait_prior(SLOTS - 2);  // this thread's copies of this tile are done
    __syncthreads();                   // everybody's are, and the tile before is read to the end
    const bool more = tile + SLOTS - 1 < tiles;
    Tile* const next = slot == &slots[SLOTS - 1] ? slots : slot + 1;  // the oldest tile
    Tap tap[BK];  // all of them first: none is read while copies begin
    UNROLL for (int i = 0; i < BK; ++i) tap[i] = next->taps[i];
    UNROLL for (int i = 0; i < BK; ++i) {
      const bool inside = within(h0 + tap[i].h, shape.H) & within(w0 + tap[i].w, shape.W);
      copy_async<4>(&slot->x[i][tid], corner + tap[i].offset, inside);
    }
    UNROLL for (int i = 0; i < Tile::W; i += THREADS * 4) {
      if (i + tid * 4 < Tile::W) copy_async<16>(slot->w[0] + tid * 4 + i, packed + i, more);
    }
    if (tid < BK) copy_async<16>(&slot->taps[tid], &taps[(tile + 2 * SLOTS - 2) * BK + tid]);
    packed += Tile::W;
    __pipeline_commit();
    slot = next;
    if (tile < 0) continue;
    UNROLL for (int i = 0; i < BK; ++i) {
      __align__(16) float w[TM], x[TN];
      UNROLL for (int m = 0; m < TM; m += 4) vec4(w + m) = vec4(&slot->w[i][m * 8 + ty * RUN]);
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

  UNROLL for (int m = 0; m < TM; ++m) {
    const int k = block.k0 + m / RUN * RUN * 8 + ty * RUN + m % RUN;
    const float b = bias && k < block.k_end ? bias[k] : 0.0f;
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
    const int k = block.k0 + m / RUN * RUN * 8 + m % RUN;
    float* to = output + offset(out, k, shape);
    UNROLL for (int i = 0; i < BM / TM; ++i, to += RUN * PQ) {
      if (is_output & (k + i * RUN < block.k_end)) *to = panel[i][tid];
    }
  }
}

constexpr TileSizes SIZES = {8, BK, 1};

std::size_t workspace(const ConvShape& shape, std::size_t limit) {
  return best_plan(shape, limit, SIZES).bytes;
}

template <int TM>
void enqueue_tiles(const Convolution& conv, cudaStream_t stream) {
  constexpr int BM = 8 * TM;
  const ConvShape& shape = conv.shape;
  const Packed to(shape, BM, BK, conv.workspace);
  pack<BM><<<to.blocks, dim3(32, 32), 0, stream>>>(shape, conv.filters, to);
  conv2d_tiled<TM><<<tile_grid(shape, BM, BN), THREADS, 0, stream>>>(
      shape, conv.input, to.filters, to.taps, conv.bias, conv.output, conv.relu);
}

void enqueue(const Convolution& conv, cudaStream_t stream) {
  const int TM = best_plan(conv.shape, conv.workspace_bytes, SIZES).TM;
  if (TM == 16) return enqueue_tiles<16>(conv, stream);
  if (TM == 12) return enqueue_tiles<12>(conv, stream);
  enqueue_tiles<8>(conv, stream);
}

CONVLADDER_REGISTER_STAGE({"09_tile_sizes", "tiles that the filters fill", enqueue, workspace,
                           true});

}  // namespace
}  // namespace convladder
