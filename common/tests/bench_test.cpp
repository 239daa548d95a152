// What `bench` makes of its times: statistics, floors, records; and that a stage is timed only
// where its results are right, before and after.
#include "common/measure/bench.h"
#include "common/command/commands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "common/check/backend.h"
#include "common/check/reference.h"
#include "common/command/options.h"
#include "common/core/launch.h"
#include "common/measure/bench_problem.h"
#include "common/measure/bench_report.h"
#include "common/measure/stopwatch.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

TEST(BenchStatistics, BetweenTwoSamplesIsInterpolated) {
  const Statistics s = summarise({4, 1, 2, 3});
  EXPECT_EQ(s.count, 4);
  EXPECT_EQ(s.least, 1);
  EXPECT_EQ(s.lower_quartile, 1.75);
  EXPECT_EQ(s.median, 2.5);
  EXPECT_EQ(s.upper_quartile, 3.25);
  EXPECT_EQ(s.most, 4);
  EXPECT_EQ(summarise({5, 1, 4, 2, 3}).upper_quartile, 4);
  EXPECT_EQ(summarise({7}).upper_quartile, 7);
  EXPECT_THROW(summarise({}), InvalidArgument);
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
  machine.name = "round";
  machine.l2_bytes = 1e6;
  machine.peak_flops = 1e12;
  machine.fma_flops = 8e11;
  machine.copy_bytes = 1e9;
  machine.read_rates = {2e9, 8e9, 16e9, 32e9};
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

BenchRecord passed(double cold, double warm) {
  BenchRecord bench;
  bench.record.stage = "01_naive";
  bench.record.problem = "p";
  bench.record.status = "pass";
  bench.record.max_error_ratio = 0.25;
  bench.cold = summarise({cold});
  bench.warm = summarise({warm});
  return bench;
}

std::string judged(BenchRecord bench) {  // with floors of 5 and 4 ms
  flag_impossible(bench, {3e9, 1e9, 5e6}, round_machine());
  return bench.record.status + ": " + bench.record.message;
}

TEST(BenchFloor, TimesBelowItAreImpossible) {
  EXPECT_EQ(judged(passed(5, 4)), "pass: ");
  EXPECT_EQ(judged(passed(4.9, 4)), "impossible: 4.9 ms cold is below the floor of 5 ms");
  EXPECT_EQ(judged(passed(5, 3.9)), "impossible: 3.9 ms warm is below the floor of 4 ms");
  EXPECT_EQ(judged(passed(std::nan(""), 4)), "impossible: nan ms cold is below the floor of 5 ms");
  BenchRecord bench = passed(0, 0);
  bench.record.status = "fail";
  EXPECT_EQ(judged(bench), "fail: ");
}

TEST(BenchBatch, TheLargestThatFits) {
  ConvShape shape;
  shape.N = 1000;
  const auto bytes = [](const ConvShape& s) { return 100.0 + 10.0 * s.N; };
  EXPECT_EQ(largest_batch(shape, 1e9, bytes), 1000);
  EXPECT_EQ(largest_batch(shape, 10100, bytes), 1000);
  EXPECT_EQ(largest_batch(shape, 10099, bytes), 999);
  EXPECT_EQ(largest_batch(shape, 110, bytes), 1);
  EXPECT_EQ(largest_batch(shape, 109, bytes), 0);
}

TEST(GpuState, OfAnAnswerOfNvidiaSmi) {
  const auto state = parse_gpu_state("570.86.15, 1980, 612.35, [N/A], 0x0000000000000044\n");
  ASSERT_TRUE(state);
  EXPECT_EQ(state->driver, "570.86.15");
  EXPECT_EQ(state->throttle_reasons,
            (std::vector<std::string>{"sw_power_cap", "hw_thermal_slowdown"}));
  EXPECT_EQ(to_string(*state), "1980 MHz, 612 W, sw_power_cap, hw_thermal_slowdown");
  EXPECT_EQ(to_json(state)["power_watt"], 612.35);
}

TEST(GpuState, OfAnythingElseThereIsNone) {
  EXPECT_FALSE(parse_gpu_state(""));
  EXPECT_FALSE(parse_gpu_state("No devices were found\n"));
  EXPECT_FALSE(parse_gpu_state("Field \"clocks_event_reasons.active\" is not a valid field\n"));
  EXPECT_EQ(to_json(std::optional<GpuState>()).dump(), "null");
}

// One pixel under 10^6 filters of one weight: 2 MFLOP, and 8000004 bytes without bias.
BenchResult known_result() {
  ConvArguments a;
  a.k = 1000000;
  BenchResult result;
  result.problem = "p";
  result.bias = false;
  result.shape = make_conv_shape(a);
  result.records = {passed(10, 9)};
  return result;
}

TEST(BenchJson, ATimeAndNone) {
  BenchResult result = known_result();
  result.records[0].host_late = 3;
  result.records.push_back(passed(5, 5));
  result.records[1].precision = Precision::kTf32;
  result.records[1].warm.reset();
  const Json bench = bench_json(round_machine(), {result});
  EXPECT_EQ(bench["format"], "convladder bench");
  EXPECT_EQ(bench["machine"]["gpu"], "round");
  const Json& problem = bench["problems"][0];
  EXPECT_EQ(problem["least_bytes"], 8000004);
  EXPECT_DOUBLE_EQ(problem["cold_floor_ms"], 8.000004);
  const Json &record = problem["records"][0], &tf32 = problem["records"][1];
  EXPECT_EQ(record["stage"], "01_naive");
  EXPECT_EQ(record["cold_ms"]["median"], 10);
  EXPECT_EQ(record["host_late"], 3);
  EXPECT_DOUBLE_EQ(record["tflops"], 2e-4);
  EXPECT_DOUBLE_EQ(record["fraction_of_ceiling"], 0.00025);
  EXPECT_DOUBLE_EQ(record["fraction_of_copy_rate"], 0.8000004);
  EXPECT_TRUE(tf32["warm_ms"].is_null());
  EXPECT_EQ(tf32["fraction_of_ceiling"].dump(), "null");  // of FP32, which it isn't
}

CompetitorRecord competitor(const char* name, Precision precision, double cold) {
  CompetitorRecord record;
  record.info = {name, precision, "nchw", "1.2", "Library 1.2"};
  record.algorithm = "ALGORITHM";
  record.bench = passed(cold, cold);
  record.bench.record.stage = label(record.info);
  return record;
}

// The times of two stages and of cuDNN, in both precisions, on one problem.
BenchResult beside_cudnn(const std::vector<double>& stages, double fp32, double tf32) {
  BenchResult result = known_result();
  result.records.clear();
  for (std::size_t i = 0; i < stages.size(); ++i) {
    result.records.push_back(passed(stages[i], stages[i]));
    result.records.back().record.stage = i == 0 ? "01_naive" : "02_im2col_gemm";
  }
  result.competitors = {competitor("cudnn", Precision::kFp32, fp32),
                        competitor("cudnn", Precision::kTf32, tf32)};
  return result;
}

TEST(BenchStandings, MeanAndHowManyAreWon) {
  const std::vector<BenchResult> results = {
      beside_cudnn({10, 5}, 20, 5), beside_cudnn({40, 5}, 20, 10), beside_cudnn({10, 10}, 80, 10)};
  const std::vector<Standing> found = standings(results);
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].stage + ", " + found[0].competitor, "01_naive, cuDNN FP32");
  EXPECT_EQ(found[3].stage + ", " + found[3].competitor, "02_im2col_gemm, cuDNN TF32");
  EXPECT_DOUBLE_EQ(found[0].geometric_mean, 2);  // 2, 1/2 and 8
  EXPECT_EQ(found[0].won, 2);
  EXPECT_EQ(found[0].problems, 3);
  EXPECT_EQ(found[3].won, 1) << "as long as the competitor is not won";  // 1, 2 and 1
}

