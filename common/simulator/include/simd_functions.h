// Intrinsics of 2 numbers of 16 bits or 4 of 8 bits in a word, and those of minima and maxima (DPX); part of
// <cuda_runtime.h>.
#pragma once

#include "common/simulator/include/names_begin.h"

// NOLINTBEGIN(bugprone-reserved-identifier): CUDA's names
namespace convladder::simulator {

// What `make` makes of each number of a word and those of the others in its place; it is cut to its size.
template <typename T, typename Make, typename... Words>
unsigned each(Make make, Words... words) {
  constexpr unsigned BITS = 8 * sizeof(T);
  unsigned result = 0;
  for (unsigned at = 0; at < 32; at += BITS) {
    const auto value =
        static_cast<std::make_unsigned_t<T>>(make(int{static_cast<T>(words >> at)}...));
    result |= unsigned{value} << at;
  }
  return result;
}
template <typename T>
int clamp(int value) {
  return min(max(value, int{std::numeric_limits<T>::min()}), int{std::numeric_limits<T>::max()});
}
template <typename T>
unsigned sum_of_differences(unsigned a, unsigned b) {
  unsigned sum = 0;
  each<T>([&](int x, int y) { return sum += abs(x - y); }, a, b);
  return sum;
}

}  // namespace convladder::simulator

#define CONVLADDER_UNARY(name, sign, expression)                                \
  inline unsigned name##2(unsigned a) {                                         \
    using T = sign##16_t;                                                       \
    return convladder::simulator::each<T>([](int x) { return expression; }, a); \
  }                                                                             \
  inline unsigned name##4(unsigned a) {                                         \
    using T = sign##8_t;                                                        \
    return convladder::simulator::each<T>([](int x) { return expression; }, a); \
  }
#define CONVLADDER_BINARY(name, sign, expression)                                         \
  inline unsigned name##2(unsigned a, unsigned b) {                                       \
    using T = sign##16_t;                                                                 \
    return convladder::simulator::each<T>([](int x, int y) { return expression; }, a, b); \
  }                                                                                       \
  inline unsigned name##4(unsigned a, unsigned b) {                                       \
    using T = sign##8_t;                                                                  \
    return convladder::simulator::each<T>([](int x, int y) { return expression; }, a, b); \
  }
