// The pitfalls of docs/pitfalls.md that show on a GPU's clock, measured on AlexNet's first layer:
//   sizes    the layer's sizes as compile-time constants in the naive kernel
//   padding  a padded copy of the input, so that no tap needs a test
//   clock    the host's clock around a launch, without waiting for its end
//   handle   a cuBLAS handle made in every call
// Results are checked before anything is timed.
#include <cublas_v2.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/check/backend.h"
#include "common/check/device_buffer.h"
#include "common/check/trial.h"
#include "common/command/options.h"
#include "common/core/launch.h"

namespace convladder {
namespace {

constexpr int THREADS = 256;
int runs() { return on_gpu() ? 15 : 1; }

// AlexNet's first layer, known to the compiler. The members have ConvShape's names, so that one
// source serves both.
struct AlexNetConv1 {
  static constexpr int C = 3, H = 224, W = 224, K = 96, R = 11, S = 11;
  static constexpr int stride_h = 4, stride_w = 4, pad_h = 2, pad_w = 2, dil_h = 1, dil_w = 1;
  __host__ __device__ static constexpr int P() { return 55; }
  __host__ __device__ static constexpr int Q() { return 55; }
};

// The same, unpadded, for an input that already has its zeros around it.
struct PaddedConv1 : AlexNetConv1 {
  static constexpr int H = 228, W = 228, pad_h = 0, pad_w = 0;
};

// Stage 01's kernel. PADDED: the input has its zeros around it, and no tap is outside.
template <bool PADDED, typename Sizes>
__global__ void conv2d(Sizes size, int blocks_per_image,
                       const float* __restrict__ input,    // [N,C,H,W]
                       const float* __restrict__ filters,  // [K,C,R,S]
                       float* __restrict__ output) {       // [N,K,P,Q]
  const int n = blockIdx.x / blocks_per_image;
  const int kpq = blockIdx.x % blocks_per_image * THREADS + threadIdx.x;
  if (kpq >= size.K * size.P() * size.Q()) return;
  const int q = kpq % size.Q();
  const int p = kpq / size.Q() % size.P();
  const int k = kpq / (size.P() * size.Q());
  const float* image = input + n * int64_t{size.C * size.H * size.W};
  const float* filter = filters + k * size.C * size.R * size.S;
  float sum = 0.0f;
  for (int c = 0; c < size.C; ++c) {
    for (int r = 0; r < size.R; ++r) {
      const int h = p * size.stride_h - size.pad_h + r * size.dil_h;
      if (!PADDED && (h < 0 || h >= size.H)) continue;
      for (int s = 0; s < size.S; ++s) {
        const int w = q * size.stride_w - size.pad_w + s * size.dil_w;
        if (!PADDED && (w < 0 || w >= size.W)) continue;
        sum += image[(c * size.H + h) * size.W + w] * filter[(c * size.R + r) * size.S + s];
      }
    }
  }
  output[n * int64_t{size.K * size.P() * size.Q()} + kpq] = sum;
}

__global__ void copy_padded(ConvShape shape, const float* __restrict__ input,
                            float* __restrict__ padded) {
  const int H = shape.H + 2 * shape.pad_h, W = shape.W + 2 * shape.pad_w;
  const int64_t i = int64_t{blockIdx.x} * THREADS + threadIdx.x;
  if (i >= int64_t{shape.N} * shape.C * H * W) return;
  const int h = static_cast<int>(i / W % H) - shape.pad_h;
  const int w = static_cast<int>(i % W) - shape.pad_w;
  const int64_t plane = i / (H * W);
  const bool inside = h >= 0 && h < shape.H && w >= 0 && w < shape.W;
  padded[i] = inside ? input[(plane * shape.H + h) * shape.W + w] : 0.0f;
}

// The layer with its data on the device.
class Layer {
 public:
  explicit Layer(int images)
      : shape_(shape_of(images)),
        data_(make_test_data(shape_, DataKind::kUniform, 1)),
        trial_(NO_STAGE, host_problem(shape_, data_, false)),
        conv_(trial_.arguments()),
        padded_(int64_t{shape_.N} * shape_.C * PaddedConv1::H * PaddedConv1::W) {}

  const ConvShape& shape() const { return shape_; }
  const float* filters() const { return conv_.filters; }
  void run_naive() const { run<false>(shape_, conv_.input); }
  void run_constant_sizes() const { run<false>(AlexNetConv1(), conv_.input); }
  void run_padded() const { run<true>(PaddedConv1(), padded_.data()); }
  void pad() const {
    launch(copy_padded, grid_x(ceil_div(padded_.count(), THREADS)), THREADS, nullptr, shape_,
           conv_.input, padded_.data());
  }

  // Throws when what `run` computes is wrong.
  void check(const char* name, const std::function<void()>& run) {
    trial_.fill_nan();
    run();
    check_cuda(cudaDeviceSynchronize(), name);
    const Reference reference = affordable_reference(trial_.problem(), 1);
    const Comparison result = check_output(trial_, trial_.output(), reference, Rule::kBounded);
    if (!result.pass) throw std::runtime_error(std::string(name) + ": " + result.message);
  }

 private:
  static ConvShape shape_of(int images) {
    using A = AlexNetConv1;
    ConvArguments a;
    a.n = images, a.c = A::C, a.h = A::H, a.w = A::W, a.k = A::K, a.r = A::R, a.s = A::S;
    a.stride_h = A::stride_h, a.stride_w = A::stride_w, a.pad_h = A::pad_h, a.pad_w = A::pad_w;
    return make_conv_shape(a);
  }

