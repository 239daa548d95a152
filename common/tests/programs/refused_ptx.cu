// Instructions that nothing here does.
// seen: {ptx}: error: inline PTX "nanosleep.u32 %0;" is not simulated
// status: 1
__global__ void sleep() {
  asm volatile("nanosleep.u32 %0;" ::"r"(100));  // ptx
}

int main() { sleep<<<1, 1>>>(); }
