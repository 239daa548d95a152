// The simulator keeps CUDA's promises, and none that CUDA does not make. What the lanes of a warp do
// together, and barriers that not all reach: the programs of programs_test.py.
#include <cublas_v2.h>
#include <cuda_pipeline.h>

#include <cstring>
#include <functional>
#include <numeric>
#include <set>
#include <thread>

#include "common/core/mma.h"
#include "common/tests/launch.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

constexpr int THREADS = 96;  // three warps; they work on vectors, since the host's memory will do
constexpr float INFINITE = std::numeric_limits<float>::infinity();

class Simulator : public testing::Test {
 protected:
  void TearDown() override { simulator::set_thread_order_seed(0); }
};

// ---- Threads and blocks ----

__global__ void count_visits(int* visits, dim3 grid) {
  if (gridDim.x != grid.x || gridDim.y != grid.y || gridDim.z != grid.z) return;
  const int64_t block =
      blockIdx.x + int64_t{gridDim.x} * (blockIdx.y + int64_t{gridDim.y} * blockIdx.z);
  const int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  ++visits[block * blockDim.x * blockDim.y * blockDim.z + thread];
}

// How often each thread of a three-dimensional grid runs.
std::vector<int> visits() {
  std::vector<int> counts(5 * 3 * 2 * 7 * 3 * 2);
  launch(count_visits, dim3(5, 3, 2), dim3(7, 3, 2), nullptr, counts.data(), dim3(5, 3, 2));
  return counts;
}
const std::vector<int> ONCE(5 * 3 * 2 * 7 * 3 * 2, 1);

__global__ void record_order(int* order, int* next) {
  order[(*next)++] = threadIdx.x;  // a race on a GPU; here one thread runs at a time
}

std::vector<int> thread_order(uint64_t seed) {
  simulator::set_thread_order_seed(seed);
  std::vector<int> order(THREADS), next(1);
  launch(record_order, 1, THREADS, nullptr, order.data(), next.data());
  return order;
}

TEST_F(Simulator, EveryThreadRunsOnceInTheOrderThatTheSeedDecides) {
  std::vector<int> in_order(THREADS);
  std::iota(in_order.begin(), in_order.end(), 0);
  EXPECT_EQ(thread_order(0), in_order);
  EXPECT_NE(thread_order(1), in_order);
  EXPECT_NE(thread_order(1), thread_order(2));
  EXPECT_EQ(thread_order(1), thread_order(1));
  for (const uint64_t seed : {0, 1, 2}) {
    simulator::set_thread_order_seed(seed);
    EXPECT_EQ(visits(), ONCE);
  }
}

__global__ void mark_block(int* ran) { ran[blockIdx.x + gridDim.x * blockIdx.y] = 1; }

TEST_F(Simulator, OnlyTheLastBlocksRunWhereOnlyTheyAreAskedFor) {
  for (const uint64_t seed : {0, 3}) {
    simulator::set_thread_order_seed(seed);
    for (const int last : {0, 1, 5, 12, 13}) {
      std::vector<int> ran(12);
      simulator::run_last_blocks_only(last);
      launch(mark_block, dim3(4, 3), 1, nullptr, ran.data());
      simulator::run_last_blocks_only(0);
      std::vector<int> expected(12, 1);
      if (last > 0 && last < 12) std::fill_n(expected.begin(), 12 - last, 0);
      EXPECT_EQ(ran, expected) << last << " of 12 blocks, seed " << seed;
    }
  }
}

__global__ void do_nothing() {}

