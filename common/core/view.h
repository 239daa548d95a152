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
// taps are channels, too: pixels then overlap in memory, `step` floats apart. Where windows are some rows
// apart, so many rows may be one, of so many times the channels; the last that a filter sees may then have more
// rows than it has. Where the copy engine's numbers are too short for a row's or a column's taps, these become
// channels by being copied. Small groups are one: a tile has 32 channels and as many filters anyway, and those
// that are not each other's multiply zeros.
struct View {
  static constexpr int BK = 32;

  ConvShape given,
      shape;  // as it is given, and as the kernel sees it; its Q() and PQ() are divisions
  Layout layout;
  int group_C, group_K, merged;  // of a group, and how many of them are one of the shape's
  bool plain;                    // no tap is a channel
  bool together;                 // pixels have all groups' channels
  // Tiles have another group's or image's channels, or rows that no window has: a NaN there, times 0, reaches
  // the sum.
  bool mixed;
  bool planes;                   // a filter of one tap needs planes, of one row each, as they lie
  bool as_it_lies;               // else the input is written channels last:
  int columns, pitch, channels;  // of a row; floats a pixel; of them not 0
  int every_h, every_w, shift_h, shift_w;  // row h is the input's every_h * h - shift_h
  int step;                                // floats from pixel to pixel of the shape
  int rows, filter_rows;  // of the input that are one, or are all channels; of the given filter
  int per_tap;        // channel c of the shape is c % per_tap at a tap's rows c / per_tap % rows
  int chunks, tiles;  // of BK channels; of all taps
  int Q, PQ;          // the shape's

  explicit View(ConvShape given, Layout layout = NCHW, const float* input = nullptr);

  // The view to pack filters by: of one tap each, these have a tap for each chunk of their channels.
  View of_filters() const {
    View packing = *this;
    if (plain && merged == 1 && shape.R * shape.S == 1 && shape.C % BK == 0) {
      packing.layout = NHWC, packing.chunks = 1;
      packing.given.C = packing.shape.C = BK, packing.given.S = packing.shape.S = chunks;
    }
    return packing;
  }
  // The shape with whole tiles, for a plan.
  ConvShape padded() const {
    ConvShape whole = shape;
    whole.C = chunks * BK;
    return whole;
  }
  // Where filter k's value at `out` lies in the output; k counts all groups' filters.
  __host__ __device__ int64_t offset(const Pixel& out, int k) const {
    const int64_t pixel = out.p * Q + out.q, filters = int64_t{shape.groups} * shape.K;
    return out.n * PQ * filters + (layout == NHWC ? pixel * filters + k : int64_t{k} * PQ + pixel);
  }
  int64_t plane() const { return int64_t{shape.H} * columns; }
  // Channels that a block gathers at a time.
  __host__ __device__ int gathered() const { return pitch < 16 ? pitch : 16; }
  // Images that lie channels last: of each group, or of all.
  __host__ __device__ int64_t images() const {
    return int64_t{together ? 1 : shape.groups} * shape.N;
  }
  std::size_t input_bytes() const { return sizeof(float) * images() * plane() * pitch; }
  // Whether filters as they lie are what a tile needs: [K,R,S,C], in TF32, which the copy engine rounds to.
  bool takes_filters(const float* filters) const {
    return plain && !mixed && (layout == NHWC || shape.R * shape.S == 1) && shape.C % 4 == 0 &&
           reinterpret_cast<std::uintptr_t>(filters) % 16 == 0;
  }
  // Such filters as the copy engine sees them: images of one window each, in tiles of `count` filters.
  CUtensorMap filter_map(const float* filters, int count) const {
    ConvShape image = shape;
    image.H = shape.R, image.W = shape.S;
    image.stride_h = image.stride_w = image.dil_h = image.dil_w = 1, image.pad_h = image.pad_w = 0;
    return window_map(filters, image, shape.total_K(), shape.C, shape.C, int64_t{shape.S} * shape.C,
                      count, BK, true);
  }
  // Of the input as the copy engine sees it, in tiles of `pixels`; as TF32 numbers, if rounded.
  CUtensorMap map(const float* input, int pixels, bool rounded) const {
    if (planes) {  // a pixel's channels are what a window's are else: tiles of 32 pixels of BK channels
      ConvShape turned = shape;
      turned.W = shape.total_C();
      return window_map(input, turned, shape.N, shape.W, shape.W, int64_t{shape.W} * turned.W, BK,
                        32, rounded);
    }
    return window_map(input, shape, images(), together ? pitch : shape.C, step,
                      int64_t{columns} * pitch, pixels, BK, rounded);
  }
};

// How many images are computed at a time: as many as have room, or half of them, or half of those...
struct Images {
  ConvShape shape;  // of so many images; where a window is all of one, its taps are channels
  std::size_t input_bytes;  // of the workspace, first; then the plan's
  Plan plan;
};
Images images_for(const ConvShape& shape, Layout layout, std::size_t limit, const TileSizes& sizes);

}  // namespace convladder
