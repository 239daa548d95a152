#include "common/check/photo.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace convladder {
namespace {

// Mean and deviation of ImageNet's training set, per channel, as is customary for networks trained on it.
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

// -1 black, 0 mid-grey, +1 white; what lies beyond is cut.
uint8_t grey_level(float value) {
  return static_cast<uint8_t>(std::lround(127.5f + 127.5f * std::clamp(value, -1.0f, 1.0f)));
}

void paste(Image& canvas, const Image& tile, int left, int top, int scale) {
  for (int y = 0; y < tile.height * scale; ++y) {
    for (int x = 0; x < tile.width * scale; ++x) {
      const std::size_t from = 3 * (static_cast<std::size_t>(y / scale) * tile.width + x / scale);
      const std::size_t to = 3 * (static_cast<std::size_t>(top + y) * canvas.width + left + x);
      std::copy_n(&tile.pixels[from], 3, &canvas.pixels[to]);
    }
  }
}

// Colours [3][height][width], or greys [1][height][width]: mid-grey where they are at `level`, black
// and white from `spread` away.
Image draw(const float* planes, int channels, int height, int width, float level, float spread) {
  const std::size_t plane = static_cast<std::size_t>(height) * width;
  Image tile{width, height, {}};
  for (std::size_t pixel = 0; pixel < plane; ++pixel) {
    for (int c = 0; c < CHANNELS; ++c) {
      const float value = planes[c % channels * plane + pixel];
      tile.pixels.push_back(grey_level((value - level) / spread));
    }
  }
  return tile;
}

// The distance from `level` that 99 of 100 values keep within; never zero.
float spread(const float* values, std::size_t count, float level) {
  std::vector<float> distance(count);
  for (std::size_t i = 0; i < count; ++i) distance[i] = std::fabs(values[i] - level);
  const auto percentile = distance.begin() + static_cast<std::ptrdiff_t>((count - 1) * 99 / 100);
  std::nth_element(distance.begin(), percentile, distance.end());
  return *percentile > 0 ? *percentile : 1.0f;
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

Image montage(const std::vector<Image>& tiles, int columns, int scale, int gap) {
  const int rows = (static_cast<int>(tiles.size()) + columns - 1) / columns;
  const int step_x = tiles.front().width * scale + gap;
  const int step_y = tiles.front().height * scale + gap;
  Image canvas{gap + columns * step_x, gap + rows * step_y, {}};
  canvas.pixels.assign(static_cast<std::size_t>(canvas.width) * canvas.height * 3, 255);
  for (int i = 0; i < static_cast<int>(tiles.size()); ++i) {
    paste(canvas, tiles[i], gap + i % columns * step_x, gap + i / columns * step_y, scale);
  }
  return canvas;
}

std::vector<Image> draw_filters(const float* filters, int count, int height, int width) {
  const std::size_t size = static_cast<std::size_t>(CHANNELS) * height * width;
  std::vector<Image> tiles;
  for (int k = 0; k < count; ++k) {
    const float* filter = filters + size * k;
    float largest = 0;
    for (std::size_t i = 0; i < size; ++i) largest = std::max(largest, std::fabs(filter[i]));
    tiles.push_back(draw(filter, CHANNELS, height, width, 0, largest > 0 ? largest : 1.0f));
  }
  return tiles;
}

std::vector<Image> draw_feature_maps(const float* maps, const float* level, int count, int height,
                                     int width) {
  const std::size_t plane = static_cast<std::size_t>(height) * width;
  std::vector<Image> tiles;
  for (int k = 0; k < count; ++k) {
    const float* map = maps + plane * k;
    const float middle = level ? level[k] : 0.0f;
    tiles.push_back(draw(map, 1, height, width, middle, spread(map, plane, middle)));
  }
  return tiles;
}

}  // namespace convladder
