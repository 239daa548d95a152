// Where a grid, an index or a workspace could end, for every stage: each problem is computed right,
// or rejected with the reason. The limits of make_conv_shape() itself are in conv_shape_test.cpp.
// What takes many gigabytes needs a GPU; the simulator has sparse_test.cpp.
#include <numeric>

#include "common/check/launches.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

constexpr double GIB = 1024.0 * 1024.0 * 1024.0;

const Stage& stage() { return tested_stage(); }
bool is(const std::string& name) { return stage().name == name; }

using Limits = DeviceTest;
class LimitsTest : public DeviceTest, public testing::WithParamInterface<Problem> {};

// ---- Counts beyond 65,535, where the y and z of a grid end ----

using BeyondSixteenBits = LimitsTest;

TEST_P(BeyondSixteenBits, IsRight) {
  const auto found = find_suited(make_conv_shape(GetParam().arguments), stage());
  if (!found) GTEST_SKIP() << "no problem of this size suits it";
  const Sample sample(*found);
  OnDevice device(stage(), sample.host());
  sample.expect_right(device.run_stage(), stage().precision);
  device.expect_no_damage();
}

INSTANTIATE_TEST_SUITE_P(CountOfOutputs, BeyondSixteenBits,
                         testing::ValuesIn(problems_of({{"output_channels", "n=3 c=2 k=65537"},
                                                        {"output_planes", "n=331 c=2 k=211"}})),
                         name_of);
INSTANTIATE_TEST_SUITE_P(
    Count, BeyondSixteenBits,
    testing::ValuesIn(problems_of({{"images", "n=65539 c=2 k=3"},
                                   {"input_channels", "n=2 c=65537 k=3"},
                                   {"output_rows", "h=65539 r=2 c=2 k=3"},
                                   {"output_columns", "w=65541 s=3 c=2 k=3"},
                                   {"pixels", "n=2 h=257 w=258 r=2 k=3"},
                                   {"filters_beyond_24_bits", "c=4099 k=4100"},
                                   {"filter_rows", "h=65540 r=65539 k=3"},
                                   {"filter_columns", "w=65540 s=65539 k=3"},
                                   {"rows_of_padding", "h=5 pad_h=65537 r=2 k=3"},
                                   {"columns_of_padding", "w=5 pad_w=65538 s=2 k=3"},
                                   {"rows_between_taps", "h=65541 r=2 k=3 dil_h=65537"},
                                   {"columns_between_taps", "w=65542 s=2 k=3 dil_w=65538"},
                                   {"rows_of_a_stride", "h=131075 r=2 k=3 stride_h=65537"},
                                   {"columns_of_a_stride", "w=131075 s=2 k=3 stride_w=65537"}})),
    name_of);

// ---- Counts beyond 2^31 ----

using BeyondThirtyOneBits = LimitsTest;

TEST_P(BeyondThirtyOneBits, IsRight) {
  const bool matrix = GetParam().name.rfind("matrix", 0) == 0;
  if (matrix && !is("02_im2col_gemm")) GTEST_SKIP() << "has no such matrix";
  const auto found = find_suited(make_conv_shape(GetParam().arguments), stage());
  if (!found) GTEST_SKIP() << "no problem of this size suits it";
  const ConvShape whole = *found;
  // The filters in tile order may take more than a stage is given by default.
  const std::size_t limit =
      matrix ? SIZE_MAX : std::max(least_workspace_bytes(stage(), whole), DEFAULT_WORKSPACE_LIMIT);
  const std::size_t workspace = workspace_bytes(stage(), whole, limit);
  ASSERT_TRUE(!matrix || workspace / sizeof(float) > std::size_t{1} << 31);
  double needed = static_cast<double>(workspace) / GIB + 0.25;
  for (const int64_t count : {whole.input_count(), whole.filter_count(), whole.output_count()}) {
    needed += static_cast<double>(count) * sizeof(float) / GIB;
  }
  if (!on_gpu()) GTEST_SKIP() << "needs a GPU, with " << needed << " GiB";
  const double free = free_device_memory() / GIB;
  if (needed > free) {
    GTEST_SKIP() << needed << " GiB of device memory needed, " << free << " GiB free";
  }
  with_memory_for(whole, [&](const ConvShape& shape) {
    const TestData data = make_test_data(shape, DataKind::kSmallInteger, 1);
    const HostProblem host = host_problem(shape, data);
    const Trial trial(stage(), host, {{}, false, limit});
    trial.enqueue();
    trial.wait();
    const Comparison result =
        check_output(trial, trial.output(), affordable_reference(host, 1), Rule::kExact);
    EXPECT_TRUE(result.pass) << result.message;
  });
}

