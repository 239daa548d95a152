// The counts of kernels whose accesses can be worked out by hand. Builds that count only.
#include <cuda_pipeline.h>

#include <cstring>
#include <functional>
#include <map>
#include <set>

#include "common/core/mma.h"
#include "common/simulator/counting/warp_trace.h"
#include "common/simulator/counts.h"
#include "common/tests/launch.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

using simulator::KernelCounts;
using simulator::TracedKernel;

struct Zeros : DeviceBuffer {
  explicit Zeros(int64_t floats) : DeviceBuffer(floats) {
    upload(std::vector<float>(floats).data());
  }
};

// Requests, sectors and bytes of global memory; requests, wavefronts and conflicts of shared memory.
std::string summary(const KernelCounts& counts) {
  std::ostringstream text;
  text << counts.kernel;
  const auto add = [&](const char* name, int64_t requests, int64_t cost, int64_t rest) {
    if (requests + cost + rest == 0) return;
    text << ", " << name << " " << requests << "/" << cost << "/" << rest;
  };
  const auto add_global = [&](const char* name, const simulator::GlobalCounts& c) {
    add(name, c.requests, c.sectors, c.bytes);
  };
  const auto add_shared = [&](const char* name, const simulator::SharedCounts& c) {
    add(name, c.requests, c.wavefronts, c.conflicts);
  };
  add_global("load", counts.load), add_global("store", counts.store);
  add_global("copy", counts.copy_through_l1), add_global("bypass", counts.copy_past_l1);
  add_shared("shared load", counts.shared_load), add_shared("shared store", counts.shared_store);
  add_shared("shared copy", counts.shared_copy);
  text << "; pipe " << counts.pipe_wavefronts << ", touched " << counts.sectors_read << "/"
       << counts.sectors_written;
  return text.str();
}

class Counting : public testing::Test {
 protected:
  void SetUp() override { simulator::take_kernel_counts(); }
  void TearDown() override { simulator::set_thread_order_seed(0); }

  template <typename... Params, typename... Args>
  static void go(void (*kernel)(Params...), dim3 grid, dim3 block, Args... args) {
    launch(kernel, grid, block, nullptr, args...);
  }

  // The counts of the only kernel that was launched.
  static KernelCounts counts() {
    const std::vector<KernelCounts> all = simulator::take_kernel_counts();
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? KernelCounts{} : all[0];
  }

  const Zeros from_{4096}, to_{1024};
  const float* const from = from_.data();
  float* const to = to_.data();
};

// ---- Accesses ----

__global__ void load_strided(const float* from, float* to, int threads, int stride) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < threads) to[i] = from[i * stride];
}

__global__ void copy_rows(const float* from, float* to) {
  std::memcpy(to + 8 * threadIdx.x, from + 8 * threadIdx.x, 32);
}

TEST_F(Counting, WhatMemcpyMovesIsCountedByWords) {
  launch(copy_rows, 1, 32, nullptr, from, to);
  const KernelCounts all = counts();
  for (const auto& side : {all.load, all.store}) {
    EXPECT_EQ(side.requests, 8);
    EXPECT_EQ(side.sectors, 8 * 32);
    EXPECT_EQ(side.bytes, 1024);
  }
}

