// Operands of cuBLAS that are no good, as in mistakes.cu; `none` has no mistake, and finds nothing.
//
// none: ^$
// unwritten: ^reads global memory that nobody has written: row 0 of column 0 of A, at .*{unwritten}$
// copied: ^reads global memory that nobody has written: row 0 of column 0 of B, at .*{copied}$
// half_written: ^reads global memory that nobody has written: row 2 of column 1 of C, at .*{half_written}$
// of_host: ^its A is no device memory, at .*{of_host}\nits B is .*\nits C is no device memory, at .*$
// small_output: ^256 bytes, but its C has 240 bytes from there to its end, at .*{small_output}$
// small_inputs: ^800000 bytes, but its A has 64 bytes .*{small_inputs}\n640000 bytes, but its B has 64 bytes
// transposed: ^56 bytes, but its A has 48 bytes from there to its end, at .*{transposed}$
// batch: ^16 bytes, but its B of product 3 has 8 bytes from there to its end, at .*{many}$
// variable: ^its variable ends before row 0 of column 4 of B, at .*{variable}$
// sums: ^80 bytes, but its x has 64 bytes .*\nreads global memory that nobody has written: element 3 of y, at .*{sums}$
#include <cublas_v2.h>

#include <cstdio>
#include <cstring>
#include <vector>

__device__ float small[16];

int main(int, char** names) {
  const auto is = [&](const char* name) { return std::strcmp(names[1], name) == 0; };
  const cublasOperation_t N = CUBLAS_OP_N, T = CUBLAS_OP_T;
  const float one = 1, zero = 0;
  cublasHandle_t h;
  cublasCreate(&h);
  float *a, *b, *c, *raw, sum;
  for (float** each : {&a, &b, &raw}) cudaMalloc(each, 64);
  cudaMalloc(&c, 240);
  cudaMemset(a, 0, 64), cudaMemset(b, 0, 64);
  if (is("none")) {
    cublasSgemm(h, N, N, 4, 4, 4, &one, a, 4, b, 4, &zero, c, 4);
    cublasSgemm(h, N, T, 2, 4, 3, &one, a + 1, 5, b, 6, &one, c,
                4);  // with gaps, one before a's end
    cublasSgemm(h, N, N, 0, 400, 400, &one, raw, 500, raw, 400, &one, raw, 500);
    cublasSgemm(h, N, N, 4, 4, 400, &zero, raw, 500, raw, 400, &one, c, 4);
    cublasSgemm(h, N, N, 4, 4, 0, &one, raw, 4, raw, 1, &zero, raw, 4);
    cublasSgemmStridedBatched(h, N, N, 2, 2, 2, &one, a, 2, 4, b, 2, 0, &zero, c, 2, 4, 4);
    return cudaDeviceSynchronize() != cudaSuccess;
  }
  if (is("unwritten")) {
    if (cublasSgemm(h, N, N, 4, 4, 4, &one, raw, 4, b, 4, &zero, c, 4)) return 1;  // unwritten
    return cublasSgemm(h, N, N, 4, 4, 4, &one, a, 4, c, 4, &zero, b, 4);  // c is written now
  }
  if (is("copied")) {
    cudaMemcpy(b, raw, 32, cudaMemcpyDeviceToDevice);
    return cublasSgemm(h, N, N, 4, 4, 4, &one, a, 4, b, 4, &zero, c, 4);  // copied
  }
  if (is("half_written")) {
    cudaMemset(c, 0, 24);
    return cublasSgemm(h, N, N, 4, 4, 4, &one, a, 4, b, 4, &one, c, 4);  // half_written
  }
  std::vector<float> x(16), y(16), z(16);
  if (is("of_host")) {
    cublasSgemm(h, N, N, 4, 4, 4, &one, x.data(), 4, y.data(), 4, &zero, z.data(), 4);  // of_host
  } else if (is("small_output")) {
    cublasSgemm(h, N, N, 8, 8, 1, &one, a, 8, b, 1, &zero, c, 8);  // small_output
  } else if (is("small_inputs")) {
    cublasSgemm(h, N, N, 500, 400, 400, &one, a, 500, b, 400, &zero, c, 500);  // small_inputs
  } else if (is("transposed")) {
    cublasSgemm(h, T, N, 3, 4, 4, &one, a + 4, 5, b, 4, &zero, c, 4);  // transposed
  } else if (is("batch")) {
    const int n = 2;
    b += 2;
    cublasSgemmStridedBatched(h, N, N, n, n, n, &one, a, n, 0, b, n, 4, &zero, c, n, 4, 4);  // many
  } else if (is("variable")) {
    float* address;
    cudaGetSymbolAddress(&address, small);
    cublasSgemm(h, N, N, 4, 5, 4, &one, a, 4, address, 4, &zero, c, 4);  // variable
  } else {
    cudaMemset(c, 0, 24);
    cublasSdot(h, 20, a, 1, c, 2, &sum);  // sums
  }
  return cudaDeviceSynchronize() != cudaErrorIllegalAddress;
}