INSTANTIATE_TEST_SUITE_P(
    Count, BeyondThirtyOneBits,
    testing::ValuesIn(problems_of({
        {"images_just_below", "n=2147483647"},
        {"output_planes", "n=1073741824 k=3"},
        // 8 pixels of output, 9 of input in each image
        {"pixels_and_input", "n=268435457 h=w=3 r=s=2 pad_h=1"},
        {"output_of_large_images", "n=2 h=w=32767 r=s=2 k=2"},
        {"filters_just_below", "n=2 c=65535 k=32767"},
        // 8 columns of output in each row
        {"strips_of_3_taps", "n=33554433 w=8 k=8 s=3 pad_w=1"},
        {"strips_of_7_taps", "n=33554433 w=16 k=8 s=7 stride_w=2 pad_w=3"},
        {"strips_of_11_taps", "n=33554433 w=32 k=8 s=11 stride_w=4 pad_w=5"},
        // 2^31 - 73e6 pixels; with 64 in a row, 8 strips, they would be more than 2^31.
        {"large_image_of_strips", "h=36396900 w=57 s=3 pad_w=1"},
        // Stage 02's matrix, 9 times the input, where the workspace holds all of it.
        {"matrix_of_many_images", "n=1024 c=64 h=w=64 k=8 r=s=3 pad_h=pad_w=1"},
        {"matrix_of_one_image", "c=64 h=w=2048 k=8 r=s=3 pad_h=pad_w=1"},
    })),
    name_of);

// ---- Grids beyond 2^31-1 blocks ----

// An address that nothing may touch.
float* untouchable() { return reinterpret_cast<float*>(std::uintptr_t{1} << 40); }

// The blocks of each of its launches for so many images; none where they are rejected.
std::vector<int64_t> grids_for(Convolution conv, int images) {
  conv.shape.N = images;
  conv.input_count = conv.shape.input_count(), conv.output_count = conv.shape.output_count();
  std::vector<int64_t> grids;
  try {
    for (const KernelLaunch& launch : launches_of(stage(), conv)) grids.push_back(launch.blocks);
  } catch (const InvalidArgument&) {
  }
  return grids;
}

// Legal, but with more blocks than a grid holds: of outputs (256 TiB of them), or, in stage 02, of
// the columns of one chunk.
TEST_F(Limits, MoreBlocksThanAGridHoldsAreRejected) {
  const bool columns = is("02_im2col_gemm");
  const ConvShape shape = shape_of(columns ? "n=65535 c=40000" : "n=1073741824 k=65536");
  if (stage().wants && stage().wants(shape)) GTEST_SKIP() << "not for filters of one tap";
  Convolution conv;
  conv.shape = shape;
  conv.input = conv.output = untouchable();
  conv.input_count = shape.input_count(), conv.output_count = shape.output_count();
  conv.filters = untouchable(), conv.filter_count = shape.filter_count();
  conv.workspace = untouchable();
  // As much as stage 02 could wish for.
  conv.workspace_bytes = columns ? std::size_t{1} << 47 : least_workspace_bytes(stage(), shape);
  constexpr int FEW = 512;
  if (grids_for(conv, FEW).size() >= FEW) GTEST_SKIP() << "it launches a kernel for each image";
  const std::vector<int64_t> grids = grids_for(conv, shape.N);
  const std::vector<int64_t> fewer = grids_for(conv, shape.N / 1024);
  if (!grids.empty() && grids == fewer) {
    GTEST_SKIP() << "its grid is as large for fewer images: its blocks go round";
  }
  const auto blocks = [](const std::vector<int64_t>& of) {
    return std::accumulate(of.begin(), of.end(), int64_t{0});
  };
  if (!grids.empty() && blocks(grids) / 1000 >= blocks(fewer)) {
    GTEST_SKIP() << "its blocks are large enough, or its launches many: " << blocks(grids);
  }
  const std::string message = message_of<InvalidArgument>([&] { launches_of(stage(), conv); });
  expect_contains(message, "blocks, more than a grid holds (2147483647)");
}

