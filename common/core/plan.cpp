#include "common/core/plan.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace convladder {
namespace {

constexpr std::size_t ALIGNMENT = 256;

std::size_t aligned(std::size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

// Of what is Packed.
std::size_t packed_bytes(const ConvShape& shape, int BM, int64_t padded_CRS, int BK, int values) {
  const int64_t rows = shape.groups * ceil_div(shape.K, BM);
  const int64_t listed = ceil_div(padded_CRS + Packed::AHEAD * BK, 32) * 32;
  return rows * BM * values * padded_CRS * sizeof(float) + listed * sizeof(Tap);
}

// Of partial sums.
std::size_t sum_bytes(const ConvShape& shape, int parts) {
  return parts > 1 ? aligned(parts * sizeof(float) * shape.output_count()) : 0;
}

// In cycles, of the busiest multiprocessor: it computes its share of the blocks, and each wave of them,
// as many as run at a time, loses the time of one more. Adding parts costs 4000 cycles until it begins,
// and 8 bytes for each partial sum, 16 in a cycle.
double cost(const ConvShape& shape, const Plan& plan, const BlockCosts& costs, int64_t SMS) {
  constexpr int BN = 128, TN = 8, LEAST_TAPS = 32;
  const int64_t blocks = shape.groups * ceil_div(shape.K, 8 * plan.TM) *
                         ceil_div(int64_t{shape.N} * shape.PQ(), BN) * plan.parts;
  const int64_t share = ceil_div(blocks, SMS);
  const double taps = std::max(shape.CRS() / plan.parts, LEAST_TAPS) + costs.taps;
  const double loop = static_cast<double>(share + ceil_div(share, costs.per_sm[plan.TM / 4 - 1])) *
                      taps * (plan.TM + costs.filters) * TN / costs.per_cycle;
  if (plan.parts == 1) return loop;
  return loop * 1.05 + 4000 + 0.5 * plan.parts * static_cast<double>(shape.output_count()) / SMS;
}

}  // namespace

Packed::Packed(const ConvShape& shape, int BM, int BK, void* workspace, int values)
    : padded_CRS(round_up(shape.CRS(), BK)) {
  const int64_t rows = shape.groups * ceil_div(shape.K, BM);
  const int64_t columns = ceil_div(padded_CRS + AHEAD * BK, 32);
  blocks = grid_x(rows * (BM / 32) * columns);
  filters = static_cast<float*>(workspace);
  taps = reinterpret_cast<Tap*>(filters + rows * BM * values * padded_CRS);
  bytes = packed_bytes(shape, BM, padded_CRS, BK, values);
}

Packed Plan::packed(const Convolution& conv, int BK) const {
  char* const begin = static_cast<char*>(conv.workspace) + sum_bytes(conv.shape, parts);
  return {conv.shape, 8 * TM, BK, begin, values};
}

float* Plan::output(const Convolution& conv) const {
  return parts > 1 ? static_cast<float*>(conv.workspace) : conv.output;
}

Plan best_plan(const ConvShape& shape, std::size_t limit, const TileSizes& sizes) {
  Plan best = {}, smallest = {0, 0, 0, SIZE_MAX};
  double least = HUGE_VAL;
  const int SMS = multiprocessors();
  for (int TM = sizes.least_TM; TM <= sizes.most_TM; TM += 4) {
    const int64_t most_CRS =
        int64_t{shape.CRS()} + sizes.most_taps - 1;  // whole tiles of any length
    const std::size_t packed = packed_bytes(shape, 8 * TM, most_CRS, sizes.most_taps, sizes.values);
    for (int parts = 1; parts <= sizes.most_parts; ++parts) {
      const Plan plan = {TM, parts, sizes.values, packed + sum_bytes(shape, parts)};
      if (plan.bytes < smallest.bytes) smallest = plan;
      if (plan.bytes > limit) break;
      const double cycles = cost(shape, plan, sizes.costs, SMS);
      if (cycles < least) least = cycles, best = plan;
    }
  }
  return best.TM > 0 ? best : smallest;
}

}  // namespace convladder
