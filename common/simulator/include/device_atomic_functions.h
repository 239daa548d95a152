// Atomic operations and fences; part of <cuda_runtime.h>. Each takes the types that CUDA has it for.
#pragma once

#include "common/simulator/include/names_begin.h"

// NOLINTBEGIN(bugprone-reserved-identifier): CUDA's names
#include <type_traits>

#include "warp_functions.h"

namespace convladder::simulator {

template <typename T, typename... Types>
constexpr bool IS_ONE_OF = (std::is_same_v<T, Types> || ...);
// Half-precision types, which can be added.
template <typename T>
constexpr bool IS_HALF = false;

// Integers go round.
template <typename T>
T add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else if constexpr (IS_ONE_OF<T, float2, float4>) {
    T sum = a;
    sum.x += b.x, sum.y += b.y;
    if constexpr (sizeof(T) == 16) sum.z += b.z, sum.w += b.w;
    return sum;
  } else {
    return a + b;
  }
}

template <typename T>
Atomic kind_of(const char* name, const T& value) {
  if constexpr (IS_HALF<T>) return Atomic::kHalf;
  if constexpr (sizeof(T) == 4 && std::is_integral_v<T>) {
    if (name[7] == 'd' && value == 1) return Atomic::kIncrement;  // atomicAdd
  } else if (sizeof(T) != 4 || name[6] != 'E') {                  // atomicExch
    return Atomic::kLoop;
  }
  return Atomic::kWhole;
}

// By no function of the library: a kernel that called it would do so with memory that nobody counts.
template <typename T>
bool are_same_bits(const T& a, const T& b) {
  using Part = std::conditional_t<sizeof(T) % 4 == 0, unsigned, unsigned short>;
  struct Bits {
    Part parts[sizeof(T) / sizeof(Part)];
  };
  const Bits x = __builtin_bit_cast(Bits, a), y = __builtin_bit_cast(Bits, b);
  for (std::size_t i = 0; i < sizeof(T) / sizeof(Part); ++i) {
    if (x.parts[i] != y.parts[i]) return false;
  }
  return true;
}

// Puts update(*address) in its place, and returns what was there.
template <typename T, typename Update>
T atomically(T* address, Place place, Update update,
             Atomic kind = sizeof(T) == 4 && std::is_integral_v<T> ? Atomic::kWhole
                                                                   : Atomic::kLoop) {
  begin_atomic(address, sizeof(T), kind);
  const T old = *address;
  const T now = update(old);
  *address = now;
  end_atomic(!are_same_bits(old, now), place);
  return old;
}

}  // namespace convladder::simulator

// Of one value, for the threads of the GPU; with _block and _system the same.
#define CONVLADDER_ATOMIC_SCOPE(name, kinds, expression)                                       \
  template <typename T>                                                                        \
  T name(T* address, convladder::simulator::Same<T> value, CONVLADDER_HERE) {                  \
    static_assert(kinds, "CUDA has no " #name "() for this type");                             \
    const auto update = [&](const T& old) -> T {                                               \
      static_cast<void>(old);                                                                  \
      return expression;                                                                       \
    };                                                                                         \
    return convladder::simulator::atomically(address, place, update,                           \
                                             convladder::simulator::kind_of<T>(#name, value)); \
  }
#define CONVLADDER_ATOMIC(name, kinds, expression)           \
  CONVLADDER_ATOMIC_SCOPE(name, (kinds), expression)         \
  CONVLADDER_ATOMIC_SCOPE(name##_block, (kinds), expression) \
  CONVLADDER_ATOMIC_SCOPE(name##_system, (kinds), expression)
#define CONVLADDER_IS(...) convladder::simulator::IS_ONE_OF<T, __VA_ARGS__>
#define CONVLADDER_WORDS int, unsigned, unsigned long long
CONVLADDER_ATOMIC(atomicAdd,
                  CONVLADDER_IS(CONVLADDER_WORDS, float, double, float2, float4) ||
                      convladder::simulator::IS_HALF<T>,
                  convladder::simulator::add(old, value))
CONVLADDER_ATOMIC(atomicSub, CONVLADDER_IS(int, unsigned),
                  static_cast<T>(static_cast<unsigned>(old) - static_cast<unsigned>(value)))
CONVLADDER_ATOMIC(atomicExch, CONVLADDER_IS(CONVLADDER_WORDS, float), value)
CONVLADDER_ATOMIC(atomicMin, CONVLADDER_IS(CONVLADDER_WORDS, long long), value < old ? value : old)
CONVLADDER_ATOMIC(atomicMax, CONVLADDER_IS(CONVLADDER_WORDS, long long), old < value ? value : old)
CONVLADDER_ATOMIC(atomicAnd, CONVLADDER_IS(CONVLADDER_WORDS), old& value)
CONVLADDER_ATOMIC(atomicOr, CONVLADDER_IS(CONVLADDER_WORDS), old | value)
CONVLADDER_ATOMIC(atomicXor, CONVLADDER_IS(CONVLADDER_WORDS), old ^ value)
// Counts up to `value` and begins again at 0; or down, and begins again at `value`.
CONVLADDER_ATOMIC(atomicInc, CONVLADDER_IS(unsigned), old >= value ? 0 : old + 1)
CONVLADDER_ATOMIC(atomicDec, CONVLADDER_IS(unsigned), old == 0 || old > value ? value : old - 1)

#define CONVLADDER_CAS(name)                                                       \
  template <typename T>                                                            \
  T name(T* address, convladder::simulator::Same<T> expected,                      \
         convladder::simulator::Same<T> value, CONVLADDER_HERE) {                  \
    static_assert(CONVLADDER_IS(CONVLADDER_WORDS, unsigned short),                 \
                  "CUDA has no " #name "() for this type");                        \
    return convladder::simulator::atomically(                                      \
        address, place, [&](T old) -> T { return old == expected ? value : old; }, \
        convladder::simulator::Atomic::kCompare);                                  \
  }
CONVLADDER_CAS(atomicCAS)
CONVLADDER_CAS(atomicCAS_block)
CONVLADDER_CAS(atomicCAS_system)
#undef CONVLADDER_CAS
#undef CONVLADDER_ATOMIC
#undef CONVLADDER_ATOMIC_SCOPE
#undef CONVLADDER_IS
#undef CONVLADDER_WORDS

inline void __threadfence() { convladder::simulator::fence(); }
inline void __threadfence_block() { convladder::simulator::fence(true); }
inline void __threadfence_system() { convladder::simulator::fence(); }
// NOLINTEND(bugprone-reserved-identifier)

#include "common/simulator/include/names_end.h"
