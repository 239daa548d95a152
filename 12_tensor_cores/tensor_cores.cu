// Stage 12: the sum of stage 11, with products by the tensor cores, which read 11 bits of a factor.
//
// A factor is cut in two such numbers, high + low, and low·high + high·low + high·high is as good as
// FP32's product. The tensor core truncates when it adds: it sums 8 taps, and registers the rest.
// In TF32 (Convolution::precision) high·high is all there is.
// Filters lie in the order of the tensor core's lanes, cut in two; rows of the input as in stage 10,
// but in a ring, since a step has 8 taps and a row of a filter R.
// Should drop: instructions and reads of shared memory per multiplication.
// What hurts: few warps, which wait for their own products; and copies of 4 bytes.
#include "common/core/copy_async.h"
#include "common/core/indexing.h"
#include "common/core/launch.h"
#include "common/core/mma.h"
#include "common/core/stage.h"

namespace convladder {
namespace {

constexpr int BK = 8;                       // taps of a step, and ...
constexpr int TN = 8, TILE = 16 * 8;        // ... pixels (a strip) and factors of one product
constexpr int NT = 8, STRIPS = 2 * NT;      // strips of a warp and of a block, 2 x 2 warps
constexpr int BN = STRIPS * TN, SLOTS = 3;  // steps in shared memory: one is read, others filled
constexpr int THREADS = 128, PER_SM = 2;    // large blocks of a multiprocessor: 128 sums a thread

// Inputs in rows (c,r) of TAPS = S, for STRIDE = stride_w; or 1 and 1 for any problem.
template <int TAPS, int STRIDE>
struct Rows {
  // Under a strip and a filter row they lie by phase: what is STRIDE apart is neighbours. A warp reads
  // 4 taps x 8 pixels at a time; the gaps give each a bank of its own.
  static constexpr int SPAN = TN + (TAPS - 1) / STRIDE;
  static constexpr int PHASE = STRIPS * SPAN + (STRIDE == 4 ? 8 : 0);
  static constexpr int GAP = TAPS == 1 ? 8 : TAPS == 3 ? 14 : TAPS == 7 ? 11 : 24;
  static constexpr int ROW = STRIDE * PHASE + GAP;
  static constexpr int RING = (SLOTS * BK + TAPS - 2) / TAPS + 1;  // rows that SLOTS steps touch
  static constexpr int NEW = (BK - 1) / TAPS + 1;                  // at most begin in a step