#define CONVLADDER_CLAMP convladder::simulator::clamp<T>
CONVLADDER_UNARY(__vabs, int, abs(x))
CONVLADDER_UNARY(__vabsss, int, CONVLADDER_CLAMP(abs(x)))
CONVLADDER_UNARY(__vneg, int, -x)
CONVLADDER_UNARY(__vnegss, int, CONVLADDER_CLAMP(-x))
CONVLADDER_BINARY(__vadd, uint, x + y)
CONVLADDER_BINARY(__vaddss, int, CONVLADDER_CLAMP(x + y))
CONVLADDER_BINARY(__vaddus, uint, CONVLADDER_CLAMP(x + y))
CONVLADDER_BINARY(__vsub, uint, x - y)
CONVLADDER_BINARY(__vsubss, int, CONVLADDER_CLAMP(x - y))
CONVLADDER_BINARY(__vsubus, uint, CONVLADDER_CLAMP(x - y))
CONVLADDER_BINARY(__vavgs, int, (x + y + (x + y >= 0)) >> 1)  // ties away from zero
CONVLADDER_BINARY(__vavgu, uint, (x + y + 1) >> 1)
CONVLADDER_BINARY(__vhaddu, uint, (x + y) >> 1)
CONVLADDER_BINARY(__vabsdiffs, int, abs(x - y))
CONVLADDER_BINARY(__vabsdiffu, uint, abs(x - y))
CONVLADDER_BINARY(__vmaxs, int, max(x, y))
CONVLADDER_BINARY(__vmaxu, uint, max(x, y))
CONVLADDER_BINARY(__vmins, int, min(x, y))
CONVLADDER_BINARY(__vminu, uint, min(x, y))
#define CONVLADDER_COMPARISON(name, sign, comparison)      \
  CONVLADDER_BINARY(__vcmp##name, sign, -(x comparison y)) \
  CONVLADDER_BINARY(__vset##name, sign, x comparison y)
CONVLADDER_COMPARISON(eq, uint, ==)
CONVLADDER_COMPARISON(ne, uint, !=)
#define CONVLADDER_ORDER(name, comparison)        \
  CONVLADDER_COMPARISON(name##s, int, comparison) \
  CONVLADDER_COMPARISON(name##u, uint, comparison)
CONVLADDER_ORDER(gt, >)
CONVLADDER_ORDER(ge, >=)
CONVLADDER_ORDER(lt, <)
CONVLADDER_ORDER(le, <=)
#undef CONVLADDER_ORDER
#undef CONVLADDER_COMPARISON
#undef CONVLADDER_CLAMP
#undef CONVLADDER_BINARY
#undef CONVLADDER_UNARY
#define CONVLADDER_DIFFERENCES(name, T)                        \
  inline unsigned name(unsigned a, unsigned b) {               \
    return convladder::simulator::sum_of_differences<T>(a, b); \
  }
CONVLADDER_DIFFERENCES(__vsads2, int16_t)
CONVLADDER_DIFFERENCES(__vsads4, int8_t)
CONVLADDER_DIFFERENCES(__vsadu2, uint16_t)
CONVLADDER_DIFFERENCES(__vsadu4, uint8_t)
#undef CONVLADDER_DIFFERENCES

// max(a + b, c), the largest of three, ...; with _relu at least 0.
#define CONVLADDER_DPX_OF(suffix, T, Word, what, least, each)                                      \
  inline Word __viadd##what##_##suffix(Word a, Word b, Word c) {                                   \
    return each(                                                                                   \
        [](auto x, auto y, auto z) { return least(what(T(unsigned(x) + unsigned(y)), T(z))); }, a, \
        b, c);                                                                                     \
  }                                                                                                \
  inline Word __vi##what##3_##suffix(Word a, Word b, Word c) {                                     \
    return each([](auto x, auto y, auto z) { return least(what(what(T(x), T(y)), T(z))); }, a, b,  \
                c);                                                                                \
  }
#define CONVLADDER_WORD(T) [](auto make, auto... words) { return static_cast<T>(make(words...)); }
#define CONVLADDER_RELU(x) max((x), 0)
#define CONVLADDER_DPX(what)                                                                  \
  CONVLADDER_DPX_OF(s32, int, int, what, , CONVLADDER_WORD(int))                              \
  CONVLADDER_DPX_OF(u32, unsigned, unsigned, what, , CONVLADDER_WORD(unsigned))               \
  CONVLADDER_DPX_OF(s16x2, int16_t, unsigned, what, , convladder::simulator::each<int16_t>)   \
  CONVLADDER_DPX_OF(u16x2, uint16_t, unsigned, what, , convladder::simulator::each<uint16_t>) \
  CONVLADDER_DPX_OF(s32_relu, int, int, what, CONVLADDER_RELU, CONVLADDER_WORD(int))          \
  CONVLADDER_DPX_OF(s16x2_relu, int16_t, unsigned, what, CONVLADDER_RELU,                     \
                    convladder::simulator::each<int16_t>)                                     \
  inline int __vi##what##_s32_relu(int a, int b) { return CONVLADDER_RELU(what(a, b)); }      \
  inline unsigned __vi##what##_s16x2_relu(unsigned a, unsigned b) {                           \
    return convladder::simulator::each<int16_t>(                                              \
        [](int x, int y) { return CONVLADDER_RELU(what(x, y)); }, a, b);                      \
  }
CONVLADDER_DPX(max)
CONVLADDER_DPX(min)
#undef CONVLADDER_DPX
#undef CONVLADDER_DPX_OF
#undef CONVLADDER_RELU
#undef CONVLADDER_WORD
// Also whether it is the first that is taken.
#define CONVLADDER_TAKEN(T, suffix)                                                        \
  inline T __vibmax_##suffix(T a, T b, bool* first) { return *first = a >= b, max(a, b); } \
  inline T __vibmin_##suffix(T a, T b, bool* first) { return *first = a <= b, min(a, b); }
CONVLADDER_TAKEN(int, s32)
CONVLADDER_TAKEN(unsigned, u32)
#undef CONVLADDER_TAKEN
// NOLINTEND(bugprone-reserved-identifier)

#include "common/simulator/include/names_end.h"
