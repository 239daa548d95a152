// `auto`: the stage that suits a problem.
#pragma once

#include <string>

#include "common/core/stage.h"

namespace convladder {

struct Choice {
  const Stage* stage;
  std::string why;  // in a line
};

// Of the stages in FP32 and NCHW that have been timed on common/layers.csv (timed_layers.inc), those that are
// here, take the shape, and run on the current device: the one that was fastest on the layer most like it, by the logarithms of six counts:
// channels of a group, taps of a sum, filters of a group, pixels in and out, groups. Or what tune() has found. Of those that can work
// within `limit` bytes of workspace; if none can, the one that needs the least. Throws InvalidArgument for
// an invalid shape, or where no stage here takes it.
Choice choose(const ConvShape& shape, std::size_t limit = DEFAULT_WORKSPACE_LIMIT);

// Times those stages on the current device, caches warm, on tensors that it allocates, and keeps the fastest
// for this shape and device as long as the process lasts. Waits for the device. In the simulator, whose
// times say nothing of a GPU, it keeps what choose() says.
Choice tune(const ConvShape& shape, cudaStream_t stream);

// How often tune() has been called: while the number stays, choose() says the same of the same shape.
int64_t tunings();

// The stage "auto", which is none of stages(): it does what the chosen one does. find_stage() knows it.
const Stage& auto_stage();

}  // namespace convladder
