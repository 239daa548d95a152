// The second kernel of stages 11 to 13, whose sums are cut in parts.
#pragma once

#include "common/core/stage.h"

namespace convladder {

// output = the sum over [parts][N,K,P,Q], with which the workspace begins, always in the same order, then
// ReLU if conv.relu. Adds no bias: a part has it. Moves 4 · (parts + 1) bytes per output. One part is the
// output already.
void add_parts(int parts, const Convolution& conv, cudaStream_t stream);

}  // namespace convladder
