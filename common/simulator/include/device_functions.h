// Intrinsics and the functions of mathematics that CUDA has and C++ has not; part of <cuda_runtime.h>.
// Approximations (__expf, __fdividef) are exact to rounding here, which is within CUDA's bounds.
#pragma once

#include "common/simulator/include/names_begin.h"

// NOLINTBEGIN(bugprone-reserved-identifier): CUDA's names
#include <cuda_runtime.h>

#include <cfenv>
#include <cmath>
#include <limits>

#include "device_atomic_functions.h"

namespace convladder::simulator {

template <typename To, typename From>
To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

enum class Arithmetic { kAdd, kSubtract, kMultiply, kDivide, kFma, kSquareRoot };
// Rounded as <cfenv>'s `mode` says.
float rounded(Arithmetic what, int mode, float a, float b = 0, float c = 0);
double rounded(Arithmetic what, int mode, double a, double b = 0, double c = 0);
// Of which core/program.cpp counts those of floats.
float rounded_product(int mode, float a, float b);
double rounded_product(int mode, double a, double b);
float rounded_fma(int mode, float a, float b, float c);
double rounded_fma(int mode, double a, double b, double c);
float narrow_float(long double value, int mode);
double narrow_double(long double value, int mode);

// Rounded to an integer; the nearest that there is. Of NaN PTX makes 0 where both have 32 bits, else the highest bit.
template <typename T, typename From>
T to_integer(From from, int mode) {
  const double value = from;
  const double whole = mode == FE_TONEAREST    ? nearbyint(value)
                       : mode == FE_TOWARDZERO ? trunc(value)
                       : mode == FE_UPWARD     ? ceil(value)
                                               : floor(value);
  if (!(whole == whole)) {
    constexpr bool is_wide = sizeof(T) == 8 || sizeof(From) == 8;
    return is_wide ? static_cast<T>(std::make_unsigned_t<T>{1} << (8 * sizeof(T) - 1)) : T{0};
  }
  if (whole <= static_cast<double>(std::numeric_limits<T>::min()))
    return std::numeric_limits<T>::min();
  if (whole >= static_cast<double>(std::numeric_limits<T>::max()))
    return std::numeric_limits<T>::max();
  return static_cast<T>(whole);
}

}  // namespace convladder::simulator

// ---- Bits ----

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(x); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned long long __brevll(unsigned long long x) {
  unsigned long long reversed = 0;
  for (int bit = 0; bit < 64; ++bit) reversed |= (x >> bit & 1) << (63 - bit);
  return reversed;
}
inline unsigned __brev(unsigned x) { return static_cast<unsigned>(__brevll(x) >> 32); }
// The n-th set bit from `base` on (n > 0), or before it (n < 0); ~0 if there is none.
inline unsigned __fns(unsigned mask, unsigned base, int n) {
  if (n == 0) return mask >> base & 1 ? base : ~0u;
  const int step = n < 0 ? -1 : 1;
  for (int bit = static_cast<int>(base); bit >= 0 && bit < 32; bit += step) {
    if ((mask >> bit & 1) && (n -= step) == 0) return bit;
  }
  return ~0u;
}

// Four of the eight bytes of x and y, which the digits of `selector` name; with a digit's highest bit,
// the sign of that byte, eight times.
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const uint64_t bytes = static_cast<uint64_t>(y) << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned digit = selector >> 4 * i & 15;
    const auto byte = static_cast<uint8_t>(bytes >> 8 * (digit & 7));
    result |= static_cast<unsigned>(digit & 8 ? (byte & 128 ? 255 : 0) : byte) << 8 * i;
  }
  return result;
}
// 32 bits of high:low, shifted by up to 31 bits (_lc, _rc: 32).
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
  return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) << by % 32 >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
  return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) >> by % 32);
}
inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned by) {
  return by >= 32 ? low : __funnelshift_l(low, high, by);
}
inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned by) {
  return by >= 32 ? high : __funnelshift_r(low, high, by);
}

// ---- Integers ----

