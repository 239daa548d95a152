// What most tests need, and may rely on to be included: problems as text, a folder for files, the message
// of an exception, a problem on the device.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <bitset>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "common/check/backend.h"
#include "common/check/problems.h"
#include "common/check/test_data.h"
#include "common/check/trial.h"
#include "common/core/extents.h"
#include "common/core/launch.h"

namespace convladder {

// ---- Texts, files and exceptions ----

// "n=2 h=w=9", where what isn't named is 1, a pad 0.
inline ConvArguments arguments_of(const std::string& text) {
  ConvArguments arguments;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const int64_t value = std::stoll(word.substr(word.rfind('=') + 1));
    std::istringstream names(word.substr(0, word.rfind('=')));
    for (std::string name; std::getline(names, name, '=');) {
      const auto* const extent = std::find_if(std::begin(EXTENTS), std::end(EXTENTS),
                                              [&](const Extent& e) { return name == e.name; });
      if (extent == std::end(EXTENTS)) throw std::logic_error("no extent is called " + name);
      arguments.*extent->given = value;
    }
  }
  return arguments;
}

inline ConvShape shape_of(const std::string& text) { return make_conv_shape(arguments_of(text)); }

inline std::vector<Problem> problems_of(
    const std::vector<std::pair<const char*, const char*>>& names_and_texts) {
  std::vector<Problem> problems;
  for (const auto& [name, text] : names_and_texts) problems.push_back({name, arguments_of(text)});
  return problems;
}

// How GoogleTest shows a problem, and names a test of one.
inline void PrintTo(const Problem& problem, std::ostream* out) { *out << problem.name; }
inline std::string name_of(const testing::TestParamInfo<Problem>& info) { return info.param.name; }

// The problem, or for a stage that doesn't take it the most similar one that it takes: changed in as few as it can be
// of the ways below, and not much larger. None where there is none.
inline std::optional<ConvShape> find_suited(const ConvShape& shape, const Stage& stage) {
  if (!stage.wants) return shape;
  static const std::vector<std::function<void(ConvArguments&)>> ways = {
      [](ConvArguments& a) {  // the same channels in groups of one, and about as many filters
        a.k = a.c * std::max<int64_t>(1, a.k / a.c), a.groups = a.c;
      },
      [](ConvArguments& a) { a.groups = 1; },
      [](ConvArguments& a) { a.stride_h = a.stride_w = 1; },
      [](ConvArguments& a) { a.dil_h = a.dil_w = 1; },
      [](ConvArguments& a) { a.r = a.s = 3; },
      [](ConvArguments& a) { a.r = a.s = 1; },
      [](ConvArguments& a) { a.r = a.s = 5; },
      [](ConvArguments& a) { a.stride_h = a.stride_w = 2; },
      [](ConvArguments& a) { a.pad_h = a.dil_h * (a.r / 2), a.pad_w = a.dil_w * (a.s / 2); },
      [](ConvArguments& a) { a.pad_h = a.pad_w = 0; },
      [](ConvArguments& a) {
        a.c = ceil_div(a.c, 32 * a.groups) * 32 * a.groups,
        a.k = ceil_div(a.k, 32 * a.groups) * 32 * a.groups;
      },
      [](ConvArguments& a) { a.n = ceil_div(a.n, 8) * 8; },
      [](ConvArguments& a) { a.n = 1; },
      [](ConvArguments& a) { a.h = ceil_div(a.h, 16) * 16, a.w = ceil_div(a.w, 16) * 16; }};
  const auto size = [](const ConvShape& s) {
    return s.input_count() + s.output_count() + s.filter_count();
  };
  static const std::vector<unsigned> sets = [] {  // those with few changes first
    std::vector<unsigned> all(1u << ways.size());
    std::iota(all.begin(), all.end(), 0u);
    const auto changes = [](unsigned set) { return std::bitset<32>(set).count(); };
    std::stable_sort(all.begin(), all.end(),
                     [&](unsigned a, unsigned b) { return changes(a) < changes(b); });
    return all;
  }();
  for (const unsigned set : sets) {
    ConvArguments changed = to_arguments(shape);
    for (std::size_t i = 0; i < ways.size(); ++i) {
      if (set >> i & 1) ways[i](changed);
    }
    changed.h = std::max(changed.h, changed.dil_h * (changed.r - 1) + 1);
    changed.w = std::max(changed.w, changed.dil_w * (changed.s - 1) + 1);
    try {
      const ConvShape found = make_conv_shape(changed);
      if (!stage.wants(found) && size(found) <= std::max(size(shape), int64_t{1} << 20))
        return found;
    } catch (const InvalidArgument&) {
    }
  }
  return std::nullopt;
}

