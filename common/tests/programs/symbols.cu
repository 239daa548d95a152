// Variables of the device by their name, and by their address as in C; occupancy; and what is no variable.
#include "check.h"

__device__ int flag;
__device__ int arr[4];
__constant__ float scale[4];
int of_the_host;

__global__ void seen() {
  CHECK(flag == 3);
  CHECK(arr[1] == 4);
  CHECK(scale[1] == 2.0f && scale[3] == 8.0f);
}
__global__ void of_shared() { extern __shared__ float none[]; }

cudaError_t upload(const void* symbol, const void* from, std::size_t bytes, std::size_t offset) {
  return cudaMemcpyToSymbol(symbol, from, bytes, offset);
}

int main() {
  const int three = 3, four = 4;
  const float factors[4] = {1, 2, 4, 8};
  int back = 0;
  std::size_t bytes = 0;
  void* at = nullptr;
  bool right = cudaMemcpyToSymbol(static_cast<const void*>(&flag), &three, 4) == cudaSuccess &&
               upload(arr, &four, 4, 4) == cudaSuccess &&
               cudaMemcpyToSymbolAsync(scale, factors, sizeof(factors)) == cudaSuccess &&
               cudaMemcpyFromSymbol(&back, static_cast<const void*>(arr), 4, 4) == cudaSuccess &&
               cudaGetSymbolSize(&bytes, static_cast<const void*>(arr)) == cudaSuccess &&
               cudaGetSymbolAddress(&at, static_cast<const void*>(&flag)) == cudaSuccess;
  right = right && back == 4 && bytes == 16 && at != nullptr;
  seen<<<1, 1>>>();
  for (const cudaError_t error :
       {cudaMemcpyToSymbol(&flag, &three, 4), cudaMemcpyToSymbol(of_the_host, &three, 4),
        cudaMemcpyToSymbol("flag", &three, 4)}) {
    right = right && error == cudaErrorInvalidSymbol;
  }
  cudaGetLastError();
  int blocks = 0, threads = 0, most = 1;
  cudaOccupancyMaxPotentialBlockSizeVariableSMem(&blocks, &threads, of_shared,
                                                 [](int n) { return std::size_t(n) * 64; });
  right = right && threads <= 768 && blocks > 0;  // 48 KB, and no more without being asked for
  of_shared<<<1, threads, threads * 64>>>();
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&most, of_shared, 1024, 65536);
  right = right && most == 0;
  cudaOccupancyMaxPotentialBlockSize(&blocks, &threads, of_shared, 0, 200);
  right = right && threads == 128;  // 16 blocks; 9 of 200 threads would be fewer
  cudaOccupancyMaxPotentialBlockSize(&blocks, &threads, of_shared, 300000);
  return right && threads == 0 ? finish() : 1;
}
