// The gradients of a convolution, through stages' forward kernels: all three are convolutions.
#pragma once

#include "common/core/stage.h"

namespace convladder {

// What comes back through output = conv(input, filters) + bias. A gradient that is null isn't wanted, and
// neither is then what it alone is made of: the input, for the filters' gradient, or the filters, for the
// input's. A count is of a tensor and of its gradient. (ReLU is not in it: what comes back through it is the
// output's gradient where the output is positive, else 0.)
struct Gradients {
  ConvShape shape;
  const float* input = nullptr;            // [N,C,H,W]
  const float* filters = nullptr;          // [K,C/groups,R,S]
  const float* output_gradient = nullptr;  // [N,K,P,Q]
  float* input_gradient = nullptr;
  float* filter_gradient = nullptr;
  float* bias_gradient = nullptr;  // [K]
  int64_t input_count = 0, filter_count = 0, bias_count = 0, output_count = 0;
  void* workspace = nullptr;  // 256-byte aligned
  std::size_t workspace_bytes = 0;
};

// Bytes of workspace for the gradients that are not null: within `limit`, if that is possible, by fewer
// images at a time. Nothing else but the shape is looked at. Throws InvalidArgument where the shape is
// invalid, or one of the convolutions passes what make_conv_shape() allows.
std::size_t gradient_workspace_bytes(const Stage& stage, const Gradients& gradients,
                                     std::size_t limit = DEFAULT_WORKSPACE_LIMIT);

// Enqueues them, as run() does a convolution, with its checks. Where `stage` does not take one of the
// convolutions, the one that choose() finds computes it.
void run_gradients(const Stage& stage, const Gradients& gradients, cudaStream_t stream);

}  // namespace convladder
