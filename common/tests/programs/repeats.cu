// A launch that does once more what the one before has done need not run; one that reads what it has written must.
// options: --count
// seen: 2 4
// seen: twice: 10 launches (9 of them repeat the one before, and need not run), nothing found
// seen: grow: 3 launches, nothing found
// seen: repeats.cu  twice      20
// status: 0
#include <cstdio>

__global__ void twice(const int* x, int* y) { y[threadIdx.x] = 2 * x[threadIdx.x]; }
__global__ void grow(int* x) { x[threadIdx.x] += 1; }

int main() {
  int *x = nullptr, *y = nullptr, one = 1, two = 0, four = 0;
  cudaMalloc(&x, 256);
  cudaMalloc(&y, 256);
  cudaMemset(x, 0, 256);
  cudaMemcpy(x, &one, sizeof(int), cudaMemcpyHostToDevice);
  for (int i = 0; i < 10; ++i) twice<<<1, 64>>>(x, y);
  cudaMemcpy(&two, y, sizeof(int), cudaMemcpyDeviceToHost);
  for (int i = 0; i < 3; ++i) grow<<<1, 64>>>(x);
  cudaMemcpy(&four, x, sizeof(int), cudaMemcpyDeviceToHost);
  printf("%d %d\n", two, four);
}
