// The stages under observation: free of bugs in every order of their threads, stage 01's counts as
// its definition has them, and all counts equal to Nsight Compute's readings, or as near as
// common/tests/data/deviations.csv says. The readings are made by common/measure/read_ncu.py on an
// H200; a stage that it has not read is only observed, and counts as skipped. On small problems in
// seconds; on layers, and in more orders, in minutes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "common/check/problems.h"
#include "common/check/test_data.h"
#include "common/check/trial.h"
#include "common/core/launch.h"
#include "common/core/stage.h"
#include "common/measure/bank_patterns.h"
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
  const ConvShape shape = make_conv_shape(problem.arguments);
  const TestData data = make_test_data(shape, DataKind::kUniform, 1);
  const HostProblem host = host_problem(shape, data, problem.bias);
  const Trial trial(stage, host, placement);
  simulator::take_kernel_counts();
  trial.enqueue();
  trial.wait();
  const Reference reference = affordable_reference(host, 1);
  const Comparison result = judge(trial, trial.output(), reference, Rule::kBounded);
  EXPECT_TRUE(result.pass) << stage.name << ": " << result.message;
  return simulator::take_kernel_counts();
}

constexpr double SMALL_MACS = 2e6, MEDIUM_MACS = 10e6;

// Each stage on each problem.
class OfStage : public testing::TestWithParam<std::tuple<Stage, Problem>> {
 protected:
  void TearDown() override { simulator::set_thread_order_seed(0); }

  static const Stage& stage() { return std::get<Stage>(GetParam()); }
  static const Problem& problem() { return std::get<Problem>(GetParam()); }

