// The tensor core: a product of matrices that the lanes of a warp make together.
#pragma once

#include "common/simulator/device_calls.h"

namespace convladder::simulator {

// One lane's part of a product of TF32 matrices, as common/core/mma.h describes it.
struct LaneProduct {
  const float *a, *b;  // 4 and 2 values
  float *sum, *below;  // 2 each
};

// Called inside a kernel, by each lane of a warp: returns when all 32 have come and the sum is written.
// Fails the kernel where they come to different lines, or some never do.
void mma_tf32(LaneProduct product, Place place = Place::here());

// What the tensor core makes of 8 products and an addend: each product exact, of x and w without
// their low 13 bits, all nine cut off (toward zero) at the same bit, the 25th behind the leading bit
// of the largest exponent, then added exactly, and the sum cut off to a float.
float multiply_add_tf32(const float (&x)[8], const float (&w)[8], float addend);

// Likewise of up to 16 products of half-precision numbers, all of whose bits count: an instruction adds
// up 16. (Not held against a GPU's results yet.)
float multiply_add_half(const float* x, const float* w, int count, float addend);

// The whole product: of the parts of 32 lanes.
void multiply(void* const* parts);

}  // namespace convladder::simulator