inline int __mul24(int a, int b) {
  const auto low = [](int x) { return static_cast<int>(static_cast<unsigned>(x) << 8) >> 8; };
  return static_cast<int>(static_cast<int64_t>(low(a)) * low(b));
}
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffff) * (b & 0xffffff); }
inline int __mulhi(int a, int b) { return static_cast<int>(static_cast<int64_t>(a) * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32);
}
inline long long __mul64hi(long long a, long long b) {
  return static_cast<long long>(static_cast<__int128>(a) * b >> 64);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline unsigned __sad(int a, int b, unsigned c) {
  return c + (a < b ? static_cast<unsigned>(b) - a : static_cast<unsigned>(a) - b);
}
inline unsigned __usad(unsigned a, unsigned b, unsigned c) { return c + (a < b ? b - a : a - b); }
inline int __hadd(int a, int b) { return static_cast<int>((int64_t{a} + b) >> 1); }
inline int __rhadd(int a, int b) { return static_cast<int>((int64_t{a} + b + 1) >> 1); }
inline unsigned __uhadd(unsigned a, unsigned b) { return (uint64_t{a} + b) >> 1; }
inline unsigned __urhadd(unsigned a, unsigned b) { return (uint64_t{a} + b + 1) >> 1; }
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 32; i += 8) c += static_cast<int8_t>(a >> i) * static_cast<int8_t>(b >> i);
  return c;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 32; i += 8) c += (a >> i & 255) * (b >> i & 255);
  return c;
}
// Two products of 16 bits by 8: of the low or of the high half of b.
#define CONVLADDER_DP2A(name, first, T, Short, Byte)                                    \
  inline T name(T a, T b, T c) {                                                        \
    for (int i = 0; i < 2; ++i) {                                                       \
      c += static_cast<Short>(a >> 16 * i) * static_cast<Byte>(b >> (8 * i + (first))); \
    }                                                                                   \
    return c;                                                                           \
  }
CONVLADDER_DP2A(__dp2a_lo, 0, int, int16_t, int8_t)
CONVLADDER_DP2A(__dp2a_hi, 16, int, int16_t, int8_t)
CONVLADDER_DP2A(__dp2a_lo, 0, unsigned, uint16_t, uint8_t)
CONVLADDER_DP2A(__dp2a_hi, 16, unsigned, uint16_t, uint8_t)
#undef CONVLADDER_DP2A

// The smaller and the larger, also of two types, as <cuda_runtime.h> has them.
#define CONVLADDER_MIN_MAX(A, B, T)                                                   \
  constexpr T min(A a, B b) { return static_cast<T>(b) < static_cast<T>(a) ? b : a; } \
  constexpr T max(A a, B b) { return static_cast<T>(a) < static_cast<T>(b) ? b : a; }
CONVLADDER_MIN_MAX(int, int, int)
CONVLADDER_MIN_MAX(unsigned, unsigned, unsigned)
CONVLADDER_MIN_MAX(int, unsigned, unsigned)
CONVLADDER_MIN_MAX(unsigned, int, unsigned)
CONVLADDER_MIN_MAX(long, long, long)
CONVLADDER_MIN_MAX(unsigned long, unsigned long, unsigned long)
CONVLADDER_MIN_MAX(long, unsigned long, unsigned long)
CONVLADDER_MIN_MAX(unsigned long, long, unsigned long)
CONVLADDER_MIN_MAX(long long, long long, long long)
CONVLADDER_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)
CONVLADDER_MIN_MAX(long long, unsigned long long, unsigned long long)
CONVLADDER_MIN_MAX(unsigned long long, long long, unsigned long long)
#undef CONVLADDER_MIN_MAX
// As on the device, the number wins over the NaN: max(NAN, 0.0f) is 0.
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline double min(float a, double b) { return fmin(a, b); }
inline double max(float a, double b) { return fmax(a, b); }
inline double min(double a, float b) { return fmin(a, b); }
inline double max(double a, float b) { return fmax(a, b); }
inline unsigned umin(unsigned a, unsigned b) { return min(a, b); }
inline unsigned umax(unsigned a, unsigned b) { return max(a, b); }
inline long long llmin(long long a, long long b) { return min(a, b); }
inline long long llmax(long long a, long long b) { return max(a, b); }
inline unsigned long long ullmin(unsigned long long a, unsigned long long b) { return min(a, b); }
inline unsigned long long ullmax(unsigned long long a, unsigned long long b) { return max(a, b); }

