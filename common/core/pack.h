// The first kernel of stages 07 to 13: filters in the order of their use, and where each tap lies.
#pragma once

#include <cuda_runtime.h>

#include "common/core/indexing.h"

namespace convladder {

// A tap's BM filters are neighbours. `tap` counts the taps of all rows of blocks.
template <int BM>
struct TapByTap {
  static __device__ void put(float* packed, int64_t tap, int m, float w) {
    packed[tap * BM + m] = w;
  }
};

// One block: 32 filters x 32 taps, turned in shared memory, so that warps read and write neighbours.
// Order says where a value is put.
template <int BM, class Order = TapByTap<BM>>
__global__ void pack(ConvShape shape, int padded_CRS,
                     const float* __restrict__ filters,  // [K,C,R,S]
                     float* __restrict__ packed,         // [rows][padded_CRS][BM]
                     Tap* __restrict__ taps) {           // [padded_CRS + ...]
  __shared__ float turned[32][32 + 1];
  const int tx = threadIdx.x, ty = threadIdx.y, CRS = shape.CRS();
  const Block block(blockIdx.x / (BM / 32), shape, BM);
  const int m0 = blockIdx.x % (BM / 32) * 32, crs0 = block.column * 32, k = block.k0 + m0 + ty;
  const bool inside = k < block.k_end && crs0 + tx < CRS;
  turned[tx][ty] = inside ? filters[k * CRS + crs0 + tx] : 0.0f;
  __syncthreads();  // written along one axis, read along the other
  const int m = m0 + tx, crs = crs0 + ty;
  const int64_t tap = int64_t{block.row} * padded_CRS + crs;
  if (crs < padded_CRS) Order::put(packed, tap, m, turned[ty][tx]);
  if (block.row + m == 0) taps[crs] = tap_at(crs, shape);
}

}  // namespace convladder
