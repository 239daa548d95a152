// Memory of the host and of the device: which of them a copy, a kernel and the host may touch.
// seen: pitched 7, cubes 9, symbol 11 12, managed 13, pinned 14
// seen: step 0.5, peer: invalid device ordinal
// seen: in bounds: no error
// seen: less free by 64 MB, too much: out of memory
// seen: cudaMemcpy() at {too long}: 2048 bytes, but its destination has 1024 bytes from there to its end
// seen: cudaMemcpy2D() at {too many rows}: 1028 bytes, but its source has 1024 bytes from there to its end
// seen: cudaMemcpy3D() at {too many planes}: 2048 bytes, but its destination has 1024 bytes from there to its end
// seen: cudaMemcpy() at {wrong way}: its destination is no device memory
// seen: cudaMemcpy() at {to symbol}: a variable of the device is named where an address belongs
// seen: cudaMemcpy() at {from symbol}: a variable of the device is named where an address belongs
// seen: writes 4 bytes of global memory, which is the host's, at {out}
// seen: writes 4 bytes of global memory out of bounds, 0 bytes past the end of 1024 bytes, at {out}
// seen: reads 1 byte of global memory that nobody has written, at {byte}
// seen: writes 4 bytes of global memory out of bounds, at {far}
// seen: out: 2 launches, 2 found
// seen: still: an illegal memory access was encountered, an illegal memory access was encountered
// seen: after cudaDeviceReset: no error
// seen: writes 4 bytes of global memory, which is the host's, at {in}
// seen: the host touches device memory (1024 bytes, at byte 12), at {host}
// status: 139
#include <cstdio>
#include <vector>

__device__ int scale = 1;
__constant__ int factors[2];
template <typename T>
__constant__ T steps[2];
__managed__ int shared_by_both;
__global__ void in(int* x) { x[threadIdx.x] = scale * factors[1]; }  // in
__global__ void out(int* x) { x[256] = 1; }                          // out
__global__ void far_out(int* x) { x[1 << 20] = 1; }                  // far
__global__ void byte(char* x) {
  x[4 * threadIdx.x + 1] = 1;
  x[4 * threadIdx.x] = x[4 * threadIdx.x + 2];  // byte
}
__global__ void step(float* x) { x[threadIdx.x] = steps<float>[1]; }
__global__ void rows(char* x, size_t pitch) {
  *reinterpret_cast<int*>(x + threadIdx.x * pitch) = 7;
}
__global__ void both(int* pinned) {
  ++shared_by_both;
  ++*pinned;
}

int main() {
  std::vector<int> host(512, 3);
  int* x = nullptr;
  cudaMalloc(&x, 1024);
  char* pitched = nullptr;
  size_t pitch = 0;
  cudaMallocPitch(&pitched, &pitch, 12, 4);
  cudaMemset2DAsync(pitched, pitch, 0, 12, 4);
  rows<<<1, 4>>>(pitched, pitch);
  int packed[4][3] = {};
  cudaMemcpy2D(packed, 12, pitched, pitch, 12, 4, cudaMemcpyDeviceToHost);
  const float two_steps[2] = {0.25f, 0.5f};
  cudaMemcpyToSymbol(steps<float>, two_steps, sizeof(two_steps));
  float* stepped = nullptr;
  cudaMalloc(&stepped, 4 * sizeof(float));
  step<<<1, 4>>>(stepped);
  float last_step = 0;
  cudaMemcpy(&last_step, stepped + 3, sizeof(float), cudaMemcpyDeviceToHost);
  cudaDeviceEnablePeerAccess(1, 0);
  printf("step %g, peer: %s\n", last_step, cudaGetErrorString(cudaGetLastError()));
  cudaPitchedPtr cube;
  cudaMalloc3D(&cube, make_cudaExtent(8, 3, 2));
  int from[2][3][2] = {}, to[2][3][2] = {};
  from[1][2][1] = 9;
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(from, 8, 8, 3);
  copy.dstPtr = cube;
  copy.extent = make_cudaExtent(8, 3, 2);
  copy.kind = cudaMemcpyHostToDevice;
  cudaMemcpy3D(&copy);
  copy.srcPtr = cube;
  copy.dstPtr = make_cudaPitchedPtr(to, 8, 8, 3);
  copy.kind = cudaMemcpyDeviceToHost;
  cudaMemcpy3D(&copy);
  const int values[] = {1, 12}, eleven = 11;
  int first = 0;
  cudaMemcpyToSymbol(factors, values, sizeof(values));
  cudaMemcpyToSymbol(scale, &eleven, sizeof(int));
  cudaMemcpyFromSymbol(&first, scale, sizeof(int));
  in<<<1, 256>>>(x);
  cudaMemcpy(host.data(), x, 1024, cudaMemcpyDeviceToHost);
  int* pinned = nullptr;
  cudaMallocHost(&pinned, sizeof(int));
  *pinned = 13;
  shared_by_both = 12;
  both<<<1, 1>>>(pinned);
  printf("pitched %d, cubes %d, symbol %d %d, managed %d, pinned %d\n", packed[3][0], to[1][2][1],
         first, host[255] / 11, shared_by_both, *pinned);
  printf("in bounds: %s\n", cudaGetErrorString(cudaGetLastError()));
  std::size_t before = 0, after = 0, total = 0;
  void *large = nullptr, *too_large = nullptr;
  cudaMemGetInfo(&before, &total);
  cudaMalloc(&large, 64 << 20);
  cudaMemGetInfo(&after, &total);
  printf("less free by %zu MB, too much: %s\n", (before - after) >> 20,
         cudaGetErrorString(cudaMalloc(&too_large, before)));
  cudaGetLastError();
  byte<<<1, 32>>>(static_cast<char*>(large));
  cudaFree(large);
  cudaMemcpy(x, host.data(), 2048, cudaMemcpyHostToDevice);              // too long
  cudaMemcpy2D(host.data(), 256, x, 256, 4, 5, cudaMemcpyDeviceToHost);  // too many rows
  copy.srcPtr = make_cudaPitchedPtr(host.data(), 256, 256, 4);
  copy.dstPtr = make_cudaPitchedPtr(x, 256, 256, 4);
  copy.extent = make_cudaExtent(256, 4, 2);
  copy.kind = cudaMemcpyHostToDevice;
  cudaMemcpy3D(&copy);                                       // too many planes
  cudaMemcpy(host.data(), x, 1024, cudaMemcpyHostToDevice);  // wrong way
  cudaMemcpy(factors, values, 8, cudaMemcpyHostToDevice);    // to symbol
  cudaMemcpy(&first, &scale, 4, cudaMemcpyDefault);          // from symbol
  out<<<1, 1>>>(&scale);
  cudaDeviceReset();
  cudaMalloc(&x, 1024);
  out<<<1, 1>>>(x);
  printf("still: %s,", cudaGetErrorString(cudaDeviceSynchronize()));
  printf(" %s\n", cudaGetErrorString(cudaMemset(x, 0, 4)));
  cudaDeviceReset();
  cudaMalloc(&x, 1024);
  far_out<<<1, 1>>>(x);
  cudaDeviceReset();
  in<<<1, 4>>>(host.data());
  cudaDeviceReset();
  printf("after cudaDeviceReset: %s\n", cudaGetErrorString(cudaMalloc(&x, 1024)));
  x[3] = 5;  // host
}
