// A list that is stored is one access, wherever it stands; and what only looks like that store. No FFMA are
// products of halves, and what the simulator needs to convert them.
// options: --count
// seen: list_stores.cu  stores        0               0      12              96
// seen: list_stores.cu  add           0               0       1               1           1               32        1
// seen: declares: 1 launch, nothing found
// seen: list_stores.cu  halves         0.001353     0
// status: 0
#include <cuda_fp16.h>

#include <cassert>

__global__ void stores(float2* o, int n) {
  const int i = threadIdx.x;
  o[i] = {1, 2};
  o[i + 32] = float2{1, 2};
  if constexpr (sizeof(int) == 4) o[i + 64] = {1, 2};
  if (n == 0) [[likely]]
    o[i + 96] = {1, 2};
  switch (n) {
    case 0:
      o[i + 128] = {1, 2};
    default:
      o[i + 160] = {1, 2};
  }
label:
  o[i + 192] = {float(i), float(n)};
  *reinterpret_cast<float2*>(&o[i + 224]) = float2{float(n), float(i)};
  if (n == 1) goto label;
  for (int k = 0; k < 4; ++k) o[i + 256 + 32 * k] = {};
}

__global__ void add(int* o) {
  if (threadIdx.x < 2 and atomicAdd(o, 7) == 0) o[1] = 0;
  atomicAdd(o + 64, 1);
}

__device__ int one(int x) { return x + 1; }
__device__ int two(int x) { return x + 2; }
__global__ void declares(int* o, int = 3);
__global__ void declares(int* o, int v) {
  struct {
    int z;
  } a = {1};
  struct Named {
    int z, y;
  } b[2] = {{1, 2}, {3, 7}};
  enum class Kind { kOne = 1 } kind = {Kind::kOne};
  int (*functions[2])(int) = {one, two};
  *o = a.z + b[1].y + int(kind) + functions[1](v);
  assert(*o == 14);
}

__global__ void fused(float* f) { f[threadIdx.x] = fmaf(f[threadIdx.x], 3.0f, 1.0f); }

__global__ void halves(__half* o, float* f) {
  const __half x = o[threadIdx.x];
  o[threadIdx.x] = x * x;
  f[threadIdx.x] = __half2float(x);
}

int main() {
  float2* o;
  cudaMalloc(&o, 4096);
  stores<<<1, 32>>>(o, 0);
  int* sums;
  cudaMalloc(&sums, 512);
  cudaMemset(sums, 0, 512);
  add<<<1, 32>>>(sums);
  declares<<<1, 1>>>(sums);
  fused<<<1, 32>>>(reinterpret_cast<float*>(sums));
  halves<<<1, 32>>>(reinterpret_cast<__half*>(sums), reinterpret_cast<float*>(sums + 64));
  cudaFree(o), cudaFree(sums);
  return cudaDeviceSynchronize();
}
