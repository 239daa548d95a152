// Intrinsics of integers and floats, against values worked out by hand or by other means.
#include "check.h"

__device__ int opaque = 1;  // keeps the compiler from computing in advance

__global__ void bits() {
  const int one = opaque;
  CHECK(__popc(0xf0f0 * one) == 8 && __popcll(~0ull * one) == 64);
  CHECK(__clz(0) == 32 && __clz(one) == 31 && __clz(-one) == 0 && __clzll(one) == 63 &&
        __clzll(0) == 64);
  CHECK(__ffs(0) == 0 && __ffs(8 * one) == 4 && __ffsll(1ll << 40) == 41);
  CHECK(__brev(1u * one) == 0x80000000u && __brevll(2ull * one) == 1ull << 62);
  CHECK(__byte_perm(0x33221100, 0x77665544, 0x7531 * one) == 0x77553311u);
  CHECK(__byte_perm(0x000000f0, 0x12345678, 0x8004 * one) == 0xfff0f078u);
  CHECK(__funnelshift_l(0x80000000u, one, 1) == 3u && __funnelshift_r(2u, one, 1) == 0x80000001u);
  CHECK(__funnelshift_l(5u, 6u, 32 * one) == 6u && __funnelshift_lc(5u, 6u, 33 * one) == 5u);
  CHECK(__funnelshift_rc(5u, 6u, 32 * one) == 6u);
  CHECK(__fns(0xffff0000u, 0, 3 * one) == 18 && __fns(0xffff0000u, 20, -2 * one) == 19);
  CHECK(__fns(1, 0, 2) == ~0u);
}

__global__ void integers() {
  const int one = opaque;
  CHECK(__mul24(0x800001 * one, 2) == -16777214 && __umul24(0x1000003u * one, 2) == 6);
  CHECK(__mulhi(-one, 5) == -1 && __umulhi(0xffffffffu * one, 2u) == 1);
  CHECK(__mul64hi(-1ll * one, 5) == -1 && __umul64hi(~0ull * one, 4) == 3);
  CHECK(__sad(-5 * one, 3, 2u) == 10 && __usad(2u, 9u * one, 1u) == 8);
  CHECK(__hadd(-3 * one, 2) == -1 && __rhadd(-3 * one, 2) == 0 && __uhadd(~0u * one, ~0u) == ~0u);
  CHECK(__dp4a(int(0x01ff02feu), 0x01010101 * one, 10) == 10 + 1 - 1 + 2 - 2);
  CHECK(__dp4a(0x01ff02feu, 0x01010101u * one, 10u) == 10 + 1 + 255 + 2 + 254);
  CHECK(min(-one, 3) == -1 && max(3u * one, 5u) == 5u && max(-1ll * one, 4ll) == 4);
  CHECK(max(nanf(""), 2.0f * one) == 2.0f && min(2.0 * one, 1.0) == 1.0);
}