inline ConvShape suited(const ConvShape& shape, const Stage& stage) {
  const std::optional<ConvShape> found = find_suited(shape, stage);
  if (!found) require_taken(stage, shape);  // throws: it doesn't
  return *found;
}

// What a tile of 32 filters and 32 taps computes, as a multiple of what a small group wants of it.
inline double tile_waste(const ConvShape& shape) {
  if (shape.groups == 1) return 1;
  return 32.0 / std::min(shape.K, 32) * 32.0 / std::min(shape.CRS(), 32);
}

// Whether tests that repeat themselves, with other data or in another order, do so in turns: what `./ladder test`
// asks for without a GPU.
inline bool in_turns() {
  static const bool asked = std::getenv("CONVLADDER_IN_TURNS") != nullptr;
  return asked;
}

// Made on construction, removed with all it holds on destruction.
class TempFolder {
 public:
  TempFolder() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              ("convladder_" + std::string(test->name()) + "_" + std::to_string(getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // Writes `bytes` to a file called `name`; gives its path.
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }

  std::string read(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // Files and folders in it.
  int entries() const {
    return static_cast<int>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

 private:
  std::filesystem::path folder_;
};

// The message of the exception of type Error that `body` throws; "" when it throws none (a test
// failure as well).
template <typename Error, typename Body>
std::string message_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

inline void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "in: " << text << "\nmissing: " << part;
  }
}

inline void expect_contains(const std::string& text, const std::string& part) {
  expect_parts(text, {part});
}

// The stage of this program that the environment names, or its first.
inline const Stage& tested_stage() {
  const char* const name = std::getenv("CONVLADDER_STAGE");
  if (stages().empty()) {
    std::fputs("error: the kernel registers no stage: its end lacks CONVLADDER_REGISTER_STAGE\n",
               stderr);
    std::_Exit(1);  // the tests' names are made before main()
  }
  return name ? find_stage(name) : stages().at(0);
}

// The places of `count` problems that a stage is tested on. In turns each is tried on even stages or on odd ones; or,
// where `few` are to be, on every third.
inline std::vector<std::size_t> places_for(const Stage& stage, bool few, std::size_t count) {
  const std::size_t step = !in_turns() ? 1 : few ? 3 : 2;
  const std::size_t first = std::atoi(std::string(stage.name).c_str());
  std::vector<std::size_t> places;
  for (std::size_t place = 0; place < count; place += step) {
    places.push_back(std::min(place + (first + place / step) % step, count - 1));
  }
  return places;
}
// A program's further stages have the first's kernel with other numbers.
inline bool is_further_form() { return tested_stage().name != stages().at(0).name; }

// ---- Problems on the device ----

// Skips its tests where there is no GPU, with the reason; the simulator's device is always there.
class DeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      require_device();
    } catch (const CudaError& error) {
      GTEST_SKIP() << error.what();
    }
  }
};

inline std::vector<float> values_of(const DeviceBuffer& buffer) {
  std::vector<float> values(static_cast<std::size_t>(buffer.count()));
  buffer.download(values.data());
  return values;
}

// Sums and their magnitudes by an implementation that shares no line and no loop order with
// compute_reference(). It scatters instead of gathering: every input value goes to all outputs that it
// reaches, the loops run over the input, forwards or backwards, and the output position is found by
// division.
template <typename T>
std::pair<std::vector<T>, std::vector<T>> scatter(const HostProblem& problem,
                                                  bool backwards = false) {
  const ConvShape& s = problem.shape;
  const int64_t P = s.P(), Q = s.Q(), count = s.input_count();
  std::vector<T> value(s.output_count()), magnitude(s.output_count());
  for (int64_t j = 0; j < count; ++j) {
    const int64_t i = backwards ? count - 1 - j : j;
    const int64_t w = i % s.W, h = i / s.W % s.H, plane = i / s.W / s.H;  // (n*groups + g)*C + c
    const int64_t c = plane % s.C, g = plane / s.C % s.groups, n = plane / s.C / s.groups;
    for (int64_t filter = s.R * s.S - 1; filter >= 0; --filter) {
      const int64_t up = h + s.pad_h - filter / s.S * s.dil_h;
      const int64_t left = w + s.pad_w - filter % s.S * s.dil_w;
      if (up < 0 || left < 0 || up % s.stride_h != 0 || left % s.stride_w != 0) continue;
      const int64_t p = up / s.stride_h, q = left / s.stride_w;
      if (p >= P || q >= Q) continue;
      for (int64_t k = g * s.K; k < (g + 1) * s.K; ++k) {
        const T product = T{problem.input[i]} * problem.filters[(k * s.C + c) * s.R * s.S + filter];
        const int64_t to = ((n * s.groups * s.K + k) * P + p) * Q + q;
        value[to] += product;
        magnitude[to] += std::fabs(product);
      }
    }
  }
  for (int64_t i = 0; i < s.output_count(); ++i) {
    const T bias = problem.bias ? problem.bias[i / (P * Q) % (s.groups * s.K)] : 0;
    value[i] += bias;
    magnitude[i] += std::fabs(bias);
    if (problem.relu) value[i] = std::max(value[i], T{0});
  }
  return {value, magnitude};
}

