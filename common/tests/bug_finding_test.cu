// Every kind of bug that the counting simulator finds, planted in every kind of memory.
#include <cuda_pipeline.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "common/check/device_buffer.h"
#include "common/core/launch.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

constexpr int THREADS = 64;

class BugFinding : public testing::Test {
 protected:
  void SetUp() override {
    const std::vector<float> ones(1024, 1.0f);
    input_.upload(ones.data());
  }
  void TearDown() override { simulator::set_thread_order_seed(0); }

  // What the launch says when it fails; "" when it doesn't.
  template <typename... Params, typename... Args>
  std::string error_of(void (*kernel)(Params...), dim3 grid, Args... args) {
    try {
      launch(kernel, grid, THREADS, nullptr, args...);
    } catch (const CudaError& error) {
      return error.what();
    }
    return "";
  }

  // The launch fails, and all of `parts` are in what it says.
  template <typename... Params, typename... Args>
  void expect_found(const std::vector<std::string>& parts, void (*kernel)(Params...), dim3 grid,
                    Args... args) {
    expect_parts(error_of(kernel, grid, args...), parts);
  }

  // The same, in several orders of threads.
  template <typename... Args>
  void expect_found_in_orders(const std::vector<std::string>& parts, const Args&... args) {
    for (const uint64_t seed : {0, 1, 2}) {
      simulator::set_thread_order_seed(seed);
      expect_found(parts, args...);
    }
  }

  DeviceBuffer input_{1024}, output_{1024};
};

// "common/tests/bug_finding_test.cu:42", where line 42 ends with the comment `mark`.
std::string line_of(const std::string& mark) {
  const std::string path = "common/tests/bug_finding_test.cu";
  std::ifstream file(CONVLADDER_SOURCE_DIR "/" + path);
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::size_t at = line.find("  // " + mark);
    if (at != std::string::npos && at + 5 + mark.size() == line.size()) {
      return path + ":" + std::to_string(number);
    }
  }
  return "no line with the comment " + mark;
}

// ---- Out of bounds ----

__global__ void read_beyond(const float* x, float* y, int at) {
  const int i = threadIdx.x == 37 ? at : static_cast<int>(threadIdx.x);
  y[threadIdx.x] = x[i];  // reads beyond
}

TEST_F(BugFinding, GlobalReadOutOfBounds) {
  // One past the end, one before the begin (both in a guard zone of the buffer), and far away.
  for (const int at : {1024, -1, 1 << 26}) {
    expect_found({"kernel read_beyond, block (0,0,0), thread (37,0,0): reads 4 bytes of "
                  "global memory out of bounds",
                  line_of("reads beyond")},
                 read_beyond, 1, input_.data(), output_.data(), at);
  }
  EXPECT_EQ(error_of(read_beyond, 1, input_.data(), output_.data(), 1023), "");
}

__global__ void write_beyond(float* y, int at) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[blockIdx.x == 3 && threadIdx.x == 5 ? at : i] = 1.0f;  // writes beyond
}

TEST_F(BugFinding, GlobalWriteOutOfBounds) {
  for (const int at : {1024, -1}) {
    const std::string where = at < 0 ? "4 bytes before its begin" : "0 bytes past its end";
    expect_found({"block (3,0,0), thread (5,0,0): writes 4 bytes of global memory out of bounds, " +
                  where + ", at " + line_of("writes beyond")},
                 write_beyond, 4, output_.data(), at);
  }
}

__global__ void read_freed(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }

TEST_F(BugFinding, GlobalReadOfFreedMemory) {
  float* freed = nullptr;
  check_cuda(cudaMalloc(&freed, 1 << 20), "cudaMalloc");
  check_cuda(cudaMemset(freed, 0, 1 << 20), "cudaMemset");
  check_cuda(cudaFree(freed), "cudaFree");
  expect_found({"reads 4 bytes of global memory out of bounds"}, read_freed, 1,
               static_cast<const float*>(freed), output_.data());
}

