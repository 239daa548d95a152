// A barrier that some threads never reach.
// seen: after the guard: no error
// seen: early: 1 launch, 1 found
// seen: block (0,0,0): 100 of 256 threads have come to __syncthreads() at {barrier}, the others have left the kernel, thread (255,0,0) at {guard}
// seen: right: 1 launch, nothing found
// status: 1
#include <cstdio>

__global__ void early(float* x, int count) {
  __shared__ float held[256];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count)  // guard
    return;
  held[threadIdx.x] = x[i];
  __syncthreads();  // barrier
  x[i] = held[0];
}
__global__ void right(float* x, int count) {
  __shared__ float held[256];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) held[threadIdx.x] = x[i];
  __syncthreads();
  if (i < count) x[i] = held[0];
}

int main() {
  float* x = nullptr;
  cudaMalloc(&x, 256 * sizeof(float));
  cudaMemset(x, 0, 256 * sizeof(float));
  early<<<1, 256>>>(x, 100);
  right<<<1, 256>>>(x, 100);
  printf("after the guard: %s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
