// Matrices that the lanes of a warp load, multiply by the tensor core, and store.
#include <mma.h>

#include "check.h"

using namespace nvcuda;

// Integers of which every product and sum is exact, whatever the order.
__device__ float value(int row, int column, int salt) {
  return (row * 7 + column * 3 + salt) % 11 - 5;
}

template <typename T, typename Memory, int M, int N, int K>
__device__ void multiply(Memory* a, Memory* b, float* c) {
  const int lane = threadIdx.x;
  for (int i = lane; i < M * K; i += 32) a[i] = Memory(value(i / K, i % K, 1));  // by rows
  for (int i = lane; i < K * N; i += 32) b[i] = Memory(value(i % K, i / K, 2));  // by columns
  for (int i = lane; i < M * N; i += 32) c[i] = value(i / N, i % N, 3);
  __syncwarp();
  wmma::fragment<wmma::matrix_a, M, N, K, T, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, M, N, K, T, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, M, N, K, float> sum;
  wmma::load_matrix_sync(left, a, K);
  wmma::load_matrix_sync(right, b, K);
  wmma::load_matrix_sync(sum, c, N, wmma::mem_row_major);
  wmma::mma_sync(sum, left, right, sum);
  wmma::mma_sync(sum, left, right, sum);
  for (int i = 0; i < sum.num_elements; ++i) sum.x[i] *= 0.5f;
  wmma::store_matrix_sync(c, sum, N, wmma::mem_row_major);
  __syncwarp();
  for (int i = lane; i < M * N; i += 32) {
    float expected = value(i / N, i % N, 3) / 2;
    for (int k = 0; k < K; ++k) expected += value(i / N, k, 1) * value(k, i % N, 2);
    CHECK(c[i] == expected);
  }
  __syncwarp();
}

__global__ void bytes() {
  __shared__ __align__(32) signed char a[256], b[256];
  __shared__ __align__(32) int c[256];
  for (int i = threadIdx.x; i < 256; i += 32) a[i] = i - 128, b[i] = 127 - i, c[i] = INT_MAX - i;
  __syncwarp();
  wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, int> sum;
  wmma::load_matrix_sync(left, a, 16);
  wmma::load_matrix_sync(right, b, 16);
  wmma::load_matrix_sync(sum, c, 16, wmma::mem_row_major);
  wmma::mma_sync(sum, left, right, sum);
  wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
  __syncwarp();
  for (int i = threadIdx.x; i < 256; i += 32) {
    unsigned expected = INT_MAX - i;
    for (int k = 0; k < 16; ++k) expected += a[i / 16 * 16 + k] * b[i % 16 * 16 + k];
    CHECK(c[i] == static_cast<int>(expected));
  }
}

__global__ void matrices() {
  __shared__ __align__(32) float a[512], b[512], c[256];
  multiply<wmma::precision::tf32, float, 16, 16, 8>(a, b, c);
  multiply<__half, __half, 16, 16, 16>(reinterpret_cast<__half*>(a), reinterpret_cast<__half*>(b),
                                       c);
  multiply<__half, __half, 32, 8, 16>(reinterpret_cast<__half*>(a), reinterpret_cast<__half*>(b),
                                      c);
  multiply<__nv_bfloat16, __nv_bfloat16, 8, 32, 16>(reinterpret_cast<__nv_bfloat16*>(a),
                                                    reinterpret_cast<__nv_bfloat16*>(b), c);
}

// Of 16 half-precision products and an addend, aligned to the largest of them, a Hopper keeps 25 bits
// behind its leading one: 2, 4 or 8 products that come to a float's last bit together.
__global__ void truncation() {
  __shared__ __align__(32) __half a[256], b[256];
  for (int bits = 24; bits < 27; ++bits) {
    const int small = 1 << (bits - 23);
    for (int i = threadIdx.x; i < 256; i += 32) {
      a[i] = __float2half(i % 16 == 0 ? 1.0f : 0x1p-12f);
      b[i] = __float2half(i % 16 == 0 ? 1.0f : i % 16 <= small ? ldexpf(1.0f, 12 - bits) : 0.0f);
    }
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::load_matrix_sync(left, a, 16);
    wmma::load_matrix_sync(right, b, 16);
    wmma::fill_fragment(sum, 0.0f);
    wmma::mma_sync(sum, left, right, sum);
    for (int i = 0; i < sum.num_elements; ++i) CHECK(sum.x[i] == (bits <= 25 ? 1 + 0x1p-23f : 1));
    __syncwarp();
  }
}

int main() {
  matrices<<<1, 32>>>();
  truncation<<<1, 32>>>();
  bytes<<<1, 32>>>();
  return finish();
}
