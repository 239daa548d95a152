// How a stage would be launched on a problem too large to be counted.
#pragma once

#include "common/core/stage.h"
#include "common/profile/floor.h"

namespace convladder {

// Of `stage` on `whole`, which has more images or rows than `counted` and differs in nothing else.
// Nothing is launched. In a build for the simulator only.
Enlarged enlarge(const Stage& stage, const ConvShape& counted, const ConvShape& whole, bool bias,
                 bool relu);

}  // namespace convladder
