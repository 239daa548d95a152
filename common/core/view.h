// How stage 15 sees a problem: channels last, in tiles of one tap.
#pragma once

#include <cstddef>

#include "common/core/indexing.h"
#include "common/core/launch.h"
#include "common/core/plan.h"
#include "common/core/stage.h"
#include "common/core/tensor_map.h"

namespace convladder {

// A problem as the copy engine sees it, in tiles of one tap of BK channels. Where channels are few, a row's
// taps are channels, too: pixels then overlap in memory, `step` floats apart. Where the copy engine's numbers
// are too short for a row's or a column's taps, these become channels by being copied. Small groups are
// one: a tile has 32 channels and as many filters anyway, and those that are not each other's multiply zeros.
struct View {
  static constexpr int BK = 32;

  ConvShape shape;  // as the kernel sees it
  Layout layout;
  int group_C, group_K, merged;  // of a group, and how many of them are one of the shape's
  bool plain;                    // no tap is a channel
  bool together;                 // pixels have all groups' channels
  bool as_it_lies;               // else the input is written channels last:
  int columns, pitch, channels;  // of a row; floats a pixel; of them not 0
  int every_h, every_w, shift_h, shift_w;  // row h is the input's every_h * h - shift_h
  int step;                                // floats from pixel to pixel of the shape
  int per_tap;                             // of the shape's channels
  int chunks, tiles;                       // of BK channels; of all taps

  explicit View(const ConvShape& given, Layout layout = NCHW, const float* input = nullptr);

  // The shape with whole tiles, for a plan.
  ConvShape padded() const {
    ConvShape whole = shape;
    whole.C = chunks * BK;
    return whole;
  }
  // Where filter k's value at `out` lies in the output; k counts all groups' filters.
  __host__ __device__ int64_t offset(const Pixel& out, int k) const {
    const int64_t pixel = out.p * shape.Q() + out.q, pixels = shape.PQ();
    const int64_t filters = int64_t{shape.groups} * shape.K;
    return out.n * pixels * filters + (layout == NHWC ? pixel * filters + k : k * pixels + pixel);
  }
  int64_t plane() const { return int64_t{shape.H} * columns; }
  // Channels that a block gathers at a time.
  __host__ __device__ int gathered() const { return pitch < 16 ? pitch : 16; }
  // Images that lie channels last: of each group, or of all.
  __host__ __device__ int64_t images() const {
    return int64_t{together ? 1 : shape.groups} * shape.N;
  }
  std::size_t input_bytes() const { return sizeof(float) * images() * plane() * pitch; }
  // Whether tiles of one group have channels of others. A NaN there, times zero, reaches this group's sums.
  __host__ __device__ bool mixed() const {
    return merged > 1 || (together && shape.groups > 1 && shape.C % BK != 0);
  }
  // Of the input as the copy engine sees it, in tiles of `pixels`; as TF32 numbers, if rounded.
  CUtensorMap map(const float* input, int pixels, bool rounded) const {
    return window_map(input, shape, images(), together ? pitch : shape.C, step,
                      int64_t{columns} * pitch, pixels, BK, rounded);
  }
};

// How many images are computed at a time: as many as have room, or half of them, or half of those...
struct Images {
  int count;
  std::size_t input_bytes;  // of the workspace, first; then the plan's
  Plan plan;
};
Images images_for(const ConvShape& shape, std::size_t limit, const TileSizes& sizes);

}  // namespace convladder
