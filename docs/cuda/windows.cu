// The copy engine fetches one position of eight windows. The pixel in row i and column j of the image has
// the value 11 + 10 i + j, so that a number says which one has come.
#include <cuda.h>

#include <cstdio>

#include "common/core/hopper.h"

using namespace convladder;

constexpr int H = 4, W = 5, C = 4;  // one image: rows, columns, channels
constexpr int BOX = 8;              // windows of a copy

__global__ void fetch(const __grid_constant__ CUtensorMap map, int w, int h, int s, int r,
                      float* seen) {
  __shared__ __align__(128) float box[BOX][C];
  __shared__ Barrier full;
  if (threadIdx.x == 0) {
    init_barrier(&full, 1);
    start_barriers();
    arrive_and_expect(&full, sizeof(box));
    copy_windows(box, &map, /*channel*/ 0, w, h, /*image*/ 0, s, r, &full);
  }
  __syncthreads();
  wait(&full, 0);
  seen[threadIdx.x] = box[threadIdx.x][0];
}

CUtensorMap map_of(float* image) {
  const cuuint64_t extents[] = {C, W, H, 1};  // from the innermost on
  const cuuint64_t pitches[] = {C * sizeof(float), W * C * sizeof(float),
                                H * W * C * sizeof(float)};
  const int first[] = {-1, -1};  // the first corner (column, row): -padding
  const int last[] = {-1, -1};   // the last, from the last pixel: padding - (filter - 1)
  const cuuint32_t strides[] = {1, 1, 1, 1};
  CUtensorMap map;  // below, C and BOX are the channels and windows of a copy
  const CUresult result = cuTensorMapEncodeIm2col(
      &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, image, extents, pitches, first, last, C, BOX,
      strides, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
      CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);  // outside: 0, not NaN
  if (result != CUDA_SUCCESS) std::printf("no map: error %d\n", result);
  return map;
}

int main() {
  float pixels[H][W][C], seen[BOX], *image, *there;
  for (int i = 0; i < H; ++i) {
    for (int j = 0; j < W; ++j) {
      for (float& value : pixels[i][j]) value = 11 + 10 * i + j;
    }
  }
  cudaMalloc(&image, sizeof(pixels));
  cudaMalloc(&there, sizeof(seen));
  cudaMemcpy(image, pixels, sizeof(pixels), cudaMemcpyHostToDevice);
  const CUtensorMap map = map_of(image);
  for (int r = 0; r < 3; ++r) {
    for (int s = 0; s < 3; ++s) {
      fetch<<<1, BOX>>>(map, 2, -1, s, r, there);  // the first window's corner: column 2, row -1
      cudaMemcpy(seen, there, sizeof(seen), cudaMemcpyDeviceToHost);
      std::printf("(%d, %d) ", r, s);
      for (const float value : seen) std::printf(" %2g", value);
      std::printf("\n");
    }
  }
  cudaFree(image);
  cudaFree(there);
}
