// Legal problems drawn at random, for fuzzing the stages.
#pragma once

#include <cstdint>

#include "common/check/checker.h"

namespace convladder {

struct RandomProblem : CheckCase {
  uint64_t order_seed = 0;  // of blocks and threads in the simulator

  bool is_misaligned() const { return placement.offsets != std::array<int, 4>(); }
};

// Problem number `index` under `seed`: the same one on every machine. At most `max_macs`
// multiply-adds (1e4 or more) and 2^22 elements of input and output. The seeds are below 2^31; every
// second problem, by its index, is misaligned. Awkward extents come often:
// 1; one less, exactly and one more than tiles and warps hold; filters beyond the input, pads beyond
// the filter, strides beyond both; several groups, of one channel and one filter among them; and the
// filter widths for which stage 10 has kernels of their own.
RandomProblem random_problem(uint64_t seed, uint64_t index, double max_macs);

}  // namespace convladder