TEST_F(Simulator, RefusesTheConfigurationsThatCudaRefuses) {
  const auto said = [](dim3 grid, dim3 block) {  // without what is wrong
    const std::string all =
        message_of<CudaError>([=] { launch(do_nothing, grid, block, nullptr); });
    return all.substr(0, all.find(": ", all.find(" (")));
  };
  const std::string refused = "kernel launch: invalid configuration argument (kernel do_nothing";
  for (const dim3 block : {dim3(0), dim3(1025), dim3(32, 33), dim3(1, 1025), dim3(1, 1, 65),
                           dim3(1, 0), dim3(1, 1, 0), dim3(1u << 16, 1u << 16)}) {
    EXPECT_EQ(said(1, block), refused) << block.x << " " << block.y << " " << block.z;
  }
  for (const dim3 grid :
       {dim3(0), dim3(1, 0), dim3(1, 1, 0), dim3(1, 65536), dim3(1, 1, 65536), dim3(0x80000000u)}) {
    EXPECT_EQ(said(grid, 1), refused) << grid.x << " " << grid.y << " " << grid.z;
  }
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  for (const dim3 grid : {dim3(1, 65535), dim3(1, 1, 65535), dim3(70000)}) {
    EXPECT_NO_THROW(launch(do_nothing, grid, 1, nullptr));
  }
  for (const dim3 block : {dim3(32, 32), dim3(1, 1, 64)}) {
    EXPECT_NO_THROW(launch(do_nothing, 1, block, nullptr));
  }
}

// ---- What cannot be ----

__global__ void leave_before_barrier() {
  if (threadIdx.x == 5) return;
  __syncthreads();
}

template <int BYTES>
__global__ void copy_part(const float* input, float* output, int zfill) {
  __shared__ float4 tile;
  __pipeline_memcpy_async(&tile, input, BYTES, zfill);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  std::memcpy(output, &tile, 16);
}

__global__ void copy_to_global(const float* input, float* output) {
  __pipeline_memcpy_async(output, input, 4);
}

__global__ void throw_in_the_middle() {
  __syncthreads();
  if (blockIdx.x == 1 && threadIdx.x == 7) throw std::runtime_error("seven");
  __syncthreads();
}

__global__ void multiply_apart(int leave, int barrier) {
  const float a[4] = {}, b[2] = {};
  float sum[4] = {};
  const int thread = threadIdx.x;
  if (thread == leave) return;
  if (thread == barrier) __syncthreads();
  mma_tf32(sum, sum + 2, a, b);
}

__global__ void multiply_at_two_lines(int first) {
  const float a[4] = {}, b[2] = {};
  float sum[4] = {};
  if (static_cast<int>(threadIdx.x) < first) {
    mma_tf32(sum, sum + 2, a, b);
  } else {
    mma_tf32(sum, sum + 2, a, b);
  }
}

TEST_F(Simulator, WhatCannotBeIsAnErrorOfItsLaunchAlone) {
  std::vector<float> input(8), output(8);
  const float* const odd = input.data() + 1;
  float* const y = output.data();
  const auto launching = [](auto kernel, dim3 grid, dim3 block, auto... arguments) {
    return [=] { launch(kernel, grid, block, nullptr, arguments...); };
  };
  const std::string here = "tests/simulator_test.cpp:";
  const struct {
    std::function<void()> work;
    std::vector<std::string> parts;
    cudaError_t code = cudaErrorLaunchFailure;
  } CASES[] = {
      {launching(leave_before_barrier, 1, 64),
       {"kernel leave_before_barrier, block (0,0,0), thread (0,0,0): waits for ever at "
        "__syncthreads(), " +
            here,
        "where 63 of 64 threads have come: thread (5,0,0) has left the kernel without reaching "
        "it"}},
      {launching(copy_part<16>, 1, 1, odd, y, 0), {}, cudaErrorMisalignedAddress},
      {launching(copy_part<8>, 1, 1, odd, y, 0), {}, cudaErrorMisalignedAddress},
      {launching(copy_part<12>, 1, 1, odd - 1, y, 0), {}, cudaErrorInvalidValue},
      {launching(copy_part<4>, 1, 1, odd - 1, y, 8), {}, cudaErrorInvalidValue},
      {launching(copy_to_global, 1, 1, odd, y),
       {"thread (0,0,0): __pipeline_memcpy_async: the destination is not in shared memory"},
       cudaErrorIllegalAddress},
      {launching(throw_in_the_middle, 3, 64),
       {"kernel launch: unspecified launch failure (kernel throw_in_the_middle, block (1,0,0), "
        "thread (7,0,0): exception: seven)"}},
      {launching(multiply_apart, 1, THREADS, 37, -1),
       {"waits for ever at mma_tf32(), " + here,
        "thread (37,0,0) has left the kernel without reaching it"}},
      {launching(multiply_apart, 1, THREADS, -1, 37), {"thread (37,0,0) waits at __syncthreads()"}},
      {launching(multiply_apart, 1, 48, -1, -1), {"its warp has fewer than 32 threads"}},
      {launching(multiply_at_two_lines, 1, THREADS, 65),
       {"mma_tf32(), " + here, "but thread (64,0,0) of the same warp is at mma_tf32(), " + here}}};
  for (const auto& [work, parts, code] : CASES) {
    SCOPED_TRACE(testing::PrintToString(parts));
    try {
      work();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const CudaError& error) {
      EXPECT_EQ(error.code, code) << error.what();
      expect_parts(error.what(), parts);
      EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    }
    EXPECT_EQ(visits(), ONCE) << "the device is none the worse for it";
    EXPECT_NO_THROW(launching(multiply_apart, 1, THREADS, -1, -1)());
    EXPECT_NO_THROW(launching(multiply_at_two_lines, 1, THREADS, 64)());
  }
}

