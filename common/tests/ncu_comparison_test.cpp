// The simulator against Nsight Compute: equal, or as near as common/tests/data/deviations.csv says.
// The readings are made by common/profile/read_ncu.py on an H200; a stage that it has not read is
// only observed, and counts as skipped.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <iostream>
#include <map>
#include <sstream>
#include <stdexcept>

#include "common/profile/bank_patterns.h"
#include "common/tests/stage_counts.h"

namespace convladder {
namespace {

using simulator::KernelCounts;
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

// Returns the number of figures compared. ncu's ratios are rounded, and left out.
int expect_close(const KernelCounts& counts, const Row& reading, const std::string& stage = "") {
  int compared = 0;
  for (const auto& [metric, count] : metrics(counts)) {
    for (const std::string& column : readings_of(metric)) {
      const auto cell = reading.find(column);
      if (cell == reading.end() || cell->second.empty()) continue;
      if (column.find(".ratio") != std::string::npos) continue;
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

// Launches the patterns, and hands on the counts of each with its row of the readings.
template <typename Compare>
void compare_patterns(const std::string& file, std::initializer_list<Accesses> launches,
                      const Compare& compare) {
  std::vector<Row> readings = read_readings(file);
  std::size_t next = 0;
  simulator::take_kernel_counts();
  for (const Accesses accesses : launches) {
    launch_patterns(accesses, [&](const std::string& kind, int bytes, const LanePattern& pattern) {
      SCOPED_TRACE(kind + ", " + std::to_string(bytes) + " bytes, " + pattern.name);
      ASSERT_LT(next, readings.size());
      Row& reading = readings[next++];
      ASSERT_EQ(reading.at("pattern"), pattern.name) << "other patterns: make the readings again";
      ASSERT_EQ(reading.at("kind"), kind);
      compare(kind, bytes, pattern, simulator::take_kernel_counts().at(0), reading);
    });
  }
  EXPECT_EQ(next, readings.size());
}

TEST(NsightCompute, LanePatternsAgree) {
  int understood = 0;
  const auto compare = [&](const std::string& kind, int bytes, const LanePattern& pattern,
                           const KernelCounts& counts, Row& reading) {
    if (is_understood(kind, bytes, pattern)) {
      ++understood;
    } else {
      reading["smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum"] = "";
      reading["l1tex__data_pipe_lsu_wavefronts.sum"] = "";
    }
    // The L1's own counter sees a copy past it differently from the counter for such copies.
    if (kind == "copy_global" && bytes == 16) {
      reading["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] = "";
    }
    EXPECT_GE(expect_close(counts, reading), 5);
  };
  compare_patterns("ncu_patterns.csv", {Accesses::kSharedAndReads, Accesses::kCopies}, compare);
  EXPECT_GE(understood, 1488 - 100);
}

// What global memory's loads and stores take of L1's data pipe is a lower bound, and mostly what is
// read but for the one wavefront that any of these launches takes besides.
TEST(NsightCompute, GlobalPatternsAgree) {
  int whole = 0;
  const auto compare = [&](const std::string&, int, const LanePattern&, const KernelCounts& counts,
                           const Row& reading) {
    EXPECT_GE(expect_close(counts, reading), 7);
    const double read = std::atof(reading.at("l1tex__data_pipe_lsu_wavefronts.sum").c_str());
    whole += counts.pipe_wavefronts + 1 == read;
  };
  compare_patterns("ncu_global.csv", {Accesses::kGlobal}, compare);
  EXPECT_GE(whole, 755);
  std::cout << whole << " launches' counts are all that the pipe takes\n";
}

}  // namespace
}  // namespace convladder