TEST(BenchStandings, OnlyWhatBothHavePassedIsCompared) {
  std::vector<BenchResult> results = {beside_cudnn({10, 5}, 20, 5), beside_cudnn({40, 5}, 20, 10)};
  results[1].records[0].record.status = "impossible";
  results[1].competitors[0].bench.record.status = "skipped";
  results[1].competitors[0].bench.cold.reset();
  results[0].competitors.pop_back();
  const Json found = bench_json(round_machine(), results)["standings"];
  EXPECT_EQ(found[0]["problems"], 1);
  EXPECT_EQ(found[0]["geometric_mean"], 2);
  EXPECT_EQ(found[1]["competitor"], "cuDNN TF32");
  EXPECT_EQ(found[1]["problems"], 0);
}

// ---- The host, which must be done before the GPU begins ----

TEST(BenchHost, LateIsMeasuredAgainAfterTwiceTheFlushes) {
  int flushes = 16;
  // What is asked of a host that is late the first `late` times; the last: whether it was in time.
  const auto asked = [&](std::size_t late) {
    std::vector<int> asked;
    const auto measure = [&](int n) { return asked.push_back(n), asked.size() > late; };
    const bool in_time = measure_in_time(flushes, measure);
    asked.push_back(in_time);
    return asked;
  };
  EXPECT_EQ(asked(0), (std::vector<int>{16, true}));
  EXPECT_EQ(asked(2), (std::vector<int>{16, 32, 64, true}));
  EXPECT_EQ(asked(0), (std::vector<int>{64, true})) << "what was needed is not remembered";
  flushes = 300;
  EXPECT_EQ(asked(1000), (std::vector<int>{300, 600, FLUSHES_AT_MOST, false}));
  EXPECT_EQ(asked(1000), (std::vector<int>{FLUSHES_AT_MOST, false}));
}

using BenchHostOnDevice = DeviceTest;

TEST_F(BenchHostOnDevice, WaitingForTheGpuIsLate) {
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
  EXPECT_EQ(calls, 2 * 8);
  EXPECT_EQ(samples.cold.size(), 2u);
  EXPECT_EQ(samples.warm.size(), 2u);
}

