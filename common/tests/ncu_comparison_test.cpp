// The simulator against Nsight Compute: requests and sectors within 1 %, wavefronts within 5 %. The
// readings are made by common/profile/read_ncu.py on an H200.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
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

// The rows of docs/results/NAME by column, in order.
std::vector<Row> read_readings(const std::string& name) {
  const std::string path = CONVLADDER_SOURCE_DIR "/docs/results/" + name;
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

// How far the count may be from the reading; negative: not compared (ncu's derived figures, and
// conflicts, which are a share of the wavefronts).
double tolerance(const std::string& metric) {
  const auto has = [&](const char* part) { return metric.find(part) != std::string::npos; };
  if (has("t_requests") || has("t_sectors")) return 0.01;
  if (has("wavefronts")) return 0.05;
  return -1;
}

// Returns the number of metrics compared.
int expect_close(const KernelCounts& counts, const Row& reading) {
  int compared = 0;
  for (const auto& [metric, count] : metrics(counts)) {
    const double allowed = tolerance(metric);
    const auto cell = reading.find(metric);
    if (allowed < 0 || cell == reading.end() || cell->second.empty()) continue;
    const double read = std::atof(cell->second.c_str());
    EXPECT_LE(std::fabs(count - read), allowed * std::fabs(read)) << metric;
    ++compared;
  }
  return compared;
}

TEST(NsightCompute, StagesAgree) {
  const std::vector<Row> readings = read_readings("ncu_stages.csv");
  int kernels = 0;
  for (const Problem& problem : counted_problems()) {
    for (const Stage& stage : stages()) {
      for (const KernelCounts& counts : count_stage(stage, problem)) {
        if (counts.library) continue;
        SCOPED_TRACE(problem.name + ", " + stage.name + ", " + counts.kernel);
        const Row* reading = nullptr;
        for (const Row& row : readings) {
          if (row.at("problem") == problem.name && row.at("stage") == stage.name &&
              row.at("kernel") == counts.kernel) {
            reading = &row;
          }
        }
        ASSERT_NE(reading, nullptr) << "no reading: make them again";
        EXPECT_EQ(std::atoi(reading->at("launches").c_str()), counts.launches);
        EXPECT_GE(expect_close(counts, *reading), 8);
        ++kernels;
      }
    }
  }
  EXPECT_GE(kernels, 12 * 5);
}

TEST(NsightCompute, LanePatternsAgree) {
  const std::vector<Row> readings = read_readings("ncu_patterns.csv");
  std::size_t next = 0;
  simulator::take_kernel_counts();
  launch_lane_patterns([&](const std::string& kind, int bytes, const LanePattern& pattern) {
    SCOPED_TRACE(kind + ", " + std::to_string(bytes) + " bytes, " + pattern.name);
    ASSERT_LT(next, readings.size());
    const Row& reading = readings[next++];
    ASSERT_EQ(reading.at("pattern"), pattern.name) << "other patterns: make the readings again";
    ASSERT_EQ(reading.at("kind"), kind);
    EXPECT_GE(expect_close(simulator::take_kernel_counts().at(0), reading), 6);
  });
  EXPECT_EQ(next, readings.size());
}

}  // namespace
}  // namespace convladder
