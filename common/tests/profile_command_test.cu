// `profile`, and what it has in common with `run` and `check`, on stages of its own: one that is
// right, and may ask more of memory than the last time, and one that is wrong. Builds that count
// only.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <iterator>
#include <sstream>

#include "common/command/commands.h"
#include "common/core/launch.h"
#include "common/core/stage.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

// A 1x1 filter on one channel.
__global__ void scale(const float* input, const float* filter, const float* bias, float* output,
                      int wrong) {
  const int i = static_cast<int>(threadIdx.x);
  output[i] = input[i] * filter[0] + bias[0] + (i < wrong ? 1.0f : 0.0f);
}

int launches = 1;  // of the stage that is right

void enqueue(const Convolution& conv, cudaStream_t stream, int wrong) {
  launch(scale, dim3(1), dim3(static_cast<unsigned>(conv.output_count)), stream, conv.input,
         conv.filters, conv.bias, conv.output, wrong);
}

void right(const Convolution& conv, cudaStream_t stream) {
  for (int i = 0; i < launches; ++i) enqueue(conv, stream, 0);
}

int mistakes = 3;   // of the stage that is wrong
off_t printed = 0;  // bytes on stdout, a file, when it began last

void wrong(const Convolution& conv, cudaStream_t stream) {
  struct stat file = {};
  fstat(STDOUT_FILENO, &file);
  printed = file.st_size;
  enqueue(conv, stream, mistakes);
}

CONVLADDER_REGISTER_STAGE({"98_right", "", right, nullptr, false});
const StageRegistration wrong_registration({"99_wrong", "", wrong, nullptr, false});

class ProfileCommand : public testing::Test {
 protected:
  // What `profile` prints of 64 outputs, and its status.
  std::string profile(const std::vector<std::string>& stages, int status) {
    std::vector<std::string> words = {"--n", "1",   "--c", "1",      "--h",
                                      "4",   "--w", "16",  "--json", json()};
    for (const std::string& stage : stages) words.insert(words.end(), {"--stage", stage});
    testing::internal::CaptureStdout();
    const int got = profile_command(words);
    const std::string text = testing::internal::GetCapturedStdout();
    EXPECT_EQ(got, status) << text;
    return text;
  }

  std::string json() const { return folder_.path("profile.json"); }
  const TempFolder folder_;
};

TEST_F(ProfileCommand, AWrongStageHasNoCounts) {
  const std::string text = profile({"99_wrong"}, 1);
  expect_contains(text, "99_wrong: wrong: 3 of 64 outputs; output[n=0,k=0,p=0,q=0] = ");
  EXPECT_EQ(text.find("requests"), std::string::npos) << text;
  EXPECT_FALSE(std::filesystem::exists(json()));
}

TEST_F(ProfileCommand, TheOthersAreCountedBesideIt) {
  const std::string text = profile({"98_right", "99_wrong"}, 1);
  expect_contains(text, "98_right: right (max error / allowed: ");
  expect_contains(text, "requests");
  expect_contains(folder_.read("profile.json"), "98_right");
  EXPECT_EQ(folder_.read("profile.json").find("99_wrong"), std::string::npos);
}

// Global requests of the right stage in the table of stages, and these / before, / last time.
std::vector<std::string> requests_of(const std::string& text) {
  std::istringstream row(text.substr(text.find("\n98_right ", text.find("global requests"))));
  const std::vector<std::string> cells{std::istream_iterator<std::string>(row), {}};
  return {cells.begin() + 1, cells.begin() + 4};
}

TEST_F(ProfileCommand, ComparesWithTheLastTime) {
  profile({"98_right"}, 0);
  launches = 2;
  const std::string changed = profile({"98_right"}, 0);
  launches = 1;
  expect_contains(changed, "/ last time");
  // A launch: a load of the input, of the filter and of the bias, and a store, by two warps each.
  EXPECT_EQ(requests_of(changed), (std::vector<std::string>{"16", "-", "2"}));
  EXPECT_EQ(requests_of(profile({"98_right"}, 0)), (std::vector<std::string>{"8", "-", "0.5"}));
}

TEST_F(ProfileCommand, SaysWhatAStageTakesAtLeast) {
  const std::string text = profile({"98_right"}, 0);
  const std::size_t table = text.find("at least on an H200 [ms]");
  ASSERT_NE(table, std::string::npos) << text;
  // Two warps load three times each: six cycles. The launch alone takes longer.
  expect_contains(text.substr(table), "98_right                   0.00135  launch");
  expect_contains(folder_.read("profile.json"), "\"floor_limit\": \"launch\"");
}

TEST_F(ProfileCommand, RefusesAFileThatIsNoMachine) {
  const std::string path = folder_.path("machine.json");
  folder_.write("machine.json", "[]");
  EXPECT_THROW(profile_command({"--machine", path, "--json", json()}), std::runtime_error);
}

TEST(Commands, ShowEachStageAsItEnds) {
  mistakes = 0;  // check runs a stage that is wrong no more
  for (const auto& command : {run_command, check_command, profile_command}) {
    testing::internal::CaptureStdout();
    const TempFolder folder;
    command({"--n", "1", "--c", "1", "--h", "4", "--w", "16", "--json", folder.path("x.json")});
    const std::string text = testing::internal::GetCapturedStdout();
    expect_contains(text.substr(0, printed), "98_right");
    EXPECT_EQ(text.substr(0, printed).find("99_wrong"), std::string::npos) << text;
  }
  mistakes = 3;
}

}  // namespace
}  // namespace convladder
