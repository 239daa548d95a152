// A photograph as a network's input; pictures of filters and feature maps.
#pragma once

#include <vector>

#include "common/check/image.h"

namespace convladder {

// [batch][3][height][width]: the photo's channels scaled to [0, 1] and normalised by ImageNet's
// mean and standard deviation. Image 0 is the photo itself; every other one is the photo shifted
// (what leaves at one side comes in at the other), each odd one mirrored too.
std::vector<float> make_photo_batch(const Image& photo, int batch);

// The tiles (all of one size), row by row, each enlarged `scale` times, with `gap` pixels of white
// around every one.
Image montage(const std::vector<Image>& tiles, int columns, int scale, int gap);

// `count` filters [count][3][height][width], each stretched to its largest weight: mid-grey is 0.
std::vector<Image> draw_filters(const float* filters, int count, int height, int width);

// `count` feature maps [count][height][width]. Mid-grey is level[i] (what map i holds where its
// filter sees nothing: its bias), brighter is more; null levels stand for zeros. Each map is
// stretched so that one value in a hundred is cut.
std::vector<Image> draw_feature_maps(const float* maps, const float* level, int count, int height,
                                     int width);

}  // namespace convladder
