// What C++20 adds: parameters of type auto, and functions that the compiler alone calls.
// options: --std=c++20
// seen: nine 9
// seen: sums 12 24
// seen: add: 2 launches, nothing found
// status: 0
#include <cstdio>

consteval int square(int x) { return x * x; }
__global__ void set(int* x) { *x = square(3); }
template <int N>
__global__ void add(const auto a, auto* x, auto... more) {
  *x += N * (a + (0 + ... + more));
}

int main() {
  int *x, values[2];
  cudaMalloc(&x, sizeof(values));
  set<<<1, 1>>>(x);
  cudaMemcpy(values, x, 4, cudaMemcpyDeviceToHost);
  printf("nine %d\n", values[0]);
  add<1><<<1, 1>>>(short(3), x);
  cudaMemcpy(values, x, 4, cudaMemcpyDeviceToHost);
  cudaMemset(x + 1, 0, 4);
  add<2><<<1, 1>>>(5, x + 1, 4, short(3));
  cudaMemcpy(values + 1, x + 1, 4, cudaMemcpyDeviceToHost);
  printf("sums %d %d\n", values[0], values[1]);
  return cudaGetLastError();
}
