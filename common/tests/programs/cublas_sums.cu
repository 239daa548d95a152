// cuBLAS's sums over vectors, in both precisions.
#include <cublas_v2.h>

#include <cstdio>

#define SUMS(Letter, letter, T)                                                              \
  bool sums_are_right(cublasHandle_t handle, T) {                                            \
    const T there[6] = {3, 1, -4, 7, 0, -2};                                                 \
    T *x, dot = 0, backwards = 0, norm = 0, sum = 0, none = 5;                               \
    int largest = 0, nowhere = 5;                                                            \
    cudaMalloc(&x, sizeof(there));                                                           \
    cudaMemcpy(x, there, sizeof(there), cudaMemcpyHostToDevice);                             \
    bool right = !cublas##Letter##dot(handle, 3, x, 2, x + 1, 1, &dot);                      \
    right &= !cublas##Letter##dot(handle, 3, x, -2, x + 1, 1, &backwards);                   \
    right &= !cublas##Letter##nrm2(handle, 2, x, 2, &norm);                                  \
    right &= !cublas##Letter##asum(handle, 6, x, 1, &sum);                                   \
    right &= !cublasI##letter##amax(handle, 3, x, 2, &largest);                              \
    right &= !cublas##Letter##asum(handle, 0, x, 1, &none);                                  \
    right &= !cublasI##letter##amax(handle, 3, x, 0, &nowhere);                              \
    right &= cublas##Letter##nrm2(handle, 3, x, 1, nullptr) == CUBLAS_STATUS_INVALID_VALUE;  \
    right &= cublas##Letter##nrm2(nullptr, 3, x, 1, &norm) == CUBLAS_STATUS_NOT_INITIALIZED; \
    cudaFree(x);                                                                             \
    return right && dot == 3 + 16 && backwards == 16 + 21 && norm == 5 && sum == 17 &&       \
           largest == 2 && none == 0 && nowhere == 0;                                        \
  }
SUMS(S, s, float)
SUMS(D, d, double)

int main() {
  cublasHandle_t handle;
  cublasCreate(&handle);
  const bool right = sums_are_right(handle, 1.0f) && sums_are_right(handle, 1.0);
  cublasDestroy(handle);
  std::printf(right ? "all right\n" : "wrong\n");
  return !right;
}
