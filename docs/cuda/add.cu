#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

__global__ void add(int count, const float* a, const float* b, float* sum) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) sum[i] = a[i] + b[i];
}

int main() {
  const int count = 1000, threads = 256, blocks = (count + threads - 1) / threads;
  const size_t bytes = count * sizeof(float);
  std::vector<float> a(count, 1.5f), b(count, 2.0f), sum(count);
  float *a_there, *b_there, *sum_there;
  cudaMalloc(&a_there, bytes);
  cudaMalloc(&b_there, bytes);
  cudaMalloc(&sum_there, bytes);
  cudaMemcpy(a_there, a.data(), bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(b_there, b.data(), bytes, cudaMemcpyHostToDevice);
  add<<<blocks, threads>>>(count, a_there, b_there, sum_there);
  const cudaError_t launched = cudaGetLastError(), ran = cudaDeviceSynchronize();
  cudaMemcpy(sum.data(), sum_there, bytes, cudaMemcpyDeviceToHost);
  std::printf("launched: %s, ran: %s\n", cudaGetErrorString(launched), cudaGetErrorString(ran));
  std::printf("%d blocks of %d threads, sum[%d] = %g\n", blocks, threads, count - 1,
              sum[count - 1]);
  cudaFree(a_there);
  cudaFree(b_there);
  cudaFree(sum_there);
}
