// The file of a trace has a size. Not among the kernels: what a .cu file includes is instrumented.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/measure/trace_file.h"

namespace convladder {
namespace {

// A trace of one warp that loads from places of no order.
simulator::TracedKernel without_order(int executions) {
  simulator::TracedKernel kernel;
  kernel.kernel = "without_order";
  kernel.warps.push_back({0, 0});
  uint32_t state = 1;
  for (int i = 0; i < executions; ++i) {
    simulator::TracedExecution execution{};
    execution.services = {{~0u}};
    execution.access.lanes = ~0u;
    for (uint64_t& address : execution.access.address) {
      address = (state = state * 1664525 + 1013904223) / 4 * 4;
    }
    kernel.warps[0].executions.push_back(execution);
  }
  return kernel;
}

TEST(TraceFileOf, AnyProblemStaysBelowItsBytes) {
  const std::vector<simulator::TracedKernel> kernels = {without_order(2000), without_order(2000)};
  simulator::KernelCounts counts;
  counts.kernel = "without_order";
  counts.instructions[{}] = {};
  const std::string whole = trace_record("stage", kernels, {counts}, {}, TRACE_BYTES).dump();
  EXPECT_GT(whole.size(), 400000u);
  EXPECT_EQ(whole.find("\"cut\":[0]"), std::string::npos);
  const std::string cut = trace_record("stage", kernels, {counts}, {}, 100000).dump();
  EXPECT_LT(cut.size(), 105000u);
  EXPECT_GT(cut.size(), 50000u);
  EXPECT_NE(cut.find("\"cut\":[0]"), std::string::npos);
}

}  // namespace
}  // namespace convladder
