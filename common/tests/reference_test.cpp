// The data that checks run on: reproducible, and of the kind that each rule relies on. And the reference:
// held against sums done by hand, and against a second implementation.
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <set>

#include "common/check/parallel.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

// ---- The reference ----

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

// Every small problem of problems.csv, and the large ones cut down.
TEST(Reference, AgreesWithTheSecondImplementationAndWithItsSamples) {
  for (const Problem& problem : read_problems(CONVLADDER_PROBLEMS)) {
    const ConvShape shape = make_conv_shape(reduce(problem.arguments, 1e6));
    SCOPED_TRACE(problem.name + ": " + to_string(shape));
    for (const bool relu : {false, true}) {
      const TestData integers = make_test_data(shape, DataKind::kSmallInteger, 1);
      const HostProblem exact = host_problem(shape, integers, !relu, relu);
      const Reference first = compute_reference(exact);
      ASSERT_EQ(std::pair(first.value, first.magnitude), scatter<double>(exact));

      const TestData reals = make_test_data(shape, DataKind::kUniform, 2);
      const HostProblem rounded = host_problem(shape, reals, relu, relu);
      const Reference third = compute_reference(rounded);
      const auto [value, magnitude] = scatter<double>(rounded);
      for (int64_t i = 0; i < shape.output_count(); ++i) {
        ASSERT_NEAR(third.value[i], value[i], 1e-13 * magnitude[i]) << i;
        ASSERT_NEAR(third.magnitude[i], magnitude[i], 1e-13 * magnitude[i]) << i;
      }
      const Reference sampled = compute_reference(rounded, sample_outputs(shape, 100, 4));
      ASSERT_FALSE(sampled.index.empty());
      for (std::size_t i = 0; i < sampled.index.size(); ++i) {  // the same terms in the same order
        ASSERT_EQ(sampled.value[i], third.value[sampled.index[i]]);
        ASSERT_EQ(sampled.magnitude[i], third.magnitude[sampled.index[i]]);
      }
    }
  }
}

TEST(SampleOutputs, HoldsAllCornersAndNoIndexTwice) {
  const ConvShape shape = shape_of("n=16 c=16 h=w=1024 k=128 r=s=3");  // 2.1 billion outputs
  const std::vector<int64_t> sample = sample_outputs(shape, 4096, 1);
  EXPECT_EQ(sample, sample_outputs(shape, 4096, 1));
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
  EXPECT_NE(sample, sample_outputs(shape, 4096, 2));
  EXPECT_EQ(sample.back(), shape.output_count() - 1);
}

// ---- The data ----

ConvShape shape_with_gemm_k(int64_t c, int64_t r = 1, int64_t s = 1) {
  ConvArguments a;
  a.n = 2, a.c = c, a.h = r, a.w = s, a.k = 3, a.r = r, a.s = s;
  return make_conv_shape(a);
}

int64_t count_nonzero(const float* begin, const float* end) {
  return std::count_if(begin, end, [](float x) { return x != 0; });
}

// An element depends on its tensor, its index and the seed alone: a longer tensor begins with the shorter
// one.
TEST(TestData, SameSeedSameData) {
  ConvShape shape = shape_with_gemm_k(7, 5, 3), more = shape;
  more.N = 5000;
  for (const DataKind kind : DATA_KINDS) {
    const TestData few = make_test_data(shape, kind, 1), many = make_test_data(more, kind, 1);
    ASSERT_EQ(static_cast<int64_t>(few.input.size()), shape.input_count());
    EXPECT_EQ(static_cast<int64_t>(few.filters.size()), shape.filter_count());
    EXPECT_EQ(count_nonzero(few.bias.data(), few.bias.data() + few.bias.size()), shape.K);
    EXPECT_TRUE(std::equal(few.input.begin(), few.input.end(), many.input.begin()));
    EXPECT_EQ(few.filters, many.filters);
    EXPECT_EQ(few.bias, many.bias);
    const TestData other = make_test_data(shape, kind, 2);
    EXPECT_NE(few.input, other.input);
    EXPECT_NE(few.filters, other.filters);
    EXPECT_NE(few.bias, other.bias);
    const TestData alike = make_test_data(shape_of("h=w=r=s=8"), kind, 1);
    EXPECT_NE(alike.input, alike.filters);
  }
}

