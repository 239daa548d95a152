// The lanes of a warp read each other's values.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "check.h"

constexpr unsigned ALL = 0xffffffff;

template <typename T>
__device__ void shuffle_type(int lane) {
  const T own = static_cast<T>(lane + 1);
  CHECK(__shfl_sync(ALL, own, 7) == static_cast<T>(8));
  CHECK(__shfl_sync(ALL, own, (lane + 3) % 32) == static_cast<T>((lane + 3) % 32 + 1));
  CHECK(__shfl_xor_sync(ALL, own, 1) == static_cast<T>((lane ^ 1) + 1));
}

// Beyond its segment a lane gets its own value; __shfl_sync counts around within the segment.
__device__ void shuffle_segments(int lane) {
  for (int width = 1; width <= 32; width *= 2) {
    const int first = lane / width * width, rank = lane - first;
    for (int by = 0; by < 32; ++by) {
      CHECK(__shfl_sync(ALL, lane, by, width) == first + by % width);
      CHECK(__shfl_up_sync(ALL, lane, by, width) == (rank >= by ? lane - by : lane));
      CHECK(__shfl_down_sync(ALL, lane, by, width) == (rank + by < width ? lane + by : lane));
      const int source = lane ^ by;  // earlier segments can be read, later ones cannot
      CHECK(__shfl_xor_sync(ALL, lane, by, width) == (source < first + width ? source : lane));
    }
  }
}

__device__ int sum_of_warp(int value) {
  for (int by = 16; by > 0; by /= 2) value += __shfl_down_sync(ALL, value, by);
  return value;
}

__global__ void shuffle() {
  const int lane = threadIdx.x % 32;
  shuffle_type<int>(lane);
  shuffle_type<unsigned>(lane);
  shuffle_type<long long>(lane);
  shuffle_type<unsigned long long>(lane);
  shuffle_type<float>(lane);
  shuffle_type<double>(lane);
  shuffle_type<__half>(lane);
  shuffle_type<__nv_bfloat16>(lane);
  CHECK(__high2float(__shfl_sync(ALL, __floats2half2_rn(lane, 2 * lane), 5)) == 10);
  shuffle_segments(lane);
  const int sum = sum_of_warp(threadIdx.x);
  const int first = threadIdx.x - lane;
  if (lane == 0) CHECK(sum == 32 * first + 31 * 16);

  // Parts of a warp, each with a mask of its own, in branches that have no end in common.
  const unsigned half = lane < 16 ? 0xffffu : 0xffff0000u;
  int total = lane;
  if (lane < 16) {
    for (int by = 8; by > 0; by /= 2) total += __shfl_xor_sync(half, total, by);
  } else {
    for (int by = 1; by < 16; by *= 2) total += __shfl_xor_sync(half, total, by);
  }
  CHECK(total == (lane < 16 ? 120 : 376));
  // Lanes that have left are not waited for.
  if (lane % 2 == 1) return;
  CHECK(__shfl_sync(ALL, lane, 4) == 4);
}

// An inclusive scan of a block: of each warp, of the warps' sums, and both.
__global__ void scan(const int* in, int* out) {
  __shared__ int sums[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const auto scan_warp = [&](int value) {
    for (int by = 1; by < 32; by *= 2) {
      const int before = __shfl_up_sync(ALL, value, by);
      if (lane >= by) value += before;
    }
    return value;
  };
  int value = scan_warp(in[threadIdx.x]);
  if (lane == 31) sums[warp] = value;
  __syncthreads();
  if (warp == 0) sums[lane] = scan_warp(lane < int(blockDim.x) / 32 ? sums[lane] : 0);
  __syncthreads();
  out[threadIdx.x] = value + (warp > 0 ? sums[warp - 1] : 0);
}

__global__ void check_scan(const int* in, const int* out) {
  int sum = 0;
  for (int i = 0; i < 256; ++i) {
    sum += in[i];
    CHECK(out[i] == sum);
  }
}

int main() {
  shuffle<<<3, 96>>>();
  int in[256], *device;
  for (int i = 0; i < 256; ++i) in[i] = i * i % 17;
  cudaMalloc(&device, 2 * sizeof(in));
  cudaMemcpy(device, in, sizeof(in), cudaMemcpyHostToDevice);
  scan<<<1, 256>>>(device, device + 256);
  check_scan<<<1, 1>>>(device, device + 256);
  cudaFree(device);
  return finish();
}
