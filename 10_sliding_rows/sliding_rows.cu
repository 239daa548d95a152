// Stage 10: stage 09, with rows of the input in shared memory instead of columns of im2col's matrix.
//
// A thread's TN outputs are neighbours along q, a strip: under one row of a filter they want one run
// of inputs, copied once. Its S taps slide over the same registers. What is common and has S = 3, 7
// or 11 is compiled so; for any other problem a filter row is a single tap, as in stage 09.
// Should drop: copies of the input, wavefronts of shared memory.
// What hurts: too few blocks, where outputs are few; and then FP32 arithmetic itself.
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
constexpr int SLOTS = 3;             // tiles in shared memory: one is read, the others filled
constexpr int THREADS = 8 * (BN / TN);

// BK taps in rows (c,r) of TAPS = S, for STRIDE = stride_w; or 1 and 1 for any problem.
template <int BM, int TAPS, int STRIDE, int BK>
struct Tiles {
  // The inputs under a strip and a filter row lie by phase: what is STRIDE apart is neighbours, so
  // that a thread reads 16 bytes, SPAN values of each phase.
  // From strip to strip an odd number of 16-byte words: 8 strips lie in 8 different bank groups.
  static constexpr int SPAN = round_up(TN + (TAPS - 1) / STRIDE, 4);
  static constexpr int PITCH = round_up(STRIDE * SPAN + 4, 8) - 4;
  static constexpr int W = BM * BK;  // so many values of the filters
  float w[BK][BM], x[BK / TAPS][BN / TN][PITCH];
  Tap taps[BK];  // of the tile whose inputs are copied while this one is multiplied
};

// As many as have room for TM x TN sums in each thread's registers.
constexpr int blocks_per_sm(int TM) { return TM <= 8 ? 4 : TM == 12 ? 3 : 2; }

