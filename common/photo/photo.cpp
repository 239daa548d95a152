#include "common/photo/photo.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace convladder {
namespace {

// Of ImageNet's training set, per channel, as is customary for networks trained on it.
constexpr float MEAN[] = {0.485f, 0.456f, 0.406f};
constexpr float DEVIATION[] = {0.229f, 0.224f, 0.225f};
constexpr int CHANNELS = 3;

void append_image(std::vector<float>& batch, const Image& photo, int shift_h, int shift_w,
                  bool mirror) {
  for (int c = 0; c < CHANNELS; ++c) {
    for (int h = 0; h < photo.height; ++h) {
      const int row = (h + shift_h) % photo.height;
      for (int w = 0; w < photo.width; ++w) {
        const int shifted = (w + shift_w) % photo.width;
        const int column = mirror ? photo.width - 1 - shifted : shifted;
        const std::size_t pixel = static_cast<std::size_t>(row) * photo.width + column;
        const float value = static_cast<float>(photo.pixels[pixel * CHANNELS + c]) / 255;
        batch.push_back((value - MEAN[c]) / DEVIATION[c]);
      }
    }
  }
}

}  // namespace

std::vector<float> make_photo_batch(const Image& photo, int batch) {
  std::vector<float> images;
  images.reserve(static_cast<std::size_t>(batch) * CHANNELS * photo.height * photo.width);
  for (int n = 0; n < batch; ++n) {
    const int step = n / 2;  // 17 and 9 pixels at a time: coprime to 224, so no image comes twice
    const int lap = step / photo.width;
    append_image(images, photo, (step % photo.height * 9 + lap) % photo.height,
                 step % photo.width * 17 % photo.width, n % 2 == 1);
  }
  return images;
}

Image denormalise(const float* image, int height, int width) {
  Image picture{width, height, {}};
  const std::size_t plane = static_cast<std::size_t>(height) * width;
  picture.pixels.resize(plane * CHANNELS);
  for (std::size_t pixel = 0; pixel < plane; ++pixel) {
    for (int c = 0; c < CHANNELS; ++c) {
      const float value = image[c * plane + pixel] * DEVIATION[c] + MEAN[c];
      const float level = std::clamp(255 * value, 0.0f, 255.0f);
      picture.pixels[pixel * CHANNELS + c] = static_cast<uint8_t>(std::lround(level));
    }
  }
  return picture;
}

}  // namespace convladder
