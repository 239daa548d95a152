// A check that cannot fail proves nothing: here the comparer must reject what it is there to
// reject, and accept honest float32 arithmetic in any order.
#include "common/check/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "common/check/test_data.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

constexpr float NOT_A_NUMBER = std::numeric_limits<float>::quiet_NaN();
constexpr float INF = std::numeric_limits<float>::infinity();

using Round = float (*)(float);
float keep(float x) { return x; }

// x without the last BITS of its 23 mantissa bits, rounded.
template <int BITS>
float rounded(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits = (bits + (1u << (BITS - 1))) & ~((1u << BITS) - 1);
  std::memcpy(&x, &bits, sizeof bits);
  return x;
}

constexpr Round to_tf32 = rounded<13>, to_bfloat16 = rounded<16>;

// A convolution in float32 as a kernel would do it, operands passed through `round`; the terms in
// falling or rising order.
std::vector<float> convolve(const ConvShape& s, const TestData& data, Round round = keep,
                            bool backwards = false) {
  std::vector<float> output(s.output_count());
  for (int64_t i = 0; i < s.output_count(); ++i) {
    const int q = i % s.Q(), p = i / s.Q() % s.P(), k = i / s.PQ() % s.K, n = i / s.KPQ();
    float sum = 0;
    for (int j = 0; j < s.CRS(); ++j) {
      const int crs = backwards ? s.CRS() - 1 - j : j;
      const int c = crs / (s.R * s.S), r = crs / s.S % s.R, t = crs % s.S;
      const int h = p * s.stride_h - s.pad_h + r * s.dil_h;
      const int w = q * s.stride_w - s.pad_w + t * s.dil_w;
      if (h < 0 || h >= s.H || w < 0 || w >= s.W) continue;
      sum += round(data.input[((int64_t{n} * s.C + c) * s.H + h) * s.W + w]) *
             round(data.filters[int64_t{k} * s.CRS() + crs]);
    }
    output[i] = sum + data.bias[k];
  }
  return output;
}

Reference reference_of(const ConvShape& shape, const TestData& data) {
  return compute_reference(host_problem(shape, data));
}

// Both rules, with the data that belongs to each.
class Compare : public testing::TestWithParam<DataKind> {
 protected:
  Compare()
      : shape(shape_of("n=2 c=5 h=w=13 k=2 r=s=3 stride_h=stride_w=2 pad_h=pad_w=1")),
        data(make_test_data(shape, GetParam(), 11)),
        reference(reference_of(shape, data)),
        honest(convolve(shape, data)) {}

  Comparison held_against_reference(const std::vector<float>& output) const {
    return compare(output.data(), shape, reference, rule_for(GetParam()));
  }

  ConvShape shape;
  TestData data;
  Reference reference;
  std::vector<float> honest;
};

INSTANTIATE_TEST_SUITE_P(Kinds, Compare, testing::ValuesIn(DATA_KINDS), [](const auto& info) {
  std::string name = to_string(info.param);
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
});

TEST_P(Compare, AcceptsFloat32InAnyOrder) {
  for (const bool backwards : {false, true}) {
    const Comparison result = held_against_reference(convolve(shape, data, keep, backwards));
    EXPECT_TRUE(result.pass) << result.message;
    EXPECT_EQ(result.message, "");
    EXPECT_EQ(result.failures, 0);
    EXPECT_EQ(result.checked, shape.output_count());
    EXPECT_LE(result.max_error_ratio, rule_for(GetParam()) == Rule::kExact ? 0 : 1);
  }
}

TEST_P(Compare, RejectsNan) {
  std::vector<float> output = honest;
  output[37] = NOT_A_NUMBER;  // 37 = ((0*2 + 0)*7 + 5)*7 + 2
  const Comparison result = held_against_reference(output);
  EXPECT_FALSE(result.pass);
  EXPECT_EQ(result.failures, 1);
  EXPECT_EQ(result.max_error_ratio, std::numeric_limits<double>::infinity());
  EXPECT_EQ(result.message,
            "output[n=0,k=0,p=5,q=2] is NaN (never written?), 1 of 196 outputs are");
  output = honest;
  output.back() = NOT_A_NUMBER;
  EXPECT_FALSE(held_against_reference(output).pass);
}

