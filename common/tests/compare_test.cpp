// A check that cannot fail proves nothing: here the comparer must reject what it is there to
// reject, and accept honest float32 arithmetic in any order.
#include <cstring>
#include <functional>

#include "common/tests/support.h"

namespace convladder {
namespace {

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

// The convolution in float32 as a kernel would do it, operands passed through `round`; the terms in
// falling or rising order.
std::vector<float> convolve(const ConvShape& shape, TestData data, Round round = keep,
                            bool backwards = false) {
  std::transform(data.input.begin(), data.input.end(), data.input.begin(), round);
  std::transform(data.filters.begin(), data.filters.end(), data.filters.begin(), round);
  return scatter<float>(host_problem(shape, data), backwards).first;
}

Reference reference_of(const ConvShape& shape, const TestData& data) {
  return compute_reference(host_problem(shape, data));
}

// Both rules, with the data that belongs to each.
class Compare : public testing::TestWithParam<DataKind> {
 protected:
  Comparison held_against_reference(const std::vector<float>& output) const {
    return compare(output.data(), shape, reference, rule_for(GetParam()));
  }

  const ConvShape shape = shape_of("n=2 c=5 h=w=13 k=2 r=s=3 stride_h=stride_w=2 pad_h=pad_w=1");
  const TestData data = make_test_data(shape, GetParam(), 11);
  const Reference reference = reference_of(shape, data);
  const std::vector<float> honest = convolve(shape, data);
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

TEST_P(Compare, RejectsWhatIsWrong) {
  using Output = std::vector<float>;
  TestData without_bias = data;
  std::fill(without_bias.bias.begin(), without_bias.bias.end(), 0.0f);
  const struct {
    const char* what;
    std::function<void(Output&)> spoil;
    int64_t failures;  // 0: some
  } WRONG[] = {{"NaN", [](Output& y) { y[37] = NAN; }, 1},
               {"NaN at the end", [](Output& y) { y.back() = NAN; }, 1},
               {"infinity", [](Output& y) { y[0] = INFINITY; }, 1},
               {"minus infinity", [](Output& y) { y[0] = -INFINITY; }, 1},
               {"never written", [](Output& y) { y.assign(y.size(), NAN); }, shape.output_count()},
               {"zeros", [](Output& y) { y.assign(y.size(), 0.0f); }, 0},
               {"a missing tap", [&](Output& y) { y[100] -= data.input[0] * data.filters[0]; }, 1},
               {"the bias is forgotten", [&](Output& y) { y = convolve(shape, without_bias); }, 0}};
  for (const auto& [what, spoil, failures] : WRONG) {
    SCOPED_TRACE(what);
    Output output = honest;
    spoil(output);
    const Comparison result = held_against_reference(output);
    EXPECT_FALSE(result.pass);
    EXPECT_GT(result.max_error_ratio, 1);
    if (failures > 0) {
      EXPECT_EQ(result.failures, failures);
    }
    EXPECT_EQ(std::isinf(result.max_error_ratio),
              !std::all_of(output.begin(), output.end(), [](float y) { return std::isfinite(y); }));
    if (what == std::string("NaN")) {  // 37 = ((0*2 + 0)*7 + 5)*7 + 2
      EXPECT_EQ(result.message,
                "output[n=0,k=0,p=5,q=2] is NaN (never written?), 1 of 196 outputs are");
    }
  }
}

// Small integers survive such rounding; this is why there are wide ones.
TEST_P(Compare, RejectsOperandsRoundedToLessThanFloat32) {
  const bool expected_pass = GetParam() == DataKind::kSmallInteger;
  EXPECT_EQ(held_against_reference(convolve(shape, data, to_tf32)).pass, expected_pass);
  EXPECT_EQ(held_against_reference(convolve(shape, data, to_bfloat16)).pass, expected_pass);
}

TEST(CompareTf32, IsSeenInLongSumsToo) {
  const ConvShape shape = shape_of("c=512 h=w=5 k=3 r=s=3");  // 4608 terms
  const TestData data = make_test_data(shape, DataKind::kUniform, 5);
  const Reference reference = reference_of(shape, data);
  EXPECT_TRUE(compare(convolve(shape, data).data(), shape, reference, Rule::kBounded).pass);
  EXPECT_FALSE(
      compare(convolve(shape, data, to_tf32).data(), shape, reference, Rule::kBounded, 16).pass);
}

// Four million outputs, each x + b with integers: any value off by one ulp must be found.
TEST(CompareMillions, OneWrongPixelIsFoundAndNamed) {
  const ConvShape shape = shape_of("n=4 h=w=512 k=4");
  const Reference reference =
      reference_of(shape, make_test_data(shape, DataKind::kSmallInteger, 7));
  std::vector<float> output(reference.value.begin(), reference.value.end());
  for (const int64_t wrong : {int64_t{0}, int64_t{2345678}, shape.output_count() - 1}) {
    const float right = output[wrong];
    output[wrong] = std::nextafter(right, INFINITY);
    EXPECT_EQ(compare(output.data(), shape, reference, Rule::kExact).failures, 1);
    output[wrong] = right + 1e-5f * static_cast<float>(reference.magnitude[wrong]);
    EXPECT_FALSE(compare(output.data(), shape, reference, Rule::kBounded).pass);
    output[wrong] = right;
    EXPECT_TRUE(compare(output.data(), shape, reference, Rule::kExact).pass);
  }
  Reference other = reference;
  other.value[2345678] = -7;  // 2345678 = ((2*4 + 0)*512 + 485)*512 + 206 of 4 x 4 x 512 x 512
  output[2345678] = 1234.5f;
  EXPECT_EQ(compare(output.data(), shape, other, Rule::kExact).message,
            "output[n=2,k=0,p=485,q=206] = 1234.5, expected -7, error 1241.5, allowed 0; "
            "1 of 4194304 checked outputs are wrong");

  const Reference sampled = {{0, 1}, {reference.value[0], reference.value[1]}, {64, 64}};
  EXPECT_TRUE(compare(output.data(), shape, sampled, Rule::kExact).pass);
  output[3000000] = NAN;  // where no sample looks
  const Comparison result = compare(output.data(), shape, sampled, Rule::kExact);
  EXPECT_FALSE(result.pass);
  EXPECT_EQ(result.checked, 2);
  EXPECT_EQ(result.failures, 1);
}

TEST(CompareBounds, DecideByMagnitudeAndFactor) {
  constexpr float TINY = std::numeric_limits<float>::denorm_min();
  constexpr Rule EXACT = Rule::kExact, BOUNDED = Rule::kBounded;
  const struct {
    double value, magnitude;
    float output;
    Rule rule;
    double factor;
    bool pass;
  } CASES[] = {{1, 2, 1 + 0x1p-20f, BOUNDED, 8, true},  // 8 * 2^-24 * 2 = 2^-20 is allowed
               {1, 2, 1 + 0x1.2p-20f, BOUNDED, 8, false},
               {1, 2, 1 + 0x1.2p-20f, BOUNDED, 16, true},
               {0, 0, 0, BOUNDED, 8, true},  // without magnitude only zero is right
               {0, 0, -0.0f, EXACT, 8, true},
               {0, 0, TINY, BOUNDED, 8, false},
               {0, 0, TINY, EXACT, 8, false},
               {NAN, NAN, 0, BOUNDED, 8, false},  // a reference that accepts nothing
               {NAN, NAN, NAN, BOUNDED, 8, false},
               {1, 0x1p24, 1, EXACT, 8, true}};
  const ConvShape shape = shape_of("");
  for (const auto& c : CASES) {
    const Comparison result =
        compare(&c.output, shape, {{}, {c.value}, {c.magnitude}}, c.rule, c.factor);
    EXPECT_EQ(result.pass, c.pass) << c.output << " for " << c.value << ", factor " << c.factor;
  }
  EXPECT_DOUBLE_EQ(compare(&CASES[1].output, shape, {{}, {1}, {2}}, BOUNDED).max_error_ratio,
                   1.125);
  EXPECT_EQ(error_factor(shape_of("w=16777215")), 8);
  EXPECT_EQ(error_factor(shape_of("w=16777216")), 16);
}

TEST(CompareBounds, AReferenceThatProvesNothingOrDoesNotFitIsRefused) {
  const float output = 1;
  for (const Reference& reference : {Reference{{}, {1.0}, {0x1p24 + 1}},
                                     {{}, {}, {}},
                                     {{}, {1.0}, {}},
                                     {{0}, {1.0, 2.0}, {1.0, 2.0}}}) {
    EXPECT_THROW(compare(&output, shape_of(""), reference, Rule::kExact), std::logic_error);
  }
}

}  // namespace
}  // namespace convladder
