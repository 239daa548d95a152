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
#include "common/core/stage.h"

namespace convladder {
namespace {

constexpr int TN = 8, BN = 16 * TN;  // output pixels (any of the N·P·Q) per thread and block
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
  float w[BK][BM], x[BK / TAPS][BN / TN][PITCH];
};

// One block: 32 filters x 32 taps, turned in shared memory, so that warps read and write neighbours.
template <int BM>
__global__ void pack(ConvShape shape, int blocks_k, int padded_CRS,
                     const float* __restrict__ filters,  // [K,C,R,S]
                     float* __restrict__ packed,         // [blocks_m][padded_CRS][BM]
                     Tap* __restrict__ taps) {           // [padded_CRS + ...]
  __shared__ float turned[32][32 + 1];
  const int tx = threadIdx.x, ty = threadIdx.y, CRS = shape.CRS();
  const int k0 = blockIdx.x % blocks_k * 32, crs0 = blockIdx.x / blocks_k * 32;
  const bool inside = k0 + ty < shape.K && crs0 + tx < CRS;
  turned[tx][ty] = inside ? filters[(k0 + ty) * CRS + crs0 + tx] : 0.0f;
  __syncthreads();  // written along one axis, read along the other
  const int k = k0 + tx, crs = crs0 + ty;
  const int64_t row = int64_t{k / BM} * padded_CRS + crs;
  if (crs < padded_CRS) packed[row * BM + k % BM] = turned[ty][tx];
  if (k == 0) taps[crs] = tap_at(crs, shape);
}

template <int TM, int TAPS, int STRIDE, int BK>
__global__ void __launch_bounds__(THREADS, TM == 8 ? 4 : 3)
    conv2d_tiled(ConvShape shape, int blocks_m, int row_length,
                 const float* __restrict__ input,   // [N,C,H,W]
                 const float* __restrict__ packed,  // [blocks_m][tiles * BK][BM]
                 const Tap* __restrict__ taps,      // [(tiles + SLOTS - 1) * BK]
                 const float* __restrict__ bias,    // [K], or null
                 float* __restrict__ output,        // [N,K,P,Q]
                 bool relu) {
  constexpr int BM = 8 * TM;
  using Tile = Tiles<BM, TAPS, STRIDE, BK>;
  __shared__ __align__(16) Tile slots[SLOTS];
  __shared__ __align__(16) float panel[BM / TM][BN];
  const int tid = threadIdx.x, tiles = (shape.CRS() + BK - 1) / BK;
  const int k0 = blockIdx.x % blocks_m * BM;
  const PixelRange pixels(int64_t{blockIdx.x / blocks_m} * BN, shape.P(), row_length);

  // What this thread loads of x: every TN-th input under one strip, or one pixel's taps.
  const int strip = tid / TN, col = tid % TN;
  const Pixel at = pixels[TAPS > 1 ? strip * TN : tid];
  const bool exists = at.n < shape.N;
  const int h0 = exists ? at.p * shape.stride_h - shape.pad_h : OUTSIDE;
  const int w0 = at.q * shape.stride_w - shape.pad_w + (TAPS > 1 ? col : 0);
  const float* corner = exists ? input + at.n * shape.input_pitch() + h0 * shape.W + w0 : packed;
  packed += int64_t{k0} * tiles * BK + tid * 4;

  // A warp multiplies 4 rows of filters by 8 strips: the fewest values that it can read.
  const int lane = tid % 32, warp = tid / 32;
  const int tx = lane / 2 % 8 + warp % 2 * 8, ty = lane % 2 + lane / 16 * 2 + warp / 2 * 4;
  __align__(16) float sum[TM][TN] = {};
  Tile* slot = slots;
  for (int tile = 1 - SLOTS; tile < tiles; ++tile) {
    __pipeline_wait_prior(SLOTS - 2);  // this thread's copies of this tile are done
    __syncthreads();                   // everybody's are, and the tile before is read to the end
    const bool more = tile + SLOTS - 1 < tiles;
    // The inputs first: on an H200 AlexNet's layer takes 1.5 % less so, others up to 1.5 % more.
    UNROLL for (int i = 0; i < BK / TAPS; ++i) {
      const Tap tap = read_tap<TAPS>(taps + i * TAPS);
      UNROLL for (int j = 0; j < Tile::SPAN * STRIDE; j += TN) {
        float* x = slot->x[i][strip] + col % STRIDE * Tile::SPAN + col / STRIDE + j / STRIDE;
        bool inside = within(h0 + tap.h, shape.H) & within(w0 + (TAPS > 1 ? j : tap.w), shape.W);
        if (col + j < Tile::SPAN * STRIDE) copy_async<4>(x, corner + tap.offset + j, inside);
      }
    }
    UNROLL for (int i = 0; i < BM * BK; i += THREADS * 4) {
      if (i + tid * 4 < BM * BK) copy_async<16>(slot->w[0] + tid * 4 + i, packed + i, more);
    }
    packed += BM * BK, taps += BK;
    __pipeline_commit();
    slot = slot == &slots[SLOTS - 1] ? slots : slot + 1;  // from the newest tile to the oldest
    if (tile < 0) continue;
    __align__(16) float x[Tile::SPAN];
    // A longer body was slower on an H200.
    UNROLL_BY(BK * TM <= 150 ? BK : TAPS) for (int i = 0; i < BK; ++i) {
      __align__(16) float w[TM];
      const int s = i * STRIDE % TAPS, tap = i / TAPS * TAPS + s;  // phase by phase
      UNROLL for (int m = 0; m < TM; m += 4) vec4(w + m) = vec4(&slot->w[tap][ty * TM + m]);
      // The first tap of a phase reads, the others slide over its values: from BN on there are none.
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

  const int k1 = k0 + ty * TM;
  UNROLL for (int m = 0; m < TM; ++m) {
    const float b = bias && k1 + m < shape.K ? bias[k1 + m] : 0.0f;
    UNROLL for (int j = 0; j < TN; ++j) {
      sum[m][j] += b;
      if (relu && sum[m][j] < 0.0f) sum[m][j] = 0.0f;  // false for NaN, which stays
    }
  }
  const Pixel out = pixels[tid];
  const int64_t PQ = shape.PQ();
  UNROLL for (int m = 0; m < TM; ++m) {
    __syncthreads();  // the panel before is read to the end
    UNROLL for (int j = 0; j < TN; j += 4) vec4(&panel[ty][tx * TN + j]) = vec4(&sum[m][j]);
    __syncthreads();  // this panel is complete
    float* to = output + offset(out, k0 + m, shape);
    UNROLL for (int i = 0; i < BM / TM; ++i, to += TM * PQ) {
      const bool exists = (out.n < shape.N) & (out.q < shape.Q()) & (k0 + i * TM + m < shape.K);
      if (exists) *to = panel[i][tid];
    }
  }
}

constexpr int AHEAD = 96;  // at least the taps by which CRS is rounded up, and looked ahead to

std::size_t workspace(const ConvShape& shape, std::size_t) {
  return ((shape.K + std::size_t{128}) * sizeof(float) + sizeof(Tap)) * (shape.CRS() + AHEAD);
}

template <int TM, int TAPS, int STRIDE, int BK>
void enqueue_rows(const Convolution& conv, cudaStream_t stream) {
  constexpr int BM = 8 * TM;
  const ConvShape& shape = conv.shape;
  const int blocks_m = static_cast<int>(ceil_div(shape.K, BM));
  const int padded_CRS = round_up(shape.CRS(), BK), blocks_k = blocks_m * (BM / 32);
  float* packed = static_cast<float*>(conv.workspace);
  Tap* taps = reinterpret_cast<Tap*>(packed + int64_t{blocks_m} * BM * padded_CRS);
  const int64_t blocks = ceil_div(padded_CRS + (SLOTS - 1) * BK, 32) * blocks_k;
  launch(pack<BM>, grid_x(blocks), dim3(32, 32), stream, shape, blocks_k, padded_CRS, conv.filters,
         packed, taps);
  const int row_length = TAPS > 1 ? round_up(shape.Q(), TN) : shape.Q();  // strips end with it
  const int64_t blocks_n = ceil_div(int64_t{shape.N} * shape.P() * row_length, BN);
  launch(conv2d_tiled<TM, TAPS, STRIDE, BK>, grid_x(blocks_m * blocks_n), THREADS, stream, shape,
         blocks_m, row_length, conv.input, packed, taps, conv.bias, conv.output, conv.relu);
}

template <int TM>
void enqueue_tiles(const Convolution& conv, cudaStream_t stream) {
  const ConvShape& shape = conv.shape;
  // Strips end with their row: where that adds more than an eighth to it, any pixels are better.
  const int added = round_up(shape.Q(), TN) - shape.Q();
  const bool rows = shape.dil_w == 1 && added <= shape.Q() / 8 && shape.PQ() < 1 << 30;
  const int S = rows ? shape.S : 0, stride = shape.stride_w;
  if (S == 3 && stride == 1) return enqueue_rows<TM, 3, 1, 18>(conv, stream);
  if (S == 7 && stride == 2) return enqueue_rows<TM, 7, 2, (TM < 16 ? 21 : 14)>(conv, stream);
  if (S == 11 && stride == 4) return enqueue_rows<TM, 11, 4, 11>(conv, stream);
  enqueue_rows<TM, 1, 1, 8>(conv, stream);
}

void enqueue(const Convolution& conv, cudaStream_t stream) {
  const int K = conv.shape.K, by_64 = round_up(K, 64), by_96 = round_up(K, 96);
  if (round_up(K, 128) <= min(by_64, by_96)) return enqueue_tiles<16>(conv, stream);
  if (by_96 <= by_64) return enqueue_tiles<12>(conv, stream);
  enqueue_tiles<8>(conv, stream);
}

CONVLADDER_REGISTER_STAGE({"10_sliding_rows", "taps that slide over rows", enqueue, workspace,
                           true});

}  // namespace
}  // namespace convladder