TEST_P(Compare, RejectsInfinity) {
  for (const float infinity : {INF, -INF}) {
    std::vector<float> output = honest;
    output[0] = infinity;
    const Comparison result = held_against_reference(output);
    EXPECT_FALSE(result.pass);
    EXPECT_EQ(result.max_error_ratio, std::numeric_limits<double>::infinity());
  }
}

TEST_P(Compare, RejectsAnOutputNobodyWrote) {
  const std::vector<float> output(shape.output_count(), NOT_A_NUMBER);
  EXPECT_EQ(held_against_reference(output).failures, shape.output_count());
  EXPECT_FALSE(held_against_reference(std::vector<float>(shape.output_count())).pass) << "zeros";
}

TEST_P(Compare, RejectsAMissingBias) {
  TestData without = data;
  std::fill(without.bias.begin(), without.bias.end(), 0.0f);
  EXPECT_FALSE(held_against_reference(convolve(shape, without)).pass);
}

TEST_P(Compare, RejectsAMissingTap) {
  std::vector<float> output = honest;
  output[100] -= data.input[0] * data.filters[0];
  EXPECT_FALSE(held_against_reference(output).pass);
}

// Small integers survive such rounding; this is why there are wide ones.
TEST_P(Compare, RejectsOperandsRoundedToLessThanFloat32) {
  const bool expected_pass = GetParam() == DataKind::kSmallInteger;
  EXPECT_EQ(held_against_reference(convolve(shape, data, to_tf32)).pass, expected_pass);
  EXPECT_EQ(held_against_reference(convolve(shape, data, to_bfloat16)).pass, expected_pass);
}

TEST(CompareTf32, IsSeenInLongSumsToo) {
  ConvArguments a;
  a.c = 512, a.h = 5, a.w = 5, a.k = 3, a.r = 3, a.s = 3;  // 4608 terms
  const ConvShape shape = make_conv_shape(a);
  const TestData data = make_test_data(shape, DataKind::kUniform, 5);
  const Reference reference = reference_of(shape, data);
  const std::vector<float> honest = convolve(shape, data);
  const std::vector<float> rounded = convolve(shape, data, to_tf32);
  EXPECT_TRUE(compare(honest.data(), shape, reference, Rule::kBounded).pass);
  EXPECT_FALSE(compare(rounded.data(), shape, reference, Rule::kBounded, 16).pass);
}

// Four million outputs, each x + b with integers: any value off by one ulp must be found.
class CompareMillions : public testing::Test {
 protected:
  CompareMillions() {
    shape = shape_of("n=4 h=w=512 k=4");
    const TestData data = make_test_data(shape, DataKind::kSmallInteger, 7);
    reference = reference_of(shape, data);
    output.assign(reference.value.begin(), reference.value.end());
  }

  ConvShape shape;
  Reference reference;
  std::vector<float> output;
};

TEST_F(CompareMillions, OneWrongPixelFails) {
  for (const int64_t wrong : {int64_t{0}, int64_t{2345678}, shape.output_count() - 1}) {
    const float right = output[wrong];
    output[wrong] = std::nextafter(right, INF);
    const Comparison exact = compare(output.data(), shape, reference, Rule::kExact);
    EXPECT_FALSE(exact.pass);
    EXPECT_EQ(exact.failures, 1);
    output[wrong] = right + 1e-5f * static_cast<float>(reference.magnitude[wrong]);
    EXPECT_FALSE(compare(output.data(), shape, reference, Rule::kBounded).pass);
    output[wrong] = right;
    EXPECT_TRUE(compare(output.data(), shape, reference, Rule::kExact).pass);
  }
}

TEST_F(CompareMillions, TheMessageNamesPositionAndValues) {
  output[2345678] = 1234.5f;  // 2345678 = ((2*4 + 0)*512 + 485)*512 + 206 of 4 x 4 x 512 x 512
  reference.value[2345678] = -7;
  const Comparison result = compare(output.data(), shape, reference, Rule::kExact);
  EXPECT_EQ(result.message,
            "output[n=2,k=0,p=485,q=206] = 1234.5, expected -7, error 1241.5, allowed 0; "
            "1 of 4194304 checked outputs are wrong");
}

