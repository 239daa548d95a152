// The data that checks run on: reproducible, and of the kind that each rule relies on.
#include "common/check/test_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "common/check/parallel.h"
#include "common/check/reference.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

ConvShape shape_with_gemm_k(int64_t c, int64_t r, int64_t s) {
  ConvArguments a;
  a.n = 2, a.c = c, a.h = r, a.w = s, a.k = 3, a.r = r, a.s = s;
  return make_conv_shape(a);
}

int64_t count_nonzero(const std::vector<float>& values) {
  return std::count_if(values.begin(), values.end(), [](float x) { return x != 0; });
}

TEST(TestData, HasTheSizesOfTheTensors) {
  const ConvShape shape = shape_with_gemm_k(7, 5, 3);
  for (const DataKind kind : DATA_KINDS) {
    const TestData data = make_test_data(shape, kind, 1);
    EXPECT_EQ(static_cast<int64_t>(data.input.size()), shape.input_count());
    EXPECT_EQ(static_cast<int64_t>(data.filters.size()), shape.filter_count());
    EXPECT_EQ(static_cast<int64_t>(data.bias.size()), shape.K);
    EXPECT_EQ(count_nonzero(data.bias), shape.K);
  }
}

// An element depends on its index and the seed alone: a longer tensor begins with the shorter one.
TEST(TestData, SameSeedSameData) {
  const ConvShape shape = shape_with_gemm_k(7, 5, 3);
  ConvShape more = shape;
  more.N = 5000;
  for (const DataKind kind : DATA_KINDS) {
    const TestData few = make_test_data(shape, kind, 1), many = make_test_data(more, kind, 1);
    EXPECT_TRUE(std::equal(few.input.begin(), few.input.end(), many.input.begin()));
    EXPECT_EQ(few.filters, many.filters);
    EXPECT_EQ(few.bias, many.bias);
    const TestData other = make_test_data(shape, kind, 2);
    EXPECT_NE(few.input, other.input);
    EXPECT_NE(few.filters, other.filters);
    EXPECT_NE(few.bias, other.bias);
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

TEST(TestData, TensorsAreNotAlike) {
  for (const DataKind kind : DATA_KINDS) {
    const TestData data = make_test_data(shape_of("h=w=r=s=8"), kind, 1);
    EXPECT_NE(data.input, data.filters);
  }
}

// The sums go from one term to the most that "small" takes, and beyond it.
TEST(TestData, IntegerKindsStayExactAndAreNotZero) {
  const ConvShape shapes[] = {shape_with_gemm_k(1, 1, 1),     shape_with_gemm_k(3, 11, 11),
                              shape_with_gemm_k(4096, 1, 1),  shape_with_gemm_k(4097, 1, 1),
                              shape_with_gemm_k(2048, 3, 3),  shape_with_gemm_k(1 << 12, 31, 33),
                              shape_with_gemm_k(13, 409, 787)};
  for (const ConvShape& shape : shapes) {
    SCOPED_TRACE(to_string(shape));
    for (const DataKind kind : {DataKind::kSmallInteger, DataKind::kWideInteger}) {
      const TestData data = make_test_data(shape, kind, 1);
      for (const auto* tensor : {&data.input, &data.filters, &data.bias}) {
        for (const float x : *tensor) ASSERT_EQ(x, std::nearbyint(x));
      }
      // The worst sum that these filters allow, over all inputs of this kind.
      const double widest = kind == DataKind::kWideInteger ? 4095 : 64;
      double largest_input = 0;
      for (const float x : data.input)
        largest_input = std::max(largest_input, std::fabs(double{x}));
      ASSERT_LE(largest_input, widest);
      for (int k = 0; k < shape.K; ++k) {
        double sum = std::fabs(data.bias[k]);
        for (int i = 0; i < shape.CRS(); ++i) {
          sum += largest_input * std::fabs(data.filters[int64_t{k} * shape.CRS() + i]);
        }
        EXPECT_LE(sum, 0x1p24);
      }
      EXPECT_GE(count_nonzero(data.input), shape.input_count() / 2);
    }
  }
}

TEST(TestData, SmallIntegerFiltersAreDense) {
  for (const int64_t c : {100, 100000, 5000000, (1 << 24) - 1}) {
    const ConvShape shape = shape_with_gemm_k(c, 1, 1);
    const TestData data = make_test_data(shape, DataKind::kSmallInteger, 1);
    EXPECT_GT(count_nonzero(data.filters), shape.filter_count() * 6 / 10);
  }
}

TEST(TestData, SmallIntegersEndWhereFloatDoes) {
  EXPECT_EQ(message_of<InvalidArgument>([] {
              make_test_data(shape_with_gemm_k(1 << 24, 1, 1), DataKind::kSmallInteger, 1);
            }),
            "c*r*s = 16777216: too many products for exact sums in float32, must be below 2^24");
}

TEST(TestData, WideIntegersAreOddAndWide) {
  const TestData data = make_test_data(shape_with_gemm_k(50, 3, 3), DataKind::kWideInteger, 1);
  for (const float x : data.input) {
    EXPECT_EQ(static_cast<int>(std::fabs(x)) % 2, 1);
    EXPECT_GE(std::fabs(x), 2049);
    EXPECT_LE(std::fabs(x), 4095);
  }
  for (const float w : data.filters) EXPECT_EQ(std::fabs(w), 1);
}

TEST(TestData, WideIntegerFiltersUseWhat2To24Allows) {
  for (const int64_t c : {1, 363, 4096, 4097, 8192, 10000, 1000000}) {
    const ConvShape shape = shape_with_gemm_k(c, 1, 1);
    const TestData data = make_test_data(shape, DataKind::kWideInteger, 1);
    for (int k = 0; k < shape.K; ++k) {
      const auto* filter = data.filters.data() + k * c;
      const int64_t nonzero = std::count_if(filter, filter + c, [](float w) { return w != 0; });
      EXPECT_LE(nonzero, 4096) << c;
      EXPECT_GE(nonzero, std::min<int64_t>(c, 2000)) << c;
    }
  }
}

TEST(ParallelFor, CoversEveryIndexOnce) {
  for (const int64_t count : {0, 1, 7, 100, 101}) {
    std::vector<std::atomic<int>> visits(count);
    parallel_for(count, 10, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++visits[i];
    });
    for (const auto& visited : visits) EXPECT_EQ(visited, 1);
  }
}

}  // namespace
}  // namespace convladder
