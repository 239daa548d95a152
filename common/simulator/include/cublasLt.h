// Of cuBLASLt handles alone, which programs make beside those of cuBLAS; there are no products.
#pragma once

#include "common/simulator/include/names_begin.h"

#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef struct cublasLtContext* cublasLtHandle_t;

inline cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return cublasCreate(reinterpret_cast<cublasHandle_t*>(handle));
}
inline cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return cublasDestroy(reinterpret_cast<cublasHandle_t>(handle));
}

#include "common/simulator/include/names_end.h"
