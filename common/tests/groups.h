// A group of a convolution, cut out of it.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "common/check/test_data.h"

namespace convladder {

// Of `planes` [images, groups, size] those of group g: [images, size].
template <typename T>
std::vector<T> planes_of_group(const std::vector<T>& planes, int groups, int images, int64_t size,
                               int g) {
  std::vector<T> part;
  for (int64_t n = 0; n < images; ++n) {
    const auto begin = planes.begin() + (n * groups + g) * size;
    part.insert(part.end(), begin, begin + size);
  }
  return part;
}

// Group g as a convolution with a single group, and its data.
inline std::pair<ConvShape, TestData> group_alone(const ConvShape& shape, const TestData& data,
                                                  int g) {
  ConvShape part = shape;
  part.groups = 1;
  const int groups = shape.groups;
  return {part,
          {planes_of_group(data.input, groups, shape.N, part.input_count() / shape.N, g),
           planes_of_group(data.filters, groups, 1, part.filter_count(), g),
           planes_of_group(data.bias, groups, 1, part.K, g)}};
}

}  // namespace convladder
