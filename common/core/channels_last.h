// The first kernels of stage 15: the input channels last, and filters in that order.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>

#include "common/core/hopper.h"
#include "common/core/indexing.h"
#include "common/core/mma.h"
#include "common/core/view.h"

namespace convladder {

// A view's channel is channel `c` of the input at the tap (r, s), or none where c is C or more.
struct Channel {
  int c, r, s;

  __device__ Channel(int channel, const View& view) {
    const int tap = channel / view.per_tap;
    c = channel % view.per_tap, r = tap % view.rows, s = tap / view.rows;
  }
  // To the next.
  __device__ void step(const View& view) {
    if (++c == view.per_tap) c = 0, ++r;
    if (r == view.rows) r = 0, ++s;
  }
};

// Shared memory of the blocks of prepare(), in floats.
constexpr int PREPARING = 8 * 4 * 32 * 9;

// One block turns 32 channels of 128 pixels of an image, or of its group, in shared memory, so that warps read and
// write neighbours.
__device__ inline void turn(int index, const View& view, const float* input, float* to,
                            float* room) {
  constexpr int PITCH = 128 + 1;
  const int C = view.channels, plane = view.shape.H * view.columns, strips = (plane + 127) / 128;
  const int columns = (view.pitch + 31) / 32, tx = threadIdx.x % 32, ty = threadIdx.x / 32;
  const int p0 = index % strips * 128, c0 = index / strips % columns * 32;
  const int image = index / strips / columns, N = view.shape.N;
  input += ((image % N * view.images() / N + image / N) * C + c0) * plane + p0;
  UNROLL for (int i = 0; i < 32; i += 8) {
    UNROLL for (int j = 0; j < 128; j += 32) {
      const bool inside = c0 + i + ty < C && p0 + j + tx < plane;
      room[(i + ty) * PITCH + j + tx] = inside ? input[(i + ty) * plane + j + tx] : 0.0f;
    }
  }
  __syncthreads();  // written along one axis, read along the other
  to += (int64_t{image} * plane + p0) * view.pitch + c0;
  if (c0 + tx >= view.pitch) return;
  UNROLL for (int j = 0; j < 128; j += 8) {
    if (p0 + j + ty < plane) to[int64_t{j + ty} * view.pitch + tx] = room[tx * PITCH + j + ty];
  }
}

// The same of any view: one block gathers up to 16 channels of some 4096 / channels pixels, a thread those of
// one pixel after the other.
__device__ inline void gather(int index, const ConvShape& shape, const View& view,
                              const float* input, float* to, float* room) {
  const int width = view.gathered(), rows = (view.pitch + width - 1) / width;
  const int pixels = 16 / width * 256;
  const int plane = view.shape.H * view.columns, strips = (plane + pixels - 1) / pixels;
  const int p0 = index % strips * pixels, c0 = index / strips % rows * width;
  const int image = index / strips / rows, n = image % shape.N, group = image / shape.N;
  const int pixel = view.layout == NHWC ? shape.groups * shape.C : 1;
  const int channel = view.layout == NHWC ? 1 : shape.H * shape.W;
  const int end = min(pixels, plane - p0);
  input += n * shape.input_pitch() + int64_t{group} * shape.C * channel;
  const Channel first(c0, view);
  for (int p = threadIdx.x; p < end; p += 256) {
    const int h = (p0 + p) / view.columns * view.every_h - view.shift_h;
    const int w = (p0 + p) % view.columns * view.every_w - view.shift_w;
    Channel at = first;
    for (int i = 0; i < width; i += 4) {
      float four[4];
      UNROLL for (int j = 0; j < 4; ++j) {
        const int y = h + at.r * shape.dil_h, x = w + at.s * shape.dil_w;
        const bool inside = c0 + i + j < view.channels && at.c < shape.C && within(y, shape.H) &&
                            within(x, shape.W);
        four[j] = inside ? input[at.c * channel + (y * shape.W + x) * pixel] : 0.0f;
        at.step(view);
      }
      if (width % 4 == 0) {
        vec4(room + p * width + i) = make_float4(four[0], four[1], four[2], four[3]);
      }
      UNROLL for (int j = 0; j < 4 && width % 4 != 0; ++j) {
        if (i + j < width) room[p * width + i + j] = four[j];
      }
    }
  }
  __syncthreads();  // a pixel's values are written by one thread, and read by several
  to += (int64_t{image} * plane + p0) * view.pitch + c0;
  for (int i = threadIdx.x; i < end * width; i += 256) {
    if (rows == 1) {
      to[i] = room[i];
    } else if (c0 + i % 16 < view.pitch) {
      to[int64_t{i / 16} * view.pitch + i % 16] = room[i];
    }
  }
}

// As pack(), in the order of a view's tiles. A warp has 32 channels of four filters, and one of `parts` of their
// taps. It reads them as they lie, up to 9 taps of each channel at a time.
template <int BM, class Order>
__device__ void pack_view(int index, int parts, const View& view,
                          const float* filters,  // [K,C,R,S], or [K,R,S,C]
                          float* packed, float* room) {
  constexpr int FILTERS = 4, TAPS = 9;
  const ConvShape &seen = view.shape, &shape = view.given;
  const int lane = threadIdx.x % 32, part = index % parts;
  const Block block(index / parts / (BM / 32), seen, BM);
  const int m0 = index / parts % (BM / 32) * 32 + threadIdx.x / 32 * FILTERS;
  const int seen_channel = block.column * View::BK + lane;
  const Channel at(seen_channel, view);
  const int taps = seen.R * seen.S, per_part = (taps + parts - 1) / parts;
  const int step =
      seen.S < shape.S ? view.rows * shape.S : 1;  // from a tap of the view to the next
  const bool last = view.layout == NHWC;
  const int per_channel = last ? 1 : shape.R * shape.S, hop = last ? shape.C : 1;
  const int64_t tile = int64_t{block.row} * view.tiles + block.column;
  room += threadIdx.x / 32 * FILTERS * 32 * TAPS;
  const int end = min((part + 1) * per_part, taps);
  for (int first = part * per_part; first < end; first += TAPS) {
    const int some = min(end - first, TAPS), pitch = some | 1;
    __syncwarp();  // the taps before are read
    UNROLL for (int f = 0; f < FILTERS; ++f) {
      const int k = block.k0 + m0 + f, c = at.c - k / shape.K % view.merged * shape.C;
      const bool inside = seen_channel < seen.C && within(c, shape.C) && k < block.k_end;
      const int rs = at.r * shape.S + at.s + first * step;
      const int from = inside ? c * per_channel + rs * hop : -1;
      const float* const filter = filters + int64_t{k} * shape.CRS();
      // Neighbours read taps of a channel, or channels of a tap, as these lie.
      const int channels = last ? 0 : 32 / some, more = last ? 1 : 32 % some;
      UNROLL_BY(9)
      for (int i = lane, channel = last ? lane : lane / some, tap = last ? 0 : lane % some;
           i < 32 * some; i += 32) {
        const int begin = __shfl_sync(~0u, from, channel);
        const unsigned tap_at = begin + tap * step * hop;  // behind the filter: no row of it
        room[(f * 32 + channel) * pitch + tap] =
            begin < 0 || tap_at >= static_cast<unsigned>(shape.CRS()) ? 0.0f : filter[tap_at];
        channel += channels, tap += more;
        if (tap >= some) tap -= some, ++channel;
      }
    }
    __syncwarp();  // written along taps, read along channels
    for (int rs = first; rs < first + some; ++rs) {
      const int64_t to = (tile + rs * view.chunks) * View::BK + lane;
      const bool has = at.r + rs / seen.S * view.rows < shape.R;  // the filter, such a row
      UNROLL for (int f = 0; f < FILTERS; ++f) {
        const float value = room[(f * 32 + lane) * pitch + rs - first];
        Order::template put<BM>(packed, to, m0 + f, has ? value : 0.0f);
      }
    }
  }
}

// The first kernel. Some blocks put the filters in order, and the others write the input channels last, if it
// doesn't lie so.
template <int BM, class Order>
__global__ void __launch_bounds__(256, 4)
    prepare(View view, View of_filters, int packing,
            int parts,  // blocks that pack, and see pack_view()
            const float* __restrict__ filters, float* __restrict__ packed,
            const float* __restrict__ input,
            float* __restrict__ to) {  // [images,H,columns,pitch]
  __shared__ float room[PREPARING];
  const int index = static_cast<int>(blockIdx.x) - packing;
  if (index < 0) {
    pack_view<BM, Order>(blockIdx.x, parts, of_filters, filters, packed, room);
  } else if (view.layout == NCHW && view.plain) {
    turn(index, view, input, to, room);
  } else {
    ConvShape shape = view.given;
    if (view.together) shape.C = view.channels, shape.groups = 1;
    gather(index, shape, view, input, to, room);
  }
}

// Nothing is packed where `filters` is null.
template <int BM, class Order>
void enqueue_prepare(const View& view, const float* filters, float* packed, const float* input,
                     float* to, cudaStream_t stream) {
  const View of_filters = view.of_filters();
  const ConvShape& seen = of_filters.shape;
  const int64_t blocks = seen.groups * ceil_div(seen.K, BM) * (BM / 32) * of_filters.chunks;
  const int64_t parts = std::min<int64_t>(seen.R * seen.S, ceil_div(512, blocks));
  const int64_t packing = filters ? blocks * parts : 0, plane = view.plane();
  int64_t writing = 0;
  if (!view.as_it_lies && view.layout == NCHW && view.plain) {
    writing = ceil_div(plane, 128) * ceil_div(view.pitch, 32) * view.images();
  } else if (!view.as_it_lies) {
    const int width = view.gathered();
    writing = ceil_div(plane, 16 / width * 256) * ceil_div(view.pitch, width) * view.images();
  }
  if (packing + writing == 0) return;
  prepare<BM, Order><<<grid_x(packing + writing), 256, 0, stream>>>(
      view, of_filters, static_cast<int>(packing), static_cast<int>(parts), filters, packed, input,
      to);
}

// Filter k's output over some tiles, of its own group's channels and its window's rows: where others made it NaN.
template <bool THREE>
__device__ inline float own_sum(const View& view, const float* input, const Pixel& out, int k,
                                int m, const float* tile, int W, int first, int tiles,
                                const float* bias, bool relu) {
  const ConvShape& shape = view.shape;
  const int from = view.together ? k / view.group_K * view.group_C : 0, group = k / shape.K;
  const int own = view.together ? view.group_C : shape.C, c0 = view.together ? group * shape.C : 0;
  const int image = (view.together ? 0 : group * shape.N) + out.n;
  float sum = bias ? bias[k] : 0.0f;
  for (int i = first; i < first + tiles; ++i, tile += W) {
    const int rs = i / view.chunks, c_tile = c0 + i % view.chunks * View::BK;
    const int h = out.p * shape.stride_h - shape.pad_h + rs / shape.S * shape.dil_h;
    const int w = out.q * shape.stride_w - shape.pad_w + rs % shape.S * shape.dil_w;
    if (!within(h, shape.H) || !within(w, shape.W)) continue;
    const float* const pixel =
        view.planes ? input + (int64_t{image} * view.channels + c_tile) * shape.W + w
                    : input + (int64_t{image} * shape.H + h) * view.columns * view.pitch +
                          int64_t{w} * view.step + c_tile;
    UNROLL_BY(1) for (int c = 0; c < View::BK; ++c) {  // rare: as little code as can be
      const int row = (c_tile + c) / view.per_tap % view.rows + rs / shape.S * view.rows;
      if (!within(c_tile + c - from, own)) continue;
      if (view.rows > 1 && row >= view.filter_rows) continue;  // which is no row of the window
      const float* const f = tile + swizzled(m, c);
      sum += pixel[view.planes ? int64_t{c} * shape.W : c] * (THREE ? f[0] + f[W / 2] : f[0]);
    }
  }
  return relu && sum < 0.0f ? 0.0f : sum;  // false for NaN, which stays
}

}  // namespace convladder
