// The stages under observation: free of bugs in every order of their threads, and stage 01's counts as
// its definition has them. On small problems in seconds; on layers, and in more orders, in minutes.
// readings_test.py holds the counts against Nsight Compute's.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "common/check/problems.h"
#include "common/check/test_data.h"
#include "common/check/trial.h"
#include "common/core/launch.h"
#include "common/core/stage.h"
#include "common/simulator/counts.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

using simulator::KernelCounts;

std::vector<Problem> counted_problems() {
  return read_problems(CONVLADDER_SOURCE_DIR "/common/tests/data/counted_problems.csv");
}

// Runs the stage once on random data, under observation, and checks the result.
std::vector<KernelCounts> count_stage(const Stage& stage, const Problem& problem,
                                      const Placement& placement = {}) {
  const ConvShape shape = suited(make_conv_shape(problem.arguments), stage);
  const TestData data = make_test_data(shape, DataKind::kUniform, 1);
  const HostProblem host = host_problem(shape, data, problem.bias);
  const Trial trial(stage, host, placement);
  simulator::take_kernel_counts();
  trial.enqueue();
  trial.wait();
  const Reference reference = affordable_reference(host, 1);
  const Comparison result = check_output(trial, trial.output(), reference, Rule::kBounded);
  EXPECT_TRUE(result.pass) << stage.name << ": " << result.message;
  return simulator::take_kernel_counts();
}

constexpr double SMALL_MACS = 2e6, MEDIUM_MACS = 10e6;

// The cases are each stage on each problem.
class OfStage : public testing::TestWithParam<std::tuple<Stage, Problem>> {
 protected:
  void TearDown() override { simulator::set_thread_order_seed(0); }

  static const Stage& stage() { return std::get<Stage>(GetParam()); }
  static const Problem& problem() { return std::get<Problem>(GetParam()); }

  // Who takes what from an atomic counter, and how often one asks for another's work, depends on the order.
  static bool depends_on_order(const KernelCounts& counts) {
    return counts.atomic.requests > 0 || counts.shared_atomic.requests > 0;
  }

  // A bug would be reported as a CudaError. The counts don't depend on the order, but as above.
  static void expect_same_counts(const std::vector<uint64_t>& seeds) {
    simulator::set_thread_order_seed(0);
    const int64_t before = simulator::vain_reads();
    const std::vector<KernelCounts> in_order = count_stage(stage(), problem());
    for (const uint64_t seed : seeds) {
      simulator::set_thread_order_seed(seed);
      const std::vector<KernelCounts> shuffled = count_stage(stage(), problem());
      ASSERT_EQ(shuffled.size(), in_order.size());
      for (std::size_t i = 0; i < in_order.size(); ++i) {
        if (depends_on_order(in_order[i]) || simulator::vain_reads() > before) continue;
        EXPECT_EQ(metrics(shuffled[i]), metrics(in_order[i])) << in_order[i].kernel;
      }
    }
  }
};

class StageCounts : public OfStage {};
class StageOffAlignment : public OfStage {};
class StageCountsInMoreOrders : public OfStage {};
class LayerOffAlignment : public OfStage {};

class NaiveCounts : public testing::TestWithParam<Problem> {};

TEST_P(StageCounts, CleanAndTheSameInAnotherOrder) {
  static std::size_t turn = 0;
  if (!in_turns() || turn++ % 3 == 0) return expect_same_counts({1});
  simulator::set_thread_order_seed(1);
  count_stage(stage(), problem());
}
TEST_P(StageCountsInMoreOrders, CleanAndTheSame) { expect_same_counts({2, 3}); }

