// The first kernel of stages 07 to 13: filters in the order of their use, and where each tap lies.
#pragma once

#include <cuda_runtime.h>

#include "common/core/hopper.h"
#include "common/core/indexing.h"
#include "common/core/mma.h"
#include "common/core/plan.h"

namespace convladder {

// Where pack() puts a filter's value, and as what: a tap's BM filters are neighbours. `tap` counts the
// taps of all rows of blocks.
struct AsTheyAre {
  static constexpr bool ROWS = false;  // whether neighbours are a filter's taps
  template <int BM>
  static __device__ void put(float* packed, int64_t tap, int m, float w) {
    packed[tap * BM + m] = w;
  }
};

// As TF32 numbers, so that the lanes of a warp, 8 rows of filters by 4 taps, read from banks of their own:
// [taps / 4][BM / 8][4 taps][8 filters].
struct Rounded {
  static constexpr bool ROWS = false;
  template <int BM>
  static __device__ void put(float* packed, int64_t tap, int m, float w) {
    packed[tap / 4 * 4 * BM + m / 8 * 32 + tap % 4 * 8 + m % 8] = to_tf32(w);
  }
};

// Cut in two TF32 numbers, what is left behind what is rounded: [taps / 4][2][BM / 8][4 taps][8 filters].
struct Cut {
  static constexpr bool ROWS = false;
  template <int BM>
  static __device__ void put(float* packed, int64_t tap, int m, float w) {
    const float high = to_tf32(w);
    packed += tap / 4 * 8 * BM + m / 8 * 32 + tap % 4 * 8 + m % 8;
    packed[0] = high, packed[4 * BM] = rest_in_tf32<false>(w, high);
  }
};

// As wgmma reads them, a tile of 32 taps of BM filters at a time: [tiles][BM][32 taps], each row swizzled.
struct RoundedSwizzled {
  static constexpr bool ROWS = true;
  template <int BM>
  static __device__ void put(float* packed, int64_t tap, int m, float w) {
    packed[tap / 32 * 32 * BM + swizzled(m, tap % 32)] = to_tf32(w);
  }
};

// The same, cut in two: [tiles][2][BM][32 taps].
struct CutSwizzled {
  static constexpr bool ROWS = true;
  template <int BM>
  static __device__ void put(float* packed, int64_t tap, int m, float w) {
    const float high = to_tf32(w);
    packed += tap / 32 * 64 * BM + swizzled(m, tap % 32);
    packed[0] = high, packed[32 * BM] = rest_in_tf32<false>(w, high);
  }
};

// One block: 32 filters x 32 taps, turned in shared memory, so that warps read and write neighbours.
template <int BM, class Order = AsTheyAre>
__global__ void pack(ConvShape shape, const float* __restrict__ filters, Packed to) {  // [K,C,R,S]
  __shared__ float turned[32][32 + 1];
  const int tx = threadIdx.x, ty = threadIdx.y, CRS = shape.CRS();
  const Block block(blockIdx.x / (BM / 32), shape, BM);
  const int m0 = blockIdx.x % (BM / 32) * 32, crs0 = block.column * 32, k = block.k0 + m0 + ty;
  const bool inside = k < block.k_end && crs0 + tx < CRS;
  turned[tx][ty] = inside ? filters[k * CRS + crs0 + tx] : 0.0f;
  __syncthreads();  // written along one axis, read along the other
  const int column = Order::ROWS ? ty : tx, row = Order::ROWS ? tx : ty;
  const int m = m0 + column, crs = crs0 + row;
  const int64_t tap = int64_t{block.row} * to.padded_CRS + crs;
  if (crs < to.padded_CRS) Order::template put<BM>(to.filters, tap, m, turned[row][column]);
  if (block.row + m == 0) to.taps[crs] = tap_at(crs, shape);
}

}  // namespace convladder