#include "simd_functions.h"

// ---- Bits of floats ----

inline int __float_as_int(float x) { return convladder::simulator::bits_as<int>(x); }
inline unsigned __float_as_uint(float x) { return convladder::simulator::bits_as<unsigned>(x); }
inline float __int_as_float(int x) { return convladder::simulator::bits_as<float>(x); }
inline float __uint_as_float(unsigned x) { return convladder::simulator::bits_as<float>(x); }
inline long long __double_as_longlong(double x) {
  return convladder::simulator::bits_as<long long>(x);
}
inline double __longlong_as_double(long long x) {
  return convladder::simulator::bits_as<double>(x);
}
inline int __double2hiint(double x) { return static_cast<int>(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(__double_as_longlong(x)); }
inline double __hiloint2double(int high, int low) {
  return __longlong_as_double(
      static_cast<long long>(static_cast<uint64_t>(high) << 32 | static_cast<unsigned>(low)));
}

// ---- Arithmetic and conversions with a rounding: _rn nearest, _rz to zero, _ru up, _rd down ----

#define CONVLADDER_CONVERSION(to, T, suffix, mode)        \
  inline T __float2##to##_##suffix(float x) {             \
    return convladder::simulator::to_integer<T>(x, mode); \
  }                                                       \
  inline T __double2##to##_##suffix(double x) {           \
    return convladder::simulator::to_integer<T>(x, mode); \
  }                                                       \
  inline float __##to##2float_##suffix(T x) {             \
    return convladder::simulator::narrow_float(x, mode);  \
  }                                                       \
  inline double __##to##2double_##suffix(T x) {           \
    return convladder::simulator::narrow_double(x, mode); \
  }
#define CONVLADDER_ROUNDED(T, letter, mode, suffix)                                                \
  inline T __##letter##add_##suffix(T a, T b) {                                                    \
    return convladder::simulator::rounded(convladder::simulator::Arithmetic::kAdd, mode, a, b);    \
  }                                                                                                \
  inline T __##letter##sub_##suffix(T a, T b) {                                                    \
    return convladder::simulator::rounded(convladder::simulator::Arithmetic::kSubtract, mode, a,   \
                                          b);                                                      \
  }                                                                                                \
  inline T __##letter##mul_##suffix(T a, T b) {                                                    \
    return convladder::simulator::rounded_product(mode, a, b);                                     \
  }                                                                                                \
  inline T __##letter##div_##suffix(T a, T b) {                                                    \
    return convladder::simulator::rounded(convladder::simulator::Arithmetic::kDivide, mode, a, b); \
  }                                                                                                \
  inline T __##letter##rcp_##suffix(T a) { return __##letter##div_##suffix(1, a); }                \
  inline T __##letter##sqrt_##suffix(T a) {                                                        \
    return convladder::simulator::rounded(convladder::simulator::Arithmetic::kSquareRoot, mode,    \
                                          a);                                                      \
  }
#define CONVLADDER_ROUNDING(suffix, mode)                      \
  CONVLADDER_CONVERSION(int, int, suffix, mode)                \
  CONVLADDER_CONVERSION(uint, unsigned, suffix, mode)          \
  CONVLADDER_CONVERSION(ll, long long, suffix, mode)           \
  CONVLADDER_CONVERSION(ull, unsigned long long, suffix, mode) \
  CONVLADDER_ROUNDED(float, f, mode, suffix)                   \
  CONVLADDER_ROUNDED(double, d, mode, suffix)                  \
  inline float __fmaf_##suffix(float a, float b, float c) {    \
    return convladder::simulator::rounded_fma(mode, a, b, c);  \
  }                                                            \
  inline double __fma_##suffix(double a, double b, double c) { \
    return convladder::simulator::rounded_fma(mode, a, b, c);  \
  }                                                            \
  inline float __double2float_##suffix(double x) {             \
    return convladder::simulator::narrow_float(x, mode);       \
  }
