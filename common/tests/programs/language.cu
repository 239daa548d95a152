// What of C++ a kernel may use: recursion, pointers to functions, memory of its own, classes, printf.
#include <cuda.h>

#include <atomic>
#include <cassert>
#include <memory>

#include "check.h"

__constant__ int primes[5] = {2, 3, 5, 7, 11};
__constant__ float scale;
__device__ int counter = 3;

__device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

__device__ int twice(int x) { return 2 * x; }
__device__ int square(int x) { return x * x; }
using Function = int (*)(int);
__device__ Function functions[] = {twice, square};
__device__ int (*doubles)(int) = twice;
__device__ int (*both[2])(int) = {twice, square};
__device__ int (*const squares)(int) = square;
__device__ int (*pick(int i))(int) { return both[i]; }
inline __device__ int inlined = 13;

struct Shape {
  __device__ virtual int area() const = 0;
  __device__ virtual ~Shape() {}
};
struct Square : Shape {
  int side;
  __device__ explicit Square(int side) : side(side) {}
  __device__ int area() const override { return side * side; }
};

// Of an alignment that is less than 4, or than the size.
struct Odd {
  unsigned char bytes[7];
};
struct Halves {
  short values[5];
};
struct Pair {
  int first, second;
};
__global__ void copy_structures(char* from, char* to) {
  const int t = threadIdx.x;
  reinterpret_cast<Odd*>(to)[t] = reinterpret_cast<Odd*>(from)[t];
  reinterpret_cast<Halves*>(to + 402)[t] = reinterpret_cast<Halves*>(from)[t];
  *reinterpret_cast<Pair*>(to + 804 + 8 * t) = *reinterpret_cast<Pair*>(from + 4 + 8 * t);
  CHECK(to[7 * t] == 1 && to[402 + 10 * t + 9] == 1 && to[804 + 8 * t + 7] == 1);
}

template <typename Operation>
__device__ int apply(Operation operation, int x) {
  return operation(x);
}

__global__ void language() {
  const int t = threadIdx.x;
  CHECK(fibonacci(10) == 55 && fibonacci(t % 3 + 3) == t % 3 + 2 + (t % 3 == 2));
  CHECK(functions[t % 2](t) == (t % 2 == 0 ? 2 * t : t * t));
  CHECK(apply([=](int x) { return x + t; }, 5) == t + 5);
  CHECK(doubles(t) == 2 * t && both[1](t) == t * t && squares(t) == t * t && pick(0)(t) == 2 * t);
  CHECK(inlined == 13);
  int local[40];  // which no thread shares
  for (int i = 0; i < 40; ++i) local[(i * 7 + t) % 40] = i;
  for (int i = 0; i < 40; ++i) CHECK(local[(i * 7 + t) % 40] == i);
  CHECK(primes[t % 5] == (t % 5 == 0 ? 2 : t % 5 == 1 ? 3 : t % 5 == 2 ? 5 : t % 5 == 3 ? 7 : 11));
  CHECK(scale == 0.0f && atomicAdd(&counter, 0) >= 3);
  atomicAdd(&counter, 1);
  assert(t < 64);
  const auto& index = threadIdx;
  auto& block = blockIdx;
  auto* const extents = &blockDim;
  CHECK(index.x == t && block.x == blockIdx.x && extents->x == 64);
}

__global__ void own_memory(int** lists) {
  const int t = threadIdx.x;
  Shape* shape = new Square(t + 1);
  CHECK(shape->area() == (t + 1) * (t + 1));
  delete shape;
  __shared__ Square* shared;  // its table of functions is its own as well
  if (t == 0) shared = new Square(7);
  __syncthreads();
  CHECK(static_cast<Shape*>(shared)->area() == 49);
  __syncthreads();
  if (t == 0) delete shared;
  int* list = static_cast<int*>(malloc(10 * sizeof(int)));
  CHECK(list != nullptr);
  for (int i = 0; i < 10; ++i) list[i] = t * i;
  lists[t] = list;  // lives as long as the context
  double* numbers = new double[4];
  numbers[3] = t;
  CHECK(numbers[3] == t);
  delete[] numbers;
}
__global__ void free_memory(int** lists) {
  const int t = threadIdx.x;
  for (int i = 0; i < 10; ++i) CHECK(lists[t][i] == t * i);
  free(lists[t]);
}