  // Where the first strip's first input under a tap lies.
  __device__ static int offset(int crs) {
    const int s = crs % TAPS;
    return crs / TAPS % RING * ROW + s % STRIDE * PHASE + s / STRIDE;
  }
};

// One warp: 16 filters x 8 taps, in the order in which mma_tf32() takes them.
__global__ void pack(ConvShape shape, int steps, bool halves,
                     const float* __restrict__ filters,  // [K,C,R,S]
                     float* __restrict__ packed,  // [blocks_m][steps][high, low][BM / 16][TILE]
                     Tap* __restrict__ taps) {    // [steps + SLOTS][BK]
  const int lane = threadIdx.x, m = threadIdx.y, tiles = blockDim.y, CRS = shape.CRS();
  const int step = blockIdx.x % (steps + SLOTS), block_m = blockIdx.x / (steps + SLOTS);
  if (block_m == 0 && m == 0 && lane < BK) taps[step * BK + lane] = tap_at(step * BK + lane, shape);
  if (step >= steps) return;
  __align__(16) float high[4], low[4];
  UNROLL for (int i = 0; i < 4; ++i) {
    const int k = (block_m * tiles + m) * 16 + lane / 4 + i % 2 * 8;
    const int crs = step * BK + lane % 4 + i / 2 * 4;
    const float w = k < shape.K && crs < CRS ? filters[k * CRS + crs] : 0.0f;
    high[i] = to_tf32(w), low[i] = w - high[i];
  }
  packed += ((int64_t{block_m} * steps + step) * (halves ? 2 : 1) * tiles + m) * TILE + lane * 4;
  vec4(packed) = vec4(high);
  if (halves) vec4(packed + tiles * TILE) = vec4(low);
}

template <int MT, int TAPS, int STRIDE, int PRODUCTS>
__global__ void __launch_bounds__(THREADS, PRODUCTS == 1 || MT == 2 ? 3 : PER_SM)
    conv2d_tiled(ConvShape shape, int blocks_m, int row_length,
                 const float* __restrict__ input,   // [N,C,H,W]
                 const float* __restrict__ packed,  // see pack()
                 const Tap* __restrict__ taps,      // [steps + SLOTS][BK]
                 const float* __restrict__ bias,    // [K], or null
                 float* __restrict__ output,        // [N,K,P,Q], or [parts][N,K,P,Q]
                 bool relu) {
  constexpr int BM = 2 * MT * 16, HALF = BM * BK, W = PRODUCTS > 1 ? 2 * HALF : HALF;
  using X = Rows<TAPS, STRIDE>;
  __shared__ __align__(16) float slots[SLOTS][W];
  __shared__ __align__(16) float rows[X::RING][X::ROW];
  __shared__ __align__(16) float panel[2 * TN][BN + 8];
  __shared__ Tap ahead[SLOTS][BK];  // of the steps to be copied next, so that nobody waits for them
  const int tid = threadIdx.x, part = blockIdx.y, parts = gridDim.y;
  const int all = (shape.CRS() + BK - 1) / BK;
  // A part begins where a row does.
  const int first = int64_t{all} * part / parts / TAPS * TAPS;
  const int last = part == parts - 1 ? all : int64_t{all} * (part + 1) / parts / TAPS * TAPS;
  const int k0 = blockIdx.x % blocks_m * BM;
  const PixelRange pixels(int64_t{blockIdx.x / blocks_m} * BN, shape.P(), row_length);

  // What this thread loads of x: every TN-th input under one strip, or one pixel's taps.
  const int strip = tid / TN, col = tid % TN;
  const Pixel at = pixels[TAPS > 1 ? strip * TN : tid];
  const bool exists = at.n < shape.N;
  const int h0 = exists ? at.p * shape.stride_h - shape.pad_h : OUTSIDE;
  const int w0 = at.q * shape.stride_w - shape.pad_w + (TAPS > 1 ? col : 0);
  const float* corner = exists ? input + at.n * shape.input_pitch() + h0 * shape.W + w0 : packed;
  packed += (int64_t{k0 / BM} * all + first) * W + tid * 4;
  int row = first * BK / TAPS, ring = row % X::RING;  // the next to be copied
  for (int i = tid; i < (SLOTS - 1) * BK; i += THREADS)
    ahead[i / BK][i % BK] = taps[first * BK + i];

  // A warp multiplies MT x 16 filters by NT strips.
  const int lane = tid % 32, warp_m = tid / 32 % 2, warp_n = tid / 64;
  float sum[MT][NT][4] = {};
  int slot = 0;
  for (int step = first + 1 - SLOTS; step < last; ++step) {
    __pipeline_wait_prior(SLOTS - 2);  // this thread's copies of this step are done
    __syncthreads();                   // everybody's are, and the step before is read to the end
    const int newest = step + SLOTS - 1;
    if (newest < last) {
      UNROLL for (int i = 0; i < W; i += THREADS * 4) {
        if (i + tid * 4 < W) copy_async<16>(slots[slot] + tid * 4 + i, packed + i);
      }
      packed += W;
      const int begins = TAPS > 1 ? row * TAPS - newest * BK : 0;
      Tap coming[X::NEW];
      UNROLL for (int i = 0; i < X::NEW; ++i) {
        coming[i] = ahead[slot][min(begins + i * TAPS, BK - 1)];
      }
      UNROLL for (int i = 0; i < X::NEW; ++i) {
        if (begins + i * TAPS >= BK) break;
        const Tap tap = coming[i];
        UNROLL for (int j = 0; j < X::SPAN * STRIDE; j += TN) {
          float* x = rows[ring] + col % STRIDE * X::PHASE + strip * X::SPAN + (col + j) / STRIDE;
          const bool inside = within(h0 + tap.h, shape.H) & within(w0 + tap.w + j, shape.W);
          if (col + j < X::SPAN * STRIDE) copy_async<4>(x, corner + tap.offset + j, inside);
        }
        ++row, ring = ring == X::RING - 1 ? 0 : ring + 1;
      }
      if (tid < BK) {
        Tap* later = ahead[slot == 0 ? SLOTS - 1 : slot - 1];
        copy_async<16>(later + tid, taps + (newest + SLOTS - 1) * BK + tid);
      }
    }
    __pipeline_commit();
    slot = slot == SLOTS - 1 ? 0 : slot + 1;  // from the newest step to the oldest
    if (step < first) continue;
    const float* w = slots[slot] + warp_m * MT * TILE + lane * 4;
    const float* x0 = rows[0] + X::offset(step * BK + lane % 4) + lane / 4;
    const float* x4 = rows[0] + X::offset(step * BK + lane % 4 + 4) + lane / 4;
    __align__(16) float high[MT][4], low[4];
    UNROLL for (int m = 0; m < MT; ++m) vec4(high[m]) = vec4(w + m * TILE);
    UNROLL for (int j = 0; j < NT; j += 2) {
      float x_high[2][2], x_low[2][2];  // of two strips, whose products don't wait for each other
      UNROLL for (int i = 0; i < 4; ++i) {
        const float x = (i % 2 ? x4 : x0)[(warp_n * NT + j + i / 2) * X::SPAN];
        x_high[i / 2][i % 2] = PRODUCTS > 1 ? to_tf32(x) : x;
        x_low[i / 2][i % 2] = x - x_high[i / 2][i % 2];
      }
      if (PRODUCTS == 1) {
        UNROLL for (int i = 0; i < 2 * MT; ++i) {
          mma_tf32(sum[i / 2][j + i % 2], high[i / 2], x_high[i % 2], sum[i / 2][j + i % 2]);
        }
        continue;
      }
      float eight[2 * MT][4] = {};  // the smallest first
      UNROLL for (int i = 0; i < 2 * MT; ++i) {
        if (i % 2 == 0) vec4(low) = vec4(w + i / 2 * TILE + HALF);
        mma_tf32(eight[i], low, x_high[i % 2], eight[i]);
      }
      UNROLL for (int i = 0; i < 2 * MT; ++i) {
        mma_tf32(eight[i], high[i / 2], x_low[i % 2], eight[i]);
      }
      UNROLL for (int i = 0; i < 2 * MT; ++i) {
        mma_tf32(eight[i], high[i / 2], x_high[i % 2], eight[i]);
        UNROLL for (int l = 0; l < 4; ++l) sum[i / 2][j + i % 2][l] += eight[i][l];
      }
    }
  }

  // Partial sums are of this group alone, without gaps for the others; bias and ReLU come later.
  if (parts > 1) shape.groups = 1, output += part * shape.output_count(), bias = nullptr, relu = 0;
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

// Always in the same order, so that sums don't change from run to run.
__global__ void add_parts(ConvShape shape, int parts, bool relu,
                          const float* __restrict__ sums,  // [parts][N,K,P,Q]
                          const float* __restrict__ bias,  // [K], or null
                          float* __restrict__ output) {    // [N,K,P,Q]
  const int64_t i = int64_t{blockIdx.x} * THREADS + threadIdx.x, KPQ = shape.KPQ();
  if (i >= shape.N * KPQ) return;
  float sum = bias ? bias[i % KPQ / shape.PQ()] : 0.0f;
  UNROLL_BY(8) for (int part = 0; part < parts; ++part) sum += sums[shape.N * KPQ * part + i];
  output[i / KPQ * shape.output_pitch() + i % KPQ] = relu && sum < 0.0f ? 0.0f : sum;
}

// Filters of a block: as few as possible are computed for nothing.
int block_filters(int K) {
  const int by_64 = round_up(K, 64), by_96 = round_up(K, 96);
  return round_up(K, 128) <= min(by_64, by_96) ? 128 : by_96 <= by_64 ? 96 : 64;
}

int steps_of(const ConvShape& shape) { return static_cast<int>(ceil_div(shape.CRS(), BK)); }

// Of the filters and the taps; the partial sums lie behind.
std::size_t packed_bytes(const ConvShape& shape) {
  const std::size_t filters = round_up(shape.K, block_filters(shape.K)), steps = steps_of(shape);
  return 2 * sizeof(float) * filters * steps * BK + sizeof(Tap) * (steps + SLOTS) * BK;
}

// As many as all multiprocessors take at once, and `limit` holds; of at least 4 steps.
int parts_of(const ConvShape& shape, std::size_t limit) {
  const int64_t sums = shape.N * int64_t{shape.KPQ()};
  const int64_t blocks =
      ceil_div(shape.K, block_filters(shape.K)) * ceil_div(int64_t{shape.N} * shape.PQ(), BN);
  const int64_t room = (static_cast<double>(limit) - packed_bytes(shape)) / sizeof(float) / sums;
  const int64_t most = min(int64_t{16}, PER_SM * multiprocessors() / blocks);
  return static_cast<int>(max(int64_t{1}, min(min(room, most), int64_t{steps_of(shape) / 4})));
}

std::size_t workspace(const ConvShape& shape, std::size_t limit) {
  const std::size_t parts = parts_of(shape, limit);
  return packed_bytes(shape) + (parts > 1 ? parts * sizeof(float) * shape.N * shape.KPQ() : 0);
}

template <int MT, int TAPS, int STRIDE, int PRODUCTS>
void enqueue_rows(const Convolution& conv, cudaStream_t stream) {
  constexpr int BM = 2 * MT * 16;
  const ConvShape& shape = conv.shape;
  const int blocks_m = static_cast<int>(ceil_div(shape.K, BM)), steps = steps_of(shape);
  float* packed = static_cast<float*>(conv.workspace);
  Tap* taps = reinterpret_cast<Tap*>(packed + int64_t{2} * blocks_m * BM * steps * BK);
  launch(pack, grid_x((steps + int64_t{SLOTS}) * blocks_m), dim3(32, BM / 16), stream, shape, steps,
         PRODUCTS > 1, conv.filters, packed, taps);
  const int row_length = TAPS > 1 ? round_up(shape.Q(), TN) : shape.Q();  // strips end with it
  const int64_t blocks_n = ceil_div(int64_t{shape.N} * shape.P() * row_length, BN);
  const int parts = parts_of(shape, conv.workspace_bytes);
  float* sums = parts > 1 ? packed + packed_bytes(shape) / sizeof(float) : conv.output;
  launch(conv2d_tiled<MT, TAPS, STRIDE, PRODUCTS>, dim3(grid_x(blocks_m * blocks_n), parts),
         THREADS, stream, shape, blocks_m, row_length, conv.input, packed, taps, conv.bias, sums,
         conv.relu);
  if (parts == 1) return;
  launch(add_parts, grid_x(ceil_div(shape.N * int64_t{shape.KPQ()}, THREADS)), THREADS, stream,
         shape, parts, conv.relu, sums, conv.bias, conv.output);
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
  enqueue_tiles<2, PRODUCTS>(conv, stream);
}

void enqueue(const Convolution& conv, cudaStream_t stream) {
  if (conv.precision == Precision::kTf32) return enqueue_products<1>(conv, stream);
  enqueue_products<3>(conv, stream);
}

CONVLADDER_REGISTER_STAGE({"12_tensor_cores", "three products by tensor cores for each", enqueue,
                           workspace, true, "12_tensor_cores (TF32)"});

}  // namespace
}  // namespace convladder
