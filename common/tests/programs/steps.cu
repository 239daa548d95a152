// A kernel that never ends, counted: every step is kept until the next barrier, so they are limited.
// options: --count
// seen: has come to no end after 16777216 steps, at {loop}
// status: 1
__global__ void endless(volatile int* x) {
  while (true) x[0] = 1;  // loop
}

int main() {
  int* x;
  cudaMalloc(&x, sizeof(int));
  endless<<<1, 1>>>(x);
  cudaDeviceSynchronize();
  return 0;
}
