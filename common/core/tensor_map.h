// Tensor maps: what Hopper's copy engine is told of an array before a kernel begins.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "common/core/conv_shape.h"

namespace convladder {

// Whether the copy engine's im2col mode can fetch windows of that stride, padding, dilation and filter: its
// numbers are short, and are padding's beginning and end, the last tap's distance, and the stride.
constexpr bool suits_tensor_map(int stride, int pad, int dil, int taps) {
  const int64_t last = int64_t{dil} * (taps - 1);
  return stride <= 8 && pad < 128 && last <= 255 && last - pad <= 128;
}

// The map of `images` images, channels last, of `channels` channels from `input` on; from one pixel to the
// next are `pixel` floats, from row to row `row`, multiples of 4. A copy fetches `pixels` windows of the batch in a row, of each
// one tap's `box` channels, and zeros for what lies outside; rounded to TF32, if asked. Throws CudaError.
CUtensorMap window_map(const float* input, const ConvShape& shape, int64_t images, int64_t channels,
                       int64_t pixel, int64_t row, int pixels, int box, bool rounded = false);

}  // namespace convladder
