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
  scale<<<dim3(1), dim3(static_cast<unsigned>(conv.output_count)), 0, stream>>>(
      conv.input, conv.filters, conv.bias, conv.output, wrong);
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

// What a command prints of 64 outputs. The record is called x.json.
std::string printed_by(int (*command)(const std::vector<std::string>&), const TempFolder& folder,
                       const std::vector<std::string>& stages, int status) {
  std::vector<std::string> words = {"--n", "1",   "--c", "1",      "--h",
                                    "4",   "--w", "16",  "--json", folder.path("x.json")};
  for (const std::string& stage : stages) words.insert(words.end(), {"--stage", stage});
  testing::internal::CaptureStdout();
  const int got = command(words);
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_EQ(got, status) << text;
  return text;
}

TEST(Commands, ProfileHasNoCountsOfAWrongStage) {
  const TempFolder folder;
  expect_contains(printed_by(profile_command, folder, {"99_wrong"}, 1),
                  "99_wrong: wrong: 3 of 64 outputs; output[n=0,k=0,p=0,q=0] = ");
  EXPECT_EQ(folder.entries(), 0);
  expect_contains(printed_by(profile_command, folder, {"98_right", "99_wrong"}, 1),
                  "98_right: right (max error / allowed: ");
  const std::string record = folder.read("x.json");
  // The input, the filter and the bias are loaded, by two warps each.
  expect_parts(record, {"98_right", "\"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum\":6"});
  EXPECT_EQ(record.find("99_wrong"), std::string::npos);
}

TEST(Commands, ShowEachStageAsItEnds) {
  mistakes = 0;  // check runs a stage that is wrong no more
  for (const auto& command : {run_command, check_command, profile_command}) {
    const TempFolder folder;
    const std::string text = printed_by(command, folder, {}, 0).substr(0, printed);
    expect_contains(text, "98_right");
    EXPECT_EQ(text.find("99_wrong"), std::string::npos) << text;
  }
  mistakes = 3;
}

}  // namespace
}  // namespace convladder
