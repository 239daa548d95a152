// The extents of a problem: what is accepted, what is rejected, and with which words.
#include "common/core/conv_shape.h"

#include <gtest/gtest.h>

#include <limits>

#include "common/core/extents.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

constexpr int64_t INT_LIMIT = std::numeric_limits<int>::max();

ConvArguments small_problem() {
  ConvArguments a;
  a.n = 2, a.c = 3, a.h = 13, a.w = 17, a.k = 5, a.r = 3, a.s = 2;
  return a;
}

std::string rejection(const ConvArguments& arguments) {
  return message_of<InvalidArgument>([&] { make_conv_shape(arguments); });
}

bool starts_with(const std::string& text, const std::string& start) {
  return text.compare(0, start.size(), start) == 0;
}

TEST(ConvShape, NamesEveryArgumentThatIsTooSmallOrTooLarge) {
  for (const Extent& extent : EXTENTS) {
    for (const int64_t value : {extent.least - 1, int64_t{-7}, std::numeric_limits<int64_t>::min(),
                                INT_LIMIT + 1, std::numeric_limits<int64_t>::max()}) {
      ConvArguments a = small_problem();
      a.*extent.given = value;
      const std::string start = std::string(extent.name) + " = " + std::to_string(value) + ":";
      EXPECT_TRUE(starts_with(rejection(a), start)) << rejection(a) << "\nshould start " << start;
    }
  }
}

TEST(ConvShape, GroupsMustDivideChannelsAndFilters) {
  ConvArguments a = small_problem();
  a.c = 6, a.k = 9, a.groups = 3;
  EXPECT_NO_THROW(make_conv_shape(a));
  a.groups = 2;
  EXPECT_EQ(rejection(a), "groups = 2: must divide k = 9");
  a.k = 8, a.groups = 4;
  EXPECT_EQ(rejection(a), "groups = 4: must divide c = 6");
  a.c = 3, a.k = 3, a.groups = 6;
  EXPECT_EQ(rejection(a), "groups = 6: must divide c = 3");
}

// C of a group, K of a group and the number of groups all differ: none can stand for another.
TEST(ConvShape, DescribesOneGroupAndTheWayToTheNextImage) {
  ConvArguments a = small_problem();
  a.c = 12, a.k = 15, a.groups = 3;
  const ConvShape shape = make_conv_shape(a);  // n2 c12 13x17 k15 3x2: 11x16 outputs
  EXPECT_EQ(shape.groups, 3);
  EXPECT_EQ(shape.C, 4);
  EXPECT_EQ(shape.K, 5);
  EXPECT_EQ(shape.CHW(), 4 * 13 * 17);
  EXPECT_EQ(shape.CRS(), 4 * 3 * 2);
  EXPECT_EQ(shape.KPQ(), 5 * 11 * 16);
  EXPECT_EQ(shape.total_C(), 12);
  EXPECT_EQ(shape.total_K(), 15);
  EXPECT_EQ(shape.input_pitch(), 12 * 13 * 17);
  EXPECT_EQ(shape.output_pitch(), 15 * 11 * 16);
  EXPECT_EQ(shape.input_count(), 2 * 12 * 13 * 17);
  EXPECT_EQ(shape.filter_count(), 15 * 4 * 3 * 2);
  EXPECT_EQ(shape.output_count(), 2 * 15 * 11 * 16);
  EXPECT_EQ(shape.flops(), 2.0 * 2 * 15 * 11 * 16 * 4 * 3 * 2);
  EXPECT_EQ(to_string(shape), "n2 c12 13x17 k15 3x2 stride 1x1 pad 0x0 dil 1x1 groups 3");
}

TEST(ConvShape, LimitsHoldForAllGroupsTogether) {
  ConvArguments a;
  a.c = 32768, a.k = 16384, a.groups = 16384, a.h = 256, a.w = 256;  // 2^31 in an image
  EXPECT_TRUE(starts_with(rejection(a), "one input image, c*h*w")) << rejection(a);
  a.c = 16384, a.k = 32768;
  EXPECT_TRUE(starts_with(rejection(a), "one output image, k*p*q")) << rejection(a);
  a.c = a.k = 65536, a.h = a.w = 1, a.groups = 2;  // 65536 * 32768 in the filters
  EXPECT_TRUE(starts_with(rejection(a), "the filters, k*(c/groups)*r*s")) << rejection(a);
  a.groups = 65536;
  EXPECT_EQ(make_conv_shape(a).filter_count(), 65536);
}

