// cuBLAS as stage 02 needs it: float32, no TF32, one handle per host thread, device and stream.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace convladder {

// For each of `batch` products, column-major: C[m,n] = A[m,k] · B[k,n], with leading dimensions
// lda, ldb, ldc and `stride_*` elements from one product's matrix to the next. Enqueued on
// `stream`; computed in float32 throughout, whatever cuBLAS's default may be (CUBLAS_PEDANTIC_MATH).
// Throws CudaError. The first call of a host thread on a stream makes a handle, which allocates (and
// must not be captured into a graph) and is kept until the program ends: use few streams.
void sgemm_strided_batched(cudaStream_t stream, int m, int n, int k, const float* a, int lda,
                           int64_t stride_a, const float* b, int ldb, int64_t stride_b, float* c,
                           int ldc, int64_t stride_c, int batch);

}  // namespace convladder
