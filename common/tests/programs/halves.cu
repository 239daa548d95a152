// Half-precision types: every conversion of 16 bits, roundings, arithmetic rounded once.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "check.h"

// Every number survives the way to float and back.
__global__ void round_trip() {
  const unsigned short bits = blockIdx.x * blockDim.x + threadIdx.x;
  const __half h = __ushort_as_half(bits);
  const __nv_bfloat16 b = __ushort_as_bfloat16(bits);
  const float f = __half2float(h), g = __bfloat162float(b);
  CHECK(f != f || __half_as_ushort(__float2half(f)) == bits);
  CHECK(g != g || __bfloat16_as_ushort(__float2bfloat16(g)) == bits);
  CHECK(g != g || __float_as_uint(g) == unsigned(bits) << 16);
  // Between this number and the next, and half-way: to nearest, of two as near the even one.
  if ((bits & 0x7fff) >= 0x7bff) return;
  const float next = __half2float(__ushort_as_half(bits + 1)), middle = f + (next - f) / 2;
  CHECK(__half_as_ushort(__float2half(middle)) == bits + bits % 2);
  CHECK(__half_as_ushort(__float2half_rz(middle)) == bits);
  CHECK(__half_as_ushort(__float2half_ru(middle)) == (bits >> 15 ? bits : bits + 1));
  CHECK(__half_as_ushort(__float2half_rd(middle)) == (bits >> 15 ? bits + 1 : bits));
}

__global__ void compute() {
  const __half one = __float2half(1.0f), third = __float2half(1.0f / 3),
               most = __float2half(65504.0f);
  CHECK(__half_as_ushort(third) == 0x3555 && __half_as_ushort(__float2half(65520.0f)) == 0x7c00);
  CHECK(__half_as_ushort(__float2half(65519.0f)) == 0x7bff &&
        __half2float(__float2half(1e-8f)) == 0);
  CHECK(__hisinf(most + most) == 1 && __hisnan(__ushort_as_half(0x7e00)) && !__hisnan(one));
  CHECK(__half2float(third * __float2half(3.0f)) == 1.0f);             // 0.99976, a tie
  CHECK(__half2float(__hadd(__float2half(2048.0f), one)) == 2048.0f);  // a tie
  CHECK(__half2float(__hadd(__float2half(2050.0f), one)) == 2052.0f);
  CHECK(__half2float(__hmul(__float2half(0.1f), __float2half(0.1f))) == 0.0099945068f);
  CHECK(__half2float(__hfma(third, __float2half(3.0f), __float2half(-1.0f))) == -0.00024414062f);
  CHECK(__half2float(__hadd_sat(one, one)) == 1.0f &&
        __half2float(hsqrt(__float2half(2.0f))) == 1.4140625f);
  CHECK(__hlt(third, one) && !__hgt(third, one) && __heq(one, one) && third < one && one != third);
  CHECK(__half2int_rn(__float2half(2.5f)) == 2 && __half2int_rz(__float2half(-2.5f)) == -2);
  CHECK(__half2float(__int2half_rn(2049)) == 2048.0f && __half2float(__hmax(third, one)) == 1.0f);
  CHECK(__half2float(__habs(__hneg(one))) == 1.0f && __half2float(-one) == -1.0f);

  const __half2 pair = __floats2half2_rn(1.5f, -2.0f);
  const __half2 sum = __hadd2(pair, __half2half2(one)), fused = __hfma2(pair, pair, sum);
  CHECK(__low2float(sum) == 2.5f && __high2float(sum) == -1.0f);
  CHECK(__low2float(fused) == 4.75f && __high2float(fused) == 3.0f);
  const float2 both = __half22float2(__lowhigh2highlow(pair));
  CHECK(both.x == -2.0f && both.y == 1.5f && __half2float(__low2half(pair)) == 1.5f);
  CHECK(__hbeq2(pair, pair) && !__hblt2(pair, pair));
  const __half2 odd = __halves2half2(one, __ushort_as_half(0x7e00));  // a NaN
  CHECK(__heq2_mask(odd, odd) == 0xffff && __hequ2_mask(odd, odd) == ~0u && __hbequ2(odd, odd) &&
        !__hbne2(pair, pair));
  CHECK(__half_as_ushort(__hmin2_nan(odd, pair).y) == 0x7e00 &&
        __high2float(__hmin2(odd, pair)) == -2);
  CHECK(__half2short_rz(__float2half(-2.5f)) == -2 && __half2float(__ull2half_rd(2049)) == 2048);

  const __nv_bfloat16 b = __float2bfloat16(1.0f / 3);
  CHECK(__bfloat16_as_ushort(b) == 0x3eab && __bfloat162float(__float2bfloat16(257.0f)) == 256.0f);
  CHECK(__bfloat162float(b + b) == 2 * __bfloat162float(b));
  CHECK(__bfloat162float(__hfma(b, __float2bfloat16(3.0f), __float2bfloat16(-1.0f))) == 0x1p-9f);
  const __nv_bfloat162 wide = __floats2bfloat162_rn(3e38f, 1.0f);
  CHECK(__low2float(wide) > 2.9e38f && __high2float(__hmul2(wide, wide)) == 1.0f);
}

int main() {
  round_trip<<<64, 1024>>>();
  compute<<<1, 1>>>();
  return finish();
}
