// The sum of numbers: each warp adds by shuffles, each block in shared memory, and one atomic operation per
// block adds to the result.
#include <cstdio>
#include <vector>

__global__ void sum(int count, const float* values, float* result) {
  __shared__ float of_warps[32];
  float own = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    own += values[i];
  }
  for (int away = 16; away > 0; away /= 2) own += __shfl_down_sync(~0u, own, away);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = own;
#ifndef WITHOUT_BARRIER
  __syncthreads();
#endif
  if (threadIdx.x == 0) {
    for (int warp = 1; warp < blockDim.x / 32; ++warp) own += of_warps[warp];
    atomicAdd(result, own);
  }
}

int main() {
  const int count = 100'000;
  const std::vector<float> values(count, 1);
  float *values_there, *result_there, result = 0;
  cudaMalloc(&values_there, count * sizeof(float));
  cudaMalloc(&result_there, sizeof(float));
  cudaMemcpy(values_there, values.data(), count * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemset(result_there, 0, sizeof(float));
  sum<<<16, 256>>>(count, values_there, result_there);
  cudaMemcpy(&result, result_there, sizeof(float), cudaMemcpyDeviceToHost);
  std::printf("sum = %g: %s\n", result, cudaGetErrorString(cudaGetLastError()));
  return result == count ? 0 : 1;
}
