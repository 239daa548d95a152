// Rarer ways to write what CUDA takes.
#include <functional>
#include <type_traits>
#include <vector>

#include "check.h"

struct Pair {
  float2 old, now;
  int n;
};
__device__ int counter(5);
__constant__ float scale(2.5f);
__device__ int first = 3;
__device__ decltype(first) second = 4;

struct Sums {  // of names that kernels have
  explicit Sums(int n) : n(n), sum(n) {}
  Sums& add(float x) {
    sum[0] += x;
    return *this;
  }
  Sums& twice(float x) {
    add(x);
    return add(x);
  }
  void memset(int x) { n = x; }
  int n;
  std::vector<float> sum;
};
__global__ void sum(Pair* pairs) {
  pairs->n = 1, pairs->old = {1, 2};
  pairs->now = pairs->old = float2{3, 4};
  CHECK(pairs->old.y == 4 && pairs->now.x == 3 && pairs->n == 1);
  CHECK(counter == 5 && scale == 2.5f && second == 4);
  CHECK(__float2ll_rn(NAN) == LLONG_MIN && __float2int_rn(NAN) == 0);
  CHECK(__double2int_rn(NAN) == INT_MIN);
}
__global__ void add(int* out) {
  __shared__ std::conditional_t<(sizeof(int) <= 4), int, float> room[4];
  room[0] = 1;
  switch (*out) {
    case 0:
      atomicAdd(out, room[0]);
  }
}
template <typename T, std::enable_if_t<sizeof(T) == 4, int> = 0>
__global__ void set(T* x, T to) {
  *x = to;
}
template <int N, typename = std::enable_if_t<N >= 2>>
__global__ void set_to(int* x) {
  *x = N;
}
__device__ float f(float x) { return 2 * x; }
void run(void (*f)(int*), int* x) { f<<<1, 1>>>(x); }
std::vector<float> exp(const std::vector<float>& x) { return x; }
__global__ void of_host_as_well(float* x) { *x = exp(*x) + f(0); }

int main() {
  Pair* pairs;
  int* x;
  cudaMalloc(&pairs, sizeof(Pair)), cudaMalloc(&x, sizeof(int));
  sum<<<1, 1>>>(pairs);
  cudaMemset(x, 0, sizeof(int));
  run(add, x);
  int one = 0, seven = 0, two = 0;
  cudaMemcpy(&one, x, sizeof(int), cudaMemcpyDeviceToHost);
  set<<<1, 1>>>(x, 7);
  cudaMemcpy(&seven, x, sizeof(int), cudaMemcpyDeviceToHost);
  set_to<2><<<1, 1>>>(x);
  cudaMemcpy(&two, x, sizeof(int), cudaMemcpyDeviceToHost);
  cudaMemset(x, 0, sizeof(int));
  of_host_as_well<<<1, 1>>>(reinterpret_cast<float*>(x));
  Sums sums(2);
  sums.twice(1.5f).memset(3);
  std::function<int(int)> add = [](int y) { return y + 1; };
  return one == 1 && seven == 7 && two == 2 && sums.sum[0] == 3 && add(1) == 2 ? finish() : 1;
}