  // A bug would be reported as a CudaError. The counts don't depend on the order.
  static void expect_same_counts(const std::vector<uint64_t>& seeds) {
    simulator::set_thread_order_seed(0);
    const std::vector<KernelCounts> in_order = count_stage(stage(), problem());
    for (const uint64_t seed : seeds) {
      simulator::set_thread_order_seed(seed);
      const std::vector<KernelCounts> shuffled = count_stage(stage(), problem());
      ASSERT_EQ(shuffled.size(), in_order.size());
      for (std::size_t i = 0; i < in_order.size(); ++i) {
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

TEST_P(StageCounts, CleanAndTheSameInAnotherOrder) { expect_same_counts({1}); }
TEST_P(StageCountsInMoreOrders, CleanAndTheSame) { expect_same_counts({2, 3}); }

// Tensors need no more than the alignment of a float.
TEST_P(StageOffAlignment, Clean) { count_stage(stage(), problem(), {{1, 2, 3, 2}, true}); }
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
  const int padded = (s.KPQ() + THREADS - 1) / THREADS * THREADS;
  for (int ng = 0; ng < s.N * s.groups; ++ng) {
    const int n = ng / s.groups, g = ng % s.groups;
    const int64_t from = n * s.input_pitch() + int64_t{g} * s.CHW();
    for (int first = 0; first < padded; first += 32) {
      for (int crs = 0; crs < s.CRS(); ++crs) {
        std::array<int64_t, 32> image, filter;
        for (int lane = 0; lane < 32; ++lane) {
          const int kpq = first + lane, q = kpq % s.Q(), p = kpq / s.Q() % s.P();
          const int h = p * s.stride_h - s.pad_h + crs / s.S % s.R * s.dil_h;
          const int w = q * s.stride_w - s.pad_w + crs % s.S * s.dil_w;
          const bool inside = kpq < s.KPQ() && h >= 0 && h < s.H && w >= 0 && w < s.W;
          const int c = crs / (s.R * s.S), k = kpq / s.PQ();
          image[lane] = inside ? from + (c * s.H + h) * s.W + w : -1;
          filter[lane] = inside ? int64_t{g} * s.K * s.CRS() + k * s.CRS() + crs : -1;
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
  EXPECT_EQ(counts.launches, s.groups);
}

// With whole sectors in each group, the counts of a kernel are as many times those of one group as
// there are groups; so are its launches, where a stage doesn't compute them at once. If it does, there
// is one table of taps for all: pack() writes it once, and it is touched once.
TEST(GroupCounts, AreTheSumOverTheGroups) {
  ConvArguments a;
  a.n = 2, a.c = 2, a.h = 8, a.w = 12, a.k = 32, a.r = 3, a.s = 3, a.pad_h = 1, a.pad_w = 1;
  const Problem one{"one", a};
  a.groups = 3, a.c *= 3, a.k *= 3;
  const Problem three{"three", a};
  for (const Stage& stage : stages()) {
    const std::vector<KernelCounts> alone = count_stage(stage, one);
    const std::vector<KernelCounts> together = count_stage(stage, three);
    ASSERT_EQ(together.size(), alone.size()) << stage.name;
    for (std::size_t i = 0; i < alone.size(); ++i) {
      KernelCounts sum = alone[i];
      sum += alone[i];
      sum += alone[i];
      EXPECT_EQ(together[i].kernel, sum.kernel) << stage.name;
      EXPECT_EQ(together[i].launches, (stage.groups_at_once ? alone[i] : sum).launches)
          << sum.kernel;
      auto counted = metrics(together[i]), expected = metrics(sum);
      if (stage.groups_at_once) {
        const auto of_the_table = [&](const auto& metric) {
          const std::string name = metric.first;
          return name == "sectors_touched_read.sum" ||
                 (sum.kernel == "pack" && name.find("_op_ld") == std::string::npos);
        };
        for (auto* list : {&counted, &expected}) {
          list->erase(std::remove_if(list->begin(), list->end(), of_the_table), list->end());
        }
      }
      EXPECT_EQ(counted, expected) << sum.kernel;
    }
  }
}

// Those of counted_problems.csv, and the nasty ones in groups.
std::vector<Problem> observed_problems() {
  std::vector<Problem> problems = counted_problems();
  for (const Problem& problem : read_problems(CONVLADDER_SOURCE_DIR "/common/problems.csv")) {
    if (problem.name.rfind("nasty_groups", 0) == 0) problems.push_back(problem);
  }
  return problems;
}

// Counted problems of more multiply-adds than `least`, and at most `most`.
auto problems_within(double least, double most) {
  std::vector<Problem> chosen;
  for (const Problem& problem : observed_problems()) {
    const double macs = multiply_adds(problem.arguments);
    if (macs > least && macs <= most) chosen.push_back(problem);
  }
  return testing::ValuesIn(chosen);
}

std::string name_of(const testing::TestParamInfo<Problem>& info) { return info.param.name; }

std::string name_of_both(const testing::TestParamInfo<std::tuple<Stage, Problem>>& info) {
  return std::string(std::get<Stage>(info.param).name) + "_" + std::get<Problem>(info.param).name;
}

auto small() {
  return testing::Combine(testing::ValuesIn(stages()), problems_within(0, SMALL_MACS));
}
auto layers() {
  return testing::Combine(testing::ValuesIn(stages()), problems_within(SMALL_MACS, MEDIUM_MACS));
}

INSTANTIATE_TEST_SUITE_P(Of, StageCounts, small(), name_of_both);
INSTANTIATE_TEST_SUITE_P(Of, StageOffAlignment, small(), name_of_both);
INSTANTIATE_TEST_SUITE_P(Of, StageCountsInMoreOrders, small(), name_of_both);
INSTANTIATE_TEST_SUITE_P(Of, LayerOffAlignment, layers(), name_of_both);
INSTANTIATE_TEST_SUITE_P(Problems, NaiveCounts, problems_within(0, SMALL_MACS), name_of);

// ---- Beside Nsight Compute ----

using Row = std::map<std::string, std::string>;

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> cells;
  std::stringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
  return cells;
}

// The rows of common/tests/data/NAME by column, in order.
std::vector<Row> read_readings(const std::string& name) {
  const std::string path = CONVLADDER_SOURCE_DIR "/common/tests/data/" + name;
  std::ifstream file(path);
  std::vector<std::string> header;
  std::vector<Row> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> cells = split(line);
    if (header.empty()) {
      header = cells;
      continue;
    }
    Row row;
    for (std::size_t i = 0; i < cells.size(); ++i) row[header.at(i)] = cells[i];
    rows.push_back(row);
  }
  if (rows.empty()) throw std::runtime_error(path + ": no readings");
  return rows;
}

constexpr const char* AT_LEAST = "pipe_wavefronts_at_least.sum";

// The columns of the readings that a count stands beside.
std::vector<std::string> readings_of(const std::string& metric) {
  if (metric == AT_LEAST) return {"l1tex__data_pipe_lsu_wavefronts.sum"};
  if (metric.rfind("l1tex__data_", 0) != 0) return {metric};
  return {metric, "smsp__sass_l1tex_" + metric.substr(7)};  // of shared memory, by instructions
}

// How far a count may be below and above the reading, as shares of it.
std::pair<double, double> tolerance(const std::string& metric, const std::string& stage) {
  static const std::vector<Row> deviations = read_readings("deviations.csv");
  for (const Row& row : deviations) {
    const std::string& stages = row.at("stages");
    if (row.at("metric") != metric) continue;
    if (!stages.empty() && (stage.empty() || stages.find(stage) == std::string::npos)) continue;
    return {std::atof(row.at("lowest").c_str()), std::atof(row.at("highest").c_str())};
  }
  return {0, 0};
}

int figures = 0, equal = 0;  // of all that has been compared in a test

// Returns the number of figures compared.
int expect_close(const KernelCounts& counts, const Row& reading, const std::string& stage = "") {
  int compared = 0;
  for (const auto& [metric, count] : metrics(counts)) {
    for (const std::string& column : readings_of(metric)) {
      const auto cell = reading.find(column);
      if (cell == reading.end() || cell->second.empty()) continue;
      const double read = std::atof(cell->second.c_str());
      const auto [lowest, highest] = tolerance(column, stage);
      EXPECT_GE(count - read, lowest * read) << column << " of " << read;
      EXPECT_LE(count - read, highest * read) << column << " of " << read;
      ++compared;
      if (metric == AT_LEAST) continue;  // is not to be equal
      figures += count != 0 || read != 0;
      equal += count == read && count != 0;
    }
  }
  return compared;
}

// Each stage on each counted problem; under observation: it would find races and stray accesses, too.
class NsightComputeOfStage : public testing::TestWithParam<Stage> {};

TEST_P(NsightComputeOfStage, Agrees) {
  const Stage& stage = GetParam();
  figures = equal = 0;
  std::map<std::pair<std::string, std::string>, Row> readings;  // by problem and kernel
  for (const Row& row : read_readings("ncu_stages.csv")) {
    if (row.at("stage") == stage.name) readings[{row.at("problem"), row.at("kernel")}] = row;
  }
  for (const Problem& problem : counted_problems()) {
    for (const KernelCounts& counts : count_stage(stage, problem)) {
      if (counts.library || readings.empty()) continue;
      SCOPED_TRACE(problem.name + ", " + counts.kernel);
      const auto found = readings.find({problem.name, counts.kernel});
      ASSERT_NE(found, readings.end()) << "no reading: make them again";
      EXPECT_EQ(std::atoi(found->second.at("launches").c_str()), counts.launches);
      EXPECT_GE(expect_close(counts, found->second, stage.name), 6);
    }
  }
  if (readings.empty()) GTEST_SKIP() << "observed, but there is no reading to compare with";
  std::cout << stage.name << ": " << equal << " of " << figures << " figures are equal\n";
}

INSTANTIATE_TEST_SUITE_P(Of, NsightComputeOfStage, testing::ValuesIn(stages()),
                         [](const auto& info) { return std::string(info.param.name); });

// Where a copy of 16 bytes lands in no order, its wavefronts follow no rule that we know.
bool is_understood(const std::string& kind, int bytes, const LanePattern& pattern) {
  const auto named = [&](const char* name) { return pattern.name.rfind(name, 0) == 0; };
  if (kind.rfind("copy", 0) != 0 || bytes < 16) return true;
  return !named("random") && !named("stride") && !named("filters") && !named("strips") &&
         pattern.name != "bits_reversed";
}

TEST(NsightCompute, PatternsAgree) {
  std::vector<Row> readings = read_readings("ncu_patterns.csv");
  std::size_t next = 0;
  // Copies that are understood; loads and stores of global memory of which all is counted that the pipe
  // takes, but for the one wavefront that any of these launches takes besides.
  int understood = 0, whole = 0;
  simulator::take_kernel_counts();
  for (const Accesses accesses : {Accesses::kShared, Accesses::kCopies, Accesses::kGlobal}) {
    launch_patterns(accesses, [&](const std::string& kind, int bytes, const LanePattern& pattern) {
      SCOPED_TRACE(kind + ", " + std::to_string(bytes) + " bytes, " + pattern.name);
      ASSERT_LT(next, readings.size());
      Row& reading = readings[next++];
      ASSERT_EQ(reading.at("pattern"), pattern.name) << "other patterns: make the readings again";
      ASSERT_EQ(reading.at("kind"), kind);
      ASSERT_EQ(reading.at("bytes"), std::to_string(bytes));
      const KernelCounts counts = simulator::take_kernel_counts().at(0);
      const double read = std::atof(reading.at("l1tex__data_pipe_lsu_wavefronts.sum").c_str());
      whole += accesses == Accesses::kGlobal && counts.pipe_wavefronts + 1 == read;
      if (is_understood(kind, bytes, pattern)) {
        understood += accesses == Accesses::kCopies;
      } else {
        reading["smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum"] = "";
      }
      // The L1's own counter sees a copy past it differently from the counter for such copies.
      if (kind == "copy_global" && bytes == 16) {
        reading["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] = "";
      }
      EXPECT_GE(expect_close(counts, reading), accesses == Accesses::kGlobal ? 7 : 5);
    });
  }
  EXPECT_EQ(next, readings.size());
  EXPECT_EQ(understood, 462) << "of 531 copies";
  EXPECT_GE(whole, 755);
  std::cout << whole << " launches' counts are all that the pipe takes\n";
}

}  // namespace
}  // namespace convladder
