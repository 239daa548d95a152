// A kernel that launches a kernel.
// seen: {launch}: error: a kernel that launches kernels (dynamic parallelism) is not simulated
// status: 1
__global__ void inner() {}
__global__ void outer() {
  inner<<<1, 1>>>();  // launch
}

int main() { outer<<<1, 1>>>(); }
