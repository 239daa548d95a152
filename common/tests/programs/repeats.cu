// A launch that does once more what an earlier one has done need not run; one that reads what it has written must, and
// one for which others have changed anything.
// options: --count
// seen: 2 4 4 4, 64: 65 66
// seen: twice: 12 launches (8 of them repeat an earlier one, and need not run), nothing found
// seen: grow: 4 launches, nothing found
// seen: reverse: 6 launches (4 of them repeat an earlier one, and need not run), nothing found
// seen: shift: 3 launches (1 of them repeat an earlier one, and need not run), nothing found
// seen: repeats.cu  twice       24
// status: 0
#include <cstdio>

__constant__ int by;

__global__ void twice(const int* x, int* y) { y[threadIdx.x] = 2 * x[threadIdx.x]; }
__global__ void grow(int* x) { x[threadIdx.x] += 1; }
// Reads what it has written, but nothing that it writes later.
__global__ void reverse(const int* x, int* y) {
  __shared__ int all[64];
  all[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = all[63 - threadIdx.x];
  y[64 + threadIdx.x] = y[threadIdx.x];
}
__global__ void shift(const int* x, int* y) { y[threadIdx.x] = x[threadIdx.x] + by; }

int first(const int* x) {
  int value = 0;
  cudaMemcpy(&value, x, sizeof(int), cudaMemcpyDeviceToHost);
  return value;
}

int main() {
  int *x = nullptr, *y = nullptr, *z = nullptr, one = 1, two = 2;
  cudaMalloc(&x, 256);
  cudaMalloc(&y, 256);
  cudaMalloc(&z, 512);
  cudaMemset(x, 0, 256);
  cudaMemcpy(x, &one, sizeof(int), cudaMemcpyHostToDevice);
  for (int i = 0; i < 5; ++i) {
    twice<<<1, 64>>>(x, y);
    reverse<<<1, 64>>>(y, z);
    if (first(y) != 2) printf("%d\n", i);
  }
  printf("%d", first(y));
  for (int i = 0; i < 3; ++i) grow<<<1, 64>>>(x);
  printf(" %d", first(x));
  cudaMemcpy(x, &two, sizeof(int), cudaMemcpyHostToDevice);
  for (int i = 0; i < 5; ++i) twice<<<1, 64>>>(x, y);
  printf(" %d", first(y));
  grow<<<1, 64>>>(y);  // so that it must run again
  twice<<<1, 64>>>(x, y);
  printf(" %d", first(y));
  twice<<<1, 64>>>(x, z);
  reverse<<<1, 64>>>(y, z);
  cudaMemset(y, 0, 256);
  const int value = 64;
  cudaMemcpy(y, &value, sizeof(int), cudaMemcpyHostToDevice);
  printf(", %d:", first(y));
  cudaMemcpyToSymbol(by, &one, sizeof(int));
  shift<<<1, 64>>>(y, x);
  shift<<<1, 64>>>(y, x);
  printf(" %d", first(x));
  cudaMemcpyToSymbol(by, &two, sizeof(int));
  shift<<<1, 64>>>(y, x);
  printf(" %d\n", first(x));
}
