#include "common/core/filter_tiles.h"

#include <algorithm>
#include <stdexcept>

#include "common/core/indexing.h"
#include "common/core/launch.h"

namespace convladder {
namespace {

constexpr int THREADS_M = 8;  // of a block, across the filters
constexpr int MOST_BM = 16 * THREADS_M, MOST_BK = 32;
constexpr int ALIGN = 16;  // rows: the filters behind them begin at a multiple of 256 bytes

// One block: one of the padded_CRS taps of one block of filters. Neighbouring threads write
// neighbours; their reads are CRS apart, but the filters are small and read once.
__global__ void arrange_filters_kernel(ConvShape shape, int BM, int taps, int padded_CRS,
                                       const float* __restrict__ filters,  // [K,C,R,S]
                                       float* __restrict__ arranged,  // [blocks_m][padded_CRS][BM]
                                       FilterRow* __restrict__ rows) {  // [padded_CRS / taps]
  const int crs = blockIdx.x % padded_CRS, CRS = shape.CRS(), RS = shape.R * shape.S;
  const int m = threadIdx.x, block_m = blockIdx.x / padded_CRS, k = block_m * BM + m;
  const bool exists = k < shape.K && crs < CRS;
  if (m < BM) arranged[int64_t{blockIdx.x} * BM + m] = exists ? filters[k * CRS + crs] : 0.0f;
  if (block_m == 0 && m == 0 && crs % taps == 0) {
    const int h = crs % RS / shape.S * shape.dil_h, w = crs % shape.S * shape.dil_w;
    FilterRow row = {0, OUTSIDE, 0};
    if (crs < CRS) row = {(crs / RS * shape.H + h) * shape.W + w, h, w};
    rows[crs / taps] = row;
  }
}

}  // namespace

FilterTiles arrange_filters(const Convolution& conv, int BM, int BK, int taps,
                            cudaStream_t stream) {
  const ConvShape& shape = conv.shape;
  if (BM % (4 * THREADS_M) != 0 || BM > MOST_BM || BK > MOST_BK || BK % taps != 0) {
    throw std::logic_error("arrange_filters: a tile that the workspace is not made for");
  }
  const int padded_CRS = round_up(shape.CRS(), BK);
  const int blocks_m = static_cast<int>(ceil_div(shape.K, BM));
  FilterRow* rows = static_cast<FilterRow*>(conv.workspace);
  float* arranged = reinterpret_cast<float*>(rows + round_up(padded_CRS / taps, ALIGN));
  launch(arrange_filters_kernel, grid_x(int64_t{blocks_m} * padded_CRS), MOST_BM, stream, shape, BM,
         taps, padded_CRS, conv.filters, arranged, rows);
  return {arranged, rows, blocks_m, padded_CRS};
}

int filters_per_thread(int64_t blocks_n, int K) {
  if (fixed_filters_per_thread != 0) return fixed_filters_per_thread;
  if (K <= 4 * THREADS_M) return 4;
  const int64_t processors = multiprocessors();
  const auto cost = [&](int TM) {
    const int64_t blocks = ceil_div(blocks_n * ceil_div(K, THREADS_M * TM), processors);
    // + 1 block: what a multiprocessor waits when there is no other to turn to; + 3/2 filters: what
    // a thread does besides its TM rows of multiplications. Both fitted to timings on an H200.
    return (blocks + 1) * (2 * TM + 3);
  };
  const int64_t least = std::min({cost(8), cost(12), cost(16)});
  return least == cost(8) ? 8 : least == cost(12) ? 12 : 16;
}

std::size_t filter_tiles_workspace(const ConvShape& shape, std::size_t) {
  const std::size_t taps = std::size_t(shape.CRS()) + MOST_BK - 1;
  const auto filters_with = [&](int TM) { return round_up(shape.K, TM * THREADS_M); };
  int filters = filters_with(fixed_filters_per_thread != 0 ? fixed_filters_per_thread : 4);
  if (shape.K > 8 * THREADS_M) {  // any of these may be chosen
    for (int TM : {8, 12, 16}) filters = std::max(filters, filters_with(TM));
  }
  return taps * (sizeof(FilterRow) + filters * sizeof(float)) + (ALIGN - 1) * sizeof(FilterRow);
}

}  // namespace convladder
