// cuDNN as a competitor, through the API that names its algorithms.
#include <cudnn.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include "common/check/backend.h"
#include "common/core/launch.h"
#include "common/measure/bench.h"
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

// One way of computing the problem.
struct Plan {
  cudnnConvolutionFwdAlgo_t algorithm;
  bool bias_fused;  // in the convolution's own kernel; else by cudnnAddTensor
  std::size_t workspace_bytes;
  double milliseconds;  // cold
};

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

// One problem on the device.
class Run {
 public:
  Run(cudnnHandle_t handle, const HostProblem& problem, Precision precision)
      : handle_(handle),
        has_bias_(problem.bias != nullptr),
        descriptors_(problem.shape, precision),
        input_(problem.shape.input_count()),
        filters_(problem.shape.filter_count()),
        bias_(has_bias_ ? problem.shape.total_K() : 0),
        output_(problem.shape.output_count()) {
    input_.upload(problem.input);
    filters_.upload(problem.filters);
    if (has_bias_) bias_.upload(problem.bias);
  }

  // Every algorithm that takes the problem, with the bias in its own kernel and in another, fastest
  // first: cold, as they are judged. Throws Skipped if there is none.
  // (cudnnFindConvolutionForwardAlgorithmEx would time convolutions without their bias, and try
  // other math types than the one set.)
  std::vector<Plan> plans(Stopwatch& stopwatch) {
    const double limit = free_device_memory() / 4;  // others need room to work in, too
    std::vector<Plan> plans;
    std::string why = "no algorithm of cuDNN takes the problem";
    for (int i = 0; i < CUDNN_CONVOLUTION_FWD_ALGO_COUNT; ++i) {
      for (const bool fused : {false, true}) {
        if (fused && !has_bias_) continue;
        try {
          const auto algorithm = static_cast<cudnnConvolutionFwdAlgo_t>(i);
          plans.push_back(timed_plan(algorithm, fused, limit, stopwatch));
        } catch (const CudaError& error) {
          why = std::string("no algorithm of cuDNN takes the problem; the last: ") + error.what();
        }
      }
    }
    workspace_.reset();
    if (plans.empty()) throw Skipped(why);
    std::sort(plans.begin(), plans.end(),
              [](const Plan& a, const Plan& b) { return a.milliseconds < b.milliseconds; });
    return plans;
  }

  // The plan that run() follows. The output begins as NaN again.
  void adopt(const Plan& plan) {
    workspace_.reset();
    workspace_.emplace(static_cast<int64_t>(plan.workspace_bytes / sizeof(float) + 1));
    plan_ = plan;
    output_.fill_nan();
  }

  void enqueue() const {
    const float one = 1, zero = 0;
    const Descriptors& d = descriptors_;
    if (plan_.bias_fused) {
      check_cudnn(
          cudnnConvolutionBiasActivationForward(
              handle_, &one, d.input, input_.data(), d.filters, filters_.data(), d.convolution,
              plan_.algorithm, workspace_->data(), plan_.workspace_bytes, &zero, d.output,
              output_.data(), d.bias, bias_.data(), d.identity, d.output, output_.data()),
          "cudnnConvolutionBiasActivationForward");
      return;
    }
    check_cudnn(
        cudnnConvolutionForward(handle_, &one, d.input, input_.data(), d.filters, filters_.data(),
                                d.convolution, plan_.algorithm, workspace_->data(),
                                plan_.workspace_bytes, &zero, d.output, output_.data()),
        "cudnnConvolutionForward");
    if (!has_bias_) return;
    check_cudnn(cudnnAddTensor(handle_, &one, d.bias, bias_.data(), &one, d.output, output_.data()),
                "cudnnAddTensor");
  }

  std::string name(const Plan& plan) const {
    const std::string name = ALGORITHMS[plan.algorithm];
    if (!has_bias_) return name;
    return name + (plan.bias_fused ? ", bias fused" : ", then cudnnAddTensor");
  }

