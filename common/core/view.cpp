#include "common/core/view.h"

#include <algorithm>

namespace convladder {

View::View(const ConvShape& given, Layout layout, const float* input)
    : shape(given),
      layout(layout),
      group_C(given.C),
      group_K(given.K),
      merged(1),
      columns(given.W),
      channels(given.C),
      every_h(1),
      every_w(1),
      shift_h(0),
      shift_w(0),
      per_tap(given.C) {
  bool fits_h = suits_tensor_map(given.stride_h, given.pad_h, given.dil_h, given.R);
  const bool fits_w = suits_tensor_map(given.stride_w, given.pad_w, given.dil_w, given.S);
  // A copy begins at a multiple of 4 channels.
  const auto aligned = [&](int m) { return m * given.C % 4 == 0 || m == given.groups; };
  const int room = fits_h && fits_w ? BK / std::max(given.C, given.K) : 1;
  for (int m = 2; m <= std::min(room, given.groups); ++m) {
    if (given.groups % m == 0 && aligned(m)) merged = m;
  }
  if (given.S > 1 && merged * given.C < 16) merged = 1;
  const bool few = merged * given.C < 16 && given.S > 1;
  bool overlap = few && given.dil_w == 1 && fits_h;
  if (overlap) {
    while (given.stride_w * per_tap % 4 != 0) ++per_tap;
    columns = round_up((given.Q() - 1) * given.stride_w + given.S, 4);
    // A window's taps are all channels if that is less: tiles, and what is written, which costs as six of them.
    const int row = (given.S - 1) * per_tap + given.C, all = given.CRS();
    const double pixels = static_cast<double>(given.H) * columns / given.PQ();
    const double by_rows = 6 * pixels * per_tap + given.R * round_up(row, BK);
    overlap = by_rows <= 6 * round_up(all, 4) + round_up(all, BK), fits_h = overlap;
  }
  shape.C *= merged, shape.K *= merged, shape.groups /= merged;
  if (!fits_h) {
    shape.C *= shape.R, shape.H = given.P(), every_h = given.stride_h, shift_h = given.pad_h;
    shape.R = shape.stride_h = shape.dil_h = 1, shape.pad_h = 0;
  }
  if (few || !fits_w) {
    shape.W = given.Q(), shift_w = given.pad_w;
    shape.S = shape.stride_w = shape.dil_w = 1, shape.pad_w = 0;
    if (overlap) {
      shape.C = (given.S - 1) * per_tap + given.C;
    } else {
      shape.C *= given.S, columns = shape.W, every_w = given.stride_w, per_tap = given.C;
    }
  }
  plain = fits_h && fits_w && !few;
  as_it_lies = layout == NHWC && plain && aligned(merged) && shape.total_C() % 4 == 0 &&
               reinterpret_cast<std::uintptr_t>(input) % 16 == 0;
  // Written anew, groups that don't fill their tiles lie apart.
  together = plain && aligned(merged) && (as_it_lies || merged > 1 || shape.C % BK == 0);
  if (!overlap) channels = together ? shape.total_C() : shape.C;
  if (together) per_tap = channels;
  pitch = overlap ? per_tap : round_up(channels, 4);
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
