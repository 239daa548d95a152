// Copies that nobody but a barrier waits for: bulk copies, by tensor maps as well, and those of threads.
#include "check.h"
#include "hopper.h"

constexpr int BYTES = 16 * 128;

// Begins a copy by `begin`, which counts BYTES, and waits for it.
template <typename Begin>
__device__ void fetch(uint64_t* barrier, int parity, const Begin& begin) {
  if (threadIdx.x == 0) {
    expect(barrier, BYTES);
    begin();
  }
  wait(barrier, parity);
}

// Where number k of a row of 32 lies in a tile that is swizzled by 128 bytes.
__device__ int swizzled(int row, int k) { return row * 32 + (k / 4 ^ row % 8) * 4 + k % 4; }

// x holds its own indices + 1: [20][40], or as pixels [2][5][7][32].
__global__ void copies(const __grid_constant__ CUtensorMap tiled, const __grid_constant__ CUtensorMap im2col,
                       const float* x, float* out) {
  __shared__ __align__(1024) float tile[16 * 32];
  __shared__ uint64_t barrier, copied;
  const int t = threadIdx.x;
  if (t == 0) init(&barrier, 1), init(&copied, blockDim.x), fence_init();
  __syncthreads();

  fetch(&barrier, 0, [&] { copy(tile, x + 8, BYTES, &barrier); });
  for (int i = t; i < 512; i += blockDim.x) CHECK(tile[i] == i + 9);
  __syncthreads();

  fetch(&barrier, 1, [&] { copy(tile, &tiled, &barrier, 24, -3); });  // columns from 24, rows from -3
  for (int i = t; i < 512; i += blockDim.x) {
    const int row = i / 32 - 3, column = i % 32 + 24;
    CHECK(tile[swizzled(i / 32, i % 32)] == (row >= 0 && column < 40 ? row * 40 + column + 1 : 0));
  }
  __syncthreads();

  // Taps (1, 2) of 3 x 3, stride 2 and padding 1: from the pixel above and left of an image's first.
  fetch(&barrier, 0, [&] { copy(tile, &im2col, &barrier, 0, -1, -1, 0, 2, 1); });
  for (int i = t; i < 512; i += blockDim.x) {
    const int pixel = i / 32, q = pixel % 4, p = pixel / 4 % 3, n = pixel / 12;
    const int w = q * 2 - 1 + 2, h = p * 2 - 1 + 1;
    const bool inside = w >= 0 && w < 7 && h >= 0 && h < 5;
    CHECK(tile[swizzled(pixel, i % 32)] == (inside ? ((n * 5 + h) * 7 + w) * 32 + i % 32 + 1 : 0));
  }
  __syncthreads();

  for (int i = t; i < 512; i += blockDim.x) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(tile + i)), "l"(x + i));
  }
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(&copied)));
  wait(&copied, 0);
  for (int i = t; i < 512; i += blockDim.x) CHECK(tile[511 - i] == 512 - i);
  __syncthreads();

  for (int i = t; i < 512; i += blockDim.x) tile[i] = i * 2;
  fence_proxy();
  __syncthreads();
  if (t / 32 == 1) {
    unsigned leader, is_leader;
    asm volatile("{.reg .pred p; elect.sync %0|p, -1; selp.u32 %1, 1, 0, p;}" : "=r"(leader), "=r"(is_leader));
    CHECK(leader == 0 && is_leader == (t % 32 == 0));
    if (is_leader) {
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 2048;" ::"l"(out),
                   "r"(shared_address(tile)));
      asm volatile("cp.async.bulk.commit_group;");
      asm volatile("cp.async.bulk.wait_group 0;");
      for (int i = 0; i < 512; ++i) CHECK(out[i] == i * 2);
    }
  }
}

// Filters in shared memory, pixels in registers; two products under way at a time.
__global__ void chains(float* out) {
  __shared__ __align__(1024) float b[2][16 * 32];
  float d[8] = {}, e[8], a[4];
  const int lane = threadIdx.x % 32;
  for (int i = threadIdx.x; i < 1024; i += 128) {
    b[i / 512][swizzled(i / 32 % 16, i % 32)] = i % 32 + i / 512 * 100 + i / 32 % 16;
  }
  fence_proxy();
  __syncthreads();
  for (int i = 0; i < 4; ++i) a[i] = lane % 4 + i / 2 * 4 == 5;  // picks k = 5 of 8
  fence();
  for (int k = 0; k < 4; ++k) multiply(d, a, rows(b[0]) + 2 * k, 1);
  commit();
  for (int k = 0; k < 4; ++k) multiply(e, a, rows(b[1]) + 2 * k, k > 0);
  commit();
  wait_group<1>();
  const int first = 5 + 13 + 21 + 29;
  for (int j = 0; j < 8; ++j) CHECK(d[j] == first + 4 * (j / 4 * 8 + lane % 4 * 2 + j % 2));
  wait_group<0>();
  for (int j = 0; j < 8; ++j) CHECK(e[j] == d[j] + 400);
  out[threadIdx.x] = e[0];
}

int main() {
  float *x, *out, host[2 * 5 * 7 * 32];
  for (int i = 0; i < 2240; ++i) host[i] = i + 1;
  cudaMalloc(&x, sizeof(host)), cudaMalloc(&out, sizeof(host));
  cudaMemcpy(x, host, sizeof(host), cudaMemcpyHostToDevice);
  CUtensorMap im2col;
  void* encode = nullptr;
  cudaDriverEntryPointQueryResult found;
  cudaGetDriverEntryPoint("cuTensorMapEncodeIm2col", &encode, cudaEnableDefault, &found);
  const cuuint64_t sizes[] = {32, 7, 5, 2}, strides[] = {128, 896, 4480};
  const int lower[] = {-1, -1}, upper[] = {-1, -1};
  const cuuint32_t steps[] = {1, 2, 2, 1};
  const auto encode_im2col = reinterpret_cast<decltype(&cuTensorMapEncodeIm2col)>(encode);
  const auto made = [&](cuuint32_t pixels) {
    return encode_im2col(&im2col, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, x, sizes, strides, lower, upper, 32,
                         pixels, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                         CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  if (made(1025) != CUDA_ERROR_INVALID_VALUE || made(16) != CUDA_SUCCESS) return 1;
  copies<<<1, 64>>>(map_of(x, 40, 20, 16), im2col, x, out);
  chains<<<1, 128>>>(out);
  cudaFree(x), cudaFree(out);
  return finish();
}
