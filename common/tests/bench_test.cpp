// What `bench` makes of its times: statistics, floors, records; that a stage is timed only where its results
// are right, before and after; and that libraries can't do harm whatever they do.
#include "common/measure/bench.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "common/check/backend.h"
#include "common/check/reference.h"
#include "common/measure/bench_problem.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

TEST(BenchStatistics, BetweenTwoSamplesIsInterpolated) {
  EXPECT_EQ(statistics({4, 1, 2, 3}), Json({{"median", 2.5},
                                            {"lower_quartile", 1.75},
                                            {"upper_quartile", 3.25},
                                            {"min", 1},
                                            {"max", 4},
                                            {"count", 4}}));
  EXPECT_EQ(statistics({5, 1, 4, 2, 3})["upper_quartile"], 4);
  EXPECT_EQ(statistics({7})["upper_quartile"], 7);
  EXPECT_THROW(statistics({}), InvalidArgument);
}

TEST(BenchWork, TapsOnPaddingNeedNotBeComputed) {
  for (const char* name : {"nasty_primes_everything", "nasty_asymmetric_tall", "resnet50_conv1_b64",
                           "nasty_stride_beyond_filter", "nasty_groups"}) {
    const Problem problem = find_problem(read_problems(CONVLADDER_PROBLEMS), name);
    const ConvShape shape = make_conv_shape(reduce(problem.arguments, 5e6));
    const std::vector<float> ones(std::max(shape.input_count(), shape.filter_count()), 1.0f);
    const Reference counts = compute_reference({shape, ones.data(), ones.data()});
    const double products = std::accumulate(counts.value.begin(), counts.value.end(), 0.0);
    EXPECT_EQ(work_of(shape, true).needed_flops, 2 * products) << name;
  }
}

TEST(BenchWork, WhatNoFilterMeetsNeedNotBeRead) {
  ConvArguments a;
  a.n = 2, a.c = 3, a.h = 9, a.w = 10, a.k = 4, a.stride_h = 2, a.stride_w = 3;  // 5x4 of 9x10
  const Work work = work_of(make_conv_shape(a), false);
  EXPECT_EQ(work.bytes, 4.0 * (2 * 3 * 5 * 4 + 4 * 3 + 2 * 4 * 5 * 4));
  EXPECT_EQ(work_of(make_conv_shape(a), true).bytes, work.bytes + 4 * 4);
}

TEST(BenchWork, AFilterHasTheChannelsOfItsGroup) {
  ConvArguments a;
  a.n = 2, a.c = 6, a.h = 5, a.w = 7, a.k = 9, a.groups = 3;
  const ConvShape shape = make_conv_shape(a);
  const Work work = work_of(shape, true);
  EXPECT_EQ(work.flops, 2.0 * 2 * 9 * 35 * 2);
  EXPECT_EQ(work.needed_flops, work.flops);
  EXPECT_EQ(work.bytes, 4.0 * (2 * 6 * 35 + 9 * 2 + 2 * 9 * 35 + 9));
}

// 1 TFLOP/s, 1 GB/s, an L2 of 1 MB.
Machine round_machine() {
  Machine machine;
  machine.l2_bytes = 1e6;
  machine.peak_flops = 1e12;
  machine.fma_flops = 8e11;
  machine.copy_bytes = 1e9;
  return machine;
}

TEST(BenchFloor, TheLongerOfArithmeticAndTraffic) {
  const Machine machine = round_machine();
  const Work arithmetic{9e9, 8e9, 2e6}, traffic{3e9, 1e9, 5e6};
  EXPECT_DOUBLE_EQ(floor_ms(arithmetic, machine, Cache::kCold), 8);
  EXPECT_DOUBLE_EQ(floor_ms(traffic, machine, Cache::kCold), 5);
  EXPECT_DOUBLE_EQ(floor_ms(traffic, machine, Cache::kWarm), 4);  // 1 MB may be in the L2
  EXPECT_DOUBLE_EQ(floor_ms({1e6, 1e6, 9e5}, machine, Cache::kWarm), 1e-3) << "all of it is";
}

// With floors of 5 and 4 ms.
Json timed(double cold, double warm, Precision precision = Precision::kFp32) {
  Json record = {{"status", "pass"}, {"message", ""}};
  add_times(record, {{cold}, {warm}, 3}, {3e9, 1e9, 5e6}, precision, round_machine());
  return record;
}

