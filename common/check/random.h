// Random bits as a function of a position, not of what was drawn before: any thread can ask for any
// element.
#pragma once

#include <cstdint>

namespace convladder {

// A bijection of 64-bit words in which every input bit reaches every output bit: the finaliser of
// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
inline uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

// 64 random bits for element `index` of the sequence numbered `stream` under `seed`.
inline uint64_t random_bits(uint64_t seed, uint64_t stream, uint64_t index) {
  constexpr uint64_t GOLDEN = UINT64_C(0x9e3779b97f4a7c15);  // 2^64 / golden ratio
  return mix(mix(mix(seed + GOLDEN) + stream * GOLDEN) + index * GOLDEN);
}

}  // namespace convladder
