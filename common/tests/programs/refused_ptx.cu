// Instructions that nothing here does.
// seen: {ptx}: error: inline PTX "wgmma.fence.sync.aligned;" is not simulated
// status: 1
__global__ void fence() {
  asm volatile("nanosleep.u32 %0; wgmma.fence.sync.aligned;" ::"r"(100));  // ptx
}

int main() { fence<<<1, 1>>>(); }