// Several numbers in a word; the examples are worked out by hand, byte by byte.
__global__ void packed() {
  const unsigned a = 0x7f80ff01u * opaque, b = 0x01ff0203u * opaque;
  CHECK(__vadd4(a, b) == 0x807f0104u && __vaddss4(a, b) == 0x7f800104u &&
        __vaddus4(a, b) == 0x80ffff04u);
  CHECK(__vsub4(a, b) == 0x7e81fdfeu && __vsubss4(a, b) == 0x7e81fdfeu &&
        __vsubus4(a, b) == 0x7e00fd00u);
  CHECK(__vadd2(0x7fff8000u, 0x00018000u) == 0x80000000u &&
        __vaddss2(0x7fff8000u, 0x00018000u) == 0x7fff8000u);
  CHECK(__vabs4(a) == 0x7f800101u && __vabsss4(a) == 0x7f7f0101u &&
        __vneg2(0x00018000u) == 0xffff8000u);
  CHECK(__vavgu4(a, b) == 0x40c08102u && __vavgs4(a, b) == 0x40bf0102u &&
        __vhaddu4(a, b) == 0x40bf8002u);
  CHECK(__vabsdiffu4(a, b) == 0x7e7ffd02u && __vmaxs4(a, b) == 0x7fff0203u &&
        __vmaxu4(a, b) == 0x7fffff03u);
  CHECK(__vmins4(a, b) == 0x0180ff01u && __vminu2(0x80000001u, 0x00018000u) == 0x00010001u);
  CHECK(__vcmpgts4(a, b) == 0xff000000u && __vcmpgtu4(a, b) == 0xff00ff00u &&
        __vseteq4(a, a) == 0x01010101u);
  CHECK(__vsadu4(a, b) == 0x7e + 0x7f + 0xfd + 2 && __vsads4(a, b) == 0x7e + 0x7f + 3 + 2);
  CHECK(__dp2a_lo(0x00030002 * opaque, 0x0504ff01, 10) == 10 + 2 - 3 &&
        __dp2a_hi(0x00030002, 0x0504ff01, 0) == 23);
  CHECK(__vimax3_s32(1, -2, 3 * opaque) == 3 && __vimin3_u32(1, ~0u, 3u * opaque) == 1);
  CHECK(__viaddmax_s32(-5, 2, -9 * opaque) == -3 && __viaddmax_s32_relu(-5, 2, -9) == 0);
  CHECK(__viaddmin_s16x2(0x7fff0001u, 0x00010001u, 0x00000005u) == 0x80000002u);
  bool first;
  CHECK(__vibmax_s32(4, 3 * opaque, &first) == 4 && first && __vibmin_u32(4, 3, &first) == 3 &&
        !first);
}

__global__ void conversions() {
  const float one = opaque;
  CHECK(__float2int_rn(2.5f * one) == 2 && __float2int_rn(3.5f * one) == 4);
  CHECK(__float2int_rz(-2.7f * one) == -2 && __float2int_ru(-2.7f * one) == -2);
  CHECK(__float2int_rd(-2.2f * one) == -3 && __float2uint_rn(-1.0f * one) == 0);
  CHECK(__float2int_rn(1e20f * one) == 0x7fffffff && __float2int_rz(nanf("")) == 0);
  CHECK(__float2uint_rz(1e20f * one) == ~0u &&
        __float2ll_rn(-1e30f * one) == -0x7fffffffffffffff - 1);
  CHECK(__int2float_rz(16777217 * opaque) == 16777216.0f &&
        __int2float_ru(16777217) == 16777218.0f);
  CHECK(__uint2float_rd(~0u * opaque) == 4294967040.0f && __uint2float_rn(~0u) == 4294967296.0f);
  CHECK(__ll2float_ru(1ll * opaque << 62) == 4611686018427387904.0f);
  CHECK(__double2float_rd(0.1 * one) < 0.1 && __double2float_ru(0.1 * one) > 0.1);
  CHECK(__double2int_rn(-0.5 * one) == 0 && __double2uint_rz(3.99 * one) == 3);
  CHECK(__float_as_int(one) == 0x3f800000 && __int_as_float(0x40000000 * opaque) == 2.0f);
  CHECK(__uint_as_float(0xff800000u) == -INFINITY && __float_as_uint(-0.0f * one) == 0x80000000u);
  CHECK(__double_as_longlong(1.0 * one) == 0x3ff0000000000000 && __longlong_as_double(0) == 0.0);
  CHECK(__hiloint2double(0x40080000 * opaque, 0) == 3.0 && __double2hiint(3.0 * one) == 0x40080000);
}

