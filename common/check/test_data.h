// Reproducible data for checks. Every element is a function of (seed, tensor, index), so that the
// same values come out with any number of threads.
#pragma once

#include <cstdint>
#include <vector>

#include "common/core/conv_shape.h"

namespace convladder {

enum class DataKind {
  kUniform,       // x, w, bias uniform in [-1, 1): signs cancel, magnitudes differ
  kSmallInteger,  // integers, drawn so that A = sum|x*w| + |bias| <= 2^24 always: exact in float32
  // x odd integers of magnitude 2049..4095 (12 bits: too wide for TF32 and half precision), w in
  // {-1, 0, 1}, as many non-zero w as 2^24 allows: exact in float32
  kWideInteger
};

constexpr DataKind DATA_KINDS[] = {DataKind::kSmallInteger, DataKind::kWideInteger,
                                   DataKind::kUniform};

const char* to_string(DataKind kind);  // "small integers", "wide integers" or "real numbers"

struct TestData {
  std::vector<float> input;    // [N,C,H,W]
  std::vector<float> filters;  // [K,C/groups,R,S]
  std::vector<float> bias;     // [K]; drawn non-zero
};

// Filled on all cores. Throws InvalidArgument where an integer kind is impossible for the shape
// (GEMM_K too large for 2^24).
TestData make_test_data(const ConvShape& shape, DataKind kind, uint64_t seed);

}  // namespace convladder
