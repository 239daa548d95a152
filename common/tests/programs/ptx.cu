// Inline PTX: instructions do what the PTX ISA says, whatever C++ they stand between.
#include <cuda_fp16.h>

#include "check.h"

__device__ unsigned shared_address(const void* pointer) {
  unsigned address;
  asm("{ .reg .u64 wide; cvta.to.shared.u64 wide, %1; cvt.u32.u64 %0, wide; }"
      : "=r"(address)
      : "l"(pointer));
  CHECK(address == static_cast<unsigned>(__cvta_generic_to_shared(pointer)));
  return address;
}

__global__ void values(int one) {
  unsigned u, v, w;
  int s;
  float f, g;
  double d;
  unsigned long long l;
  asm volatile("mov.u32 %0, %%laneid;\n\tmov.u32 %1, %%tid.x;" : "=r"(u), "=r"(v));
  CHECK(u == threadIdx.x % 32 && v == threadIdx.x);
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(w));
  CHECK(w == (1u << u) - 1);
  asm("bfe.u32 %0, %2, 4, 8; bfe.s32 %1, %3, 4, 8;"
      : "=r"(u), "=r"(s)
      : "r"(0xabcd * one), "r"(0xf80));
  CHECK(u == 0xbc && s == -8);
  asm("bfi.b32 %0, %1, %2, 8, 4;" : "=r"(u) : "r"(0xf5 * one), "r"(0x11111111));
  CHECK(u == 0x11111511);
  asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(u) : "r"(12 * one), "r"(10), "r"(7));
  CHECK(u == (12u ^ 10 ^ 7));
  asm("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(u) : "r"(0x80000000u), "r"(one), "r"(1));
  CHECK(u == 3);
  asm("shl.b32 %0, %2, 40; shr.s32 %1, %3, 40;" : "=r"(u), "=r"(s) : "r"(one), "r"(-one));
  CHECK(u == 0 && s == -1);
  asm("mul.hi.u32 %0, %2, %3; mad.lo.s32 %1, %4, 3, -4;"
      : "=r"(u), "=r"(s)
      : "r"(0x80000000u), "r"(6 * one), "r"(7));
  CHECK(u == 3 && s == 17);
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(l) : "r"(~0u), "r"(2 * one));
  CHECK(l == 0x1fffffffeull);
  asm("fma.rn.f32 %0, %2, %2, %3; ex2.approx.ftz.f32 %1, %2;"
      : "=f"(f), "=f"(g)
      : "f"(3.0f), "f"(0.5f * one));
  CHECK(f == 9.5f && g == 8);
  asm("add.f64 %0, %1, 0.5;" : "=d"(d) : "d"(1.0 * one));
  CHECK(d == 1.5);
  asm("cvt.rzi.s32.f32 %0, %2; cvt.rn.f32.u32 %1, %3;"
      : "=r"(s), "=f"(f)
      : "f"(-2.7f), "r"(16777217u));
  CHECK(s == -2 && f == 16777216);
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(u) : "f"(1 + 0x1p-11f));
  CHECK(u == __float_as_uint(1 + 0x1p-10f));
  asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(u) : "f"(1 + 0x1p-11f));
  CHECK(u == __float_as_uint(1));
  asm("cvt.rz.tf32.f32 %0, %1;" : "=r"(u) : "f"(-1 - 0x1.8p-10f));
  CHECK(u == __float_as_uint(-1 - 0x1p-10f));
  asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(u) : "f"(__uint_as_float(0x7f800001)));
  CHECK(u == 0x7fffe000);  // an H200's NaN
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(u) : "f"(2.0f), "f"(-1.0f * one));
  CHECK(u == 0x4000bc00u);
  // Predicates, and registers of its own.
  asm("{\n .reg .pred p<2>;\n setp.lt.s32 p0, %1, 5;  // a comment\n mov.u32 %0, 1;\n @p0 mov.u32 "
      "%0, 2;\n"
      " setp.ge.f32 p1, 0f3F800000, 2.0;\n @!p1 add.u32 %0, %0, 10;\n}"
      : "=r"(u)
      : "r"(one * 4));
  CHECK(u == 12);
  asm("{ .reg .pred %%p; setp.ne.u32 %%p, %1, 0; selp.b32 %0, %2, %3, %%p; }"
      : "=r"(u)
      : "r"(one), "r"(7), "r"(8));
  CHECK(u == 7);
}