TEST(TestData, UniformFillsItsInterval) {
  const TestData data = make_test_data(shape_of("h=w=1000"), DataKind::kUniform, 3);
  const auto [least, most] = std::minmax_element(data.input.begin(), data.input.end());
  EXPECT_GE(*least, -1);
  EXPECT_LT(*least, -0.9999f);
  EXPECT_LT(*most, 1);
  EXPECT_GT(*most, 0.9999f);
  double sum = 0, squares = 0, neighbours = 0;
  for (std::size_t i = 0; i < data.input.size(); ++i) {
    sum += data.input[i];
    squares += double{data.input[i]} * data.input[i];
    neighbours += double{data.input[i]} * data.input[(i + 1) % data.input.size()];
  }
  EXPECT_NEAR(sum / 1e6, 0, 0.003);  // 5 standard errors
  EXPECT_NEAR(squares / 1e6, 1.0 / 3, 0.0015);
  EXPECT_NEAR(neighbours / 1e6, 0, 0.0017);
}

// The sums go from one term to the most that "small" takes, and beyond it.
TEST(TestData, IntegerKindsStayExactAndAreNotZero) {
  const ConvShape shapes[] = {shape_with_gemm_k(1),
                              shape_with_gemm_k(3, 11, 11),
                              shape_with_gemm_k(4096),
                              shape_with_gemm_k(4097),
                              shape_with_gemm_k(10000),
                              shape_with_gemm_k(2048, 3, 3),
                              shape_with_gemm_k(1 << 12, 31, 33),
                              shape_with_gemm_k(13, 409, 787)};
  for (const ConvShape& shape : shapes) {
    for (const DataKind kind : {DataKind::kSmallInteger, DataKind::kWideInteger}) {
      SCOPED_TRACE(to_string(shape) + ", " + to_string(kind));
      const bool wide = kind == DataKind::kWideInteger;
      const TestData data = make_test_data(shape, kind, 1);
      for (const auto* tensor : {&data.input, &data.filters, &data.bias}) {
        for (const float x : *tensor) ASSERT_EQ(x, std::nearbyint(x));
      }
      double largest = 0;
      for (const float x : data.input) {
        largest = std::max(largest, std::fabs(double{x}));
        ASSERT_TRUE(!wide || (std::fabs(x) >= 2049 && static_cast<int>(x) % 2 != 0)) << x;
      }
      ASSERT_LE(largest, wide ? 4095 : 64);
      EXPECT_GE(count_nonzero(data.input.data(), data.input.data() + data.input.size()),
                shape.input_count() / 2);
      for (int k = 0; k < shape.K; ++k) {
        // The worst sum that these filters allow, over all inputs of this kind.
        const float* const filter = data.filters.data() + int64_t{k} * shape.CRS();
        double sum = std::fabs(data.bias[k]);
        for (int i = 0; i < shape.CRS(); ++i) {
          sum += largest * std::fabs(filter[i]);
          ASSERT_TRUE(!wide || std::fabs(filter[i]) <= 1) << filter[i];
        }
        EXPECT_LE(sum, 0x1p24);
        // As many as 2^24 allows.
        const int64_t nonzero = count_nonzero(filter, filter + shape.CRS());
        EXPECT_GE(nonzero, wide ? std::min(shape.CRS(), 2000) : shape.CRS() / 2);
      }
    }
  }
  EXPECT_EQ(message_of<InvalidArgument>(
                [] { make_test_data(shape_with_gemm_k(1 << 24), DataKind::kSmallInteger, 1); }),
            "c*r*s = 16777216: too many products for exact sums in float32, must be below 2^24");
}

// ---- Threads ----

#ifndef __SANITIZE_ADDRESS__  // which needs memory itself
TEST(Threads, WhereTheSystemGivesNoneTheCallerDoesAll) {
  const auto count = [] {
    rlimit memory = {};
    getrlimit(RLIMIT_AS, &memory);
    memory.rlim_cur = 1 << 20;  // less than is in use
    setrlimit(RLIMIT_AS, &memory);
    std::atomic<int64_t> sum{0};
    parallel_for(100, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
    _exit(sum == 100 ? 0 : 1);
  };
  EXPECT_EXIT(count(), testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace convladder
