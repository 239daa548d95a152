#include "common/simulator/tensor_core.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace convladder::simulator {
namespace {

constexpr int M = 16, N = 8, K = 8;  // of TF32
constexpr int MOST = 16;             // factors that are multiplied and added at a time
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

// Up to 16 factors, as the tensor core reads them.
struct Factors {
  double value[MOST] = {};
  int exponent[MOST];
  int count = 0;
  bool finite = true;

  void set(int k, float factor) {
    count = std::max(count, k + 1);
    value[k] = factor;
    exponent[k] = exponent_of(factor);
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

}  // namespace

float multiply_add_tf32(const float (&x)[8], const float (&w)[8], float addend) {
  Factors a, b;
  for (int k = 0; k < K; ++k) a.set(k, tf32(x[k])), b.set(k, tf32(w[k]));
  return multiply_add(a, b, addend);
}

float multiply_add_half(const float* x, const float* w, int count, float addend) {
  Factors a, b;
  for (int k = 0; k < count; ++k) a.set(k, x[k]), b.set(k, w[k]);
  return multiply_add(a, b, addend);
}

void multiply(void* const* parts) {
  const LaneProduct* lanes[32];
  for (int lane = 0; lane < 32; ++lane) lanes[lane] = static_cast<LaneProduct*>(parts[lane]);
  Factors a[M], b[N];
  float d[32][4];
  for (int lane = 0; lane < 32; ++lane) {
    const LaneProduct& part = *lanes[lane];
    const int row = lane / 4, col = lane % 4;
    for (int i = 0; i < 4; ++i) a[row + i % 2 * 8].set(col + i / 2 * 4, tf32(part.a[i]));
    for (int i = 0; i < 2; ++i) b[row].set(col + i * 4, tf32(part.b[i]));
  }
  for (int lane = 0; lane < 32; ++lane) {
    const int row = lane / 4, col = lane % 4;
    for (int i = 0; i < 4; ++i) {
      const float addend = (i < 2 ? lanes[lane]->sum : lanes[lane]->below)[i % 2];
      d[lane][i] = multiply_add(a[row + i / 2 * 8], b[2 * col + i % 2], addend);
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    std::copy_n(d[lane], 2, lanes[lane]->sum);
    std::copy_n(d[lane] + 2, 2, lanes[lane]->below);
  }
}

}  // namespace convladder::simulator
