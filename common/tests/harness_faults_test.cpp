// What the harness does when a call of the runtime or of cuBLAS fails under it: it reports that with
// its reason, gives all memory back, and works again. With the faults that the simulator injects,
// and one stage, which makes every kind of call; what a stage itself must do is in faults_test.cpp.
#include <nlohmann/json.hpp>

#include <functional>

#include "common/check/record.h"
#include "common/command/commands.h"
#include "common/measure/bench_problem.h"
#include "common/simulator/fault.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

using simulator::Call;

const Stage& stage() { return stages().at(0); }

struct Fault {
  Call call;
  const char* name;
  const char* reason;  // that a message must give
};

constexpr Fault FAULTS[] = {{Call::kMalloc, "cudaMalloc", "out of memory"},
                            {Call::kMemcpy, "cudaMemcpy", "unknown error"},
                            {Call::kMemset, "cudaMemset", "unknown error"},
                            {Call::kLaunch, "launch", "unknown error"},
                            {Call::kCublas, "cuBLAS", "cublas"}};

// What became of a piece of work: whether it says that it went well, and what it said.
struct Outcome {
  bool ok;
  std::string said;
};

// Lets one call after the other fail, until the work makes fewer: each of the first 128, then ever
// fewer of them, since `bench` flushes the L2 thousands of times. Every time the work must say that
// it failed, and why; all of its memory must be back; and doing it again must go well.
void expect_every_fault_survived(const std::function<Outcome()>& work) {
  ASSERT_TRUE(work().ok);  // what is made once, such as a handle, is there from now on
  int survived = 0;
  for (const Fault& fault : FAULTS) {
    for (int64_t skip = 0;; skip += 1 + skip / 128) {
      SCOPED_TRACE(std::string(fault.name) + " number " + std::to_string(skip + 1));
      const std::size_t allocations = simulator::allocation_count();
      simulator::inject_fault(fault.call, skip);
      const Outcome outcome = work();
      if (!simulator::clear_fault()) break;
      EXPECT_FALSE(outcome.ok);
      expect_contains(outcome.said, fault.reason);
      EXPECT_EQ(simulator::allocation_count(), allocations) << "memory was lost";
      ASSERT_TRUE(work().ok) << "the next call suffers";
      ++survived;
    }
  }
  testing::Test::RecordProperty("faults", survived);
  EXPECT_GE(survived, 20) << "fewer calls than a run must make";
}

// A command on a small problem: what it prints, and its error.
Outcome command(int (*run)(const std::vector<std::string>&)) {
  testing::internal::CaptureStdout();
  Outcome outcome = {false, ""};
  std::string error;
  try {
    outcome.ok = run({"--n", "2", "--c", "3", "--h", "9", "--w", "8", "--k", "5", "--r", "3", "--s",
                      "2", "--stage", stage().name}) == 0;
  } catch (const std::runtime_error& thrown) {
    error = thrown.what();
  }
  outcome.said = testing::internal::GetCapturedStdout() + error;
  return outcome;
}

TEST(HarnessFaults, CheckAndRunSurviveEveryFault) {
  for (const auto& run : {check_command, run_command}) {
    expect_every_fault_survived([&] { return command(run); });
  }
}

// Measures a problem as `bench` does, on a machine that is made up.
TEST(HarnessFaults, BenchSurvivesEveryFault) {
  const Problem problem = {"small", arguments_of("n=2 c=3 h=9 w=8 k=5 r=3 s=2")};
  Machine machine;
  machine.peak_flops = machine.fma_flops = machine.copy_bytes = 1e30;
  machine.l2_bytes = 1024;
  expect_every_fault_survived([&]() -> Outcome {
    try {
      const Json result = bench_problem(problem, {{stage()}, 2}, machine);
      const Json& record = result["records"][0];
      return {record["status"] == "pass",
              std::string(record["message"]) + std::string(result["error"])};
    } catch (const CudaError& error) {
      return {false, error.what()};
    }
  });
}

}  // namespace
}  // namespace convladder