// ---- Workspace ----

using Workspace = LimitsTest;

// Every amount between the least and the most that changes what the stage does. (One byte less than the
// least: c_api_test.cpp.)
TEST_P(Workspace, EveryAmountDownToTheLeast) {
  const auto found = find_suited(make_conv_shape(GetParam().arguments), stage());
  if (!found) GTEST_SKIP() << "no problem of this size suits it";
  const Sample sample(*found);
  const ConvShape& shape = sample.shape();
  const std::size_t most = workspace_bytes(stage(), shape);
  const std::size_t least = least_workspace_bytes(stage(), shape);
  OnDevice device(stage(), sample.host());
  Convolution conv = device.arguments();
  int amounts = 0;
  constexpr int MANY = 200;  // where it takes any: half of what is left each time
  const auto next = [&](std::size_t bytes) {
    return workspace_bytes(stage(), shape,
                           amounts < MANY ? bytes - 1 : least + (bytes - 1 - least) / 2);
  };
  for (std::size_t bytes = most;; bytes = next(bytes)) {
    SCOPED_TRACE(std::to_string(bytes) + " bytes");
    ASSERT_GE(bytes, least);
    conv.workspace_bytes = bytes;
    sample.expect_right(device.run_stage(conv));
    device.expect_no_damage();
    ++amounts;
    if (bytes == least) break;
  }
  RecordProperty("amounts", amounts);
  if (is("02_im2col_gemm")) {
    EXPECT_EQ(amounts, 4 + shape.P() - 1);  // 5, 3, 2, 1 images; then 6 to 1 of the 7 rows
  } else if ((is("11_split_k") || is("12_tensor_cores")) && GetParam().name == "long_sums") {
    EXPECT_GT(amounts, 4);  // of parts
  }
}

// Two groups, which take turns with the workspace of one where there is none for both.
INSTANTIATE_TEST_SUITE_P(
    Of, Workspace,
    testing::ValuesIn(problems_of(
        {{"short_sums", "n=5 c=6 h=9 w=12 k=14 r=3 s=2 stride_w=2 pad_w=3 groups=2"},
         {"long_sums", "n=5 c=100 h=9 w=12 k=14 r=3 s=2 stride_w=2 pad_w=3 groups=2"}})),
    name_of);

// Sizes that need more than 32 bits, and at the extremes almost 64.
TEST_F(Limits, WorkspaceOfExtremeShapesDoesNotOverflow) {
  using Wide = __int128;
  for (const char* extents :
       {"h=w=46339 r=s=23170",  // most taps times most outputs
        "w=1073741823 s=536870912", "c=2147418112 n=536870912", "k=2147418112"}) {
    const auto found = find_suited(shape_of(extents), stage());
    if (!found) continue;
    const ConvShape shape = *found;
    SCOPED_TRACE(to_string(shape));
    const std::size_t least = least_workspace_bytes(stage(), shape);
    const std::size_t most = workspace_bytes(stage(), shape, SIZE_MAX);
    EXPECT_LE(least, most);
    EXPECT_EQ(workspace_bytes(stage(), shape, least), least);
    if (is("02_im2col_gemm")) {
      const Wide column = Wide{4} * shape.CRS();
      EXPECT_TRUE(most >= column * shape.PQ() && most % column == 0) << most;
      EXPECT_TRUE(least >= column * shape.Q() && least <= column * (shape.Q() + 7)) << least;
    } else if (most > 0 && std::string(stage().name) < "17") {  // the filters, rearranged
      EXPECT_TRUE(most >= Wide{4} * shape.filter_count()) << most;
    }
  }
}

// ---- Stage 11's plan ----

class PlanTest : public DeviceTest {
 protected:
  void SetUp() override {
    if (!is("11_split_k")) GTEST_SKIP() << "plans nothing";
    DeviceTest::SetUp();
  }
  void TearDown() override {
#ifndef CUDART_VERSION
    simulator::set_multiprocessors(132);
#endif
  }

