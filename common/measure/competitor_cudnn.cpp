// cuDNN as a competitor: the API that names its algorithms, and the graph interface, which has other
// engines. Neither has all that is fast.
#include <cudnn.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "common/check/backend.h"
#include "common/check/device_buffer.h"
#include "common/core/launch.h"
#include "common/measure/competitor.h"
#include "common/measure/cudnn_graph.h"

namespace convladder {
namespace {

constexpr std::size_t TIMED_RUNS = 3;  // of each way, to choose one
constexpr double FAR_BEHIND = 1.5;     // times the best so far

// A cuDNN object, made and destroyed by the functions given.
template <typename Object, cudnnStatus_t (*create)(Object*), cudnnStatus_t (*destroy)(Object)>
class Owned {
 public:
  Owned() { check_cudnn(create(&object_), "cuDNN"); }
  ~Owned() { destroy(object_); }
  Owned(const Owned&) = delete;
  operator Object() const { return object_; }

 private:
  Object object_ = nullptr;
};

using Handle = Owned<cudnnHandle_t, cudnnCreate, cudnnDestroy>;
using TensorDescriptor =
    Owned<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor>;
using FilterDescriptor =
    Owned<cudnnFilterDescriptor_t, cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor>;
using ConvolutionDescriptor = Owned<cudnnConvolutionDescriptor_t, cudnnCreateConvolutionDescriptor,
                                    cudnnDestroyConvolutionDescriptor>;
using ActivationDescriptor = Owned<cudnnActivationDescriptor_t, cudnnCreateActivationDescriptor,
                                   cudnnDestroyActivationDescriptor>;

constexpr std::array<const char*, CUDNN_CONVOLUTION_FWD_ALGO_COUNT> ALGORITHMS = {
    "IMPLICIT_GEMM", "IMPLICIT_PRECOMP_GEMM", "GEMM", "DIRECT", "FFT", "FFT_TILING",
    "WINOGRAD",      "WINOGRAD_NONFUSED"};

// The shapes, in cuDNN's terms.
struct Descriptors {
  Descriptors(const ConvShape& s, Precision precision, cudnnTensorFormat_t format) {
    // What cuDNN makes of TENSOR_OP_MATH on float is TF32, and so is its default; FMA_MATH keeps to
    // float32 (NVIDIA, cuDNN API reference, cudnnMathType_t).
    const cudnnMathType_t math =
        precision == Precision::kFp32 ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH;
    try {
      set(input, format, s.N, s.total_C(), s.H, s.W);
      set(bias, format, 1, s.total_K(), 1, 1);
      set(output, format, s.N, s.total_K(), s.P(), s.Q());
      check_cudnn(
          cudnnSetFilter4dDescriptor(filters, CUDNN_DATA_FLOAT, format, s.total_K(), s.C, s.R, s.S),
          "cudnnSetFilter4dDescriptor");
      check_cudnn(cudnnSetConvolution2dDescriptor(convolution, s.pad_h, s.pad_w, s.stride_h,
                                                  s.stride_w, s.dil_h, s.dil_w,
                                                  CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
                  "cudnnSetConvolution2dDescriptor");
      check_cudnn(cudnnSetConvolutionGroupCount(convolution, s.groups),
                  "cudnnSetConvolutionGroupCount");
      check_cudnn(cudnnSetConvolutionMathType(convolution, math), "cudnnSetConvolutionMathType");
      check_cudnn(
          cudnnSetActivationDescriptor(identity, CUDNN_ACTIVATION_IDENTITY, CUDNN_PROPAGATE_NAN, 0),
          "cudnnSetActivationDescriptor");
    } catch (const CudaError& error) {
      throw Skipped(error.what());
    }
  }

  static void set(cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format, int n, int c, int h,
                  int w) {
    check_cudnn(cudnnSetTensor4dDescriptor(tensor, format, CUDNN_DATA_FLOAT, n, c, h, w),
                "cudnnSetTensor4dDescriptor");
  }

  TensorDescriptor input, bias, output;
  FilterDescriptor filters;
  ConvolutionDescriptor convolution;
  ActivationDescriptor identity;
};

// One way of computing the problem.
struct Way {
  std::string name;
  std::function<int64_t()> prepare;    // loads its kernels; bytes of workspace
  std::function<void(void*)> enqueue;  // with so much workspace
  int64_t workspace_bytes = 0;
  double milliseconds = 0;  // cold
};

// cuDNN on one problem.
class Run {
 public:
  Run(const Convolution& conv, Precision precision, CudnnLayout layout)
      : conv_(conv),
        precision_(precision),
        nhwc_(layout == CudnnLayout::kNhwc),
        descriptors_(conv.shape, precision, nhwc_ ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW),
        tensors_{conv.input, conv.filters, conv.bias, conv.output, nullptr} {
    if (!nhwc_) return;
    const ConvShape& s = conv.shape;
    const double bytes = 4.0 * (s.input_count() + s.filter_count() + s.output_count());
    if (bytes > free_device_memory()) throw Skipped("no room for tensors in NHWC");
    tensors_.input = copy(conv.input, s.N, s.total_C(), s.H, s.W);
    tensors_.filters = copy(conv.filters, s.total_K(), s.C, s.R, s.S);
    copies_.emplace_back(s.output_count());
    tensors_.output = copies_.back().data();
  }

