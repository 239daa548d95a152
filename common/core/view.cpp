#include "common/core/view.h"

#include <algorithm>

namespace convladder {

View::View(const ConvShape& given, Layout layout, const float* input)
    : shape(given),
      layout(layout),
      columns(given.W),
      channels(given.C),
      every_h(1),
      every_w(1),
      shift_h(0),
      shift_w(0),
      per_tap(given.C) {
  const bool fits_h = suits_tensor_map(given.stride_h, given.pad_h, given.dil_h, given.R);
  const bool fits_w = suits_tensor_map(given.stride_w, given.pad_w, given.dil_w, given.S);
  const bool few = given.C < 16 && given.S > 1, overlap = few && given.dil_w == 1 && fits_h;
  if (!fits_h) {
    shape.C *= shape.R, shape.H = given.P(), every_h = given.stride_h, shift_h = given.pad_h;
    shape.R = shape.stride_h = shape.dil_h = 1, shape.pad_h = 0;
  }
  if (few || !fits_w) {
    shape.W = given.Q(), shift_w = given.pad_w;
    shape.S = shape.stride_w = shape.dil_w = 1, shape.pad_w = 0;
    if (overlap) {
      while (given.stride_w * per_tap % 4 != 0) ++per_tap;
      columns = round_up((shape.W - 1) * given.stride_w + given.S, 4);
      shape.C = (given.S - 1) * per_tap + given.C;
    } else {
      shape.C *= given.S, columns = shape.W, every_w = given.stride_w;
    }
  }
  // A tile's last channels must be this group's, or none.
  plain = fits_h && fits_w && !few;
  as_it_lies = layout == NHWC && plain && shape.total_C() % 4 == 0 &&
               (shape.groups == 1 || shape.C % BK == 0) &&
               reinterpret_cast<std::uintptr_t>(input) % 16 == 0;
  if (!overlap) channels = shape.C;
  pitch = as_it_lies ? shape.total_C() : overlap ? per_tap : round_up(shape.C, 4);
  step = overlap ? given.stride_w * pitch : pitch;
  chunks = (shape.C + BK - 1) / BK, tiles = chunks * shape.R * shape.S;
}

Images images_for(const ConvShape& shape, std::size_t limit, const TileSizes& sizes) {
  ConvShape some = shape;
  for (;; some.N = (some.N + 1) / 2) {
    const View view(some);
    const std::size_t input = (view.input_bytes() + 255) / 256 * 256;
    const Plan plan = best_plan(view.padded(), limit - std::min(limit, input), sizes);
    if (input + plan.bytes <= limit || some.N == 1) return {some.N, input, plan};
  }
}

}  // namespace convladder
