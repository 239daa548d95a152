// What stands between a caller and a stage: registration, the workspace question, and what run()
// makes of groups. The stage here is a stand-in that only counts its calls. Bad arguments are in
// c_api_test.cpp, for every stage; here are those that no caller of C can pass.
#include <gtest/gtest.h>

#include "common/core/stage.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

int calls = 0;
void count_call(const Convolution&, cudaStream_t) { ++calls; }

std::vector<Convolution> received;
void keep(const Convolution& conv, cudaStream_t) { received.push_back(conv); }

// Wants 4096 bytes, works with 1024.
std::size_t want_workspace(const ConvShape&, std::size_t limit) {
  return limit >= 4096 ? 4096 : 1024;
}

constexpr Stage PLAIN = {"98_plain", "", count_call, nullptr, false};
constexpr Stage NEEDY = {"97_needy", "", count_call, want_workspace, true};

// Registered in the wrong order.
const StageRegistration plain_registration(PLAIN), needy_registration(NEEDY);

constexpr Stage KEEPING = {"keeping", "", keep, want_workspace, true};  // not registered
std::size_t want_for_groups(const ConvShape& shape, std::size_t limit) {
  const std::size_t groups = shape.groups;
  return groups * (limit >= groups * 4096 ? 4096 : 1024);
}
constexpr Stage TOGETHER = {"together", "", keep, want_for_groups, true, true};

// A valid problem over host memory; a stand-in never looks at it.
class RunArguments : public testing::Test {
 protected:
  RunArguments() {
    conv.shape = shape_of("n=2 c=3 h=5 w=7 k=4 r=3 s=2");
    conv.input = buffer, conv.input_count = conv.shape.input_count();
    conv.filters = buffer, conv.filter_count = conv.shape.filter_count();
    conv.bias = buffer, conv.bias_count = conv.shape.K;
    conv.output = buffer, conv.output_count = conv.shape.output_count();
    conv.workspace = buffer, conv.workspace_bytes = sizeof buffer;
    calls = 0;
  }

  void expect_accepted(const Stage& stage) {
    if (cudaPeekAtLastError() != cudaSuccess) GTEST_SKIP() << "no GPU: every CUDA call fails";
    EXPECT_NO_THROW(run(stage, conv, nullptr));
    EXPECT_EQ(calls, 1);
  }

  void expect_rejected(const Stage& stage, const std::string& message) {
    EXPECT_EQ(message_of<InvalidArgument>([&] { run(stage, conv, nullptr); }), message);
    EXPECT_EQ(calls, 0) << "the stage was called in spite of the error";
  }

  alignas(256) float buffer[1024];
  Convolution conv;
};

TEST(StageRegistry, StagesAreOrderedByName) {
  ASSERT_EQ(stages().size(), 2u);
  EXPECT_STREQ(stages()[0].name, "97_needy");
  EXPECT_STREQ(stages()[1].name, "98_plain");
}

TEST(StageRegistry, FindsByName) {
  EXPECT_STREQ(find_stage("98_plain").name, "98_plain");
  EXPECT_EQ(message_of<InvalidArgument>([] { find_stage("plain"); }),
            "stage 'plain' is unknown; there are: 97_needy, 98_plain");
}

TEST(StageWorkspace, IsAskedWithinTheLimit) {
  const ConvShape shape = shape_of("");
  EXPECT_EQ(workspace_bytes(PLAIN, shape), 0u);
  EXPECT_EQ(workspace_bytes(NEEDY, shape), 4096u);
  EXPECT_EQ(workspace_bytes(NEEDY, shape, 4095), 1024u);
  EXPECT_EQ(workspace_bytes(NEEDY, shape, 1024), 1024u);
  EXPECT_EQ(message_of<InvalidArgument>([&] { workspace_bytes(NEEDY, shape, 1023); }),
            "workspace limit = 1023: 97_needy needs at least 1024 bytes for "
            "n1 c1 1x1 k1 1x1 stride 1x1 pad 0x0 dil 1x1");
}

TEST(StageWorkspace, InvalidShapesAreRejected) {
  ConvShape shape;
  shape.C = 0;
  EXPECT_EQ(message_of<InvalidArgument>([&] { workspace_bytes(PLAIN, shape); }),
            "c = 0: must be at least 1");
}

TEST_F(RunArguments, Tf32IsForStagesThatHaveIt) {
  conv.precision = Precision::kTf32;
  expect_rejected(PLAIN, "precision = tf32: 98_plain has FP32 alone");
  EXPECT_THROW(in_tf32(PLAIN), InvalidArgument);
  constexpr Stage BOTH = {"96_both", "", count_call, nullptr, false, false, "96_both (TF32)"};
  const Stage changed = in_tf32(BOTH);
  EXPECT_STREQ(changed.name, "96_both (TF32)");
  EXPECT_EQ(changed.precision, Precision::kTf32);
  expect_accepted(BOTH);
}

