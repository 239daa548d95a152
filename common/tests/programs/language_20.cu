// What C++20 adds: parameters of type auto, with concepts, and functions that the compiler alone calls; and
// packs without a name.
// options: --std=c++20
// seen: nine 9
// seen: sums 12 24
// seen: concepts 15 packs 31
// seen: add: 2 launches, nothing found
// status: 0
#include <concepts>
#include <cstdio>

__managed__ int sum;
consteval int square(int x) { return x * x; }
__global__ void set(int* x) { *x = square(3); }
template <int N>
__global__ void add(const auto a, auto* x, auto... more) {
  *x += N * (a + (0 + ... + more));
}
__global__ void constrained(const ::std::integral auto n, std::convertible_to<int> auto... more) {
  atomicAdd(&sum, (n + ... + more));
}
__global__ void unnamed(std::integral auto* x, const std::floating_point auto, auto...) { *x += 1; }
template <class...>
__global__ void of_types(int* x) {
  *x += 2;
}
template <class T, int...>
__global__ void of_numbers(T* x) {
  *x += 4;
}
template <std::integral... Ts>
__global__ void of_arguments(int* x, Ts...) {
  *x += 8 * sizeof...(Ts);
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
  constrained<<<1, 1>>>(short(3), 5, 7);
  unnamed<<<1, 1>>>(x, 1.0f, 2, 3);
  of_types<int, float><<<1, 1>>>(x);
  of_numbers<int, 1, 2><<<1, 1>>>(x);
  of_arguments<<<1, 1>>>(x, 1, 2, 3);
  cudaMemcpy(values + 1, x, 4, cudaMemcpyDeviceToHost);
  printf("concepts %d packs %d\n", sum, values[1] - values[0]);
  return cudaGetLastError();
}
