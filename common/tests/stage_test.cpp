// The suite that every stage must pass. Linked with one stage at a time; runs where the build's
// kernels run. Every problem is tried twice: by StageOnProblem in seconds, where layouts, bias and
// ReLU take turns from one problem to the next, and by StageInEveryLayout with all of them. What is
// too large is cut down, and its test is called NAME_reduced.
#include <gtest/gtest.h>

#include <climits>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <optional>

#include "common/check/compare.h"
#include "common/check/problems.h"
#include "common/check/test_data.h"
#include "common/core/launch.h"
#include "common/core/stage.h"
#include "common/device/backend.h"
#include "common/tests/device_test.h"
#include "common/tests/groups.h"
#include "common/tests/on_device.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

// Multiply-adds per problem; one that has more is cut down. For StageOnProblem all that are made to be
// nasty stay whole, and on a GPU the reference takes milliseconds; StageInEveryLayout has minutes.
// On a GPU that is the host's time to compare: bench does it for the largest layers, whole.
constexpr double QUICK_MACS = 2e6, QUICK_MACS_ON_GPU = 50e6;
constexpr double SIMULATED_MACS = 10e6, THOROUGH_MACS_ON_GPU = 20e9;
// Up to here every run is repeated with every layout of the buffers, beyond it with one.
constexpr double SMALL_MACS = 3e6;
// Beyond this the reference covers some outputs only (corners, borders, and others at random).
constexpr double FULL_REFERENCE_MACS = 1e9;
constexpr int64_t SAMPLED_OUTPUTS = 4096;

const Stage& stage() { return stages().at(0); }

// What a tile of 32 filters and 32 taps computes, as a multiple of what a small group wants of it.
double tile_waste(const ConvShape& shape) {
  if (shape.groups == 1) return 1;
  return 32.0 / std::min(shape.K, 32) * 32.0 / std::min(shape.CRS(), 32);
}

// What StageOnProblem computes.
ConvArguments quick(const ConvArguments& whole) {
  return reduce(whole,
                on_gpu() ? QUICK_MACS_ON_GPU : QUICK_MACS / tile_waste(make_conv_shape(whole)));
}

// What StageInEveryLayout computes.
ConvArguments affordable(const ConvArguments& whole) {
  return reduce(
      whole, on_gpu() ? THOROUGH_MACS_ON_GPU : SIMULATED_MACS / tile_waste(make_conv_shape(whole)));
}

constexpr Placement LAYOUTS[] = {{{0, 0, 0, 0}, false}, {{1, 1, 1, 1}, true}, {{2, 2, 2, 2}, false},
                                 {{3, 3, 3, 3}, true},  {{0, 1, 2, 3}, true}, {{1, 2, 3, 0}, false},
                                 {{2, 3, 0, 1}, true},  {{3, 0, 1, 2}, false}};

constexpr std::pair<DataKind, const char*> DATA_KINDS[] = {
    {DataKind::kSmallInteger, "small integers"},
    {DataKind::kWideInteger, "wide integers"},
    {DataKind::kUniform, "uniform in [-1, 1)"}};

