// The counts of kernels whose accesses can be worked out by hand. Builds that count only.
#include <cuda_pipeline.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "common/check/device_buffer.h"
#include "common/core/launch.h"
#include "common/core/mma.h"
#include "common/simulator/counting/warp_trace.h"
#include "common/simulator/counts.h"

namespace convladder {
namespace {

using simulator::KernelCounts;
using simulator::TracedKernel;

struct Zeros : DeviceBuffer {
  explicit Zeros(int64_t floats) : DeviceBuffer(floats) {
    upload(std::vector<float>(floats).data());
  }
};

class Counting : public testing::Test {
 protected:
  void SetUp() override { simulator::take_kernel_counts(); }
  void TearDown() override { simulator::set_thread_order_seed(0); }

  // Of the only kernel that was launched.
  static KernelCounts counts() {
    const std::vector<KernelCounts> all = simulator::take_kernel_counts();
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? KernelCounts{} : all[0];
  }
};

// ---- Global memory ----

__global__ void load_strided(const float* from, float* to, int threads, int stride, int first) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < threads) to[i] = from[first + i * stride];
}

// What one instruction costs, by its lanes' addresses, is held against a GPU's readings:
// stage_counts_test.cpp.
TEST_F(Counting, RequestsOfAllWarpsAddUp) {
  const Zeros from(4096), to(1024);
  launch(load_strided, 8, 128, nullptr, from.data(), to.data(), 1024, 4, 0);
  const KernelCounts all = counts();
  EXPECT_EQ(all.kernel, "load_strided");
  EXPECT_EQ(all.load.requests, 32);
  EXPECT_EQ(all.load.sectors, 32 * 16);
  EXPECT_EQ(all.load.bytes, 4096);
  EXPECT_EQ(all.pipe_wavefronts, 32 * (4 + 1));
  EXPECT_EQ(all.store.requests, 32);
  EXPECT_EQ(all.store.sectors, 32 * 4);
  EXPECT_EQ(all.sectors_read, 512);
  EXPECT_EQ(all.sectors_written, 128);
}

// ---- Divergence ----

// Lane i goes round i % 5 times, and skips every third round.
__global__ void loop_apart(const float* from, float* to) {
  float sum = 0.0f;
  for (int round = 0; round < static_cast<int>(threadIdx.x % 5); ++round) {
    if ((round + threadIdx.x) % 3 == 0) continue;
    for (int i = 0; i < 2; ++i) sum += from[(round * 2 + i) * 32 + threadIdx.x];
  }
  to[threadIdx.x] = sum;
}

TEST_F(Counting, LanesInTheSameIterationGoTogether) {
  const Zeros from(32 * 16), to(32);
  for (uint64_t seed = 0; seed < 4; ++seed) {  // in whatever order the threads come
    simulator::set_thread_order_seed(seed);
    launch(loop_apart, 1, 32, nullptr, from.data(), to.data());
    std::set<std::pair<int, unsigned>> sectors[2];
    int requests = 0, total = 0;
    for (int round = 0; round < 4; ++round) {
      std::set<unsigned> touched;
      for (int lane = 0; lane < 32; ++lane) {
        if (round < lane % 5 && (round + lane) % 3 != 0) touched.insert(lane / 8);
      }
      requests += touched.empty() ? 0 : 2;
      total += 2 * static_cast<int>(touched.size());
    }
    const KernelCounts all = counts();
    EXPECT_EQ(all.load.requests, requests);
    EXPECT_EQ(all.load.sectors, total);
    EXPECT_EQ(all.store.requests, 1);
  }
}

__global__ void branch_apart(const float* from, float* to) {
  float value;
  if (threadIdx.x % 2 == 0) {
    value = from[threadIdx.x];
  } else {
    value = 2.0f * from[threadIdx.x + 64];
  }
  to[threadIdx.x] = value;
}

