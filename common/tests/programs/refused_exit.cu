// A function of the device can't end the program, as the host can.
// seen: {exit}: error: exit: a kernel can't call a function of the host (without __device__)
// status: 1
#include <cstdlib>

__device__ int require(int x) {
  if (x == 0) std::exit(3);  // exit
  return x;
}
__global__ void kernel(int* x) { *x = require(*x); }

int main() {
  kernel<<<1, 1>>>(nullptr);
  exit(0);
}
