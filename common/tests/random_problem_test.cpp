// Random problems: legal, affordable, the same everywhere, and as awkward as they are meant to be.
#include "common/check/random_problem.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <initializer_list>

#include "common/core/extents.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

constexpr int COUNT = 2048;
constexpr double MAX_MACS = 1e6;

// The number of those among COUNT problems for which `holds`.
int count(const std::function<bool(const RandomProblem&, const ConvShape&)>& holds) {
  int result = 0;
  for (int i = 0; i < COUNT; ++i) {
    const RandomProblem problem = random_problem(1, i, MAX_MACS);
    result += holds(problem, problem.shape);
  }
  return result;
}

bool near(int64_t value, std::initializer_list<int64_t> borders) {
  for (const int64_t border : borders) {
    if (std::abs(value - border) <= 1) return true;
  }
  return false;
}

TEST(RandomProblems, AreLegalAndAffordable) {
  for (const double max_macs : {1e4, 1e6, 1e8}) {
    for (uint64_t seed = 0; seed < 200; ++seed) {
      const RandomProblem problem = random_problem(seed, 7, max_macs);
      const ConvShape& shape = problem.shape;
      EXPECT_NO_THROW(validate(shape));
      EXPECT_LE(shape.flops() / 2, max_macs) << to_string(shape);
      EXPECT_LE(shape.input_count() + shape.output_count(), 1 << 22) << to_string(shape);
    }
  }
}

TEST(RandomProblems, AreTheSameOnEveryMachine) {
  EXPECT_EQ(to_string(random_problem(1, 0, MAX_MACS).shape),
            "n1 c1 9x59 k95 2x7 stride 1x11 pad 0x4 dil 1x1");
  EXPECT_EQ(to_string(random_problem(9, 1217, MAX_MACS).shape),
            "n4 c45 2x19 k75 2x5 stride 1x9 pad 0x0 dil 1x4 groups 15");
}

TEST(RandomProblems, EverySecondOneIsMisaligned) {
  for (int i = 0; i < COUNT; ++i) {
    const RandomProblem problem = random_problem(1, i, MAX_MACS);
    EXPECT_EQ(problem.is_misaligned(), i % 2 == 1) << i;
    for (const int offset : problem.placement.offsets) EXPECT_TRUE(offset >= 0 && offset <= 3) << i;
  }
}

TEST(RandomProblems, EveryExtentIsOneAtTimes) {
  for (const Extent& extent : EXTENTS) {
    if (extent.least != 1) continue;
    EXPECT_GE(count([&](auto&, auto& shape) { return shape.*extent.taken == 1; }), 40)
        << extent.name;
  }
}

// At least 1 in 20 is of each kind, of the rarer kinds 1 in 50.
TEST(RandomProblems, AreAwkward) {
  using P = const RandomProblem&;
  using S = const ConvShape&;
  constexpr int MANY = COUNT / 20, SOME = COUNT / 50;
  EXPECT_GE(count([](P, S s) { return s.stride_h > s.R; }), MANY);
  EXPECT_GE(count([](P, S s) { return s.stride_w > s.S; }), MANY);
  EXPECT_GE(count([](P, S s) { return s.pad_h > s.R; }), MANY);
  EXPECT_GE(count([](P, S s) { return s.pad_w > s.S; }), MANY);
  EXPECT_GE(count([](P, S s) { return s.R > s.H; }), MANY);
  EXPECT_GE(count([](P, S s) { return s.S > s.W; }), MANY);
  EXPECT_GE(count([](P, S s) { return s.dil_h != s.dil_w; }), MANY);
  EXPECT_GE(count([](P, S s) { return s.stride_h != s.stride_w; }), MANY);
  EXPECT_GE(count([](P, S s) { return s.PQ() == 1; }), COUNT / 200);
  EXPECT_GE(count([](P, S s) { return near(s.K, {8}); }), MANY);
  for (const int64_t border : {32, 64, 96, 128}) {
    EXPECT_GE(count([=](P, S s) { return near(s.K, {border}); }), SOME) << border;
    EXPECT_GE(count([=](P, S s) { return near(s.Q(), {border}); }), SOME) << border;
  }
  EXPECT_GE(count([](P, S s) { return near(s.N * s.PQ(), {32, 64, 96, 128}); }), MANY);
  EXPECT_GE(count([](P, S s) { return near(s.CRS(), {8}); }), SOME);
  EXPECT_GE(count([](P, S s) { return near(s.CRS(), {32}); }), SOME);
  EXPECT_GE(count([](P, S s) { return s.groups > 1; }), COUNT / 5);
  EXPECT_GE(count([](P, S s) { return s.groups > 4; }), MANY);
  EXPECT_GE(count([](P, S s) { return s.groups > 1 && s.C == 1 && s.K == 1; }), SOME);
  EXPECT_GE(count([](P, S s) { return s.groups > 1 && s.N > 1 && s.C != s.K; }), SOME);
  EXPECT_GE(count([](P, S s) { return s.groups > 1 && s.KPQ() % 4 != 0; }), MANY);
  EXPECT_GE(count([](P, S s) { return s.groups > 1 && s.PQ() % 4 == 0; }), SOME);
  EXPECT_GE(count([](P p, S) { return !p.bias; }), COUNT / 4);
  EXPECT_GE(count([](P p, S) { return p.relu; }), COUNT / 4);
  EXPECT_GE(count([](P p, S) { return p.placement.least_workspace; }), COUNT / 4);
}

// The filters with kernels of their own in stage 10, in rows that end with, just before and just
// behind a strip of 8.
TEST(RandomProblems, MeetTheSpecialFilterWidths) {
  for (const auto& [taps, stride] : {std::pair{3, 1}, std::pair{7, 2}, std::pair{11, 4}}) {
    for (const int rest : {7, 0, 1}) {
      const auto meets = [=](const RandomProblem&, const ConvShape& s) {
        return s.S == taps && s.stride_w == stride && s.dil_w == 1 && s.Q() % 8 == rest;
      };
      EXPECT_GE(count(meets), COUNT / 100) << taps << ", Q % 8 = " << rest;
    }
  }
}

TEST(RandomProblems, ABudgetTooSmallIsRejected) {
  EXPECT_EQ(message_of<InvalidArgument>([] { random_problem(1, 0, 10); }).rfind("max_macs = ", 0),
            0u);
}

}  // namespace
}  // namespace convladder