TEST(BenchTimes, ThoseBelowTheFloorAreImpossible) {
  const auto verdict = [](double cold, double warm) {
    const Json record = timed(cold, warm);
    return std::string(record["status"]) + ": " + std::string(record["message"]);
  };
  EXPECT_EQ(verdict(5, 4), "pass: ");
  EXPECT_EQ(verdict(4.9, 4), "impossible: 4.9 ms cold is below the floor of 5 ms");
  EXPECT_EQ(verdict(5, 3.9), "impossible: 3.9 ms warm is below the floor of 4 ms");
  EXPECT_EQ(verdict(std::nan(""), 4), "impossible: nan ms cold is below the floor of 5 ms");
}

TEST(BenchTimes, RatesAreOfTheColdMedian) {
  const Json record = timed(10, 9);
  EXPECT_EQ(record["cold_ms"]["median"], 10);
  EXPECT_EQ(record["warm_ms"]["median"], 9);
  EXPECT_EQ(record["host_late"], 3);
  EXPECT_DOUBLE_EQ(record["tflops"], 0.3);
  EXPECT_DOUBLE_EQ(record["fraction_of_ceiling"], 0.375);
  EXPECT_DOUBLE_EQ(record["fraction_of_copy_rate"], 0.5);
  EXPECT_TRUE(timed(10, 9, Precision::kTf32)["fraction_of_ceiling"].is_null()) << "it is FP32's";
}

TEST(GpuState, OfAnAnswerOfNvidiaSmi) {
  EXPECT_EQ(parse_gpu_state("570.86.15, 1980, 612.35, [N/A], 0x0000000000000044\n"),
            Json({{"driver", "570.86.15"},
                  {"sm_clock_mhz", 1980},
                  {"power_watt", 612.35},
                  {"temperature_celsius", nullptr},
                  {"throttle_reasons", {"sw_power_cap", "hw_thermal_slowdown"}}}));
  for (const char* line : {"", "No devices were found\n", "Field \"x\" is not a valid field\n"}) {
    EXPECT_TRUE(parse_gpu_state(line).is_null()) << line;
  }
}

TEST(CompetitorBound, OfTf32) {
  const ConvShape shape;
  EXPECT_EQ(error_factor(shape, Precision::kFp32), 8);
  EXPECT_EQ(error_factor(shape, Precision::kTf32), 8 + 32768 + 16);
  // The worst that cutting 13 bits off both factors can do is within it, and little more is.
  const float factor = 2 - 0x1p-23f, cut = 2 - 0x1p-10f;
  const double error = double(factor) * factor - double(cut) * cut;
  const double allowed = 0x1p-24 * error_factor(shape, Precision::kTf32) * factor * factor;
  EXPECT_LT(error, allowed);
  EXPECT_GT(2.1 * error, allowed);
}

// ---- The host, which must be done before the GPU begins ----

using BenchHost = DeviceTest;

TEST_F(BenchHost, WaitingForTheGpuIsLate) {
  Stopwatch stopwatch(1e3);
  Samples samples;
  int calls = 0;
  const auto wait = [&] { ++calls, check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); };
  stopwatch.time(wait, samples);
  EXPECT_EQ(samples.host_late, 1);
  EXPECT_EQ(samples.flushes, FLUSHES_AT_MOST);
  EXPECT_EQ(calls, 2 * 7) << "after 16, 32, ... 1024 flushes";
  stopwatch.time(wait, samples);
  EXPECT_EQ(samples.host_late, 2);
  EXPECT_EQ(calls, 2 * 8) << "what was needed is not remembered";
  EXPECT_EQ(samples.cold.size(), 2u);
  EXPECT_EQ(samples.warm.size(), 2u);
}

TEST_F(BenchHost, OneThatOnlyEnqueuesIsInTime) {
  if (!on_gpu()) GTEST_SKIP() << "the simulator has done the work when a call returns";
  Stopwatch stopwatch(50e6);
  const DeviceBuffer buffer(1);
  Samples samples;
  stopwatch.time(
      [&] { check_cuda(cudaMemsetAsync(buffer.data(), 0, 4, nullptr), "cudaMemsetAsync"); },
      samples);
  EXPECT_EQ(samples.host_late, 0);
  EXPECT_LT(samples.flushes, FLUSHES_AT_MOST);
  check_cuda(cudaGetLastError(), "what asking an event has left");
}

// ---- Whole problems, by stages that stand in for real ones ----

std::vector<float> downloaded(const float* from, int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  check_cuda(cudaMemcpy(values.data(), from, values.size() * sizeof(float), cudaMemcpyDeviceToHost),
             "cudaMemcpy");
  return values;
}

