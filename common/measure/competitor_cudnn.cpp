// cuDNN as a competitor, through the API that names its algorithms.
#include <cudnn.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "common/check/backend.h"
#include "common/check/device_buffer.h"
#include "common/core/launch.h"
#include "common/measure/competitor.h"

namespace convladder {
namespace {

constexpr int TIMED_RUNS = 3;  // of each algorithm, to choose one

void check_cudnn(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  cudaGetLastError();  // it would otherwise be reported by the next launch
  throw CudaError(std::string(what) + ": " + cudnnGetErrorString(status));
}

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
  Descriptors(const ConvShape& s, Precision precision) {
    // What cuDNN makes of TENSOR_OP_MATH on float is TF32, and so is its default; FMA_MATH keeps to
    // float32 (NVIDIA, cuDNN API reference, cudnnMathType_t).
    const cudnnMathType_t math =
        precision == Precision::kFp32 ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH;
    try {
      set(input, s.N, s.total_C(), s.H, s.W);
      set(bias, 1, s.total_K(), 1, 1);
      set(output, s.N, s.total_K(), s.P(), s.Q());
      check_cudnn(cudnnSetFilter4dDescriptor(filters, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW,
                                             s.total_K(), s.C, s.R, s.S),
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

  static void set(cudnnTensorDescriptor_t tensor, int n, int c, int h, int w) {
    check_cudnn(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, n, c, h, w),
                "cudnnSetTensor4dDescriptor");
  }

  TensorDescriptor input, bias, output;
  FilterDescriptor filters;
  ConvolutionDescriptor convolution;
  ActivationDescriptor identity;
};

// One way of computing the problem.
struct Way {
  cudnnConvolutionFwdAlgo_t algorithm;
  bool bias_fused;  // in the convolution's own kernel; else by cudnnAddTensor
  std::size_t workspace_bytes;
  double milliseconds;  // cold
};

// cuDNN on one problem.
class Run {
 public:
  explicit Run(const Convolution& conv) : conv_(conv), descriptors_(conv.shape, conv.precision) {}

  // Every algorithm that takes the problem, with the bias in its own kernel and in another, fastest
  // first: cold, as they are judged. Throws Skipped if there is none.
  // (cudnnFindConvolutionForwardAlgorithmEx would time convolutions without their bias, and try
  // other math types than the one set.)
  std::vector<Way> ways(Stopwatch& stopwatch) {
    const double limit = free_device_memory() / 4;  // others need room to work in, too
    std::vector<Way> ways;
    std::string why;
    for (int i = 0; i < CUDNN_CONVOLUTION_FWD_ALGO_COUNT; ++i) {
      for (const bool fused : {false, true}) {
        if (fused && !conv_.bias) continue;
        try {
          ways.push_back(timed(static_cast<cudnnConvolutionFwdAlgo_t>(i), fused, limit, stopwatch));
        } catch (const CudaError& error) {
          why = std::string("; the last: ") + error.what();
        }
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
    workspace_.emplace(static_cast<int64_t>(way.workspace_bytes / sizeof(float) + 1));
    way_ = way;
  }

  void enqueue() const {
    const float one = 1, zero = 0;
    const Descriptors& d = descriptors_;
    const Convolution& c = conv_;
    if (way_.bias_fused) {
      check_cudnn(cudnnConvolutionBiasActivationForward(
                      handle_, &one, d.input, c.input, d.filters, c.filters, d.convolution,
                      way_.algorithm, workspace_->data(), way_.workspace_bytes, &zero, d.output,
                      c.output, d.bias, c.bias, d.identity, d.output, c.output),
                  "cudnnConvolutionBiasActivationForward");
      return;
    }
    check_cudnn(cudnnConvolutionForward(handle_, &one, d.input, c.input, d.filters, c.filters,
                                        d.convolution, way_.algorithm, workspace_->data(),
                                        way_.workspace_bytes, &zero, d.output, c.output),
                "cudnnConvolutionForward");
    if (!c.bias) return;
    check_cudnn(cudnnAddTensor(handle_, &one, d.bias, c.bias, &one, d.output, c.output),
                "cudnnAddTensor");
  }

  std::string name(const Way& way) const {
    const std::string name = ALGORITHMS[way.algorithm];
    if (!conv_.bias) return name;
    return name + (way.bias_fused ? ", bias fused" : ", then cudnnAddTensor");
  }

 private:
  // Throws CudaError where the algorithm doesn't take the problem or wants more than `limit` bytes.
  Way timed(cudnnConvolutionFwdAlgo_t algorithm, bool fused, double limit, Stopwatch& stopwatch) {
    Way way{algorithm, fused, 0, 0};
    const Descriptors& d = descriptors_;
    check_cudnn(cudnnGetConvolutionForwardWorkspaceSize(handle_, d.input, d.filters, d.convolution,
                                                        d.output, algorithm, &way.workspace_bytes),
                "cudnnGetConvolutionForwardWorkspaceSize");
    if (static_cast<double>(way.workspace_bytes) > limit) {
      throw CudaError(
          fmt::format("{} wants {} bytes to work in", ALGORITHMS[algorithm], way.workspace_bytes));
    }
    adopt(way);
    enqueue();  // the first run loads the kernels
    Samples samples;
    for (int i = 0; i < TIMED_RUNS; ++i) stopwatch.time([this] { enqueue(); }, samples);
    std::sort(samples.cold.begin(), samples.cold.end());
    way.milliseconds = samples.cold[TIMED_RUNS / 2];
    return way;
  }

  const Handle handle_;
  const Convolution conv_;
  const Descriptors descriptors_;
  std::optional<DeviceBuffer> workspace_;
  Way way_{};
};

}  // namespace

std::string cudnn_version() {  // 91900: "9.19.0"
  const std::size_t code = cudnnGetVersion();
  return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

// An algorithm that isn't within the bound (Winograd's error grows with its tile) is no match for a
// stage that is.
CudnnPlan make_cudnn_plan(
    const Convolution& conv, Stopwatch& stopwatch,
    const std::function<Comparison(const std::function<void()>& enqueue)>& check) {
  const auto run = std::make_shared<Run>(conv);
  const auto enqueue = [run] { run->enqueue(); };
  std::string passed_over;
  for (const Way& way : run->ways(stopwatch)) {
    run->adopt(way);
    const Comparison result = check(enqueue);
    const std::string name = run->name(way);
    if (result.pass) return {name, passed_over, enqueue};
    passed_over += fmt::format("{}{} takes {:.3g} ms, but error / allowed is {:.3g}",
                               passed_over.empty() ? "" : "; ", name, way.milliseconds,
                               result.max_error_ratio);
  }
  throw std::runtime_error("no algorithm is within the bound: " + passed_over);
}

}  // namespace convladder
