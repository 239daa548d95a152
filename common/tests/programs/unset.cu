// seen: used uninitialized [-W
// seen: add: 1 launch, nothing found
// status: 0
// The simulator can't see that nobody has set a thread's own variable, but the compiler can.
#include "check.h"

__global__ void add(const float* values, float* result) {
  float sum;
  for (int i = 0; i < 8; ++i) sum += values[i];
  *result = sum;
}

int main() {
  float* there;
  cudaMalloc(&there, 9 * sizeof(float));
  cudaMemset(there, 0, 9 * sizeof(float));
  add<<<1, 1>>>(there, there + 8);
  cudaFree(there);
}
