#include "common/simulator/tensor_core.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>

namespace convladder::simulator {
namespace {

constexpr int M = 16, N = 8;
constexpr int MOST = 32;  // factors
// Behind the leading bit of the largest addend's exponent: 23 of a float, and 2 more on a Hopper.
constexpr int FRACTION_BITS = 25;
constexpr int NOTHING = -10000;  // a zero's exponent: less than that of any product

uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

float float_of(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Of the leading bit, where a float has one that it doesn't store: subnormal numbers share the least.
int exponent_of(float value) {
  const int biased = static_cast<int>(bits_of(value) >> 23 & 0xff);
  if (value == 0) return NOTHING;
  return (biased == 0 ? 1 : biased) - 127;
}

double power_of_two(int exponent) {  // from -1022 to 1023
  const uint64_t bits = static_cast<uint64_t>(1023 + exponent) << 52;
  double value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Factors, as the tensor core reads them.
struct Factors {
  double value[MOST] = {};
  int exponent[MOST];
  int count = 0;
  bool finite = true;

  void set(int k, double factor) {  // a float
    count = std::max(count, k + 1);
    value[k] = factor;
    exponent[k] = exponent_of(static_cast<float>(factor));
    finite &= std::isfinite(factor);
  }
};

float tf32(float full) { return float_of(bits_of(full) & 0xffffe000); }

float toward_zero(double value) {
  const float nearest = static_cast<float>(value);
  if (!(std::fabs(nearest) > std::fabs(value)) || std::isinf(nearest)) return nearest;
  return std::nextafterf(nearest, 0.0f);
}

float multiply_add(const Factors& a, const Factors& b, float addend) {
  double products[MOST] = {};
  const int count = a.count;
  for (int k = 0; k < count; ++k) products[k] = a.value[k] * b.value[k];  // exact
  if (!a.finite || !b.finite || !std::isfinite(addend)) {
    double sum = addend;
    for (const double product : products) sum += product;
    return static_cast<float>(sum);  // not finite either
  }
  int largest = exponent_of(addend);
  for (int k = 0; k < count; ++k) largest = std::max(largest, a.exponent[k] + b.exponent[k]);
  if (largest < NOTHING / 2) return 0.0f;  // all are zeros
  const double scale = power_of_two(FRACTION_BITS - largest);
  int64_t sum = 0;  // of products below 2^27 and an addend below 2^26
  for (int k = 0; k < count; ++k) sum += static_cast<int64_t>(products[k] * scale);
  sum += static_cast<int64_t>(addend * scale);
  return toward_zero(static_cast<double>(sum) * power_of_two(largest - FRACTION_BITS));
}

// Bits of a number in a register, by its kind.
constexpr int SIZES[] = {32, 16, 16, 8, 8, 32, 32};

// Of the numbers in a lane's registers, the one at `index`.
double number(const uint32_t* words, LaneProduct::Number kind, int index) {
  const int bits = SIZES[kind];
  const uint32_t word = words[index * bits / 32] >> index * bits % 32;
  switch (kind) {
    case LaneProduct::kTf32:
      return tf32(float_of(word));
    case LaneProduct::kHalf:
      if ((word >> 10 & 31) == 31)
        return word & 0x3ff ? NAN : word >> 15 & 1 ? -INFINITY : INFINITY;
      return std::ldexp(float_of((word & 0x8000) << 16 | (word & 0x7fff) << 13), 112);
    case LaneProduct::kBfloat16:
      return float_of(word << 16);
    case LaneProduct::kSigned:
      return static_cast<int8_t>(word);
    case LaneProduct::kUnsigned:
      return static_cast<uint8_t>(word);
    case LaneProduct::kFloat:
      return float_of(word);
    case LaneProduct::kInteger:
      return static_cast<int32_t>(word);
  }
  return 0;
}

// To nearest, of two as near the even one.
uint32_t half_of(float value) {
  const uint32_t sign = bits_of(value) >> 16 & 0x8000;
  if (std::isnan(value)) return 0x7fff;
  const int exponent = std::max(exponent_of(value), -14);
  const double unit = power_of_two(exponent - 10);
  const double units = std::nearbyint(std::fabs(value) / unit);  // below 2^11, or just that
  if (units * unit >= 65536) return sign | 0x7c00;
  return sign | static_cast<uint32_t>(((exponent + 14) << 10) + static_cast<int>(units));
}

LaneProduct& part_of(void* const* parts, int lane) {
  return *static_cast<LaneProduct*>(parts[lane]);
}

}  // namespace

float multiply_add(const float* x, const float* w, int count, float addend) {
  Factors a, b;
  for (int k = 0; k < count; ++k) a.set(k, x[k]), b.set(k, w[k]);
  return multiply_add(a, b, addend);
}

float nearest_tf32(float x) { return tf32(float_of(bits_of(x) + 0x1000)); }

float multiply_add_tf32(const float (&x)[8], const float (&w)[8], float addend) {
  float a[8], b[8];
  std::transform(x, x + 8, a, tf32);
  std::transform(w, w + 8, b, tf32);
  return multiply_add(a, b, 8, addend);
}

// Lane 4 * g + t has of a the rows g and g + 8, of b the column g, and there, in each fourth part of k, as many
// neighbours as a register holds; of c and d the columns 2 * t and 2 * t + 1 of these rows.
void multiply(void* const* parts) {
  const LaneProduct& any = part_of(parts, 0);
  const int each = 32 / SIZES[any.a];  // in a register
  Factors a[M], b[N];
  for (int lane = 0; lane < 32; ++lane) {
    const LaneProduct& part = part_of(parts, lane);
    for (int i = 0; i < M * any.k / 32; ++i) {
      const int row = lane / 4 + i / each % 2 * 8;
      a[row].set((i / each / 2 * 4 + lane % 4) * each + i % each, number(part.left, any.a, i));
    }
    for (int i = 0; i < N * any.k / 32; ++i) {
      b[lane / 4].set((i / each * 4 + lane % 4) * each + i % each, number(part.right, any.b, i));
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    LaneProduct& part = part_of(parts, lane);
    for (int i = 0; i < 4; ++i) {
      const Factors &x = a[lane / 4 + i / 2 * 8], &w = b[lane % 4 * 2 + i % 2];
      const double addend = number(part.addend, any.c, i);
      if (any.d == LaneProduct::kInteger) {  // goes round
        const double sum = std::inner_product(x.value, x.value + any.k, w.value, addend);
        part.result[i] = static_cast<uint32_t>(static_cast<int64_t>(sum));
        continue;
      }
      const float sum = multiply_add(x, w, static_cast<float>(addend));
      if (any.d == LaneProduct::kFloat) {
        part.result[i] = bits_of(sum);
      } else {
        part.result[i / 2] = (i % 2 ? part.result[i / 2] : 0) | half_of(sum) << i % 2 * 16;
      }
    }
  }
}

}  // namespace convladder::simulator
