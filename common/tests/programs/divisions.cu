// The least integer by -1: a GPU gives the same integer, and no rest.
#include <climits>

#include "check.h"

__managed__ int divisors[4] = {-1, -1, 3, -1};
__managed__ long long wide_divisors[4] = {-1, -1, 3, -1};
__shared__ int shared_divisor;

template <typename T>
__device__ __noinline__ T quotient(T x, T y) {
  return x / y;
}
template <typename T>
__device__ __noinline__ T rest(T x, T y) {
  return x % y;
}
__device__ __noinline__ int by_variable(int x, int i) { return x / divisors[i]; }
__device__ __noinline__ long long by_wide(long long x, const long long* y) { return x / y[1]; }
__device__ __noinline__ int by_shared(int x) { return x / shared_divisor + x % shared_divisor; }

__global__ void divide(int minus_one) {
  const int t = threadIdx.x;
  if (t == 0) shared_divisor = minus_one;
  __syncthreads();
  CHECK(quotient(INT_MIN, minus_one) == INT_MIN && rest(INT_MIN, minus_one) == 0);
  CHECK(quotient<long long>(LLONG_MIN, minus_one) == LLONG_MIN);
  CHECK(rest<long long>(LLONG_MIN, minus_one) == 0);
  CHECK(quotient(INT_MIN + t + 1, minus_one) == INT_MAX - t && rest(-7, minus_one * 4) == -3);
  CHECK(by_variable(INT_MIN, t % 2) == INT_MIN && by_variable(-9, 2) == -3);
  CHECK(by_wide(LLONG_MIN, wide_divisors + t % 2 * 2) == LLONG_MIN);
  CHECK(by_shared(INT_MIN) == INT_MIN);
}

int main() {
  divide<<<2, 64>>>(-1);
  return finish();
}
