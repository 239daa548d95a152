// Lists of problems: the CSV reader on good and odd files (bad ones: files_test.cpp); the shipped lists;
// the reduction; and problems drawn at random: legal, affordable, and the same everywhere.
#include <set>

#include "common/check/random_problem.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

std::vector<Problem> read_text(const std::string& text) {
  const TempFolder folder;
  return read_problems(folder.write("list.csv", text));
}

TEST(Problems, NearNamesAreNamed) {
  const std::vector<Problem> problems =
      problems_of({{"alexnet_conv1", ""}, {"alexnet_conv2", ""}, {"unet", ""}});
  EXPECT_EQ(&find_problem(problems, "alexnet_conv2"), &problems[1]);
  const auto message = [&](const char* name) {
    return message_of<InvalidArgument>([&] { find_problem(problems, name, "x.csv"); });
  };
  EXPECT_EQ(message("alexnet"),
            "problem 'alexnet' is unknown; near it: alexnet_conv1, alexnet_conv2");
  EXPECT_EQ(message("AlexNet-conv2"), "problem 'AlexNet-conv2' is unknown; near it: alexnet_conv2");
  EXPECT_EQ(message("_"), "problem '_' is unknown: none in x.csv has a name like it");
  EXPECT_EQ(message("resnet152"),
            "problem 'resnet152' is unknown: none in x.csv has a name like it");
}

// Every column; those that are absent or empty; what spreadsheets write; rows that make_conv_shape() will
// reject.
TEST(Problems, AreReadWhole) {
  const std::pair<const char*, const char*> CASES[] = {
      {"name,n,c,h,w,k,r,s,stride_h,stride_w,pad_h,pad_w,dil_h,dil_w,groups,bias\n"
       "first,1,4,30,40,6,2,3,8,9,10,11,12,13,2,0\n",
       "first: 1 4 30 40 6 2 3 8 9 10 11 12 13 2, no bias\n"},
      {"k,s,r,w,h,c,n\n7,2,3,5,4,6,8\n", "row2: 8 6 4 5 7 3 2 1 1 0 0 1 1 1\n"},
      {"k,s,r,w,h,c,n,stride_h,stride_w,pad_h,pad_w,dil_h,dil_w,groups,bias,name\n"
       "7,2,3,5,4,6,8,,,,,,,,,\n",
       "row2: 8 6 4 5 7 3 2 1 1 0 0 1 1 1\n"},
      {"\xEF\xBB\xBF"
       "# a comment\r\n\r\n"
       "\"name\", n ,c,h,w,k,r,s,remark\r\n"
       "  \"a \"\"quoted\"\", name\" ,1, 2 ,\"3\",4,5,6,7,\"x,y\"\r\n"
       "   \t \r\n"
       "  # another\r\n"
       "b,1,2,3,4,5,6,7,",
       "a \"quoted\", name: 1 2 3 4 5 6 7 1 1 0 0 1 1 1\nb: 1 2 3 4 5 6 7 1 1 0 0 1 1 1\n"},
      {"n,c,h,w,k,r,s,groups\n0,-1,3,4,5,6,7,2\n", "row2: 0 -1 3 4 5 6 7 1 1 0 0 1 1 2\n"}};
  for (const auto& [text, expected] : CASES) {
    std::string all;
    for (const Problem& problem : read_text(text)) {
      all += problem.name + ":";
      for (const Extent& e : EXTENTS) all += " " + std::to_string(problem.arguments.*e.given);
      all += problem.bias ? "\n" : ", no bias\n";
    }
    EXPECT_EQ(all, expected);
  }
}

// Columns that nobody reads, whose names are nearly those of others.
TEST(Problems, WarnOfColumnsThatAreMeant) {
  const std::pair<const char*, const char*> CASES[] = {{"group", "groups"},
                                                       {"Groups", "groups"},
                                                       {"N", "n"},
                                                       {"Stride", "stride_h and stride_w"},
                                                       {"BIAS", "bias"},
                                                       {"strid", "stride_h and stride_w"},
                                                       {"bias_", "bias"},
                                                       {"padding", "pad_h and pad_w"},
                                                       {"remark", ""},
                                                       {"stride_w", ""},
                                                       {"strid_w", "stride_w"},
                                                       {"pad_hh", "pad_h"},
                                                       {"paths", ""}};
  for (const auto& [column, meant] : CASES) {
    testing::internal::CaptureStderr();
    read_text(std::string("n,c,h,w,k,r,s,") + column + "\n1,2,3,4,5,1,1,1\n");
    const std::string said = testing::internal::GetCapturedStderr();
    const std::string warning =
        std::string(":1:15: column '") + column + "' is ignored; there is " + meant;
    EXPECT_EQ(said.find(warning) != std::string::npos, *meant != '\0') << said;
    EXPECT_EQ(said.empty(), *meant == '\0') << said;
  }
}

// ---- The lists here ----

const std::vector<Problem>& shipped() {
  static const std::vector<Problem> problems = read_problems(CONVLADDER_PROBLEMS);
  return problems;
}

