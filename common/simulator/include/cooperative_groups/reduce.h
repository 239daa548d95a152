// The simulator's <cooperative_groups/reduce.h>, which is also <cooperative_groups/scan.h>.
#pragma once

#include "common/simulator/include/names_begin.h"

#include <cooperative_groups.h>

namespace cooperative_groups {

#define CONVLADDER_OPERATION(name, expression)                          \
  template <typename T>                                                 \
  struct name {                                                         \
    T operator()(T a, T b) const { return static_cast<T>(expression); } \
  };
CONVLADDER_OPERATION(plus, a + b)
CONVLADDER_OPERATION(less, b < a ? b : a)
CONVLADDER_OPERATION(greater, a < b ? b : a)
CONVLADDER_OPERATION(bit_and, a& b)
CONVLADDER_OPERATION(bit_or, a | b)
CONVLADDER_OPERATION(bit_xor, a ^ b)
#undef CONVLADDER_OPERATION

// Of tiles and of coalesced groups, as in CUDA.
template <typename T, typename Combine>
T reduce(const coalesced_group& group, T value, const Combine& combine, CONVLADDER_HERE) {
  return sim::reduce("reduce", place, group.lanes(), value, combine);
}

// What the lanes up to this one come to; exclusive: those before it, and T() for the first.
template <typename T, typename Combine = plus<T>>
T inclusive_scan(const coalesced_group& group, T value, const Combine& combine = {},
                 CONVLADDER_HERE) {
  const auto rank = static_cast<unsigned>(group.thread_rank());
  for (unsigned step = 1; step < group.size(); step *= 2) {
    const T before = group.shfl_up(value, step, place);
    if (rank >= step) value = combine(before, value);
  }
  return value;
}
template <typename T, typename Combine = plus<T>>
T exclusive_scan(const coalesced_group& group, T value, const Combine& combine = {},
                 CONVLADDER_HERE) {
  const T before = group.shfl_up(inclusive_scan(group, value, combine, place), 1, place);
  return group.thread_rank() == 0 ? T() : before;
}

}  // namespace cooperative_groups

#include "common/simulator/include/names_end.h"
