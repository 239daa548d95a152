// Which kernels a stage launches, without running them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/core/stage.h"

namespace convladder {

struct KernelLaunch {
  std::string kernel;     // its name: "conv2d_naive"
  int64_t blocks, parts;  // all of the grid, and its y
};

// What run() would launch, in order, without a library's kernels. None of them runs. Throws what run()
// throws.
std::vector<KernelLaunch> launches_of(const Stage& stage, const Convolution& conv);

}  // namespace convladder
