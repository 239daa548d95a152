// The suite that every stage must pass. Linked with one stage at a time; runs where the build's
// kernels run. Every problem is tried twice: by StageOnProblem in seconds, where layouts, bias and
// ReLU take turns from one problem to the next, and by StageInEveryLayout with all of them. What is
// too large is cut down, and its test is called NAME_reduced.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "common/tests/support.h"

namespace convladder {
namespace {

// Multiply-adds per problem; one that has more is cut down. For StageOnProblem all that are made to be
// nasty stay whole, and on a GPU the reference takes milliseconds; StageInEveryLayout has minutes.
// On a GPU that is the host's time to compare: bench does it for the largest layers, whole.
constexpr double QUICK_MACS = 1e6, QUICK_MACS_ON_GPU = 50e6;
constexpr double SIMULATED_MACS = 10e6, THOROUGH_MACS_ON_GPU = 20e9;
// Up to here every run is repeated with every layout of the buffers, beyond it with one.
constexpr double SMALL_MACS = 3e6;

const Stage& stage() { return tested_stage(); }

// What is computed of a problem, as a multiple of what it asks for. (A stage for small groups has no large tiles.)
double waste(const ConvShape& shape) { return stage().wants ? 1 : tile_waste(shape); }

ConvArguments cut(const ConvArguments& whole, double simulated, double on_a_gpu) {
  return reduce(whole, on_gpu() ? on_a_gpu : simulated / waste(make_conv_shape(whole)));
}
// What StageOnProblem computes.
ConvArguments quick(const ConvArguments& whole) {
  return cut(whole, QUICK_MACS, QUICK_MACS_ON_GPU);
}
// What StageInEveryLayout computes.
ConvArguments affordable(const ConvArguments& whole) {
  return cut(whole, SIMULATED_MACS, THOROUGH_MACS_ON_GPU);
}

constexpr Placement LAYOUTS[] = {{{0, 0, 0, 0}, false}, {{1, 1, 1, 1}, true}, {{2, 2, 2, 2}, false},
                                 {{3, 3, 3, 3}, true},  {{0, 1, 2, 3}, true}, {{1, 2, 3, 0}, false},
                                 {{2, 3, 0, 1}, true},  {{3, 0, 1, 2}, false}};

std::string to_string(const Placement& placement) {
  std::string text = "tensors off alignment by";
  for (const int offset : placement.offsets) text += " " + std::to_string(offset);
  return text + " floats" + (placement.least_workspace ? ", least workspace" : "");
}

class StageTest : public DeviceTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(std::string(stage().name).rfind(stages().at(0).name, 0), 0u)
        << "another stage's tests";
    DeviceTest::SetUp();
  }
  void TearDown() override { choose_gpu(0); }

  // GPUs of three sizes take turns in the simulator: stage 11 plans by their multiprocessors. On a
  // small one it takes its large tiles for small problems.
  static void choose_gpu(std::size_t turn) {
#ifndef CUDART_VERSION
    constexpr int MULTIPROCESSORS[] = {132, 4, 1};
    simulator::set_multiprocessors(MULTIPROCESSORS[turn % std::size(MULTIPROCESSORS)]);
#endif
    static_cast<void>(turn);
  }

  static bool is_small(const ConvShape& shape) {
    return shape.flops() / 2 * waste(shape) <= SMALL_MACS;
  }

  // One case: right, nothing else touched, and the same bits in a second run.
  static void check_case(const ConvShape& shape, DataKind kind, const TestData& data, bool bias,
                         bool relu, const Placement& layout) {
    SCOPED_TRACE(to_string(kind) + std::string(bias ? ", bias" : ", no bias") +
                 (relu ? ", ReLU, " : ", ") + to_string(layout));
    const HostProblem problem = host_problem(shape, data, bias, relu);
    const Reference reference = affordable_reference(problem, 1);
    OnDevice device(stage(), problem, layout);
    const std::vector<float> output = device.run_stage();
    const Comparison result =
        check_output(device, output, reference, rule_for(kind, stage().precision));
    EXPECT_TRUE(result.pass) << result.message;
    if (kind == DataKind::kUniform) {  // where the order of additions shows in the last bits
      const std::vector<float> again = device.run_stage();
      EXPECT_EQ(std::memcmp(output.data(), again.data(), output.size() * sizeof(float)), 0)
          << "a second run gave other bits";
    }
    device.expect_no_damage();
  }

