// The simulator's <cublas_v2.h>: single-precision matrix products, and sums over vectors, on the host by a CBLAS.
// Matrices are column-major, as in cuBLAS.
#pragma once

#include "common/simulator/include/names_begin.h"

#include <cuda_runtime.h>

typedef struct cublasContext* cublasHandle_t;

enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_NOT_SUPPORTED = 15
};
enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 };
// In TF32 the factors are rounded before they are multiplied.
enum cublasMath_t {
  CUBLAS_DEFAULT_MATH = 0,
  CUBLAS_PEDANTIC_MATH = 2,
  CUBLAS_TF32_TENSOR_OP_MATH = 3
};

// What a matrix product may compute in; nothing here asks for it.
enum cublasComputeType_t { CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_32F_FAST_TF32 = 77 };

const char* cublasGetStatusString(cublasStatus_t status);

cublasStatus_t cublasCreate(cublasHandle_t* handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);

// C = alpha * op(A) * op(B) + beta * C, with op(A) m x k, op(B) k x n, C m x n, and ld* the
// distance between columns. C isn't read when beta is 0. alpha and beta lie on the host.
// CUBLAS_STATUS_INVALID_VALUE for a negative extent, a leading dimension less than the rows of its
// matrix, or a null pointer.
cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                           int m, int n, int k, const float* alpha, const float* A, int lda,
                           const float* B, int ldb, const float* beta, float* C, int ldc);

// The same for `batch` triples of matrices, stride_* elements apart (0: the same one again).
cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t op_a,
                                         cublasOperation_t op_b, int m, int n, int k,
                                         const float* alpha, const float* A, int lda,
                                         long long stride_a, const float* B, int ldb,
                                         long long stride_b, const float* beta, float* C, int ldc,
                                         long long stride_c, int batch);

// Of n elements, each inc_* behind the one before: the sum of products, the Euclidean norm, the sum of absolute
// values, and the first place, from 1 on, of the largest absolute value. The result lies on the host.
#define CONVLADDER_REDUCTIONS(Letter, T)                                                   \
  cublasStatus_t cublas##Letter##dot(cublasHandle_t handle, int n, const T* x, int inc_x,  \
                                     const T* y, int inc_y, T* result);                    \
  cublasStatus_t cublas##Letter##nrm2(cublasHandle_t handle, int n, const T* x, int inc_x, \
                                      T* result);                                          \
  cublasStatus_t cublas##Letter##asum(cublasHandle_t handle, int n, const T* x, int inc_x, \
                                      T* result);
CONVLADDER_REDUCTIONS(S, float)
CONVLADDER_REDUCTIONS(D, double)
#undef CONVLADDER_REDUCTIONS
cublasStatus_t cublasIsamax(cublasHandle_t handle, int n, const float* x, int inc_x, int* result);
cublasStatus_t cublasIdamax(cublasHandle_t handle, int n, const double* x, int inc_x, int* result);

// Matrices and vectors between host and device, of `bytes` for an element; ld* and inc* count elements.
#define CONVLADDER_MOVES(way, kind)                                                               \
  inline cublasStatus_t cublas##way##Matrix(int rows, int columns, int bytes, const void* from,   \
                                            int ld_from, void* to, int ld_to) {                   \
    if (rows < 0 || columns < 0 || bytes <= 0 || ld_from < rows || ld_to < rows) {                \
      return CUBLAS_STATUS_INVALID_VALUE;                                                         \
    }                                                                                             \
    const cudaError_t error =                                                                     \
        cudaMemcpy2D(to, std::size_t(ld_to) * bytes, from, std::size_t(ld_from) * bytes,          \
                     std::size_t(rows) * bytes, columns, kind);                                   \
    return error ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;                        \
  }                                                                                               \
  inline cublasStatus_t cublas##way##Vector(int count, int bytes, const void* from, int inc_from, \
                                            void* to, int inc_to) {                               \
    return cublas##way##Matrix(1, count, bytes, from, inc_from, to, inc_to);                      \
  }
CONVLADDER_MOVES(Set, cudaMemcpyHostToDevice)
CONVLADDER_MOVES(Get, cudaMemcpyDeviceToHost)
#undef CONVLADDER_MOVES

#include "common/simulator/include/names_end.h"
