// A problem that takes too long is counted in part, a few of its images or rows; from that follows what
// the whole of it asks for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/command/workload.h"
#include "common/core/stage.h"
#include "common/simulator/counts.h"

namespace convladder {

struct StageLaunch {
  std::string kernel;
  simulator::LaunchWork work;
};

// What a stage asks for in each of its launches, in order, on the problem that was counted. (Launches of
// one kernel stand together.)
std::vector<StageLaunch> counted_launches(const std::vector<simulator::KernelCounts>& kernels);

// What `stage` asks for on the whole problem of which `job` is a part, by its kernels' counts on that part.
// The whole differs in its number of images or rows alone, so that its blocks do what the counted ones do,
// on other elements: multiplications and wavefronts grow with the number of blocks, bytes no faster than
// the tensors. None where the job is the whole problem, or where the stage launches a kernel for the
// whole that was not counted.
//
// A stage's plan may depend on how many blocks there are for each multiprocessor. Where the whole
// problem's differs, the job is run again and counted for a device that is as much smaller.
std::optional<std::vector<StageLaunch>> launches_of_whole(
    const Stage& stage, const Workload& job, const std::vector<simulator::KernelCounts>& kernels);

}  // namespace convladder