__global__ void lanes() {
  const int lane = threadIdx.x % 32;
  int got, within;
  asm volatile("{ .reg .pred p; shfl.sync.down.b32 %0|p, %2, 3, 31, -1; selp.s32 %1, 1, 0, p; }"
               : "=r"(got), "=r"(within)
               : "r"(lane));
  CHECK(got == (lane < 29 ? lane + 3 : lane) && within == (lane < 29));
  asm volatile("shfl.sync.bfly.b32 %0, %1, 5, 0x1f, 0xffffffff;" : "=r"(got) : "r"(lane));
  CHECK(got == (lane ^ 5));
  asm volatile("shfl.sync.idx.b32 %0, %1, 2, 0x181f, 0xffffffff;" : "=r"(got) : "r"(lane));  // of 8
  CHECK(got == lane / 8 * 8 + 2);
  asm volatile("{ .reg .pred p; setp.gt.s32 p, %1, 20; vote.sync.ballot.b32 %0, p, 0xffffffff; }"
               : "=r"(got)
               : "r"(lane));
  CHECK(unsigned(got) == 0xffe00000u);
  asm volatile("redux.sync.add.s32 %0, %1, 0xffffffff;" : "=r"(got) : "r"(lane - 16));
  CHECK(got == -16);
}

__global__ void memory(const float4* from, float4* to, int* count) {
  __shared__ __align__(16) float4 held[64];
  const int t = threadIdx.x;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(&held[t])),
               "l"(from + t));
  asm volatile(
      "cp.async.ca.shared.global.L2::128B [%0], [%1], %2, %3;" ::"r"(shared_address(&held[t + 32])),
      "l"(from + t), "n"(16), "r"(t % 2 == 0 ? 16 : 4));
  asm volatile("cp.async.commit_group;\n");
  asm volatile("cp.async.wait_group %0;" ::"n"(0));
  __syncthreads();
  float4 value;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4+16];"
               : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
               : "r"(shared_address(&held[(t + 31) % 32]) - 0u));
  CHECK(value.x == (t + 32) % 32 * 4 || t == 0);
  CHECK(held[t + 32].x == t * 4 && held[t + 32].w == (t % 2 == 0 ? t * 4 + 3 : 0));
  asm volatile("ld.global.nc.L1::no_allocate.v2.f32 {%0, %1}, [%2];"
               : "=f"(value.x), "=f"(value.y)
               : "l"(from + t));
  asm volatile("st.global.cs.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to + t), "f"(value.y),
               "f"(value.x), "f"(1.0f), "f"(2.0f)
               : "memory");
  CHECK(to[t].x == t * 4 + 1 && to[t].y == t * 4 && to[t].w == 2);
  int old;
  asm volatile("atom.global.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(count), "r"(2));
  CHECK(old % 2 == 0 && old < 64);
  asm volatile("red.relaxed.gpu.global.max.s32 [%0], 1000;" ::"l"(count + 1));
  asm volatile("membar.gl;");
}

// Each lane names a row; it gets two neighbours of each matrix, or, transposed, two below each other.
__global__ void matrices() {
  __shared__ __align__(16) unsigned short rows[32][8], back[32][8];
  const int t = threadIdx.x;
  for (int i = 0; i < 8; ++i) rows[t][i] = t * 8 + i;
  __syncwarp();
  unsigned a[4];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
               : "r"(shared_address(rows[t])));
  for (unsigned i = 0; i < 4; ++i)
    CHECK((a[i] & 0xffff) == i * 64 + 2 * t && a[i] >> 16 == i * 64 + 2 * t + 1);
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                   shared_address(back[t])),
               "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]));
  __syncwarp();
  for (int i = 0; i < 8; ++i) CHECK(back[t][i] == t * 8 + i);
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(a[0]), "=r"(a[1])
               : "r"(shared_address(rows[t % 16])));
  const unsigned first = t % 4 * 16 + t / 4;
  for (unsigned i = 0; i < 2; ++i)
    CHECK((a[i] & 0xffff) == i * 64 + first && a[i] >> 16 == i * 64 + first + 8);
}

