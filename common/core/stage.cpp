#include "common/core/stage.h"

#include <algorithm>

#include "common/core/choice.h"
#include "common/core/launch.h"
#ifndef CUDART_VERSION
#include "common/simulator/enqueueing.h"
#endif

namespace convladder {
namespace {

constexpr std::size_t WORKSPACE_ALIGNMENT = 256;
constexpr int ONE_ALONE = 90;  // of Stage::compute_capability

std::vector<Stage>& registry() {
  static std::vector<Stage> stages;
  return stages;
}

// Throws CudaError where the stage does more than put work on the stream. Only the simulator sees that.
void enqueue(const Stage& stage, const Convolution& conv, cudaStream_t stream) {
#ifdef CUDART_VERSION
  stage.enqueue(conv, stream);
#else
  const simulator::Enqueueing watched(stage.name, stream);
  stage.enqueue(conv, stream);
  if (!watched.wrong().empty()) throw CudaError(watched.wrong());
#endif
}

}  // namespace

StageRegistration::StageRegistration(const Stage& stage) {
  auto& all = registry();
  const auto by_name = [](const Stage& a, const Stage& b) {
    return std::string(a.name) < std::string(b.name);
  };
  all.insert(std::upper_bound(all.begin(), all.end(), stage, by_name), stage);
}

const std::vector<Stage>& stages() { return registry(); }

const Stage& find_stage(const std::string& name) {
  if (name == auto_stage().name) return auto_stage();
  std::string known;
  for (const Stage& stage : stages()) {
    if (name == stage.name) return stage;
    known += (known.empty() ? "" : ", ") + std::string(stage.name);
  }
  throw InvalidArgument("stage '" + name + "' is unknown; there are: " + known + ", and auto");
}

const char* to_string(Precision precision) {
  return precision == Precision::kFp32 ? "fp32" : "tf32";
}

std::string lack_of(const Stage& stage) {
#ifdef CUDART_VERSION
  const int needed = stage.compute_capability;
  if (needed == 0) return "";
  const int here = device_attribute<cudaDevAttrComputeCapabilityMajor>() * 10 +
                   device_attribute<cudaDevAttrComputeCapabilityMinor>();
  if (here == needed || (here > needed && needed != ONE_ALONE)) return "";
  return "needs compute capability " + std::to_string(needed / 10) + "." +
         std::to_string(needed % 10) + (needed == ONE_ALONE ? "" : " or more");
#else
  static_cast<void>(stage);
  return "";  // the simulator runs all
#endif
}

void require_taken(const Stage& stage, const ConvShape& shape) {
  validate(shape);
  const char* const wanted = stage.wants ? stage.wants(shape) : nullptr;
  if (!wanted) return;
  throw NotForShape(std::string("not for this shape: ") + stage.name + " wants " + wanted +
                    ", not " + to_string(shape));
}

std::size_t workspace_bytes(const Stage& stage, const ConvShape& shape, std::size_t limit) {
  require_taken(stage, shape);
  if (!stage.workspace_bytes) return 0;
  const std::size_t bytes = stage.workspace_bytes(shape, limit);
  if (bytes > limit) {
    throw InvalidArgument("workspace limit = " + std::to_string(limit) + ": " + stage.name +
                          " needs at least " + std::to_string(bytes) + " bytes for " +
                          to_string(shape));
  }
  return bytes;
}

std::size_t least_workspace_bytes(const Stage& stage, const ConvShape& shape) {
  require_taken(stage, shape);
  return stage.workspace_bytes ? stage.workspace_bytes(shape, 0) : 0;
}

void require_buffer(const char* name, const void* pointer, int64_t count, int64_t needed) {
  if (pointer == nullptr) throw InvalidArgument(std::string(name) + " is null");
  if (reinterpret_cast<std::uintptr_t>(pointer) % alignof(float) != 0) {
    throw InvalidArgument(std::string(name) + " is not aligned to 4 bytes");
  }
  if (count < needed) {
    throw InvalidArgument(std::string(name) + " holds " + std::to_string(count) +
                          " elements, the problem needs " + std::to_string(needed));
  }
}

// An error that nobody has collected would come out of the next launch, as if it were its own.
void require_no_earlier_error() {
  const cudaError_t left = cudaGetLastError();
  if (left == cudaErrorNotReady) return;  // the answer to a question, and no error
  check_cuda(left, "an earlier CUDA call");
}

void require_workspace(const void* workspace, std::size_t bytes, std::size_t least,
                       const std::string& whose) {
  if (bytes < least || (least > 0 && workspace == nullptr)) {
    throw InvalidArgument("workspace holds " + std::to_string(workspace ? bytes : 0) + " bytes, " +
                          whose + " needs at least " + std::to_string(least));
  }
  if (reinterpret_cast<std::uintptr_t>(workspace) % WORKSPACE_ALIGNMENT != 0) {
    throw InvalidArgument("workspace is not aligned to 256 bytes");
  }
}

void run(const Stage& stage, const Convolution& conv, cudaStream_t stream) {
  require_taken(stage, conv.shape);
  require_buffer("input", conv.input, conv.input_count, conv.shape.input_count());
  require_buffer("filters", conv.filters, conv.filter_count, conv.shape.filter_count());
  if (conv.bias) require_buffer("bias", conv.bias, conv.bias_count, conv.shape.total_K());
  require_buffer("output", conv.output, conv.output_count, conv.shape.output_count());
  if (conv.relu && !stage.fuses_relu) {
    throw InvalidArgument("relu = 1: " + std::string(stage.name) + " does not apply ReLU");
  }
  const std::size_t least = least_workspace_bytes(stage, conv.shape);
  require_workspace(conv.workspace, conv.workspace_bytes, least, stage.name);
  require_no_earlier_error();
  const std::string lack = lack_of(stage);
  if (!lack.empty()) throw CudaError(std::string(stage.name) + " " + lack);
  enqueue(stage, conv, stream);
  check_cuda(cudaGetLastError(), "kernel launch");
}

}  // namespace convladder