__global__ void shared_beyond(float* y, int at, bool write) {
  __shared__ float tile[THREADS];
  tile[threadIdx.x] = 1.0f;
  __syncthreads();
  if (threadIdx.x == 1 && write) tile[at] = 2.0f;  // writes beyond the tile
  __syncthreads();
  y[threadIdx.x] =
      tile[threadIdx.x == 2 && !write ? at
                                      : static_cast<int>(threadIdx.x)];  // reads beyond the tile
}

TEST_F(BugFinding, SharedMemoryOutOfBounds) {
  for (const int at : {THREADS, THREADS + 100, -1}) {
    expect_contains(error_of(shared_beyond, 1, output_.data(), at, true),
                    "thread (1,0,0): writes 4 bytes of shared memory out of bounds, at " +
                        line_of("writes beyond the tile"));
    expect_contains(error_of(shared_beyond, 1, output_.data(), at, false),
                    "thread (2,0,0): reads 4 bytes of shared memory out of bounds, at " +
                        line_of("reads beyond the tile"));
  }
}

__global__ void misaligned_quad(const float* x, float* y) {
  const float4 quad = *reinterpret_cast<const float4*>(x + 2 + threadIdx.x * 4);
  y[threadIdx.x] = quad.x + quad.y + quad.z + quad.w;
}

TEST_F(BugFinding, MisalignedAccess) {
  expect_contains(error_of(misaligned_quad, 1, input_.data(), output_.data()),
                  "reads 16 bytes of global memory, not aligned to as many");
}

// ---- Memory that nobody has written ----

__global__ void read_output(float* y, int last) {
  if (static_cast<int>(threadIdx.x) < last) y[threadIdx.x] = 0.0f;
  y[threadIdx.x] += 1.0f;  // reads the output
}

TEST_F(BugFinding, ReadOfUndefinedGlobalMemory) {
  EXPECT_EQ(error_of(read_output, 1, output_.data(), THREADS), "");
  output_.fill_nan();  // what had been written no longer counts
  expect_contains(error_of(read_output, 1, output_.data(), 40),
                  "thread (40,0,0): reads 4 bytes of global memory that nobody has written, at " +
                      line_of("reads the output"));
}

__global__ void read_shared_unwritten(float* y) {
  __shared__ float tile[THREADS];
  if (threadIdx.x != 9) tile[threadIdx.x] = 1.0f;
  __syncthreads();
  y[blockIdx.x * THREADS + threadIdx.x] = tile[threadIdx.x];  // reads the hole
}

TEST_F(BugFinding, ReadOfUndefinedSharedMemory) {
  // In every block anew: what the block before left there is not defined.
  expect_contains(
      error_of(read_shared_unwritten, 2, output_.data()),
      "thread (9,0,0): reads 4 bytes of shared memory (tile + 36 bytes) that nobody has "
      "written, at " +
          line_of("reads the hole"));
}

// ---- Races ----

__global__ void shift_unsynchronised(float* y) {
  __shared__ float tile[THREADS + 1];
  tile[threadIdx.x] = 1.0f;  // writes its own
  if (threadIdx.x == 0) tile[THREADS] = 1.0f;
  y[threadIdx.x] = tile[threadIdx.x + 1];  // reads its neighbour's
}

TEST_F(BugFinding, SharedReadAndWriteWithoutBarrier) {
  // Which of the two comes first depends on the order; that they race does not.
  for (const uint64_t seed : {1, 2, 3}) {
    simulator::set_thread_order_seed(seed);
    const std::string error = error_of(shift_unsynchronised, 1, output_.data());
    if (error.find("nobody has written") != std::string::npos) continue;  // even worse
    expect_contains(error, "data race");
    expect_contains(error, line_of("writes its own"));
    expect_contains(error, line_of("reads its neighbour's"));
    expect_contains(error, "no barrier lies between (both come after 0 barriers)");
  }
}

