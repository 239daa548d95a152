// One stage on one problem: the tensors on the device, and what must hold after it has run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/check/compare.h"
#include "common/check/reference.h"
#include "common/core/stage.h"
#include "common/harness/device_buffer.h"

namespace convladder {

// How a problem lies in device memory.
struct Placement {
  // Floats (0..3) by which input, filters, bias and output are shifted off their alignment.
  std::array<int, 4> offsets = {};
  bool least_workspace = false;  // the least that the stage works with, not what it wants ...
  std::size_t workspace_limit = DEFAULT_WORKSPACE_LIMIT;  // ... within this
};

class Trial {
 public:
  // Allocates and fills what `stage` needs for `problem`, whose host arrays must outlive this.
  // Output and workspace begin as NaN; without guards, as whatever the memory held. Throws
  // InvalidArgument where the stage can't take the problem, CudaError where memory is short.
  Trial(const Stage& stage, const HostProblem& problem, const Placement& placement = {},
        Guards guards = Guards::kZones);

  // The stage on the default stream; returns before it has finished.
  void enqueue() const;
  // Waits for the device, so that a kernel's error is reported here as a CudaError.
  void wait() const;

  std::vector<float> output() const;  // [N,K,P,Q]
  // Empty when every guard zone is whole and no input has changed; else what was damaged.
  std::string damage() const;

 private:
  const Stage& stage_;
  HostProblem problem_;
  std::size_t workspace_bytes_;
  DeviceBuffer input_, filters_, bias_, output_, workspace_;
};

// The two halves of a check, together: the output by `rule` (with `factor`, if it is the bounded
// one), and damage() above.
Comparison judge(const Trial& trial, const std::vector<float>& output, const HostProblem& problem,
                 const Reference& reference, Rule rule, double factor);

// The bounded rule's factor for data of any kind. error_factor() is for signs drawn at random; on a
// photograph partial sums grow far beyond the result, and their rounding errors with them. However
// large they grow, a sum of n products stays within 4·sqrt(n)·2^-24·A with probability
// 1 - 2·exp(-8) (Higham and Mary, "A New Approach to Probabilistic Rounding Error Analysis", 2019).
double any_data_factor(const ConvShape& shape);

// Every output where that is affordable on a CPU, else some thousands of them.
Reference affordable_reference(const HostProblem& problem, uint64_t seed);

// Throws std::runtime_error when a trial of `shape` and its check would not fit in host memory.
void require_memory_for(const ConvShape& shape);

}  // namespace convladder
