// A product of two small matrices by the tensor core: one instruction of a whole warp.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

#ifndef __CUDACC__
#include "common/simulator/tensor_core.h"
#endif

namespace convladder {

// TF32 is a float of which the tensor core reads the sign, the exponent and 10 bits more.
constexpr uint32_t TF32_BITS = 0xffffe000;

// d = a * b + c, with a [16 x 8], b [8 x 8], c and d [16 x 8] spread over the 32 lanes. Lane
// 4 * row + col (row 0..7, col 0..3) holds
//   a[0]: (row, col)    a[1]: (row + 8, col)    a[2]: (row, col + 4)    a[3]: (row + 8, col + 4)
//   b[0]: (col, row)    b[1]: (col + 4, row)
//   c[0]: (row, 2 col)  c[1]: (row, 2 col + 1)  c[2], c[3]: the same 8 rows below; and d as c.
// The low 13 bits of a and b don't count. Products are exact, sums are truncated: see
// docs/simulator.md. All lanes must come to the same call together; d may be c.
#ifdef __CUDACC__
__device__ inline void mma_tf32(float (&d)[4], const float (&a)[4], const float (&b)[2],
                                const float (&c)[4]) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
        "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])),
        "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
#else
  __trap();  // no such instruction: compute capability 8.0 has the first
#endif
}
#else
inline void mma_tf32(float (&d)[4], const float (&a)[4], const float (&b)[2], const float (&c)[4],
                     simulator::Place place = simulator::Place::here()) {
  simulator::mma_tf32(d, a, b, c, place);
}
#endif

// The nearest TF32 number (of two, the one farther from zero). Beyond the largest of them: infinity.
// NaN may become 0.
__device__ inline float to_tf32(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof(bits));
  bits = (bits + (~TF32_BITS + 1) / 2) & TF32_BITS;
  memcpy(&x, &bits, sizeof(x));
  return x;
}

}  // namespace convladder