  // Each data kind once, or one of them. `place` chooses what goes with it: the layout, bias, ReLU, and the GPU.
  static void check_quickly(const ConvShape& shape, std::size_t place) {
    constexpr std::size_t KINDS = std::size(DATA_KINDS);
    const std::size_t first = in_turns() ? place % KINDS : 0;
    const std::size_t end = in_turns() ? first + 1 : KINDS;
    for (std::size_t k = first; k < end; ++k) {
      const std::size_t turn = place + 3 * k;  // has no factor in common with the number of layouts
      const DataKind kind = DATA_KINDS[k];
      const bool bias = turn / 2 % 2 == 0, relu = stage().fuses_relu && turn % 2 == 1;
      choose_gpu(turn / 3);
      check_case(shape, kind, make_test_data(shape, kind, 1), bias, relu,
                 LAYOUTS[turn % std::size(LAYOUTS)]);
      if (HasFailure()) return;
    }
  }

  // Small problems: each data kind in every layout, where each layout comes with and without bias, and
  // with and without ReLU. Large ones: each kind with each of the four, while layouts take turns.
  static void check_problem(const ConvShape& shape) {
    std::size_t turn = 0;
    const std::size_t places = is_small(shape) ? std::size(LAYOUTS) : 4;
    for (std::size_t k = 0; k < std::size(DATA_KINDS); ++k) {
      const DataKind kind = DATA_KINDS[k];
      const TestData data = make_test_data(shape, kind, 1);
      for (std::size_t place = 0; place < places; ++place, ++turn) {
        const std::size_t four = (k == 1 ? 3 - place % 4 : place + k) % 4;
        const bool bias = four % 2 == 0, relu = four / 2 == 1 && stage().fuses_relu;
        choose_gpu(turn);
        check_case(shape, kind, data, bias, relu, LAYOUTS[turn % std::size(LAYOUTS)]);
        if (HasFailure()) return;  // the first failure says it; a large problem has many
      }
    }
  }
};

const std::vector<Problem>& problems() {
  static const std::vector<Problem> all = read_problems(CONVLADDER_PROBLEMS);
  return all;
}

// The problem at that place.
class StageOnProblem : public StageTest, public testing::WithParamInterface<std::size_t> {};

TEST_P(StageOnProblem, GivesTheReference) {
  with_memory_for(suited(make_conv_shape(quick(problems()[GetParam()].arguments)), stage()),
                  [](const ConvShape& shape) { check_quickly(shape, GetParam()); });
}

class StageInEveryLayout : public StageTest, public testing::WithParamInterface<std::size_t> {};

TEST_P(StageInEveryLayout, GivesTheReference) {
  with_memory_for(suited(make_conv_shape(affordable(problems()[GetParam()].arguments)), stage()),
                  check_problem);
}

std::string name_of(std::size_t place, ConvArguments (*cut)(const ConvArguments&)) {
  const auto& [name, whole, bias] = problems()[place];
  return name + (multiply_adds(cut(whole)) == multiply_adds(whole) ? "" : "_reduced");
}

INSTANTIATE_TEST_SUITE_P(Csv, StageOnProblem,
                         testing::ValuesIn(places_for(tested_stage(), is_further_form(),
                                                      problems().size())),
                         [](const auto& info) { return name_of(info.param, quick); });
INSTANTIATE_TEST_SUITE_P(Csv, StageInEveryLayout, testing::Range(std::size_t{0}, problems().size()),
                         [](const auto& info) { return name_of(info.param, affordable); });

