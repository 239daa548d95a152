// From a photograph to a network's input, and back.
#pragma once

#include <vector>

#include "common/io/image.h"

namespace convladder {

// [batch][3][height][width]: the photo's channels scaled to [0, 1] and normalised by ImageNet's
// mean and standard deviation. Image 0 is the photo itself; every other one is the photo shifted
// (what leaves at one side comes in at the other), each odd one mirrored too.
std::vector<float> make_photo_batch(const Image& photo, int batch);

// The picture of one normalised image [3][height][width]; values beyond black and white are cut.
Image denormalise(const float* image, int height, int width);

}  // namespace convladder
