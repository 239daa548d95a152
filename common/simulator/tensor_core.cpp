#include "common/simulator/tensor_core.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#pragma GCC diagnostic ignored "-Wpsabi"  // vectors as results, of functions of this file alone

namespace convladder::simulator {
namespace {

constexpr int M = 16, N = 8;
constexpr int MOST = 32;  // factors
// Behind the leading bit of the largest addend's exponent: 23 of a float, and 2 more on a Hopper.
constexpr int FRACTION_BITS = 25;
constexpr int HALF_LEAST = -14;  // exponent of a half-precision number
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
int exponent_of(float value, int least = -126) {
  const int biased = static_cast<int>(bits_of(value) >> 23 & 0xff);
  return value == 0 ? NOTHING : std::max(biased - 127, least);
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

  void set(int k, double factor, int least = -126) {  // a float
    count = std::max(count, k + 1);
    value[k] = factor;
    exponent[k] = exponent_of(static_cast<float>(factor), least);
    finite &= std::isfinite(factor);
  }
};

float tf32(float full) { return float_of(bits_of(full) & 0xffffe000); }

float toward_zero(double value) {
  if (std::isnan(value)) return float_of(0x7fffffff);
  const float nearest = static_cast<float>(value);
  if (!(std::fabs(nearest) > std::fabs(value)) || std::isinf(nearest)) return nearest;
  return std::nextafterf(nearest, 0.0f);
}

// What has been added up, before it is cut off to a float.
double exact_sum(const Factors& a, const Factors& b, float addend) {
  double products[MOST] = {};
  const int count = a.count;
  for (int k = 0; k < count; ++k) products[k] = a.value[k] * b.value[k];  // exact
  if (!a.finite || !b.finite || !std::isfinite(addend)) {
    double sum = addend;
    for (const double product : products) sum += product;
    return sum;  // not finite either
  }
  int largest = exponent_of(addend);
  for (int k = 0; k < count; ++k) largest = std::max(largest, a.exponent[k] + b.exponent[k]);
  if (largest < NOTHING / 2) return 0;  // all are zeros
  const double scale = power_of_two(FRACTION_BITS - largest);
  int64_t sum = 0;  // of products below 2^27 and an addend below 2^26
  for (int k = 0; k < count; ++k) sum += static_cast<int64_t>(products[k] * scale);
  sum += static_cast<int64_t>(addend * scale);
  return static_cast<double>(sum) * power_of_two(largest - FRACTION_BITS);
}

float multiply_add(const Factors& a, const Factors& b, float addend) {
  return toward_zero(exact_sum(a, b, addend));
}

// Bits of a number in a register, by its kind.
constexpr int SIZES[] = {32, 16, 16, 8, 8, 32, 32};

// Of the numbers in a lane's registers, the one at `index`.
[[gnu::always_inline]] inline double number(const uint32_t* words, LaneProduct::Number kind,
                                            int index) {
  const int bits = SIZES[kind];
  const uint32_t word = words[index * bits / 32] >> index * bits % 32;
  switch (kind) {
    case LaneProduct::kTf32:
      return tf32(float_of(word));
    case LaneProduct::kHalf:
      return float_of_half(static_cast<uint16_t>(word));
    case LaneProduct::kBfloat16:
      return float_of_bfloat16(static_cast<uint16_t>(word));
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

LaneProduct& part_of(void* const* parts, int lane) {
  return *static_cast<LaneProduct*>(parts[lane]);
}

// Eight sums at a time. Where exponents are so large or small that floats and 32-bit integers may not hold what is
// between, they are added one by one.
constexpr int WIDTH = 8, MOST_EXPONENT = 48;
typedef float Floats __attribute__((vector_size(4 * WIDTH)));
typedef int32_t Integers __attribute__((vector_size(4 * WIDTH)));
typedef double Doubles __attribute__((vector_size(8 * WIDTH)));

bool is_tame(const float* values, int count) {
  return std::all_of(values, values + count, [](float value) {
    return value == 0 || std::abs(exponent_of(value)) <= MOST_EXPONENT;
  });
}

template <typename To, typename From>
To bits_as(const From& from) {
  To to;
  static_assert(sizeof(to) == sizeof(from));
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

// Compiled twice: a processor with wider registers takes a third of the time.
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define CONVLADDER_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define CONVLADDER_WIDE
#endif

// b and its exponents: [depth][WIDTH]. False: not for these addends.
CONVLADDER_WIDE bool multiply_add(const float* a, const int32_t* a_exponents, const Floats* b,
                                  const Integers* b_exponents, int depth, float* sums) {
  Floats addends;
  std::memcpy(&addends, sums, sizeof(addends));
  const Integers biased = bits_as<Integers>(addends) >> 23 & 0xff;
  Integers of_products = b_exponents[0] + a_exponents[0];
  for (int k = 1; k < depth; ++k) {
    const Integers exponents = b_exponents[k] + a_exponents[k];
    of_products = exponents > of_products ? exponents : of_products;
  }
  const Integers exponents = bits_as<Integers>(addends) << 1 == 0 ? biased * 0 + NOTHING
                             : biased == 0                        ? biased * 0 - 126
                                                                  : biased - 127;
  for (int i = 0; i < WIDTH; ++i) {
    if (biased[i] == 0xff) return false;
  }
  Integers largest = exponents > of_products ? exponents : of_products;
  const Integers least = largest * 0 - 2 * MOST_EXPONENT;
  largest = largest > least ? largest : least;  // less than that: all products are zeros
  const Floats scale = bits_as<Floats>((FRACTION_BITS - largest + 127) << 23);
  Integers parts[2] = {__builtin_convertvector(addends * scale, Integers), largest * 0};
  for (int k = 0; k < depth; ++k) {
    parts[k / 8] += __builtin_convertvector(b[k] * a[k] * scale, Integers);
  }
  const Doubles sum =
      __builtin_convertvector(parts[0], Doubles) + __builtin_convertvector(parts[1], Doubles);
  Floats result = __builtin_convertvector(sum, Floats);
  const Doubles back = __builtin_convertvector(result, Doubles);
  const auto too_far = (back > sum && sum > 0) || (back < sum && sum < 0);
  result = bits_as<Floats>(bits_as<Integers>(result) + __builtin_convertvector(too_far, Integers));
  result *= bits_as<Floats>((largest - FRACTION_BITS + 127) << 23);
  result = of_products < NOTHING / 2 ? addends + 0.0f : result;
  std::memcpy(sums, &result, sizeof(result));
  return true;
}

}  // namespace

float multiply_add(const float* x, const float* w, int count, float addend) {
  Factors a, b;
  for (int k = 0; k < count; ++k) a.set(k, x[k]), b.set(k, w[k]);
  return multiply_add(a, b, addend);
}

// NaN as an H200 has it: the first keeps its upper bits, the others make one of their own.
float nearest_tf32(float x) { return tf32(std::isnan(x) ? x : float_of(bits_of(x) + 0x1000)); }
float even_tf32(float x) {
  if (std::isnan(x)) return float_of(0x7fffe000);
  return tf32(float_of(bits_of(x) + 0xfff + (bits_of(x) >> 13 & 1)));
}
float truncated_tf32(float x) { return std::isnan(x) ? float_of(0x7fffe000) : tf32(x); }

void multiply_add(const float* a, const float* b, int rows, int columns, int depth, bool of_half,
                  bool to_half, float* sums) {
  const int least = of_half ? HALF_LEAST : -126;
  std::vector<int32_t> exponents(rows * depth);
  for (int i = 0; i < rows * depth; ++i) exponents[i] = exponent_of(a[i], least);
  std::vector<char> tame_rows(rows);
  for (int row = 0; row < rows; ++row) tame_rows[row] = is_tame(a + row * depth, depth);
  for (int column = 0; column < columns; column += WIDTH) {
    const float* const from = b + column * depth;
    Floats values[16];
    Integers of_values[16];
    for (int i = 0; i < depth * WIDTH; ++i) {
      values[i % depth][i / depth] = from[i];
      of_values[i % depth][i / depth] = exponent_of(from[i], least);
    }
    const bool tame = !to_half && is_tame(from, depth * WIDTH);
    for (int row = 0; row < rows; ++row) {
      const float* const x = a + row * depth;
      float* const to = sums + row * columns + column;
      if (tame && tame_rows[row] &&
          multiply_add(x, &exponents[row * depth], values, of_values, depth, to)) {
        continue;
      }
      for (int i = 0; i < WIDTH; ++i) {
        Factors of_a, of_b;
        for (int k = 0; k < depth; ++k) {
          of_a.set(k, x[k], least), of_b.set(k, from[i * depth + k], least);
        }
        const double sum = exact_sum(of_a, of_b, to[i]);
        to[i] = to_half ? float_of_half(half_of(sum)) : toward_zero(sum);
      }
    }
  }
}

float float_of_half(uint16_t half) {
  const uint32_t word = half;
  if ((word >> 10 & 31) == 31) return word & 0x3ff ? NAN : word >> 15 & 1 ? -INFINITY : INFINITY;
  return std::ldexp(float_of((word & 0x8000) << 16 | (word & 0x7fff) << 13), 112);
}

float float_of_bfloat16(uint16_t bits) { return float_of(uint32_t{bits} << 16); }

uint16_t half_of(double value) {
  const uint32_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return 0x7fff;
  if (value == 0 || std::isinf(value))
    return static_cast<uint16_t>(sign | (value == 0 ? 0 : 0x7c00));
  const int exponent = std::max(std::ilogb(value), HALF_LEAST);
  const double unit = power_of_two(exponent - 10);
  const double units = std::nearbyint(std::fabs(value) / unit);  // below 2^11, or just that
  if (units * unit >= 65536) return static_cast<uint16_t>(sign | 0x7c00);
  return static_cast<uint16_t>(sign | (((exponent + 14) << 10) + static_cast<int>(units)));
}

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
  float a[M * MOST], b[N * MOST];      // [M][k], [N][k]
  for (int lane = 0; lane < 32; ++lane) {
    const LaneProduct& part = part_of(parts, lane);
    for (int i = 0; i < M * any.k / 32; ++i) {
      const int row = lane / 4 + i / each % 2 * 8;
      a[row * any.k + (i / each / 2 * 4 + lane % 4) * each + i % each] =
          static_cast<float>(number(part.left, any.a, i));
    }
    for (int i = 0; i < N * any.k / 32; ++i) {
      b[lane / 4 * any.k + (i / each * 4 + lane % 4) * each + i % each] =
          static_cast<float>(number(part.right, any.b, i));
    }
  }
  const auto row_of = [](int lane, int i) { return lane / 4 + i / 2 * 8; };
  const auto column_of = [](int lane, int i) { return lane % 4 * 2 + i % 2; };
  if (any.d == LaneProduct::kInteger) {  // goes round
    for (int lane = 0; lane < 32; ++lane) {
      LaneProduct& part = part_of(parts, lane);
      for (int i = 0; i < 4; ++i) {
        const float* const row = a + row_of(lane, i) * any.k;
        const double sum = std::inner_product(row, row + any.k, b + column_of(lane, i) * any.k,
                                              number(part.addend, any.c, i));
        part.result[i] = static_cast<uint32_t>(static_cast<int64_t>(sum));
      }
    }
    return;
  }
  float sums[M * N];
  const auto sum = [&](int lane, int i) -> float& {
    return sums[row_of(lane, i) * N + column_of(lane, i)];
  };
  for (int i = 0; i < M * N; ++i) {
    sum(i / 4, i % 4) = static_cast<float>(number(part_of(parts, i / 4).addend, any.c, i % 4));
  }
  const bool to_half = any.d != LaneProduct::kFloat;
  multiply_add(a, b, M, N, any.k, any.a == LaneProduct::kHalf, to_half, sums);
  for (int i = 0; i < M * N; ++i) {
    uint32_t* const result = part_of(parts, i / 4).result;
    const float value = sum(i / 4, i % 4);
    if (!to_half) {
      result[i % 4] = bits_of(value);
    } else {
      result[i % 4 / 2] = (i % 2 ? result[i % 4 / 2] : 0) | half_of(value) << i % 2 * 16;
    }
  }
}

}  // namespace convladder::simulator
