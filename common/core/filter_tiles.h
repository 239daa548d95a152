// Filters in the order in which stages 04 and 05 read them, and where their taps lie in the input.
#pragma once

#include <cuda_runtime.h>

#include <type_traits>

#include "common/core/stage.h"

namespace convladder {

// A run of `taps` neighbours along s, relative to the corner of an output's window.
struct __align__(16) FilterRow {
  int offset;  // of its first tap, in elements of the input
  int h, w;    // in rows and columns; h is OUTSIDE behind the last row
};

struct FilterTiles {
  const float* filters;   // [blocks_m][padded_CRS][BM]: transposed, zero beyond K and C*R*S
  const FilterRow* rows;  // [padded_CRS / taps]
  int blocks_m;           // ceil(K / BM)
  int padded_CRS;         // C*R*S, rounded up to a multiple of BK
};

// Enqueues the filling of conv.workspace. BM: filters per block, a multiple of 32 up to 128; BK: taps
// per tile, at most 32; taps: of a FilterRow, 1 or S (BK is a multiple of it). Throws
// std::logic_error otherwise.
FilterTiles arrange_filters(const Convolution& conv, int BM, int BK, int taps, cudaStream_t stream);

// Bytes that this takes, with any BM that filters_per_thread() chooses: a stage's workspace_bytes.
// There is no working with less, so `limit` is not looked at.
std::size_t filter_tiles_workspace(const ConvShape& shape, std::size_t limit);

// 4, 8, 12 or 16 filters per thread (4 for up to 32 filters, 8 for up to 64), for `blocks_n` blocks
// along the pixels, in each of which THREADS_M = 8 threads share the filters: what leaves the busiest
// multiprocessor the least to do.
int filters_per_thread(int64_t blocks_n, int K);

// Whether `stage` reads filters in this order, and so has tiles of several sizes.
inline bool has_filter_tiles(const Stage& stage) {
  return stage.workspace_bytes == filter_tiles_workspace;
}

// Where not 0, what filters_per_thread() answers for every problem: so that checks see every tile on
// small problems, too, where it would never be chosen.
inline int fixed_filters_per_thread = 0;

// Calls run(tm) with that number as a constant: tm() can be a template's argument.
template <typename Run>
void choose_filters_per_thread(int64_t blocks_n, int K, const Run& run) {
  switch (filters_per_thread(blocks_n, K)) {
    case 4:
      return run(std::integral_constant<int, 4>());
    case 8:
      return run(std::integral_constant<int, 8>());
    case 12:
      return run(std::integral_constant<int, 12>());
    case 16:
      return run(std::integral_constant<int, 16>());
  }
}

}  // namespace convladder
