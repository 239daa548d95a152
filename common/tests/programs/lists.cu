// Several variables of the device in one declaration, and what looks like that.
#include "check.h"

__device__ int first, second;
__managed__ int left, right;
__device__ int *some, array[4], *others, three = 3;
__constant__ float one_factor, other_factor;

__device__ int of_two(int x, int y) { return x + y; }
template <class X, class Y>
__device__ int of_types(X x, Y y) {
  return x + y;
}
struct Pair {
  __device__ Pair(int x, int y) : first(x), second(y) {}
  int first, second;
};

__global__ void write_all() {
  first = 1, second = 2;
  left = first + second, right = 4;
  some = array, others = some + 1;
  array[0] = 5, *others = 6;
  three = of_two(three, of_types(1, 2)) + Pair(1, 2).second;
}
__global__ void read_all() {
  CHECK(first == 1 && second == 2 && left == 3 && right == 4);
  CHECK(array[0] == 5 && array[1] == 6 && three == 8);
  CHECK(one_factor == 0.5f && other_factor == 2.0f);
}

int main() {
  const float factors[2] = {0.5f, 2.0f};
  cudaMemcpyToSymbol(one_factor, &factors[0], sizeof(float));
  cudaMemcpyToSymbol(other_factor, &factors[1], sizeof(float));
  write_all<<<1, 1>>>();
  read_all<<<1, 1>>>();
  return finish();
}
