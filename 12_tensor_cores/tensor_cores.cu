// Stage 12: the sum of stage 11, with products by the tensor cores, which read 11 bits of a factor.
//
// A factor is cut in two such numbers, high + low, and low·high + high·low + high·high is as good as
// FP32's product. The tensor core truncates when it adds: it sums 8 taps, and registers the rest.
// In TF32 (Convolution::precision) high·high is all there is.
// Filters lie in the order of the tensor core's lanes; rows of the input as in stage 10. A tile has
// 24 taps: 8 rows of 3, or 3 rows of 7 or 2 of 11 and zeros.
// Should drop: instructions and reads of shared memory per multiplication.
// What hurts: cutting factors and adding sums up, twice as many instructions as products.
#include "common/core/add_parts.h"
#include "common/core/copy_async.h"
#include "common/core/indexing.h"
#include "common/core/launch.h"
#include "common/core/mma.h"
#include "common/core/stage.h"

namespace convladder {
namespace {

constexpr int TN = 8, TILE = 16 * 8;      // pixels (a strip) and filters x taps of one product
constexpr int NT = 8, STRIPS = 2 * NT;    // strips of a warp and of a block, 2 x 2 warps
constexpr int BN = STRIPS * TN;           // output pixels of a block
constexpr int THREADS = 128, PER_SM = 2;  // large blocks of a multiprocessor: 128 sums a thread

// BK taps, 8 for each product: ROWS rows (c,r) of TAPS = S, for STRIDE = stride_w, or of one tap for
// any problem. Where that is less than BK, zeros fill it up.
template <int BM, int TAPS, int STRIDE>
struct Tiles {
  static constexpr int BK = TAPS == 1 ? 16 : 24, ROWS = BK / TAPS, USED = ROWS * TAPS;
  // The inputs under a strip and a filter row lie by phase: what is STRIDE apart is neighbours. A warp
  // reads 4 taps x 8 pixels at a time, by this order of taps each from a bank of its own.
  static constexpr int SPAN = TN + (TAPS - 1) / STRIDE;
  static constexpr int PHASE = STRIPS * SPAN + (STRIDE == 4 ? 8 : 0);
  static constexpr int ROW = STRIDE * PHASE + (TAPS <= 3 ? 8 : 0), ZEROS = ROWS * ROW + 26;
  static constexpr int X = USED < BK ? ZEROS + PHASE : ROWS * ROW;
  __align__(128) float w[BK / 8][BM / 16][TILE];
  float x[X];
  Tap ahead[ROWS];  // of the tile to be copied next, so that nobody waits for them