// A problem, its data and its reference.
class Sample {
 public:
  explicit Sample(const ConvShape& shape, DataKind kind = DataKind::kSmallInteger, bool bias = true)
      : shape_(shape),
        kind_(kind),
        bias_(bias),
        data_(make_test_data(shape_, kind, 1)),
        reference_(affordable_reference(host(), 1)) {}
  explicit Sample(const std::string& text, DataKind kind = DataKind::kSmallInteger,
                  bool bias = true)
      : Sample(shape_of(text), kind, bias) {}

  const ConvShape& shape() const { return shape_; }
  const Reference& reference() const { return reference_; }
  HostProblem host() const { return host_problem(shape_, data_, bias_); }
  void expect_right(const std::vector<float>& output,
                    Precision precision = Precision::kFp32) const {
    const Comparison result = compare(output.data(), shape_, reference_, rule_for(kind_, precision),
                                      error_factor(shape_, precision));
    EXPECT_TRUE(result.pass) << result.message;
  }

 private:
  ConvShape shape_;
  DataKind kind_;
  bool bias_;
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

// The right result, by the host, but for `error` in the last output: for stages of tests' own.
inline void compute_on_host(const Convolution& conv, float error = 0,
                            cudaStream_t stream = nullptr) {
  const auto read = [stream](const float* from, int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    const auto bytes = count * sizeof(float);
    // The simulator, which is done at once, tells stages that wait; a GPU waits where memory isn't pinned.
    const bool is_pinned =
        !on_gpu() && bytes > 0 && cudaHostRegister(values.data(), bytes, 0) == cudaSuccess;
    check_cuda(cudaMemcpyAsync(values.data(), from, bytes, cudaMemcpyDeviceToHost, stream),
               "cudaMemcpy");
    if (is_pinned) cudaHostUnregister(values.data());
    return values;
  };
  const std::vector<float> input = read(conv.input, conv.shape.input_count());
  const std::vector<float> filters = read(conv.filters, conv.shape.filter_count());
  const std::vector<float> bias = read(conv.bias, conv.bias ? conv.shape.total_K() : 0);
  const Reference reference = compute_reference(
      {conv.shape, input.data(), filters.data(), conv.bias ? bias.data() : nullptr, conv.relu});
  std::vector<float> output(reference.value.begin(), reference.value.end());
  output.back() += error;
  check_cuda(cudaMemcpyAsync(conv.output, output.data(), output.size() * sizeof(float),
                             cudaMemcpyHostToDevice, stream),
             "cudaMemcpy");
}

// A trial with its own stream; its runs follow one another.
class OnDevice : public Trial {
 public:
  OnDevice(const Stage& stage, const HostProblem& problem, const Placement& placement = {})
      : Trial(stage, problem, placement) {
    // Not ordered with the default stream, so that a kernel launched there would show.
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  ~OnDevice() { cudaStreamDestroy(stream_); }
  OnDevice(const OnDevice&) = delete;

  cudaStream_t stream() const { return stream_; }

  // Runs the stage over outputs and workspace that hold NaN, and waits for it. In the simulator each
  // run has another order of blocks and threads.
  std::vector<float> run_stage() {
#ifndef CUDART_VERSION
    static uint64_t seed = 0;
    simulator::set_thread_order_seed(seed++);
#endif
    return run_stage(arguments());
  }
  // Runs the stage with other arguments, which speak of this trial's output.
  std::vector<float> run_stage(const Convolution& conv) {
    clear();
    run(stage(), conv, stream_);
    check_cuda(cudaStreamSynchronize(stream_), "the stage");
    return output();
  }

  // Output and workspace as they were before anything ran; done when this returns, since the stage's
  // stream doesn't wait for it.
  void clear() {
    fill_nan();
    check_cuda(cudaDeviceSynchronize(), "clearing");
  }

  void expect_output_untouched() const {
    for (const float y : output()) ASSERT_TRUE(std::isnan(y)) << "the output was written";
  }

  // Nothing but the output and the workspace may have changed.
  void expect_no_damage() const { EXPECT_EQ(damage(), ""); }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace convladder
