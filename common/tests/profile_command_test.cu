// `profile`, and what it has in common with `run` and `check`, on two stages that are made here: one is
// right, the other is wrong. Builds that count only.
#include <sys/stat.h>

#include "common/command/commands.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

// A 1x1 filter on one channel.
__global__ void scale(const float* input, const float* filter, const float* bias, float* output,
                      int wrong) {
  const int i = static_cast<int>(threadIdx.x);
  output[i] = input[i] * filter[0] + bias[0] + (i < wrong ? 1.0f : 0.0f);
}

void enqueue(const Convolution& conv, cudaStream_t stream, int wrong) {
  launch(scale, dim3(1), dim3(static_cast<unsigned>(conv.output_count)), stream, conv.input,
         conv.filters, conv.bias, conv.output, wrong);
}

void right(const Convolution& conv, cudaStream_t stream) { enqueue(conv, stream, 0); }

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
  EXPECT_FALSE(std::filesystem::exists(json()));
}

TEST_F(ProfileCommand, TheOthersAreCountedBesideIt) {
  const std::string text = profile({"98_right", "99_wrong"}, 1);
  expect_contains(text, "98_right: right (max error / allowed: ");
  expect_contains(folder_.read("profile.json"), "98_right");
  // The input, the filter and the bias are loaded, by two warps each.
  expect_contains(folder_.read("profile.json"),
                  "\"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum\":6");
  EXPECT_EQ(folder_.read("profile.json").find("99_wrong"), std::string::npos);
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
