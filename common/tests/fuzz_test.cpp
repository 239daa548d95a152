// `check --fuzz` on a stage that is wrong: that it finds the mistake, and that the line it prints
// repeats it. The stage computes on the host, so this is for the simulator alone.
#include "common/check/fuzz.h"

#include "common/command/commands.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

void right(const Convolution& conv, cudaStream_t stream) { compute_on_host(conv, 0, stream); }

// Has the last output wrong where the input lies off its alignment and rows end behind a strip of 8. (A
// group's input does so of itself at times.)
void wrong(const Convolution& conv, cudaStream_t stream) {
  const bool misaligned = reinterpret_cast<std::uintptr_t>(conv.input) % 16 != 0;
  const bool loses = conv.shape.groups == 1 && misaligned && conv.shape.Q() % 8 == 1;
  compute_on_host(conv, loses ? 1000 : 0, stream);
}

CONVLADDER_REGISTER_STAGE({"98_right", "", right, nullptr, true});
const StageRegistration wrong_registration({"99_wrong", "", wrong, nullptr, false});

FuzzSettings settings(uint64_t seed) {
  FuzzSettings settings;
  settings.stages = stages();
  settings.seed = seed;
  settings.count = 100;
  settings.max_macs = 1e5;
  return settings;
}

std::vector<std::string> words(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

TEST(Fuzz, FindsTheWrongStageAlone) {
  const std::vector<StageFuzz> results = fuzz(settings(1));
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].stage, "98_right");
  for (const StageFuzz& result : results) {
    EXPECT_EQ(result.problems, 100);
    EXPECT_EQ(result.misaligned, 50);
    EXPECT_EQ(static_cast<int64_t>(result.reproduce.size()), result.failed);
  }
  EXPECT_EQ(results[0].failed, 0);
  EXPECT_GE(results[1].failed, 3);
  EXPECT_LE(results[1].failed, 50) << "more than the misaligned";
  EXPECT_EQ(fuzz(settings(1))[1].reproduce, results[1].reproduce);
  EXPECT_NE(fuzz(settings(3))[1].reproduce, results[1].reproduce) << "the seed decides";
}

// And without what makes the stage wrong, the same problem passes.
TEST(Fuzz, TheLineOfAFailureRepeatsIt) {
  const std::vector<StageFuzz> results = fuzz(settings(2));
  ASSERT_FALSE(results[1].reproduce.empty());
  for (const std::string& line : results[1].reproduce) {
    const std::vector<std::string> call = words(line);
    ASSERT_EQ(call[0].rfind("CONVLADDER_SIM_SEED=", 0), 0u) << line;
    ASSERT_EQ(std::vector<std::string>(call.begin() + 1, call.begin() + 5),
              (std::vector<std::string>{"./ladder", "check", "--backend", "sim"}));
    std::vector<std::string> arguments(call.begin() + 5, call.end());
    const auto given = std::find(arguments.begin(), arguments.end(), "--offset");
    ASSERT_NE(given, arguments.end()) << line;
    EXPECT_EQ(check_command(arguments), 1) << line;
    *(given + 1) = "0";
    EXPECT_EQ(check_command(arguments), 0) << line;
  }
}

}  // namespace
}  // namespace convladder