  // Of factor i (0..7) of a product: the row, and the tap in it; TAPS or more stands for a zero.
  __device__ static int row(int product, int i) {
    if (TAPS <= 3) return TAPS == 3 ? i : product * 8 + i;
    return TAPS == 7 || product < 2 ? product : i / 4;
  }
  __device__ static int tap(int product, int i) {
    if (TAPS <= 3) return TAPS == 3 ? product : 0;
    return TAPS == 7 || product < 2 ? i : 8 + i % 4;
  }
  // Where its first input under the first strip lies.
  __device__ static int offset(int product, int i) {
    const int s = tap(product, i);
    return s < TAPS ? row(product, i) * ROW + s % STRIDE * PHASE + s / STRIDE : ZEROS;
  }
};

// One warp: 16 filters x 8 taps, in the order in which mma_tf32() takes them.
template <int BM, int TAPS, int STRIDE>
__global__ void pack(ConvShape shape, int tiles, bool rounded,
                     const float* __restrict__ filters,  // [K,C,R,S]
                     float* __restrict__ packed,         // [G][blocks_m][tiles] of Tile::w
                     Tap* __restrict__ rows) {           // [(tiles + 2) * ROWS]
  using Tile = Tiles<BM, TAPS, STRIDE>;
  constexpr int ROWS = Tile::ROWS, PRODUCTS = Tile::BK / 8;
  const int lane = threadIdx.x, m = threadIdx.y, CRS = shape.CRS();
  const int product = blockIdx.x % PRODUCTS, tile = blockIdx.x / PRODUCTS % (tiles + 2);
  const int block_m = blockIdx.x / PRODUCTS / (tiles + 2), row = tile * ROWS + lane;
  const int group = blockIdx.z, blocks_m = gridDim.x / PRODUCTS / (tiles + 2);
  if (group + block_m + m + product == 0 && lane < ROWS) rows[row] = tap_at(row * TAPS, shape);
  if (tile >= tiles) return;
  __align__(16) float w[4];
  UNROLL for (int i = 0; i < 4; ++i) {
    const int k = (block_m * blockDim.y + m) * 16 + lane / 4 + i % 2 * 8;
    const int factor = lane % 4 + i / 2 * 4, s = Tile::tap(product, factor);
    const int crs = (tile * ROWS + Tile::row(product, factor)) * TAPS + s;
    const bool exists = k < shape.K && s < TAPS && crs < CRS;
    w[i] = exists ? filters[(group * shape.K + k) * CRS + crs] : 0.0f;
    if (rounded && w[i] == w[i]) w[i] = to_tf32(w[i]);  // else NaN, which stays
  }
  const int64_t to = (int64_t{group} * blocks_m + block_m) * tiles + tile;
  const int64_t at = (to * PRODUCTS + product) * blockDim.y + m;
  vec4(packed + at * TILE + lane * 4) = vec4(w);
}

// As many as the registers of MT x 32 sums have room for.
constexpr int blocks_per_sm(int MT, int PRODUCTS) {
  return MT == 1 ? 4 : MT == 2 || (MT == 3 && PRODUCTS == 1) ? 3 : PER_SM;
}

template <int MT, int TAPS, int STRIDE, int PRODUCTS>
__global__ void __launch_bounds__(THREADS, blocks_per_sm(MT, PRODUCTS))
    conv2d_tiled(ConvShape shape, int blocks_m, int row_length,
                 const float* __restrict__ input,   // [N,C,H,W]
                 const float* __restrict__ packed,  // see pack()
                 const Tap* __restrict__ rows,      // [(tiles + 2) * ROWS]
                 const float* __restrict__ bias,    // [K], or null
                 float* __restrict__ output,        // [N,K,P,Q], or [parts][N,K,P,Q]
                 bool relu) {
  constexpr int BM = 2 * MT * 16;
  using Tile = Tiles<BM, TAPS, STRIDE>;
  constexpr int BK = Tile::BK, ROWS = Tile::ROWS;
  __shared__ Tile slots[2];
  __shared__ __align__(16) float panel[2 * TN][BN + 8];
  const int tid = threadIdx.x, part = blockIdx.y, parts = gridDim.y, group = blockIdx.z;
  const int64_t all = (shape.CRS() + Tile::USED - 1) / Tile::USED, first = all * part / parts;
  const int tiles = static_cast<int>(all * (part + 1) / parts - first);
  const int k0 = blockIdx.x % blocks_m * BM;
  const PixelRange pixels(int64_t{blockIdx.x / blocks_m} * BN, shape.P(), row_length);
  input += group * shape.CHW(), output += group * shape.KPQ(), bias += bias ? group * shape.K : 0;

  // What this thread loads of x: every TN-th input under one strip, or one pixel's taps.
  const int strip = tid / TN, col = tid % TN;
  const Pixel at = pixels[TAPS > 1 ? strip * TN : tid];
  const bool exists = at.n < shape.N;
  const int h0 = exists ? at.p * shape.stride_h - shape.pad_h : OUTSIDE;
  const int w0 = at.q * shape.stride_w - shape.pad_w + (TAPS > 1 ? col : 0);
  const float* corner = exists ? input + at.n * shape.input_pitch() + h0 * shape.W + w0 : packed;
  packed += ((group * blocks_m * BM + k0) * all + first * BM) * BK + tid * 4;
  rows += first * ROWS + tid;
  if (tid < ROWS) slots[1].ahead[tid] = *rows;
  for (int i = Tile::ZEROS + tid; i < Tile::X; i += THREADS) {
    slots[0].x[i] = slots[1].x[i] = 0.0f;
  }

  // A warp multiplies MT x 16 filters by NT strips.
  const int lane = tid % 32, warp_m = tid / 32 % 2, warp_n = tid / 64;
  float sum[MT][NT][4] = {};
  for (int tile = -1; tile < tiles; ++tile) {
    Tile &now = slots[tile & 1], &next = slots[(tile + 1) & 1];
    __pipeline_wait_prior(0);  // this thread's copies of this tile are done
    __syncthreads();           // everybody's are, and the tile before is read to the end
    const bool more = tile + 1 < tiles;
    Tap tap[ROWS];  // all of them first: nvcc reads none while it copies
    UNROLL for (int i = 0; i < ROWS; ++i) tap[i] = read_tap<TAPS>(now.ahead + i);
    UNROLL for (int i = 0; i < ROWS; ++i) {
      UNROLL for (int j = 0; j < Tile::SPAN * STRIDE; j += TN) {
        const int phase = i * Tile::ROW + col % STRIDE * Tile::PHASE;
        float* x = next.x + phase + strip * Tile::SPAN + (col + j) / STRIDE;
        const int w = w0 + (TAPS > 1 ? j : tap[i].w);  // a row begins with its first column
        const bool inside = within(h0 + tap[i].h, shape.H) & within(w, shape.W);
        if (col + j < Tile::SPAN * STRIDE) copy_async<4>(x, corner + tap[i].offset + j, inside);
      }
    }
    UNROLL for (int i = 0; i < BM * BK; i += THREADS * 4) {
      const bool whole = i + THREADS * 4 <= BM * BK;  // then nvcc need not look at tid
      float* w = next.w[0][0] + tid * 4 + i;
      if (whole || i + tid * 4 < BM * BK) copy_async<16>(w, packed + i, more);
    }
    packed += BM * BK, rows += ROWS;
    if (tid < ROWS) copy_async<16>(next.ahead + tid, rows);
    __pipeline_commit();
    if (tile < 0) continue;
    UNROLL_BY(1) for (int i = 0; i < BK / 8; ++i) {  // registers are short
      float x_high[NT][2], x_low[NT][2];
      const float* x0 = now.x + lane / 4 + Tile::offset(i, lane % 4);
      const float* x4 = now.x + lane / 4 + Tile::offset(i, lane % 4 + 4);
      UNROLL for (int j = 0; j < 2 * NT; ++j) {
        const float x = *((j % 2 ? x4 : x0) + (warp_n * NT + j / 2) * Tile::SPAN);
        x_high[j / 2][j % 2] = PRODUCTS > 1 ? to_tf32(x) : x;
        x_low[j / 2][j % 2] = x - x_high[j / 2][j % 2];
      }
      UNROLL for (int m = 0; m < MT; ++m) {
        __align__(16) float high[4];
        float low[4], eight[NT][4] = {};
        vec4(high) = vec4(now.w[i][warp_m * MT + m] + lane * 4);
        if constexpr (PRODUCTS == 1) {
          UNROLL for (int j = 0; j < NT; ++j) mma_tf32(sum[m][j], high, x_high[j], sum[m][j]);
        } else {
          UNROLL for (int l = 0; l < 4; ++l) {
            const float w = high[l];
            high[l] = to_tf32(w), low[l] = w - high[l];
          }
          // The smallest first. The strips' products don't wait for each other.
          UNROLL for (int j = 0; j < NT; ++j) mma_tf32(eight[j], low, x_high[j], eight[j]);
          UNROLL for (int j = 0; j < NT; ++j) mma_tf32(eight[j], high, x_low[j], eight[j]);
          UNROLL for (int j = 0; j < NT; ++j) {
            mma_tf32(eight[j], high, x_high[j], eight[j]);
            UNROLL for (int l = 0; l < 4; ++l) sum[m][j][l] += eight[j][l];
          }
        }
      }
    }
  }

  // Partial sums lie like the output, part by part. The first part has the bias; ReLU comes later.
  if (parts > 1) output += part * shape.output_count(), relu = 0, bias = part ? nullptr : bias;
  const Pixel out = pixels[tid];
  const int64_t PQ = shape.PQ();
  UNROLL for (int m = 0; m < 2 * MT; ++m) {  // 8 filters of each warp
    __syncthreads();                         // the panel before is read to the end
    UNROLL for (int j = 0; j < NT; ++j) {
      const float* two = sum[m / 2][j] + m % 2 * 2;
      vec2(&panel[warp_m * 8 + lane / 4][(warp_n * NT + j) * TN + lane % 4 * 2]) = vec2(two);
    }
    __syncthreads();  // this panel is complete
    float* to = output + offset(out, k0 + m * 8, shape);
    UNROLL for (int i = 0; i < 2 * TN; ++i) {
      const int k = i / 8 * MT * 16 + i % 8;
      const bool stored = (out.n < shape.N) & (out.q < shape.Q()) & (k0 + m * 8 + k < shape.K);
      if (!stored) continue;
      const float value = panel[i][tid] + (bias ? bias[k0 + m * 8 + k] : 0.0f);
      to[k * PQ] = relu && value < 0.0f ? 0.0f : value;  // false for NaN, which stays
    }
  }
}

// Filters of a block: as few as possible are computed for nothing.
int block_filters(int K) {
  if (K <= 32) return 32;
  const int by_64 = round_up(K, 64), by_96 = round_up(K, 96);
  return round_up(K, 128) <= min(by_64, by_96) ? 128 : by_96 <= by_64 ? 96 : 64;
}

// Of all groups' filters, and of the taps; the partial sums lie behind. A tile has 24 for at least 21
// taps, or 16.
std::size_t packed_bytes(const ConvShape& shape) {
  const std::size_t filters = shape.groups * round_up(int64_t{shape.K}, block_filters(shape.K));
  const std::size_t padded_CRS = 24 * (shape.CRS() / 21 + int64_t{1}) + 8;
  return filters * padded_CRS * sizeof(float) + sizeof(Tap) * (shape.CRS() + 3 * 24);
}

// At most 16, as many as fill PER_SM blocks of each multiprocessor; of at least 48 taps.
int parts_of(const ConvShape& shape, std::size_t limit) {
  const int64_t sums = shape.output_count();
  const int64_t blocks = shape.groups * ceil_div(shape.K, block_filters(shape.K)) *
                         ceil_div(int64_t{shape.N} * shape.PQ(), BN);
  const int64_t room = (static_cast<double>(limit) - packed_bytes(shape)) / sizeof(float) / sums;
  const int64_t most = min(int64_t{16}, PER_SM * multiprocessors() / blocks);
  return static_cast<int>(max(int64_t{1}, min(min(room, most), int64_t{shape.CRS() / 48})));
}

std::size_t workspace(const ConvShape& shape, std::size_t limit) {
  const std::size_t parts = parts_of(shape, limit);
  return packed_bytes(shape) + (parts > 1 ? parts * sizeof(float) * shape.output_count() : 0);
}

template <int MT, int TAPS, int STRIDE, int PRODUCTS>
void enqueue_rows(const Convolution& conv, cudaStream_t stream) {
  using Tile = Tiles<2 * MT * 16, TAPS, STRIDE>;
  constexpr int BM = 2 * MT * 16, BK = Tile::BK;
  const ConvShape& shape = conv.shape;
  const int blocks_m = static_cast<int>(ceil_div(shape.K, BM));
  const int tiles = static_cast<int>(ceil_div(shape.CRS(), Tile::USED));
  float* packed = static_cast<float*>(conv.workspace);
  Tap* rows = reinterpret_cast<Tap*>(packed + int64_t{shape.groups} * blocks_m * BM * tiles * BK);
  const unsigned blocks_packed = grid_x((tiles + int64_t{2}) * (BK / 8) * blocks_m);
  launch(pack<BM, TAPS, STRIDE>, dim3(blocks_packed, 1, shape.groups), dim3(32, BM / 16), stream,
         shape, tiles, PRODUCTS == 1, conv.filters, packed, rows);
  const int row_length = TAPS > 1 ? round_up(shape.Q(), TN) : shape.Q();  // strips end with it
  const int64_t blocks_n = ceil_div(int64_t{shape.N} * shape.P() * row_length, BN);
  const int parts = parts_of(shape, conv.workspace_bytes);
  float* sums = parts > 1 ? packed + packed_bytes(shape) / sizeof(float) : conv.output;
  const dim3 grid(grid_x(blocks_m * blocks_n), parts, shape.groups);
  launch(conv2d_tiled<MT, TAPS, STRIDE, PRODUCTS>, grid, THREADS, stream, shape, blocks_m,
         row_length, conv.input, packed, rows, conv.bias, sums, conv.relu);
  if (parts > 1) add_parts(sums, parts, conv, stream);
}

template <int MT, int PRODUCTS>
void enqueue_tiles(const Convolution& conv, cudaStream_t stream) {
  const ConvShape& shape = conv.shape;
  // Strips end with their row: where that adds more than an eighth to it, any pixels are better.
  const int added = round_up(shape.Q(), TN) - shape.Q();
  const bool rows = shape.dil_w == 1 && added <= shape.Q() / 8 && shape.PQ() < 1 << 30;
  const int S = rows ? shape.S : 0, stride = shape.stride_w;
  if (S == 3 && stride == 1) return enqueue_rows<MT, 3, 1, PRODUCTS>(conv, stream);
  if (S == 7 && stride == 2) return enqueue_rows<MT, 7, 2, PRODUCTS>(conv, stream);
  if (S == 11 && stride == 4) return enqueue_rows<MT, 11, 4, PRODUCTS>(conv, stream);
  enqueue_rows<MT, 1, 1, PRODUCTS>(conv, stream);
}

template <int PRODUCTS>
void enqueue_products(const Convolution& conv, cudaStream_t stream) {
  const int BM = block_filters(conv.shape.K);
  if (BM == 128) return enqueue_tiles<4, PRODUCTS>(conv, stream);
  if (BM == 96) return enqueue_tiles<3, PRODUCTS>(conv, stream);
  if (BM == 64) return enqueue_tiles<2, PRODUCTS>(conv, stream);
  enqueue_tiles<1, PRODUCTS>(conv, stream);
}

void enqueue(const Convolution& conv, cudaStream_t stream) {
  if (conv.precision == Precision::kTf32) return enqueue_products<1>(conv, stream);
  enqueue_products<3>(conv, stream);
}

CONVLADDER_REGISTER_STAGE({"12_tensor_cores", "three products by tensor cores for each", enqueue,
                           workspace, true, true, "12_tensor_cores (TF32)"});

}  // namespace
}  // namespace convladder
