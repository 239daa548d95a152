// The reference: a direct convolution in float64 on the host. No vendor library has a say here.
#pragma once

#include <cstdint>
#include <vector>

#include "common/check/test_data.h"
#include "common/core/conv_shape.h"

namespace convladder {

struct HostProblem {
  ConvShape shape;
  const float* input = nullptr;    // [N,C,H,W]
  const float* filters = nullptr;  // [K,C/groups,R,S]
  const float* bias = nullptr;     // [K], or null for none
  bool relu = false;
};

// The problem with `data`, which must outlive it; without its bias, if that is not wanted.
inline HostProblem host_problem(const ConvShape& shape, const TestData& data, bool bias = true,
                                bool relu = false) {
  return {shape, data.input.data(), data.filters.data(), bias ? data.bias.data() : nullptr, relu};
}

// One entry per checked output.
struct Reference {
  std::vector<int64_t> index;  // flat indices into [N,K,P,Q]; empty: all outputs, in order
  std::vector<double> value;
  std::vector<double> magnitude;  // A = sum |x*w| + |bias|: the scale of the rounding error
};

// The outputs at `index` (flat, each in [0, output_count), else InvalidArgument); none: all of them.
// It runs on all cores; a NaN in the data arrives where it belongs, also through ReLU. All outputs cost
// 2*N*K*P*Q*(C/groups)*R*S double operations.
Reference compute_reference(const HostProblem& problem, std::vector<int64_t> index = {});

// About `count` flat output indices without repetition, sorted: the corners and borders of images
// and channels first and last, the rest drawn by `seed`. All outputs when `count` is more than half
// of them.
std::vector<int64_t> sample_outputs(const ConvShape& shape, int64_t count, uint64_t seed);

}  // namespace convladder