class StageTest : public DeviceTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(stages().size(), 1u) << "this program must hold one stage";
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

  static Rule rule_for(DataKind kind) {
    return kind == DataKind::kUniform ? Rule::kBounded : Rule::kExact;
  }

  static HostProblem host_problem(const ConvShape& shape, const TestData& data, bool bias,
                                  bool relu) {
    return {shape, data.input.data(), data.filters.data(), bias ? data.bias.data() : nullptr, relu};
  }

  static bool is_small(const ConvShape& shape) {
    return shape.flops() / 2 * tile_waste(shape) <= SMALL_MACS;
  }

  static Reference reference_for(const HostProblem& problem) {
    if (problem.shape.flops() / 2 <= FULL_REFERENCE_MACS) return compute_reference(problem);
    return compute_reference(problem, sample_outputs(problem.shape, SAMPLED_OUTPUTS, 1));
  }

  // One case in one layout: right, nothing else touched, and the same bits in a second run.
  static void check_case(const HostProblem& problem, const Reference& reference, Rule rule,
                         const Placement& layout) {
    SCOPED_TRACE(to_string(layout));
    OnDevice device(stage(), problem, layout);
    const std::vector<float> output = device.run_stage();
    const Comparison result =
        compare(output.data(), problem.shape, reference, rule, error_factor(problem.shape));
    EXPECT_TRUE(result.pass) << result.message;
    if (rule == Rule::kBounded) {  // where the order of additions shows in the last bits
      const std::vector<float> again = device.run_stage();
      EXPECT_EQ(std::memcmp(output.data(), again.data(), output.size() * sizeof(float)), 0)
          << "a second run gave other bits";
    }
    device.expect_no_damage();
  }

  // Each data kind once. `turn` chooses what goes with it: the layout, bias, ReLU, and the GPU.
  static void check_quickly(const ConvShape& shape, std::size_t turn) {
    for (const auto& [kind, kind_name] : DATA_KINDS) {
      const bool bias = turn / 2 % 2 == 0, relu = stage().fuses_relu && turn % 2 == 1;
      SCOPED_TRACE(std::string(kind_name) + (bias ? ", bias" : ", no bias") +
                   (relu ? ", ReLU" : ""));
      const TestData data = make_test_data(shape, kind, 1);
      const HostProblem problem = host_problem(shape, data, bias, relu);
      choose_gpu(turn / 3);
      check_case(problem, reference_for(problem), rule_for(kind),
                 LAYOUTS[turn % std::size(LAYOUTS)]);
      if (HasFailure()) return;
      turn += 3;  // has no factor in common with the number of layouts
    }
  }

  // Small problems: each data kind in every layout, where each layout comes with and without bias, and
  // with and without ReLU. Large ones: each kind with each of the four, while layouts take turns.
  static void check_problem(const ConvShape& shape) {
    std::size_t turn = 0;
    const std::size_t places = is_small(shape) ? std::size(LAYOUTS) : 4;
    for (std::size_t k = 0; k < std::size(DATA_KINDS); ++k) {
      const auto& [kind, kind_name] = DATA_KINDS[k];
      const TestData data = make_test_data(shape, kind, 1);
      std::optional<Reference> references[4];
      for (std::size_t place = 0; place < places; ++place, ++turn) {
        const std::size_t four = (k == 1 ? 3 - place % 4 : place + k) % 4;
        const bool bias = four % 2 == 0, relu = four / 2 == 1 && stage().fuses_relu;
        SCOPED_TRACE(std::string(kind_name) + (bias ? ", bias" : ", no bias") +
                     (relu ? ", ReLU" : ""));
        const HostProblem problem = host_problem(shape, data, bias, relu);
        if (!references[four]) references[four] = reference_for(problem);
        choose_gpu(turn);
        check_case(problem, *references[four], rule_for(kind), LAYOUTS[turn % std::size(LAYOUTS)]);
        if (HasFailure()) return;  // the first failure says it; a large problem has many
      }
    }
  }
};

