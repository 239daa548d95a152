// Stage 16: a filter for each channel, where memory is all. A side rung: it takes no other problem.
//
// Planes lie behind one another, and so do their rows: a block copies some planes, or rows of one, to shared
// memory as they lie, 16 bytes at a time, whatever their width. A thread's outputs are ROWS x COLUMNS:
// rows of the input slide through its registers, each value read once for all of them.
// Should drop: bytes asked of L2, to the least there are, and instructions for each.
// What hurts: the rate of DRAM, and for filters of 7 x 7 arithmetic again.
#include "common/core/copy_async.h"
#include "common/core/indexing.h"
#include "common/core/launch.h"
#include "common/core/stage.h"

namespace convladder {
namespace {

constexpr int ROWS = 7, COLUMNS = 7;  // of a thread's outputs; odd: its lanes read from all banks
constexpr int THREADS = 64;
constexpr int MOST_FLOATS = 48 * 1024 / sizeof(float);  // of shared memory

// What a block computes: whole planes of an image, or a strip of rows of one, in tiles of a thread each.
struct Cut {
  int planes, rows, strips, tiles_q, tiles_p;
  int filters, floats;  // of shared memory
};

// Zeros before the inputs, and behind them: as many as a window can reach.
template <int S, int STRIDE>
constexpr int MARGIN = round_up((COLUMNS - 1) * STRIDE + S, 4);

// How far behind 16 bytes it lies.
__device__ inline int floats_off(const float* pointer) {
  return static_cast<int>(reinterpret_cast<uintptr_t>(pointer) / sizeof(float) % 4);
}

// Begins to copy `count` floats that lie behind one another, to a place as far behind 16 bytes as theirs.
__device__ inline void copy_run(float* to, const float* from, int count) {
  const int head = min(count, -floats_off(from) & 3);
  const int end = head + (count - head) / 4 * 4;
  for (int i = head + threadIdx.x * 4; i < end; i += THREADS * 4) copy_async<16>(to + i, from + i);
  if (threadIdx.x < head) to[threadIdx.x] = from[threadIdx.x];
  if (end + threadIdx.x < count) to[end + threadIdx.x] = from[end + threadIdx.x];
}

template <int R, int S, int STRIDE>
__global__ void __launch_bounds__(THREADS, R == 3 ? 10 : 8)
    conv2d_depthwise(ConvShape shape, Cut cut,
                     const float* __restrict__ input,    // [N,groups,H,W]
                     const float* __restrict__ filters,  // [groups * K,R,S]
                     const float* __restrict__ bias,     // [groups * K], or null
                     float* __restrict__ output,         // [N,groups * K,P,Q]
                     bool relu) {
  extern __shared__ __align__(16) float shared[];
  constexpr int SPAN = (COLUMNS - 1) * STRIDE + S, ZEROS = MARGIN<S, STRIDE>;
  const int tid = threadIdx.x, P = shape.P(), Q = shape.Q(), HW = shape.H * shape.W;
  const int all = shape.groups * shape.K, blocks_k = (all + cut.planes - 1) / cut.planes;
  const int strip = blockIdx.x % cut.strips, block = blockIdx.x / cut.strips;
  const int n = block / blocks_k, k0 = block % blocks_k * cut.planes;
  const int planes = min(cut.planes, all - k0), c0 = k0 / shape.K;
  const int p0 = strip * cut.rows, rows = min(cut.rows, P - p0);
  const int h_first = p0 * STRIDE - shape.pad_h, h0 = max(h_first, 0);
  const int h_end = max(h0, min(h_first + (rows - 1) * STRIDE + R, shape.H));

  input += n * shape.input_pitch() + c0 * HW + h0 * shape.W, filters += k0 * R * S;
  const int inputs = ((k0 + planes - 1) / shape.K - c0) * HW + (h_end - h0) * shape.W;
  float* const w = shared + floats_off(filters);
  float* const x = shared + cut.filters + ZEROS + floats_off(input);
  copy_run(w, filters, planes * R * S);
  copy_run(x, input, inputs);
  __pipeline_commit();
  if (tid < ZEROS) x[tid - ZEROS] = x[inputs + tid] = 0.0f;

  // This thread's tile. A thread without one has the last plane's, and writes nothing.
  const int tile = tid / cut.tiles_q, plane = min(tile / cut.tiles_p, planes - 1), k = k0 + plane;
  const int p = tile % cut.tiles_p * ROWS, q = tid % cut.tiles_q * COLUMNS;  // p counts from p0
  const int h = h_first + p * STRIDE, column = q * STRIDE - shape.pad_w;
  const float* const from = x + (k / shape.K - c0) * HW - h0 * shape.W + column;
  const float b = bias ? bias[k] : 0.0f;
  float sum[ROWS][COLUMNS];
  UNROLL for (int i = 0; i < ROWS * COLUMNS; ++i) sum[i / COLUMNS][i % COLUMNS] = b;
  unsigned mask[SPAN];  // no bit of what lies in the padding
  UNROLL for (int j = 0; j < SPAN; ++j) mask[j] = within(column + j, shape.W) ? ~0u : 0u;
  __pipeline_wait_prior(0);
  __syncthreads();  // everybody's copies are done
  float f[R * S];
  UNROLL for (int i = 0; i < R * S; ++i) f[i] = w[plane * R * S + i];
  UNROLL for (int y = 0; y < (ROWS - 1) * STRIDE + R; ++y) {
    const bool inside = (h + y >= h0) & (h + y < h_end);
    if (R == 7 && !inside) continue;  // for as many products a branch is worth it
    const float* const at = inside ? from + (h + y) * shape.W : x - ZEROS;
    float v[SPAN];
    UNROLL for (int j = 0; j < SPAN; ++j) v[j] = __uint_as_float(__float_as_uint(at[j]) & mask[j]);
    UNROLL for (int r = y % STRIDE; r < R; r += STRIDE) {  // to every row of outputs that sees it
      if (r > y || (y - r) / STRIDE >= ROWS) continue;
      UNROLL for (int s = 0; s < S; ++s) {
        UNROLL for (int j = 0; j < COLUMNS; ++j) {
          sum[(y - r) / STRIDE][j] += f[r * S + s] * v[j * STRIDE + s];
        }
      }
    }
  }
  if (relu) {
    UNROLL for (int i = 0; i < ROWS; ++i) {
      UNROLL for (int j = 0; j < COLUMNS; ++j) {
        if (sum[i][j] < 0.0f) sum[i][j] = 0.0f;  // false for NaN, which stays
      }
    }
  }

  // Outputs lie behind one another as well: they go by way of shared memory, 16 bytes at a time.
  output += n * shape.output_pitch() + int64_t{k0} * P * Q + p0 * Q;
  float* const panel = shared + floats_off(output);
  float* const mine = panel + plane * P * Q + p * Q + q;
  const int my_rows = tile / cut.tiles_p < planes ? rows - p : 0;
  __syncthreads();  // nobody reads inputs any more
  UNROLL for (int i = 0; i < ROWS; ++i) {
    if (i >= my_rows) break;
    UNROLL for (int j = 0; j < COLUMNS; ++j) {
      if (q + j < Q) mine[i * Q + j] = sum[i][j];
    }
  }
  __syncthreads();  // the panel is complete
  const int count = (planes - 1) * P * Q + rows * Q;
  const int head = min(count, -floats_off(output) & 3), end = head + (count - head) / 4 * 4;
  for (int i = head + tid * 4; i < end; i += THREADS * 4) vec4(output + i) = vec4(panel + i);
  if (tid < head) output[tid] = panel[tid];
  if (end + tid < count) output[end + tid] = panel[end + tid];
}

// Any other filter, stride and dilation, and rows of any length: ROWS outputs of a column for each thread,
// from global memory.
__global__ void __launch_bounds__(THREADS)
    conv2d_depthwise_any(ConvShape shape, const float* __restrict__ input,
                         const float* __restrict__ filters, const float* __restrict__ bias,
                         float* __restrict__ output, bool relu) {
  const int P = shape.P(), Q = shape.Q(), all = shape.groups * shape.K;
  const int tiles = (P + ROWS - 1) / ROWS;
  const int64_t thread = int64_t{blockIdx.x} * THREADS + threadIdx.x, plane = thread / Q / tiles;
  const int k = static_cast<int>(plane % all), n = static_cast<int>(plane / all);
  if (n >= shape.N) return;
  const int q = static_cast<int>(thread % Q), p = static_cast<int>(thread / Q % tiles) * ROWS;
  const int h0 = p * shape.stride_h - shape.pad_h, w0 = q * shape.stride_w - shape.pad_w;
  input += n * shape.input_pitch() + int64_t{k / shape.K} * shape.H * shape.W;
  filters += int64_t{k} * shape.R * shape.S;
  float sum[ROWS];
  UNROLL for (int i = 0; i < ROWS; ++i) sum[i] = bias ? bias[k] : 0.0f;
  for (int r = 0; r < shape.R; ++r) {
    for (int s = 0; s < shape.S; ++s) {
      const float f = *filters++;
      const int w = w0 + s * shape.dil_w;
      UNROLL for (int i = 0; i < ROWS; ++i) {
        const int h = h0 + i * shape.stride_h + r * shape.dil_h;
        if (within(h, shape.H) & within(w, shape.W)) sum[i] += f * input[index(h, w, shape.W)];
      }
    }
  }
  output += plane * P * Q + p * Q + q;
  UNROLL for (int i = 0; i < ROWS; ++i) {
    if (relu && sum[i] < 0.0f) sum[i] = 0.0f;
    if (p + i < P) output[i * Q] = sum[i];
  }
}

// As many planes as there are threads and shared memory for, or as many rows of one; no rows where not even
// a tile's have room.
template <int R, int S, int STRIDE>
Cut cut_for(const ConvShape& shape) {
  const int P = shape.P(), Q = shape.Q(), all = shape.total_K(), K = shape.K;
  const int tiles_q = (Q + COLUMNS - 1) / COLUMNS, tiles_p = (P + ROWS - 1) / ROWS;
  const auto cut = [&](int planes, int tiles) {  // with so many tiles of rows
    const int rows = std::min(P, tiles * ROWS), filters = round_up(planes * R * S + 3, 4);
    const int64_t channels = (planes + K - 2) / K + 1;
    const int64_t rows_in =
        planes > 1 ? channels * shape.H : std::min(shape.H, (rows - 1) * STRIDE + R);
    const int64_t inputs = filters + rows_in * shape.W + 2 * MARGIN<S, STRIDE> + 3;
    const int64_t floats = std::max(inputs, int64_t{planes} * rows * Q + 3);
    const bool fits = floats <= MOST_FLOATS && int64_t{planes} * tiles * tiles_q <= THREADS;
    return Cut{planes, fits ? rows : 0, (P + rows - 1) / rows,   tiles_q,
               tiles,  filters,         static_cast<int>(floats)};
  };
  int planes = std::min(all, THREADS), tiles = std::min(tiles_p, THREADS);
  while (planes > 1 && cut(planes, tiles).rows == 0) --planes;
  while (tiles > 1 && cut(planes, tiles).rows == 0) --tiles;
  const auto even = [](int64_t whole, int64_t part) {  // all parts about as large
    return static_cast<int>(ceil_div(whole, ceil_div(whole, part)));
  };
  return cut(even(all, planes), even(tiles_p, tiles));
}

template <int SIZE, int STRIDE>
bool enqueue_tiles(const Convolution& conv, cudaStream_t stream) {
  const ConvShape& shape = conv.shape;
  const Cut cut = cut_for<SIZE, SIZE, STRIDE>(shape);
  if (cut.rows == 0) return false;
  const int64_t blocks = shape.N * ceil_div(shape.total_K(), cut.planes) * cut.strips;
  conv2d_depthwise<SIZE, SIZE, STRIDE>
      <<<grid_x(blocks), THREADS, cut.floats * sizeof(float), stream>>>(
          shape, cut, conv.input, conv.filters, conv.bias, conv.output, conv.relu);
  return true;
}

void enqueue(const Convolution& conv, cudaStream_t stream) {
  const ConvShape& shape = conv.shape;
  const bool plain = shape.R == shape.S && shape.stride_h == shape.stride_w && shape.dil_h == 1 &&
                     shape.dil_w == 1 && shape.pad_w < shape.S;
  const int kind = plain ? shape.R * 10 + shape.stride_h : 0;
  if (kind == 31 && enqueue_tiles<3, 1>(conv, stream)) return;
  if (kind == 32 && enqueue_tiles<3, 2>(conv, stream)) return;
  if (kind == 51 && enqueue_tiles<5, 1>(conv, stream)) return;
  if (kind == 52 && enqueue_tiles<5, 2>(conv, stream)) return;
  if (kind == 71 && enqueue_tiles<7, 1>(conv, stream)) return;
  const int64_t threads = ceil_div(shape.P(), ROWS) * shape.Q() * shape.N * shape.total_K();
  conv2d_depthwise_any<<<grid_x(ceil_div(threads, THREADS)), THREADS, 0, stream>>>(
      shape, conv.input, conv.filters, conv.bias, conv.output, conv.relu);
}

const char* wants(const ConvShape& shape) {
  return shape.C == 1 ? nullptr : "one channel in each group";
}

CONVLADDER_REGISTER_STAGE({"16_depthwise", "rows slide through registers", enqueue, nullptr, true,
                           FP32, false, 0, NCHW, wants});

}  // namespace
}  // namespace convladder
