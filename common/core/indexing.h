// Index arithmetic that several stages share.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/core/conv_shape.h"

namespace convladder {

// A row or column that no image has. Padded extents end below 2^30, so it stays negative whatever
// row or column is added to it, another OUTSIDE included.
constexpr int OUTSIDE = -(1 << 30);

__host__ __device__ constexpr int round_up(int value, int step) {
  return (value + step - 1) / step * step;
}

// Whether 0 <= index < extent, in one comparison.
__device__ inline bool within(int index, int extent) {
  return static_cast<unsigned>(index) < static_cast<unsigned>(extent);
}

// Where (row, column) lies in rows of `columns`. Outside of them it means nothing and may wrap.
__device__ inline int index(int row, int column, int columns) {
  return static_cast<int>(static_cast<unsigned>(row) * columns + column);
}

// The 16 (8) bytes at `from`, which must be aligned to them: read or written in one access.
__device__ inline float4& vec4(float* from) { return *reinterpret_cast<float4*>(from); }
__device__ inline const float4& vec4(const float* from) {
  return *reinterpret_cast<const float4*>(from);
}
__device__ inline float2& vec2(float* from) { return *reinterpret_cast<float2*>(from); }
__device__ inline const float2& vec2(const float* from) {
  return *reinterpret_cast<const float2*>(from);
}

// An output pixel of the batch: N images of P rows of `row_length` pixels.
struct Pixel {
  int n, p, q;
};

// Where filter k's value at `out` lies in the output [N,K,P,Q]; k counts all groups' filters.
__device__ inline int64_t offset(const Pixel& out, int k, const ConvShape& shape) {
  return out.n * shape.output_pitch() + int64_t{k} * shape.PQ() + (out.p * shape.Q() + out.q);
}

// What the block `index` of tile_grid() (plan.h) computes: BM filters of one group, or the rest of
// them, for a column of pixels. First come the filters of all groups, then the next pixels.
struct Block {
  int row, column;  // its place among the blocks: along filters and along pixels
  int group;        // its filters'
  int k0, k_end;    // the first of them, and the group's end; both count all groups' filters

  __device__ Block(unsigned index, const ConvShape& shape, int BM) {
    const int blocks_m = (shape.K + BM - 1) / BM, rows = shape.groups * blocks_m;
    row = static_cast<int>(index % rows), column = static_cast<int>(index / rows);
    group = row / blocks_m;
    k0 = group * shape.K + row % blocks_m * BM, k_end = (group + 1) * shape.K;
  }
};

// The pixels of one block are `first`, first + 1, ..., in rows of whole strips: only the block's first one
// needs 64 bits.
class PixelRange {
 public:
  __device__ PixelRange(int64_t first, const ConvShape& shape, int strip = 1)
      : PixelRange(first, shape.P() * round_up(shape.Q(), strip), round_up(shape.Q(), strip)) {}
  __device__ PixelRange(int64_t first, int plane, int row_length)
      : plane_(plane), row_length_(row_length) {
    n_ = static_cast<int>(first / plane_);
    pq_ = static_cast<int>(first % plane_);
  }
  __device__ Pixel operator[](int i) const {
    const int pq = pq_ + i, in_plane = pq % plane_;
    return {n_ + pq / plane_, in_plane / row_length_, in_plane % row_length_};
  }

 private:
  int plane_, row_length_, n_, pq_;
};

// The filter taps first, first + step, first + 2 step, ... as (c,r,s); c reaches C behind the last.
// Found by additions with carry, since divisions are slow.
class TapWalk {
 public:
  int c, r, s;

  __device__ TapWalk(int first, int step, const ConvShape& shape)
      : c(first / shape.S / shape.R),
        r(first / shape.S % shape.R),
        s(first % shape.S),
        step_c_(step / shape.S / shape.R),
        step_r_(step / shape.S % shape.R),
        step_s_(step % shape.S) {}
  __device__ void next(const ConvShape& shape) {
    c += step_c_, r += step_r_, s += step_s_;
    if (s >= shape.S) s -= shape.S, ++r;
    if (r >= shape.R) r -= shape.R, ++c;
  }

 private:
  int step_c_, step_r_, step_s_;
};

// Where a filter tap lies, relative to the corner of an output's window.
struct __align__(16) Tap {
  int offset;  // in elements of the input
  int h, w;    // in rows and columns; h is OUTSIDE behind the last tap
};

__device__ inline Tap tap_at(int crs, const ConvShape& shape) {
  if (crs >= shape.CRS()) return {0, OUTSIDE, 0};
  const int c = crs / shape.S / shape.R;
  const int h = crs / shape.S % shape.R * shape.dil_h, w = crs % shape.S * shape.dil_w;
  return {(c * shape.H + h) * shape.W + w, h, w};
}

// Reads a tap in one access. Of several TAPS in a row it is the first, and nobody needs its w.
template <int TAPS>
__device__ inline Tap read_tap(const Tap* tap) {
  if (TAPS == 1) return *tap;
  const int2 row = *reinterpret_cast<const int2*>(tap);
  return {row.x, row.y, 0};
}

}  // namespace convladder
