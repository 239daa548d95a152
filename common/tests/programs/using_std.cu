// Kernels that are called as functions of the standard library are, where these are in sight.
#include <algorithm>
#include <numeric>

#include "check.h"

using namespace std;

__global__ void reduce(int* x, int n) {
  if (threadIdx.x < n) x[threadIdx.x] += 1;
}
__global__ void fill(int* x, int n, int value) {
  if (threadIdx.x < n) x[threadIdx.x] = value;
}
__global__ void count(const int* x) { CHECK(x[threadIdx.x] == (threadIdx.x < 20 ? 4 : 3)); }

int main() {
  int* x;
  cudaMalloc(&x, 32 * sizeof(int));
  fill<<<1, 32>>>(x, 32, 3);
  reduce<<<1, 32>>>(x, 20);
  count<<<1, 32>>>(x);
  return finish();
}
