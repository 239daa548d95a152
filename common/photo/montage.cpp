#include "common/photo/montage.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace convladder {
namespace {

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

// The distance from `level` that 99 of 100 values keep within; never zero.
float spread(const float* values, std::size_t count, float level) {
  std::vector<float> distance(count);
  for (std::size_t i = 0; i < count; ++i) distance[i] = std::fabs(values[i] - level);
  const auto percentile = distance.begin() + static_cast<std::ptrdiff_t>((count - 1) * 99 / 100);
  std::nth_element(distance.begin(), percentile, distance.end());
  return *percentile > 0 ? *percentile : 1.0f;
}

}  // namespace

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
  const std::size_t plane = static_cast<std::size_t>(height) * width;
  std::vector<Image> tiles;
  for (int k = 0; k < count; ++k) {
    const float* filter = filters + 3 * plane * k;
    float largest = 0;
    for (std::size_t i = 0; i < 3 * plane; ++i) largest = std::max(largest, std::fabs(filter[i]));
    Image tile{width, height, {}};
    for (std::size_t pixel = 0; pixel < plane; ++pixel) {
      for (int c = 0; c < 3; ++c) {
        tile.pixels.push_back(grey_level(largest > 0 ? filter[c * plane + pixel] / largest : 0.0f));
      }
    }
    tiles.push_back(std::move(tile));
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
    const float scale = 1 / spread(map, plane, middle);
    Image tile{width, height, {}};
    for (std::size_t pixel = 0; pixel < plane; ++pixel) {
      tile.pixels.insert(tile.pixels.end(), 3, grey_level((map[pixel] - middle) * scale));
    }
    tiles.push_back(std::move(tile));
  }
  return tiles;
}

}  // namespace convladder
