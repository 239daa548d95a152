// Index arithmetic that several stages share.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/core/conv_shape.h"

namespace convladder {

// A row or column that no image has. Padded extents end below 2^30, so it stays negative whatever
// row or column is added to it, another OUTSIDE included.
constexpr int OUTSIDE = -(1 << 30);

// In global memory, for padding to be copied from.
static __device__ const float zeros[64] = {};

constexpr int round_up(int value, int step) { return (value + step - 1) / step * step; }

// Whether 0 <= index < extent, in one comparison.
__device__ inline bool within(int index, int extent) {
  return static_cast<unsigned>(index) < static_cast<unsigned>(extent);
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

// Whether vec4() may access every fourth pixel of each plane of `output` [N,K,P,Q].
inline bool planes_are_aligned(const float* output, int64_t PQ) {
  return PQ % 4 == 0 && reinterpret_cast<std::uintptr_t>(output) % 16 == 0;
}

// An output pixel of the batch: N images of P rows of `row_length` pixels.
struct Pixel {
  int n, p, q;
};

// The pixels of one block are `first`, first + 1, ...: only the block's first one needs 64 bits.
class PixelRange {
 public:
  __device__ PixelRange(int64_t first, int P, int row_length)
      : plane_(P * row_length), row_length_(row_length) {
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

}  // namespace convladder
