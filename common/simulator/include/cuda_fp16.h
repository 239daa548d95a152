// The simulator's <cuda_fp16.h>.
#pragma once

#include "common/simulator/include/names_begin.h"

// NOLINTBEGIN(bugprone-reserved-identifier): CUDA's names
#include "common/simulator/half.h"

using __half = convladder::simulator::SmallFloat<5, 10>;
using __half2 = convladder::simulator::HalfPair<__half>;
using half = __half;
using half2 = __half2;
using nv_half = __half;
using nv_half2 = __half2;

#define H __half
#define H2 __half2
#define WORD(before, after) before##half##after
#define PAIR(before, after) before##half2##after
#define BOTH __half2half2
#include "half_functions.inc"
#undef H
#undef H2
#undef WORD
#undef PAIR
#undef BOTH
// NOLINTEND(bugprone-reserved-identifier)

#include "common/simulator/include/names_end.h"
