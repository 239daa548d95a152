// One stage on one problem: the tensors on the device, and what must hold after it has run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/check/compare.h"
#include "common/check/device_buffer.h"
#include "common/check/reference.h"
#include "common/core/stage.h"

namespace convladder {

// How a problem lies in device memory.
struct Placement {
  // Floats (0..3) by which input, filters, bias and output are shifted off their alignment.
  std::array<int, 4> offsets = {};
  bool least_workspace = false;  // the least that the stage works with, not what it wants ...
  std::size_t workspace_limit = DEFAULT_WORKSPACE_LIMIT;  // ... within this
};

// A tensor's place in device memory.
struct TensorPlace {
  std::string name;  // input, filters, bias, output or workspace
  uint64_t begin;    // its address
  uint64_t bytes;    // 0: the problem or the stage has none
};

class Trial {
 public:
  // Allocates and fills what `stage` needs for `problem`, whose host arrays must outlive this.
  // Output and workspace begin as NaN; without guards, as whatever the memory held. Throws
  // InvalidArgument where the stage can't take the problem, CudaError where memory is short.
  Trial(const Stage& stage, const HostProblem& problem, const Placement& placement = {},
        Guards guards = Guards::kZones);
  // `stage` on the tensors of another trial, with a workspace of its own: for stages that take turns. Where
  // its layout is another, so are its tensors.
  Trial(const Stage& stage, const Trial& other);

  // What a caller would pass to run(): device pointers, which this owns.
  Convolution arguments() const;
  // The stage, by default on the default stream; returns before it has finished.
  void enqueue(cudaStream_t stream = nullptr) const;
  // Waits for the device, so that a kernel's error is reported here as a CudaError.
  void wait() const;

  const Stage& stage() const { return stage_; }
  const HostProblem& problem() const { return problem_; }
  std::vector<float> output() const;  // [N,K,P,Q]
  // Reads the output into `values`, which gets its length. A vector used before spares new memory.
  void read_output(std::vector<float>& values) const;
  // Output and workspace as they were at first.
  void fill_nan();
  // Empty when every guard zone is whole and no input has changed; else what was damaged.
  std::string damage() const;
  std::vector<TensorPlace> tensors() const;

 private:
  std::array<std::pair<const char*, const DeviceBuffer*>, 5> buffers() const;
  void with_input(const std::function<void(const float*)>& use) const;  // in the stage's layout
  void with_filters(const std::function<void(const float*)>& use) const;

  const Stage& stage_;
  HostProblem problem_;
  std::size_t workspace_bytes_;
  struct Tensors {
    DeviceBuffer input, filters, bias, output;
  };
  std::shared_ptr<Tensors> tensors_;
  DeviceBuffer workspace_;
};

// Whether signs were drawn at random, so that rounding errors are as small as error_factor() says.
enum class Signs { kRandom, kAny };

// The two halves of a check, together: the output by `rule`, and damage() above.
Comparison check_output(const Trial& trial, const std::vector<float>& output,
                        const Reference& reference, Rule rule, Signs signs = Signs::kRandom);

// Every output where that is affordable on a CPU, else some thousands of them.
Reference affordable_reference(const HostProblem& problem, uint64_t seed);

// Throws std::runtime_error when a trial of `shape` and its check would not fit in host memory.
void require_memory_for(const ConvShape& shape);

}  // namespace convladder
