// Kernels known by their address alone, default arguments, and other ways to name and launch one; what only the
// device has: indices taken apart, static variables, packed registers, groups of groups.
#include <cooperative_groups.h>
#include <curand_kernel.h>

#include <cstring>
#include <cuda/atomic>

#include "check.h"

namespace cg = cooperative_groups;

__device__ cuda::atomic<int> of_the_device{0};

__global__ void put(int* out, int value) { out[threadIdx.x] = value; }
template <typename T>
__global__ void add(T* out, T value, int times = 3) {
  out[threadIdx.x] += value * times;
}
namespace inner {
template <typename T>
__global__ void halve(T* out, T by = 2) {
  out[threadIdx.x] /= by;
}
__global__ void negate(int* out) { out[threadIdx.x] = -out[threadIdx.x]; }
}  // namespace inner
using inner::negate;

template <typename T>
__global__ void square(T* out) {
  out[threadIdx.x] *= out[threadIdx.x];
}
extern template __global__ void square<int>(int*);
template __global__ void square<int>(int*);

__global__ void expect(const int* out, int value) { CHECK(out[threadIdx.x] == value); }

__device__ int calls() {
  static int so_far = 0;
  return atomicAdd(&so_far, 1);
}
__device__ float half_and_half(unsigned bits) {
  unsigned short low, high;
  unsigned turned;
  asm("mov.b32 {%0, %1}, %2;" : "=h"(low), "=h"(high) : "r"(bits));
  asm("mov.b32 %0, {%1, %2};" : "=r"(turned) : "h"(high), "h"(low));
  return turned == (bits << 16 | bits >> 16);
}

__global__ void on_the_device(int* memory) {
  auto [x, y, z] = threadIdx;
  const uint3 index = threadIdx;
  const auto [width, height, depth] = blockDim;
  CHECK(x == index.x && y == 0 && z == 0 && width == 64 && height == 1 && depth == 1);
  static int begun;
  atomicAdd(&begun, 1);
  calls();
  unsigned low = 0, high = 0;
  unsigned long long both;
  asm("mov.b64 %0, {%1, %2};" : "=l"(both) : "r"(x), "r"(7u));
  asm("mov.b64 {%0, %1}, %2;" : "=r"(low), "=r"(high) : "l"(both));
  CHECK(both == (7ull << 32 | x) && low == x && high == 7 && half_and_half(x + 65536 * 3));
  const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  const auto part = cg::tiled_partition<4>(tile);
  CHECK(tile.meta_group_rank() == x / 16 && tile.meta_group_size() == 4);
  CHECK(part.meta_group_rank() == x % 16 / 4 && part.meta_group_size() == 4);
  // Memory that was no atomic before, and one that is stored to before anything else.
  auto* const taken = reinterpret_cast<cuda::atomic<int, cuda::thread_scope_device>*>(memory);
  taken->fetch_add(2);
  cuda::atomic_ref<int, cuda::thread_scope_device>(memory[1]).fetch_add(1);
  __shared__ cuda::atomic<int, cuda::thread_scope_block> own;
  if (x == 0) own.store(5);
  __syncthreads();
  own++;
  __syncthreads();
  CHECK(own.load() == 69 && sizeof(own) == sizeof(int) && begun == 64 && calls() >= 64);
}

__global__ void begin(curandState* states) { curand_init(1, threadIdx.x, 0, &states[threadIdx.x]); }
__global__ void draw(curandState* states, float* drawn) {
  curandState own = states[threadIdx.x];
  drawn[threadIdx.x] = curand_uniform(&own);
  states[threadIdx.x] = own;
}

// A class by value: the host copies it and ends the copy, threads get its bytes.
struct Counted {
  explicit Counted(int number) : number(new int(number)), same(number) {}
  Counted(const Counted& other) : number(new int(*other.number)), same(other.same) { ++copies; }
  ~Counted() { delete number, --copies; }
  int *number, same;
  static inline int copies = 1;
};
__global__ void take(Counted counted, int* out) { out[threadIdx.x] = counted.same; }

int main() {
  int *out, value = 10;
  cudaMalloc(&out, 64 * sizeof(int));
  void* arguments[] = {&out, &value};
  const void* const kernel = reinterpret_cast<const void*>(put);
  cudaLaunchKernel(kernel, dim3(1), dim3(64), arguments, 0, nullptr);
  expect<<<1, 64>>>(out, 10);
  value = 20;
  cudaLaunchCooperativeKernel((const void*)&put, dim3(1), dim3(64), arguments, 0, nullptr);
  expect<<<1, 64>>>(out, 20);
  value = 30;
  cudaLaunchConfig_t config = {};
  config.gridDim = 1, config.blockDim = 64;
  cudaLaunchKernelExC(&config, (void*)put, arguments);
  expect<<<1, 64>>>(out, 30);
  add<<<1, 64>>>(out, 2);  // 3 times
  add<int><<<1, 64>>>(out, 1, 4);
  inner::halve<<<1, 64>>>(out);
  inner::halve<int><<<1, 64>>>(out, 4);
  expect<<<1, 64>>>(out, 5);
  negate<<<1, 64>>>(out);
  square<<<1, 64>>>(out);
  square<int><<<1, 64>>>(out);
  expect<<<1, 64>>>(out, 625);
  take<<<1, 64>>>(Counted(7), out);
  expect<<<1, 64>>>(out, 7);
  int memory[] = {10, 20};
  cudaMemcpy(out, memory, sizeof(memory), cudaMemcpyHostToDevice);
  on_the_device<<<1, 64>>>(out);
  cudaMemcpy(memory, out, sizeof(memory), cudaMemcpyDeviceToHost);
  curandState* states;
  float *drawn, first = 0;
  cudaMalloc(&states, 64 * sizeof(curandState));
  cudaMalloc(&drawn, 64 * sizeof(float));
  begin<<<1, 64>>>(states);
  draw<<<1, 64>>>(states, drawn);
  cudaMemcpy(&first, drawn, sizeof(first), cudaMemcpyDeviceToHost);
  char id[16];
  int device = 7;
  cudaDeviceGetPCIBusId(id, sizeof(id), 0);
  cudaDeviceGetByPCIBusId(&device, id);
  if (Counted::copies != 0 || memory[0] != 138 || memory[1] != 84 || !(first > 0 && first <= 1) ||
      device != 0) {
    printf("wrong: %d, %d, %g, %d\n", memory[0], memory[1], first, device);
    return 1;
  }
  cudaFree(out), cudaFree(states), cudaFree(drawn);
  return finish();
}