  template <bool PADDED, typename Sizes>
  void run(Sizes sizes, const float* input) const {
    const int64_t blocks = ceil_div(shape_.KPQ(), THREADS);
    launch(conv2d<PADDED, Sizes>, grid_x(blocks * shape_.N), THREADS, nullptr, sizes,
           static_cast<int>(blocks), input, conv_.filters, conv_.output);
  }

  static constexpr Stage NO_STAGE = {"", "", nullptr, nullptr, false};  // the kernels are here

  ConvShape shape_;
  TestData data_;
  Trial trial_;
  Convolution conv_;  // the trial's pointers
  DeviceBuffer padded_;
};

void print(const char* what, double milliseconds) {
  std::printf("  %-52s %9.4f ms\n", what, milliseconds);
}

double event_ms(const std::function<void()>& enqueue) {
  return time_on_backend(enqueue, runs()).milliseconds;
}

// Median over runs() calls of `body`, by the host's clock. Nothing is under way before or after.
double host_ms(const std::function<void()>& body) {
  std::vector<double> times;
  for (int run = 0; run <= runs(); ++run) {
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const auto begin = std::chrono::steady_clock::now();
    body();
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - begin;
    if (run > 0) times.push_back(elapsed.count());  // the first one warms up
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  std::nth_element(times.begin(), times.begin() + runs() / 2, times.end());
  return times[runs() / 2];
}

void show_sizes(Layer& layer) {
  std::printf("sizes: the layer's sizes as constants in the naive kernel\n");
  layer.check("sizes as arguments", [&] { layer.run_naive(); });
  layer.check("sizes as constants", [&] { layer.run_constant_sizes(); });
  print("sizes as arguments", event_ms([&] { layer.run_naive(); }));
  print("sizes as constants", event_ms([&] { layer.run_constant_sizes(); }));
}

void show_padding(Layer& layer) {
  std::printf("padding: a padded copy of the input, constants in both kernels\n");
  layer.pad();
  layer.check("padded", [&] { layer.run_padded(); });
  print("taps tested, no copy", event_ms([&] { layer.run_constant_sizes(); }));
  print("the padded copy alone", event_ms([&] { layer.pad(); }));
  print("taps not tested, after the copy", event_ms([&] { layer.run_padded(); }));
}

void show_clock(Layer& layer) {
  std::printf("clock: one and the same launch\n");
  print("host's clock, not waiting for the kernel", host_ms([&] { layer.run_naive(); }));
  print("host's clock, waiting", host_ms([&] {
          layer.run_naive();
          check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        }));
  print("CUDA events", event_ms([&] { layer.run_naive(); }));
}

void require_success(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw std::runtime_error(std::string(what) + ": " + cublasGetStatusString(status));
  }
}

// One image's product of stage 02, [K, C*R*S] times [C*R*S, P*Q].
void show_handle(Layer& layer) {
  std::printf("handle: one image's matrix product, by the host's clock, waiting\n");
  const ConvShape& s = layer.shape();
  DeviceBuffer columns(int64_t{s.CRS()} * s.PQ()), product(s.KPQ());
  columns.upload(std::vector<float>(columns.count(), 1.0f).data());
  const float one = 1.0f, zero = 0.0f;
  const auto multiply = [&](cublasHandle_t handle) {
    require_success(
        cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, s.PQ(), s.K, s.CRS(), &one, columns.data(),
                    s.PQ(), layer.filters(), s.CRS(), &zero, product.data(), s.PQ()),
        "cublasSgemm");
    check_cuda(cudaDeviceSynchronize(), "cublasSgemm");
  };
  const auto with_new_handle = [&] {
    cublasHandle_t handle = nullptr;
    require_success(cublasCreate(&handle), "cublasCreate");
    multiply(handle);
    require_success(cublasDestroy(handle), "cublasDestroy");
  };
  cublasHandle_t handle = nullptr;
  require_success(cublasCreate(&handle), "cublasCreate");
  print("handle made once", host_ms([&] { multiply(handle); }));
  print("handle made and destroyed in each call", host_ms(with_new_handle));
  require_success(cublasDestroy(handle), "cublasDestroy");
}

int show(const std::vector<std::string>& arguments) {
  const std::vector<OptionSpec> specs = {{"--n", "N", "images (default 256 on a GPU, else 1)"}};
  const Options options(specs, arguments);
  if (options.has("--help")) {
    std::printf("usage: pitfall_times [OPTION...]\n\n%s\n", options.help().c_str());
    return 0;
  }
  const auto images = static_cast<int>(options.integer("--n", on_gpu() ? 256 : 1, 1, 1024));
  require_device();
  Layer layer(images);
  std::printf("%s; %s\n%s\n", device_name().c_str(), to_string(layer.shape()).c_str(),
              on_gpu() ? ("medians of " + std::to_string(runs()) + " runs, caches warm").c_str()
                       : "the simulator's times say nothing about a GPU");
  show_sizes(layer);
  show_padding(layer);
  show_clock(layer);
  show_handle(layer);
  return 0;
}

int fail(const char* reason, int status) {
  std::fflush(stdout);
  std::fprintf(stderr, "pitfall_times: error: %s\n", reason);
  return status;
}

}  // namespace
}  // namespace convladder

int main(int argc, char** argv) {
  try {
    return convladder::show({argv + 1, argv + argc});
  } catch (const convladder::UsageError& error) {
    return convladder::fail(error.what(), 2);
  } catch (const std::exception& error) {
    return convladder::fail(error.what(), 1);
  }
}
