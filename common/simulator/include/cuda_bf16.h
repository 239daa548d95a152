// The simulator's <cuda_bf16.h>.
#pragma once

#include "common/simulator/include/names_begin.h"

// NOLINTBEGIN(bugprone-reserved-identifier): CUDA's names
#include "common/simulator/half.h"

using __nv_bfloat16 = convladder::simulator::SmallFloat<8, 7>;
using __nv_bfloat162 = convladder::simulator::HalfPair<__nv_bfloat16>;
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

#define H __nv_bfloat16
#define H2 __nv_bfloat162
#define WORD(before, after) before##bfloat16##after
#define PAIR(before, after) before##bfloat162##after
#define BOTH __bfloat162bfloat162
#include "half_functions.inc"
#undef H
#undef H2
#undef WORD
#undef PAIR
#undef BOTH
// NOLINTEND(bugprone-reserved-identifier)

#include "common/simulator/include/names_end.h"
