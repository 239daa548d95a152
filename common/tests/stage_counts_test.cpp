// The stages under observation: free of bugs in every order of their threads, and stage 01's counts
// as its definition has them.
#include "common/tests/stage_counts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>

#include "common/check/test_data.h"
#include "common/core/filter_tiles.h"
#include "common/core/launch.h"
#include "common/tests/support.h"

namespace convladder {

using simulator::KernelCounts;

std::vector<Problem> counted_problems() {
  return read_problems(CONVLADDER_SOURCE_DIR "/common/tests/data/counted_problems.csv");
}

std::vector<KernelCounts> count_stage(const Stage& stage, const Problem& problem,
                                      const Placement& placement) {
  const ConvShape shape = make_conv_shape(problem.arguments);
  const TestData data = make_test_data(shape, DataKind::kUniform, 1);
  const HostProblem host{shape, data.input.data(), data.filters.data(),
                         problem.bias ? data.bias.data() : nullptr, false};
  const Trial trial(stage, host, placement);
  simulator::take_kernel_counts();
  trial.enqueue();
  trial.wait();
  const Reference reference = affordable_reference(host, 1);
  const Comparison result =
      judge(trial, trial.output(), host, reference, Rule::kBounded, error_factor(shape));
  EXPECT_TRUE(result.pass) << stage.name << ": " << result.message;
  return simulator::take_kernel_counts();
}

namespace {

constexpr double SMALL_MACS = 2e6, MEDIUM_MACS = 10e6;

bool is_small(const Problem& problem) { return multiply_adds(problem.arguments) <= SMALL_MACS; }

class StageCounts : public testing::TestWithParam<Problem> {
 protected:
  void TearDown() override { simulator::set_thread_order_seed(0); }
};

class StagesOffAlignment : public StageCounts {};

class TileCounts : public testing::TestWithParam<Problem> {
 protected:
  void TearDown() override {
    simulator::set_thread_order_seed(0);
    fixed_filters_per_thread = 0;
  }
};

class NaiveCounts : public testing::TestWithParam<Problem> {};

// A bug would be reported as a CudaError. The counts don't depend on the order.
TEST_P(StageCounts, CleanAndTheSameInEveryOrder) {
  for (const Stage& stage : stages()) {
    SCOPED_TRACE(stage.name);
    simulator::set_thread_order_seed(0);
    const std::vector<KernelCounts> in_order = count_stage(stage, GetParam());
    if (!is_small(GetParam())) continue;
    for (const uint64_t seed : {1, 2, 3}) {
      simulator::set_thread_order_seed(seed);
      const std::vector<KernelCounts> shuffled = count_stage(stage, GetParam());
      ASSERT_EQ(shuffled.size(), in_order.size());
      for (std::size_t i = 0; i < in_order.size(); ++i) {
        EXPECT_EQ(metrics(shuffled[i]), metrics(in_order[i])) << in_order[i].kernel;
      }
    }
  }
}

// Tensors need no more than the alignment of a float.
TEST_P(StagesOffAlignment, Clean) {
  for (const Stage& stage : stages()) {
    SCOPED_TRACE(stage.name);
    count_stage(stage, GetParam(), {{1, 2, 3, 2}, false});
    count_stage(stage, GetParam(), {{2, 3, 1, 3}, true});
  }
}

// With every number of filters per thread, of which most are for problems that are too large here.
TEST_P(TileCounts, Clean) {
  for (const Stage& stage : stages()) {
    if (!has_filter_tiles(stage)) continue;
    for (const int filters : {4, 8, 12, 16}) {
      SCOPED_TRACE(std::string(stage.name) + ", filters per thread: " + std::to_string(filters));
      fixed_filters_per_thread = filters;
      simulator::set_thread_order_seed(0);
      count_stage(stage, GetParam());
      simulator::set_thread_order_seed(1);
      count_stage(stage, GetParam(), {{0, 1, 2, 3}, true});
    }
  }
}

// One problem for each of stage 05's paths, with more filters than the largest tile holds.
std::vector<Problem> tile_problems() {
  ConvArguments a;
  a.n = 2, a.c = 3, a.k = 130, a.h = 9, a.r = 3, a.pad_h = 1;
  Problem three{"filters_3_wide", a}, seven{"filters_7_wide", a}, eleven{"filters_11_wide", a};
  Problem any{"any_filters", a};
  three.arguments.w = 24, three.arguments.s = 3, three.arguments.pad_w = 1;
  seven.arguments.w = 47, seven.arguments.s = 7, seven.arguments.pad_w = 3;
  seven.arguments.stride_w = 2;
  eleven.arguments.w = 99, eleven.arguments.s = 11, eleven.arguments.pad_w = 2;
  eleven.arguments.stride_w = 4;
  any.arguments.w = 21, any.arguments.s = 2, any.arguments.pad_w = 1, any.arguments.dil_w = 3;
  return {three, seven, eleven, any};
}

// Requests and sectors of one tensor, when each of `addresses` (by lane, -1: none) is asked for.
void add_request(const std::array<int64_t, 32>& addresses, int64_t& requests, int64_t& sectors) {
  std::set<int64_t> touched;
  for (const int64_t address : addresses) {
    if (address >= 0) touched.insert(address / 8);
  }
  requests += !touched.empty();
  sectors += static_cast<int64_t>(touched.size());
}

// Stage 01 by its definition: warp by warp, tap by tap.
TEST_P(NaiveCounts, AreWhatTheDefinitionSays) {
  constexpr int THREADS = 256;
  const ConvShape s = make_conv_shape(GetParam().arguments);
  int64_t requests = 0, sectors = 0;
  const int padded = (s.KPQ() + THREADS - 1) / THREADS * THREADS;
  for (int n = 0; n < s.N; ++n) {
    for (int first = 0; first < padded; first += 32) {
      for (int crs = 0; crs < s.CRS(); ++crs) {
        std::array<int64_t, 32> image, filter;
        for (int lane = 0; lane < 32; ++lane) {
          const int kpq = first + lane, q = kpq % s.Q(), p = kpq / s.Q() % s.P();
          const int h = p * s.stride_h - s.pad_h + crs / s.S % s.R * s.dil_h;
          const int w = q * s.stride_w - s.pad_w + crs % s.S * s.dil_w;
          const bool inside = kpq < s.KPQ() && h >= 0 && h < s.H && w >= 0 && w < s.W;
          const int c = crs / (s.R * s.S), k = kpq / s.PQ();
          image[lane] = inside ? n * int64_t{s.CHW()} + (c * s.H + h) * s.W + w : -1;
          filter[lane] = inside ? int64_t{k} * s.CRS() + crs : -1;
        }
        add_request(image, requests, sectors);
        add_request(filter, requests, sectors);
      }
    }
  }
  const KernelCounts counts = count_stage(find_stage("01_naive"), GetParam()).at(0);
  EXPECT_EQ(counts.kernel, "conv2d_naive");
  EXPECT_EQ(counts.load.requests, requests);
  EXPECT_EQ(counts.load.sectors, sectors);
}

std::vector<Problem> problems_up_to(double macs) {
  std::vector<Problem> problems = counted_problems();
  const auto large = [=](const Problem& problem) {
    return multiply_adds(problem.arguments) > macs;
  };
  problems.erase(std::remove_if(problems.begin(), problems.end(), large), problems.end());
  return problems;
}

std::string name_of(const testing::TestParamInfo<Problem>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Problems, StageCounts, testing::ValuesIn(counted_problems()), name_of);
INSTANTIATE_TEST_SUITE_P(Problems, StagesOffAlignment,
                         testing::ValuesIn(problems_up_to(MEDIUM_MACS)), name_of);
INSTANTIATE_TEST_SUITE_P(Problems, TileCounts, testing::ValuesIn(tile_problems()), name_of);
INSTANTIATE_TEST_SUITE_P(Problems, NaiveCounts, testing::ValuesIn(problems_up_to(SMALL_MACS)),
                         name_of);

}  // namespace
}  // namespace convladder