  // Every way that takes the problem, with the bias in its own kernel and in another, fastest first:
  // cold, as they are judged. Throws Skipped if there is none.
  std::vector<Way> ways(Stopwatch& stopwatch) {
    const double limit = free_device_memory() / 4;  // others need room to work in, too
    std::vector<Way> ways;
    std::string why;
    double best = INFINITY;
    for (Way& way : candidates(why)) {
      try {
        measure(way, limit, best, stopwatch);
        best = std::min(best, way.milliseconds);
        ways.push_back(way);
      } catch (const CudaError& error) {
        why = std::string("; the last: ") + error.what();
      }
    }
    if (ways.empty()) throw Skipped("no algorithm of cuDNN takes the problem" + why);
    std::sort(ways.begin(), ways.end(),
              [](const Way& a, const Way& b) { return a.milliseconds < b.milliseconds; });
    return ways;
  }

  // What enqueue() does from now on.
  void adopt(const Way& way) {
    workspace_.reset();
    workspace_.emplace(way.workspace_bytes / static_cast<int64_t>(sizeof(float)) + 1);
    way_ = way;
  }

  void enqueue() const { way_.enqueue(workspace_->data()); }

  // The output as the caller has it: NCHW.
  void finish() const {
    const ConvShape& s = conv_.shape;
    if (nhwc_) transform(tensors_.output, true, conv_.output, s.N, s.total_K(), s.P(), s.Q());
  }

 private:
  const float* copy(const float* from, int n, int c, int h, int w) {
    copies_.emplace_back(int64_t{n} * c * h * w);
    transform(from, false, copies_.back().data(), n, c, h, w);
    return copies_.back().data();
  }

  void transform(const float* from, bool from_nhwc, float* to, int n, int c, int h, int w) const {
    const float one = 1, zero = 0;
    TensorDescriptor source, result;
    Descriptors::set(source, from_nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW, n, c, h, w);
    Descriptors::set(result, from_nhwc ? CUDNN_TENSOR_NCHW : CUDNN_TENSOR_NHWC, n, c, h, w);
    check_cudnn(cudnnTransformTensor(handle_, &one, source, from, &zero, result, to),
                "cudnnTransformTensor");
  }

  std::vector<Way> candidates(std::string& why) {
    std::vector<Way> ways;
    for (const bool fused : {false, true}) {
      if (fused && !conv_.bias) continue;
      const std::string bias = !conv_.bias ? "" : fused ? ", bias fused" : ", then cudnnAddTensor";
      for (int i = 0; i < CUDNN_CONVOLUTION_FWD_ALGO_COUNT; ++i) {
        ways.push_back(algorithm(static_cast<cudnnConvolutionFwdAlgo_t>(i), fused));
        ways.back().name += bias;
      }
      try {
        for (const CudnnEngine& each :
             cudnn_engines(handle_, conv_.shape, precision_, nhwc_, fused)) {
          ways.push_back(engine(each, fused));
          ways.back().name += bias;
        }
      } catch (const CudaError& error) {
        why = std::string("; the graph: ") + error.what();
      }
    }
    return ways;
  }

