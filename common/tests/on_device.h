// One problem on the device, as the suite of the stages runs it.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "common/check/reference.h"
#include "common/core/launch.h"
#include "common/core/stage.h"
#include "common/harness/device_buffer.h"

namespace convladder {

// How the tensors lie in memory, in floats off the 256-byte alignment, and whether the stage gets
// the least workspace that it works with.
struct Layout {
  int input = 0, filters = 0, bias = 0, output = 0;
  bool least_workspace = false;
};

inline std::string to_string(const Layout& layout) {
  return "tensors off alignment by " + std::to_string(layout.input) + "," +
         std::to_string(layout.filters) + "," + std::to_string(layout.bias) + "," +
         std::to_string(layout.output) + " floats" +
         (layout.least_workspace ? ", least workspace" : "");
}

// The tensors of one problem on the device: output and workspace full of NaN, guard zones around
// all of them.
class OnDevice {
 public:
  OnDevice(const Stage& stage, const HostProblem& problem, const Layout& layout = {})
      : stage_(stage),
        host_(problem),
        input_(problem.shape.input_count(), layout.input),
        filters_(problem.shape.filter_count(), layout.filters),
        bias_(problem.bias ? problem.shape.K : 0, layout.bias),
        output_(problem.shape.output_count(), layout.output),
        workspace_bytes_(layout.least_workspace ? least_workspace_bytes(stage, problem.shape)
                                                : workspace_bytes(stage, problem.shape)),
        workspace_(ceil_div(static_cast<int64_t>(workspace_bytes_), sizeof(float))) {
    input_.upload(problem.input);
    filters_.upload(problem.filters);
    if (problem.bias) bias_.upload(problem.bias);
    // Not ordered with the default stream, so that a kernel launched there would show.
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  ~OnDevice() { cudaStreamDestroy(stream_); }
  OnDevice(const OnDevice&) = delete;

  cudaStream_t stream() const { return stream_; }

  // What a caller would pass for this problem.
  Convolution arguments() const {
    Convolution conv;
    conv.shape = host_.shape;
    conv.input = input_.data(), conv.input_count = input_.count();
    conv.filters = filters_.data(), conv.filter_count = filters_.count();
    conv.bias = host_.bias ? bias_.data() : nullptr, conv.bias_count = bias_.count();
    conv.output = output_.data(), conv.output_count = output_.count();
    conv.relu = host_.relu;
    conv.workspace = workspace_bytes_ > 0 ? workspace_.data() : nullptr;
    conv.workspace_bytes = workspace_bytes_;
    return conv;
  }

  // Runs the stage over outputs and workspace that hold NaN, and waits for it.
  std::vector<float> run_stage() {
    clear();
    shuffle_threads();
    check_cuda(cudaDeviceSynchronize(), "before the stage");
    run(stage_, arguments(), stream_);
    check_cuda(cudaStreamSynchronize(stream_), "the stage");
    return output();
  }

  // Output and workspace as they were before anything ran.
  void clear() {
    output_.fill_nan();
    workspace_.fill_nan();
  }

  // Leaves NaN where the input was, and keeps it elsewhere on the device ...
  void hide_input() {
    hidden_ = std::make_unique<DeviceBuffer>(input_.count());
    hidden_->upload(host_.input);
    input_.fill_nan();
  }
  // ... for a copy, enqueued here, to bring it back.
  void restore_input_on_stream() {
    const std::size_t bytes = static_cast<std::size_t>(input_.count()) * sizeof(float);
    check_cuda(
        cudaMemcpyAsync(input_.data(), hidden_->data(), bytes, cudaMemcpyDeviceToDevice, stream_),
        "cudaMemcpyAsync");
  }

  std::vector<float> output() const {
    std::vector<float> values(output_.count());
    output_.download(values.data());
    return values;
  }

  void expect_output_untouched() const {
    for (const float y : output()) ASSERT_TRUE(std::isnan(y)) << "the output was written";
  }

  // Nothing but the output and the workspace may have changed.
  void expect_no_damage() const {
    EXPECT_EQ(input_.guard_damage(), "") << "around the input";
    EXPECT_EQ(filters_.guard_damage(), "") << "around the filters";
    EXPECT_EQ(bias_.guard_damage(), "") << "around the bias";
    EXPECT_EQ(output_.guard_damage(), "") << "around the output";
    EXPECT_EQ(workspace_.guard_damage(), "") << "around the workspace";
    EXPECT_TRUE(holds(input_, host_.input)) << "the input was changed";
    EXPECT_TRUE(holds(filters_, host_.filters)) << "the filters were changed";
    EXPECT_TRUE(!host_.bias || holds(bias_, host_.bias)) << "the bias was changed";
  }

 private:
  // In the simulator each run has another order of blocks and threads.
  static void shuffle_threads() {
#ifndef CUDART_VERSION
    static uint64_t seed = 0;
    simulator::set_thread_order_seed(seed++);
#endif
  }

  static bool holds(const DeviceBuffer& buffer, const float* expected) {
    std::vector<float> values(buffer.count());
    buffer.download(values.data());
    return std::memcmp(values.data(), expected, values.size() * sizeof(float)) == 0;
  }

  const Stage& stage_;
  HostProblem host_;
  DeviceBuffer input_, filters_, bias_, output_;
  std::size_t workspace_bytes_;
  DeviceBuffer workspace_;
  std::unique_ptr<DeviceBuffer> hidden_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace convladder
