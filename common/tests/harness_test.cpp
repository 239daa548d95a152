// Device memory as the checks use it: it begins as NaN, and shows stray writes beside it.
#include "common/tests/support.h"

namespace convladder {
namespace {

using DeviceBufferTest = DeviceTest;

TEST_F(DeviceBufferTest, KeepsWhatItIsGiven) {
  for (const Guards guards : {Guards::kZones, Guards::kNone}) {
    DeviceBuffer buffer(3, 1, guards);
    for (const float value : values_of(buffer)) {
      EXPECT_TRUE(std::isnan(value) || guards == Guards::kNone) << "at first";
    }
    const std::vector<float> given = {1, 2, 3};
    buffer.upload(given.data());
    EXPECT_EQ(values_of(buffer), given);
    EXPECT_EQ(buffer.guard_damage(), "");
    EXPECT_EQ(DeviceBuffer(0, 0, guards).count(), 0);
  }
}

TEST_F(DeviceBufferTest, NoticesStrayWritesOnBothSides) {
  for (int offset = 0; offset < 4; ++offset) {
    DeviceBuffer over(5, offset), under(5, offset), far(5, offset);
    cudaMemset(over.data() + 5, 0, sizeof(float));
    EXPECT_EQ(over.guard_damage(), "written 1 float past the end");
    cudaMemset(under.data() - 1, 0, sizeof(float));
    EXPECT_EQ(under.guard_damage(), "written 1 float before the start");
    cudaMemset(far.data() + 5 + 1000, 0xFF, sizeof(float));  // NaN: the pattern is none
    EXPECT_EQ(far.guard_damage(), "written 1001 floats past the end");
  }
}

TEST_F(DeviceBufferTest, TooMuchIsAnErrorWithTheBytes) {
  const int64_t count = INT64_C(1) << 50;
  const std::string message = message_of<CudaError>([&] { DeviceBuffer buffer(count); });
  expect_contains(message, std::to_string((count + 8192) * 4) + " bytes needed");
}

}  // namespace
}  // namespace convladder