// The right result, plus `error`.
void compute(const Convolution& conv, float error) {
  const std::vector<float> input = downloaded(conv.input, conv.input_count);
  const std::vector<float> filters = downloaded(conv.filters, conv.filter_count);
  const std::vector<float> bias = downloaded(conv.bias, conv.shape.K);
  const Reference reference =
      compute_reference({conv.shape, input.data(), filters.data(), bias.data()});
  std::vector<float> output(reference.value.begin(), reference.value.end());
  output.back() += error;
  check_cuda(
      cudaMemcpy(conv.output, output.data(), output.size() * sizeof(float), cudaMemcpyHostToDevice),
      "cudaMemcpy");
}

int calls = 0;
void right(const Convolution& conv, cudaStream_t) { compute(conv, 0); }
void wrong(const Convolution& conv, cudaStream_t) { compute(conv, 1); }
void wrong_later(const Convolution& conv, cudaStream_t) { compute(conv, ++calls > 1 ? 1 : 0); }
void idle_later(const Convolution& conv, cudaStream_t) {
  if (++calls == 1) compute(conv, 0);
}
void refuse(const Convolution&, cudaStream_t) { throw CudaError("refused"); }
std::size_t too_much(const ConvShape&, std::size_t limit) { return limit + 1; }

class BenchProblem : public DeviceTest {
 protected:
  BenchProblem() {
    problem_.name = "small";
    problem_.arguments.c = problem_.arguments.h = problem_.arguments.w = 5;
    problem_.arguments.r = problem_.arguments.s = 3;
    calls = 0;
  }

  Json measure(const std::vector<Stage>& stages, Machine machine,
               PyTorch* pytorch = nullptr) const {
    machine.l2_bytes = 1e3;  // flushed many times: these stages wait for the GPU
    return bench_problem(problem_, {stages, 4, 1, "9.1", pytorch}, machine);
  }

  // Right, and the one given, so that one stage's fault must leave the other alone.
  Json measured_beside_a_right_one(const Stage& stage) const {
    calls = 0;
    const Json result = measure({RIGHT, stage}, limitless());
    EXPECT_EQ(result["records"][0]["status"], "pass");
    EXPECT_EQ(result["error"], "");
    return result["records"][1];
  }

  static Machine limitless() {  // a machine for which no time is impossible
    Machine machine = round_machine();
    machine.peak_flops = machine.copy_bytes = 1e30;
    return machine;
  }

  static constexpr Stage RIGHT = {"right", "", right, nullptr, false};
  Problem problem_;
};

TEST_F(BenchProblem, ARightStageIsTimed) {
  const Json record = measured_beside_a_right_one({"other", "", right, nullptr, false});
  EXPECT_EQ(record["status"], "pass");
  EXPECT_LE(record["max_error_ratio"], 1);
  EXPECT_EQ(record["cold_ms"]["count"], 4);
  EXPECT_EQ(record["warm_ms"]["count"], 4);
  EXPECT_GT(record["cold_ms"]["min"], 0);
  EXPECT_EQ(record["host_late"], 4) << "it waits for the GPU in every round";
}

// From the first run on, or while it is timed; then by what it writes, or by writing nothing.
TEST_F(BenchProblem, AWrongStageIsNot) {
  for (const auto enqueue : {wrong, wrong_later, idle_later}) {
    const Json record = measured_beside_a_right_one({"wrong", "", enqueue, nullptr, false});
    EXPECT_EQ(record["status"], "fail");
    EXPECT_GT(record["max_error_ratio"], 1);
    EXPECT_TRUE(record["cold_ms"].is_null() && record["warm_ms"].is_null());
  }
}

TEST_F(BenchProblem, AStageThatCannotRunLeavesTheOthersAlone) {
  const Json record = measured_beside_a_right_one({"refuse", "", refuse, nullptr, false});
  EXPECT_EQ(record["status"], "fail");
  EXPECT_EQ(record["message"], "refused");
  EXPECT_EQ(measured_beside_a_right_one({"needy", "", right, too_much, false})["status"],
            "rejected");
}

TEST_F(BenchProblem, AnImpossibleTimeIsSeen) {
  Machine slow = round_machine();
  slow.peak_flops = 1;
  EXPECT_EQ(measure({RIGHT}, slow)["records"][0]["status"], "impossible");
}

TEST_F(BenchProblem, ARejectedProblemSaysWhy) {
  problem_.arguments.groups = 2;
  const Json result = measure({RIGHT}, limitless());
  EXPECT_FALSE(result.contains("shape"));
  expect_contains(result["error"], "groups = 2");
  for (const Json& record : {result["records"][0], result["competitors"][0]}) {
    EXPECT_EQ(record["status"], "rejected");
    EXPECT_EQ(record["message"], result["error"]);
  }
}

