// How a stage would be launched on a problem too large to be counted.
#pragma once

#include "common/core/stage.h"
#include "common/profile/floor.h"

namespace convladder {

// Of `stage` on `whole`, which has more images or rows than `counted` and differs in nothing else.
// Nothing is launched. In a build for the simulator only.
Enlarged enlarge(const Stage& stage, const ConvShape& counted, const ConvShape& whole, bool bias,
                 bool relu);

// Whether `stage` launches the kernels for `counted` that it does for `whole`, and cuts sums in as many
// parts: only then do the blocks of one do what those of the other do.
bool is_alike(const Stage& stage, const ConvShape& counted, bool bias, bool relu,
              const Enlarged& whole);

}  // namespace convladder