TEST_F(RunArguments, BuffersMayBeLarger) {
  conv.input_count += 1, conv.filter_count += 2, conv.bias_count += 3, conv.output_count += 4;
  expect_accepted(PLAIN);
}

// Three groups, each with 2 channels, 4 filters [4,2,3,2] and outputs [4,3,6], in two images.
class RunGroups : public RunArguments {
 protected:
  RunGroups() {
    conv.shape = shape_of("n=2 c=6 h=5 w=7 k=12 r=3 s=2 groups=3");
    conv.input_count = 2 * 6 * 35, conv.filter_count = 12 * 12;
    conv.bias_count = 12, conv.output_count = 2 * 12 * 18;
    received.clear();
  }

  // `part` must be group g, from image n on.
  void expect_part(const Convolution& part, int n, int g) const {
    SCOPED_TRACE("image " + std::to_string(n) + ", group " + std::to_string(g));
    const int input = (n * 6 + g * 2) * 35, filters = g * 4 * 12, output = (n * 12 + g * 4) * 18;
    EXPECT_EQ(part.input, conv.input + input);
    EXPECT_EQ(part.input_count, conv.input_count - input);
    EXPECT_EQ(part.filters, conv.filters + filters);
    EXPECT_EQ(part.filter_count, conv.filter_count - filters);
    EXPECT_EQ(part.bias, conv.bias + g * 4);
    EXPECT_EQ(part.bias_count, conv.bias_count - g * 4);
    EXPECT_EQ(part.output, conv.output + output);
    EXPECT_EQ(part.output_count, conv.output_count - output);
    EXPECT_EQ(part.workspace, conv.workspace);
    EXPECT_EQ(part.workspace_bytes, conv.workspace_bytes);
  }
};

TEST_F(RunGroups, AreEnqueuedOneAfterTheOther) {
  if (cudaPeekAtLastError() != cudaSuccess) GTEST_SKIP() << "no GPU: every CUDA call fails";
  conv.relu = true;
  run(KEEPING, conv, nullptr);
  ASSERT_EQ(received.size(), 3u);
  for (int g = 0; g < 3; ++g) {
    const Convolution& group = received[g];
    expect_part(group, 0, g);
    EXPECT_EQ(to_string(group.shape), to_string(conv.shape)) << g;
    EXPECT_TRUE(group.relu) << g;
  }
}

// If their workspace has room; else one after the other, and so with every image.
TEST_F(RunGroups, AreEnqueuedAtOnce) {
  constexpr std::size_t ALL = 3 * 1024;
  EXPECT_EQ(workspace_bytes(TOGETHER, conv.shape), 3 * 4096u);
  EXPECT_EQ(workspace_bytes(TOGETHER, conv.shape, 3 * 4096 - 1), ALL);
  EXPECT_EQ(workspace_bytes(TOGETHER, conv.shape, ALL - 1), 1024u);
  EXPECT_EQ(least_workspace_bytes(TOGETHER, conv.shape), 1024u);
  if (cudaPeekAtLastError() != cudaSuccess) GTEST_SKIP() << "no GPU: every CUDA call fails";
  conv.workspace_bytes = ALL;
  run(TOGETHER, conv, nullptr);
  ASSERT_EQ(received.size(), 1u);
  expect_part(received[0], 0, 0);
  EXPECT_EQ(to_string(received[0].shape), to_string(conv.shape));

  received.clear();
  conv.workspace_bytes = ALL - 1;
  run(TOGETHER, conv, nullptr);
  ASSERT_EQ(received.size(), 6u);
  for (int i = 0; i < 6; ++i) {
    const Convolution& part = received[i];
    expect_part(part, i / 3, i % 3);
    EXPECT_EQ(to_string(part.shape), "n1 c2 5x7 k4 3x2 stride 1x1 pad 0x0 dil 1x1") << i;
  }
}

// A grid has 65,535 blocks along z.
TEST_F(RunGroups, AreNoMoreThanAGridHolds) {
  if (cudaPeekAtLastError() != cudaSuccess) GTEST_SKIP() << "no GPU: every CUDA call fails";
  for (const int groups : {65535, 65536}) {
    ConvArguments a;
    a.c = a.k = a.groups = groups;
    conv.shape = make_conv_shape(a);
    conv.input_count = conv.filter_count = conv.bias_count = conv.output_count = a.c;
    conv.workspace_bytes = std::size_t{1} << 40;
    received.clear();
    run(TOGETHER, conv, nullptr);
    EXPECT_EQ(received.size(), groups == 65535 ? 1u : 65536u);
  }
}

TEST_F(RunArguments, InvalidShape) {
  conv.shape.R = 6;
  expect_rejected(PLAIN, "r = 6: the dilated filter spans 6, more than (h + 2*pad) = 5");
}

}  // namespace
}  // namespace convladder
