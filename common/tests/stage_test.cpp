// The suite that every stage must pass. Linked with one stage at a time; runs where the build's
// kernels run. On a GPU every problem has its full size; in the simulator large ones are cut down,
// and their tests are called NAME_reduced.
#include <gtest/gtest.h>

#include <climits>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>

#include "common/check/compare.h"
#include "common/check/problems.h"
#include "common/check/test_data.h"
#include "common/core/filter_tiles.h"
#include "common/core/launch.h"
#include "common/core/stage.h"
#include "common/harness/backend.h"
#include "common/tests/device_test.h"
#include "common/tests/on_device.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

// In the simulator: multiply-adds per problem, so that a suite takes about a minute on two cores.
constexpr double SIMULATED_MACS = 25e6;
// Up to here every run is repeated with every layout of the buffers, beyond it with one.
constexpr double SMALL_MACS = 3e6;
// Beyond this the reference covers some outputs only (corners, borders, and others at random).
constexpr double FULL_REFERENCE_MACS = 1e9;
constexpr int64_t SAMPLED_OUTPUTS = 4096;

const Stage& stage() { return stages().at(0); }

ConvArguments affordable(const ConvArguments& arguments) {
  return on_gpu() ? arguments : reduce(arguments, SIMULATED_MACS);
}

constexpr Layout LAYOUTS[] = {{0, 0, 0, 0, false}, {1, 1, 1, 1, true}, {2, 2, 2, 2, false},
                              {3, 3, 3, 3, true},  {0, 1, 2, 3, true}, {1, 2, 3, 0, false},
                              {2, 3, 0, 1, true},  {3, 0, 1, 2, false}};

// Filters per thread of stages with filter tiles; 0: the stage's choice, which is seldom 12 or 16.
constexpr int TILES[] = {0, 4, 8, 12, 16};

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

  static Rule rule_for(DataKind kind) {
    return kind == DataKind::kUniform ? Rule::kBounded : Rule::kExact;
  }

  static HostProblem host_problem(const ConvShape& shape, const TestData& data, bool bias,
                                  bool relu) {
    return {shape, data.input.data(), data.filters.data(), bias ? data.bias.data() : nullptr, relu};
  }

  static bool is_small(const ConvShape& shape) { return shape.flops() / 2 <= SMALL_MACS; }

  static Reference reference_for(const HostProblem& problem) {
    if (problem.shape.flops() / 2 <= FULL_REFERENCE_MACS) return compute_reference(problem);
    return compute_reference(problem, sample_outputs(problem.shape, SAMPLED_OUTPUTS, 1));
  }

  // Whether the host's memory holds what a test of `shape` needs at its height: empty if it does.
  static std::string host_memory_shortage(const ConvShape& shape) {
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

  void TearDown() override {
    fixed_filters_per_thread = 0;
    DeviceTest::TearDown();
  }

  // One case in one layout: right, nothing else touched, and the same bits in a second run.
  static void check_case(const HostProblem& problem, const Reference& reference, Rule rule,
                         const Layout& layout) {
    SCOPED_TRACE(to_string(layout) +
                 ", filters per thread: " + std::to_string(fixed_filters_per_thread));
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

  // All data kinds, with and without bias and ReLU. Small problems see every layout; large ones one
  // after the other. The tiles take turns.
  static void check_problem(const ConvShape& shape) {
    std::size_t next_layout = 0, next_tile = 0;
    for (const auto& [kind, kind_name] : DATA_KINDS) {
      const TestData data = make_test_data(shape, kind, 1);
      for (const bool bias : {true, false}) {
        for (const bool relu : {false, true}) {
          if (relu && !stage().fuses_relu) continue;
          SCOPED_TRACE(std::string(kind_name) + (bias ? ", bias" : ", no bias") +
                       (relu ? ", ReLU" : ""));
          const HostProblem problem = host_problem(shape, data, bias, relu);
          const Reference reference = reference_for(problem);
          for (const Layout& layout : LAYOUTS) {
            const bool its_turn = &layout == &LAYOUTS[next_layout % std::size(LAYOUTS)];
            if (!is_small(shape) && !its_turn) continue;
            fixed_filters_per_thread = TILES[next_tile++ % std::size(TILES)];
            check_case(problem, reference, rule_for(kind), layout);
            if (HasFailure()) return;  // the first failure says it; a large problem has many
          }
          ++next_layout;
        }
      }
    }
  }
};

class StageOnProblem : public StageTest, public testing::WithParamInterface<Problem> {};

TEST_P(StageOnProblem, GivesTheReference) {
  const ConvShape shape = make_conv_shape(affordable(GetParam().arguments));
  SCOPED_TRACE(to_string(shape));
  const std::string shortage = host_memory_shortage(shape);
  if (!shortage.empty()) GTEST_SKIP() << shortage;
  try {
    check_problem(shape);
  } catch (const CudaError& error) {
    if (error.code != cudaErrorMemoryAllocation) throw;
    GTEST_SKIP() << error.what();
  }
}

std::string test_name(const testing::TestParamInfo<Problem>& info) {
  const ConvArguments& whole = info.param.arguments;
  const bool same = multiply_adds(affordable(whole)) == multiply_adds(whole);
  return info.param.name + (same ? "" : "_reduced");
}

INSTANTIATE_TEST_SUITE_P(Csv, StageOnProblem, testing::ValuesIn(read_problems(CONVLADDER_PROBLEMS)),
                         test_name);

// Problems whose windows overlap in different ways: one for each of stage 05's paths, and dilated
// windows, which at an edge see the padding beside a border pixel, but not that pixel.
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
  return {make_conv_shape(dilated), make_conv_shape(three), make_conv_shape(seven),
          make_conv_shape(eleven)};
}

// NaN at the first and last pixels of the middle image, and at one in between.
TestData data_with_nan(const ConvShape& shape) {
  TestData data = make_test_data(shape, DataKind::kUniform, 1);
  for (const int64_t i : {0, shape.CHW() / 2, shape.CHW() - 1}) {
    data.input[shape.CHW() + i] = std::nanf("");
  }
  return data;
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
      for (const int filters : TILES) {
        SCOPED_TRACE(to_string(shape) + (relu ? ", ReLU" : "") +
                     ", filters per thread: " + std::to_string(filters));
        fixed_filters_per_thread = filters;
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
        Extent{"dil_w", &S::dil_w, 1}}) {
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
      {"the filters, k*c*r*s:", [](Convolution& c) { c.shape.K = INT_MAX; }},
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
