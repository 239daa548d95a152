// Floats of 16 bits, bit by bit as CUDA has them: __half and __nv_bfloat16. Arithmetic is that of
// float, rounded once more, which comes to the same as a single rounding.
#pragma once

#include "common/simulator/include/names_begin.h"

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace convladder::simulator {

// A float that, rounded once more to fewer bits, gives what `value` would: its last bit is set where
// it is not exact (rounding to odd). `rest` is what value itself lacks.
inline float to_odd_float(double value, double rest = 0) {
  if (rest != 0 && std::isfinite(value)) {
    const auto bits = bits_as<uint64_t>(value);
    const bool beyond = (rest < 0) == (value > 0);  // the exact one is nearer to zero
    value = bits_as<double>((bits & 1) || value == 0 ? bits : beyond ? bits - 1 : bits | 1);
  }
  float odd = static_cast<float>(value);
  if (odd == value || !(value == value)) return odd;
  if (std::fabs(odd) > std::fabs(value)) odd = std::nextafterf(odd, 0.0f);
  return bits_as<float>(bits_as<uint32_t>(odd) | 1);
}

// a * b. In a kernel's own code it would count as an FFMA.
float uncounted_product(float a, float b);

template <int EXPONENT_BITS, int FRACTION_BITS>
struct SmallFloat {
  static constexpr int SHIFT = 23 - FRACTION_BITS, BIAS = (1 << (EXPONENT_BITS - 1)) - 1;
  static constexpr uint16_t INFINITE = ((1 << EXPONENT_BITS) - 1) << FRACTION_BITS,
                            NOT_A_NUMBER = 0x7fff;

  uint16_t bits;

  SmallFloat() = default;
  SmallFloat(float value) : bits(round(value)) {}
  template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  SmallFloat(T value) : SmallFloat(to_odd_float(static_cast<double>(value))) {}

  static SmallFloat of_bits(uint16_t bits) {
    SmallFloat value;
    value.bits = bits;
    return value;
  }

  operator float() const {
    const uint32_t size = bits & 0x7fff;
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
    if (size >= INFINITE) return bits_as<float>(sign | 0x7f800000 | size << SHIFT);
    constexpr uint32_t REBASE = static_cast<uint32_t>(127 - BIAS) << 23;
    if (EXPONENT_BITS == 8 || size >> FRACTION_BITS) {
      return bits_as<float>(sign | ((size << SHIFT) + REBASE));
    }
    // Subnormal: its fraction below the least normal number's, which is taken off again. (A product would count.)
    const float least = bits_as<float>(REBASE + (1u << 23));
    const float whole = bits_as<float>((size << SHIFT) + REBASE + (1u << 23)) - least;
    return bits_as<float>(sign | bits_as<uint32_t>(whole));
  }

  // To nearest, of two as near the even one.
  static uint16_t round(float value) {
    const auto all = bits_as<uint32_t>(value);
    const uint16_t sign = all >> 16 & 0x8000;
    const uint32_t size = all & 0x7fffffff;
    if (size > 0x7f800000) return NOT_A_NUMBER;
    constexpr int LEAST = 127 - BIAS + 1;  // a float's exponent where normal numbers begin
    if (EXPONENT_BITS < 8 && size < static_cast<uint32_t>(LEAST) << 23) {
      // The sum with such a number has its last bit where a subnormal one has.
      const uint32_t magic = static_cast<uint32_t>(LEAST + SHIFT) << 23;
      return sign | (bits_as<uint32_t>(bits_as<float>(size) + bits_as<float>(magic)) - magic);
    }
    const uint32_t nearest = size + (1u << (SHIFT - 1)) - 1 + (size >> SHIFT & 1);
    const uint32_t rebased =
        (nearest >> SHIFT) - (static_cast<uint32_t>(127 - BIAS) << FRACTION_BITS);
    return sign | (rebased > INFINITE ? INFINITE : rebased);
  }
  // The next one towards zero, up or down where `value` lies between two.
  static SmallFloat round(float value, int mode) {
    if (mode == FE_TONEAREST || value != value) return value;
    SmallFloat nearest = value;
    const bool away = std::fabs(static_cast<float>(nearest)) > std::fabs(value);
    const bool exact = static_cast<float>(nearest) == value;
    const bool grow = mode != FE_TOWARDZERO && (mode == FE_UPWARD) != (value < 0);
    if (!exact && away && !grow) --nearest.bits;
    if (!exact && !away && grow) ++nearest.bits;
    return nearest;
  }

  friend SmallFloat operator+(SmallFloat a, SmallFloat b) { return float{a} + float{b}; }
  friend SmallFloat operator-(SmallFloat a, SmallFloat b) { return float{a} - float{b}; }
  friend SmallFloat operator*(SmallFloat a, SmallFloat b) { return uncounted_product(a, b); }
  friend SmallFloat operator/(SmallFloat a, SmallFloat b) { return float{a} / float{b}; }
  SmallFloat operator-() const { return of_bits(bits ^ 0x8000); }
  SmallFloat operator+() const { return *this; }
  SmallFloat& operator+=(SmallFloat b) { return *this = *this + b; }
  SmallFloat& operator-=(SmallFloat b) { return *this = *this - b; }
  SmallFloat& operator*=(SmallFloat b) { return *this = *this * b; }
  SmallFloat& operator/=(SmallFloat b) { return *this = *this / b; }
  SmallFloat& operator++() { return *this += SmallFloat(1.0f); }
  SmallFloat& operator--() { return *this -= SmallFloat(1.0f); }
  friend bool operator==(SmallFloat a, SmallFloat b) { return float{a} == float{b}; }
  friend bool operator!=(SmallFloat a, SmallFloat b) { return float{a} != float{b}; }
  friend bool operator<(SmallFloat a, SmallFloat b) { return float{a} < float{b}; }
  friend bool operator>(SmallFloat a, SmallFloat b) { return float{a} > float{b}; }
  friend bool operator<=(SmallFloat a, SmallFloat b) { return float{a} <= float{b}; }
  friend bool operator>=(SmallFloat a, SmallFloat b) { return float{a} >= float{b}; }
};

template <typename H>
struct alignas(4) HalfPair {
  H x, y;

  HalfPair() = default;
  HalfPair(H x, H y) : x(x), y(y) {}
  friend HalfPair operator+(HalfPair a, HalfPair b) { return {a.x + b.x, a.y + b.y}; }
  friend HalfPair operator-(HalfPair a, HalfPair b) { return {a.x - b.x, a.y - b.y}; }
  friend HalfPair operator*(HalfPair a, HalfPair b) { return {a.x * b.x, a.y * b.y}; }
  friend HalfPair operator/(HalfPair a, HalfPair b) { return {a.x / b.x, a.y / b.y}; }
  HalfPair operator-() const { return {-x, -y}; }
  HalfPair& operator+=(HalfPair b) { return *this = *this + b; }
  HalfPair& operator-=(HalfPair b) { return *this = *this - b; }
  HalfPair& operator*=(HalfPair b) { return *this = *this * b; }
  HalfPair& operator/=(HalfPair b) { return *this = *this / b; }
  friend bool operator==(HalfPair a, HalfPair b) { return a.x == b.x && a.y == b.y; }
  friend bool operator!=(HalfPair a, HalfPair b) { return !(a == b); }
};

template <int E, int F>
constexpr bool IN_REGISTERS<SmallFloat<E, F>> = true;
template <typename H>
constexpr bool IN_REGISTERS<HalfPair<H>> = true;
template <int E, int F>
constexpr bool IS_HALF<SmallFloat<E, F>> = true;
template <typename H>
constexpr bool IS_HALF<HalfPair<H>> = true;

// a * b + c, rounded once: the product is exact in double, and so are the sum and its error.
template <typename H>
H multiply_add(H a, H b, H c) {
  const double product = static_cast<double>(float{a}) * float{b}, addend = float{c};
  const double sum = product + addend, part = sum - product;
  return to_odd_float(sum, (product - (sum - part)) + (addend - part));
}

}  // namespace convladder::simulator

#include "common/simulator/include/names_end.h"
