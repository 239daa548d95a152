// `profile` on two stages that are made here: one is right, the other is wrong. Builds that count only.
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
void wrong(const Convolution& conv, cudaStream_t stream) { enqueue(conv, stream, 3); }

CONVLADDER_REGISTER_STAGE({"98_right", "", right, nullptr, false});
const StageRegistration wrong_registration({"99_wrong", "", wrong, nullptr, false});

// What it prints of 64 outputs, before it ends with status 1. The record is called x.json.
std::string printed(const TempFolder& folder, const std::vector<std::string>& stages) {
  std::vector<std::string> words = {"--n", "1",   "--c", "1",      "--h",
                                    "4",   "--w", "16",  "--json", folder.path("x.json")};
  for (const std::string& stage : stages) words.insert(words.end(), {"--stage", stage});
  testing::internal::CaptureStdout();
  EXPECT_EQ(profile_command(words), 1);
  return testing::internal::GetCapturedStdout();
}

TEST(Commands, ProfileHasNoCountsOfAWrongStage) {
  const TempFolder folder;
  expect_contains(printed(folder, {"99_wrong"}),
                  "99_wrong: wrong: 3 of 64 outputs; output[n=0,k=0,p=0,q=0] = ");
  EXPECT_EQ(folder.entries(), 0);
  expect_contains(printed(folder, {"98_right", "99_wrong"}),
                  "98_right: right (max error / allowed: ");
  const std::string record = folder.read("x.json");
  // The input, the filter and the bias are loaded, by two warps each.
  expect_parts(record, {"98_right", "\"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum\":6"});
  EXPECT_EQ(record.find("99_wrong"), std::string::npos);
}

}  // namespace
}  // namespace convladder
