// A grid that is too small: sums cut in parts.
#include "common/core/add_bias.h"
#include "common/core/indexing.h"
#include "common/core/launch.h"
#include "common/core/stage.h"

namespace convladder {
namespace {

constexpr int BM = 16, BN = 16, BK = 16;  // filters, output pixels and taps of a tile
constexpr int THREADS = BM * BN;          // one output each

int64_t tiles_of(const ConvShape& shape) {  // of the output
  return ceil_div(shape.K, BM) * ceil_div(int64_t{shape.N} * shape.PQ(), BN);
}

// ---- your part ----
// In how many parts a sum is cut, and the tap with which a part begins.
int parts_for(const ConvShape&) { return 1; }
__device__ int first_tap(int part, int parts, int CRS) { return part < parts ? 0 : CRS; }

// output[i] = the sum of the parts' sums[i]; one thread per output of a group.
__global__ void add_parts(ConvShape shape, int parts, int blocks, int64_t pitch, const float* sums,
                          float* output) {
  const int kpq = blockIdx.x % blocks * 256 + threadIdx.x;
  if (kpq >= shape.KPQ()) return;
  const int64_t i = blockIdx.x / blocks * shape.output_pitch() + kpq;
  output[i] = sums[i];  // of one part
}
// ---- end of your part ----

// Tap crs = (c,r,s) of filter k; zero where there is none, and from `end` on.
__device__ float filter_at(const float* filters, int k, int crs, int end, const ConvShape& shape) {
  return k < shape.K && crs < end ? filters[k * shape.CRS() + crs] : 0.0f;
}

// The input of `image` under tap crs of the window that begins at row h0, column w0; zero on padding.
__device__ float input_at(const float* image, int h0, int w0, int crs, const ConvShape& shape) {
  const Tap tap = tap_at(crs, shape);
  const bool inside = within(h0 + tap.h, shape.H) && within(w0 + tap.w, shape.W);
  return inside ? image[h0 * shape.W + w0 + tap.offset] : 0.0f;
}

__global__ void __launch_bounds__(THREADS)
    conv2d(ConvShape shape, int parts, int blocks_m, int64_t pitch,
           const float* __restrict__ input,    // [N,C,H,W]
           const float* __restrict__ filters,  // [K,C,R,S]
           float* __restrict__ sums) {         // [parts] of [N,K,P,Q], `pitch` apart
  __shared__ float w_tile[BM][BK];
  __shared__ float x_tile[BK][BN];
  const int part = blockIdx.x % parts, block = blockIdx.x / parts;
  const int first = first_tap(part, parts, shape.CRS());
  const int end = first_tap(part + 1, parts, shape.CRS());
  const int k0 = block % blocks_m * BM;
  const PixelRange pixels(int64_t{block / blocks_m} * BN, shape);
  const int tx = threadIdx.x % BN, ty = threadIdx.x / BN;  // this thread's pixel, and its filter
  const Pixel at = pixels[tx];
  const bool exists = at.n < shape.N;
  const float* image = input + (exists ? at.n * shape.input_pitch() : 0);
  const int h0 = exists ? at.p * shape.stride_h - shape.pad_h : OUTSIDE;
  const int w0 = at.q * shape.stride_w - shape.pad_w;

  float sum = 0.0f;
  for (int crs = first; crs < end; crs += BK) {
    w_tile[ty][tx] = filter_at(filters, k0 + ty, crs + tx, end, shape);
    x_tile[ty][tx] = input_at(image, h0, w0, crs + ty, shape);
    __syncthreads();  // the tiles are complete
    for (int i = 0; i < BK; ++i) sum += w_tile[ty][i] * x_tile[i][tx];
    __syncthreads();  // the tiles are read to the end
  }
  if (exists && k0 + ty < shape.K) sums[part * pitch + offset(at, k0 + ty, shape)] = sum;
}

// Where the sums go: with one part, straight to the output.
std::size_t workspace(const ConvShape& shape, std::size_t) {
  const int parts = parts_for(shape);
  return parts > 1 ? parts * shape.N * shape.output_pitch() * sizeof(float) : 0;
}

void enqueue(const Convolution& conv, cudaStream_t stream) {
  const ConvShape& shape = conv.shape;
  const int parts = parts_for(shape);
  const int64_t pitch = shape.N * shape.output_pitch();
  float* sums = parts > 1 ? static_cast<float*>(conv.workspace) : conv.output;
  conv2d<<<grid_x(parts * tiles_of(shape)), THREADS, 0, stream>>>(
      shape, parts, static_cast<int>(ceil_div(shape.K, BM)), pitch, conv.input, conv.filters, sums);
  if (parts > 1) {
    const int64_t blocks = ceil_div(shape.KPQ(), 256);
    add_parts<<<grid_x(blocks * shape.N), 256, 0, stream>>>(shape, parts, static_cast<int>(blocks),
                                                            pitch, sums, conv.output);
  }
  add_bias(conv, stream);
}

CONVLADDER_REGISTER_STAGE({"split_k", "sums cut in parts", enqueue, workspace, false});

}  // namespace
}  // namespace convladder
