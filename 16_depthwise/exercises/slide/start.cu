// A filter for each channel: rows of inputs that slide through registers.
#include "common/core/add_bias.h"
#include "common/core/indexing.h"
#include "common/core/launch.h"
#include "common/core/stage.h"

namespace convladder {
namespace {

constexpr int THREADS = 128;  // neighbours along q
constexpr int SIZE = 5;       // of the filters that conv2d() takes, at stride 1

// ---- your part ----
constexpr int ROWS = 1;  // outputs of a thread, one below the other

// Adds what one channel gives. The window of output i begins at row h0 + i of the plane, and at column w0.
__device__ void add_channel(float (&sum)[ROWS], const float (&filter)[SIZE][SIZE],
                            const float* plane, int h0, int w0, const ConvShape& shape) {
  UNROLL for (int r = 0; r < SIZE; ++r) {
    UNROLL for (int s = 0; s < SIZE; ++s) {
      const bool inside = within(h0 + r, shape.H) && within(w0 + s, shape.W);
      if (inside) sum[0] += filter[r][s] * plane[(h0 + r) * shape.W + w0 + s];
    }
  }
}
// ---- end of your part ----

__global__ void __launch_bounds__(THREADS)
    conv2d(ConvShape shape,
           const float* __restrict__ input,    // [N,groups,C,H,W]
           const float* __restrict__ filters,  // [groups,K,C,R,S]
           float* __restrict__ output) {       // [N,groups,K,P,Q]
  const int all = shape.groups * shape.K, P = shape.P(), Q = shape.Q(),
            tiles = (P + ROWS - 1) / ROWS;
  const int64_t thread = int64_t{blockIdx.x} * THREADS + threadIdx.x, plane = thread / Q / tiles;
  const int n = static_cast<int>(plane / all), k = static_cast<int>(plane % all);
  if (n >= shape.N) return;
  const int q = static_cast<int>(thread % Q), p = static_cast<int>(thread / Q % tiles) * ROWS;
  input += n * shape.input_pitch() + int64_t{k / shape.K} * shape.CHW();
  filters += int64_t{k} * shape.CRS();
  float sum[ROWS] = {};
  for (int c = 0; c < shape.C; ++c) {
    float filter[SIZE][SIZE];
    UNROLL for (int i = 0; i < SIZE * SIZE; ++i) {
      filter[i / SIZE][i % SIZE] = filters[c * SIZE * SIZE + i];
    }
    add_channel(sum, filter, input + int64_t{c} * shape.H * shape.W, p - shape.pad_h,
                q - shape.pad_w, shape);
  }
  UNROLL for (int i = 0; i < ROWS; ++i) {
    if (p + i < P) output[plane * P * Q + (p + i) * Q + q] = sum[i];
  }
}

// Any other filter, stride and dilation.
__global__ void __launch_bounds__(THREADS)
    conv2d_any(ConvShape shape, const float* __restrict__ input, const float* __restrict__ filters,
               float* __restrict__ output) {
  const int all = shape.groups * shape.K, PQ = shape.PQ();
  const int64_t i = int64_t{blockIdx.x} * THREADS + threadIdx.x;
  const int n = static_cast<int>(i / PQ / all), k = static_cast<int>(i / PQ % all);
  if (n >= shape.N) return;
  const int p = static_cast<int>(i % PQ) / shape.Q(), q = static_cast<int>(i % PQ) % shape.Q();
  input += n * shape.input_pitch() + int64_t{k / shape.K} * shape.CHW();
  filters += int64_t{k} * shape.CRS();
  float sum = 0.0f;
  for (int crs = 0; crs < shape.CRS(); ++crs) {
    const Tap tap = tap_at(crs, shape);
    const int h = p * shape.stride_h - shape.pad_h, w = q * shape.stride_w - shape.pad_w;
    if (!within(h + tap.h, shape.H) || !within(w + tap.w, shape.W)) continue;
    sum += filters[crs] * input[h * shape.W + w + tap.offset];
  }
  output[i] = sum;
}

void enqueue(const Convolution& conv, cudaStream_t stream) {
  const ConvShape& shape = conv.shape;
  const bool suits = shape.R == SIZE && shape.S == SIZE && shape.stride_h == 1 &&
                     shape.stride_w == 1 && shape.dil_h == 1 && shape.dil_w == 1;
  const int64_t planes = int64_t{shape.N} * shape.total_K();
  const int64_t threads = planes * ceil_div(shape.P(), suits ? ROWS : 1) * shape.Q();
  const unsigned blocks = grid_x(ceil_div(threads, THREADS));
  if (suits) {
    conv2d<<<blocks, THREADS, 0, stream>>>(shape, conv.input, conv.filters, conv.output);
  } else {
    conv2d_any<<<blocks, THREADS, 0, stream>>>(shape, conv.input, conv.filters, conv.output);
  }
  add_bias(conv, stream);
}

CONVLADDER_REGISTER_STAGE({"slide", "rows slide through registers", enqueue, nullptr, false});

}  // namespace
}  // namespace convladder