// 8, 16, 32, 64 and 128, one less and one more, stand among the nasty ones for each extent that a
// tile can run along.
TEST(ShippedProblems, NastyOnesAreManyAndSmallAndSitAroundTheSizesOfTiles) {
  std::set<int64_t> k, p, q, gemm_k, gemm_n;
  int nasty = 0;
  for (const Problem& problem : shipped()) {
    SCOPED_TRACE(problem.name);
    const ConvShape shape = make_conv_shape(problem.arguments);
    EXPECT_EQ(problem.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"),
              std::string::npos);
    if (problem.name.rfind("nasty_", 0) != 0) continue;
    ++nasty;
    EXPECT_LE(multiply_adds(problem.arguments), 3e6);
    k.insert(shape.K), p.insert(shape.P()), q.insert(shape.Q());
    gemm_k.insert(shape.CRS()), gemm_n.insert(int64_t{shape.N} * shape.PQ());
  }
  EXPECT_GE(nasty, 40);
  for (const int64_t size : {8, 16, 32, 64, 128}) {
    for (const auto* extents : {&k, &p, &q, &gemm_k, &gemm_n}) {
      EXPECT_EQ(extents->count(size - 1) + extents->count(size + 1), 2u) << size;
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

// ---- The reduction ----

TEST(Reduce, TakesImagesThenPixelsThenChannelsThenGroups) {
  const struct {
    const char* extents;
    double part;  // of its multiply-adds
    const char* reduced;
  } CASES[] = {{"n=10 c=64 h=w=66 k=64 r=s=3", 1, "n10 c64 66x66 k64"},  // P = Q = 64
               {"n=10 c=64 h=w=66 k=64 r=s=3", 0.99, "n1 c64 66x66 k64"},
               {"n=10 c=64 h=w=66 k=64 r=s=3", 1.0 / 20, "n1 c64 34x66 k64"},
               {"n=10 c=64 h=w=66 k=64 r=s=3", 1.0 / 160, "n1 c64 18x18 k64"},
               {"n=10 c=64 h=w=66 k=64 r=s=3", 1.0 / 320, "n1 c64 18x18 k32"},
               {"n=10 c=64 h=w=66 k=64 r=s=3", 1.0 / 2560, "n1 c16 18x18 k16"},
               {"n=10 c=64 h=w=66 k=64 r=s=3", 1.0 / 5120, "n1 c16 10x18 k16"},
               {"n=10 c=64 h=w=66 k=64 r=s=3", 0, "n1 c2 4x4 k2"},
               {"c=192 h=w=16 k=768 groups=12", 1, "n1 c192 16x16 k768 groups 12"},
               {"c=192 h=w=16 k=768 groups=12", 1.0 / 4, "n1 c192 16x16 k192 groups 12"},
               {"c=192 h=w=16 k=768 groups=12", 1.0 / 8, "n1 c96 16x16 k96 groups 6"},
               {"c=192 h=w=16 k=768 groups=12", 1.0 / 24, "n1 c32 16x16 k32 groups 2"},
               {"c=192 h=w=16 k=768 groups=12", 0, "n1 c4 2x2 k4 groups 2"},
               {"c=27 h=w=16 k=27 groups=27", 0, "n1 c3 2x2 k3 groups 3"},  // depthwise, and odd
               // The output is padding for the most part: the last row of input stays.
               {"h=3 w=4 pad_h=pad_w=5000 k=4", 1e-6, "n1 c1 1x2 k2"}};
  for (const auto& [extents, part, reduced] : CASES) {
    const ConvArguments a = arguments_of(extents);
    std::string text = to_string(make_conv_shape(reduce(a, part * multiply_adds(a))));
    const std::size_t rest = text.find(' ', text.find(" k") + 1), groups = text.find(" groups");
    text.erase(rest, std::min(groups, text.size()) - rest);  // filters, strides, pads, dilations
    EXPECT_EQ(text, reduced) << extents << ", " << part;
  }
  const ConvArguments illegal = arguments_of("n=1000000 c=0");
  EXPECT_EQ(reduce(illegal, 1).n, 1000000);
  EXPECT_EQ(multiply_adds(illegal), 0);
}

// ---- At random ----

constexpr double MAX_MACS = 1e6;

TEST(RandomProblems, AreLegalAndAffordable) {
  for (const double max_macs : {1e4, 1e6, 1e8}) {
    for (uint64_t seed = 0; seed < 200; ++seed) {
      const ConvShape shape = random_problem(seed, 7, max_macs).shape;
      EXPECT_NO_THROW(validate(shape));
      EXPECT_LE(shape.flops() / 2, max_macs) << to_string(shape);
      EXPECT_LE(shape.input_count() + shape.output_count(), 1 << 22) << to_string(shape);
    }
  }
  EXPECT_EQ(message_of<InvalidArgument>([] { random_problem(1, 0, 10); }).rfind("max_macs = ", 0),
            0u);
}

TEST(RandomProblems, AreTheSameOnEveryMachine) {
  EXPECT_EQ(to_string(random_problem(1, 0, MAX_MACS).shape),
            "n1 c1 9x59 k95 2x7 stride 1x11 pad 0x4 dil 1x1");
  EXPECT_EQ(to_string(random_problem(9, 1217, MAX_MACS).shape),
            "n4 c45 2x19 k75 2x5 stride 1x9 pad 0x0 dil 1x4 groups 15");
}

TEST(RandomProblems, EverySecondOneIsMisaligned) {
  for (int i = 0; i < 256; ++i) {
    const RandomProblem problem = random_problem(1, i, MAX_MACS);
    EXPECT_EQ(problem.is_misaligned(), i % 2 == 1) << i;
    for (const int offset : problem.placement.offsets) EXPECT_TRUE(offset >= 0 && offset <= 3) << i;
  }
}

}  // namespace
}  // namespace convladder
