// Filters in the order in which stages 04 and 05 read them, and where their taps lie in the input.
#pragma once

#include <cuda_runtime.h>

#include "common/core/stage.h"

namespace convladder {

// A run of `taps` neighbours along s, relative to the corner of an output's window.
struct __align__(16) FilterRow {
  int offset;  // of its first tap, in elements of the input
  int h, w;    // in rows and columns; h is OUTSIDE behind the last row
};

struct FilterTiles {
  const float* filters;   // [blocks_m][depth][BM]: transposed, zero beyond K and C*R*S
  const FilterRow* rows;  // [depth / taps]
  int blocks_m;           // ceil(K / BM)
  int depth;              // C*R*S, rounded up to a multiple of BK
};

// Enqueues the filling of conv.workspace. BM: filters per block (at most 128); BK: taps per tile;
// taps: of a FilterRow, 1 or S (BK is a multiple of it).
FilterTiles arrange_filters(const Convolution& conv, int BM, int BK, int taps, cudaStream_t stream);

// Bytes that this takes for any BM up to 128 and BK up to 32.
std::size_t filter_tiles_bytes(const ConvShape& shape);

// 8, 12 or 16 filters per thread, for `blocks_n` blocks along the pixels whose `groups` rows of
// threads share K filters: what leaves the busiest multiprocessor the least to do.
int filters_per_thread(int64_t blocks_n, int K, int groups);

}  // namespace convladder
