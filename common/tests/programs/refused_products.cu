// A library's part that the simulator lacks is refused with its line.
// seen: {description}: error: cublasLtMatmulDesc_t: products of cuBLASLt are not simulated
// status: 1
#include <cublasLt.h>

int main() {
  cublasLtMatmulDesc_t operation;  // description
  return cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F);
}
