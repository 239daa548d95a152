// Problem lists: the CSV reader on good, odd and malformed files; the shipped list; the reduction.
#include "common/check/problems.h"

#include <gtest/gtest.h>

#include <set>

#include "common/tests/support.h"

namespace convladder {
namespace {

std::vector<Problem> read_text(const std::string& text) {
  const TempFolder folder;
  return read_problems(folder.write("list.csv", text));
}

TEST(Problems, AColumnForBothAxesIsWarnedOf) {
  for (const char* name : {"stride", "padding", "dilation", "stride_h", "note"}) {
    testing::internal::CaptureStderr();
    const std::string header = std::string("n,c,h,w,k,r,s,") + name;
    EXPECT_EQ(read_text(header + "\n1,1,4,4,1,3,3,1\n").size(), 1u);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(said.find("list.csv:1:15: column '" + std::string(name) + "' is ignored; there is") !=
                  std::string::npos,
              name[0] != 'n' && name != std::string("stride_h"))
        << said;
  }
}

TEST(FindProblem, GivesNamesThatHaveThePart) {
  std::vector<Problem> problems(3);
  problems[0].name = "alexnet_conv1", problems[1].name = "alexnet_conv2";
  problems[2].name = "unet";
  EXPECT_EQ(&find_problem(problems, "alexnet_conv2"), &problems[1]);
  const auto message = [&](const char* name) {
    return message_of<InvalidArgument>([&] { find_problem(problems, name); });
  };
  EXPECT_EQ(message("alexnet"),
            "problem 'alexnet' is unknown; near it: alexnet_conv1, alexnet_conv2");
  EXPECT_EQ(message("resnet152"), "problem 'resnet152' is unknown");
}

TEST(Problems, ReadsEveryColumn) {
  const auto problems = read_text(
      "name,n,c,h,w,k,r,s,stride_h,stride_w,pad_h,pad_w,dil_h,dil_w,groups,bias\n"
      "first,1,4,30,40,6,2,3,8,9,10,11,12,13,2,0\n");
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].name, "first");
  EXPECT_FALSE(problems[0].bias);
  EXPECT_EQ(to_string(make_conv_shape(problems[0].arguments)),
            "n1 c4 30x40 k6 2x3 stride 8x9 pad 10x11 dil 12x13 groups 2");
}

TEST(Problems, AbsentAndEmptyColumnsTakeTheDefaults) {
  for (const char* text :
       {"k,s,r,w,h,c,n\n7,2,3,5,4,6,8\n",
        "k,s,r,w,h,c,n,stride_h,stride_w,pad_h,pad_w,dil_h,dil_w,groups,bias,name\n"
        "7,2,3,5,4,6,8,,,,,,,,,\n"}) {
    const auto problems = read_text(text);
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_EQ(problems[0].name, "row2");
    EXPECT_TRUE(problems[0].bias);
    EXPECT_EQ(to_string(make_conv_shape(problems[0].arguments)),
              "n8 c6 4x5 k7 3x2 stride 1x1 pad 0x0 dil 1x1");
  }
}

TEST(Problems, UnderstandsWhatSpreadsheetsWrite) {
  const auto problems = read_text(
      "\xEF\xBB\xBF"
      "# a comment\r\n\r\n"
      "\"name\", n ,c,h,w,k,r,s,remark\r\n"
      "  \"a \"\"quoted\"\", name\" ,1, 2 ,\"3\",4,5,6,7,\"x,y\"\r\n"
      "   \t \r\n"
      "  # another\r\n"
      "b,1,2,3,4,5,6,7,");
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[0].name, "a \"quoted\", name");
  EXPECT_EQ(problems[0].arguments.c, 2);
  EXPECT_EQ(problems[0].arguments.h, 3);
  EXPECT_EQ(problems[1].name, "b");
}

TEST(Problems, RowsThatMustBeRejectedAreStillRead) {
  const auto problems = read_text("n,c,h,w,k,r,s,groups\n0,-1,3,4,5,6,7,2\n1,1,1,1,1,1,1,1\n");
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[0].arguments.c, -1);
  EXPECT_EQ(problems[0].arguments.groups, 2);
}

