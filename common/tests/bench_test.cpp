// What `bench` makes of times, and how it takes them: a stage that is wrong, or too fast to be true, is found
// out, and leaves the others alone.
#include <nlohmann/json.hpp>
#include <numeric>

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

// What no filter meets need not be read, and a filter has the channels of its group.
TEST(BenchWork, BytesAreThoseOfEachElementOnce) {
  const ConvShape sparse = shape_of("n=2 c=3 h=9 w=10 k=4 stride_h=2 stride_w=3");  // 5x4 of 9x10
  EXPECT_EQ(work_of(sparse, false).bytes, 4.0 * (2 * 3 * 5 * 4 + 4 * 3 + 2 * 4 * 5 * 4));
  EXPECT_EQ(work_of(sparse, true).bytes, work_of(sparse, false).bytes + 4 * 4);
  const Work groups = work_of(shape_of("n=2 c=6 h=5 w=7 k=9 groups=3"), true);
  EXPECT_EQ(groups.flops, 2.0 * 2 * 9 * 35 * 2);
  EXPECT_EQ(groups.needed_flops, groups.flops);
  EXPECT_EQ(groups.bytes, 4.0 * (2 * 6 * 35 + 9 * 2 + 2 * 9 * 35 + 9));
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

int calls = 0;
void right(const Convolution& conv, cudaStream_t) { compute_on_host(conv); }
void wrong(const Convolution& conv, cudaStream_t) { compute_on_host(conv, 1); }
void wrong_later(const Convolution& conv, cudaStream_t) {
  compute_on_host(conv, ++calls > 1 ? 1 : 0);
}
void idle_later(const Convolution& conv, cudaStream_t) {
  if (++calls == 1) compute_on_host(conv);
}
void refuse(const Convolution&, cudaStream_t) { throw CudaError("refused"); }
std::size_t too_much(const ConvShape&, std::size_t limit) { return limit + 1; }

// FP32, the same with any plan, and TF32; FP32 and TF32 once more in NHWC.
constexpr std::size_t CUDNN_RECORDS = 5;
constexpr Stage RIGHT = {"right", "", right, nullptr, false};

class BenchProblem : public DeviceTest {
 protected:
  Json measure(const std::vector<Stage>& stages, double peak_flops = 1e30) const {
    Machine machine = round_machine();
    machine.peak_flops = peak_flops, machine.copy_bytes = 1e30;  // no time is impossible
    machine.l2_bytes = 1e3;  // flushed many times: these stages wait for the GPU
    calls = 0;
    return bench_problem(problem_, {stages, 4, 1, "9.1"}, machine);
  }

  Problem problem_ = {"small", arguments_of("c=h=w=5 r=s=3")};
};

// A right stage beside it is timed all the same; so is cuDNN, where it is there.
TEST_F(BenchProblem, OnlyWhatIsRightIsTimed) {
  const struct {
    Stage stage;
    const char *status, *message;
  } CASES[] = {{{"other", "", right, nullptr, false}, "pass", ""},
               {{"wrong", "", wrong, nullptr, false}, "fail", "output["},
               {{"wrong later", "", wrong_later, nullptr, false}, "fail", "output["},
               {{"idle later", "", idle_later, nullptr, false}, "fail", "output["},
               {{"refuse", "", refuse, nullptr, false}, "fail", "refused"},
               {{"needy", "", right, too_much, false}, "rejected", ""}};
  for (const auto& [stage, status, message] : CASES) {
    SCOPED_TRACE(stage.name);
    const Json result = measure({RIGHT, stage});
    EXPECT_EQ(result["error"], "");
    const Json &record = result["records"][1], &beside = result["records"][0];
    EXPECT_EQ(record["status"], status);
    expect_contains(record["message"], message);
    for (const Json& timed : {beside, status == std::string("pass") ? record : beside}) {
      EXPECT_EQ(timed["status"], "pass");
      EXPECT_LE(timed["max_error_ratio"], 1);
      EXPECT_EQ(timed["cold_ms"]["count"], 4);
      EXPECT_EQ(timed["warm_ms"]["count"], 4);
      EXPECT_GT(timed["cold_ms"]["min"], 0);
      EXPECT_EQ(timed["host_late"], 4) << "it waits for the GPU in every round";
    }
    EXPECT_TRUE(status == std::string("pass") || record["cold_ms"].is_null());
    ASSERT_EQ(result["competitors"].size(), CUDNN_RECORDS);
    for (const Json& cudnn : result["competitors"]) {
      EXPECT_EQ(cudnn["competitor"].get<std::string>().rfind("cudnn", 0), 0u);
      EXPECT_EQ(cudnn["status"], cudnn_version().empty() ? "skipped" : "pass") << cudnn;
    }
  }
  EXPECT_EQ(measure({RIGHT}, 1)["records"][0]["status"], "impossible");
}

}  // namespace
}  // namespace convladder
