// cuBLAS's copies of matrices and vectors.
#include <cublas_v2.h>

#include "check.h"

__global__ void check(const float* matrix) {
  const int row = threadIdx.x % 4, column = threadIdx.x / 4;
  CHECK(matrix[column * 4 + row] == float(row < 3 ? column * 5 + row : -1));
}

int main() {
  float there[20], back[20] = {}, every[3] = {};
  for (int i = 0; i < 20; ++i) there[i] = float(i);
  float* matrix;  // 3 x 4, whose columns begin every 4 elements
  cudaMalloc(&matrix, 16 * sizeof(float));
  const float lacking[16] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
  bool right = !cublasSetVector(16, sizeof(float), lacking, 1, matrix, 1);
  right &= !cublasSetMatrix(3, 4, sizeof(float), there, 5, matrix, 4);
  check<<<1, 16>>>(matrix);
  right &= !cublasGetMatrix(3, 4, sizeof(float), matrix, 4, back, 5);
  right &= back[7] == 7 && back[8] == 0;
  right &= !cublasGetVector(3, sizeof(float), matrix, 4, every, 1);
  right &= every[0] == 0 && every[1] == 5 && every[2] == 10;
  right &= cublasSetMatrix(3, 4, sizeof(float), there, 2, matrix, 4) == CUBLAS_STATUS_INVALID_VALUE;
  cudaFree(matrix);
  const int failed = finish();
  if (!right) printf("wrong\n");
  return failed || !right;
}