TEST_F(Counting, BranchesAreRequestsOfTheirOwn) {
  const Zeros from(128), to(32);
  launch(branch_apart, 1, 32, nullptr, from.data(), to.data());
  const KernelCounts all = counts();
  EXPECT_EQ(all.load.requests, 2);
  EXPECT_EQ(all.load.sectors, 8);
  EXPECT_EQ(all.load.bytes, 128);
}

// A loop around barriers, with a loop between them that lanes leave at different times.
__global__ void barriers_in_loop(const float* from, float* to, int rounds) {
  __shared__ float tile[64];
  float sum = 0.0f;
  for (int round = 0; round < rounds; ++round) {
    tile[threadIdx.x] = from[round * 64 + threadIdx.x];
    __syncthreads();
    for (unsigned i = 0; i <= threadIdx.x % 4; ++i) sum += tile[(threadIdx.x + i) % 64];
    __syncthreads();
  }
  to[threadIdx.x] = sum;
}

TEST_F(Counting, BarriersDoNotPartLanes) {
  const int rounds = 7;
  const Zeros from(64 * rounds), to(64);
  launch(barriers_in_loop, 1, 64, nullptr, from.data(), to.data(), rounds);
  const KernelCounts all = counts();
  EXPECT_EQ(all.load.requests, 2 * rounds);
  EXPECT_EQ(all.load.sectors, 2 * rounds * 4);
  EXPECT_EQ(all.shared_store.requests, 2 * rounds);
  EXPECT_EQ(all.shared_load.requests, 2 * rounds * 4);
  EXPECT_EQ(all.shared_load.conflicts, 0);
}

__device__ float sum_of_three(const float* from, int step) {
  float sum = 0.0f;
  for (int i = 0; i < 3; ++i) sum += from[i * step];
  return sum;
}

__global__ void call_twice(const float* from, float* to) {
  const auto twice = [&](int step) { return 2.0f * sum_of_three(from + threadIdx.x, step); };
  to[threadIdx.x] = twice(32) + (threadIdx.x < 16 ? twice(64) : 0.0f);
}

TEST_F(Counting, FunctionsArePartOfTheKernel) {
  const Zeros from(256), to(32);
  launch(call_twice, 1, 32, nullptr, from.data(), to.data());
  const KernelCounts all = counts();
  EXPECT_EQ(all.load.requests, 6);
  EXPECT_EQ(all.load.sectors, 3 * 4 + 3 * 2);
}

// ---- Products ----

