// The extents of a problem: what is accepted, what is rejected, and with which words.
#include "common/tests/support.h"

namespace convladder {
namespace {

constexpr int64_t INT_LIMIT = std::numeric_limits<int>::max();
constexpr int64_t LARGEST = std::numeric_limits<int64_t>::max();

const std::string SMALL = "n=2 c=3 h=13 w=17 k=5 r=3 s=2 ";

TEST(ConvShape, IllegalArgumentsAreNamed) {
  struct Rejected {
    std::string arguments, message;  // how it begins
  };
  std::vector<Rejected> all = {
      {"c=6 k=9 groups=2", "groups = 2: must divide k = 9"},
      {"c=6 k=8 groups=4", "groups = 4: must divide c = 6"},
      {"c=3 k=3 groups=6", "groups = 6: must divide c = 3"},
      {SMALL + "h=3 pad_h=1 dil_h=3",
       "r = 3: the dilated filter spans 7, more than (h + 2*pad) = 5"},
      {SMALL + "h=3 pad_h=1 dil_h=2147483647",  // the span needs 64 bits
       "r = 3: the dilated filter spans 4294967295, more than (h + 2*pad) = 5"},
      {"w=1073741824", "w = 1073741824: (w + 2*pad) ="},
      {"w=1073741822 pad_w=1", "w = 1073741822:"},
      // Offsets from -2^31 on.
      {"w=1024 r=2 stride_h=2097152 pad_h=2097152 dil_h=2097152", "one padded input image"},
      // Limits hold for all groups together.
      {"c=32768 k=16384 groups=16384 h=256 w=256", "one input image, c*h*w"},
      {"c=16384 k=32768 groups=16384 h=256 w=256", "one output image, k*p*q"},
      {"c=65536 k=65536 groups=2", "the filters, k*(c/groups)*r*s"},
      // Tensors of more bytes than an int64_t counts.
      {"n=2147483647 h=2 w=536870913", "the input, n*c*h*w"},
      {"n=2147483647 k=1073741825", "the output, n*k*p*q"},
  };
  // (2 - 3) / 2 is 0 in C++, which would make an output of size 1 of a filter that does not fit.
  for (const char* stride : {"1", "2", "3", "4"}) {
    all.push_back({SMALL + "h=2 stride_h=" + stride,
                   "r = 3: the dilated filter spans 3, more than (h + 2*pad) = 2"});
    all.push_back({SMALL + "w=1 stride_w=" + stride,
                   "s = 2: the dilated filter spans 2, more than (w + 2*pad) = 1"});
  }
  for (const Extent& extent : EXTENTS) {
    for (const int64_t value :
         {extent.least - 1, int64_t{-7}, -LARGEST - 1, INT_LIMIT + 1, LARGEST}) {
      const std::string number = std::to_string(value), name = extent.name;
      all.push_back({SMALL + name + "=" + number, name + " = " + number + ": must be at"});
    }
  }
  for (const Rejected& rejected : all) {
    const std::string message = message_of<InvalidArgument>([&] { shape_of(rejected.arguments); });
    EXPECT_EQ(message.rfind(rejected.message, 0), 0u) << rejected.arguments << ": " << message;
  }
}

TEST(ConvShape, AxesAreNotSwapped) {
  const ConvShape shape =
      shape_of(SMALL + "h=31 w=37 s=5 stride_h=3 stride_w=2 pad_h=7 pad_w=5 dil_h=2 dil_w=3");
  EXPECT_EQ(shape.P(), 14);  // (31 + 14 - 5) / 3 + 1
  EXPECT_EQ(shape.Q(), 18);  // (37 + 10 - 13) / 2 + 1
  EXPECT_EQ(to_string(shape), "n2 c3 31x37 k5 3x5 stride 3x2 pad 7x5 dil 2x3");
}

TEST(ConvShape, TakesWhatIsJustWithinTheLimits) {
  EXPECT_EQ(shape_of(SMALL + "h=3 pad_h=1 dil_h=2").P(), 1);  // spans 5 of 5
  EXPECT_EQ(shape_of("w=1073741823").Q(), (1 << 30) - 1);
  EXPECT_EQ(shape_of("c=65536 k=65536 groups=65536").filter_count(), 65536);
  const ConvShape large = shape_of("n=1048576 c=64 h=32 w=32 k=128");
  EXPECT_EQ(large.input_count(), INT64_C(1) << 36);
  EXPECT_EQ(large.output_count(), INT64_C(1) << 37);
  EXPECT_EQ(shape_of("n=2147483647 h=2 w=536870912").input_count(),  // 2^63 - 2^32 bytes
            (INT64_C(1) << 61) - (INT64_C(1) << 30));
}

TEST(ConvShape, ShapesFilledInByHandAreCheckedToo) {
  ConvShape shape;
  const auto rejection = [&] { return message_of<InvalidArgument>([&] { validate(shape); }); };
  shape.groups = -1;
  EXPECT_EQ(rejection(), "groups = -1: must be at least 1");
  shape.groups = 65536, shape.C = 65536;  // 2^32 channels
  EXPECT_EQ(rejection(), "c = 4294967296: must be at most 2147483647");
}

}  // namespace
}  // namespace convladder
