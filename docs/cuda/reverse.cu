#include <cstdio>

__global__ void reverse(float* values) {
  __shared__ float tile[256];
  tile[threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  values[threadIdx.x] = tile[255 - threadIdx.x];
}

int main() {
  float values[256], *there;
  for (int i = 0; i < 256; ++i) values[i] = i;
  cudaMalloc(&there, sizeof(values));
  cudaMemcpy(there, values, sizeof(values), cudaMemcpyHostToDevice);
  reverse<<<1, 256>>>(there);
  cudaMemcpy(values, there, sizeof(values), cudaMemcpyDeviceToHost);
  std::printf("%g %g ... %g\n", values[0], values[1], values[255]);
}
