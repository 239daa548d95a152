// Filters in the order of their use: eight in a row are two accesses of 16 bytes.
#include "common/core/add_bias.h"
#include "common/core/indexing.h"
#include "common/core/launch.h"
#include "common/core/stage.h"

namespace convladder {
namespace {

constexpr int TM = 8;         // filters of a thread
constexpr int THREADS = 128;  // one pixel each

// ---- your part ----
// Where tap crs of filter k lies in the packed filters; `rows` is K, rounded up to a multiple of TM.
__device__ int place(int k, int crs, int CRS, int rows) { return k < rows ? k * CRS + crs : 0; }

// The values of filters k0 to k0 + 7 for tap crs.
__device__ void read_filters(float (&w)[TM], const float* packed, int k0, int crs, int CRS,
                             int rows) {
  UNROLL for (int m = 0; m < TM; ++m) w[m] = packed[place(k0 + m, crs, CRS, rows)];
}
// ---- end of your part ----

// The first kernel writes each filter's taps to their places, and zeros for filters behind the last.
__global__ void pack(ConvShape shape, int rows, const float* __restrict__ filters,  // [K,C,R,S]
                     float* __restrict__ packed) {                                  // [rows * CRS]
  const int i = blockIdx.x * THREADS + threadIdx.x, k = i / shape.CRS(), crs = i % shape.CRS();
  if (k < rows) packed[place(k, crs, shape.CRS(), rows)] = k < shape.K ? filters[i] : 0.0f;
}

__global__ void __launch_bounds__(THREADS) conv2d(ConvShape shape, int rows,
                                                  const float* __restrict__ input,   // [N,C,H,W]
                                                  const float* __restrict__ packed,  // [rows * CRS]
                                                  float* __restrict__ output) {      // [N,K,P,Q]
  const int k0 = blockIdx.x % (rows / TM) * TM;
  const Pixel at = PixelRange(int64_t{blockIdx.x / (rows / TM)} * THREADS, shape)[threadIdx.x];
  if (at.n >= shape.N) return;
  const float* image = input + at.n * shape.input_pitch();
  const int h0 = at.p * shape.stride_h - shape.pad_h, w0 = at.q * shape.stride_w - shape.pad_w;
  float sum[TM] = {};
  int crs = 0;
  for (int c = 0; c < shape.C; ++c) {
    for (int r = 0; r < shape.R; ++r) {
      for (int s = 0; s < shape.S; ++s, ++crs) {
        const int h = h0 + r * shape.dil_h, column = w0 + s * shape.dil_w;
        float w[TM];
        read_filters(w, packed, k0, crs, shape.CRS(), rows);
        const bool inside = within(h, shape.H) && within(column, shape.W);
        const float x = inside ? image[(c * shape.H + h) * shape.W + column] : 0.0f;
        UNROLL for (int m = 0; m < TM; ++m) sum[m] += w[m] * x;
      }
    }
  }
  UNROLL for (int m = 0; m < TM; ++m) {
    if (k0 + m < shape.K) output[offset(at, k0 + m, shape)] = sum[m];
  }
}

int rows_of(const ConvShape& shape) { return round_up(shape.K, TM); }

std::size_t workspace(const ConvShape& shape, std::size_t) {
  return sizeof(float) * rows_of(shape) * shape.CRS();
}

void enqueue(const Convolution& conv, cudaStream_t stream) {
  const ConvShape& shape = conv.shape;
  const int rows = rows_of(shape);
  float* packed = static_cast<float*>(conv.workspace);
  pack<<<grid_x(ceil_div(int64_t{rows} * shape.CRS(), THREADS)), THREADS, 0, stream>>>(
      shape, rows, conv.filters, packed);
  const int64_t columns = ceil_div(int64_t{shape.N} * shape.PQ(), THREADS);
  conv2d<<<grid_x(rows / TM * columns), THREADS, 0, stream>>>(shape, rows, conv.input, packed,
                                                              conv.output);
  add_bias(conv, stream);
}

CONVLADDER_REGISTER_STAGE({"packing", "filters in order of use", enqueue, workspace, false});

}  // namespace
}  // namespace convladder
