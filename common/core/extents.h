// The extents of a problem, one row each: by what name users give them, and the least they may be.
#pragma once

#include <cstdint>
#include <iterator>

#include "common/core/conv_shape.h"

namespace convladder {

struct Extent {
  const char* name;  // an option without its dashes, a column of problems.csv, a key of records
  const char* meaning;
  int64_t ConvArguments::*given;
  int ConvShape::*taken;
  int64_t least;
};

inline constexpr Extent EXTENTS[] = {
    {"n", "images", &ConvArguments::n, &ConvShape::N, 1},
    {"c", "input channels", &ConvArguments::c, &ConvShape::C, 1},
    {"h", "input height", &ConvArguments::h, &ConvShape::H, 1},
    {"w", "input width", &ConvArguments::w, &ConvShape::W, 1},
    {"k", "filters, that is output channels", &ConvArguments::k, &ConvShape::K, 1},
    {"r", "filter height", &ConvArguments::r, &ConvShape::R, 1},
    {"s", "filter width", &ConvArguments::s, &ConvShape::S, 1},
    {"stride_h", "stride along h", &ConvArguments::stride_h, &ConvShape::stride_h, 1},
    {"stride_w", "stride along w", &ConvArguments::stride_w, &ConvShape::stride_w, 1},
    {"pad_h", "rows of zeros above and below", &ConvArguments::pad_h, &ConvShape::pad_h, 0},
    {"pad_w", "columns of zeros left and right", &ConvArguments::pad_w, &ConvShape::pad_w, 0},
    {"dil_h", "dilation along h", &ConvArguments::dil_h, &ConvShape::dil_h, 1},
    {"dil_w", "dilation along w", &ConvArguments::dil_w, &ConvShape::dil_w, 1},
    {"groups", "groups that channels and filters are cut into", &ConvArguments::groups,
     &ConvShape::groups, 1}};

static_assert(sizeof(ConvArguments) == std::size(EXTENTS) * sizeof(int64_t), "one is missing");

// Whether a list of problems must give it; the others have defaults.
constexpr bool is_needed(const Extent& extent) { return extent.name[1] == '\0'; }

// The extents of `shape` as a user would give them: c and k count all groups.
ConvArguments to_arguments(const ConvShape& shape);

}  // namespace convladder