__global__ void time_passes() {
  const long long begin = clock64();
  while (clock64() - begin < 1000) {
  }
  CHECK(clock64() > begin);
  __nanosleep(10);
  __threadfence_block();
}

__global__ void cached(const float4* from, float4* to) {
  const int t = threadIdx.x;
  float4 value = __ldg(&from[t]);
  CHECK(value.x == __ldcs(&from[t].x) && value.y == __ldcg(&from[t].y) &&
        value.z == __ldca(&from[t].z));
  value.w += 1;
  __stcs(&to[t], value);
  __stcg(&to[t].x, 5.0f);
  CHECK(to[t].x == 5.0f && to[t].w == value.w && sizeof(float3) == 12 && alignof(double2) == 16);
  const uchar4 bytes = make_uchar4(1, 2, 3, 4);
  const dim3 extents(2, 3);
  CHECK(bytes.w == 4 && extents.z == 1 && make_longlong2(1, 2).y == 2 && sizeof(ushort3) == 6);
}

__global__ void speak() {
  printf("block %d, thread %d: %s %.2f\n", blockIdx.x, threadIdx.x, "said", 1.5);
  const char* nothing = nullptr;
  printf("%s\n", nothing);  // (null)
}

__global__ void default_arguments(int wanted, int value = 3, int* nowhere = NULL) {
  CHECK(value == wanted && !nowhere);
}

// What has no name, and what a function of the host has as well.
int size() { return 4; }
template <typename, int, typename T = int, int = 3>
__global__ void unnamed(T value, float = 2) {
  CHECK(value == 5);
}
__global__ void named(Function size) { CHECK(size(3) == 9); }
__global__ void find_function(Function* found) { *found = doubles = functions[1]; }

template <typename T>
__global__ void deduced(T value) {
  CHECK(value == 5);
}
template <>
__global__ void deduced<float>(float value) {
  CHECK(value == 6.5f);
}

// A function of the host may have a kernel's name.
__global__ void doubled(int* values, int count) {
  if (threadIdx.x < count) values[threadIdx.x] *= 2;
}
void doubled(int* values, int count, int threads) { doubled<<<1, threads>>>(values, count); }
__global__ void check_doubled(const int* values) { CHECK(values[threadIdx.x] == 2); }

int main() {
  static const auto blocks = std::make_shared<std::atomic<int>>(1);  // C++'s atomics, on the host
  const auto also = blocks;
  for (int one = 1; !also->compare_exchange_strong(one, 2);) continue;
  language<<<blocks->load(), 64>>>();
  default_arguments<<<1, 1>>>(3);
  // As other formatters leave it:
  // clang-format off
  default_arguments << <1, 1 >> > (4, 4);
  deduced <<< 1, 1 >>> (5);
  deduced <<< 1, 1 >>> (6.5f);
  // clang-format on
  int** lists;
  cudaMalloc(&lists, 32 * sizeof(int*));
  own_memory<<<1, 32>>>(lists);
  free_memory<<<1, 32>>>(lists);
  cudaFree(lists);
  time_passes<<<1, 32>>>();
  float4* vectors;
  cudaMalloc(&vectors, 64 * sizeof(float4));
  cudaMemset(vectors, 0, 64 * sizeof(float4));
  cached<<<1, 32>>>(vectors, vectors + 32);
  cudaFree(vectors);
  int ones[8] = {1, 1, 1, 1, 1, 1, 1, 1}, *values;
  cudaMalloc(&values, sizeof(ones));
  cudaMemcpy(values, ones, sizeof(ones), cudaMemcpyHostToDevice);
  doubled(values, 8, 32);
  check_doubled<<<1, 8>>>(values);
  cudaFree(values);
  char* bytes;
  cudaMalloc(&bytes, 4096);
  cudaMemset(bytes, 1, 4096);
  copy_structures<<<1, 32>>>(bytes, bytes + 1024);
  cudaFree(bytes);
  unnamed<float, 4><<<1, 1>>>(size() + 1, 2.0f);
  Function *place, found;
  cudaMalloc(&place, sizeof(found));
  find_function<<<1, 1>>>(place);
  cudaMemcpy(&found, place, sizeof(found), cudaMemcpyDeviceToHost);
  cudaFree(place);
  named<<<1, 1>>>(found);
  speak<<<2, 1>>>();
  return finish();
}
