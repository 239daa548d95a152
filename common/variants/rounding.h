// Arithmetic of less precision than float32, for bugs, all of which include this: rounded to
// nearest, ties away from zero, with float32's range.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

namespace rounding {

// `value` without the last `bits` bits of its mantissa.
inline float without_bits(float value, int bits) {
  uint32_t word;
  std::memcpy(&word, &value, sizeof(word));
  if ((word & 0x7f800000) == 0x7f800000) return value;  // infinity or NaN
  word = (word + (1u << (bits - 1))) & ~((1u << bits) - 1);
  std::memcpy(&value, &word, sizeof(word));
  return value;
}

inline float tf32(float value) { return without_bits(value, 13); }
inline float half(float value) { return without_bits(value, 13); }  // 11 bits, as TF32
inline float bfloat16(float value) { return without_bits(value, 16); }

}  // namespace rounding