// Problems whose windows overlap in different ways: one for each of stage 10's paths, and dilated
// windows, which at an edge see the padding beside a border pixel, but not that pixel; in groups; and
// with sums that stage 11 cuts in parts.
constexpr const char* SHAPES_FOR_NAN[] = {
    "n=3 c=3 h=19 w=23 k=21 r=3 s=5 stride_w=2 pad_h=2 pad_w=1 dil_h=dil_w=2",
    "n=3 c=3 h=19 w=23 k=21 r=s=3 pad_h=2 pad_w=1",
    // 24 outputs in each row: whole strips.
    "n=3 c=3 h=19 w=24 k=21 r=3 s=3 pad_h=2 pad_w=1 dil_h=2",
    "n=3 c=3 h=19 w=51 k=21 r=3 s=7 stride_w=2 pad_h=2 pad_w=1 dil_h=2",
    "n=3 c=3 h=19 w=101 k=21 r=3 s=11 stride_w=4 pad_h=2 pad_w=1 dil_h=2",
    "n=3 c=6 h=19 w=23 k=15 r=3 s=5 stride_w=2 pad_h=pad_w=2 dil_h=dil_w=2 groups=3",
    "n=3 c=60 h=9 w=13 k=15 r=3 s=5 stride_w=2 pad_h=pad_w=2 dil_h=dil_w=2 groups=3",
    // Groups so small that several have room in a tile.
    "n=3 c=48 h=9 w=13 k=48 r=s=3 pad_h=pad_w=1 groups=24",
    // Windows four rows apart, with NaN in the row behind the last window, and planes of whole tiles.
    "n=3 c=3 h=42 w=45 k=21 r=7 s=11 stride_h=stride_w=4 pad_h=2 pad_w=1",
    "n=3 c=6 h=31 w=45 k=14 r=7 s=7 stride_h=stride_w=4 pad_h=pad_w=1 groups=2",
    "n=3 c=64 h=w=16 k=9",
    // Planes whose last tile has the next group's channels, or the next image's.
    "n=3 c=40 h=w=16 k=10 groups=2", "n=3 c=20 h=8 w=16 k=9"};

// NaN at the first and last pixels of the middle image, and at one in between; some weights are 0, and 0 times NaN
// is NaN.
// A pixel of the first channel that the output in the middle multiplies: with strides, not all are.
int64_t pixel_of_a_window(const ConvShape& shape) {
  const auto first_inside = [](int corner, int dilation, int taps, int extent) {
    for (int tap = 0; tap < taps; ++tap) {
      if (corner + tap * dilation >= 0 && corner + tap * dilation < extent)
        return corner + tap * dilation;
    }
    return 0;
  };
  return int64_t{first_inside(shape.P() / 2 * shape.stride_h - shape.pad_h, shape.dil_h, shape.R,
                              shape.H)} *
             shape.W +
         first_inside(shape.Q() / 2 * shape.stride_w - shape.pad_w, shape.dil_w, shape.S, shape.W);
}

TestData data_with(float value, const ConvShape& shape) {
  TestData data = make_test_data(shape, DataKind::kUniform, 1);
  for (int64_t i = 1; i < shape.filter_count(); i += 3) data.filters[i] = 0;
  const int64_t pitch = shape.input_pitch();
  for (const int64_t i : {INT64_C(0), pitch / 2, pitch - 1, pixel_of_a_window(shape)}) {
    data.input[(shape.N > 1 ? pitch : 0) + i] = value;
  }
  return data;
}

// More than the problems here have.
TEST_F(StageTest, ManyGroups) {
  const ConvShape shape = suited(shape_of("c=260 h=w=4 k=260 r=s=2 groups=130"), stage());
  const TestData data = make_test_data(shape, DataKind::kSmallInteger, 1);
  const HostProblem problem = host_problem(shape, data);
  const std::vector<float> output = OnDevice(stage(), problem).run_stage();
  const Comparison result = compare(output.data(), shape, compute_reference(problem), Rule::kExact);
  EXPECT_TRUE(result.pass) << result.message;
}