  Way algorithm(cudnnConvolutionFwdAlgo_t algorithm, bool fused) {
    const auto bytes = std::make_shared<std::size_t>();
    const auto prepare = [=] {
      const Descriptors& d = descriptors_;
      check_cudnn(cudnnGetConvolutionForwardWorkspaceSize(
                      handle_, d.input, d.filters, d.convolution, d.output, algorithm, bytes.get()),
                  "cudnnGetConvolutionForwardWorkspaceSize");
      return static_cast<int64_t>(*bytes);
    };
    const auto enqueue = [=](void* workspace) {
      const float one = 1, zero = 0;
      const Descriptors& d = descriptors_;
      const CudnnTensors& t = tensors_;
      if (fused) {
        check_cudnn(cudnnConvolutionBiasActivationForward(
                        handle_, &one, d.input, t.input, d.filters, t.filters, d.convolution,
                        algorithm, workspace, *bytes, &zero, d.output, t.output, d.bias, t.bias,
                        d.identity, d.output, t.output),
                    "cudnnConvolutionBiasActivationForward");
        return;
      }
      check_cudnn(cudnnConvolutionForward(handle_, &one, d.input, t.input, d.filters, t.filters,
                                          d.convolution, algorithm, workspace, *bytes, &zero,
                                          d.output, t.output),
                  "cudnnConvolutionForward");
      add_bias();
    };
    return {ALGORITHMS[algorithm], prepare, enqueue};
  }

  Way engine(const CudnnEngine& engine, bool fused) {
    const auto plan = std::make_shared<std::optional<CudnnGraphPlan>>();
    const auto prepare = [=] {
      plan->emplace(handle_, engine.config);
      return (*plan)->workspace_bytes();
    };
    const auto enqueue = [=](void* workspace) {
      CudnnTensors tensors = tensors_;
      tensors.workspace = workspace;
      if (!fused) tensors.bias = nullptr;
      (*plan)->enqueue(handle_, tensors);
      if (!fused) add_bias();
    };
    return {engine.name, prepare, enqueue};
  }

  void add_bias() const {
    const float one = 1;
    if (!tensors_.bias) return;
    check_cudnn(cudnnAddTensor(handle_, &one, descriptors_.bias, tensors_.bias, &one,
                               descriptors_.output, tensors_.output),
                "cudnnAddTensor");
  }

  // Throws CudaError where it doesn't take the problem or wants more than `limit` bytes. What is far
  // behind the `best` is measured once.
  void measure(Way& way, double limit, double best, Stopwatch& stopwatch) {
    way.workspace_bytes = way.prepare();
    if (static_cast<double>(way.workspace_bytes) > limit) {
      throw CudaError(fmt::format("{} wants {} bytes to work in", way.name, way.workspace_bytes));
    }
    adopt(way);
    enqueue();  // the first run loads the kernels
    Samples samples;
    do {
      stopwatch.time([this] { enqueue(); }, samples);
    } while (samples.cold.size() < TIMED_RUNS && samples.cold[0] < FAR_BEHIND * best);
    std::sort(samples.cold.begin(), samples.cold.end());
    way.milliseconds = samples.cold[samples.cold.size() / 2];
  }

  const Handle handle_;
  const Convolution conv_;
  const Precision precision_;
  const bool nhwc_;
  const Descriptors descriptors_;
  std::vector<DeviceBuffer> copies_;  // in NHWC
  CudnnTensors tensors_;
  std::optional<DeviceBuffer> workspace_;
  Way way_;
};

}  // namespace

std::string cudnn_version() {  // 91900: "9.19.0"
  const std::size_t code = cudnnGetVersion();
  return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

CudnnPlan make_cudnn_plan(
    const Convolution& conv, Precision precision, CudnnLayout layout, CudnnRule rule,
    Stopwatch& stopwatch,
    const std::function<Comparison(const std::function<void()>& enqueue)>& check) {
  const auto run = std::make_shared<Run>(conv, precision, layout);
  std::string passed_over;
  for (const Way& way : run->ways(stopwatch)) {
    run->adopt(way);
    const Comparison result = check([run] {
      run->enqueue();
      run->finish();
    });
    if (result.pass || (rule == CudnnRule::kAny && std::isfinite(result.max_error_ratio))) {
      return {way.name, passed_over, [run] { run->enqueue(); }, [run] { run->finish(); }};
    }
    passed_over += fmt::format("{}{} takes {:.3g} ms, but error / allowed is {:.3g}",
                               passed_over.empty() ? "" : "; ", way.name, way.milliseconds,
                               result.max_error_ratio);
  }
  throw std::runtime_error("no algorithm is within the bound: " + passed_over);
}

}  // namespace convladder
