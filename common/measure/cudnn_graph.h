// Plans of cuDNN's graph interface: what its heuristics propose for a convolution, one by one.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/core/conv_shape.h"
#include "common/core/stage.h"

namespace convladder {

// Throws CudaError where a call of cuDNN has failed.
void check_cudnn(cudnnStatus_t status, const char* what);

class CudnnDescriptor;  // an object of cuDNN's backend API

struct CudnnTensors {
  const float *input, *filters, *bias;
  float* output;
  void* workspace;
};

// One engine with its settings. Its kernels are compiled, or loaded, by the constructor.
class CudnnGraphPlan {
 public:
  // Throws CudaError if the engine does not take the problem after all.
  CudnnGraphPlan(cudnnHandle_t handle, std::shared_ptr<CudnnDescriptor> engine_config);

  int64_t workspace_bytes() const { return workspace_bytes_; }
  // On the default stream. `tensors` are in the layout that the plan was asked for.
  void enqueue(cudnnHandle_t handle, const CudnnTensors& tensors) const;

 private:
  std::shared_ptr<CudnnDescriptor> plan_;
  int64_t workspace_bytes_ = 0;
};

struct CudnnEngine {
  std::string name;  // "engine 34, tensor cores"
  std::shared_ptr<CudnnDescriptor> config;
};

// The engines that cuDNN's heuristics propose, best guess first and then those to fall back on. For
// FP32 no engine is among them that says that it rounds its inputs or uses tensor cores (NVIDIA,
// cuDNN API, cudnnBackendNumericalNote_t). With `bias`, the sum is part of the graph. Throws CudaError
// if cuDNN does not take the problem at all.
std::vector<CudnnEngine> cudnn_engines(cudnnHandle_t handle, const ConvShape& shape,
                                       Precision precision, bool nhwc, bool bias);

}  // namespace convladder