// ---- The lanes of a warp ----

__global__ void leave_before_warp_barrier(int* output) {
  if (threadIdx.x % 2 == 0) return;
  __syncwarp();  // threads that have left are not waited for
  output[threadIdx.x] = 1;
}

TEST_F(Simulator, WarpBarrierWaitsForThoseThatAreLeft) {
  std::vector<int> output(40, 0);
  launch(leave_before_warp_barrier, 1, 40, nullptr, output.data());  // a whole warp and a part
  for (int t = 0; t < 40; ++t) EXPECT_EQ(output[t], t % 2);
}

// ---- Shared memory ----

template <int SIZE>
__global__ void find_remains(int* remains) {
  __shared__ __align__(16) float numbers[SIZE];
  __shared__ int integer, never_written;
  for (const float number : numbers) remains[blockIdx.x] += !std::isnan(number);
  remains[blockIdx.x] += integer != -1 || never_written != -1;
  for (float& number : numbers) number = 1.0f;
  integer = 0;
}

TEST_F(Simulator, SharedMemoryIsNanAtTheStartOfEveryBlock) {
  std::vector<int> remains(64, 0);
  for (int i = 0; i < 3; ++i) {
    launch(find_remains<10>, 64, 1, nullptr, remains.data());
    launch(find_remains<1000>, 64, 1, nullptr, remains.data());
  }
  EXPECT_EQ(remains, std::vector<int>(64, 0));
}

// ---- Asynchronous copies ----

// Where the build counts, copies must come from device memory.
DeviceBuffer on_device(const std::vector<float>& values) {
  DeviceBuffer buffer(static_cast<int64_t>(values.size()));
  buffer.upload(values.data());
  return buffer;
}

// Three groups of copies, of which the last is never committed.
__global__ void copy_and_look(const float* input, float* early, float* late, int groups_to_leave) {
  __shared__ float tile[3][THREADS];
  const int t = threadIdx.x;
  for (int group = 0; group < 3; ++group) {
    __pipeline_memcpy_async(&tile[group][t], &input[group * THREADS + t], 4);
    if (group < 2) __pipeline_commit();
  }
  for (int group = 0; group < 3; ++group) early[group * THREADS + t] = tile[group][t];
  __pipeline_wait_prior(groups_to_leave);
  for (int group = 0; group < 3; ++group) late[group * THREADS + t] = tile[group][t];
}

TEST_F(Simulator, CopiesTakeEffectWhenTheirGroupIsWaitedFor) {
  std::vector<float> numbers(3 * THREADS);
  std::iota(numbers.begin(), numbers.end(), 1.0f);
  const DeviceBuffer input = on_device(numbers);
  for (const int pending : {0, 1, 2, 3}) {
    std::vector<float> early(3 * THREADS), late(3 * THREADS);
    launch(copy_and_look, 1, THREADS, nullptr, input.data(), early.data(), late.data(), pending);
    for (int i = 0; i < 3 * THREADS; ++i) {
      const bool there = i / THREADS < 2 - pending;
      EXPECT_TRUE(std::isnan(early[i]));
      EXPECT_TRUE(there ? late[i] == numbers[i] : std::isnan(late[i])) << pending << " " << i;
    }
  }
}

