// Stage 05: bias and ReLU are added to the sums while they are in registers, and the rest of the
// kernel is rebuilt around what stage 04 still wastes.
//   input   lies in shared memory as rows, not as im2col columns: the S taps of a filter row slide
//           over the same registers (three common sizes; a general path stands beside them)
//   output  is transposed through shared memory: a warp stores 32 neighbours (the general path stores
//           16 bytes per thread where it can, like stage 04)
// Should drop: shared loads and copies per FLOP, store sectors per request, the whole bias pass.
// What limits now: the instructions that aren't multiplications, the last round of blocks, and most
// likely operands that meet in one register bank and the fetching of the long unrolled loops.
#include <cuda_pipeline.h>

#include "common/core/filter_tiles.h"
#include "common/core/indexing.h"
#include "common/core/launch.h"
#include "common/core/stage.h"

namespace convladder {
namespace {

constexpr int THREADS = 128;
constexpr int TN = 8;                     // outputs per thread: a strip, neighbours along q
constexpr int STRIPS = 16;                // strips per block
constexpr int BN = STRIPS * TN;           // output pixels per block
constexpr int GROUPS = THREADS / STRIPS;  // threads that share a strip, each with TM filters
constexpr int SLOTS = 3;                  // tiles in shared memory
static_assert(BN == THREADS, "each thread stores one pixel of every filter");

// TAPS = S, STRIDE = stride_w and dilation 1; or TAPS = 1 for any convolution: then every (c,r,s)
// is a filter row of its own, and the outputs of a strip may be any pixels. TM: filters per thread.
template <int TAPS, int STRIDE, int TM>
struct Tile {
  static constexpr int BM = GROUPS * TM;  // filters per block
  // Filter rows per tile, and how many of them in one pass of the loop: a longer body loses more
  // on its way through the instruction cache than it saves.
  static constexpr int ROWS = TAPS == 1 ? TM == 16 ? 4 : 8 : TAPS == 3 ? 6 : TAPS == 7 ? 3 : 1;
  static constexpr int UNROLLED = TAPS == 1 || TM <= 8 ? ROWS : 1;
  static constexpr int COLS = TAPS == 1 ? 1 : (TN - 1) * STRIDE + TAPS;  // inputs under a strip
  static constexpr int PHASES = STRIDE < TAPS ? STRIDE : TAPS;        // taps s = phase (mod STRIDE)
  static constexpr int SPAN = round_up(TN + (TAPS - 1) / STRIDE, 4);  // inputs of one phase
  // From strip to strip an odd number of 16-byte words: 8 strips lie in 8 different bank groups.
  static constexpr int PITCH = TAPS == 1 ? 4 : round_up(PHASES * SPAN + 4, 8) - 4;
  // A strip of any pixels has its second half BN/2 further on: a warp's 16-byte stores adjoin.
  static constexpr int HALF = TAPS == 1 ? BN / 2 : 4;
  static constexpr int ROW = TAPS == 1 ? BN : STRIPS * PITCH;  // inputs of one filter row
  static constexpr int FILTERS = ROWS * TAPS * BM, SIZE = FILTERS + ROWS * ROW;
  static_assert(TN % STRIDE == 0 && COLS < 64, "i and i + TN share a phase; zeros[] covers COLS");
  static constexpr int PANEL = 4 * GROUPS * BN;  // outputs transposed at a time
  static constexpr int SHARED = SLOTS * SIZE > PANEL ? SLOTS* SIZE : PANEL;
};

// 3, 4 or 5 blocks per multiprocessor: what a thread's registers allow (at most 168, 128 or 96).
template <int TAPS, int STRIDE, int TM>
__global__ void __launch_bounds__(THREADS, 3 + 8 / TM)
    conv2d_fused_bias(ConvShape shape, int blocks_m, int tiles, int row_length,
                      const float* __restrict__ input,     // [N,C,H,W]
                      const float* __restrict__ filters,   // [blocks_m][tiles*ROWS*TAPS][BM]
                      const FilterRow* __restrict__ rows,  // [tiles*ROWS]
                      const float* __restrict__ bias,      // [K], or null
                      float* __restrict__ output,          // [N,K,P,Q]
                      bool relu, bool vector_stores) {
  using T = Tile<TAPS, STRIDE, TM>;
  __shared__ __align__(16) float shared[T::SHARED];
  const int tid = threadIdx.x, block_m = blockIdx.x % blocks_m, k0 = block_m * T::BM;
  const PixelRange pixels(int64_t{blockIdx.x / blocks_m} * BN, shape.P(), row_length);

  // What this thread copies: the filters' next 16 bytes, and under one strip every 8th input.
  const Pixel at = pixels[TAPS == 1 ? tid : tid / TN * TN];
  const int col = TAPS == 1 ? 0 : tid % TN, w0 = at.q * shape.stride_w - shape.pad_w + col;
  const int h0 = at.n < shape.N ? at.p * shape.stride_h - shape.pad_h : OUTSIDE;
  const float* corner = zeros;
  if (at.n < shape.N) corner = input + at.n * int64_t{shape.CHW()} + (h0 * shape.W + w0);
  unsigned inside_mask = 0;  // bit i: input w0 + i * TN is inside the image and under the strip
  UNROLL for (int i = 0; i < T::COLS; i += TN) {
    if (within(w0 + i, shape.W) && col + i < T::COLS) inside_mask |= 1u << (i / TN);
  }
  const float* w_from = filters + int64_t{block_m} * tiles * T::FILTERS + tid * 4;
  float* w_to = shared + tid * 4;
  float* x_to = shared + T::FILTERS;
  x_to += TAPS == 1 ? tid : tid / TN * T::PITCH + col % STRIDE * T::SPAN + col / STRIDE;
  const auto copy_tile = [&](int jump) {  // jump: from this tile to the next in shared memory
    UNROLL for (int i = 0; i < T::FILTERS; i += THREADS * 4) {
      if (i + tid * 4 < T::FILTERS) __pipeline_memcpy_async(w_to + i, w_from + i, 16);
    }
    UNROLL for (int row = 0; row < T::ROWS; ++row) {
      const FilterRow filter = rows[row];
      const bool inside =
          within(h0 + filter.h, shape.H) & (TAPS > 1 || within(w0 + filter.w, shape.W));
      const float* x_from = inside ? corner + filter.offset : zeros;
      UNROLL for (int i = 0; i < T::COLS; i += TN) {
        float* to = x_to + row * T::ROW + i / STRIDE;
        if (TAPS == 1 || (inside_mask >> (i / TN) & 1)) __pipeline_memcpy_async(to, x_from + i, 4);
      }
    }
    w_from += T::FILTERS, rows += T::ROWS, w_to += jump, x_to += jump;
  };
  if (TAPS > 1) {  // zero wherever `inside_mask` lets nothing be copied
    for (int i = tid * 4; i < SLOTS * T::SIZE; i += THREADS * 4) vec4(shared + i) = {};
    __syncthreads();  // the zeros are written before any copy
  }
  for (int tile = 0; tile < SLOTS - 1; ++tile) {
    if (tile < tiles) copy_tile(T::SIZE);
    __pipeline_commit();
  }

  // What it computes: TM filters x one strip. Lane bits 0 and 4 choose the filters, 1 to 3 the
  // strip: a 16-byte read then needs two wavefronts, the fewest there are.
  const int group = (tid & 1) | (tid >> 3 & 2) | (tid >> 4 & 4);
  const int strip = (tid >> 1 & 7) | (tid >> 2 & 8);
  const float *w_tile = shared + group * TM, *x_tile = shared + T::FILTERS + strip * T::PITCH;
  __align__(16) float sum[TM][TN] = {};
  for (int slot = 0; tiles > 0; --tiles, slot = slot == SLOTS - 1 ? 0 : slot + 1) {
    __pipeline_wait_prior(SLOTS - 2);
    __syncthreads();  // this tile is complete, and the one before is read to the end
    if (tiles >= SLOTS) copy_tile(slot == 0 ? (1 - SLOTS) * T::SIZE : T::SIZE);
    __pipeline_commit();
    UNROLL_BY(T::UNROLLED) for (int row = 0; row < T::ROWS; ++row) {
      UNROLL for (int phase = 0; phase < T::PHASES; ++phase) {
        __align__(16) float x[T::SPAN], w[TM];
        const float* x_from = x_tile + row * T::ROW + phase * T::SPAN;
        const int used = TN + (TAPS - 1 - phase) / STRIDE;
        UNROLL for (int i = 0; i + 2 < used; i += 4) vec4(x + i) = vec4(x_from + i / 4 * T::HALF);
        if (used == TN + 1 || used == TN + 2) vec2(x + TN) = vec2(x_from + TN);
        UNROLL for (int s = phase; s < TAPS; s += STRIDE) {
          const float* w_from = w_tile + (row * TAPS + s) * T::BM;
          UNROLL for (int m = 0; m < TM; m += 4) vec4(w + m) = vec4(w_from + m);
          UNROLL for (int m = 0; m < TM; ++m) {
            UNROLL for (int i = 0; i < TN; ++i) {
              const int j = TAPS > 1 && m % 2 ? TN - 1 - i : i;  // to and fro: x stays at hand
              sum[m][j] += w[m] * x[s / STRIDE + j];
            }
          }
        }
      }
    }
    const int jump = slot == SLOTS - 1 ? (1 - SLOTS) * T::SIZE : T::SIZE;
    w_tile += jump, x_tile += jump;
  }

  // The epilogue: what cost stage 04 a second kernel costs no memory traffic here.
  const int64_t PQ = shape.PQ();
  const auto finish = [&](int m) {
    const int k = k0 + group * TM + m;
    const float b = bias && k < shape.K ? bias[k] : 0.0f;
    UNROLL for (int j = 0; j < TN; ++j) {
      sum[m][j] += b;
      if (relu && sum[m][j] < 0.0f) sum[m][j] = 0.0f;  // false for NaN, which stays
    }
  };
  if (TAPS == 1) {  // all at once, else a panel at a time: which, decided nvcc's use of registers
    UNROLL for (int m = 0; m < TM; ++m) finish(m);
  }
  if (TAPS == 1 && vector_stores) {
    const int k1 = k0 + group * TM;
    UNROLL for (int j = 0; j < TN; j += 4) {
      const Pixel out = pixels[strip * 4 + j / 4 * T::HALF];
      if (out.n >= shape.N) continue;
      float* to = output + (int64_t{out.n} * shape.K + k1) * PQ + out.p * shape.Q() + out.q;
      UNROLL for (int m = 0; m < TM; ++m, to += PQ) {
        if (k1 + m < shape.K) vec4(to) = vec4(&sum[m][j]);
      }
    }
    return;
  }
  const Pixel out = pixels[tid];
  const bool stores = out.n < shape.N && out.q < shape.Q();
  float* column = output + (int64_t{out.n} * shape.K + k0) * PQ + out.p * shape.Q() + out.q;
  UNROLL for (int m0 = 0; m0 < TM; m0 += 4, column += 4 * PQ) {
    __syncthreads();  // the tiles, or the panel before, are read to the end
    UNROLL for (int m = m0; m < m0 + 4; ++m) {
      if (TAPS > 1) finish(m);
      float* to = shared + (group * 4 + m - m0) * BN + strip * (TAPS == 1 ? 4 : TN);
      UNROLL for (int j = 0; j < TN; j += 4) vec4(to + j / 4 * T::HALF) = vec4(&sum[m][j]);
    }
    __syncthreads();  // the panel is complete: each thread stores one column of it
    float* to = column;
    UNROLL for (int row = 0; row < GROUPS * 4; ++row) {
      const int k = k0 + row / 4 * TM + m0 + row % 4;
      const float y = shared[row * BN + tid];
      if (stores & (k < shape.K)) *to = y;
      to += row % 4 == 3 ? (TM - 3) * PQ : PQ;
    }
  }
}

template <int TAPS, int STRIDE>
void run_size(const Convolution& conv, cudaStream_t stream) {
  const ConvShape& shape = conv.shape;
  const int row_length = TAPS == 1 ? shape.Q() : round_up(shape.Q(), TN);
  const int64_t blocks_n = ceil_div(int64_t{row_length} * shape.P() * shape.N, BN);
  choose_filters_per_thread(blocks_n, shape.K, [&](auto tm) {
    using T = Tile<TAPS, STRIDE, tm()>;
    const FilterTiles w = arrange_filters(conv, T::BM, T::ROWS * TAPS, TAPS, stream);
    launch(conv2d_fused_bias<TAPS, STRIDE, tm()>, grid_x(blocks_n * w.blocks_m), THREADS, stream,
           shape, w.blocks_m, w.padded_CRS / (T::ROWS * TAPS), row_length, conv.input, w.filters,
           w.rows, conv.bias, conv.output, conv.relu, planes_are_aligned(conv.output, shape.PQ()));
  });
}

void enqueue(const Convolution& conv, cudaStream_t stream) {
  const ConvShape& shape = conv.shape;
  // Strips end with their row: where that adds more than an eighth to it, any pixels are better.
  const bool rows = shape.dil_w == 1 && round_up(shape.Q(), TN) - shape.Q() <= shape.Q() / 8 &&
                    shape.PQ() < 1 << 30;
  const int S = rows ? shape.S : 0, stride = shape.stride_w;
  if (S == 3 && stride == 1) return run_size<3, 1>(conv, stream);
  if (S == 7 && stride == 2) return run_size<7, 2>(conv, stream);
  if (S == 11 && stride == 4) return run_size<11, 4>(conv, stream);
  run_size<1, 1>(conv, stream);
}

CONVLADDER_REGISTER_STAGE({"05_fused_bias", "bias in the epilogue", enqueue, filter_tiles_workspace,
                           true});

}  // namespace
}  // namespace convladder
