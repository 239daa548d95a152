// The first kernels of stage 15: the input channels last, and filters in that order.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>

#include "common/core/indexing.h"
#include "common/core/mma.h"
#include "common/core/view.h"

namespace convladder {

// A view's channel is channel `c` of the input at the tap (r, s), or none where c is C or more.
struct Channel {
  int c, r, s;

  __device__ Channel(int channel, const ConvShape& shape, const View& view) {
    const int tap = channel / view.per_tap, taps = shape.S / view.shape.S;
    c = channel % view.per_tap, r = tap / taps, s = tap % taps;
  }
  // To the next.
  __device__ void step(const ConvShape& shape, const View& view) {
    if (++c == view.per_tap) c = 0, ++s;
    if (s == shape.S / view.shape.S) s = 0, ++r;
  }
};

// One block turns 32 channels of 128 pixels of [images][C][pixels], in shared memory, so that warps read and
// write neighbours. As TF32 numbers, if ROUNDED.
template <bool ROUNDED>
__global__ void turn(View view, const float* __restrict__ input, float* __restrict__ to) {
  __shared__ float turned[32][128 + 1];
  const int C = view.shape.C, plane = view.shape.H * view.columns, strips = (plane + 127) / 128;
  const int columns = (view.pitch + 31) / 32, tx = threadIdx.x, ty = threadIdx.y;
  const int p0 = blockIdx.x % strips * 128, c0 = blockIdx.x / strips % columns * 32;
  const int image = blockIdx.x / strips / columns;  // of the groups' batches, one behind the other
  const int n = image % view.shape.N, group = image / view.shape.N;
  input += ((int64_t{n} * view.shape.groups + group) * C + c0) * plane + p0;
  UNROLL for (int i = 0; i < 32; i += 8) {
    UNROLL for (int j = 0; j < 128; j += 32) {
      const bool inside = c0 + i + ty < C && p0 + j + tx < plane;
      const float x = inside ? input[(i + ty) * plane + j + tx] : 0.0f;
      turned[i + ty][j + tx] = ROUNDED ? to_tf32(x) : x;
    }
  }
  __syncthreads();  // written along one axis, read along the other
  to += (int64_t{image} * plane + p0) * view.pitch + c0;
  if (c0 + tx >= view.pitch) return;
  UNROLL for (int j = 0; j < 128; j += 8) {
    if (p0 + j + ty < plane) to[int64_t{j + ty} * view.pitch + tx] = turned[tx][j + ty];
  }
}

// The same of any view: one block gathers up to 16 channels of 256 pixels, a thread those of one pixel.
template <bool ROUNDED>
__global__ void gather(ConvShape shape, View view, const float* __restrict__ input,
                       float* __restrict__ to) {  // [groups,N,H,columns,pitch]
  __shared__ float values[16 * 256];
  const int width = min(view.pitch, 16), rows = (view.pitch + width - 1) / width, tid = threadIdx.x;
  const int plane = view.shape.H * view.columns, strips = (plane + 255) / 256;
  const int p0 = blockIdx.x % strips * 256, c0 = blockIdx.x / strips % rows * width;
  const int image = blockIdx.x / strips / rows, n = image % shape.N, group = image / shape.N;
  const int pixel = view.layout == NHWC ? shape.groups * shape.C : 1;
  const int channel = view.layout == NHWC ? 1 : shape.H * shape.W;
  input += n * shape.input_pitch() + int64_t{group} * shape.C * channel;
  const int h = (p0 + tid) / view.columns * view.every_h - view.shift_h;
  const int w = (p0 + tid) % view.columns * view.every_w - view.shift_w;
  Channel at(c0, shape, view);
  for (int i = 0; i < width; ++i, at.step(shape, view)) {
    const int y = h + at.r * shape.dil_h, x = w + at.s * shape.dil_w;
    const bool inside =
        p0 + tid < plane && c0 + i < view.channels && within(y, shape.H) && within(x, shape.W);
    const float value = inside ? input[at.c * channel + (y * shape.W + x) * pixel] : 0.0f;
    values[tid * width + i] = ROUNDED ? to_tf32(value) : value;
  }
  __syncthreads();  // a pixel's values are written by one thread, and read by several
  to += (int64_t{image} * plane + p0) * view.pitch + c0;
  const int count = min(256, plane - p0) * width;
  for (int i = tid; i < count; i += 256) {
    if (rows == 1) {
      to[i] = values[i];
    } else if (c0 + i % 16 < view.pitch) {
      to[int64_t{i / 16} * view.pitch + i % 16] = values[i];
    }
  }
}

// The input of a view that does not use it as it lies.
template <bool ROUNDED>
void write_channels_last(const ConvShape& shape, const View& view, const float* input, float* to,
                         cudaStream_t stream) {
  const int64_t images = int64_t{shape.groups} * shape.N, plane = view.plane();
  if (view.layout == NCHW && view.plain) {
    const dim3 blocks(grid_x(ceil_div(plane, 128) * ceil_div(view.pitch, 32) * images));
    turn<ROUNDED><<<blocks, dim3(32, 8), 0, stream>>>(view, input, to);
  } else {
    const int64_t rows = ceil_div(view.pitch, std::min(view.pitch, 16));
    const dim3 blocks(grid_x(ceil_div(plane, 256) * rows * images));
    gather<ROUNDED><<<blocks, 256, 0, stream>>>(shape, view, input, to);
  }
}

// As pack(), in the order of a view's tiles. A block has 32 channels of 32 filters, and all their taps, or
// some if that would be few blocks. A thread reads one filter's taps of one channel, which are neighbours.
inline dim3 packing_blocks(const ConvShape& shape, const View& view, int BM) {
  const int64_t blocks = shape.groups * ceil_div(shape.K, BM) * (BM / 32) * view.chunks;
  const int64_t taps = view.shape.R * view.shape.S;
  return {grid_x(blocks), static_cast<unsigned>(std::min(taps, ceil_div(512, blocks)))};
}
template <int BM, class Order>
__global__ void pack_view(ConvShape shape, View view,
                          const float* __restrict__ filters,  // [K,C,R,S]
                          float* __restrict__ packed) {
  const ConvShape& seen = view.shape;
  const Block block(blockIdx.x / (BM / 32), shape, BM);
  const int m0 = blockIdx.x % (BM / 32) * 32 + threadIdx.y;
  const int channel = block.column * View::BK + threadIdx.x;
  const Channel at(channel, shape, view);
  const bool exists = channel < seen.C && at.c < shape.C;
  const int taps = seen.R * seen.S, some = (taps + gridDim.y - 1) / gridDim.y;
  const int first = blockIdx.y * some, end = min(first + some, taps);
  const int64_t tile = int64_t{block.row} * view.tiles + block.column;
  filters += int64_t{block.k0} * shape.CRS() + (at.c * shape.R + at.r) * shape.S + at.s;
  for (int m = m0; m < m0 + 32; m += 8) {
    const bool inside = exists && block.k0 + m < block.k_end;
    UNROLL_BY(4) for (int rs = first; rs < end; ++rs) {
      const int crs = rs / seen.S * shape.S + rs % seen.S;
      const float w = inside ? filters[int64_t{m} * shape.CRS() + crs] : 0.0f;
      const int64_t tap = (tile + rs * view.chunks) * View::BK + threadIdx.x;
      Order::template put<BM>(packed, tap, m, w);
    }
  }
}

}  // namespace convladder
