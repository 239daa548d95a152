// Instructions that nothing here does.
// seen: {ptx}: error: inline PTX "tcgen05.fence::before_thread_sync;" is not simulated
// status: 1
__global__ void fence() {
  asm volatile("nanosleep.u32 %0; tcgen05.fence::before_thread_sync;" ::"r"(100));  // ptx
}

int main() { fence<<<1, 1>>>(); }