TEST_F(CompareMillions, AnUnwrittenOutputFailsWhereNoSampleLooks) {
  Reference sampled;
  for (int64_t i = 0; i < 100; ++i) {
    sampled.index.push_back(i);
    sampled.value.push_back(reference.value[i]);
    sampled.magnitude.push_back(reference.magnitude[i]);
  }
  EXPECT_TRUE(compare(output.data(), shape, sampled, Rule::kExact).pass);
  output[3000000] = NOT_A_NUMBER;
  const Comparison result = compare(output.data(), shape, sampled, Rule::kExact);
  EXPECT_FALSE(result.pass);
  EXPECT_EQ(result.checked, 100);
  EXPECT_EQ(result.failures, 1);
}

TEST(CompareBounds, AllowedErrorIsEightRoundingErrorsOfTheMagnitude) {
  const ConvShape shape = shape_of("");
  const Reference reference = {{}, {1.0}, {2.0}};  // A = 2: 8 * 2^-24 * 2 = 2^-20 allowed
  const float inside = 1.0f + 0x1p-20f, outside = 1.0f + 0x1.2p-20f;
  EXPECT_TRUE(compare(&inside, shape, reference, Rule::kBounded).pass);
  EXPECT_FALSE(compare(&outside, shape, reference, Rule::kBounded).pass);
  EXPECT_TRUE(compare(&outside, shape, reference, Rule::kBounded, 16).pass);
  EXPECT_DOUBLE_EQ(compare(&outside, shape, reference, Rule::kBounded).max_error_ratio, 1.125);
}

TEST(CompareBounds, WithoutMagnitudeOnlyZeroIsRight) {
  const ConvShape shape = shape_of("");
  const Reference reference = {{}, {0.0}, {0.0}};
  const float zero = 0, minus_zero = -0.0f, tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_TRUE(compare(&zero, shape, reference, Rule::kBounded).pass);
  EXPECT_TRUE(compare(&minus_zero, shape, reference, Rule::kExact).pass);
  EXPECT_FALSE(compare(&tiny, shape, reference, Rule::kBounded).pass);
  EXPECT_FALSE(compare(&tiny, shape, reference, Rule::kExact).pass);
}

TEST(CompareBounds, ANanReferenceAcceptsNothing) {
  const ConvShape shape = shape_of("");
  const Reference reference = {{}, {NOT_A_NUMBER}, {NOT_A_NUMBER}};
  for (const float output : {0.0f, NOT_A_NUMBER}) {
    EXPECT_FALSE(compare(&output, shape, reference, Rule::kBounded).pass);
  }
}

TEST(CompareBounds, ExactRuleRefusesDataThatProvesNothing) {
  const ConvShape shape = shape_of("");
  const float output = 1;
  const Reference fits = {{}, {1.0}, {16777216.0}}, too_large = {{}, {1.0}, {16777217.0}};
  EXPECT_TRUE(compare(&output, shape, fits, Rule::kExact).pass);
  EXPECT_THROW(compare(&output, shape, too_large, Rule::kExact), std::logic_error);
}

TEST(CompareBounds, ReferenceMustFitTheOutput) {
  const ConvShape shape = shape_of("");
  const float output = 1;
  EXPECT_THROW(compare(&output, shape, {{}, {}, {}}, Rule::kExact), std::logic_error);
  EXPECT_THROW(compare(&output, shape, {{}, {1.0}, {}}, Rule::kExact), std::logic_error);
  EXPECT_THROW(compare(&output, shape, {{0}, {1.0, 2.0}, {1.0, 2.0}}, Rule::kExact),
               std::logic_error);
}

TEST(CompareBounds, LargeProblemsMayErrTwiceAsFar) {
  EXPECT_EQ(error_factor(shape_of("w=16777215")), 8);
  EXPECT_EQ(error_factor(shape_of("w=16777216")), 16);
}

}  // namespace
}  // namespace convladder
