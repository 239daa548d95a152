// A product of two small matrices by the tensor core: one instruction of a whole warp.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#ifndef __CUDACC__
#include <algorithm>

#include "common/simulator/tensor_core.h"
#endif

namespace convladder {

// TF32 is a float of which the tensor core reads the sign, the exponent and 10 bits more.
constexpr uint32_t TF32_BITS = 0xffffe000;

// sum += a * b, with a [16 x 8], b [8 x 8] and the sum [16 x 8], its 8 rows below apart, spread over the 32
// lanes. Lane 4 * row + col (row 0..7, col 0..3) holds
//   a[0]: (row, col)        a[1]: (row + 8, col)        a[2]: (row, col + 4)    a[3]: (row + 8, col + 4)
//   b[0]: (col, row)        b[1]: (col + 4, row)
//   sum[0]: (row, 2 col)    sum[1]: (row, 2 col + 1)    below[0], below[1]: the same, 8 rows below
// a and b must be TF32 numbers, see to_tf32(): of others CUDA promises nothing, though an H200 reads them
// without their low 13 bits. Products are exact, sums are truncated: see docs/simulator.md. All lanes
// must come to the same call together.
#ifdef __CUDACC__
__device__ inline void mma_tf32(float* sum, float* below, const float* a, const float* b) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(below[0]), "+f"(below[1])
      : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
        "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
#else
  __trap();  // no such instruction: compute capability 8.0 has the first
#endif
}
#else
__device__ inline void mma_tf32(float* sum, float* below, const float* a, const float* b,
                                simulator::Place place = simulator::Place::here()) {
  float d[4] = {sum[0], sum[1], below[0], below[1]};
  simulator::mma_tf32(d, a, b, d, place);
  std::copy_n(d, 2, sum);
  std::copy_n(d + 2, 2, below);
}
#endif

// The nearest TF32 number, of two the even one. Beyond the largest of them: infinity. NaN stays NaN.
__device__ inline float to_tf32(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  uint32_t rounded;
  asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(x));
  return __uint_as_float(rounded);
#else
  if (x != x) return x;
  uint32_t bits = __float_as_uint(x);
  bits = (bits + 0xfff + (bits >> 13 & 1)) & TF32_BITS;
  return __uint_as_float(bits);
#endif
}

// What is left of x beside `high`, as a TF32 number: their sum is at least as far from zero as x, if
// OUTWARD, else at most. If of two factors one is cut outward and one inward, the errors cancel.
template <bool OUTWARD>
__device__ inline float rest_in_tf32(float x, float high) {
  const float rest = x - high;
  uint32_t bits = __float_as_uint(rest);
  const uint32_t sign = __float_as_uint(x);
  if (((bits ^ sign) & 0x80000000u) == (OUTWARD ? 0 : 0x80000000u))
    bits += ~TF32_BITS;  // the next one away from zero
  return __uint_as_float(bits & TF32_BITS);
}

}  // namespace convladder