// In TF32 they are not exact: a stage that computes so must say so.
TEST_F(StageTest, WideIntegersAreExactInFp32) {
  if (stage().precision != Precision::kFp32) GTEST_SKIP() << "in TF32 they need not be";
  const ConvShape shape =
      suited(make_conv_shape(find_problem(problems(), "nasty_primes").arguments), stage());
  const TestData data = make_test_data(shape, DataKind::kWideInteger, 1);
  const HostProblem problem = host_problem(shape, data);
  const std::vector<float> output = OnDevice(stage(), problem).run_stage();
  const Comparison result = compare(output.data(), shape, compute_reference(problem), Rule::kExact);
  EXPECT_TRUE(result.pass) << result.message;
}

// Factors that are hard to cut in TF32 numbers of 11 bits: all from 1 to 2 with 12 bits behind the point,
// and all less up to three float32 bits, each times each of the worst. One product an output: no sum hides its
// error. To tensor cores a factor below 2^-113 is one of 2^-113: see Stage::tensor_cores.
TEST_F(StageTest, FactorsThatAreHardToCut) {
  constexpr int EXPONENTS[][2] = {{0, 0},      {-113, 113}, {113, -113}, {-120, 120},
                                  {120, -120}, {-120, 0},   {60, 60},    {-60, -40}};
  constexpr float HALF = 1.0f / 2048, BIT = 1.0f / 8388608;
  const std::vector<float> worst = {
      1,
      1 + HALF,
      1 + HALF - BIT,
      1 + HALF - 3 * BIT,
      1 + HALF + BIT,
      1 + HALF / 2,
      1 + HALF / 2 - BIT,
      1 + 3 * HALF,
      1 + 3 * HALF - BIT,
      1 + 3 * HALF - 2 * BIT,
      1 + 3 * HALF - 3 * BIT,
      1 + 3 * HALF + BIT,
      1 + 3 * HALF / 2 + BIT,
      1.5f + HALF - BIT,
      2 - HALF,
      2 - HALF - BIT,
      2 - HALF / 2 - BIT,
      2 - BIT,
  };
  ConvArguments arguments;
  arguments.h = arguments.w = 64, arguments.k = static_cast<int64_t>(worst.size());
  const ConvShape shape = make_conv_shape(arguments);
  if (stage().wants && stage().wants(shape)) GTEST_SKIP() << "not for filters of one tap";
  const bool keeps_fp32 = stage().tensor_cores && stage().precision == FP32;
  double largest_error = 0;
  for (const auto& [a, b] : EXPONENTS) {
    const int below = keeps_fp32 ? std::max(-113 - a, 0) + std::max(-113 - b, 0) : 0;
    const double factor = std::ldexp(error_factor(shape, stage().precision), below);
    for (const float less : {0.0f, BIT, 2 * BIT, 3 * BIT}) {
      TestData data = make_test_data(shape, DataKind::kUniform, 1);
      for (int i = 0; i < 64 * 64; ++i) {
        const float x = 1 + i * HALF / 2 - (i > 0 ? less : 0);
        data.input[i] = std::ldexp(i % 3 ? x : -x, a);
      }
      for (std::size_t k = 0; k < worst.size(); ++k) data.filters[k] = std::ldexp(worst[k], b);
      const HostProblem problem = host_problem(shape, data, false);
      const std::vector<float> output = OnDevice(stage(), problem).run_stage();
      const Comparison result =
          compare(output.data(), shape, compute_reference(problem), Rule::kBounded, factor);
      EXPECT_TRUE(result.pass) << "2^" << a << " by 2^" << b << ": " << result.message;
      largest_error = std::max(largest_error, result.max_error_ratio);
    }
  }
  RecordProperty("largest_error", std::to_string(largest_error));
}

// No number of fewer bits stands in between: those of 16 end at 65,504, and at 2^-24.
TEST_F(StageTest, LargeAndSmallValues) {
  const ConvShape shape = suited(shape_of(SHAPES_FOR_NAN[2]), stage());
  for (const int exponent : {-60, -20, 20, 60}) {
    TestData data = make_test_data(shape, DataKind::kUniform, 1);
    for (float& value : data.input) value = std::ldexp(value, exponent);
    for (float& value : data.filters) value = std::ldexp(value, -exponent);
    const HostProblem problem = host_problem(shape, data);
    const std::vector<float> output = OnDevice(stage(), problem).run_stage();
    const Comparison result = compare(output.data(), shape, compute_reference(problem),
                                      Rule::kBounded, error_factor(shape, stage().precision));
    EXPECT_TRUE(result.pass) << "the input times 2^" << exponent << ": " << result.message;
  }
}

