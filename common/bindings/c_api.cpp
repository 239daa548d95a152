// The C interface: arguments into C++, exceptions into statuses. The checks themselves are those
// of make_conv_shape() and run().
#include <cuda_runtime.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "common/bindings/convladder.h"
#include "common/core/choice.h"
#include "common/core/gradients.h"
#include "common/core/launch.h"
#include "common/core/stage.h"

namespace convladder {
namespace {

// It is no std::string: there is nothing to allocate when memory is short, and nothing to destroy when a
// thread or the library goes. Longer messages are cut.
thread_local char last_error[2048];

convladder_status fail(convladder_status status, const char* message) noexcept {
  std::snprintf(last_error, sizeof last_error, "%s", message);
  return status;
}

template <typename Body>
convladder_status guarded(const Body& body) noexcept {
  last_error[0] = '\0';
  try {
    body();
    return CONVLADDER_SUCCESS;
  } catch (const InvalidArgument& error) {
    return fail(CONVLADDER_INVALID_ARGUMENT, error.what());
  } catch (const CudaError& error) {
    return fail(CONVLADDER_CUDA_ERROR, error.what());
  } catch (const std::exception& error) {
    return fail(CONVLADDER_INTERNAL_ERROR, error.what());
  } catch (...) {
    return fail(CONVLADDER_INTERNAL_ERROR, "an exception of unknown type");
  }
}

template <typename T>
T& require(T* pointer, const char* name) {
  if (!pointer) throw InvalidArgument(std::string(name) + " is null");
  return *pointer;
}

ConvShape shape_of(const convladder_problem& p) {
  return make_conv_shape({p.n, p.c, p.h, p.w, p.k, p.r, p.s, p.stride_h, p.stride_w, p.pad_h,
                          p.pad_w, p.dil_h, p.dil_w, p.groups});
}

bool flag(int32_t value, const char* name) {
  if (value != 0 && value != 1) {
    throw InvalidArgument(std::string(name) + " = " + std::to_string(value) + ": must be 0 or 1");
  }
  return value == 1;
}

// Device memory in the order of a stream: freed when the work enqueued before is done.
class StreamMemory {
 public:
  StreamMemory(std::size_t bytes, cudaStream_t stream) : stream_(stream) {
    const std::string call =
        "cudaMallocAsync of a workspace of " + std::to_string(bytes) + " bytes";
    if (bytes > 0) check_cuda(cudaMallocAsync(&pointer_, bytes, stream), call.c_str());
  }
  ~StreamMemory() {
    if (pointer_) cudaFreeAsync(pointer_, stream_);
  }
  StreamMemory(const StreamMemory&) = delete;

  void* get() const { return pointer_; }

 private:
  void* pointer_ = nullptr;
  cudaStream_t stream_;
};

Convolution convolution_of(const convladder_convolution& c) {
  Convolution conv;
  conv.shape = shape_of(c.problem);
  conv.input = c.input, conv.input_count = c.input_count;
  conv.filters = c.filters, conv.filter_count = c.filter_count;
  conv.bias = c.bias, conv.bias_count = c.bias_count;
  conv.output = c.output, conv.output_count = c.output_count;
  conv.relu = flag(c.relu, "relu");
  conv.workspace = c.workspace;
  conv.workspace_bytes = c.workspace_bytes;
  return conv;
}

Gradients gradients_of(const convladder_gradients& g) {
  return {shape_of(g.problem), g.input,           g.filters,       g.output_gradient,
          g.input_gradient,    g.filter_gradient, g.bias_gradient, g.input_count,
          g.filter_count,      g.bias_count,      g.output_count,  g.workspace,
          g.workspace_bytes};
}

// Calls run(), with a workspace of so many bytes where none is given.
template <typename Call, typename Bytes, typename Run>
void with_workspace(Call call, cudaStream_t stream, const Bytes& bytes, const Run& run) {
  if (call.workspace || call.workspace_bytes != CONVLADDER_ALLOCATE_WORKSPACE) return run(call);
  call.workspace_bytes = bytes();
  const StreamMemory workspace(call.workspace_bytes, stream);
  call.workspace = workspace.get();
  run(call);
}

std::vector<const char*> stage_names() {
  std::vector<const char*> names;
  for (const Stage& stage : stages()) names.push_back(stage.name);
  names.push_back(nullptr);
  return names;
}

}  // namespace
}  // namespace convladder

using namespace convladder;

int convladder_abi_version() { return CONVLADDER_ABI_VERSION; }

const char* convladder_backend() {
#ifdef CUDART_VERSION
  return "gpu";
#else
  return "sim";
#endif
}

const char* const* convladder_stage_names() {
  static const std::vector<const char*> names = stage_names();
  return names.data();
}

convladder_status convladder_output_size(const convladder_problem* problem, int64_t size[4]) {
  return guarded([&] {
    const ConvShape shape = shape_of(require(problem, "problem"));
    require(size, "size");
    size[0] = shape.N, size[1] = shape.total_K(), size[2] = shape.P(), size[3] = shape.Q();
  });
}

convladder_status convladder_workspace_bytes(const char* stage, const convladder_problem* problem,
                                             size_t limit, size_t* bytes) {
  return guarded([&] {
    const Stage& found = find_stage(&require(stage, "stage"));
    const ConvShape shape = shape_of(require(problem, "problem"));
    require(bytes, "bytes") = workspace_bytes(found, shape, limit);
  });
}

convladder_status convladder_run(const char* stage, const convladder_convolution* convolution,
                                 void* stream) {
  return guarded([&] {
    const Stage& found = find_stage(&require(stage, "stage"));
    const Convolution conv = convolution_of(require(convolution, "convolution"));
    const auto on = static_cast<cudaStream_t>(stream);
    with_workspace(
        conv, on, [&] { return workspace_bytes(found, conv.shape); },
        [&](const Convolution& complete) { run(found, complete, on); });
  });
}

convladder_status convladder_choose(const convladder_problem* problem, const char** stage,
                                    char* why, size_t why_bytes) {
  return guarded([&] {
    const ConvShape shape = shape_of(require(problem, "problem"));
    const Choice choice = choose(shape);
    require(stage, "stage") = choice.stage->name;
    if (why) std::snprintf(why, why_bytes, "%s", choice.why.c_str());
  });
}

convladder_status convladder_tune(const convladder_problem* problem, void* stream) {
  return guarded(
      [&] { tune(shape_of(require(problem, "problem")), static_cast<cudaStream_t>(stream)); });
}

convladder_status convladder_gradient_workspace_bytes(const char* stage,
                                                      const convladder_gradients* gradients,
                                                      size_t limit, size_t* bytes) {
  return guarded([&] {
    const Stage& found = find_stage(&require(stage, "stage"));
    const Gradients wanted = gradients_of(require(gradients, "gradients"));
    require(bytes, "bytes") = gradient_workspace_bytes(found, wanted, limit);
  });
}

convladder_status convladder_run_gradients(const char* stage, const convladder_gradients* gradients,
                                           void* stream) {
  return guarded([&] {
    const Stage& found = find_stage(&require(stage, "stage"));
    const Gradients wanted = gradients_of(require(gradients, "gradients"));
    const auto on = static_cast<cudaStream_t>(stream);
    with_workspace(
        wanted, on, [&] { return gradient_workspace_bytes(found, wanted); },
        [&](const Gradients& complete) { run_gradients(found, complete, on); });
  });
}

const char* convladder_last_error() { return last_error; }
