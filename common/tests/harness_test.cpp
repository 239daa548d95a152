// What the program's commands are built of: the photograph, the filters, device memory.
#include <numeric>
#include <set>

#include "common/check/filter_bank.h"
#include "common/check/photo.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

TEST(FilterBank, NoFilterIsAnotherOneOrItsTranspose) {
  const TestData bank = make_filter_bank();
  const int plane = BANK_SIZE * BANK_SIZE, taps = BANK_CHANNELS * plane;
  ASSERT_EQ(bank.filters.size(), static_cast<std::size_t>(BANK_FILTERS * taps));
  ASSERT_EQ(bank.bias.size(), static_cast<std::size_t>(BANK_FILTERS));
  for (int a = 0; a < BANK_FILTERS; ++a) {
    SCOPED_TRACE(a);
    const float* const filter = &bank.filters[a * taps];
    EXPECT_NEAR(std::accumulate(filter, filter + taps, 0.0), 0, 1e-5);
    EXPECT_NEAR(std::inner_product(filter, filter + taps, filter, 0.0), 1, 1e-5);
    EXPECT_GE(std::fabs(bank.bias[a]), 0.05f);
    const bool grey = std::equal(filter, filter + 2 * plane, filter + plane);
    EXPECT_EQ(grey, a < BANK_FILTERS / 2);
    for (int b = 0; b < BANK_FILTERS; ++b) {
      const float* const other = &bank.filters[b * taps];
      double apart = 0, transposed = 0;  // the largest differences
      for (int i = 0; i < taps; ++i) {
        const int c = i / plane, r = i / BANK_SIZE % BANK_SIZE, s = i % BANK_SIZE;
        apart = std::fmax(apart, std::fabs(filter[i] - other[i]));
        transposed =
            std::fmax(transposed, std::fabs(filter[i] - other[c * plane + s * BANK_SIZE + r]));
      }
      EXPECT_TRUE(a == b || apart > 1e-3) << b;
      EXPECT_GT(transposed, 1e-4) << b;
    }
  }
}

TEST(Photo, FirstImageIsThePhotoNormalised) {
  const Image photo{2, 1, {255, 0, 128, 0, 51, 255}};
  const std::vector<float> batch = make_photo_batch(photo, 1);
  ASSERT_EQ(batch.size(), 6u);
  EXPECT_FLOAT_EQ(batch[0], (1.0f - 0.485f) / 0.229f);  // red, first pixel
  EXPECT_FLOAT_EQ(batch[1], (0.0f - 0.485f) / 0.229f);
  EXPECT_FLOAT_EQ(batch[3], (0.2f - 0.456f) / 0.224f);  // green, second pixel
  EXPECT_FLOAT_EQ(batch[5], (1.0f - 0.406f) / 0.225f);
}

TEST(Photo, EveryImageOfABatchDiffers) {
  const Image photo = read_image(CONVLADDER_SOURCE_DIR "/common/data/raccoon_224.ppm");
  const std::vector<float> images = make_photo_batch(photo, 512);
  std::set<std::vector<float>> different;  // by their first rows
  for (int n = 0; n < 512; ++n) {
    const float* const image = &images[int64_t{n} * 3 * photo.height * photo.width];
    different.emplace(image, image + photo.width);
  }
  EXPECT_EQ(different.size(), 512u);
}

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