// Copies over what others still read: the barrier comes too late.
__global__ void copy_too_early(const float* input, float* output) {
  __shared__ float tile[THREADS];
  const int t = threadIdx.x;
  tile[t] = 0.0f;
  __syncthreads();
  __pipeline_memcpy_async(&tile[t], &input[t], 4);
  __pipeline_commit();
  output[blockIdx.x * THREADS + t] = tile[(t + 1) % THREADS];
  __syncthreads();
  __pipeline_wait_prior(0);
}

TEST_F(Simulator, CopiesMayAlsoTakeEffectAtOnce) {
  constexpr int BLOCKS = 20;
  const DeviceBuffer input = on_device(std::vector<float>(THREADS, 1.0f));
  const auto sum = [&](uint64_t seed) {
    simulator::set_thread_order_seed(seed);
    std::vector<float> output(BLOCKS * THREADS);
    launch(copy_too_early, BLOCKS, THREADS, nullptr, input.data(), output.data());
    return std::accumulate(output.begin(), output.end(), 0.0f);
  };
  EXPECT_EQ(sum(0), 0.0f);
  EXPECT_GT(sum(1), 0.0f);
}

TEST_F(Simulator, CopiesFourEightOrSixteenBytesAndFillWithZeros) {
  const std::vector<float> numbers = {1, 2, 3, 4};
  const DeviceBuffer input = on_device(numbers);
  std::vector<float> output(4);
  const std::pair<int, void (*)(const float*, float*, int)> KERNELS[] = {
      {4, copy_part<4>}, {8, copy_part<8>}, {16, copy_part<16>}};
  for (const auto& [bytes, kernel] : KERNELS) {
    for (int zfill = 0; zfill <= bytes; zfill += 4) {
      // All zeros: the source isn't touched.
      const float* const from = zfill == 16 ? nullptr : input.data();
      launch(kernel, 1, 1, nullptr, from, output.data(), zfill);
      for (int i = 0; i < 4; ++i) {
        const float value = i * 4 < bytes - zfill ? numbers[i] : 0.0f;
        EXPECT_TRUE(i * 4 >= bytes ? std::isnan(output[i]) : output[i] == value)
            << bytes << " bytes, " << zfill << " zeros";
      }
    }
  }
}

// ---- The runtime ----

#ifndef __SANITIZE_ADDRESS__  // which says more
TEST_F(Simulator, FarFromDeviceMemoryAStrayWriteEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  float* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 1000 * sizeof(float)), cudaSuccess);
  for (const int64_t offset : {-200000, -1, 2000, 200000}) {
    EXPECT_DEATH(memory[offset] = 7, "") << offset;
  }
  cudaFree(memory);
}
#endif

