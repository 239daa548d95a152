// The reference is held against sums done by hand, and against a second implementation that shares no
// line and no loop order with it.
#include "common/check/reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "common/check/problems.h"
#include "common/check/test_data.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

// Scatters instead of gathering: every input value goes to all outputs that it reaches, the loops
// run over the input, and the output position is found by division.
Reference scatter_reference(const HostProblem& problem) {
  const ConvShape& s = problem.shape;
  const int64_t P = s.P(), Q = s.Q();
  Reference result;
  result.value.assign(s.output_count(), 0.0);
  result.magnitude.assign(s.output_count(), 0.0);
  for (int64_t i = 0; i < s.input_count(); ++i) {
    const int64_t w = i % s.W, h = i / s.W % s.H, plane = i / s.W / s.H;  // (n*groups + g)*C + c
    const int64_t c = plane % s.C, g = plane / s.C % s.groups, n = plane / s.C / s.groups;
    for (int64_t filter = s.R * s.S - 1; filter >= 0; --filter) {
      const int64_t up = h + s.pad_h - filter / s.S * s.dil_h;
      const int64_t left = w + s.pad_w - filter % s.S * s.dil_w;
      if (up < 0 || left < 0 || up % s.stride_h != 0 || left % s.stride_w != 0) continue;
      const int64_t p = up / s.stride_h, q = left / s.stride_w;
      if (p >= P || q >= Q) continue;
      for (int64_t k = g * s.K; k < (g + 1) * s.K; ++k) {
        const double product =
            double{problem.input[i]} * problem.filters[(k * s.C + c) * s.R * s.S + filter];
        const int64_t to = ((n * s.groups * s.K + k) * P + p) * Q + q;
        result.value[to] += product;
        result.magnitude[to] += std::fabs(product);
      }
    }
  }
  for (int64_t i = 0; i < s.output_count(); ++i) {
    const double bias = problem.bias ? problem.bias[i / (P * Q) % (s.groups * s.K)] : 0.0;
    result.value[i] += bias;
    result.magnitude[i] += std::fabs(bias);
    if (problem.relu) result.value[i] = std::max(result.value[i], 0.0);
  }
  return result;
}

// A flipped filter would show: every library of deep learning correlates, and so do we.
TEST(Reference, StridePadAndDilationPerAxisByHand) {
  const ConvShape shape =
      shape_of("h=5 w=4 r=s=2 stride_h=2 stride_w=3 pad_h=1 pad_w=2 dil_h=3 dil_w=2");
  ASSERT_EQ(shape.P(), 2);  // (5 + 2 - 4) / 2 + 1
  ASSERT_EQ(shape.Q(), 2);  // (4 + 4 - 3) / 3 + 1
  float input[20];
  for (int i = 0; i < 20; ++i) input[i] = i + 1;  // row h, column w holds 4*h + w + 1
  const float filters[] = {1, 10, 100, 1000};
  // p = 0: rows -1 and 2; p = 1: rows 1 and 4. q = 0: columns -2 and 0; q = 1: columns 1 and 3.
  const Reference result = compute_reference({shape, input, filters, nullptr, false});
  EXPECT_TRUE(result.index.empty());
  EXPECT_EQ(result.value,
            (std::vector<double>{1000 * 9, 100 * 10 + 1000 * 12,  //
                                 10 * 5 + 1000 * 17, 1 * 6 + 10 * 8 + 100 * 18 + 1000 * 20}));
}

// Two groups of two channels and three filters: the first three filters see channels 0 and 1.
TEST(Reference, GroupsByHand) {
  const float input[] = {1, 2, 3, 4, 5, 6, 7, 8};     // [N,C,1,1]
  const float filters[] = {1, 10, 100, 1000, -1, -1,  // [K,C/groups,1,1]: the first group's
                           2, 20, 200, 2000, 0,  1};  // and the second's
  const float bias[] = {0.5, 0.25, 1, 0.125, 2, -4};
  const ConvShape shape = shape_of("n=2 c=4 k=6 groups=2");
  const Reference plain = compute_reference({shape, input, filters, bias, false});
  EXPECT_EQ(plain.value, (std::vector<double>{21.5, 2100.25, -2, 86.125, 8602, 0,  //
                                              65.5, 6500.25, -10, 174.125, 17402, 4}));
  EXPECT_EQ(plain.magnitude, (std::vector<double>{21.5, 2100.25, 4, 86.125, 8602, 8,  //
                                                  65.5, 6500.25, 12, 174.125, 17402, 12}));
  const Reference two = compute_reference({shape, input, filters, bias, true}, {5, 8});
  EXPECT_EQ(two.value, (std::vector<double>{0, 0}));
  EXPECT_EQ(two.magnitude, (std::vector<double>{8, 12}));
}

TEST(Reference, NanStaysNanThroughRelu) {
  const float input[] = {-1, std::numeric_limits<float>::quiet_NaN(), 2}, filters[] = {1};
  const Reference result = compute_reference({shape_of("w=3"), input, filters, nullptr, true});
  EXPECT_EQ(result.value[0], 0);
  EXPECT_TRUE(std::isnan(result.value[1]));
  EXPECT_EQ(result.value[2], 2);
}

