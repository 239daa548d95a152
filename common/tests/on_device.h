// One problem on the device, as the suite of the stages runs it.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "common/check/test_data.h"
#include "common/check/trial.h"
#include "common/core/launch.h"

namespace convladder {

inline std::string to_string(const Placement& placement) {
  std::string text = "tensors off alignment by";
  for (const int offset : placement.offsets) text += " " + std::to_string(offset);
  return text + " floats" + (placement.least_workspace ? ", least workspace" : "");
}

// A problem, its data and its reference.
class Sample {
 public:
  explicit Sample(const ConvArguments& arguments, DataKind kind = DataKind::kSmallInteger)
      : shape_(make_conv_shape(arguments)),
        kind_(kind),
        data_(make_test_data(shape_, kind, 1)),
        reference_(compute_reference(host())) {}

  const ConvShape& shape() const { return shape_; }
  HostProblem host() const { return host_problem(shape_, data_); }
  void expect_right(const std::vector<float>& output) const {
    const Comparison result =
        compare(output.data(), shape_, reference_, rule_for(kind_), error_factor(shape_));
    EXPECT_TRUE(result.pass) << result.message;
  }

 private:
  ConvShape shape_;
  DataKind kind_;
  TestData data_;
  Reference reference_;
};

// Calls check(shape), or skips the test where memory, the host's or the device's, is short.
template <typename Check>
void with_memory_for(const ConvShape& shape, const Check& check) {
  SCOPED_TRACE(to_string(shape));
  try {
    require_memory_for(shape);
  } catch (const std::runtime_error& error) {
    GTEST_SKIP() << error.what();
  }
  try {
    check(shape);
  } catch (const CudaError& error) {
    if (error.code != cudaErrorMemoryAllocation) throw;
    GTEST_SKIP() << error.what();
  }
}

// A trial with a stream of its own, one after the other.
class OnDevice : public Trial {
 public:
  OnDevice(const Stage& stage, const HostProblem& problem, const Placement& placement = {})
      : Trial(stage, problem, placement), host_(problem) {
    // Not ordered with the default stream, so that a kernel launched there would show.
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  ~OnDevice() { cudaStreamDestroy(stream_); }
  OnDevice(const OnDevice&) = delete;

  cudaStream_t stream() const { return stream_; }

  // Runs the stage over outputs and workspace that hold NaN, and waits for it. In the simulator each
  // run has another order of blocks and threads.
  std::vector<float> run_stage() {
    clear();
#ifndef CUDART_VERSION
    static uint64_t seed = 0;
    simulator::set_thread_order_seed(seed++);
#endif
    check_cuda(cudaDeviceSynchronize(), "before the stage");
    enqueue(stream_);
    check_cuda(cudaStreamSynchronize(stream_), "the stage");
    return output();
  }

  // Output and workspace as they were before anything ran; done when this returns, since the stage's
  // stream doesn't wait for it.
  void clear() {
    fill_nan();
    check_cuda(cudaDeviceSynchronize(), "clearing");
  }

  // Leaves NaN where the input was, and keeps it elsewhere on the device ...
  void hide_input() {
    hidden_ = std::make_unique<DeviceBuffer>(host_.shape.input_count());
    hidden_->upload(host_.input);
    check_cuda(cudaMemset(input(), 0xFF, input_bytes()), "cudaMemset");
  }
  // ... for a copy, enqueued here, to bring it back.
  void restore_input_on_stream() {
    check_cuda(
        cudaMemcpyAsync(input(), hidden_->data(), input_bytes(), cudaMemcpyDeviceToDevice, stream_),
        "cudaMemcpyAsync");
  }

  void expect_output_untouched() const {
    for (const float y : output()) ASSERT_TRUE(std::isnan(y)) << "the output was written";
  }

  // Nothing but the output and the workspace may have changed.
  void expect_no_damage() const { EXPECT_EQ(damage(), ""); }

 private:
  float* input() const { return const_cast<float*>(arguments().input); }
  std::size_t input_bytes() const {
    return static_cast<std::size_t>(host_.shape.input_count()) * sizeof(float);
  }

  HostProblem host_;
  std::unique_ptr<DeviceBuffer> hidden_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace convladder