template <int TM, int TAPS, int STRIDE, int BK>
__global__ void __launch_bounds__(THREADS, blocks_per_sm(TM))
    conv2d_tiled(ConvShape shape,
                 const float* __restrict__ input,   // [N,C,H,W]
                 const float* __restrict__ packed,  // [rows][tiles * BK][BM]
                 const Tap* __restrict__ taps,      // [tiles * BK + ...]
                 const float* __restrict__ bias,    // [K], or null
                 float* __restrict__ output,        // [N,K,P,Q]
                 bool relu) {
  constexpr int BM = 8 * TM;
  using Tile = Tiles<BM, TAPS, STRIDE, BK>;
  __shared__ __align__(16) Tile slots[SLOTS];
  __shared__ __align__(16) float panel[BM / TM][BN + 4];
  const int tid = threadIdx.x, tiles = (shape.CRS() + BK - 1) / BK;
  const Block block(blockIdx.x, shape, BM);
  const PixelRange pixels(int64_t{block.column} * BN, shape, TAPS > 1 ? TN : 1);

  // What this thread loads of x: every TN-th input under one strip, or one pixel's taps.
  const int strip = tid / TN, col = tid % TN;
  const Pixel at = pixels[tid];
  const bool exists = at.n < shape.N;
  const int h0 = exists ? at.p * shape.stride_h - shape.pad_h : OUTSIDE;
  const int w0 = at.q * shape.stride_w - shape.pad_w - col * (STRIDE - 1);
  input += block.group * shape.CHW();
  const float* corner = exists ? input + at.n * shape.input_pitch() + h0 * shape.W + w0 : packed;
  packed += int64_t{block.row} * tiles * Tile::W + tid * 4;
  if (tid < (SLOTS - 1) * BK) slots[1 + tid / BK].taps[tid % BK] = taps[tid];  // of the first tiles

  // A warp multiplies 4 rows of filters by 8 strips: the fewest values that it can read.
  const int lane = tid % 32, warp = tid / 32;
  const int tx = lane / 2 % 8 + warp % 2 * 8, ty = lane % 2 + lane / 16 * 2 + warp / 2 * 4;
  __align__(16) float sum[TM][TN] = {};
  Tile* slot = slots;
  for (int tile = 1 - SLOTS; tile < tiles; ++tile) {
    __pipeline_wait_prior(SLOTS - 2);  // this thread's copies of this tile are done
    __syncthreads();                   // everybody's are, and the tile before is read to the end
    const bool more = tile + SLOTS - 1 < tiles;
    Tile* const next = slot == &slots[SLOTS - 1] ? slots : slot + 1;  // the oldest tile
    Tap tap[BK / TAPS];  // all of them first: none is read while copies begin
    UNROLL for (int i = 0; i < BK / TAPS; ++i) tap[i] = read_tap<TAPS>(next->taps + i * TAPS);
    UNROLL for (int i = 0; i < BK / TAPS; ++i) {
      UNROLL for (int j = 0; j < Tile::SPAN * STRIDE; j += TN) {
        float* x = slot->x[i][strip] + col % STRIDE * Tile::SPAN + col / STRIDE + j / STRIDE;
        const bool inside = within(h0 + tap[i].h, shape.H) & within(w0 + tap[i].w + j, shape.W);
        if (col + j < Tile::SPAN * STRIDE) copy_async<4>(x, corner + tap[i].offset + j, inside);
      }
    }
    UNROLL for (int i = 0; i < Tile::W; i += THREADS * 4) {
      if (i + tid * 4 < Tile::W) copy_async<16>(slot->w[0] + tid * 4 + i, packed + i, more);
    }
    if (tid < BK) copy_async<16>(&slot->taps[tid], &taps[(tile + 2 * SLOTS - 2) * BK + tid]);
    packed += Tile::W;
    __pipeline_commit();
    slot = next;
    if (tile < 0) continue;
    __align__(16) float x[Tile::SPAN];
    // A longer body was slower on an H200.
    UNROLL_BY(BK * TM <= 150 ? BK : TAPS) for (int i = 0; i < BK; ++i) {
      __align__(16) float w[TM];
      const int s = i * STRIDE % TAPS, tap = i / TAPS * TAPS + s;  // phase by phase
      UNROLL for (int m = 0; m < TM; m += 4) vec4(w + m) = vec4(&slot->w[tap][m * 8 + ty * RUN]);
      // The first tap of a phase reads. For others j begins at BN: they slide over its values.
      const float* xs = &slot->x[i / TAPS][tx][s % STRIDE * Tile::SPAN];
      UNROLL for (int j = s < STRIDE ? 0 : BN; j < Tile::SPAN; j += 4) vec4(x + j) = vec4(xs + j);
      UNROLL for (int m = 0; m < TM; ++m) {
        UNROLL for (int t = 0; t < TN; ++t) {
          const int j = m % 2 ? TN - 1 - t : t;  // to and fro: the last x is the next one, too
          sum[m][j] += w[m] * x[s / STRIDE + j];
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
  const bool is_output = (out.n < shape.N) & (out.q < shape.Q());
  const int64_t PQ = shape.PQ();
  UNROLL for (int m = 0; m < TM; ++m) {
    __syncthreads();  // the panel before is read to the end
    UNROLL for (int j = 0; j < TN; j += 4) vec4(&panel[ty][tx * TN + j]) = vec4(&sum[m][j]);
    __syncthreads();  // this panel is complete
    const int k = block.k0 + m / RUN * RUN * 8 + m % RUN;
    float* to = output + offset(out, k, shape);
    UNROLL for (int i = 0; i < BM / TM; ++i, to += RUN * PQ) {
      if (is_output & (k + i * RUN < block.k_end)) *to = panel[i][tid];
    }
  }
}

constexpr TileSizes SIZES = {8, 21, 1};

std::size_t workspace(const ConvShape& shape, std::size_t limit) {
  return best_plan(shape, limit, SIZES).bytes;
}

template <int TM, int TAPS, int STRIDE, int BK>
void enqueue_tiles(const Convolution& conv, cudaStream_t stream) {
  constexpr int BM = 8 * TM;
  const ConvShape& shape = conv.shape;
  const Packed to(shape, BM, BK, conv.workspace);
  pack<BM><<<to.blocks, dim3(32, 32), 0, stream>>>(shape, conv.filters, to);
  conv2d_tiled<TM, TAPS, STRIDE, BK>
      <<<tile_grid(shape, BM, BN, TAPS > 1 ? TN : 1), THREADS, 0, stream>>>(
          shape, conv.input, to.filters, to.taps, conv.bias, conv.output, conv.relu);
}

template <int TM>
void enqueue_tiles(const Convolution& conv, cudaStream_t stream) {
  const int S = suits_strips(conv.shape, TN) ? conv.shape.S : 0, step = conv.shape.stride_w;
  if (S == 3 && step == 1) return enqueue_tiles<TM, 3, 1, 18>(conv, stream);
  if (S == 7 && step == 2) return enqueue_tiles<TM, 7, 2, (TM < 16 ? 21 : 14)>(conv, stream);
  if (S == 11 && step == 4) return enqueue_tiles<TM, 11, 4, 11>(conv, stream);
  enqueue_tiles<TM, 1, 1, 8>(conv, stream);
}

void enqueue(const Convolution& conv, cudaStream_t stream) {
  const int TM = best_plan(conv.shape, conv.workspace_bytes, SIZES).TM;
  if (TM == 16) return enqueue_tiles<16>(conv, stream);
  if (TM == 12) return enqueue_tiles<12>(conv, stream);
  enqueue_tiles<8>(conv, stream);
}

CONVLADDER_REGISTER_STAGE({"10_sliding_rows", "taps that slide over rows", enqueue, workspace,
                           true});

}  // namespace
}  // namespace convladder