TEST_F(Simulator, MemoryIsAlignedAndNanOrRefused) {
  for (const int64_t count : {1, 63, 65}) {
    float* memory = nullptr;
    ASSERT_EQ(cudaMalloc(&memory, count * sizeof(float)), cudaSuccess);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 256, 0u);
    for (int64_t i = 0; i < count; ++i) EXPECT_TRUE(std::isnan(memory[i]));
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
  }
  std::size_t free = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  EXPECT_TRUE(free > 0 && free <= total);
  float* memory = nullptr;
  for (const std::size_t bytes : {total + 1, std::size_t{1} << 50, SIZE_MAX}) {
    EXPECT_EQ(cudaMalloc(&memory, bytes), cudaErrorMemoryAllocation);
    EXPECT_EQ(memory, nullptr);
    EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  }
  EXPECT_EQ(cudaMalloc(&memory, 0), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(Simulator, ErrorsArePerThreadAndClearedByReading) {
  int on_stack = 0;
  EXPECT_EQ(cudaFree(&on_stack), cudaErrorInvalidValue);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidValue);
  std::thread([] { EXPECT_EQ(cudaGetLastError(), cudaSuccess); }).join();
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_STREQ(cudaGetErrorString(cudaErrorInvalidValue), "invalid argument");
  EXPECT_STREQ(cudaGetErrorString(static_cast<cudaError_t>(12345)), "unrecognized error code");
  EXPECT_EQ(cudaMemcpy(&on_stack, &on_stack, 4, static_cast<cudaMemcpyKind>(7)),
            cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(cudaMemset(nullptr, 0, 4), cudaErrorInvalidValue);
  cudaGetLastError();
}

TEST_F(Simulator, EventsMeasureTime) {
  cudaEvent_t start, stop;
  ASSERT_EQ(cudaEventCreate(&start), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&stop), cudaSuccess);
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, stop), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventQuery(nullptr), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(start), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(start), cudaSuccess) << "what was enqueued has been done";
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(cudaEventRecord(stop), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, stop), cudaSuccess);
  EXPECT_GE(milliseconds, 5.0f);
  for (const cudaEvent_t event : {start, stop}) cudaEventDestroy(event);
  cudaGetLastError();
}

// ---- cuBLAS ----

struct Handle {
  cublasHandle_t handle;
  Handle() { EXPECT_EQ(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS); }
  ~Handle() { cublasDestroy(handle); }
};

// Small integers: every product and sum is exact, in whatever order.
std::vector<float> small_integers(std::size_t count, unsigned step) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i * step % 15) - 7.0f;
  return values;
}