// Tensors need no more than the alignment of a float.
TEST_P(StageOffAlignment, Clean) { count_stage(stage(), problem(), {{1, 3, 1, 3}, true}); }
TEST_P(LayerOffAlignment, Clean) {
  count_stage(stage(), problem(), {{1, 2, 3, 2}, false});
  count_stage(stage(), problem(), {{2, 3, 1, 3}, true});
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
  const auto outputs = static_cast<int>(s.output_pitch());  // of an image, all groups'
  for (int n = 0; n < s.N; ++n) {
    for (int first = 0; first < (outputs + THREADS - 1) / THREADS * THREADS; first += 32) {
      for (int crs = 0; crs < s.CRS(); ++crs) {
        std::array<int64_t, 32> image, filter;
        for (int lane = 0; lane < 32; ++lane) {
          const int kpq = first + lane, q = kpq % s.Q(), p = kpq / s.Q() % s.P(), k = kpq / s.PQ();
          const int h = p * s.stride_h - s.pad_h + crs / s.S % s.R * s.dil_h;
          const int w = q * s.stride_w - s.pad_w + crs % s.S * s.dil_w;
          const bool inside = kpq < outputs && h >= 0 && h < s.H && w >= 0 && w < s.W;
          const int c = k / s.K * s.C + crs / (s.R * s.S);
          image[lane] = inside ? n * s.input_pitch() + (c * s.H + h) * s.W + w : -1;
          filter[lane] = inside ? k * s.CRS() + crs : -1;
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
  EXPECT_EQ(counts.launches, 1);
}

// If each group has whole sectors, the counts of a kernel are as many times those of one group as there
// are groups, of one launch. There is one table of taps for all: pack() writes it once, and it is touched
// once. Stage 02's library is called for each group. The copy engine's box reads the next group's channels where
// a group ends within it, and nothing behind the last.
TEST(GroupCounts, AreTheSumOverTheGroups) {
  for (const Stage& stage : stages()) {
    if (stage.wants) continue;  // its groups are of one channel, and a block has several
    ConvArguments a;
    a.n = 2, a.h = 8, a.w = 12, a.k = 32, a.r = 3, a.s = 3, a.pad_h = 1, a.pad_w = 1;
    a.c = stage.layout == NHWC ? 8 : 2;  // a sector's channels, where they lie last
    const Problem one{"one", a};
    a.groups = 3, a.c *= 3, a.k *= 3;
    const Problem three{"three", a};
    const std::vector<KernelCounts> alone = count_stage(stage, one);
    const std::vector<KernelCounts> together = count_stage(stage, three);
    ASSERT_EQ(together.size(), alone.size()) << stage.name;
    for (std::size_t i = 0; i < alone.size(); ++i) {
      KernelCounts sum = alone[i];
      sum += alone[i];
      sum += alone[i];
      EXPECT_EQ(together[i].kernel, sum.kernel) << stage.name;
      EXPECT_EQ(together[i].launches, (sum.library ? sum : alone[i]).launches) << sum.kernel;
      auto counted = metrics(together[i]), expected = metrics(sum);
      const auto of_the_table = [&](const auto& metric) {
        const std::string name = metric.first;
        return name == "sectors_touched_read.sum" || name.find("op_tma_ld") != std::string::npos ||
               (sum.kernel == "pack" && name.find("_op_ld") == std::string::npos);
      };
      for (auto* list : {&counted, &expected}) {
        list->erase(std::remove_if(list->begin(), list->end(), of_the_table), list->end());
      }
      EXPECT_EQ(counted, expected) << sum.kernel << " of " << stage.name;
    }
  }
}

// The problems of counted_problems.csv, the nasty ones in groups, one whose rows begin as their tensor does, and one
// whose every extent allows wide accesses, if only the tensors did.
std::vector<Problem> observed_problems() {
  std::vector<Problem> problems = counted_problems();
  for (const Problem& problem : read_problems(CONVLADDER_SOURCE_DIR "/common/problems.csv")) {
    if (problem.name.rfind("nasty_groups", 0) == 0) problems.push_back(problem);
    if (problem.name == "nasty_all_ones") {
      problems.push_back(problem);
      problems.back().name = "rows_of_64";
      problems.back().arguments.w = 64, problems.back().arguments.k = 9;
    }
    if (problem.name == "nasty_even_filter_2x2") {
      problems.push_back(problem);
      problems.back().name = "multiples_of_4";
      problems.back().arguments.h = problems.back().arguments.w = 16;
    }
  }
  return problems;
}

// Those that `choose` of their multiply-adds and of what tiles of them compute.
template <typename Choose>
std::vector<Problem> problems_of(const Choose& choose) {
  std::vector<Problem> chosen;
  for (const Problem& problem : observed_problems()) {
    const double macs = multiply_adds(problem.arguments);
    if (choose(macs, macs * tile_waste(make_conv_shape(problem.arguments))))
      chosen.push_back(problem);
  }
  return chosen;
}
auto small_problems() {
  return problems_of([](double /*macs*/, double computed) { return computed <= SMALL_MACS; });
}
auto larger_problems() {
  return problems_of(
      [](double macs, double computed) { return computed > SMALL_MACS && macs <= MEDIUM_MACS; });
}

std::string name_of(const testing::TestParamInfo<Problem>& info) { return info.param.name; }

std::string name_of_both(const testing::TestParamInfo<std::tuple<Stage, Problem>>& info) {
  return std::string(std::get<Stage>(info.param).name) + "_" + std::get<Problem>(info.param).name;
}

// Each stage with each problem, or with those whose turn it is.
auto cases_of(const std::vector<Problem>& problems) {
  std::vector<std::tuple<Stage, Problem>> cases;
  std::string first;  // of the stage's forms
  for (const Stage& stage : stages()) {
    const std::string name = stage.name;
    if (!cases.empty() && name == std::get<Stage>(cases.back()).name) {
      std::fprintf(stderr, "convladder: error: two stages are registered as '%s'\n", stage.name);
      std::exit(1);
    }
    const bool is_further =
        name == first + "_tf32" || name == first + "_nhwc" || name == first + "_tf32_nhwc";
    if (!is_further) first = name;
    for (const std::size_t place : places_for(stage, is_further, problems.size())) {
      cases.emplace_back(stage, problems[place]);
    }
  }
  return testing::ValuesIn(cases);
}
auto small() { return cases_of(small_problems()); }
auto layers() { return cases_of(larger_problems()); }

INSTANTIATE_TEST_SUITE_P(Of, StageCounts, small(), name_of_both);
INSTANTIATE_TEST_SUITE_P(Of, StageOffAlignment, small(), name_of_both);
INSTANTIATE_TEST_SUITE_P(Of, StageCountsInMoreOrders, small(), name_of_both);
INSTANTIATE_TEST_SUITE_P(Of, LayerOffAlignment, layers(), name_of_both);
INSTANTIATE_TEST_SUITE_P(Problems, NaiveCounts, testing::ValuesIn(small_problems()), name_of);

}  // namespace
}  // namespace convladder