  // The bits of the output; the launches are noted: filters packed, the convolution, and parts added.
  std::vector<float> run_on(const Sample& sample, const Placement& placement = {}) {
    OnDevice device(stage(), sample.host(), placement);
    launches_ = launches_of(stage(), device.arguments());
    std::vector<float> output = device.run_stage();
    sample.expect_right(output, stage().precision);
    device.expect_no_damage();
    return output;
  }

  std::vector<KernelLaunch> launches_;
};

// A late layer of a network: one tile of pixels, long sums.
Sample few_outputs() { return Sample("c=256 h=w=7 k=64 r=s=3 pad_h=pad_w=1", DataKind::kUniform); }

TEST_F(PlanTest, FewOutputsAreSharedOutAmongAllMultiprocessors) {
  const Sample sample = few_outputs();
  const std::vector<float> in_parts = run_on(sample);
  ASSERT_EQ(launches_.size(), 3u) << "filters packed, parts computed, and added";
  EXPECT_GE(launches_[1].blocks, multiprocessors() / 2);
  EXPECT_LE(launches_[1].blocks, 3 * multiprocessors()) << "more than can run at once";
  EXPECT_EQ(run_on(sample), in_parts) << "the same again";

  const std::vector<float> whole = run_on(sample, {{}, true});
  EXPECT_EQ(launches_.size(), 2u) << "no room for partial sums: nothing to add";
  EXPECT_EQ(launches_[1].parts, 1);
  EXPECT_NE(whole, in_parts) << "added in the same order: was anything cut?";
}

// Bytes of workspace between what the plan wants and the least: as many parts as there is room for.
TEST_F(PlanTest, AsManyPartsAsFit) {
  const Sample sample = few_outputs();
  const ConvShape& shape = sample.shape();
  const std::size_t part = sizeof(float) * static_cast<std::size_t>(shape.output_count());
  Placement short_by_one;
  short_by_one.workspace_limit = least_workspace_bytes(stage(), shape) + 4 * part - 1;
  run_on(sample, short_by_one);
  EXPECT_EQ(launches_[1].parts, 3);
  short_by_one.workspace_limit += 1;
  run_on(sample, short_by_one);
  EXPECT_EQ(launches_[1].parts, 4);
}

// Enough blocks, or sums too short to be cut: the output is written at once.
TEST_F(PlanTest, WhatHasEnoughBlocksStaysWhole) {
#ifndef CUDART_VERSION
  simulator::set_multiprocessors(4);  // enough for it is less to simulate
#endif
  ConvShape many = shape_of("c=64 h=10 w=18 k=32 r=s=3");  // a tile of 128 pixels in each image
  many.N = 3 * multiprocessors();
  for (const ConvShape& shape : {many, shape_of("c=7 h=w=7 k=32 r=s=3")}) {
    SCOPED_TRACE(to_string(shape));
    run_on(Sample(shape, DataKind::kUniform));
    EXPECT_EQ(launches_.size(), 2u);
    EXPECT_EQ(launches_[1].parts, 1);
  }
}

// 256 filters are rows of 288 in blocks of 96, and of 256 in all others; with so many taps the slack
// for those looked ahead to doesn't hide the difference.
TEST_F(PlanTest, BlocksOf96FiltersHaveRoom) {
#ifndef CUDART_VERSION
  simulator::set_multiprocessors(3);
#endif
  run_on(Sample("c=800 h=w=23 k=256", DataKind::kUniform));  // 5 tiles of 128 pixels
  if (multiprocessors() == 3) {
    EXPECT_EQ(launches_[1].blocks, 5 * 3) << "no blocks of 96";
  }
}

// So many filters and taps that those of two groups don't fit into one group's room with its slack.
TEST_F(PlanTest, GroupsHaveRoom) {
  run_on(Sample("c=800 h=w=7 k=1024 groups=2", DataKind::kUniform));
  EXPECT_EQ(launches_.size(), 3u) << "both groups in one launch, their parts added in another";
  EXPECT_GT(launches_[1].parts, 1);
}

}  // namespace
}  // namespace convladder
