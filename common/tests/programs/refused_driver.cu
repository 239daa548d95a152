// The driver API is another than the runtime's.
// seen: {driver}: error: CUdevice: the driver API is not simulated
// status: 1
#include <cuda.h>

int main() {
  CUdevice device;  // driver
  return cuInit(0) || cuDeviceGet(&device, 0);
}
