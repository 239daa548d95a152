// What the runtime says of the device and of kernels, and the errors that CUDA gives.
// seen: compute 9.0, 132 multiprocessors, warps of 32
// seen: attribute 1024, resident 8, grid 1056 of 1024
// seen: pitch 2147483647, 1, textures of 131072 x 65536, configuration 1
// seen: cudaErrorNoKernelImageForDevice: no kernel image is available for execution on the device
// seen: static 256, dynamic 48896
// seen: cudaErrorInvalidConfiguration cudaSuccess
// seen: invalid argument, invalid device ordinal
// seen: a block of 2048 threads, and 1024 is the most
// seen: a grid of 1 x 70000 x 1, and 2147483647 x 65535 x 65535 is the most
// seen: on a stream that there is not, or no longer
// seen: cudaErrorInvalidResourceHandle 400 400 400
// seen: stack 4096
// seen: called back 2
// seen: flags 1, priority -5, resident 8
// seen: then cudaErrorInvalidDeviceFunction
// seen: the launch at {nowhere}: no kernel is known at the address that it is given
// status: 1
#include <cstdio>

__global__ void kernel(float* x) {
  __shared__ float held[64];
  held[threadIdx.x % 64] = 0;
  if (x) *x = held[0];
}
void CUDART_CB back(cudaStream_t, cudaError_t, void* count) { ++*static_cast<int*>(count); }
void CUDART_CB call(void* count) { ++*static_cast<int*>(count); }

int main() {
  cudaDeviceProp device;
  cudaGetDeviceProperties(&device, 0);
  printf("compute %d.%d, %d multiprocessors, warps of %d\n", device.major, device.minor,
         device.multiProcessorCount, device.warpSize);
  int most = 0, resident = 0, blocks = 0, threads = 0;
  cudaDeviceGetAttribute(&most, cudaDevAttrMaxThreadsPerBlock, 0);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, 256, 0);
  cudaOccupancyMaxPotentialBlockSize(&blocks, &threads, kernel, 0, 0);
  printf("attribute %d, resident %d, grid %d of %d\n", most, resident, blocks * threads / 256,
         threads);
  int pitch = 0, preemption = 0;
  cudaDeviceGetAttribute(&pitch, cudaDevAttrMaxPitch, 0);
  cudaDeviceGetAttribute(&preemption, cudaDevAttrComputePreemptionSupported, 0);
  cudaSharedMemConfig config;
  cudaDeviceGetSharedMemConfig(&config);
  cudaFuncSetSharedMemConfig(kernel, cudaSharedMemBankSizeEightByte);
  printf("pitch %d, %d, textures of %d x %d, configuration %d\n", pitch, preemption,
         device.maxTexture2D[0], device.maxTexture2D[1], config);
  printf("%s: %s\n", cudaGetErrorName(cudaErrorNoKernelImageForDevice),
         cudaGetErrorString(cudaErrorNoKernelImageForDevice));
  cudaFuncAttributes about;
  cudaFuncGetAttributes(&about, kernel);
  printf("static %zu, dynamic %d\n", about.sharedSizeBytes, about.maxDynamicSharedSizeBytes);
  kernel<<<1, 2048>>>(nullptr);
  kernel<<<dim3(1, 70000), 32>>>(nullptr);
  cudaError_t last = cudaGetLastError();
  printf("%s %s\n", cudaGetErrorName(last), cudaGetErrorName(cudaGetLastError()));
  printf("%s, %s\n", cudaGetErrorString(cudaMalloc(static_cast<float**>(nullptr), 4)),
         cudaGetErrorString(cudaSetDevice(7)));
  cudaStream_t stream;
  cudaEvent_t event;
  cudaStreamCreate(&stream), cudaEventCreate(&event);
  cudaStreamDestroy(stream), cudaEventDestroy(event);
  kernel<<<1, 32, 0, stream>>>(nullptr);
  printf("%s", cudaGetErrorName(cudaGetLastError()));
  printf(" %d %d %d\n", cudaStreamDestroy(stream), cudaEventDestroy(event), cudaEventRecord(event));
  cudaDeviceSetLimit(cudaLimitStackSize, 4096);
  size_t stack = 0;
  cudaDeviceGetLimit(&stack, cudaLimitStackSize);
  printf("stack %zu\n", stack);
  int count = 0;
  cudaStreamAddCallback(nullptr, back, &count, 0);
  cudaLaunchHostFunc(nullptr, call, &count);
  printf("called back %d\n", count);
  unsigned flags = 0;
  cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -7);
  cudaStreamGetFlags(stream, &flags), cudaStreamGetPriority(stream, &count);
  cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&resident, kernel, 256, 0, 0);
  printf("flags %u, priority %d, resident %d\n", flags, count, resident);
  last = cudaLaunchKernel((const void*)&count, 1, 1, nullptr);  // nowhere
  printf("then %s\n", cudaGetErrorName(last));
}
