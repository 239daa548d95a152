// What stands between a caller and a stage: registration, and the workspace question. The stages here only stand
// in for some. Bad arguments are in c_api_test.cpp, for every stage.
#include <gtest/gtest.h>

#include "common/core/stage.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

void do_nothing(const Convolution&, cudaStream_t) {}

// Wants 4096 bytes, works with 1024.
std::size_t want_workspace(const ConvShape&, std::size_t limit) {
  return limit >= 4096 ? 4096 : 1024;
}

constexpr Stage PLAIN = {"98_plain", "", do_nothing, nullptr, false};
constexpr Stage NEEDY = {"97_needy", "", do_nothing, want_workspace, true};

// Registered in the wrong order.
const StageRegistration plain_registration(PLAIN), needy_registration(NEEDY);

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

}  // namespace
}  // namespace convladder