// A NaN in the input must reach the outputs whose windows hold it, through ReLU, too, and no other:
// not by way of padding, of a tile's unused part, or of a neighbouring image.
TEST_F(StageTest, NanReachesItsOutputsAndNoOthers) {
  const double tolerance = stage().precision == FP32 ? 1e-3 : 5e-2;
  for (const char* extents : SHAPES_FOR_NAN) {
    const ConvShape shape = suited(shape_of(extents), stage());
    const TestData data = data_with(NAN, shape);
    for (const bool relu : {false, true}) {
      if (relu && !stage().fuses_relu) continue;
      const HostProblem problem = host_problem(shape, data, true, relu);
      const Reference reference = compute_reference(problem);
      SCOPED_TRACE(to_string(shape) + (relu ? ", ReLU" : ""));
      const std::vector<float> output = OnDevice(stage(), problem).run_stage();
      int64_t nans = 0;
      for (int64_t i = 0; i < shape.output_count(); ++i) {
        ASSERT_EQ(std::isnan(output[i]), std::isnan(reference.value[i])) << "output " << i;
        // What a stage computes again where another group's NaN came in has its right value, too.
        if (!std::isnan(output[i])) {
          ASSERT_NEAR(output[i], reference.value[i], tolerance) << i;
        }
        nans += std::isnan(output[i]);
      }
      EXPECT_GT(nans, 0);
    }
  }
}

// It may become NaN on the way, and so may a sum of it and of its opposite.
TEST_F(StageTest, InfinityReachesItsOutputsAndNoOthers) {
  const double tolerance = stage().precision == FP32 ? 1e-3 : 5e-2;
  for (const char* extents : SHAPES_FOR_NAN) {
    const ConvShape shape = suited(shape_of(extents), stage());
    const TestData data = data_with(INFINITY, shape);
    const HostProblem problem = host_problem(shape, data);
    const Reference reference = compute_reference(problem);
    SCOPED_TRACE(to_string(shape));
    const std::vector<float> output = OnDevice(stage(), problem).run_stage();
    for (int64_t i = 0; i < shape.output_count(); ++i) {
      ASSERT_EQ(std::isfinite(output[i]), std::isfinite(reference.value[i])) << "output " << i;
      if (std::isfinite(output[i])) {
        ASSERT_NEAR(output[i], reference.value[i], tolerance) << i;
      }
    }
  }
}

TEST_F(StageTest, NanInTheBiasReachesItsOutputs) {
  const ConvShape shape = suited(shape_of(SHAPES_FOR_NAN[1]), stage());
  TestData data = make_test_data(shape, DataKind::kUniform, 1);
  data.bias[1] = NAN;
  const HostProblem problem = host_problem(shape, data);
  const std::vector<float> output = OnDevice(stage(), problem).run_stage();
  for (int64_t i = 0; i < shape.output_count(); ++i) {
    ASSERT_EQ(std::isnan(output[i]), i / shape.PQ() % shape.total_K() == 1) << "output " << i;
  }
}

// The device's own NaN has all bits of its mantissa: rounding must not carry it over into a zero.
TEST_F(StageTest, NanInAFilterReachesItsOutputs) {
  const ConvShape shape = suited(shape_of(SHAPES_FOR_NAN[1]), stage());
  TestData data = make_test_data(shape, DataKind::kUniform, 1);
  const uint32_t all_bits = 0x7fffffff;
  std::memcpy(&data.filters[shape.CRS() / 2], &all_bits, sizeof(all_bits));
  const HostProblem problem = host_problem(shape, data);
  const std::vector<float> output = OnDevice(stage(), problem).run_stage();
  const int inside = shape.P() / 2 * shape.Q() + shape.Q() / 2;
  EXPECT_TRUE(std::isnan(output[inside]));
  EXPECT_FALSE(std::isnan(output[shape.PQ() + inside])) << "another filter's";
}

}  // namespace
}  // namespace convladder
