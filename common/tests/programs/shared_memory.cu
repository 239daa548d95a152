// Shared memory: of kernels, templates and functions, and what a launch gives: all names of it are one array.
// seen: reversed 63 0
// seen: in a function 63
// seen: sums 2016 2016
// seen: with a lambda 10
// seen: by addresses 310
// seen: one array 5
// seen: shared: 1 launch, 1 found
// seen: writes 4 bytes of shared memory out of bounds, at {beyond}
// seen: CUDA refuses the launch at {too much}: 50000 bytes of shared memory, and 49152 are the most
// seen: after cudaFuncSetAttribute: no error
// status: 1
#include <cstdio>

template <typename T, int N>
__global__ void reverse(T* x) {
  __shared__ T held[N];
  held[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = held[N - 1 - threadIdx.x];
}
__device__ float largest(float value) {
  __shared__ float all[64];
  all[threadIdx.x] = value;
  __syncthreads();
  float most = 0;
  for (float each : all) most = max(most, each);
  return most;
}
__global__ void call(float* x) { x[threadIdx.x] = largest(x[threadIdx.x]); }

extern __shared__ float outside[];
template <typename T>
struct Dynamic {
  __device__ operator T*() {
    extern __shared__ int bytes[];
    return reinterpret_cast<T*>(bytes);
  }
};
template <typename T>
__global__ void sum(T* x) {
  T* held = Dynamic<T>();
  held[threadIdx.x] = threadIdx.x;
  __syncthreads();
  T total = 0;
  for (unsigned i = 0; i < blockDim.x; ++i) total += held[i];
  x[threadIdx.x] = total;
}
__global__ void one_array(float* x) {
  extern __shared__ __align__(16) unsigned char inside[];
  if (threadIdx.x == 0) outside[3] = 5;
  __syncthreads();
  x[threadIdx.x] = reinterpret_cast<float*>(inside)[3];
}
__global__ void shared(int at) {
  __shared__ float x[64];
  x[threadIdx.x + at] = 1;  // beyond
}

// Functions that no other file knows: of a type that has no name, and a static one.
template <class F>
__device__ float of_next(float value, F f) {
  __shared__ float all[64];
  all[threadIdx.x] = value;
  __syncthreads();
  return f(all[(threadIdx.x + 1) % 64]);
}
static __device__ float of_last(float value) {
  __shared__ float all[64];
  all[threadIdx.x] = value;
  __syncthreads();
  return all[(threadIdx.x + 63) % 64];
}
__global__ void call_with_lambda(float* x) {
  x[threadIdx.x] = of_next(of_last(float(threadIdx.x)), [](float v) { return 2 * v; });
}

// Functions of which only an address is left, in a namespace, in a lambda, and two of one name.
__device__ int* of_function() {
  __shared__ int held[32];
  return held;
}
template <typename T>
__forceinline__ __device__ T& of_template(int i) {
  __shared__ T held[32];
  return held[i];
}
struct Static {
  static __device__ int* get() {
    __shared__ int held[32];
    return held;
  }
};
namespace named {
__shared__ int held[32];
namespace {
__shared__ int hidden[32];
}
}  // namespace named
__shared__ int global[32];
__device__ int two_of_one_name(int t) {
  {
    __shared__ int held[32];
    held[t] = t;
  }
  __shared__ int held[32];
  held[t] = 2 * t;
  __syncthreads();
  return held[31 - t];
}
__global__ void by_addresses(int* sums) {
  const int t = threadIdx.x;
  const auto of_lambda = [] {
    __shared__ int held[32];
    return held;
  };
  int* const all[] = {of_function(), &of_template<int>(0), Static::get(),
                      named::held,   named::hidden,        global,
                      of_lambda(),   of_function() + 16};
  for (int i = 0; i < 7; ++i) all[i][t] = t;
  __syncthreads();
  sums[t] = two_of_one_name(t) + all[7][15 - t % 16];
  for (int i = 0; i < 7; ++i) sums[t] += all[i][31 - t];
}

int main() {
  float host[64], *x = nullptr;
  for (int i = 0; i < 64; ++i) host[i] = i;
  cudaMalloc(&x, sizeof(host));
  cudaMemcpy(x, host, sizeof(host), cudaMemcpyHostToDevice);
  const auto fetch = [&] { cudaMemcpy(host, x, sizeof(host), cudaMemcpyDeviceToHost); };
  reverse<float, 64><<<1, 64>>>(x);
  fetch();
  printf("reversed %g %g\n", host[0], host[63]);
  call<<<1, 64>>>(x);
  fetch();
  printf("in a function %g\n", host[5]);
  sum<<<1, 64, 64 * sizeof(float)>>>(x);
  fetch();
  int* i = reinterpret_cast<int*>(x);
  sum<<<1, 64, 64 * sizeof(int)>>>(i);
  int first = 0;
  cudaMemcpy(&first, i, sizeof(int), cudaMemcpyDeviceToHost);
  printf("sums %g %d\n", host[0], first);
  one_array<<<1, 64, 256>>>(x);
  fetch();
  printf("one array %g\n", host[0]);
  one_array<<<1, 64, 50000>>>(x);  // too much
  cudaGetLastError();
  cudaFuncSetAttribute(one_array, cudaFuncAttributeMaxDynamicSharedMemorySize, 50000);
  one_array<<<1, 64, 50000>>>(x);
  printf("after cudaFuncSetAttribute: %s\n", cudaGetErrorString(cudaGetLastError()));
  call_with_lambda<<<1, 64>>>(x);
  fetch();
  printf("with a lambda %g\n", host[5]);
  by_addresses<<<1, 32>>>(i);
  cudaMemcpy(&first, i, sizeof(int), cudaMemcpyDeviceToHost);
  printf("by addresses %d\n", first);
  shared<<<1, 64>>>(64);
  return 0;
}
