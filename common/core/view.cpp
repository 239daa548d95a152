#include "common/core/view.h"

#include <algorithm>

namespace convladder {

namespace {

// A stride that is never taken may be of any size: it becomes one that is just as long as the padded input.
// Where the one window is the whole image (a fully connected layer), its taps are channels.
ConvShape simplified(ConvShape shape) {
  const auto taken = [](int stride, int extent, int pad) {
    return static_cast<int>(std::min<int64_t>(stride, extent + int64_t{2} * pad));
  };
  shape.stride_h = taken(shape.stride_h, shape.H, shape.pad_h);
  shape.stride_w = taken(shape.stride_w, shape.W, shape.pad_w);
  if (shape.groups == 1 && shape.pad_h + shape.pad_w == 0 && shape.R == shape.H &&
      shape.S == shape.W) {
    shape.C = shape.CRS(), shape.H = shape.W = shape.R = shape.S = 1;
  }
  return shape;
}

}  // namespace

View::View(ConvShape given, Layout layout, const float* input)
    : given(given),
      shape(given),
      layout(given.H * given.W == 1 && given.PQ() == 1 && given.R * given.S == 1 ? NHWC : layout),
      group_C(given.C),
      group_K(given.K),
      merged(1),
      columns(given.W),
      channels(given.C),
      every_h(1),
      every_w(1),
      shift_h(0),
      shift_w(0),
      rows(1),
      filter_rows(given.R),
      per_tap(given.C) {
  layout = this->layout;  // an image of one pixel has but one
  bool fits_h = suits_tensor_map(given.stride_h, given.pad_h, given.dil_h, given.R);
  const bool fits_w = suits_tensor_map(given.stride_w, given.pad_w, given.dil_w, given.S);
  // A copy begins at a multiple of 4 channels.
  const auto aligned = [&](int m) { return m * given.C % 4 == 0 || m == given.groups; };
  const int room = fits_h && fits_w ? BK / std::max(given.C, given.K) : 1;
  for (int m = 2; m <= std::min(room, given.groups); ++m) {
    if (given.groups % m == 0 && aligned(m)) merged = m;
  }
  if (given.S > 1 && merged * given.C < 16) merged = 1;
  // Or so many that a row's taps need far fewer tiles together, and the input is written anyway.
  const bool fewer = layout == NCHW && fits_h && fits_w && given.dil_w == 1 && merged == 1 &&
                     round_up(given.S * given.C, BK) * 4 <= given.S * round_up(given.C, BK) * 3;
  const bool few = given.S > 1 && (merged * given.C < 16 || fewer);
  bool overlap = false;
  if (few && given.dil_w == 1) {
    // What costs least: tiles, and what is written, which costs as six of them. A window's taps are all channels,
    // or those of a row, or of as many rows as windows are apart.
    const int all = given.CRS(), wide = round_up((given.Q() - 1) * given.stride_w + given.S, 4);
    double least = 6 * round_up(all, 4) + round_up(all, BK);
    for (const int some : {1, given.dil_h == 1 ? given.stride_h : 1}) {
      const int taps = (given.R + some - 1) / some,
                high = some == 1 ? given.H : given.P() - 1 + taps;
      if (!(some == 1 ? fits_h : suits_tensor_map(1, 0, 1, taps))) continue;
      int padded = given.C;
      while (given.stride_w * some * padded % 4 != 0) ++padded;
      const int row = (given.S * some - 1) * padded + given.C;
      const double pixels = static_cast<double>(high) * wide / given.PQ();
      const double cost = 6 * pixels * some * padded + taps * round_up(row, BK);
      if (cost <= least)
        least = cost, overlap = true, rows = some, per_tap = padded, columns = wide;
    }
    fits_h = overlap;
  }
  if (rows > 1) {
    shape.R = (given.R + rows - 1) / rows, shape.H = given.P() - 1 + shape.R;
    every_h = rows, shift_h = given.pad_h, shape.stride_h = 1, shape.pad_h = 0;
  }
  shape.C *= merged, shape.K *= merged, shape.groups /= merged;
  if (!fits_h) {
    shape.C *= shape.R, shape.H = given.P(), every_h = given.stride_h, shift_h = given.pad_h;
    rows = given.R;
    shape.R = shape.stride_h = shape.dil_h = 1, shape.pad_h = 0;
  }
  if (few || !fits_w) {
    shape.W = given.Q(), shift_w = given.pad_w;
    shape.S = shape.stride_w = shape.dil_w = 1, shape.pad_w = 0;
    if (overlap) {
      shape.C = (given.S * rows - 1) * per_tap + given.C;
    } else {
      shape.C *= given.S, columns = shape.W, every_w = given.stride_w, per_tap = given.C;
    }
  }
  plain = fits_h && fits_w && !few;
  as_it_lies = layout == NHWC && plain && aligned(merged) && shape.total_C() % 4 == 0 &&
               reinterpret_cast<std::uintptr_t>(input) % 16 == 0;
  const int64_t plane = int64_t{given.H} * given.W;
  planes = layout == NCHW && plain && merged == 1 && given.R * given.S == 1 &&
           given.stride_h == 1 && given.stride_w == 1 && given.pad_h + given.pad_w == 0 &&
           aligned(1) && plane % 4 == 0 && plane < 1 << 30 &&
           plane * 4 >= (plane + 127) / 128 * 128 * 3 &&
           reinterpret_cast<std::uintptr_t>(input) % 16 == 0;
  if (planes) shape.H = 1, shape.W = columns = static_cast<int>(plane), as_it_lies = true;
  // Written anew, groups that don't fill their tiles lie apart.
  together = plain && aligned(merged) && (as_it_lies || merged > 1 || shape.C % BK == 0);
  channels = overlap ? rows * per_tap : together ? shape.total_C() : shape.C;
  if (together) per_tap = channels;
  pitch = overlap ? channels : round_up(channels, 4);
  step = overlap ? given.stride_w * pitch : pitch;
  mixed = merged > 1 || given.R % rows != 0 ||
          (together && (planes || shape.groups > 1) && shape.C % BK != 0);
  chunks = (shape.C + BK - 1) / BK, tiles = chunks * shape.R * shape.S;
  Q = shape.Q(), PQ = shape.PQ();
}

Images images_for(const ConvShape& shape, Layout layout, std::size_t limit,
                  const TileSizes& sizes) {
  ConvShape some = simplified(shape);
  for (;; some.N = (some.N + 1) / 2) {
    const View view(some, layout);
    const std::size_t input = (view.input_bytes() + 255) / 256 * 256;
    const Plan plan = best_plan(view.padded(), limit - std::min(limit, input), sizes);
    if (input + plan.bytes <= limit || some.N == 1) return {some, input, plan};
  }
}

}  // namespace convladder