  Comparison check(const HostProblem& problem, const Reference& reference, double factor) const {
    std::vector<float> values(static_cast<std::size_t>(output_.count()));
    output_.download(values.data());
    return compare(values.data(), problem.shape, reference, Rule::kBounded, factor);
  }

 private:
  // Throws CudaError where the algorithm doesn't take the problem or wants more than `limit` bytes.
  Plan timed_plan(cudnnConvolutionFwdAlgo_t algorithm, bool fused, double limit,
                  Stopwatch& stopwatch) {
    Plan plan{algorithm, fused, 0, 0};
    const Descriptors& d = descriptors_;
    check_cudnn(cudnnGetConvolutionForwardWorkspaceSize(handle_, d.input, d.filters, d.convolution,
                                                        d.output, algorithm, &plan.workspace_bytes),
                "cudnnGetConvolutionForwardWorkspaceSize");
    if (static_cast<double>(plan.workspace_bytes) > limit) {
      throw CudaError(std::string(ALGORITHMS[algorithm]) + " wants " +
                      std::to_string(plan.workspace_bytes) + " bytes to work in");
    }
    adopt(plan);
    enqueue();  // the first run loads the kernels
    Samples samples;
    for (int i = 0; i < TIMED_RUNS; ++i) stopwatch.time([this] { enqueue(); }, samples);
    plan.milliseconds = summarise(samples.cold).median;
    return plan;
  }

  const cudnnHandle_t handle_;
  const bool has_bias_;
  const Descriptors descriptors_;
  DeviceBuffer input_, filters_, bias_, output_;
  std::optional<DeviceBuffer> workspace_;
  Plan plan_{};
};

class CudnnCompetitor : public Competitor {
 public:
  CudnnCompetitor(std::shared_ptr<Handle> handle, const CompetitorInfo& info)
      : Competitor(info), handle_(std::move(handle)) {}

  // The fastest algorithm whose result is within the bound. One that isn't (Winograd's error grows
  // with its tile) is no match for a stage that is.
  Choice prepare(const HostProblem& problem, const Reference& reference,
                 Stopwatch& stopwatch) override {
    run_ = std::make_unique<Run>(*handle_, problem, info().precision);
    std::string passed_over;
    for (const Plan& plan : run_->plans(stopwatch)) {
      run_->adopt(plan);
      run_->enqueue();
      check_cuda(cudaDeviceSynchronize(), "cuDNN");
      const Comparison result = check(problem, reference);
      const std::string name = run_->name(plan);
      if (!result.pass) {
        passed_over += (passed_over.empty() ? "" : "; ") + name + " takes " +
                       fmt::format("{:.3g}", plan.milliseconds) + " ms, but error / allowed is " +
                       fmt::format("{:.3g}", result.max_error_ratio);
        continue;
      }
      run_->adopt(plan);  // NaN again: what is checked at the end is what was timed
      return {name, passed_over};
    }
    throw std::runtime_error("no algorithm is within the bound: " + passed_over);
  }

  void time(Stopwatch& stopwatch, Samples& samples) override {
    stopwatch.time([this] { run_->enqueue(); }, samples);
  }

  Comparison check(const HostProblem& problem, const Reference& reference) override {
    return run_->check(problem, reference, error_factor(problem.shape, info().precision));
  }

  void release() noexcept override { run_.reset(); }

 private:
  std::shared_ptr<Handle> handle_;
  std::unique_ptr<Run> run_;
};

std::string version() {  // 91900: "9.19.0"
  const std::size_t code = cudnnGetVersion();
  return std::to_string(code / 10000) + "." + std::to_string(code / 100 % 100) + "." +
         std::to_string(code % 100);
}

}  // namespace

Competitors cudnn_competitors() {
  const auto handle = std::make_shared<Handle>();
  Competitors competitors;
  for (const Precision precision : {Precision::kFp32, Precision::kTf32}) {
    const CompetitorInfo info{"cudnn", precision, "nchw", version(), "cuDNN " + version()};
    competitors.push_back(std::make_shared<CudnnCompetitor>(handle, info));
  }
  return competitors;
}

}  // namespace convladder