class ShippedProblems : public testing::Test {
 protected:
  const std::vector<Problem> problems = read_problems(CONVLADDER_PROBLEMS);

  static bool is_nasty(const Problem& problem) { return problem.name.rfind("nasty_", 0) == 0; }
};

TEST_F(ShippedProblems, AreLegalAndHavePlainNames) {
  for (const Problem& problem : problems) {
    EXPECT_NO_THROW(make_conv_shape(problem.arguments)) << problem.name;
    EXPECT_EQ(problem.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"),
              std::string::npos)
        << problem.name;
  }
}

TEST_F(ShippedProblems, NastyOnesAreManyAndSmall) {
  int nasty = 0;
  for (const Problem& problem : problems) {
    if (!is_nasty(problem)) continue;
    ++nasty;
    EXPECT_LE(multiply_adds(problem.arguments), 3e6) << problem.name;
  }
  EXPECT_GE(nasty, 40);
}

// 8, 16, 32, 64 and 128, one less and one more, stand among the nasty ones for each extent that a
// tile can run along.
TEST_F(ShippedProblems, NastyOnesSitAroundTheSizesOfTiles) {
  std::set<int64_t> k, p, q, gemm_k, gemm_n;
  for (const Problem& problem : problems) {
    if (!is_nasty(problem)) continue;
    const ConvShape shape = make_conv_shape(problem.arguments);
    k.insert(shape.K);
    p.insert(shape.P());
    q.insert(shape.Q());
    gemm_k.insert(shape.CRS());
    gemm_n.insert(int64_t{shape.N} * shape.PQ());
  }
  for (const int64_t size : {8, 16, 32, 64, 128}) {
    for (const auto* extents : {&k, &p, &q, &gemm_k, &gemm_n}) {
      EXPECT_EQ(extents->count(size - 1), 1u) << size;
      EXPECT_EQ(extents->count(size + 1), 1u) << size;
    }
  }
}

TEST_F(ShippedProblems, HoldTheTwoThatEverythingIsMeasuredOn) {
  const ConvShape alexnet = make_conv_shape(find_problem(problems, "alexnet_conv1").arguments);
  EXPECT_EQ(to_string(alexnet), "n256 c3 224x224 k96 11x11 stride 4x4 pad 2x2 dil 1x1");
  const ConvShape kernelbench = make_conv_shape(find_problem(problems, "kernelbench_63").arguments);
  EXPECT_EQ(int64_t{kernelbench.N} * kernelbench.PQ() * kernelbench.CRS(), INT64_C(2406491136));
}

TEST_F(ShippedProblems, ReducedOnesFitAndKeepTheirCharacter) {
  for (const double limit : {1e5, 3e6, 5e7}) {
    for (const Problem& problem : problems) {
      SCOPED_TRACE(problem.name + " to " + std::to_string(limit));
      const ConvArguments& whole = problem.arguments;
      const ConvArguments cut = reduce(whole, limit);
      const ConvShape before = make_conv_shape(whole), after = make_conv_shape(cut);
      EXPECT_LE(multiply_adds(cut), limit);
      if (multiply_adds(whole) > limit) {
        EXPECT_GT(multiply_adds(cut), limit / 500);
        EXPECT_EQ(cut.n, 1);
      } else {
        EXPECT_EQ(to_string(after), to_string(before));
      }
      EXPECT_EQ(after.P() % 2, before.P() % 2);
      EXPECT_EQ(after.Q() % 2, before.Q() % 2);
      EXPECT_EQ(after.K % 2, before.K % 2);
      EXPECT_EQ(after.C % 2, before.C % 2);
      EXPECT_EQ(after.groups % 2, before.groups % 2);
      EXPECT_EQ(after.groups > 1, before.groups > 1);
      EXPECT_EQ((before.H - after.H) % (2 * before.stride_h), 0);
      EXPECT_EQ((before.W - after.W) % (2 * before.stride_w), 0);
      EXPECT_LE(after.P(), before.P());
      EXPECT_LE(after.Q(), before.Q());
      ConvShape restored = after;  // all but N, C, H, W, K and the groups is as it was
      restored.N = before.N, restored.C = before.C, restored.K = before.K;
      restored.groups = before.groups;
      restored.H = before.H, restored.W = before.W;
      EXPECT_EQ(to_string(restored), to_string(before));
    }
  }
}

