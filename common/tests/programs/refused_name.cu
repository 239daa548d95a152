// Names of CUDA's that the simulator doesn't have: a note says so, whatever the compiler takes them for.
// seen: {texture}: note: texture isn't simulated, or is misspelt
// seen: {call}: note: cublasSaxpy isn't simulated, or is misspelt
// seen: {member}: note: uuid isn't simulated, or is misspelt
// seen: {group}: note: this_multi_grid isn't simulated, or is misspelt
// status: 1
#include <cooperative_groups.h>
#include <cublas_v2.h>

texture<float, 2, cudaReadModeElementType> picture;  // texture

__global__ void kernel() {
  cooperative_groups::this_multi_grid().sync();  // group
}

int main() {
  cublasSaxpy(nullptr, 0, nullptr, nullptr, 1, nullptr, 1);  // call
  cudaDeviceProp device;
  return sizeof(device.uuid);  // member
}
