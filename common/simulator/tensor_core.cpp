#include "common/simulator/tensor_core.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace convladder::simulator {
namespace {

constexpr int M = 16, N = 8, K = 8;
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

// 8 factors, as the tensor core reads them.
struct Factors {
  double value[K];
  int exponent[K];
  bool finite = true;

  void set(int k, float full) {
    const float factor = float_of(bits_of(full) & 0xffffe000);
    value[k] = factor;
    exponent[k] = exponent_of(factor);
    finite &= std::isfinite(factor);
  }
};

float toward_zero(double value) {
  const float nearest = static_cast<float>(value);
  if (!(std::fabs(nearest) > std::fabs(value)) || std::isinf(nearest)) return nearest;
  return std::nextafterf(nearest, 0.0f);
}

float multiply_add(const Factors& a, const Factors& b, float addend) {
  double products[K];
  for (int k = 0; k < K; ++k) products[k] = a.value[k] * b.value[k];  // exact
  if (!a.finite || !b.finite || !std::isfinite(addend)) {
    double sum = addend;
    for (const double product : products) sum += product;
    return static_cast<float>(sum);  // not finite either
  }
  int largest = exponent_of(addend);
  for (int k = 0; k < K; ++k) largest = std::max(largest, a.exponent[k] + b.exponent[k]);
  if (largest < NOTHING / 2) return 0.0f;  // all are zeros
  const double scale = power_of_two(FRACTION_BITS - largest);
  int32_t sum = 0;  // of 8 products below 2^27 and an addend below 2^26
  for (int k = 0; k < K; ++k) sum += static_cast<int32_t>(products[k] * scale);
  sum += static_cast<int32_t>(addend * scale);
  return toward_zero(sum * power_of_two(largest - FRACTION_BITS));
}

}  // namespace

float multiply_add_tf32(const float (&x)[8], const float (&w)[8], float addend) {
  Factors a, b;
  for (int k = 0; k < K; ++k) a.set(k, x[k]), b.set(k, w[k]);
  return multiply_add(a, b, addend);
}

void multiply(const LaneProduct* const* lanes) {
  Factors a[M], b[N];
  float d[32][4];
  for (int lane = 0; lane < 32; ++lane) {
    const LaneProduct& part = *lanes[lane];
    const int row = lane / 4, col = lane % 4;
    for (int i = 0; i < 4; ++i) a[row + i % 2 * 8].set(col + i / 2 * 4, part.a[i]);
    for (int i = 0; i < 2; ++i) b[row].set(col + i * 4, part.b[i]);
  }
  for (int lane = 0; lane < 32; ++lane) {
    const int row = lane / 4, col = lane % 4;
    for (int i = 0; i < 4; ++i) {
      d[lane][i] = multiply_add(a[row + i / 2 * 8], b[2 * col + i % 2], lanes[lane]->c[i]);
    }
  }
  for (int lane = 0; lane < 32; ++lane) std::memcpy(lanes[lane]->d, d[lane], sizeof(d[lane]));
}

}  // namespace convladder::simulator