__device__ int value(int row, int column) { return (row * 5 + column * 3) % 7 - 3; }

// d = a * b + c, element by element as the PTX ISA lays them out; integers of which all sums are exact.
__global__ void products() {
  const int g = threadIdx.x / 4, t = threadIdx.x % 4;
  __half a[8], b[4];
  signed char left[16], right[8];
  for (int i = 0; i < 8; ++i)
    a[i] = __int2half_rn(value(g + i / 2 % 2 * 8, t * 2 + i % 2 + i / 4 * 8));
  for (int i = 0; i < 4; ++i) b[i] = __int2half_rn(value(t * 2 + i % 2 + i / 2 * 8, g + 1));
  for (int i = 0; i < 16; ++i) left[i] = value(g + i / 4 % 2 * 8, t * 4 + i % 4 + i / 8 * 16);
  for (int i = 0; i < 8; ++i) right[i] = value(t * 4 + i % 4 + i / 4 * 16, g + 1);
  const unsigned *x = reinterpret_cast<unsigned*>(a), *w = reinterpret_cast<unsigned*>(b);
  float d[4];
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
      "%9}, "
      "{%10, %11, %12, %13};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(w[0]), "r"(w[1]), "f"(1.0f), "f"(2.0f),
        "f"(3.0f), "f"(4.0f));
  unsigned h[2];
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3}, {%4}, {%5, %6};"
      : "=r"(h[0]), "=r"(h[1])
      : "r"(x[0]), "r"(x[1]), "r"(w[0]), "r"(0), "r"(0));
  const int *y = reinterpret_cast<int*>(left), *v = reinterpret_cast<int*>(right);
  int s[4];
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
      "%9}, "
      "{%10, %10, %10, %10};"
      : "=r"(s[0]), "=r"(s[1]), "=r"(s[2]), "=r"(s[3])
      : "r"(y[0]), "r"(y[1]), "r"(y[2]), "r"(y[3]), "r"(v[0]), "r"(v[1]), "r"(-100));
  for (int i = 0; i < 4; ++i) {
    int sums[33] = {};
    for (int k = 0; k < 32; ++k) {
      sums[k + 1] = sums[k] + value(g + i / 2 * 8, k) * value(k, t * 2 + i % 2 + 1);
    }
    CHECK(d[i] == sums[16] + i + 1 && s[i] == sums[32] - 100);
    CHECK(__half2float(reinterpret_cast<__half*>(h)[i]) == sums[8]);
  }
}

// Barriers with a number: one warp writes, and goes on; the other waits and reads.
__global__ void barriers() {
  __shared__ int held[32];
  const int t = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    held[t] = t * t;
    asm volatile("bar.arrive 3, 64;" ::: "memory");
  } else {
    asm volatile("bar.sync %0, %1;" ::"n"(3), "n"(64) : "memory");
    CHECK(held[31 - t] == (31 - t) * (31 - t));
  }
  asm volatile("bar.sync 0;");
}

int main() {
  values<<<1, 64>>>(1);
  lanes<<<1, 64>>>();
  float host[128];
  for (int i = 0; i < 128; ++i) host[i] = i;
  float4* device;
  int* count;
  cudaMalloc(&device, 2 * sizeof(host));
  cudaMalloc(&count, 2 * sizeof(int));
  cudaMemset(count, 0, 2 * sizeof(int));
  cudaMemcpy(device, host, sizeof(host), cudaMemcpyHostToDevice);
  memory<<<1, 32>>>(device, device + 32, count);
  matrices<<<1, 32>>>();
  products<<<1, 32>>>();
  barriers<<<2, 64>>>();
  return finish();
}