// A sum, product or quotient that is not exact lies between what _rd and _ru give, which are neighbours.
__global__ void roundings() {
  const float third = __fdiv_rn(opaque, 3.0f);
  CHECK(__fdiv_rd(1.0f, 3.0f * opaque) < __fdiv_ru(1.0f, 3.0f * opaque));
  CHECK(__float_as_int(__fdiv_ru(1.0f, 3.0f)) == __float_as_int(__fdiv_rd(1.0f, 3.0f)) + 1);
  CHECK(third == __fdiv_ru(1.0f, 3.0f) && third == 1.0f / 3.0f);
  CHECK(__fadd_rn(1.0f * opaque, 0x1p-24f) == 1.0f &&
        __fadd_ru(1.0f * opaque, 0x1p-24f) == 1.0f + 0x1p-23f);
  CHECK(__fadd_rz(-1.0f * opaque, -0x1p-24f) == -1.0f &&
        __fsub_rd(1.0f * opaque, 0x1p-25f) == 1.0f - 0x1p-24f);
  CHECK(__fmul_rz(third, third) <= __fmul_ru(third, third));
  CHECK(__fmaf_rn(third, 3.0f, -1.0f) == 0x1p-25f && fmaf(third, 3.0f, -1.0f) == 0x1p-25f);
  CHECK(__fmul_rn(third, 3.0f) == 1.0f);
  CHECK(__fsqrt_rd(2.0f * opaque) < __fsqrt_ru(2.0f * opaque) && __frcp_rn(4.0f * opaque) == 0.25f);
  CHECK(__dadd_ru(1.0 * opaque, 0x1p-53) == 1.0 + 0x1p-52 && __dmul_rn(1.5 * opaque, 2.0) == 3.0);
  CHECK(__fma_rd(1.0 * opaque, 1.0, 0x1p-80) == 1.0 && __ddiv_ru(1.0, 3.0) > __ddiv_rd(1.0, 3.0));
  CHECK(__saturatef(1.5f * opaque) == 1.0f && __saturatef(-0.5f) == 0.0f &&
        __saturatef(nanf("")) == 0.0f);
  CHECK(__fdividef(opaque, 0x1p127f) == 0.0f && __fdividef(6.0f * opaque, 3.0f) == 2.0f);
}

__device__ bool close(double a, double b, double error) { return fabs(a - b) <= error * fabs(b); }

__global__ void mathematics() {
  const float x = 0.75f * opaque;
  CHECK(close(__expf(x), exp(0.75), 1e-6) && close(__logf(x), log(0.75), 1e-6));
  CHECK(close(__sinf(x), sin(0.75), 1e-6) && close(__cosf(x), cos(0.75), 1e-6));
  CHECK(close(__powf(x, 3.0f), 0.421875, 1e-6) && close(exp10f(x), pow(10, 0.75), 1e-6));
  CHECK(close(rsqrtf(x), 1 / sqrt(0.75), 1e-6) && close(rsqrt(2.0 * opaque), sqrt(0.5), 1e-14));
  CHECK(sinpif(1.0f * opaque) == 0 && cospif(0.5f * opaque) == 0 && sinpi(0.5 * opaque) == 1);
  CHECK(close(normcdff(0.0f * opaque), 0.5, 1e-6) && close(erfinvf(erff(x)), x, 1e-5));
  CHECK(close(erfinv(0.999 * opaque), 2.3267537655135246, 1e-12));
  CHECK(close(normcdfinv(0.975 * opaque), 1.959963984540054, 1e-12) &&
        close(rcbrtf(8.0f * opaque), 0.5, 1e-6));
  CHECK(close(norm3df(2.0f * opaque, 3.0f, 6.0f), 7, 1e-6) &&
        close(rhypotf(3.0f * opaque, 4.0f), 0.2, 1e-6));
  const double sides[] = {1.0 * opaque, 1, 1, 1};
  CHECK(close(norm4df(1.0f * opaque, 1, 1, 1), 2, 1e-6) && close(rnorm(4, sides), 0.5, 1e-15));
  CHECK(close(cyl_bessel_i0(1.0 * opaque), 1.2660658777520084, 1e-14));
  float s, c;
  sincosf(x, &s, &c);
  CHECK(close(s * s + c * c, 1, 1e-6));
  __sincosf(x, &s, &c);
  CHECK(close(s * s + c * c, 1, 1e-6));
  CHECK(isnan(nanf("")) && isinf(INFINITY * opaque) && !isfinite(INFINITY * opaque) && signbit(-x));
  CHECK(fmodf(5.5f * opaque, 2.0f) == 1.5f && truncf(-x) == 0 && roundf(2.5f * opaque) == 3.0f);
  CHECK(rintf(2.5f * opaque) == 2.0f && ldexpf(x, 2) == 3.0f && copysignf(x, -1.0f) == -x);
}

int main() {
  bits<<<1, 1>>>();
  integers<<<1, 1>>>();
  packed<<<1, 1>>>();
  conversions<<<1, 1>>>();
  roundings<<<1, 1>>>();
  mathematics<<<1, 1>>>();
  return finish();
}
