// `check --fuzz` on a stage that is wrong: that it finds the mistake, and that the line it prints
// repeats it. The stage computes on the host, so this is for the simulator alone.
#include "common/harness/fuzz.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "common/check/reference.h"
#include "common/core/filter_tiles.h"
#include "common/core/launch.h"
#include "common/harness/commands.h"
#include "common/harness/options.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

void compute(const Convolution& conv) {
  const Reference reference =
      compute_reference({conv.shape, conv.input, conv.filters, conv.bias, conv.relu});
  std::copy(reference.value.begin(), reference.value.end(), conv.output);
}

void right(const Convolution& conv, cudaStream_t) { compute(conv); }

// Loses the last output where the input lies off its alignment and rows end behind a strip of 8.
void wrong(const Convolution& conv, cudaStream_t) {
  compute(conv);
  const bool misaligned = reinterpret_cast<std::uintptr_t>(conv.input) % 16 != 0;
  if (misaligned && conv.shape.Q() % 8 == 1) conv.output[conv.shape.output_count() - 1] = 0;
}

// Loses the last output in tiles of 12 filters per thread.
void wrong_with_12(const Convolution& conv, cudaStream_t) {
  compute(conv);
  if (filters_per_thread(1, conv.shape.K) == 12) conv.output[conv.shape.output_count() - 1] = NAN;
}

CONVLADDER_REGISTER_STAGE({"98_right", "", right, nullptr, true});
const StageRegistration wrong_registration({"99_wrong", "", wrong, nullptr, false});
const StageRegistration wrong_with_12_registration({"99_wrong_with_12", "", wrong_with_12,
                                                    filter_tiles_workspace, false});

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
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].stage, "98_right");
  for (const StageFuzz& result : results) {
    EXPECT_EQ(result.problems, 100);
    EXPECT_EQ(result.misaligned, 50);
    EXPECT_EQ(static_cast<int64_t>(result.reproduce.size()), result.failed);
  }
  EXPECT_EQ(results[0].failed, 0);
  EXPECT_GE(results[1].failed, 3);
  EXPECT_LE(results[1].failed, 50) << "more than the misaligned";
}

TEST(Fuzz, TheLineOfAFailureRepeatsIt) {
  const std::vector<std::string> lines = fuzz(settings(2))[1].reproduce;
  ASSERT_FALSE(lines.empty());
  for (const std::string& line : lines) {
    std::vector<std::string> call = words(line);
    ASSERT_EQ(call[0].rfind("CONVLADDER_SIM_SEED=", 0), 0u) << line;
    ASSERT_EQ(std::vector<std::string>(call.begin() + 1, call.begin() + 5),
              (std::vector<std::string>{"./ladder", "check", "--backend", "sim"}));
    const std::vector<std::string> arguments(call.begin() + 5, call.end());
    EXPECT_EQ(check_command(arguments), 1) << line;
    std::vector<std::string> aligned = arguments;
    *(std::find(aligned.begin(), aligned.end(), "--offset") + 1) = "0";
    EXPECT_EQ(check_command(aligned), 0) << line;
  }
}

TEST(Fuzz, TheLineOfAFailureNamesTheTile) {
  const std::vector<std::string> lines = fuzz(settings(2))[2].reproduce;
  ASSERT_FALSE(lines.empty());
  for (const std::string& line : lines) {
    const std::vector<std::string> call = words(line);
    std::vector<std::string> arguments(call.begin() + 5, call.end());
    const auto option = std::find(arguments.begin(), arguments.end(), "--filters-per-thread");
    ASSERT_NE(option, arguments.end()) << line;
    EXPECT_EQ(check_command(arguments), 1) << line;
    arguments.erase(option, option + 2);
    EXPECT_EQ(check_command(arguments), 0) << line;
  }
}

TEST(Check, TakesTheTileThatItIsTold) {
  const std::vector<std::string> problem = {"--shape", "nasty_primes", "--stage",
                                            "99_wrong_with_12", "--filters-per-thread"};
  const auto check = [&](const std::string& filters) {
    std::vector<std::string> arguments = problem;
    arguments.push_back(filters);
    return check_command(arguments);
  };
  EXPECT_EQ(check("4"), 0);
  EXPECT_EQ(check("12"), 1);
  EXPECT_EQ(check("16"), 0);
  EXPECT_EQ(check("each"), 1);
  for (const char* text : {"5", "", "all", "12,16"}) {
    const std::string message = message_of<UsageError>([&] { check(text); });
    EXPECT_EQ(message.rfind("--filters-per-thread = '", 0), 0u) << message;
  }
}

TEST(Check, RunsEachTileOnceAndOtherStagesOnce) {
  const TempFolder folder;
  EXPECT_EQ(check_command({"--shape", "nasty_primes", "--stage", "98_right", "--stage",
                           "99_wrong_with_12", "--filters-per-thread", "each", "--json",
                           folder.path("checks.json")}),
            1);
  const std::string text = folder.read("checks.json");
  const auto count = [&](const std::string& part) {
    int found = 0;
    for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("98_right"), 1) << text;
  EXPECT_EQ(count("99_wrong_with_12"), 4) << text;
  EXPECT_EQ(count("\"fail\""), 1) << text;
  EXPECT_EQ(count("12 filters per thread"), 1) << text;
}

TEST(Fuzz, TheSeedDecides) {
  EXPECT_EQ(fuzz(settings(3))[1].reproduce, fuzz(settings(3))[1].reproduce);
  EXPECT_NE(fuzz(settings(3))[1].reproduce, fuzz(settings(4))[1].reproduce);
}

TEST(Fuzz, WritesItsOutcomeAsJson) {
  const TempFolder folder;
  const std::string path = folder.path("fuzz.json");
  EXPECT_EQ(check_command({"--fuzz", "4", "--stage", "98_right", "--json", path}), 0);
  const std::string text = folder.read("fuzz.json");
  for (const char* part :
       {"\"format\": \"convladder fuzz\"", "\"version\": 1", "\"backend\": \"sim\"", "\"seed\": 1",
        "\"kernels\": \"", "\"98_right\": {\"problems\": 4, \"failed\": 0, \"misaligned\": 2"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  }
  EXPECT_EQ(check_command({"--fuzz", "100", "--max-gmac", "0.0001", "--stage", "99_wrong"}), 1);
}

TEST(Fuzz, EndsInTime) {
  FuzzSettings endless = settings(1);
  endless.count = INT64_C(1) << 40;
  endless.seconds = 0.2;
  for (const StageFuzz& result : fuzz(endless)) EXPECT_GE(result.problems, 1);
}

}  // namespace
}  // namespace convladder
