// The separate bias pass of stages 01 to 04.
#pragma once

#include "common/core/stage.h"

namespace convladder {

// output[n,k,p,q] += bias[k]; does nothing when conv.bias is null. Reads and writes the whole
// output once more: 8 bytes per element that stage 05 does not move.
void add_bias(const Convolution& conv, cudaStream_t stream);

}  // namespace convladder
