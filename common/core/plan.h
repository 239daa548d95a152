// How a stage cuts a problem into blocks, and where its intermediate results lie.
#pragma once

#include <cstddef>

#include "common/core/indexing.h"
#include "common/core/launch.h"
#include "common/core/stage.h"

namespace convladder {

// One block for BM filters of a group and BN pixels, in rows of whole strips.
inline unsigned tile_grid(const ConvShape& shape, int BM, int BN, int strip = 1) {
  const int64_t pixels = int64_t{shape.P()} * round_up(shape.Q(), strip);
  return grid_x(shape.groups * ceil_div(shape.K, BM) * ceil_div(shape.N * pixels, BN));
}

// Filters and taps in the order of their use, as a stage's pack() writes them to its workspace, in tiles
// of BK taps; of each filter's tap so many values.
struct Packed {
  // Tiles whose taps are listed behind the last: those of a tile are copied up to 6 tiles before it.
  static constexpr int AHEAD = 6;

  int padded_CRS;   // whole tiles
  unsigned blocks;  // that pack() needs, each for 32 filters and 32 taps
  float* filters;   // [rows][padded_CRS][values * BM], aligned as the workspace is
  Tap* taps;        // [padded_CRS + AHEAD * BK], and up to 31 more
  std::size_t bytes;

  Packed(const ConvShape& shape, int BM, int BK, void* workspace, int values = 1);
};

// What a stage's blocks cost, as fitted to times of an H200.
struct BlockCosts {
  int per_sm[8];     // blocks that a multiprocessor runs at a time, for TM = 4, 8, ..., 32
  double filters;    // a tap costs as many filters of a thread beside its own
  double taps;       // a block costs as many taps beside its own
  double per_cycle;  // products of each thread of a block that a multiprocessor makes in a cycle
};
inline constexpr BlockCosts FP32_COSTS = {{4, 3, 3, 2}, 3, 20, 1};
inline constexpr BlockCosts TF32_COSTS = {{2, 2, 2, 2}, 6, 60, 2.5};
inline constexpr BlockCosts THREE_PRODUCTS_COSTS = {{2, 2, 2, 2}, 8, 20, 2};
// For one product and for three.
inline constexpr BlockCosts WARPGROUP_COSTS[] = {{{1, 1, 1, 1, 1, 1, 1, 1}, 46, 60, 19},
                                                 {{1, 1, 1, 1, 1, 1, 1, 1}, 22, 60, 7.9}};
inline constexpr BlockCosts COPY_ENGINE_COSTS[] = {{{1, 1, 1, 1, 1, 1, 1, 1}, 18, 80, 19},
                                                   {{1, 1, 1, 1, 1, 1, 1, 1}, 6, 50, 6}};

// What a stage's tiles are compiled for.
struct TileSizes {
  int least_TM;    // filters a thread: from this to most_TM, in steps of 4
  int most_taps;   // of a tile
  int most_parts;  // of a sum
  int values = 1;  // see Packed
  BlockCosts costs = FP32_COSTS;
  int most_TM = 16;
};

// TM filters a thread, in blocks of 8 * TM filters and 128 pixels, and sums in so many parts.
struct Plan {
  int TM, parts, values;
  std::size_t bytes;  // of workspace: the partial sums first, then what is Packed

  // Where the packed values lie in the workspace, and where blocks write to: partial sums, if they are.
  Packed packed(const Convolution& conv, int BK) const;
  float* output(const Convolution& conv) const;
};

// The plan that leaves the busiest multiprocessor the least to do, of those that need at most `limit`
// bytes; if none does, the one that needs the fewest.
Plan best_plan(const ConvShape& shape, std::size_t limit, const TileSizes& sizes);

// Whether strips of `strip` outputs, which end with their row, add at most an eighth to it. Where they
// add more, or the filter is dilated, any pixels are better.
inline bool suits_strips(const ConvShape& shape, int strip) {
  const int added = round_up(shape.Q(), strip) - shape.Q();
  return shape.dil_w == 1 && added <= shape.Q() / 8 && shape.PQ() < 1 << 30;
}

}  // namespace convladder
