// free() of what is cudaFree()'s.
// seen: the host touches device memory (8 bytes, at byte -8: free() can't free it, but cudaFree() or
// seen: at {free}
// status: 139
#include <cstdlib>

int main() {
  void* memory = nullptr;
  cudaMalloc(&memory, 8);
  free(memory);  // free
}
