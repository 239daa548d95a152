// The least time that a kernel can take on a GPU, from what it asks of it. A bound, no estimate: latencies,
// the issue of other instructions, what misses L1 and L2 and how blocks are shared out can only add to it.
#pragma once

#include <optional>
#include <vector>

#include "common/core/stage.h"
#include "common/measure/machine_rates.h"
#include "common/simulator/counts.h"

namespace convladder {

// What a launch may be waiting for, at the least.
enum class Limit { kProducts, kTensor, kPipe, kDram, kLaunch };
const char* name_of(Limit limit);  // "multiplications"

struct Floor {
  double seconds = 0;
  Limit limit = Limit::kLaunch;
};

// Of one launch: the longest of its products by the FMA units, its products by the tensor cores, its
// wavefronts by L1's data pipe, its bytes by DRAM, and the time of an empty kernel. All but the last two for
// the busiest multiprocessor, which has B / multiprocessors of B blocks, rounded up, or more: at the least
// those that ask for least. What the launch reads may lie in L2 already unless it begins with a `cold` one,
// and what it writes may stay there.
Floor floor_of(const simulator::LaunchWork& work, const MachineRates& machine, bool cold);

// Of what runs one after the other; the limit is that under which most of the time passes.
Floor sum_of(const std::vector<Floor>& floors);

// Of each kernel of a stage that begins with a cold L2, all its launches together.
std::vector<Floor> floors_of(const std::vector<simulator::KernelCounts>& kernels,
                             const MachineRates& machine);

// A larger problem than the one that was counted: more images, or more rows, and all else the same.
struct Enlarged {
  std::vector<simulator::LaunchWork> launches;  // as planned
  double inputs = 1, outputs = 1;               // how many times the elements of these tensors
  double shared_sectors = 0;  // that all blocks may read: filters, bias, workspace
};

// How `stage` would be launched on `whole`, which has more images or rows than `counted` and differs
// in nothing else. Nothing is launched. In a build for the simulator only: enlarge.cpp.
Enlarged enlarge(const Stage& stage, const ConvShape& counted, const ConvShape& whole, bool bias,
                 bool relu);

// Whether `stage` launches the kernels for `counted` that it does for `whole`, and cuts sums in as
// many parts: only then do the blocks of one do what those of the other do.
bool is_alike(const Stage& stage, const ConvShape& counted, bool bias, bool relu,
              const Enlarged& whole);

// The same of the larger problem. Its blocks do what the counted ones do, on other elements; so products and
// wavefronts grow with their number, and bytes no faster than the tensors. None where it launches a
// kernel that has not been counted.
std::optional<std::vector<Floor>> floors_of(const std::vector<simulator::KernelCounts>& kernels,
                                            const Enlarged& problem, const MachineRates& machine);

}  // namespace convladder