CONVLADDER_ROUNDING(rn, FE_TONEAREST)
CONVLADDER_ROUNDING(rz, FE_TOWARDZERO)
CONVLADDER_ROUNDING(ru, FE_UPWARD)
CONVLADDER_ROUNDING(rd, FE_DOWNWARD)
#undef CONVLADDER_ROUNDING
#undef CONVLADDER_ROUNDED
#undef CONVLADDER_CONVERSION

// ---- Mathematics ----

// The C library has declared some of these names for itself, with the same types.
extern "C" {
inline float __sinf(float x) noexcept { return sinf(x); }
inline float __cosf(float x) noexcept { return cosf(x); }
inline float __tanf(float x) noexcept { return tanf(x); }
inline float __expf(float x) noexcept { return expf(x); }
inline float __exp10f(float x) noexcept { return powf(10.0f, x); }
inline float __logf(float x) noexcept { return logf(x); }
inline float __log2f(float x) noexcept { return log2f(x); }
inline float __log10f(float x) noexcept { return log10f(x); }
inline float __powf(float x, float y) noexcept { return powf(x, y); }
inline void __sincosf(float x, float* s, float* c) noexcept { *s = sinf(x), *c = cosf(x); }
}
inline float __fdividef(float x, float y) {
  const bool large = fabsf(y) > 0x1p126f && fabsf(y) <= std::numeric_limits<float>::max();
  return large ? x * 0.0f : x / y;
}
inline float fdividef(float x, float y) { return x / y; }
inline float __saturatef(float x) { return fminf(fmaxf(x, 0.0f), 1.0f); }
inline float __tanhf(float x) { return tanhf(x); }
inline float __frsqrt_rn(float x) { return static_cast<float>(1.0 / sqrt(static_cast<double>(x))); }

namespace convladder::simulator {
constexpr double PI = 3.14159265358979323846;
double inverse_erf(double x);
// sin(pi * x), exact where x has no fraction.
inline double sine_of_pi(double x) {
  const double rest = fmod(x, 2.0);
  return fabs(rest) == 1.0 ? 0.0 * x : sin(rest * PI);
}
inline double cosine_of_pi(double x) {
  const double rest = fmod(fabs(x), 2.0);
  return rest == 0.5 || rest == 1.5 ? 0.0 : cos(rest * PI);
}
}  // namespace convladder::simulator

#define CONVLADDER_FUNCTION(name, expression)                                             \
  inline double name(double x) { return expression; }                                     \
  inline float name(float x) { return static_cast<float>(name(static_cast<double>(x))); } \
  inline float name##f(float x) { return name(x); }
CONVLADDER_FUNCTION(rsqrt, 1.0 / sqrt(x))
CONVLADDER_FUNCTION(rcbrt, 1.0 / cbrt(x))
CONVLADDER_FUNCTION(sinpi, convladder::simulator::sine_of_pi(x))
CONVLADDER_FUNCTION(cospi, convladder::simulator::cosine_of_pi(x))
CONVLADDER_FUNCTION(normcdf, 0.5 * erfc(-x * sqrt(0.5)))
CONVLADDER_FUNCTION(erfinv, convladder::simulator::inverse_erf(x))
CONVLADDER_FUNCTION(normcdfinv, sqrt(2.0) * convladder::simulator::inverse_erf(2 * x - 1))
#undef CONVLADDER_FUNCTION
inline void sincospi(double x, double* s, double* c) { *s = sinpi(x), *c = cospi(x); }
inline void sincospif(float x, float* s, float* c) { *s = sinpif(x), *c = cospif(x); }
// Their power series; all terms have one sign. (Not every standard library has them.)
inline double cyl_bessel_i0(double x) {
  double sum = 1.0, term = 1.0;
  for (int k = 1; term > sum * 1e-17; ++k) sum += term *= x * x / (4.0 * k * k);
  return sum;
}
inline double cyl_bessel_i1(double x) {
  double sum = 1.0, term = 1.0;
  for (int k = 1; term > sum * 1e-17; ++k) sum += term *= x * x / (4.0 * k * (k + 1));
  return sum * x / 2.0;
}
inline float cyl_bessel_i0f(float x) { return static_cast<float>(cyl_bessel_i0(x)); }
inline float cyl_bessel_i1f(float x) { return static_cast<float>(cyl_bessel_i1(x)); }

