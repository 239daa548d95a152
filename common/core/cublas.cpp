#include "common/core/cublas.h"

#include <cublas_v2.h>

#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>

#include "common/core/launch.h"

namespace convladder {
namespace {

void check_cublas(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const std::string failed = std::string(what) + ": " + cublasGetStatusString(status);
  // Where a kernel before it broke the context, cuBLAS doesn't say so; any call of the runtime does.
  const cudaError_t cause = cudaDeviceSynchronize();
  throw cause == cudaSuccess ? CudaError(failed) : CudaError(failed, cause);
}

// Creating a handle takes milliseconds and allocates device memory, so it is done once. A handle
// must not serve two host threads at a time, and with two streams at a time cuBLAS does not promise
// the same bits from run to run (cuBLAS documentation, "Results reproducibility"): hence one for each.
// Never destroyed: when the program ends, the CUDA context may be gone already.
cublasHandle_t handle_for(cudaStream_t stream) {
  using Key = std::tuple<std::thread::id, int, cudaStream_t>;
  static std::mutex mutex;
  static auto* const handles = new std::map<Key, cublasHandle_t>;
  int device = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  const Key key{std::this_thread::get_id(), device, stream};
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = handles->find(key);
  if (found != handles->end()) return found->second;
  cublasHandle_t handle = nullptr;
  check_cublas(cublasCreate(&handle), "cublasCreate");
  check_cublas(cublasSetMathMode(handle, CUBLAS_PEDANTIC_MATH), "cublasSetMathMode");
  check_cublas(cublasSetStream(handle, stream), "cublasSetStream");
  return (*handles)[key] = handle;
}

}  // namespace

void sgemm_strided_batched(cudaStream_t stream, int m, int n, int k, const float* a, int lda,
                           int64_t stride_a, const float* b, int ldb, int64_t stride_b, float* c,
                           int ldc, int64_t stride_c, int batch) {
  const float one = 1.0f, zero = 0.0f;
  cublasHandle_t handle = handle_for(stream);
  check_cublas(
      cublasSgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, a, lda, stride_a,
                                b, ldb, stride_b, &zero, c, ldc, stride_c, batch),
      "cublasSgemmStridedBatched");
}

}  // namespace convladder
