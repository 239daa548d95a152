// What stands between a caller and a stage: registration, and the workspace question. The stage here is a
// stand-in that only counts its calls. Bad arguments are in c_api_test.cpp, for every stage; here are those
// that no caller of C can pass.
#include <gtest/gtest.h>

#include "common/core/stage.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

int calls = 0;
void count_call(const Convolution&, cudaStream_t) { ++calls; }

// Wants 4096 bytes, works with 1024.
std::size_t want_workspace(const ConvShape&, std::size_t limit) {
  return limit >= 4096 ? 4096 : 1024;
}

constexpr Stage PLAIN = {"98_plain", "", count_call, nullptr, false};
constexpr Stage NEEDY = {"97_needy", "", count_call, want_workspace, true};

// Registered in the wrong order.
const StageRegistration plain_registration(PLAIN), needy_registration(NEEDY);

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
            "stage 'plain' is unknown; there are: 97_needy, 98_plain, and auto");
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

TEST_F(RunArguments, BuffersMayBeLarger) {
  conv.input_count += 1, conv.filter_count += 2, conv.bias_count += 3, conv.output_count += 4;
  expect_accepted(PLAIN);
}

TEST_F(RunArguments, InvalidShape) {
  conv.shape.R = 6;
  expect_rejected(PLAIN, "r = 6: the dilated filter spans 6, more than (h + 2*pad) = 5");
}

}  // namespace
}  // namespace convladder