// bench draws its means from common/layers.csv.
TEST(ShippedLayers, AreManyAndLegalAndOfEveryKind) {
  std::set<std::string> extents;
  int grouped = 0, depthwise = 0, small_batches = 0;
  for (const Problem& layer : read_problems(CONVLADDER_SOURCE_DIR "/common/layers.csv")) {
    const ConvShape shape = make_conv_shape(layer.arguments);
    EXPECT_TRUE(extents.insert(to_string(shape)).second) << layer.name << " counts twice";
    grouped += shape.groups > 1 && shape.C > 1;
    depthwise += shape.groups > 1 && shape.C == 1;
    small_batches += shape.N <= 2;
  }
  EXPECT_GE(extents.size(), 60u);
  EXPECT_GE(grouped, 5);
  EXPECT_GE(depthwise, 5);
  EXPECT_GE(small_batches, 10);
}

TEST(Reduce, TakesImagesThenPixelsThenChannels) {
  const ConvArguments a = arguments_of("n=10 c=64 h=w=66 k=64 r=s=3");  // P = Q = 64
  const auto reduced = [&](double macs) { return to_string(make_conv_shape(reduce(a, macs))); };
  const double image = multiply_adds(a) / 10;
  const std::string rest = " 3x3 stride 1x1 pad 0x0 dil 1x1";
  EXPECT_EQ(reduced(10 * image), "n10 c64 66x66 k64" + rest);
  EXPECT_EQ(reduced(9.9 * image), "n1 c64 66x66 k64" + rest);
  EXPECT_EQ(reduced(image / 2), "n1 c64 34x66 k64" + rest);
  EXPECT_EQ(reduced(image / 16), "n1 c64 18x18 k64" + rest);
  EXPECT_EQ(reduced(image / 32), "n1 c64 18x18 k32" + rest);
  EXPECT_EQ(reduced(image / 256), "n1 c16 18x18 k16" + rest);
  EXPECT_EQ(reduced(image / 512), "n1 c16 10x18 k16" + rest);
  EXPECT_EQ(reduced(1), "n1 c2 4x4 k2" + rest);
}

TEST(Reduce, TakesChannelsOfAGroupThenGroups) {
  ConvArguments a = arguments_of("c=192 h=w=16 k=768 groups=12");
  const auto reduced = [&](double part) {
    return to_string(make_conv_shape(reduce(a, part * multiply_adds(a))));
  };
  const std::string rest = " 1x1 stride 1x1 pad 0x0 dil 1x1 groups ";
  EXPECT_EQ(reduced(1), "n1 c192 16x16 k768" + rest + "12");
  EXPECT_EQ(reduced(1.0 / 4), "n1 c192 16x16 k192" + rest + "12");
  EXPECT_EQ(reduced(1.0 / 8), "n1 c96 16x16 k96" + rest + "6");
  EXPECT_EQ(reduced(1.0 / 24), "n1 c32 16x16 k32" + rest + "2");
  EXPECT_EQ(reduced(0), "n1 c4 2x2 k4" + rest + "2");
  a.c = a.k = a.groups = 27;  // depthwise, and odd
  EXPECT_EQ(reduced(0), "n1 c3 2x2 k3" + rest + "3");
}

TEST(Reduce, NeverTakesTheLastRowOfInput) {
  // The output is padding for the most part.
  const ConvArguments cut = reduce(arguments_of("h=3 w=4 pad_h=pad_w=5000 k=4"), 1000);
  EXPECT_EQ(cut.h, 1);
  EXPECT_EQ(cut.w, 2);
  EXPECT_EQ(cut.pad_h, 5000);
}

TEST(Reduce, LeavesRejectedProblemsAlone) {
  const ConvArguments a = arguments_of("n=1000000 c=0");
  EXPECT_EQ(reduce(a, 1).n, 1000000);
  EXPECT_EQ(multiply_adds(a), 0);
}

}  // namespace
}  // namespace convladder
