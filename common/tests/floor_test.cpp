// The least time of a kernel, and the file of a machine's rates that it is worked out with.
#include "common/measure/floor.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "common/tests/support.h"

namespace convladder {
namespace {

using simulator::KernelCounts;
using simulator::LaunchWork;

// Round figures: a multiprocessor begins 100 FMAs and a wavefront a microsecond.
MachineRates ten_multiprocessors() {
  MachineRates machine;
  machine.gpu = "a GPU";
  machine.multiprocessors = 10;
  machine.clock_hz = 1e6;
  machine.fmas_per_cycle = 100;
  machine.wavefronts_per_cycle = 1;
  machine.dram_bytes = 32e6;  // a sector a microsecond
  machine.l2_bytes = 320;
  machine.fma_flops = 2e9;
  return machine;
}

LaunchWork blocks_of(int64_t blocks, int64_t products, int64_t wavefronts) {
  LaunchWork work;
  work.code = &work;  // any but null
  work.blocks = blocks;
  work.products[products] = blocks;
  work.wavefronts[wavefronts] = blocks;
  return work;
}

void expect_floor(const Floor& floor, double microseconds, Limit limit) {
  EXPECT_NEAR(floor.seconds * 1e6, microseconds, 1e-9);
  EXPECT_STREQ(name_of(floor.limit), name_of(limit));
}

TEST(Floor, IsTheLongestPart) {
  const MachineRates machine = ten_multiprocessors();
  expect_floor(floor_of(blocks_of(10, 500, 4), machine, true), 5, Limit::kProducts);
  expect_floor(floor_of(blocks_of(10, 500, 6), machine, true), 6, Limit::kPipe);
  LaunchWork work = blocks_of(10, 500, 4);
  work.sectors_read = 7;
  expect_floor(floor_of(work, machine, true), 7, Limit::kDram);
  expect_floor(floor_of({}, machine, true), 0, Limit::kLaunch);
}

TEST(Floor, IsOfTheBusiestMultiprocessor) {
  const MachineRates machine = ten_multiprocessors();
  expect_floor(floor_of(blocks_of(1, 500, 0), machine, true), 5, Limit::kProducts);
  expect_floor(floor_of(blocks_of(11, 500, 0), machine, true), 10, Limit::kProducts);
  expect_floor(floor_of(blocks_of(1000, 500, 0), machine, true), 500, Limit::kProducts);
}

// Some multiprocessor has two of these 11 blocks: it may be the small one and another.
TEST(Floor, OfUnequalBlocksTakesTheSmallest) {
  const MachineRates machine = ten_multiprocessors();
  LaunchWork work = blocks_of(11, 0, 0);
  work.products = {{100, 1}, {500, 10}};
  expect_floor(floor_of(work, machine, true), 6, Limit::kProducts);
  work.products = {{0, 10}, {5000, 1}};  // on average half a microsecond ... of one block's 50
  expect_floor(floor_of(work, machine, true), 5, Limit::kProducts);
}

TEST(Floor, CountsOnNoByteThatL2MayHold) {
  const MachineRates machine = ten_multiprocessors();  // ten sectors
  LaunchWork work;
  work.sectors_read = 12;
  work.sectors_written = 15;
  expect_floor(floor_of(work, machine, true), 12 + 5, Limit::kDram);
  expect_floor(floor_of(work, machine, false), 2 + 5, Limit::kDram);
}

TEST(Floor, OfALibraryAndOfTensorCores) {
  MachineRates machine = ten_multiprocessors();
  LaunchWork library;
  library.library_products = 5000;
  expect_floor(floor_of(library, machine, true), 5, Limit::kProducts);
  LaunchWork tensor = blocks_of(11, 0, 0);
  tensor.tensor_instructions[3] = 11;
  expect_floor(floor_of(tensor, machine, true), 0, Limit::kLaunch);  // the rate isn't known
  machine.tf32_flops = 10 * 2048e6;  // an instruction of each multiprocessor a microsecond
  expect_floor(floor_of(tensor, machine, true), 6, Limit::kTensor);
}

TEST(Floor, NoKernelIsShorterThanALaunch) {
  MachineRates machine = ten_multiprocessors();
  machine.launch_seconds = 2e-6;
  expect_floor(floor_of({}, machine, true), 2, Limit::kLaunch);
  expect_floor(floor_of(blocks_of(10, 500, 0), machine, true), 5, Limit::kProducts);
}

TEST(Floor, OfAStageIsTheSum) {
  const MachineRates machine = ten_multiprocessors();
  KernelCounts one, other;
  one.work = {blocks_of(10, 100, 0), blocks_of(10, 0, 3)};
  LaunchWork reads;
  reads.sectors_read = 13;
  other.work = {reads};  // not the first: 10 sectors may lie in L2
  const std::vector<Floor> floors = floors_of({one, other}, machine);
  ASSERT_EQ(floors.size(), 2u);
  expect_floor(floors[0], 4, Limit::kPipe);
  expect_floor(floors[1], 3, Limit::kDram);
  expect_floor(sum_of(floors), 7, Limit::kPipe);
}

TEST(Floor, OfALargerProblemFollowsItsBlocks) {
  const MachineRates machine = ten_multiprocessors();
  const int code = 0;
  KernelCounts counts;
  counts.work = {blocks_of(4, 100, 1)};
  counts.work[0].code = &code;
  counts.work[0].sectors_read = 6;  // of which all blocks may share 2
  Enlarged problem;
  problem.launches = {{&code, 41}, {&code, 10}};
  problem.inputs = problem.outputs = 20;
  problem.shared_sectors = 2;
  const auto floors = floors_of({counts}, problem, machine);
  ASSERT_TRUE(floors);
  // Of the other four sectors 41 / 4 times as many in the first launch, 2.5 times in the second, in
  // which 10 lie in L2.
  expect_floor((*floors)[0], (41 + 2) + (10 + 2 - 10), Limit::kDram);
  problem.launches.push_back({&counts, 1});
  EXPECT_FALSE(floors_of({counts}, problem, machine));
}

TEST(Floor, OfALargerProblemHasTheLibrarysOwnFigures) {
  const MachineRates machine = ten_multiprocessors();
  KernelCounts library;
  library.library = true;
  library.work = {LaunchWork{}};
  Enlarged problem;
  problem.launches = {{nullptr, 0, 7000, 1, 1}};
  const auto floors = floors_of({library}, problem, machine);
  ASSERT_TRUE(floors);
  expect_floor((*floors)[0], 7, Limit::kProducts);
}

TEST(MachineRates, OfTheH200) {
  const MachineRates h200 = read_machine(CONVLADDER_SOURCE_DIR "/common/machines/h200.json");
  EXPECT_EQ(h200.gpu, "NVIDIA H200");
  EXPECT_EQ(h200.multiprocessors, 132);
  // What was measured can't pass what the clock allows.
  EXPECT_LE(h200.fma_flops, 2 * h200.fmas_per_cycle * h200.multiprocessors * h200.clock_hz);
}

TEST(MachineRates, AreReadAsTheyWereWritten) {
  const TempFolder folder;
  const std::string path = folder.path("gpu.json");
  std::vector<MachineFigure> figures = {
      {"multiprocessors", 10, ""}, {"clock_mhz", 1500, "its \"clock\""},
      {"fmas_per_cycle", 64, ""},  {"wavefronts_per_cycle", 1, ""},
      {"dram_tb_per_s", 0.5, ""},  {"l2_bytes", 4e6, ""},
      {"fma_tflops", 1.9, ""},     {"launch_us", 0, "not measured"}};
  write_machine(path, "a \\ GPU", figures);
  const MachineRates read = read_machine(path);
  EXPECT_EQ(read.gpu, "a \\ GPU");
  EXPECT_EQ(read.clock_hz, 1.5e9);
  EXPECT_EQ(read.dram_bytes, 0.5e12);
  EXPECT_EQ(read.launch_seconds, 0);

  const auto reason = [&] {
    const auto read_again = [&] { read_machine(path); };
    return message_of<std::runtime_error>(read_again).substr(path.size() + 2);
  };
  figures[0].value = -1;
  write_machine(path, "a GPU", figures);
  EXPECT_EQ(reason(), "'multiprocessors' is not above 0");
  figures[0] = {"cores", 10, ""};
  write_machine(path, "a GPU", figures);
  EXPECT_EQ(reason(), "'cores' is no rate that is known");
  figures[0] = figures[1];
  write_machine(path, "a GPU", figures);
  EXPECT_EQ(reason(), "'clock_mhz' is there twice");
  figures.erase(figures.begin());
  write_machine(path, "a GPU", figures);
  EXPECT_EQ(reason(), "'multiprocessors' is missing");
  folder.write("gpu.json", R"({"format": "convladder bench", "version": 1})");
  EXPECT_EQ(reason(), "its format is not \"convladder machine\"");
  folder.write("gpu.json", R"({"format": "convladder machine", "version": 2})");
  EXPECT_EQ(reason(), "of another version");
  std::filesystem::remove(path);
  EXPECT_EQ(reason(), "can't be read");
}

}  // namespace
}  // namespace convladder
