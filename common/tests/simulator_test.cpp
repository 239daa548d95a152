// The order of threads, which a seed decides, and the simulator's models of cuBLAS and of the tensor cores, and where
// it says that a signal came. The programs of programs_test.py try what CUDA promises, and planted bugs show that
// memory begins as NaN, and that copies take effect as late or as early as they may.
#include <cublas_v2.h>
#include <setjmp.h>
#include <signal.h>

#include <functional>
#include <numeric>
#include <set>

#include "common/core/mma.h"
#include "common/core/platform.h"
#include "common/core/program.h"
#include "common/simulator/enqueueing.h"
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

// ---- What a stage's enqueue may do ----

#ifdef __ELF__
#define IN_SECTION __attribute__((section("convladder_device")))  // as translate.py puts it
#else
#define IN_SECTION
#endif
IN_SECTION float variable[4] = {};
float of_host[4];

// What is wrong with an enqueue on `stream` that does this.
std::string wrong_in(cudaStream_t stream, const std::function<void()>& enqueue) {
  const simulator::Enqueueing enqueueing("99_idea", stream);
  enqueue();
  return enqueueing.wrong();
}

TEST_F(Simulator, AsynchronousCopiesStayOnTheirStream) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  float *x = nullptr, *y = nullptr;
  ASSERT_EQ(cudaMalloc(&x, 64), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&y, 64), cudaSuccess);
  const auto box = [](void* to, void* from) {
    cudaMemcpy3DParms parms = {};
    parms.srcPtr = make_cudaPitchedPtr(from, 8, 8, 2);
    parms.dstPtr = make_cudaPitchedPtr(to, 8, 8, 2);
    parms.extent = make_cudaExtent(4, 2, 1);
    parms.kind = cudaMemcpyDeviceToDevice;
    return parms;
  };
  const auto copy_all = [&](float* to, cudaMemcpyKind kind, cudaStream_t on) {
    const cudaMemcpy3DParms parms = box(to, y);
    return std::vector<std::function<void()>>{
        [=] { cudaMemcpyAsync(to, y, 16, kind, on); },
        [=] { cudaMemcpy2DAsync(to, 8, y, 8, 4, 2, kind, on); },
        [=] { cudaMemcpy3DAsync(&parms, on); },
        [=] { cudaMemcpyFromSymbolAsync(to, variable, 16, 0, kind, on); },
    };
  };
  auto right = copy_all(x, cudaMemcpyDeviceToDevice, stream);
  right.push_back([=] { cudaMemcpyPeerAsync(x, 0, y, 0, 16, stream); });
  right.push_back([=] { cudaMemset2DAsync(x, 8, 0, 4, 2, stream); });
  right.push_back([=] {
    cudaMemset3DAsync(make_cudaPitchedPtr(x, 8, 8, 2), 0, {4, 2, 1}, stream);
  });
#ifdef __ELF__
  right.push_back(
      [=] { cudaMemcpyToSymbolAsync(variable, y, 16, 0, cudaMemcpyDeviceToDevice, stream); });
#endif
  for (const auto& enqueue : right) EXPECT_EQ(wrong_in(stream, enqueue), "");
  auto waiting = copy_all(of_host, cudaMemcpyDeviceToHost, stream);
  waiting.push_back(
      [=] { cudaMemcpyToSymbolAsync(of_host, y, 16, 0, cudaMemcpyDeviceToDevice, stream); });
  waiting.push_back([=] {  // whose row isn't where its memory begins
    cudaMemcpy3DParms parms = box(x, y);
    parms.dstPos.x = reinterpret_cast<char*>(of_host) - reinterpret_cast<char*>(x);
    cudaMemcpy3DAsync(&parms, stream);
  });
  waiting.push_back([=] { cudaMemcpy2D(x, 8, y, 8, 4, 2, cudaMemcpyDeviceToDevice); });
  for (const auto& enqueue : waiting) {
    EXPECT_NE(wrong_in(stream, enqueue).find("waits for a copy"), std::string::npos);
  }
  for (const auto& enqueue : copy_all(x, cudaMemcpyDeviceToDevice, nullptr)) {
    EXPECT_NE(wrong_in(stream, enqueue).find("uses another stream"), std::string::npos);
  }
  cudaFree(x), cudaFree(y);
  cudaStreamDestroy(stream);
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

// ---- Where a signal comes ----

const void* under_way[64];
std::size_t calls;
sigjmp_buf after_the_signal;

void keep_calls(int) {
  calls = return_addresses(under_way, std::size(under_way));
  siglongjmp(after_the_signal, 1);
}

// A call ends right before the access: its line is another.
__attribute__((noinline)) void access_after_a_call(volatile int* wild) {
  cudaGetLastError();
  *wild = 1;
}
constexpr int LINE_OF_THE_ACCESS = __LINE__ - 2;

TEST_F(Simulator, TheLineOfAnInterruptedInstructionIsItsOwn) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer's code stands between";
#endif
  struct sigaction action = {}, before;
  action.sa_handler = keep_calls;
  sigaction(SIGSEGV, &action, &before);
  if (sigsetjmp(after_the_signal, 1) == 0) access_after_a_call(reinterpret_cast<int*>(16));
  sigaction(SIGSEGV, &before, nullptr);
  std::set<std::string> lines;
  for (std::size_t i = 0; i < calls; ++i) lines.insert(source_line(code_offset(under_way[i])));
  const auto line = [](int number) {
    return "common/tests/simulator_test.cpp:" + std::to_string(number);
  };
  EXPECT_EQ(lines.count(line(LINE_OF_THE_ACCESS)), 1);
  EXPECT_EQ(lines.count(line(LINE_OF_THE_ACCESS - 1)), 0);
}

}  // namespace
}  // namespace convladder
