#include "common/check/test_data.h"

#include <algorithm>

#include "common/check/parallel.h"
#include "common/check/random.h"

namespace convladder {
namespace {

constexpr int64_t EXACT = int64_t{1} << 24;  // float32 holds every integer up to here
constexpr int64_t LARGEST_SMALL = 64;        // "small": products of two stay below 13 bits
constexpr int64_t LEAST_WIDE = 2049, LARGEST_WIDE = 4095;

// Each tensor has its own sequence of random numbers, and so has the filters' sparsity pattern.
enum Tensor : uint64_t { kInput = 1, kFilters, kBias, kPattern };

// values[i] = element(i) on all cores.
template <typename Element>
void fill(std::vector<float>& values, int64_t count, const Element& element) {
  values.resize(count);
  parallel_for(count, int64_t{1} << 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) values[i] = element(i);
  });
}

// Uniform in [-1, 1), a multiple of 2^-23: all 24 bits of a float are in use.
float uniform(uint64_t bits) { return (static_cast<float>(bits >> 40) - 0x1p23f) * 0x1p-23f; }

// Uniform integer in [-amplitude, amplitude].
float integer(uint64_t bits, int64_t amplitude) {
  const auto values = static_cast<uint64_t>(2 * amplitude + 1);
  return static_cast<float>(static_cast<int64_t>((bits >> 32) % values) - amplitude);
}

float sign(uint64_t bits) { return bits & 1 ? -1.0f : 1.0f; }

float nonzero_integer(uint64_t bits, int64_t amplitude) {
  const auto values = static_cast<uint64_t>(amplitude);
  return sign(bits) * static_cast<float>(1 + (bits >> 32) % values);
}

// Odd, of magnitude 2049 to 4095: neither TF32 nor half precision holds it.
float wide_integer(uint64_t bits) {
  constexpr uint64_t VALUES = (LARGEST_WIDE - LEAST_WIDE) / 2 + 1;
  return sign(bits) * static_cast<float>(LEAST_WIDE + 2 * ((bits >> 32) % VALUES));
}

void fill_uniform(const ConvShape& shape, uint64_t seed, TestData& data) {
  const auto element = [seed](Tensor tensor) {
    return [=](int64_t i) { return uniform(random_bits(seed, tensor, i)); };
  };
  fill(data.input, shape.input_count(), element(kInput));
  fill(data.filters, shape.filter_count(), element(kFilters));
  fill(data.bias, shape.total_K(), element(kBias));
  for (float& b : data.bias) b = b == 0 ? 1.0f : b;
}

// |x| and |w| up to the largest a <= 64 with GEMM_K*a*a < 2^24; the bias takes what is left, at
// least 1. With GEMM_K = 4096 a is 63, with 2^22 and more it is 1: two thirds of the values are
// non-zero even then.
void fill_small_integers(const ConvShape& shape, uint64_t seed, TestData& data) {
  const int64_t gemm_k = shape.CRS();
  if (gemm_k >= EXACT) {
    throw InvalidArgument("c*r*s = " + std::to_string(gemm_k) +
                          ": too many products for exact sums in float32, must be below 2^24");
  }
  int64_t amplitude = LARGEST_SMALL;
  while (gemm_k * amplitude * amplitude >= EXACT) --amplitude;
  const int64_t left = EXACT - gemm_k * amplitude * amplitude;
  const auto element = [=](Tensor tensor) {
    return [=](int64_t i) { return integer(random_bits(seed, tensor, i), amplitude); };
  };
  fill(data.input, shape.input_count(), element(kInput));
  fill(data.filters, shape.filter_count(), element(kFilters));
  fill(data.bias, shape.total_K(), [=](int64_t i) {
    return nonzero_integer(random_bits(seed, kBias, i), std::min(left, LARGEST_SMALL));
  });
}

// At most (2^24 - 4095) / 4095 = 4096 filter values per filter may be non-zero, the bias being as
// wide as x. Up to GEMM_K = 4096 all of them are -1 or 1; beyond, a filter is cut into groups of
// ceil(GEMM_K / 4096) consecutive values, of which one, drawn for each group, is non-zero.
void fill_wide_integers(const ConvShape& shape, uint64_t seed, TestData& data) {
  constexpr int64_t MOST_NONZERO = (EXACT - LARGEST_WIDE) / LARGEST_WIDE;
  const int64_t gemm_k = shape.CRS();
  const int64_t group = (gemm_k + MOST_NONZERO - 1) / MOST_NONZERO;
  fill(data.input, shape.input_count(),
       [=](int64_t i) { return wide_integer(random_bits(seed, kInput, i)); });
  fill(data.filters, shape.filter_count(), [=](int64_t i) {
    const int64_t k = i / gemm_k, tap = i % gemm_k;
    const uint64_t pattern = random_bits(seed, kPattern, k * gemm_k + tap / group);
    const bool chosen = tap % group == static_cast<int64_t>((pattern >> 32) % group);
    return chosen ? sign(random_bits(seed, kFilters, i)) : 0.0f;
  });
  fill(data.bias, shape.total_K(),
       [=](int64_t i) { return wide_integer(random_bits(seed, kBias, i)); });
}

}  // namespace

const char* to_string(DataKind kind) {
  if (kind == DataKind::kUniform) return "real numbers";
  return kind == DataKind::kSmallInteger ? "small integers" : "wide integers";
}

TestData make_test_data(const ConvShape& shape, DataKind kind, uint64_t seed) {
  validate(shape);
  TestData data;
  switch (kind) {
    case DataKind::kUniform:
      fill_uniform(shape, seed, data);
      break;
    case DataKind::kSmallInteger:
      fill_small_integers(shape, seed, data);
      break;
    case DataKind::kWideInteger:
      fill_wide_integers(shape, seed, data);
      break;
  }
  return data;
}

}  // namespace convladder