// Every small problem of problems.csv, and the large ones cut down.
class ReferenceOfProblem : public testing::TestWithParam<Problem> {};

TEST_P(ReferenceOfProblem, AgreesWithTheSecondImplementation) {
  const ConvShape shape = make_conv_shape(reduce(GetParam().arguments, 1e6));
  SCOPED_TRACE(to_string(shape));
  for (const bool relu : {false, true}) {
    const TestData integers = make_test_data(shape, DataKind::kSmallInteger, 1);
    const HostProblem exact = host_problem(shape, integers, !relu, relu);
    const Reference first = compute_reference(exact), second = scatter_reference(exact);
    EXPECT_EQ(first.value, second.value);
    EXPECT_EQ(first.magnitude, second.magnitude);

    const TestData reals = make_test_data(shape, DataKind::kUniform, 2);
    const HostProblem rounded = host_problem(shape, reals, relu, relu);
    const Reference third = compute_reference(rounded), fourth = scatter_reference(rounded);
    for (int64_t i = 0; i < shape.output_count(); ++i) {
      ASSERT_NEAR(third.value[i], fourth.value[i], 1e-13 * fourth.magnitude[i]) << i;
      ASSERT_NEAR(third.magnitude[i], fourth.magnitude[i], 1e-13 * fourth.magnitude[i]) << i;
    }
  }
}

TEST_P(ReferenceOfProblem, SamplesAreTheSameAsTheWhole) {
  const ConvShape shape = make_conv_shape(reduce(GetParam().arguments, 1e6));
  SCOPED_TRACE(to_string(shape));
  const TestData data = make_test_data(shape, DataKind::kUniform, 3);
  const HostProblem problem = host_problem(shape, data, true, true);
  const Reference whole = compute_reference(problem);
  const Reference sampled = compute_reference(problem, sample_outputs(shape, 100, 4));
  ASSERT_FALSE(sampled.index.empty());
  for (std::size_t i = 0; i < sampled.index.size(); ++i) {
    // Same terms in the same order: the same double.
    ASSERT_EQ(sampled.value[i], whole.value[sampled.index[i]]);
    ASSERT_EQ(sampled.magnitude[i], whole.magnitude[sampled.index[i]]);
  }
}

INSTANTIATE_TEST_SUITE_P(Csv, ReferenceOfProblem,
                         testing::ValuesIn(read_problems(CONVLADDER_PROBLEMS)),
                         [](const auto& info) { return info.param.name; });

TEST(Reference, RejectsIndicesOutsideTheOutput) {
  const ConvShape shape = shape_of("");
  const float one[] = {1};
  for (const int64_t index : {-1, 1}) {
    EXPECT_EQ(message_of<InvalidArgument>([&] {
                compute_reference({shape, one, one, nullptr, false}, {0, index});
              }),
              "index = " + std::to_string(index) + ": must be in [0, 1)");
  }
}

TEST(SampleOutputs, HoldsAllCornersAndNoIndexTwice) {
  const ConvShape shape = shape_of("n=16 c=16 h=w=1024 k=128 r=s=3");  // 2.1 billion outputs
  const std::vector<int64_t> sample = sample_outputs(shape, 4096, 1);
  EXPECT_EQ(sample.size(), 4096u);
  EXPECT_TRUE(std::is_sorted(sample.begin(), sample.end()));
  const std::set<int64_t> chosen(sample.begin(), sample.end());
  EXPECT_EQ(chosen.size(), sample.size());
  for (const int64_t n : {0, 15}) {
    for (const int64_t k : {0, 127}) {
      for (const int64_t p : {0, 1021}) {
        for (const int64_t q : {0, 1021}) {
          EXPECT_EQ(chosen.count(((n * 128 + k) * 1022 + p) * 1022 + q), 1u);
        }
      }
    }
  }
  int border = 0;
  for (const int64_t i : sample) {
    const int64_t p = i / 1022 % 1022, q = i % 1022;
    border += p == 0 || p == 1021 || q == 0 || q == 1021;
  }
  EXPECT_GT(border, 900);
  EXPECT_GE(sample.front(), 0);
  EXPECT_EQ(sample.back(), shape.output_count() - 1);
}

TEST(SampleOutputs, DependsOnTheSeedAlone) {
  const ConvShape shape = shape_of("n=3 h=50 w=70 k=5");
  EXPECT_EQ(sample_outputs(shape, 200, 1), sample_outputs(shape, 200, 1));
  EXPECT_NE(sample_outputs(shape, 200, 1), sample_outputs(shape, 200, 2));
}

TEST(SampleOutputs, TakesAllWhenThereAreFew) {
  const std::vector<int64_t> all = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  EXPECT_EQ(sample_outputs(shape_of("h=3 w=4"), 100, 1), all);
  EXPECT_EQ(sample_outputs(shape_of("h=3 w=4"), 12, 1), all);
}

}  // namespace
}  // namespace convladder