TEST_F(Simulator, GemmIsColumnMajorInAllTransposes) {
  const Handle cublas;
  const int m = 5, n = 7, k = 3, batch = 3, lda = 8, ldb = 9, ldc = 6;
  const long long stride_a = 70, stride_b = 80, stride_c = 50;
  const auto A = small_integers(batch * stride_a, 7), B = small_integers(batch * stride_b, 11);
  const float alpha = 2.0f, beta = -1.0f;
  for (int way = 0; way < 8; ++way) {
    const bool a_rows = way & 1, b_rows = way & 2,
               tf32 = way & 4;  // where integers are exact as well
    SCOPED_TRACE(way);
    auto C = small_integers(batch * stride_c, 13), expected = C;
    for (int bji = 0; bji < batch * n * m; ++bji) {
      const int i = bji % m, j = bji / m % n, b = bji / (m * n);
      float sum = 0;
      for (int l = 0; l < k; ++l) {
        sum += A[b * stride_a + (a_rows ? l + i * lda : i + l * lda)] *
               B[b * stride_b + (b_rows ? j + l * ldb : l + j * ldb)];
      }
      float& c = expected[b * stride_c + i + j * ldc];
      c = alpha * sum + beta * c;
    }
    cublasSetMathMode(cublas.handle, tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_PEDANTIC_MATH);
    ASSERT_EQ(cublasSgemmStridedBatched(cublas.handle, a_rows ? CUBLAS_OP_T : CUBLAS_OP_N,
                                        b_rows ? CUBLAS_OP_T : CUBLAS_OP_N, m, n, k, &alpha,
                                        A.data(), lda, stride_a, B.data(), ldb, stride_b, &beta,
                                        C.data(), ldc, stride_c, batch),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(C, expected);
  }
}

TEST_F(Simulator, GemmRoundsInTf32AndRefusesBadArguments) {
  const Handle cublas;
  const float one = 1.0f, three = 3.0f;
  std::vector<float> c(65536);
  const auto gemm = [&](const float* a, int m = 1, int lda = 1, int batch = 1) {
    return cublasSgemmStridedBatched(cublas.handle, CUBLAS_OP_N, CUBLAS_OP_N, m, 1, 1, &one, a, lda,
                                     0, &three, 1, 0, &one, c.data(), 1, 1, batch);
  };
  const float low = 1.0f + 0x1p-12f, halfway = 1.0f + 0x1p-11f;
  EXPECT_EQ(gemm(&low), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(c[0], 3.0f * low);
  EXPECT_EQ(cublasSetMathMode(cublas.handle, CUBLAS_TF32_TENSOR_OP_MATH), CUBLAS_STATUS_SUCCESS);
  for (const auto& [factor, rounded] : {std::pair{low, 1.0f}, {halfway, 1.0f + 0x1p-10f}}) {
    c[0] = 0.0f;
    EXPECT_EQ(gemm(&factor), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(c[0], 3.0f * rounded);
  }
  EXPECT_EQ(gemm(&one, 1, 1, 65535), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(gemm(&one, 1, 1, 65536), CUBLAS_STATUS_NOT_SUPPORTED);  // by some versions
  EXPECT_EQ(gemm(&one, -1), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(gemm(&one, 1, 0), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(gemm(nullptr), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasSetStream(nullptr, nullptr), CUBLAS_STATUS_NOT_INITIALIZED);
}

// ---- Tensor cores ----

// tensor_core_test.cu holds the model against a Hopper, bit by bit.
TEST_F(Simulator, TensorCoresCutFactorsAndSumsOff) {
  constexpr float LEAST = std::numeric_limits<float>::denorm_min(), LARGEST = 0x1.ffcp127f;
  const float tf32 = 1 + 0x1p-10f, wider = tf32 + 0x1p-10f - 0x1p-23f;
  const std::vector<float> ones(8, 1.0f);
  const struct {
    std::vector<float> x, w;
    float addend, sum;
  } CASES[] = {{{wider}, {1}, 0, tf32},  // the low bits of factors are left out
               {{1}, {-wider}, 0, -tf32},
               {{tf32}, {tf32}, 0, tf32 * tf32},  // 21 bits
               {{0x1p-24f}, {1}, 1, 1},
               {{1.5f}, {0x1p-23f}, 1, 1 + 0x1p-23f},
               {{-1.5f}, {0x1p-23f}, -1, -1 - 0x1p-23f},
               {{-0x1p-25f}, {1}, 1, 1 - 0x1p-24f},  // nearest were 1
               // What no float could hold beside the 1 stays, until two bits further nothing does.
               {std::vector<float>(8, 0x1p-25f), ones, 1, 1 + 0x1p-22f},
               {std::vector<float>(8, 0x1p-26f), ones, 1, 1},
               // The largest exponent is that of the factors, not that of their product.
               {{1.5f, 0x1p-24f}, {1.5f, 1}, -2.25f, 0x1p-24f},
               {{1.5f, 0x1p-25f}, {1.5f, 1}, -2.25f, 0},
               {{}, {}, LEAST, LEAST},
               {{0x1p-136f}, {2}, 0, 0x1p-135f},  // subnormal, with bits that count
               {{LARGEST}, {1}, 0, LARGEST},
               {{LARGEST}, {2}, 0, INFINITE},
               {{LARGEST, LARGEST}, {2, -2}, 3, 0},  // 3 is lost beside them
               {{INFINITE}, {-1}, 1, -INFINITE},
               {{INFINITE}, {0}, 1, NAN},
               {{INFINITE, INFINITE}, {1, -1}, 0, NAN},
               {{NAN}, {0}, 1, NAN},
               {{1}, {1}, NAN, NAN}};
  for (const auto& [x, w, addend, sum] : CASES) {
    float a[8] = {}, b[8] = {};
    std::copy(x.begin(), x.end(), a);
    std::copy(w.begin(), w.end(), b);
    const float result = simulator::multiply_add_tf32(a, b, addend);
    EXPECT_TRUE(std::isnan(sum) ? std::isnan(result) : result == sum)
        << x.size() << " products: " << result << ", not " << sum;
  }
  EXPECT_EQ(to_tf32(1 + 0x1p-11f), 1);  // of two as near, the even one
  EXPECT_EQ(to_tf32(-1 - 0x1.8p-10f), -1 - 0x1p-9f);
  EXPECT_EQ(to_tf32(1 + 0x1p-11f - 0x1p-23f), 1);
  EXPECT_EQ(to_tf32(2 - 0x1p-23f), 2);
}

}  // namespace
}  // namespace convladder