// Lane i goes round i % 5 times, and skips every third round.
__global__ void loop_apart(const float* from, float* to) {
  float sum = 0.0f;
  for (int round = 0; round < static_cast<int>(threadIdx.x % 5); ++round) {
    if ((round + threadIdx.x) % 3 == 0) continue;
    for (int i = 0; i < 2; ++i) sum += from[(round * 2 + i) * 32 + threadIdx.x];
  }
  to[threadIdx.x] = sum;
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

__device__ float sum_of_three(const float* from, int step) {
  float sum = 0.0f;
  for (int i = 0; i < 3; ++i) sum += from[i * step];
  return sum;
}

__global__ void call_twice(const float* from, float* to) {
  const auto twice = [&](int step) { return 2.0f * sum_of_three(from + threadIdx.x, step); };
  to[threadIdx.x] = twice(32) + (threadIdx.x < 16 ? twice(64) : 0.0f);
}

// Registers and arguments are no memory.
__global__ void use_own_memory(const ConvShape shape, float* to) {
  float own[16];
  for (int i = 0; i < 16; ++i) own[i] = static_cast<float>(i * shape.C);
  float* volatile somewhere = own;  // the compiler can't keep it in registers
  float sum = 0.0f;
  for (int i = 0; i < shape.H; ++i) sum += somewhere[i];
  to[threadIdx.x] = sum + static_cast<float>(blockIdx.x);
}

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

// Each is one store of 16 bytes, whatever its value is made of.
__global__ void store_vectors(float* to, float x) {
  auto* const vectors = reinterpret_cast<float4*>(to) + threadIdx.x;
  vectors[0] = make_float4(1, 2, 3, 4);
  vectors[32] = {x, x, x, x};
  reinterpret_cast<float4*>(to)[threadIdx.x + 64] = {x, 0, 1, x};
  const float4 own = {1, 2, 3, 4};
  if (x > 0) *(vectors + 96) = {own.x, 0, x, x};
}

__global__ void reverse_tile(const float* from, float* to) {
  __shared__ float tile[64];
  tile[threadIdx.x] = from[threadIdx.x * 2];
  __syncthreads();
  to[blockIdx.x * 64 + threadIdx.x] = tile[(63 - threadIdx.x) * 2 % 64];  // two to a bank
}

// What one instruction costs, by its lanes' addresses, is held against a GPU's readings by
// readings_test.py; here is what a kernel's instructions come to.
TEST_F(Counting, AccessesAddUpInEveryOrderOfThreads) {
  ConvShape shape;
  shape.C = 3, shape.H = 16;
  const struct {
    std::function<void()> work;
    const char* summary;
  } CASES[] = {
      {[&] { go(store_vectors, 1, 32, to, 1.0f); },
       "store_vectors, store 4/64/2048; pipe 16, touched 0/64"},
      {[&] { go(load_strided, 8, 128, from, to, 1024, 4); },
       "load_strided, load 32/512/4096, store 32/128/4096; pipe 160, touched 512/128"},
      {[&] { go(loop_apart, 1, 32, from, to); },
       "loop_apart, load 8/32/328, store 1/4/128; pipe 9, touched 32/4"},
      {[&] { go(branch_apart, 1, 32, from, to); },
       "branch_apart, load 2/8/128, store 1/4/128; pipe 3, touched 8/4"},
      {[&] { go(barriers_in_loop, 1, 64, from, to, 7); },
       "barriers_in_loop, load 14/56/1792, store 2/8/256, shared load 56/56/0, "
       "shared store 14/14/0; pipe 86, touched 56/8"},
      {[&] { go(call_twice, 1, 32, from, to); },
       "call_twice, load 6/18/576, store 1/4/128; pipe 7, touched 14/4"},
      {[&] { go(use_own_memory, 1, 32, shape, to); },
       "use_own_memory, store 1/4/128; pipe 1, touched 0/4"},
      // Lanes that copy the same word each take a wavefront; those that are filled with zeros only
      // pass the banks that they are written to, which keeps the pipe no longer.
      {[&] { go(copy_some<4>, 1, 32, from, to, ~0u); },
       "copy_some, store 1/4/128, copy 1/1/4, "
       "shared load 1/1/0, shared copy 1/32/31; pipe 34, touched 1/4"},
      {[&] { go(copy_some<4>, 1, 32, from, to, 0xf0fu); },
       "copy_some, store 1/4/128, copy 1/1/4, "
       "shared load 1/1/0, shared copy 1/8/7; pipe 10, touched 1/4"},
      {[&] { go(copy_some<16>, 1, 32, from, to, 3u); },
       "copy_some, store 1/4/128, bypass 1/2/16, "
       "shared load 1/4/3, shared copy 1/5/1; pipe 6, touched 1/4"},
      {[&] { go(copy_some<4>, 1, 32, from, to, 0u); },
       "copy_some, store 1/4/128, "
       "shared load 1/1/0, shared copy 1/1/0; pipe 3, touched 0/4"},
      {[&] { go(copy_some<8>, 1, 32, from, to, 0u); },
       "copy_some, store 1/4/128, "
       "shared load 1/2/1, shared copy 1/2/0; pipe 4, touched 0/4"},
      {[&] { go(copy_some<16>, 1, 32, from, to, 0u); },
       "copy_some, store 1/4/128, "
       "shared load 1/4/3, shared copy 1/4/0; pipe 6, touched 0/4"}};
  for (const auto& [work, expected] : CASES) {
    for (uint64_t seed = 0; seed < 4; ++seed) {
      simulator::set_thread_order_seed(seed);
      work();
      EXPECT_EQ(summary(counts()), expected) << "seed " << seed;
    }
  }
}

TEST_F(Counting, WorkIsListedByLaunch) {
  go(load_strided, 2, 128, from, to, 160, 1);
  go(load_strided, 1, 128, from, to, 32, 1);
  const KernelCounts all = counts();
  EXPECT_EQ(all.launches, 2);
  EXPECT_EQ(summary(all), "load_strided, load 6/24/768, store 6/24/768; pipe 12, touched 24/24");
  const std::vector<simulator::LaunchWork>& work = all.work;
  ASSERT_EQ(work.size(), 2u);
  EXPECT_EQ(work[0].wavefronts, (std::map<int64_t, int64_t>{{8, 1}, {2, 1}}));
  EXPECT_EQ(work[0].sectors_read, 20);
  EXPECT_EQ(work[1].blocks, 1);
  EXPECT_EQ(work[1].sectors_written, 4);
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

__global__ void multiply_rounded(const float* from, float* to) {
  const float x = __fmaf_rn(__fmul_rz(from[0], from[1]), from[2], 1.0f);
  to[threadIdx.x] = static_cast<float>(__fma_rn(__fadd_rn(x, x), __dmul_rn(2.0, x), 1.0));
}

TEST_F(Counting, ProductsOfFloats) {
  go(multiply, 3, 64, from, to);
  const KernelCounts loop = counts();
  EXPECT_TRUE(loop.knows_products);
  constexpr int64_t PER_BLOCK = 16 * (0 + 1 + 2 + 3) + 32;
  EXPECT_EQ(loop.products, 3 * PER_BLOCK);
  ASSERT_EQ(loop.work.size(), 1u);
  EXPECT_EQ(loop.work[0].blocks, 3);
  EXPECT_EQ(loop.work[0].products, (std::map<int64_t, int64_t>{{PER_BLOCK, 3}}));
  go(multiply_tile, 1, 32, from, to);
  EXPECT_EQ(counts().products, 32 * 9);
  go(multiply_rounded, 1, 32, from, to);
  EXPECT_EQ(counts().products, 32 * 2);
  go(load_strided, 1, 64, from, to, 8, 1);
  const KernelCounts none = counts();
  EXPECT_TRUE(none.knows_products);
  EXPECT_EQ(none.products, 0);
}

__global__ void multiply_often(const float* from, float* to, int times) {
  const float a[4] = {from[threadIdx.x], 1, 1, 1}, b[2] = {1, 1};
  float sum[4] = {};
  if (threadIdx.x / 32 == 1) times = 1;
  for (int i = 0; i < times; ++i) mma_tf32(sum, sum + 2, a, b);
  to[blockIdx.x * blockDim.x + threadIdx.x] = sum[0];
}

TEST_F(Counting, WarpsThatMultiplyAreCounted) {
  go(multiply_often, 5, 96, from, to, 7);
  const KernelCounts many = counts();
  EXPECT_EQ(many.tensor_instructions, 5 * (7 + 1 + 7));
  EXPECT_EQ(many.load.requests, 5 * 3);  // operands are registers
  EXPECT_EQ(many.store.requests, 5 * 3);
  const auto all = simulator::metrics(many);
  const std::pair<std::string, double> metric = {"sm__inst_executed_pipe_tensor_op_hmma.sum", 75};
  EXPECT_EQ(std::count(all.begin(), all.end(), metric), 1);
}

TEST_F(Counting, PlannedLaunchesAreNotCarriedOut) {
  float* const nowhere = nullptr;
  const auto plan = simulator::plan_launches([&] {
    go(multiply_tile, 5, 32, nowhere, nowhere);
    go(multiply_tile, dim3(2, 3), 32, nowhere, nowhere);
    auto* const anywhere = reinterpret_cast<float*>(std::uintptr_t{1} << 40);
    cudaMemsetAsync(anywhere, 0, std::size_t{1} << 40, nullptr);
    cudaMemcpyAsync(anywhere, anywhere + 1, std::size_t{1} << 30, cudaMemcpyDeviceToDevice,
                    nullptr);
  });
  ASSERT_EQ(plan.size(), 2u);
  EXPECT_EQ(plan[0].code, reinterpret_cast<const void*>(multiply_tile));
  EXPECT_EQ(plan[0].blocks, 5);
  EXPECT_EQ(plan[1].blocks, 6);
  EXPECT_TRUE(simulator::take_kernel_counts().empty());
}

// ---- One warp, access by access ----

TEST_F(Counting, TraceHasTheAddressesOfTheChosenWarp) {
  simulator::start_trace({2, 1});
  go(reverse_tile, 3, 64, from, to);
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
    const uint64_t expected[] = {reinterpret_cast<uint64_t>(from + (lane + 32) * 2),
                                 tile + (lane + 32) * 4, tile + (31 - lane) * 2 * 4,
                                 reinterpret_cast<uint64_t>(to + 2 * 64 + 32 + lane)};
    for (int i = 0; i < 4; ++i) EXPECT_EQ(trace[i].access.address[lane], expected[i]) << i;
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
  for (const simulator::TraceSample sample : {simulator::TraceSample{3, 0}, {0, 2}}) {
    simulator::start_trace(sample);
    go(reverse_tile, 3, 64, from, to);
    EXPECT_TRUE(simulator::take_trace().at(0).warps.empty()) << "no such warp";
  }
}

TEST_F(Counting, InstructionsAddUpToTheKernelsCounts) {
  simulator::start_trace({});
  for (int i = 0; i < 2; ++i) go(reverse_tile, 3, 64, from, to);
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

__global__ void sum_many(const float* from, float* to, int count) {
  float sum = 0.0f;
  for (int i = 0; i < count; ++i) sum += from[i];
  to[threadIdx.x] = sum;
}

TEST_F(Counting, TraceKeepsTheFirstTimesOfALongLoop) {
  simulator::start_trace({0, 0});
  go(sum_many, 1, 32, from, to, 4096);
  const simulator::TracedWarp warp = simulator::take_trace().at(0).warps.at(0);
  ASSERT_EQ(warp.times.size(), 2u);
  EXPECT_EQ(warp.times.begin()->second, 4096);
  EXPECT_EQ(warp.executions.size(), 512u + 1u);  // with the store behind the loop
}

}  // namespace
}  // namespace convladder
