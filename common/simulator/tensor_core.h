// The tensor core: a product of matrices that the lanes of a warp make together.
#pragma once

#include <cstdint>

#include "common/simulator/device_calls.h"

namespace convladder::simulator {

// One lane's part of mma.sync with 16 rows, 8 columns and `k` products each: its registers, as PTX has them.
struct LaneProduct {
  enum Number : uint8_t { kTf32, kHalf, kBfloat16, kSigned, kUnsigned, kFloat, kInteger };
  Number d, a, b, c;
  int k;
  uint32_t result[4], left[4], right[4], addend[4];
};

// Called inside a kernel, by each lane of a warp: returns when all 32 have come and the result is written.
// Fails the kernel where they come to different lines, or some never do.
void multiply(const char* name, LaneProduct& part, Place place);

// The same of TF32 numbers, as common/core/mma.h describes it: 4, 4, 2 and 4 of them.
void multiply_tf32(float* d, const float* a, const float* b, const float* c, Place place);

// The operands are read here, as the kernel's own code reads them: they may lie in memory.
inline void mma_tf32(float* d, const float* a, const float* b, const float* c,
                     Place place = Place::here()) {
  const float left[] = {a[0], a[1], a[2], a[3]}, right[] = {b[0], b[1]};
  multiply_tf32(d, left, right, c, place);
}

// The product itself, of the parts of 32 lanes.
void multiply(void* const* parts);

// What the tensor core makes of up to 16 products and an addend: each product exact, all cut off (toward zero)
// at the same bit, the 25th behind the leading bit of the largest exponent, then added exactly, and the sum cut
// off to a float.
float multiply_add(const float* x, const float* w, int count, float addend);

// The nearest TF32 number, of two the one farther from zero: cvt.rna, and what cuBLAS multiplies.
float nearest_tf32(float x);
float even_tf32(float x);
float truncated_tf32(float x);

// sums [rows][columns] += a [rows][depth] * b [columns][depth], each sum by multiply_add(), with a depth of 8 or 16;
// of half-precision factors, and with sums that are rounded to half precision, where it says so.
void multiply_add(const float* a, const float* b, int rows, int columns, int depth, bool of_half,
                  bool to_half, float* sums);

float float_of_half(uint16_t half);
float float_of_bfloat16(uint16_t bits);
uint16_t half_of(double value);  // to nearest, of two as near the even one

// Of 8, of x and w without their low 13 bits.
float multiply_add_tf32(const float (&x)[8], const float (&w)[8], float addend);

}  // namespace convladder::simulator