__global__ void reuse_too_early(const float* x, float* y, int rounds) {
  __shared__ float tile[THREADS];
  float sum = 0.0f;
  for (int round = 0; round < rounds; ++round) {
    tile[threadIdx.x] = x[round * THREADS + threadIdx.x];  // writes the next round's
    __syncthreads();
    sum += tile[(threadIdx.x + 1) % THREADS];  // reads this round's
  }
  y[threadIdx.x] = sum;
}

TEST_F(BugFinding, SecondBarrierOfALoopIsMissing) {
  EXPECT_EQ(error_of(reuse_too_early, 1, input_.data(), output_.data(), 1), "");
  expect_found_in_orders(
      {"data race", "of shared memory (tile + ", line_of("writes the next round's"),
       line_of("reads this round's"), "both come after 1 barrier)"},
      reuse_too_early, 1, input_.data(), output_.data(), 3);
}

__global__ void write_twice(float* y) {
  __shared__ float tile[THREADS];
  tile[threadIdx.x / 2] = 1.0f;  // both write
  __syncthreads();
  y[threadIdx.x] = tile[threadIdx.x / 2];
}

TEST_F(BugFinding, TwoThreadsWriteOneSharedWord) {
  expect_contains(
      error_of(write_twice, 1, output_.data()),
      "thread (1,0,0): data race: writes 4 bytes of shared memory (tile + 0 bytes) at " +
          line_of("both write") + "; block (0,0,0), thread (0,0,0) touched it at " +
          line_of("both write"));
}

__global__ void exchange_in_block(float* y) {
  y[threadIdx.x] = 1.0f;                                      // gives
  y[threadIdx.x + THREADS] = y[(threadIdx.x + 1) % THREADS];  // takes
}

__global__ void exchange_in_block_properly(float* y) {
  y[threadIdx.x] = 1.0f;
  __syncthreads();
  y[threadIdx.x + THREADS] = y[(threadIdx.x + 1) % THREADS];
}

TEST_F(BugFinding, GlobalRaceWithinABlock) {
  const std::vector<float> ones(1024, 1.0f);
  output_.upload(ones.data());
  expect_found({"data race", "of global memory", line_of("gives"), line_of("takes")},
               exchange_in_block, 1, output_.data());
  EXPECT_EQ(error_of(exchange_in_block_properly, 1, output_.data()), "");
}

__global__ void accumulate(float* y) {
  if (threadIdx.x == 0) y[0] += 1.0f;  // adds up
}

__global__ void read_and_one_writes(float* x, float* y) {
  y[blockIdx.x * blockDim.x + threadIdx.x] = x[0];
  if (blockIdx.x == 7 && threadIdx.x == 0) x[0] = 2.0f;
}

TEST_F(BugFinding, GlobalRaceBetweenBlocks) {
  expect_found_in_orders({"data race", line_of("adds up"), "nothing orders the blocks of a grid"},
                         accumulate, 5, input_.data());
  expect_found_in_orders({"data race"}, read_and_one_writes, 9, input_.data(), output_.data());
  EXPECT_EQ(error_of(accumulate, 1, input_.data()), "");
  EXPECT_EQ(error_of(accumulate, 1, input_.data()), "");  // launches are ordered
}

// Each warp adds up 32 values with its lanes in step: __syncwarp() is enough.
__global__ void reduce_in_warp(float* y) {
  __shared__ float tile[THREADS];
  const unsigned lane = threadIdx.x % 32;
  tile[threadIdx.x] = 1.0f;
  __syncwarp();
  for (unsigned step = 16; step > 0; step /= 2) {
    const float other = lane < step ? tile[threadIdx.x + step] : 0.0f;
    __syncwarp();
    if (lane < step) tile[threadIdx.x] += other;
    __syncwarp();
  }
  if (lane == 0) y[blockIdx.x * 2 + threadIdx.x / 32] = tile[threadIdx.x];
}