TEST_F(BenchHostOnDevice, OneThatOnlyEnqueuesIsInTime) {
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
  }

  BenchResult measure(const std::vector<Stage>& stages, Machine machine) const {
    machine.l2_bytes = 1e3;  // flushed many times: these stages wait for the GPU
    return ProblemBench({stages, 4, 1, {}}, machine, [](const std::string&) {}).run(problem_);
  }

  // Right, and the one given, so that one stage's fault must leave the other alone.
  BenchRecord measured_beside_a_right_one(const Stage& stage) const {
    calls = 0;
    const BenchResult result = measure({{"right", "", right, nullptr, false}, stage}, limitless());
    EXPECT_EQ(result.records[0].record.status, "pass");
    EXPECT_TRUE(result.records[0].cold);
    EXPECT_EQ(result.error, "");
    return result.records[1];
  }

  static Machine limitless() {  // a machine for which no time is impossible
    Machine machine = round_machine();
    machine.peak_flops = machine.copy_bytes = 1e30;
    return machine;
  }

  Problem problem_;
};

TEST_F(BenchProblem, ARightStageIsTimed) {
  const BenchRecord bench = measured_beside_a_right_one({"too", "", right, nullptr, false});
  EXPECT_EQ(bench.record.status, "pass");
  EXPECT_LE(bench.record.max_error_ratio, 1);
  ASSERT_TRUE(bench.cold && bench.warm);
  EXPECT_EQ(bench.cold->count, 4);
  EXPECT_EQ(bench.warm->count, 4);
  EXPECT_GT(bench.cold->least, 0);
  EXPECT_EQ(bench.host_late, 4) << "it waits for the GPU in every round";
}

// From the first run on, or while it is timed; then by what it writes, or by writing nothing.
TEST_F(BenchProblem, AWrongStageIsNot) {
  for (const auto enqueue : {wrong, wrong_later, idle_later}) {
    const BenchRecord bench = measured_beside_a_right_one({"wrong", "", enqueue, nullptr, false});
    EXPECT_EQ(bench.record.status, "fail");
    EXPECT_GT(bench.record.max_error_ratio, 1);
    EXPECT_FALSE(bench.cold || bench.warm);
  }
}

TEST_F(BenchProblem, AStageThatCannotRunLeavesTheOthersAlone) {
  const BenchRecord bench = measured_beside_a_right_one({"refuse", "", refuse, nullptr, false});
  EXPECT_EQ(bench.record.status, "fail");
  EXPECT_EQ(bench.record.message, "refused");
  EXPECT_EQ(measured_beside_a_right_one({"needy", "", right, too_much, false}).record.status,
            "rejected");
}

TEST_F(BenchProblem, AnImpossibleTimeIsSeen) {
  Machine slow = round_machine();
  slow.peak_flops = 1;
  const BenchResult result = measure({{"right", "", right, nullptr, false}}, slow);
  EXPECT_EQ(result.records[0].record.status, "impossible");
}

TEST_F(BenchProblem, ARejectedProblemSaysWhy) {
  problem_.arguments.groups = 2;
  const BenchResult result = measure({{"right", "", right, nullptr, false}}, limitless());
  EXPECT_FALSE(result.shape);
  EXPECT_EQ(result.records[0].record.status, "rejected");
  expect_contains(result.error, "groups = 2");
}

TEST_F(BenchProblem, AGpuTooSmallIsToldByBytesAndBatch) {
  problem_.arguments.n = 1000000000;
  problem_.arguments.h = problem_.arguments.w = 1000;
  const BenchResult result = measure({{"right", "", right, nullptr, false}}, limitless());
  EXPECT_EQ(result.records[0].record.status, "fail");
  // 10^9 images of 5x1000x1000 floats, as many outputs of 998x998, and the filter's 45 floats
  EXPECT_EQ(result.error.find("out of device memory: 239840"), 0u) << result.error;
  expect_parts(result.error, {" bytes needed for all stages at once (1), ", " free; --batch "});
}

TEST(BenchCommand, CompetitorsAreNamedFromAList) {
  for (const char* list : {"cuda", "all,cudnn", ",cudnn", "cudnn,none"}) {
    const std::string message = message_of<UsageError>([&] {
      bench_command({"--competitors", list});
    });
    EXPECT_EQ(message.find("--competitors = '" + std::string(list) + "'"), 0u) << message;
  }
}

TEST(BenchCommand, WhereItCannotWriteItSaysSoFirst) {
  const std::string message = message_of<std::runtime_error>([] {
    bench_command({"--json", "/nowhere/bench.json"});
  });
  EXPECT_EQ(message, "/nowhere/bench.json: can't be written: No such file or directory");
}

TEST(BenchCommand, TheSimulatorHasNothingToTime) {
  if (on_gpu()) GTEST_SKIP() << "this build has a GPU's timer";
  const std::string layers = CONVLADDER_SOURCE_DIR "/common/layers.csv";
  const std::vector<std::vector<std::string>> commands = {{}, {"--shapes", layers}};
  for (const std::vector<std::string>& arguments : commands) {
    EXPECT_EQ(message_of<UsageError>([&] { bench_command(arguments); }),
              "bench needs a GPU: the time that simulating takes says nothing about one");
  }
}

}  // namespace
}  // namespace convladder