// Thread i multiplies i % 4 times in a loop, and once more where i is even.
__global__ void multiply(const float* from, float* to) {
  float sum = 0.0f;
  for (unsigned i = 0; i < threadIdx.x % 4; ++i) sum += from[i] * from[i + 1];
  if (threadIdx.x % 2 == 0) sum = fmaf(sum, from[5], 1.0f);
  to[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void multiply_tile(const float* from, float* to) {
  float w[3] = {from[0], from[1], from[2]}, x[3] = {from[3], from[4], from[5]}, sum[3] = {};
  UNROLL for (int m = 0; m < 3; ++m) { UNROLL for (int i = 0; i < 3; ++i) sum[m] += w[m] * x[i]; }
  to[threadIdx.x] = sum[0] + sum[1] + sum[2];
}

TEST_F(Counting, ProductsOfFloats) {
  const Zeros from(8), to(3 * 64);
  launch(multiply, 3, 64, nullptr, from.data(), to.data());
  const KernelCounts loop = counts();
  EXPECT_TRUE(loop.knows_products);
  constexpr int64_t PER_BLOCK = 16 * (0 + 1 + 2 + 3) + 32;
  EXPECT_EQ(loop.products, 3 * PER_BLOCK);
  ASSERT_EQ(loop.work.size(), 1u);
  EXPECT_EQ(loop.work[0].blocks, 3);
  EXPECT_EQ(loop.work[0].products, (std::map<int64_t, int64_t>{{PER_BLOCK, 3}}));
  launch(multiply_tile, 1, 32, nullptr, from.data(), to.data());
  EXPECT_EQ(counts().products, 32 * 9);
  launch(load_strided, 1, 64, nullptr, from.data(), to.data(), 8, 1, 0);
  const KernelCounts none = counts();
  EXPECT_TRUE(none.knows_products);
  EXPECT_EQ(none.products, 0);
}

TEST_F(Counting, WorkIsListedByLaunch) {
  const Zeros from(256), to(3 * 64);
  launch(load_strided, 2, 128, nullptr, from.data(), to.data(), 160, 1, 0);
  launch(load_strided, 1, 128, nullptr, from.data(), to.data(), 32, 1, 0);
  const KernelCounts all = counts();
  EXPECT_EQ(all.launches, 2);
  EXPECT_EQ(all.load.requests, 6);
  EXPECT_EQ(all.sectors_written, 24);
  const std::vector<simulator::LaunchWork>& work = all.work;
  ASSERT_EQ(work.size(), 2u);
  EXPECT_EQ(work[0].wavefronts, (std::map<int64_t, int64_t>{{8, 1}, {2, 1}}));
  EXPECT_EQ(work[0].sectors_read, 20);
  EXPECT_EQ(work[1].blocks, 1);
  EXPECT_EQ(work[1].sectors_written, 4);
}

TEST_F(Counting, PlannedLaunchesAreNotCarriedOut) {
  float* const nowhere = nullptr;
  const auto plan = simulator::plan_launches([&] {
    launch(multiply_tile, 5, 32, nullptr, nowhere, nowhere);
    launch(multiply_tile, dim3(2, 3), 32, nullptr, nowhere, nowhere);
  });
  ASSERT_EQ(plan.size(), 2u);
  EXPECT_EQ(plan[0].code, reinterpret_cast<const void*>(multiply_tile));
  EXPECT_EQ(plan[0].blocks, 5);
  EXPECT_EQ(plan[1].blocks, 6);
  EXPECT_TRUE(simulator::take_kernel_counts().empty());
}

// ---- Asynchronous copies ----

template <int BYTES>
__global__ void copy_some(const float* from, float* to, unsigned lanes) {
  __shared__ float4 tile[32];
  char* mine = reinterpret_cast<char*>(tile) + threadIdx.x * BYTES;
  const bool exists = lanes >> threadIdx.x & 1;
  __pipeline_memcpy_async(mine, reinterpret_cast<const char*>(from), BYTES, exists ? 0 : BYTES);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  to[threadIdx.x] = *reinterpret_cast<const float*>(mine);
}

// Lanes that copy the same word each take a wavefront; those that are filled with zeros only pass
// the banks that they are written to, which keeps the pipe no longer.
TEST_F(Counting, ZeroFilledLanesReadNothing) {
  const Zeros from(4), to(32);
  const auto count = [&](const auto& kernel, unsigned lanes) {
    launch(kernel, 1, 32, nullptr, from.data(), to.data(), lanes);
    return counts();
  };
  EXPECT_EQ(count(copy_some<4>, ~0u).shared_copy.wavefronts, 32);
  EXPECT_EQ(count(copy_some<4>, 0xf0f).shared_copy.wavefronts, 8);
  EXPECT_EQ(count(copy_some<16>, 0x3).shared_copy.wavefronts, 2 + 3);
  int wavefronts = 1;
  for (const auto& kernel : {copy_some<4>, copy_some<8>, copy_some<16>}) {
    const KernelCounts filled = count(kernel, 0);
    EXPECT_EQ(filled.copy_through_l1.requests + filled.copy_past_l1.requests, 0);
    EXPECT_EQ(filled.shared_copy.requests, 1);
    EXPECT_EQ(filled.shared_copy.wavefronts, wavefronts);
    EXPECT_EQ(filled.pipe_wavefronts,
              1 + filled.shared_load.wavefronts + 1);  // the copy, reading it, the store
    wavefronts *= 2;
    EXPECT_EQ(filled.shared_copy.conflicts, 0);
  }
}

// ---- One warp, access by access ----

__global__ void reverse_tile(const float* from, float* to) {
  __shared__ float tile[64];
  tile[threadIdx.x] = from[threadIdx.x * 2];
  __syncthreads();
  to[blockIdx.x * 64 + threadIdx.x] = tile[(63 - threadIdx.x) * 2 % 64];  // two to a bank
}

__global__ void sum_many(const float* from, float* to, int count) {
  float sum = 0.0f;
  for (int i = 0; i < count; ++i) sum += from[i];
  to[threadIdx.x] = sum;
}

TEST_F(Counting, TraceHasTheAddressesOfTheChosenWarp) {
  const Zeros from(256), to(3 * 64);
  simulator::start_trace({2, 1});
  launch(reverse_tile, 3, 64, nullptr, from.data(), to.data());
  const TracedKernel kernel = simulator::take_trace().at(0);
  EXPECT_EQ(kernel.kernel, "reverse_tile");
  ASSERT_EQ(kernel.shared.size(), 1u);
  EXPECT_EQ(kernel.shared[0].name, "tile");
  ASSERT_EQ(kernel.warps.size(), 1u);
  const std::vector<simulator::TracedExecution>& trace = kernel.warps[0].executions;
  ASSERT_EQ(trace.size(), 4u);
  for (const auto& traced : trace) EXPECT_EQ(traced.access.lanes, ~0u);
  const std::size_t tile = kernel.shared[0].begin;
  for (unsigned lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(trace[0].access.address[lane],
              reinterpret_cast<uint64_t>(from.data() + (lane + 32) * 2));
    EXPECT_EQ(trace[1].access.address[lane], tile + (lane + 32) * 4);
    EXPECT_EQ(trace[2].access.address[lane], tile + (31 - lane) * 2 * 4);
    EXPECT_EQ(trace[3].access.address[lane],
              reinterpret_cast<uint64_t>(to.data() + 2 * 64 + 32 + lane));
  }
  ASSERT_EQ(trace[0].services.size(), 8u);  // sectors: every other float of 256 bytes
  for (unsigned i = 0; i < 8; ++i) EXPECT_EQ(trace[0].services[i].lanes, 0xfu << 4 * i);
  ASSERT_EQ(trace[2].services.size(), 2u);  // wavefronts
  EXPECT_EQ(trace[2].services[0].lanes, 0xffff0000u);
  EXPECT_EQ(trace[2].services[0].kind, simulator::Service::kNeeded);
  EXPECT_EQ(trace[2].services[1].lanes, 0xffffu);
  EXPECT_EQ(trace[2].services[1].kind, simulator::Service::kConflict);
  EXPECT_EQ(trace[1].access.operation, simulator::Operation::kStore);
  EXPECT_TRUE(simulator::take_trace().empty());
}

TEST_F(Counting, TraceHasNoWarpThatIsNotThere) {
  const Zeros from(256), to(3 * 64);
  for (const simulator::TraceSample sample : {simulator::TraceSample{3, 0}, {0, 2}}) {
    simulator::start_trace(sample);
    launch(reverse_tile, 3, 64, nullptr, from.data(), to.data());
    EXPECT_TRUE(simulator::take_trace().at(0).warps.empty());
  }
}

TEST_F(Counting, InstructionsAddUpToTheKernelsCounts) {
  const Zeros from(256), to(3 * 64);
  simulator::start_trace({});
  for (int i = 0; i < 2; ++i) launch(reverse_tile, 3, 64, nullptr, from.data(), to.data());
  const TracedKernel kernel = simulator::take_trace().at(0);
  EXPECT_EQ(kernel.launches, 2);
  EXPECT_EQ(kernel.warps.size(), 6u);  // of the first launch, all three blocks
  const KernelCounts all = counts();
  EXPECT_EQ(all.blocks, 6);
  EXPECT_EQ(all.barriers, 6);
  EXPECT_EQ(all.shared_bytes, 256);
  EXPECT_EQ(all.instructions.size(), 4u);
  simulator::InstructionCounts global, shared;
  for (const auto& [instruction, count] : all.instructions) {
    (instruction.space == simulator::Space::kShared ? shared : global) += count;
  }
  EXPECT_EQ(global.requests, all.load.requests + all.store.requests);
  EXPECT_EQ(global.cost, all.load.sectors + all.store.sectors);
  EXPECT_EQ(global.bytes, all.load.bytes + all.store.bytes);
  EXPECT_EQ(shared.requests, all.shared_load.requests + all.shared_store.requests);
  EXPECT_EQ(shared.cost, all.shared_load.wavefronts + all.shared_store.wavefronts);
  EXPECT_EQ(shared.conflicts, 2 * 3 * 2);
}

TEST_F(Counting, TraceKeepsTheFirstTimesOfALongLoop) {
  const Zeros from(4096), to(32);
  simulator::start_trace({0, 0});
  launch(sum_many, 1, 32, nullptr, from.data(), to.data(), 4096);
  const simulator::TracedWarp warp = simulator::take_trace().at(0).warps.at(0);
  ASSERT_EQ(warp.times.size(), 2u);
  EXPECT_EQ(warp.times.begin()->second, 4096);
  EXPECT_EQ(warp.executions.size(), 512u + 1u);  // with the store behind the loop
}

// ---- What is not counted ----

__global__ void use_own_memory(const ConvShape shape, float* to) {
  float own[16];
  for (int i = 0; i < 16; ++i) own[i] = static_cast<float>(i * shape.C);
  float* volatile somewhere = own;  // the compiler can't keep it in registers
  float sum = 0.0f;
  for (int i = 0; i < shape.H; ++i) sum += somewhere[i];
  to[threadIdx.x] = sum + static_cast<float>(blockIdx.x);
}

TEST_F(Counting, RegistersAndArgumentsAreNoMemory) {
  const Zeros to(32);
  ConvShape shape;
  shape.C = 3, shape.H = 16;
  launch(use_own_memory, 1, 32, nullptr, shape, to.data());
  const KernelCounts all = counts();
  EXPECT_EQ(all.load.requests, 0);
  EXPECT_EQ(all.store.requests, 1);
}

// ---- Tensor cores ----

__global__ void multiply_often(const float* from, float* to, int times) {
  const float a[4] = {from[threadIdx.x], 1, 1, 1}, b[2] = {1, 1};
  float sum[4] = {};
  if (threadIdx.x / 32 == 1) times = 1;
  for (int i = 0; i < times; ++i) mma_tf32(sum, a, b, sum);
  to[blockIdx.x * blockDim.x + threadIdx.x] = sum[0];
}

TEST_F(Counting, WarpsThatMultiplyAreCounted) {
  const Zeros from(96), to(5 * 96);
  launch(multiply_often, 5, 96, nullptr, from.data(), to.data(), 7);
  const KernelCounts many = counts();
  EXPECT_EQ(many.tensor_instructions, 5 * (7 + 1 + 7));
  EXPECT_EQ(many.load.requests, 5 * 3);  // operands are registers
  EXPECT_EQ(many.store.requests, 5 * 3);
  const auto has_metric = [](const KernelCounts& counts) {
    const auto all = simulator::metrics(counts);
    return std::count_if(all.begin(), all.end(), [](const auto& metric) {
      return metric.first == "sm__inst_executed_pipe_tensor_op_hmma.sum" && metric.second == 75;
    });
  };
  EXPECT_EQ(has_metric(many), 1);
  launch(multiply_often, 5, 32, nullptr, from.data(), to.data(), 0);
  EXPECT_EQ(has_metric(counts()), 0);
}

}  // namespace
}  // namespace convladder