// (2 - 3) / 2 is 0 in C++, which would make an output of size 1 out of a filter that does not fit.
TEST(ConvShape, NegativeNumeratorDoesNotTruncateToOneOutput) {
  for (int64_t stride = 1; stride <= 4; ++stride) {
    ConvArguments a = small_problem();
    a.h = 2, a.stride_h = stride;
    EXPECT_EQ(rejection(a), "r = 3: the dilated filter spans 3, more than (h + 2*pad) = 2");
    a = small_problem();
    a.w = 1, a.stride_w = stride;
    EXPECT_EQ(rejection(a), "s = 2: the dilated filter spans 2, more than (w + 2*pad) = 1");
  }
}

TEST(ConvShape, DilatedFilterMustFitThePaddedInput) {
  ConvArguments a = small_problem();
  a.h = 3, a.pad_h = 1, a.dil_h = 2;  // spans 5 of 5
  EXPECT_EQ(make_conv_shape(a).P(), 1);
  a.dil_h = 3;  // spans 7 of 5
  EXPECT_EQ(rejection(a), "r = 3: the dilated filter spans 7, more than (h + 2*pad) = 5");
  a.dil_h = INT_LIMIT;  // the span needs 64 bits
  EXPECT_EQ(rejection(a), "r = 3: the dilated filter spans 4294967295, more than (h + 2*pad) = 5");
}

TEST(ConvShape, AxesAreNotSwapped) {
  ConvArguments a = small_problem();
  a.h = 31, a.w = 37, a.r = 3, a.s = 5;
  a.stride_h = 3, a.stride_w = 2, a.pad_h = 7, a.pad_w = 5, a.dil_h = 2, a.dil_w = 3;
  const ConvShape shape = make_conv_shape(a);
  EXPECT_EQ(shape.P(), 14);  // (31 + 14 - 5) / 3 + 1
  EXPECT_EQ(shape.Q(), 18);  // (37 + 10 - 13) / 2 + 1
  EXPECT_EQ(to_string(shape), "n2 c3 31x37 k5 3x5 stride 3x2 pad 7x5 dil 2x3");
}

TEST(ConvShape, PaddedExtentsStayBelow2To30) {
  const int64_t limit = (INT64_C(1) << 30) - 1;
  ConvArguments a;
  a.w = limit;
  EXPECT_EQ(make_conv_shape(a).Q(), limit);
  a.w = limit + 1;
  EXPECT_TRUE(starts_with(rejection(a), "w = 1073741824:")) << rejection(a);
  a.w = limit - 1, a.pad_w = 1;
  EXPECT_TRUE(starts_with(rejection(a), "w = 1073741822:")) << rejection(a);
}

TEST(ConvShape, RejectsImagesThatAreTooLargeWithTheirPadding) {
  ConvArguments a;
  a.w = 1024, a.r = 2, a.stride_h = a.pad_h = a.dil_h = 1 << 21;  // offsets from -2^31 on
  EXPECT_TRUE(starts_with(rejection(a), "one padded input image")) << rejection(a);
}

TEST(ConvShape, TensorsMayPassTwoToThe31) {
  ConvArguments a;
  a.n = 1 << 20, a.c = 64, a.h = 32, a.w = 32, a.k = 128;
  const ConvShape shape = make_conv_shape(a);
  EXPECT_EQ(shape.input_count(), INT64_C(1) << 36);
  EXPECT_EQ(shape.output_count(), INT64_C(1) << 37);
}

TEST(ConvShape, TensorBytesMustFit64Bits) {
  ConvArguments a;
  a.n = INT_LIMIT, a.h = 2, a.w = INT64_C(1) << 29;  // 2^63 - 2^32 bytes: just fits
  EXPECT_EQ(make_conv_shape(a).input_count(), (INT64_C(1) << 61) - (INT64_C(1) << 30));
  a.w += 1;
  EXPECT_TRUE(starts_with(rejection(a), "the input, n*c*h*w")) << rejection(a);
  a.h = 1, a.w = 1, a.k = (INT64_C(1) << 30) + 1;
  EXPECT_TRUE(starts_with(rejection(a), "the output, n*k*p*q")) << rejection(a);
}

TEST(ConvShape, ShapesFilledInByHandAreCheckedToo) {
  ConvShape shape;
  EXPECT_NO_THROW(validate(shape));
  shape.stride_w = 0;
  EXPECT_EQ(message_of<InvalidArgument>([&] { validate(shape); }),
            "stride_w = 0: must be at least 1");
  shape.stride_w = 1;
  for (const int groups : {0, -1}) {
    shape.groups = groups;
    EXPECT_EQ(message_of<InvalidArgument>([&] { validate(shape); }),
              "groups = " + std::to_string(groups) + ": must be at least 1");
  }
  shape.groups = 65536, shape.C = 65536;  // 2^32 channels
  EXPECT_EQ(message_of<InvalidArgument>([&] { validate(shape); }),
            "c = 4294967296: must be at most 2147483647");
}

}  // namespace
}  // namespace convladder
