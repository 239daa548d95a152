// What only kernels can call, called by the host.
// seen: {barrier}: the host calls what only kernels can call
// status: 134
__global__ void nothing() {}

int main() {
  nothing<<<1, 1>>>();
  cudaDeviceSynchronize();
  __syncthreads();  // barrier
}