// Lengths of vectors, and one by them.
namespace convladder::simulator {
template <typename... T>
double length(T... x) {
  return sqrt(((static_cast<double>(x) * x) + ...));
}
}  // namespace convladder::simulator
#define CONVLADDER_NORMS(T, suffix)                                          \
  inline T rhypot##suffix(T x, T y) {                                        \
    return static_cast<T>(1 / convladder::simulator::length(x, y));          \
  }                                                                          \
  CONVLADDER_NORM(T, norm3d##suffix, (T x, T y, T z), (x, y, z))             \
  CONVLADDER_NORM(T, norm4d##suffix, (T x, T y, T z, T w), (x, y, z, w))     \
  inline T norm##suffix(int count, const T* x) {                             \
    double sum = 0;                                                          \
    for (int i = 0; i < count; ++i) sum += static_cast<double>(x[i]) * x[i]; \
    return static_cast<T>(sqrt(sum));                                        \
  }                                                                          \
  inline T rnorm##suffix(int count, const T* x) { return 1 / norm##suffix(count, x); }
#define CONVLADDER_NORM(T, name, parameters, x)                                        \
  inline T name parameters { return static_cast<T>(convladder::simulator::length x); } \
  inline T r##name parameters { return static_cast<T>(1 / convladder::simulator::length x); }
CONVLADDER_NORMS(double, )
CONVLADDER_NORMS(float, f)
#undef CONVLADDER_NORMS
#undef CONVLADDER_NORM

// ---- Loads and stores that say how they want to be cached ----

#define CONVLADDER_LOAD(name) \
  template <typename T>       \
  T name(const T* address) {  \
    return *address;          \
  }
#define CONVLADDER_STORE(name)                                  \
  template <typename T>                                         \
  void name(T* address, convladder::simulator::Same<T> value) { \
    *address = value;                                           \
  }
CONVLADDER_LOAD(__ldg)
CONVLADDER_LOAD(__ldca)
CONVLADDER_LOAD(__ldcg)
CONVLADDER_LOAD(__ldcs)
CONVLADDER_LOAD(__ldlu)
CONVLADDER_LOAD(__ldcv)
CONVLADDER_STORE(__stwb)
CONVLADDER_STORE(__stcg)
CONVLADDER_STORE(__stcs)
CONVLADDER_STORE(__stwt)
#undef CONVLADDER_LOAD
#undef CONVLADDER_STORE

// ---- Time, ends, addresses ----

namespace convladder::simulator {
inline unsigned block_rank() {
  return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
}
inline unsigned thread_rank() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
inline unsigned block_size() { return blockDim.x * blockDim.y * blockDim.z; }
}  // namespace convladder::simulator

// A shared address counts from where the block's shared memory begins.
inline std::size_t __cvta_generic_to_shared(const void* pointer) {
  return convladder::simulator::shared_offset(pointer);
}
inline void* __cvta_shared_to_generic(std::size_t address) {
  return convladder::simulator::shared_pointer(address);
}
inline std::size_t __cvta_generic_to_global(const void* pointer) {
  return reinterpret_cast<std::size_t>(pointer);
}
inline unsigned __isShared(const void* pointer) { return ~__cvta_generic_to_shared(pointer) != 0; }
inline unsigned __isGlobal(const void* pointer) { return !__isShared(pointer); }

// Nanoseconds of the host.
inline long long clock64() { return static_cast<long long>(convladder::simulator::clock_ns()); }
inline void __nanosleep(unsigned, CONVLADDER_HERE) { convladder::simulator::spin(place); }
[[noreturn]] inline void __trap(CONVLADDER_HERE) {
  convladder::simulator::fail_kernel("__trap()", place);
}
#if !defined(__clang__)  // which has it
inline void __builtin_assume(bool) {}
#endif
// NOLINTEND(bugprone-reserved-identifier)

#include "common/simulator/include/names_end.h"
