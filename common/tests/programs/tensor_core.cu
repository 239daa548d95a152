// What mma.sync makes of 10,752 sums of random half-precision numbers: the same bits as an H200, by a hash of what
// it was read to give.
#include "check.h"

__device__ unsigned mixed(unsigned x) {
  x = (x ^ x >> 16) * 0x7feb352d;
  x = (x ^ x >> 15) * 0x846ca68b;
  return x ^ x >> 16;
}
// Exponents as far as `wide` from that of 1.
__device__ unsigned half_bits(unsigned seed, int wide) {
  const unsigned r = mixed(seed);
  return (r & 0x83ff) | (15 - wide + (r >> 11) % (2 * wide + 1)) << 10;
}
__device__ unsigned bfloat_bits(unsigned seed, int wide) {
  const unsigned r = mixed(seed);
  return (r & 0x807f) | (127 - wide + (r >> 8) % (2 * wide + 1)) << 7;
}
__device__ float addend(unsigned seed, int wide) {
  const unsigned r = mixed(seed);
  return __uint_as_float((r & 0x807fffff) | (127 - wide + mixed(r) % (2 * wide + 1)) << 23);
}

enum Kind { kHalf, kBfloat16, kHalfSums, kHalfOf8 };

__global__ void multiply(int kind, int number, int wide, unsigned* out) {
  const unsigned base = (number * 32 + threadIdx.x) * 64 + 1;
  const auto pair = [&](unsigned at) {
    return kind == kBfloat16 ? bfloat_bits(base + at, wide) | bfloat_bits(base + at + 1, wide) << 16
                             : half_bits(base + at, wide) | half_bits(base + at + 1, wide) << 16;
  };
  unsigned a[4], b[2], sums[2] = {};
  float c[4], d[4] = {};
  for (int i = 0; i < 4; ++i) a[i] = pair(2 * i), c[i] = addend(base + 20 + i, wide + 2);
  for (int i = 0; i < 2; ++i) b[i] = pair(10 + 2 * i);
#define PRODUCT(type)                                                                           \
  asm("mma.sync.aligned.m16n8k16.row.col.f32." type "." type                                    \
      ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"                          \
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])                                          \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), \
        "f"(c[2]), "f"(c[3]))
  if (kind == kHalf) PRODUCT("f16");
  if (kind == kBfloat16) PRODUCT("bf16");
  if (kind == kHalfOf8) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
        "{%7,%8,%9,%10};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(b[0]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
  }
  if (kind == kHalfSums) {
    asm("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, "
        "{%8,%9};"
        : "=r"(sums[0]), "=r"(sums[1])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(pair(30)),
          "r"(pair(32)));
  }
  for (int i = 0; i < 4; ++i) {
    out[threadIdx.x * 4 + i] = kind != kHalfSums ? __float_as_uint(d[i]) : i < 2 ? sums[i] : 0;
  }
}

int main() {
  const unsigned long long read[] = {0xb0193dea400f44edull, 0x898304e981f168eull,
                                     0x7450661b17d649aeull, 0x30b563c99cff6c9eull};
  unsigned *out, host[128];
  cudaMalloc(&out, sizeof(host));
  for (int kind = 0; kind < 4; ++kind) {
    unsigned long long hash = 0xcbf29ce484222325;
    for (int number = 0; number < 24; ++number) {
      const int wide = number % 3 == 0 ? 0 : number % 3 == 1 ? 3 : kind == kBfloat16 ? 20 : 7;
      multiply<<<1, 32>>>(kind, number, wide, out);
      cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost);
      for (const unsigned word : host) hash = (hash ^ word) * 0x100000001b3;
    }
    if (hash != read[kind]) return printf("kind %d: other bits\n", kind), 1;
  }
  cudaFree(out);
  return finish();
}