TEST_F(BugFinding, WarpBarriersOrderTheLanesOfAWarp) {
  for (const uint64_t seed : {0, 1, 2}) {
    simulator::set_thread_order_seed(seed);
    EXPECT_EQ(error_of(reduce_in_warp, 2, output_.data()), "");
  }
}

// ---- Asynchronous copies ----

__global__ void copy_without_wait(const float* x, float* y) {
  __shared__ float tile[THREADS];
  __pipeline_memcpy_async(&tile[threadIdx.x], &x[threadIdx.x], 4);
  __pipeline_commit();
  y[threadIdx.x] = tile[threadIdx.x];  // does not wait
  __pipeline_wait_prior(0);
}

TEST_F(BugFinding, CopyThatNobodyWaitedFor) {
  expect_found(
      {"reads 4 bytes of shared memory (tile + 0 bytes), into which an asynchronous copy is "
       "under way",
       line_of("does not wait")},
      copy_without_wait, 1, input_.data(), output_.data());
}

__global__ void copy_without_barrier(const float* x, float* y) {
  __shared__ float tile[THREADS];
  __pipeline_memcpy_async(&tile[threadIdx.x], &x[threadIdx.x], 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  y[threadIdx.x] = tile[threadIdx.x / 2];
}

TEST_F(BugFinding, CopyOfAnotherThreadWithoutBarrier) {
  expect_contains(error_of(copy_without_barrier, 1, input_.data(), output_.data()), "data race");
}

__global__ void copy_over_readers(const float* x, float* y) {
  __shared__ float tile[THREADS];
  tile[threadIdx.x] = 0.0f;
  __syncthreads();
  y[threadIdx.x] = tile[(threadIdx.x + 1) % THREADS];
  __pipeline_memcpy_async(&tile[threadIdx.x], &x[threadIdx.x], 4);
  __pipeline_commit();
  __syncthreads();
  __pipeline_wait_prior(0);
}

TEST_F(BugFinding, CopyOverWhatOthersStillRead) {
  for (const uint64_t seed : {0, 1, 2}) {
    simulator::set_thread_order_seed(seed);
    const std::string error = error_of(copy_over_readers, 1, input_.data(), output_.data());
    EXPECT_TRUE(error.find("data race") != std::string::npos ||
                error.find("asynchronous copy is under way") != std::string::npos)
        << error;
  }
}

__global__ void copy_beyond(const float* x) {
  __shared__ float tile[THREADS];
  const float* from = &x[1024 - 16 + threadIdx.x];
  __pipeline_memcpy_async(&tile[threadIdx.x], from, 4);  // copies beyond
  __pipeline_commit();
  __pipeline_wait_prior(0);
}

TEST_F(BugFinding, CopyFromOutOfBounds) {
  expect_contains(
      error_of(copy_beyond, 1, input_.data()),
      "thread (16,0,0): copies 4 bytes of global memory out of bounds, 0 bytes past its end, at " +
          line_of("copies beyond"));
}

// ---- Kernels without an end ----

__global__ void loop_forever(float* y, float step, bool barriers) {
  for (float sum = 0.0f; sum < 1.0f; sum += step) {
    if (barriers) __syncthreads();
    y[threadIdx.x] = sum;  // for ever
  }
}

TEST_F(BugFinding, LoopWithoutEnd) {
  expect_contains(error_of(loop_forever, 1, output_.data(), 0.0f, false),
                  "block (0,0,0), thread (0,0,0): has come to no end after 16777216 steps, at "
                  "common/tests/bug_finding_test.cu:");
  expect_contains(error_of(loop_forever, 1, output_.data(), 0.0f, true),
                  "has come to no end after 65536 barriers, at ");
  EXPECT_EQ(error_of(loop_forever, 1, output_.data(), 0.001f, true), "");
}

TEST_F(BugFinding, KernelsRunAfterAFailure) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_NE(error_of(write_twice, 4, output_.data()), "");
    EXPECT_EQ(error_of(read_beyond, 1, input_.data(), output_.data(), 0), "");
  }
}

}  // namespace
}  // namespace convladder
