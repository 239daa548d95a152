// What a convolution takes at the least, whoever computes it.
#pragma once

#include "common/core/conv_shape.h"

namespace convladder {

struct Work {
  double flops = 0;         // ConvShape::flops(), in which TFLOP/s are counted
  double needed_flops = 0;  // without the taps on padding, which a kernel may leave out
  double bytes = 0;  // elements of the input under any tap, filters, bias and output, once each
};

Work work_of(const ConvShape& shape, bool bias);

}  // namespace convladder
