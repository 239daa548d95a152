// The counts of kernels whose accesses can be worked out by hand. Builds that count only.
#include <cuda_pipeline.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "common/core/launch.h"
#include "common/simulator/counting/warp_trace.h"
#include "common/simulator/counts.h"

namespace convladder {
namespace {

using simulator::KernelCounts;

// Zeros on the device.
class Zeros {
 public:
  explicit Zeros(int64_t floats) {
    check_cuda(cudaMalloc(&data_, floats * sizeof(float)), "cudaMalloc");
    check_cuda(cudaMemset(data_, 0, floats * sizeof(float)), "cudaMemset");
  }
  ~Zeros() { cudaFree(data_); }
  Zeros(const Zeros&) = delete;
  float* data() const { return data_; }

 private:
  float* data_ = nullptr;
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

template <typename T>
__global__ void load_strided(const T* from, T* to, int threads, int stride, int first) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < threads) to[i] = from[first + i * stride];
}

template <typename T>
KernelCounts count_strided(int threads, int stride, int first) {
  const Zeros from((first + threads * stride) * sizeof(T) / 4 + 64), to(threads * sizeof(T) / 4);
  const int blocks = (threads + 127) / 128;
  launch(load_strided<T>, blocks, 128, nullptr, reinterpret_cast<const T*>(from.data()),
         reinterpret_cast<T*>(to.data()), threads, stride, first);
  return simulator::take_kernel_counts().at(0);
}

TEST_F(Counting, SectorsPerRequestFollowTheStride) {
  EXPECT_EQ(count_strided<float>(1024, 1, 0).load.sectors, 32 * 4);
  EXPECT_EQ(count_strided<float>(1024, 1, 1).load.sectors, 32 * 5);
  EXPECT_EQ(count_strided<float>(1024, 2, 0).load.sectors, 32 * 8);
  EXPECT_EQ(count_strided<float>(1024, 8, 0).load.sectors, 32 * 32);
  EXPECT_EQ(count_strided<float>(1024, 100, 3).load.sectors, 32 * 32);
  EXPECT_EQ(count_strided<float>(1024, 0, 0).load.sectors, 32);
  const KernelCounts counts = count_strided<float>(1024, 4, 0);
  EXPECT_EQ(counts.kernel, "load_strided");
  EXPECT_EQ(counts.load.requests, 32);
  EXPECT_EQ(counts.load.bytes, 4096);
  EXPECT_EQ(counts.store.requests, 32);
  EXPECT_EQ(counts.store.sectors, 32 * 4);
  EXPECT_EQ(counts.sectors_read, 512);
  EXPECT_EQ(counts.sectors_written, 128);
}

TEST_F(Counting, WideAccessesAreOneRequest) {
  const KernelCounts pairs = count_strided<float2>(256, 1, 0);
  EXPECT_EQ(pairs.load.requests, 8);
  EXPECT_EQ(pairs.load.sectors, 8 * 8);
  const KernelCounts quads = count_strided<float4>(256, 1, 0);
  EXPECT_EQ(quads.load.requests, 8);
  EXPECT_EQ(quads.load.sectors, 8 * 16);
  EXPECT_EQ(quads.store.requests, 8);
  EXPECT_EQ(quads.store.sectors, 8 * 16);
  EXPECT_EQ(quads.store.bytes, 4096);
  EXPECT_EQ(count_strided<int4>(256, 3, 0).load.sectors, 8 * 32);
}

TEST_F(Counting, PartOfAWarpIsARequestOfItsOwn) {
  const KernelCounts counts = count_strided<float>(128 + 33, 1, 0);
  EXPECT_EQ(counts.load.requests, 6);  // 4 whole warps, one more, and one lane
  EXPECT_EQ(counts.load.sectors, 5 * 4 + 1);
  EXPECT_EQ(counts.load.bytes, 161 * 4);
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

// ---- Shared memory ----

template <typename T>
__global__ void read_shared(float* to, int stride, int lanes_per_value) {
  __shared__ T tile[1024];
  for (int i = threadIdx.x; i < 1024; i += 32) tile[i] = T{};
  __syncthreads();
  const T value = tile[threadIdx.x / lanes_per_value * stride];
  to[threadIdx.x] = reinterpret_cast<const float&>(value);
}

template <typename T>
int64_t wavefronts(int stride, int lanes_per_value = 1) {
  const Zeros to(32);
  launch(read_shared<T>, 1, 32, nullptr, to.data(), stride, lanes_per_value);
  const KernelCounts counts = simulator::take_kernel_counts().at(0);
  EXPECT_EQ(counts.shared_load.requests, 1);
  return counts.shared_load.wavefronts;
}

TEST_F(Counting, BankConflictsTakeWavefronts) {
  EXPECT_EQ(wavefronts<float>(0), 1);  // broadcast
  EXPECT_EQ(wavefronts<float>(1), 1);
  EXPECT_EQ(wavefronts<float>(2), 2);
  EXPECT_EQ(wavefronts<float>(3), 1);
  EXPECT_EQ(wavefronts<float>(8), 8);
  EXPECT_EQ(wavefronts<float>(31), 1);
  EXPECT_EQ(wavefronts<float>(32), 32);
  EXPECT_EQ(wavefronts<float>(16, 2), 8);
  EXPECT_EQ(wavefronts<float2>(1), 2);
  EXPECT_EQ(wavefronts<float2>(2), 4);
  EXPECT_EQ(wavefronts<float4>(1), 4);
  EXPECT_EQ(wavefronts<float4>(2), 8);
  EXPECT_EQ(wavefronts<float4>(1, 2), 2);
}

// ---- Asynchronous copies ----

template <int BYTES>
__global__ void copy_all(const float* from, float* to) {
  __shared__ float4 tile[64];
  char* mine = reinterpret_cast<char*>(tile) + threadIdx.x * BYTES;
  __pipeline_memcpy_async(mine, reinterpret_cast<const char*>(from) + threadIdx.x * BYTES, BYTES);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  to[threadIdx.x] = *reinterpret_cast<const float*>(mine);
}

TEST_F(Counting, AsynchronousCopiesAreCountedApart) {
  const Zeros from(256), to(64);
  launch(copy_all<4>, 1, 64, nullptr, from.data(), to.data());
  const KernelCounts words = counts();
  EXPECT_EQ(words.load.requests, 0);
  EXPECT_EQ(words.copy_through_l1.requests, 2);
  EXPECT_EQ(words.copy_through_l1.sectors, 8);
  EXPECT_EQ(words.shared_copy.wavefronts, 2);
  EXPECT_EQ(words.shared_store.requests, 0);
  launch(copy_all<16>, 1, 64, nullptr, from.data(), to.data());
  const KernelCounts quads = counts();
  EXPECT_EQ(quads.copy_through_l1.requests, 0);
  EXPECT_EQ(quads.copy_past_l1.requests, 2);
  EXPECT_EQ(quads.copy_past_l1.sectors, 32);
  EXPECT_EQ(quads.shared_copy.wavefronts, 8);
  EXPECT_EQ(quads.sectors_read, 32);
}

// ---- One warp, access by access ----

__global__ void reverse_tile(const float* from, float* to) {
  __shared__ float tile[64];
  tile[threadIdx.x] = from[threadIdx.x * 2];
  __syncthreads();
  to[blockIdx.x * 64 + threadIdx.x] = tile[63 - threadIdx.x];
}

TEST_F(Counting, TraceHasTheAddressesOfTheChosenWarp) {
  const Zeros from(256), to(3 * 64);
  simulator::trace_warp(2, 1);
  launch(reverse_tile, 3, 64, nullptr, from.data(), to.data());
  simulator::trace_warp(3, 0);  // there is none
  launch(reverse_tile, 3, 64, nullptr, from.data(), to.data());
  const std::vector<simulator::TracedAccess> trace = simulator::take_trace();
  ASSERT_EQ(trace.size(), 4u);
  for (const auto& traced : trace) {
    EXPECT_EQ(traced.kernel, "reverse_tile");
    EXPECT_EQ(traced.access.lanes, ~0u);
  }
  for (unsigned lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(trace[0].access.address[lane],
              reinterpret_cast<uint64_t>(from.data() + (lane + 32) * 2));
    EXPECT_EQ(trace[1].access.address[lane], (lane + 32) * 4);
    EXPECT_EQ(trace[2].access.address[lane], (31 - lane) * 4);
    EXPECT_EQ(trace[3].access.address[lane],
              reinterpret_cast<uint64_t>(to.data() + 2 * 64 + 32 + lane));
  }
  EXPECT_EQ(trace[0].variable, "");
  EXPECT_EQ(trace[1].variable, "tile");
  EXPECT_EQ(trace[1].access.operation, simulator::Operation::kStore);
  EXPECT_TRUE(simulator::take_trace().empty());
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

TEST_F(Counting, LaunchesOfAKernelAddUp) {
  const Zeros from(64), to(32);
  for (int i = 0; i < 3; ++i) {
    launch(load_strided<float>, 1, 32, nullptr, static_cast<const float*>(from.data()), to.data(),
           32, 1, i);
  }
  const KernelCounts all = counts();
  EXPECT_EQ(all.launches, 3);
  EXPECT_EQ(all.load.requests, 3);
  EXPECT_EQ(all.sectors_written, 12);
}

}  // namespace
}  // namespace convladder
