// What the program's commands are built of: the photograph, the filters, pictures, device memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "common/check/device_buffer.h"
#include "common/check/filter_bank.h"
#include "common/check/photo.h"
#include "common/core/launch.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

const float* filter_of(const TestData& bank, int k) {
  return &bank.filters[static_cast<std::size_t>(k) * BANK_CHANNELS * BANK_SIZE * BANK_SIZE];
}

TEST(FilterBank, ZeroMeanUnitNormNonZeroBiasAndHalfIsGrey) {
  const TestData bank = make_filter_bank();
  const int plane = BANK_SIZE * BANK_SIZE, taps = BANK_CHANNELS * plane;
  ASSERT_EQ(bank.filters.size(), static_cast<std::size_t>(BANK_FILTERS * taps));
  ASSERT_EQ(bank.bias.size(), static_cast<std::size_t>(BANK_FILTERS));
  for (int k = 0; k < BANK_FILTERS; ++k) {
    const float* filter = filter_of(bank, k);
    EXPECT_NEAR(std::accumulate(filter, filter + taps, 0.0), 0, 1e-5) << k;
    EXPECT_NEAR(std::inner_product(filter, filter + taps, filter, 0.0), 1, 1e-5) << k;
    EXPECT_GE(std::fabs(bank.bias[k]), 0.05f) << k;
    const bool grey = std::equal(filter, filter + 2 * plane, filter + plane);
    EXPECT_EQ(grey, k < BANK_FILTERS / 2) << k;
  }
}

// The largest difference between filter a and filter b, or b with its r and s swapped.
double difference(const TestData& bank, int a, int b, bool swapped) {
  double largest = 0;
  for (int i = 0; i < BANK_CHANNELS * BANK_SIZE * BANK_SIZE; ++i) {
    const int c = i / (BANK_SIZE * BANK_SIZE), r = i / BANK_SIZE % BANK_SIZE, s = i % BANK_SIZE;
    const int j = swapped ? (c * BANK_SIZE + s) * BANK_SIZE + r : i;
    largest = std::fmax(largest, std::fabs(filter_of(bank, a)[i] - filter_of(bank, b)[j]));
  }
  return largest;
}

TEST(FilterBank, NoFilterIsAnotherOneOrItsTranspose) {
  const TestData bank = make_filter_bank();
  for (int a = 0; a < BANK_FILTERS; ++a) {
    for (int b = 0; b < BANK_FILTERS; ++b) {
      if (a != b) {
        EXPECT_GT(difference(bank, a, b, false), 1e-3) << a << " and " << b;
      }
      EXPECT_GT(difference(bank, a, b, true), 1e-4) << a << " and " << b << " transposed";
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
  const Image photo = read_image(CONVLADDER_PHOTO);
  const int batch = 512;
  const std::vector<float> images = make_photo_batch(photo, batch);
  std::set<std::vector<float>> different;  // by their first rows
  for (int n = 0; n < batch; ++n) {
    const auto image =
        images.begin() + static_cast<std::ptrdiff_t>(n) * 3 * photo.height * photo.width;
    different.emplace(image, image + photo.width);
  }
  EXPECT_EQ(different.size(), static_cast<std::size_t>(batch));
}

TEST(Montage, TilesStandRowByRowWithGaps) {
  const Image black{1, 1, {0, 0, 0}}, red{1, 1, {255, 0, 0}};
  const Image picture = montage({black, red, red}, 2, 2, 1);
  ASSERT_EQ(picture.width, 7);
  ASSERT_EQ(picture.height, 7);
  const auto pixel = [&](int x, int y) {
    const uint8_t* rgb = &picture.pixels[3 * (y * 7 + x)];
    return rgb[0] * 65536 + rgb[1] * 256 + rgb[2];
  };
  EXPECT_EQ(pixel(0, 0), 0xFFFFFF);
  EXPECT_EQ(pixel(2, 2), 0x000000);
  EXPECT_EQ(pixel(3, 1), 0xFFFFFF);
  EXPECT_EQ(pixel(4, 1), 0xFF0000);
  EXPECT_EQ(pixel(1, 4), 0xFF0000);
  EXPECT_EQ(pixel(4, 4), 0xFFFFFF);  // the place of the fourth tile
}

TEST(Montage, FeatureMapsAreGreyAtTheirLevel) {
  const float maps[] = {2, 1, 3, 2};
  const float level = 2;
  const Image tile = draw_feature_maps(maps, &level, 1, 2, 2).front();
  EXPECT_EQ(tile.pixels,
            (std::vector<uint8_t>{128, 128, 128, 0, 0, 0, 255, 255, 255, 128, 128, 128}));
  const float flat[] = {2, 2, 2, 2};
  EXPECT_EQ(draw_feature_maps(flat, &level, 1, 2, 2).front().pixels[0], 128);
}

using DeviceBufferTest = DeviceTest;

TEST_F(DeviceBufferTest, KeepsWhatItIsGiven) {
  for (const Guards guards : {Guards::kZones, Guards::kNone}) {
    DeviceBuffer buffer(3, 1, guards);
    float values[3] = {};
    buffer.download(values);
    if (guards == Guards::kZones) {
      for (float value : values) EXPECT_TRUE(std::isnan(value)) << "at first";
    }
    const float given[3] = {1, 2, 3};
    buffer.upload(given);
    buffer.download(values);
    EXPECT_TRUE(std::equal(given, given + 3, values));
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