// Whether the host's memory holds what a test of `shape` needs at its height: empty if it does.
std::string host_memory_shortage(const ConvShape& shape) {
  const double input = shape.input_count(), filters = shape.filter_count();
  const double output = shape.output_count();
  const bool sampled = shape.flops() / 2 > FULL_REFERENCE_MACS;
  const double tensors = sizeof(float) * (input + filters + output);
  double bytes = tensors + sizeof(float) * output;     // the data, the outputs of two runs
  if (!sampled) bytes += 2 * sizeof(double) * output;  // value and magnitude
  if (!on_gpu()) bytes += tensors;                     // the device's memory
  try {
    require_host_memory(bytes);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

// Calls check(shape), or skips the test where memory, the host's or the device's, is short.
template <typename Check>
void with_memory_for(const ConvShape& shape, const Check& check) {
  SCOPED_TRACE(to_string(shape));
  const std::string shortage = host_memory_shortage(shape);
  if (!shortage.empty()) GTEST_SKIP() << shortage;
  try {
    check(shape);
  } catch (const CudaError& error) {
    if (error.code != cudaErrorMemoryAllocation) throw;
    GTEST_SKIP() << error.what();
  }
}

// A problem and its place among all of them.
struct Turn {
  Problem problem;
  std::size_t place;
};
void PrintTo(const Turn& turn, std::ostream* out) { *out << turn.problem.name; }

class StageOnProblem : public StageTest, public testing::WithParamInterface<Turn> {};

TEST_P(StageOnProblem, GivesTheReference) {
  with_memory_for(make_conv_shape(quick(GetParam().problem.arguments)),
                  [](const ConvShape& shape) { check_quickly(shape, GetParam().place); });
}

class StageInEveryLayout : public StageTest, public testing::WithParamInterface<Turn> {};

TEST_P(StageInEveryLayout, GivesTheReference) {
  with_memory_for(make_conv_shape(affordable(GetParam().problem.arguments)), check_problem);
}

std::vector<Turn> problems_in_turn() {
  std::vector<Turn> turns;
  for (const Problem& problem : read_problems(CONVLADDER_PROBLEMS)) {
    turns.push_back({problem, turns.size()});
  }
  return turns;
}

std::string name_of(const Turn& turn, ConvArguments (*cut)(const ConvArguments&)) {
  const ConvArguments& whole = turn.problem.arguments;
  const bool same = multiply_adds(cut(whole)) == multiply_adds(whole);
  return turn.problem.name + (same ? "" : "_reduced");
}

INSTANTIATE_TEST_SUITE_P(Csv, StageOnProblem, testing::ValuesIn(problems_in_turn()),
                         [](const auto& info) { return name_of(info.param, quick); });
INSTANTIATE_TEST_SUITE_P(Csv, StageInEveryLayout, testing::ValuesIn(problems_in_turn()),
                         [](const auto& info) { return name_of(info.param, affordable); });

// Problems whose windows overlap in different ways: one for each of stage 10's paths, and dilated
// windows, which at an edge see the padding beside a border pixel, but not that pixel; in groups; and
// with sums that stage 11 cuts in parts.
std::vector<ConvShape> shapes_for_nan() {
  ConvArguments dilated;
  dilated.n = 3, dilated.c = 3, dilated.h = 19, dilated.w = 23, dilated.k = 21;
  dilated.r = 3, dilated.s = 5, dilated.stride_w = 2, dilated.pad_h = 2, dilated.pad_w = 1;
  dilated.dil_h = 2, dilated.dil_w = 2;
  ConvArguments three, seven, eleven;  // all with 24 outputs per row: whole strips
  three = seven = eleven = dilated;
  three.s = 3, three.stride_w = 1, three.dil_w = 1, three.w = 24;
  seven.s = 7, seven.stride_w = 2, seven.dil_w = 1, seven.w = 51;
  eleven.s = 11, eleven.stride_w = 4, eleven.dil_w = 1, eleven.w = 101;
  ConvArguments grouped = dilated;
  grouped.c = 6, grouped.k = 15, grouped.groups = 3, grouped.pad_w = 2;
  ConvArguments long_sums = grouped;
  long_sums.c = 60, long_sums.h = 9, long_sums.w = 13;
  return {make_conv_shape(dilated), make_conv_shape(three),   make_conv_shape(seven),
          make_conv_shape(eleven),  make_conv_shape(grouped), make_conv_shape(long_sums)};
}

// NaN at the first and last pixels of the middle image, and at one in between.
TestData data_with_nan(const ConvShape& shape) {
  TestData data = make_test_data(shape, DataKind::kUniform, 1);
  const int64_t pitch = shape.input_pitch();
  for (const int64_t i : {INT64_C(0), pitch / 2, pitch - 1}) {
    data.input[pitch + i] = std::nanf("");
  }
  return data;
}

// Small integers are exact in TF32, too; wide ones are not, and are what tells it from FP32.
TEST_F(StageTest, Tf32KeepsARuleOfItsOwn) {
  if (!stage().tf32_name) {
    EXPECT_THROW(in_tf32(stage()), InvalidArgument);
    return;
  }
  const Stage tf32 = in_tf32(stage());
  const std::vector<Problem> problems = read_problems(CONVLADDER_PROBLEMS);
  std::size_t turn = 0;
  for (const char* name :
       {"nasty_primes", "nasty_gemm_k129", "nasty_q129_k127", "nasty_dilation", "nasty_p31",
        "alexnet_conv1", "resnet50_conv1_b64", "vgg16_conv3_2_b32"}) {
    const ConvShape shape = make_conv_shape(quick(find_problem(problems, name).arguments));
    for (const auto& [kind, kind_name] : DATA_KINDS) {
      SCOPED_TRACE(std::string(name) + ", " + kind_name);
      const TestData data = make_test_data(shape, kind, 1);
      const HostProblem problem = host_problem(shape, data, true, turn % 2 == 0);
      const Reference reference = reference_for(problem);
      OnDevice device(tf32, problem, LAYOUTS[turn++ % std::size(LAYOUTS)]);
      const std::vector<float> output = device.run_stage();
      const Rule rule = kind == DataKind::kSmallInteger ? Rule::kExact : Rule::kBounded;
      const double factor = error_factor(shape, Precision::kTf32);
      const Comparison result = compare(output.data(), shape, reference, rule, factor);
      EXPECT_TRUE(result.pass) << result.message;
      if (kind == DataKind::kWideInteger) {
        EXPECT_FALSE(compare(output.data(), shape, reference, Rule::kExact).pass) << "this is FP32";
      }
      device.expect_no_damage();
    }
  }
}

// A NaN in the input must reach the outputs whose windows hold it, through ReLU, too, and no other:
// not by way of padding, of a tile's unused part, or of a neighbouring image.
TEST_F(StageTest, NanReachesItsOutputsAndNoOthers) {
  for (const ConvShape& shape : shapes_for_nan()) {
    const TestData data = data_with_nan(shape);
    for (const bool relu : {false, true}) {
      if (relu && !stage().fuses_relu) continue;
      const HostProblem problem = host_problem(shape, data, true, relu);
      const Reference reference = compute_reference(problem);
      SCOPED_TRACE(to_string(shape) + (relu ? ", ReLU" : ""));
      const std::vector<float> output = OnDevice(stage(), problem).run_stage();
      int64_t nans = 0;
      for (int64_t i = 0; i < shape.output_count(); ++i) {
        ASSERT_EQ(std::isnan(output[i]), std::isnan(reference.value[i])) << "output " << i;
        nans += std::isnan(output[i]);
      }
      EXPECT_GT(nans, 0);
    }
  }
}

// The device's own NaN has all bits of its mantissa: rounding must not carry it over into a zero.
TEST_F(StageTest, NanInAFilterReachesItsOutputs) {
  const ConvShape shape = shapes_for_nan()[1];
  TestData data = make_test_data(shape, DataKind::kUniform, 1);
  const uint32_t all_bits = 0x7fffffff;
  std::memcpy(&data.filters[shape.CRS() / 2], &all_bits, sizeof(all_bits));
  const HostProblem problem = host_problem(shape, data, true, false);
  std::vector<Stage> precisions = {stage()};
  if (stage().tf32_name) precisions.push_back(in_tf32(stage()));
  for (const Stage& precision : precisions) {
    SCOPED_TRACE(precision.name);
    const std::vector<float> output = OnDevice(precision, problem).run_stage();
    const int inside = shape.P() / 2 * shape.Q() + shape.Q() / 2;
    EXPECT_TRUE(std::isnan(output[inside]));
    EXPECT_FALSE(std::isnan(output[shape.PQ() + inside])) << "another filter's";
  }
}

// The channels, filters and outputs of a group are those of a convolution of its own. N > 1, and the
// channels of a group, its filters and the groups are three different numbers.
TEST_F(StageTest, GroupsAreConvolutionsOfTheirOwn) {
  ConvArguments a;
  a.n = 3, a.c = 8, a.h = 9, a.w = 13, a.k = 20, a.groups = 4;
  a.r = 3, a.s = 2, a.stride_w = 2, a.pad_h = 1, a.pad_w = 3;
  const ConvShape shape = make_conv_shape(a);
  const TestData data = make_test_data(shape, DataKind::kSmallInteger, 1);
  const std::vector<float> together =
      OnDevice(stage(), host_problem(shape, data, true, false)).run_stage();
  for (int g = 0; g < shape.groups; ++g) {
    const auto [part, part_data] = group_alone(shape, data, g);
    const HostProblem alone = host_problem(part, part_data, true, false);
    EXPECT_EQ(OnDevice(stage(), alone).run_stage(),
              planes_of_group(together, shape.groups, shape.N, shape.KPQ(), g))
        << "group " << g;
  }
}

// What a wrong argument says, and how it comes about.
struct WrongArgument {
  std::string message;
  std::function<void(Convolution&)> spoil;
};

template <typename T>
void shift_by_one_byte(T*& pointer) {
  pointer = reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(pointer) + 1);
}

// A ConvShape filled in by hand may hold anything.
void add_wrong_extents(std::vector<WrongArgument>& wrong) {
  struct Extent {
    const char* name;
    int ConvShape::*member;
    int least;
  };
  using S = ConvShape;
  for (const auto& [name, member, least] :
       {Extent{"n", &S::N, 1}, Extent{"c", &S::C, 1}, Extent{"h", &S::H, 1}, Extent{"w", &S::W, 1},
        Extent{"k", &S::K, 1}, Extent{"r", &S::R, 1}, Extent{"s", &S::S, 1},
        Extent{"stride_h", &S::stride_h, 1}, Extent{"stride_w", &S::stride_w, 1},
        Extent{"pad_h", &S::pad_h, 0}, Extent{"pad_w", &S::pad_w, 0}, Extent{"dil_h", &S::dil_h, 1},
        Extent{"dil_w", &S::dil_w, 1}, Extent{"groups", &S::groups, 1}}) {
    for (const int value : {least - 1, INT_MIN}) {
      wrong.push_back({std::string(name) + " = " + std::to_string(value) + ":",
                       [member = member, value](Convolution& c) { c.shape.*member = value; }});
    }
  }
}

std::vector<WrongArgument> wrong_arguments(const ConvShape& shape) {
  std::vector<WrongArgument> wrong = {
      {"input is null", [](Convolution& c) { c.input = nullptr; }},
      {"filters is null", [](Convolution& c) { c.filters = nullptr; }},
      {"output is null", [](Convolution& c) { c.output = nullptr; }},
      {"input holds", [](Convolution& c) { c.input_count -= 1; }},
      {"filters holds", [](Convolution& c) { c.filter_count -= 1; }},
      {"bias holds", [](Convolution& c) { c.bias_count -= 1; }},
      {"output holds", [](Convolution& c) { c.output_count -= 1; }},
      {"input is not aligned", [](Convolution& c) { shift_by_one_byte(c.input); }},
      {"filters is not aligned", [](Convolution& c) { shift_by_one_byte(c.filters); }},
      {"bias is not aligned", [](Convolution& c) { shift_by_one_byte(c.bias); }},
      {"output is not aligned", [](Convolution& c) { shift_by_one_byte(c.output); }},
      {"r = 99: the dilated filter spans 99", [](Convolution& c) { c.shape.R = 99; }},
      {"s = 2: the dilated filter spans", [](Convolution& c) { c.shape.dil_w = INT_MAX; }},
      {"h = 2147483647: (h + 2*pad)", [](Convolution& c) { c.shape.H = INT_MAX; }},
      {"w = 8: (w + 2*pad)", [](Convolution& c) { c.shape.pad_w = INT_MAX; }},
      {"one input image, c*h*w:", [](Convolution& c) { c.shape.C = INT_MAX; }},
      {"the filters, k*(c/groups)*r*s:", [](Convolution& c) { c.shape.K = INT_MAX; }},
      {"input holds 432 elements, the problem needs 864",
       [](Convolution& c) { c.shape.groups = 2; }},
      {"input holds 432 elements, the problem needs 463856467752",
       [](Convolution& c) { c.shape.N = INT_MAX; }}};
  add_wrong_extents(wrong);
  if (!stage().fuses_relu) {
    wrong.push_back({"relu = 1", [](Convolution& c) { c.relu = true; }});
  }
  const std::size_t least = stage().workspace_bytes ? stage().workspace_bytes(shape, 0) : 0;
  if (least > 0) {
    wrong.push_back({"workspace holds", [=](Convolution& c) { c.workspace_bytes = least - 1; }});
    wrong.push_back({"workspace holds 0", [](Convolution& c) { c.workspace = nullptr; }});
    wrong.push_back({"workspace is not aligned",
                     [](Convolution& c) { c.workspace = static_cast<char*>(c.workspace) + 128; }});
  }
  return wrong;
}

TEST_F(StageTest, WrongArgumentsLeaveTheOutputAlone) {
  ConvArguments a;
  a.n = 2, a.c = 3, a.h = 9, a.w = 8, a.k = 5, a.r = 3, a.s = 2;
  const ConvShape shape = make_conv_shape(a);
  const TestData data = make_test_data(shape, DataKind::kUniform, 1);
  const HostProblem problem = host_problem(shape, data, true, false);
  const Reference reference = compute_reference(problem);
  const std::vector<WrongArgument> all = wrong_arguments(shape);
  EXPECT_GE(all.size(), 30u);
  RecordProperty("cases", static_cast<int>(all.size()));
  for (const WrongArgument& wrong : all) {
    SCOPED_TRACE(wrong.message);
    OnDevice device(stage(), problem);
    Convolution spoiled = device.arguments();
    wrong.spoil(spoiled);
    const std::string message =
        message_of<InvalidArgument>([&] { run(stage(), spoiled, nullptr); });
    EXPECT_EQ(message.rfind(wrong.message, 0), 0u) << message;
    check_cuda(cudaDeviceSynchronize(), "after the rejected call");
    device.expect_output_untouched();
    device.expect_no_damage();
    // The next call is none the worse for it.
    const std::vector<float> output = device.run_stage();
    const Comparison result = compare(output.data(), shape, reference, Rule::kBounded);
    EXPECT_TRUE(result.pass) << result.message;
  }
}

}  // namespace
}  // namespace convladder
