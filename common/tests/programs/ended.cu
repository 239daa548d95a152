// A kernel that calls what ends the program: nvcc would refuse it. Here the kernel and its line are named.
// status: 134
// seen: ended: 1 launch, 1 found
// seen: block (0,0,0): is ended by SIGABRT, at {here}
// seen: the program was ended by SIGABRT
#include <exception>

__global__ void ended() {
  std::terminate();  // here
}

int main() {
  ended<<<1, 1>>>();
  return cudaDeviceSynchronize();
}