// FP32, the same with any plan, and TF32; FP32 and TF32 once more in NHWC.
constexpr std::size_t CUDNN_RECORDS = 5;

TEST_F(BenchProblem, CudnnTakesItsTurnsWhereItIsThere) {
  const Json result = measure({RIGHT}, limitless());
  EXPECT_EQ(result["records"][0]["status"], "pass");
  ASSERT_EQ(result["competitors"].size(), CUDNN_RECORDS);
  for (const Json& record : result["competitors"]) {
    EXPECT_EQ(record["competitor"].get<std::string>().rfind("cudnn", 0), 0u);
    EXPECT_EQ(record["status"], cudnn_version().empty() ? "skipped" : "pass") << record;
  }
}

// ---- PyTorch's process, by a script in its place ----

// `faults` are cases of a shell's, before those that are right.
std::string pytorch_that(const std::string& faults) {
  return R"({ echo '{"version": "2.0", "library": "PyTorch 2.0", "ways": [["fp32", "nchw"], ["tf32", "nhwc"]]}'
    while read -r line; do case $line in
    )" + faults +
         R"(
    *finish*) echo '{"ways": [{"record": {"status": "pass", "max_error_ratio": 0.5}, "cold": [3, 1, 2],
        "warm": [2, 2, 2], "host_late": 1}, {"record": {"status": "skipped", "message": "too large"}}]}' |
        tr -d '\n'; echo ;;
    *) echo '{}' ;;
    esac; done; })";
}

class BenchPyTorch : public BenchProblem {
 protected:
  std::string outcome(PyTorch& pytorch) const {
    const Json result = measure({RIGHT}, limitless(), &pytorch);
    EXPECT_EQ(result["records"][0]["status"], "pass");
    std::string text;
    for (const std::size_t way : {CUDNN_RECORDS, CUDNN_RECORDS + 1}) {
      const Json& record = result["competitors"][way];
      text += std::string(record["status"]) + ": " + std::string(record["message"]) + "; ";
    }
    return text;
  }
};

TEST_F(BenchPyTorch, ItsTimesBecomeRecords) {
  PyTorch pytorch(pytorch_that(""));
  const Json competitors = measure({RIGHT}, limitless(), &pytorch)["competitors"];
  const Json &first = competitors[CUDNN_RECORDS], &second = competitors[CUDNN_RECORDS + 1];
  EXPECT_EQ(first["library"], "PyTorch 2.0");
  EXPECT_EQ(first["cold_ms"]["median"], 2);
  EXPECT_EQ(first["host_late"], 1);
  EXPECT_EQ(first["max_error_ratio"], 0.5);
  EXPECT_EQ(second["layout"], "nhwc");
  EXPECT_TRUE(second["cold_ms"].is_null());
}

// It is started anew for the next problem.
TEST_F(BenchPyTorch, ItsFaultsAreInItsRecordsAlone) {
  const std::string good = "pass: ; skipped: too large; ";
  for (const auto& [answer, expected] : std::vector<std::pair<std::string, std::string>>{
           {R"(echo '{"error": "lost"}')", "lost"},
           {"exit 5", "the process ended, exit status 5"},
           {"echo Traceback; exit 1", "the process ended, exit status 1: Traceback"}}) {
    for (const char* request : {"prepare", "round", "finish"}) {
      const TempFolder folder;
      const std::string once = "[ -e " + folder.path("done") + " ] && echo '{}' || { touch " +
                               folder.path("done") + "; " + answer + "; }";
      PyTorch pytorch(pytorch_that("*" + std::string(request) + "*) " + once + " ;;"));
      EXPECT_EQ(outcome(pytorch), "fail: " + expected + "; fail: " + expected + "; ") << request;
      if (request != std::string("finish")) {
        EXPECT_EQ(outcome(pytorch), good) << request;
      }
    }
  }
}

TEST(PyTorch, WithoutItThereIsAReason) {
  for (const auto& [script, reason] : std::vector<std::pair<std::string, std::string>>{
           {R"(echo '{"error": "no module named torch"}')", "no module named torch"},
           {"{ exit 3; }", "the process ended, exit status 3"},
           {"no_such_program 2>/dev/null", "the process ended, exit status 127"},
           {"echo hello", "the process ended, exit status 0: hello"}}) {
    EXPECT_EQ(message_of<std::runtime_error>([&] { PyTorch pytorch(script); }), reason);
  }
}

}  // namespace
}  // namespace convladder
