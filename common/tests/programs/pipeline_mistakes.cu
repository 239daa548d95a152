// A pipeline of a Hopper, with one mistake for each name that the program is called with, and what must then be found:
//
// right: ^$
// no_wait: the product begun at .*{product}.* reads shared memory \(a.*\), into which the copy begun at .*{copy}.* writes
// consumer_parity: the product begun at .*{product}.* reads shared memory \(.*\), into which the copy begun at|thread \(\d+,0,0\) waits at .*{full}.*
// producer_parity: (waits for ever|thread \(0,0,0\)) at .*{empty}.* for the end of phase 0 \(parity 0\) of the barrier empty, which lacks 1 of 1 arrival
// no_empty: the copy begun at .*{copy}.* writes to shared memory \(.*\), which the product begun at .*{product}.* reads|makes 1 arrival at the barrier full, which waits for 0 more in this phase, and for 20480 bytes, at .*{expect}|into which the copy begun at .*{copy}.* writes: its barrier has not been waited for
// early: the copy begun at .*{copy}.* writes to shared memory \(.*\), which the product begun at .*{product}.* reads
// short_bytes: waits for ever at .*{full}.* of the barrier full.*; \d+ bytes more have come than were expected
// long_bytes: waits for ever at .*{full}.* of the barrier full.*, which lacks 0 of 1 arrival and 64 bytes
// swizzle: reads shared memory \(.*\) with a swizzle of 64 bytes, into which the copy begun at .*{copy}.* writes with one of 128
// arrivals: waits for ever at .*{empty}.* of the barrier empty, which lacks 1 of 2 arrivals
// twice: makes 1 arrival at the barrier (full|empty), which waits for 0 more in this phase|waits for ever|writes to shared memory
// unshown: a copy ends at a barrier that was not shown to the copy engine: .*{copy}
// no_sync: uses the barrier full at .*{full}.*, and nothing orders that and mbarrier.init by thread \(0,0,0\) at .*{init}|no barrier has been made \(mbarrier.init\) full
// proxy: reads shared memory \(scale.*\) that thread \(\d+,0,0\) wrote at .*{scale}.*, without fence.proxy.async
// fence: wgmma.fence is missing before a product of registers that the thread may have used: begun at
// sum: (reads|writes) a sum of the product begun at .*{product}.* before wgmma.wait_group, at .*{read}
// fragment: changes registers that a product still reads
// leaves: leaves the kernel without wgmma.wait_group for the product begun at
// registers: setmaxnreg with a number that is no multiple of 8 from 24 to 256
// greedy: waits for ever at .*{takes}.* for registers: its 384 threads begin with 168 each at most, and \d+ are free
// apart: give wgmma different descriptors
#include <cstdio>
#include <cstring>

#include "hopper.h"

enum Mistake {
  right,
  no_wait,
  consumer_parity,
  producer_parity,
  no_empty,
  early,
  short_bytes,
  long_bytes,
  swizzle,
  arrivals,
  twice,
  unshown,
  no_sync,
  proxy,
  fence_,
  sum,
  fragment,
  leaves,
  registers,
  greedy,
  apart
};
constexpr const char* NAMES[] = {"right",    "no_wait",  "consumer_parity", "producer_parity",
                                 "no_empty", "early",    "short_bytes",     "long_bytes",
                                 "swizzle",  "arrivals", "twice",           "unshown",
                                 "no_sync",  "proxy",    "fence",           "sum",
                                 "fragment", "leaves",   "registers",       "greedy",
                                 "apart"};

constexpr int TILES = 6, SLOTS = 2, BYTES = (64 + 16) * 32 * 4;

// out [64][16] = x [64][TILES * 32] * w [16][TILES * 32], and a product with `scale`.
__global__ void pipeline(const __grid_constant__ CUtensorMap x,
                         const __grid_constant__ CUtensorMap w, Mistake mistake, float* out) {
  __shared__ __align__(1024) float a[SLOTS][64 * 32], b[SLOTS][16 * 32], scale[16 * 32];
  __shared__ uint64_t full[SLOTS], empty[SLOTS];
  const int thread = threadIdx.x % 128;
  if (threadIdx.x == 0) {
    for (int i = 0; i < SLOTS; ++i)
      init(full + i, 1), init(empty + i, mistake == arrivals ? 2 : 1);  // init
    if (mistake != unshown) fence_init();
  }
  for (int i = threadIdx.x; i < 16 * 32; i += blockDim.x) scale[i] = 1;  // scale
  if (mistake != proxy && (mistake != unshown || threadIdx.x > 0)) fence_proxy();
  if (mistake != no_sync) __syncthreads();
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
#ifdef CONVLADDER_TRANSLATED  // nvcc refuses it
    if (mistake == registers) asm volatile("setmaxnreg.dec.sync.aligned.u32 20;");
#endif
    for (int t = 0; t < TILES && threadIdx.x == 0; ++t) {
      const int i = t % SLOTS, parity = t / SLOTS % 2;
      if (mistake != no_empty)
        wait(empty + i, mistake == producer_parity ? parity : parity ^ 1);  // empty
      const int more = mistake == short_bytes ? -64 : mistake == long_bytes ? 64 : 0;
      expect(full + i, BYTES + more);       // expect
      copy(a[i], &x, full + i, t * 32, 0);  // copy
      copy(b[i], &w, full + i, t * 32, 0);
    }
    return;
  }
  float d[8], ones[4] = {1, 1, 1, 1}, e[8];
  for (int t = 0; t < TILES; ++t) {
    const int i = t % SLOTS, parity = t / SLOTS % 2;
    if (mistake != no_wait)
      wait(full + i, mistake == consumer_parity ? parity ^ 1 : parity);  // full
    const int span = mistake == swizzle ? 64 : 128;
    const uint64_t other = mistake == apart && thread / 32 == 2 ? 2 : 0;
    if (mistake != fence_) fence();
    const uint64_t of_a = rows(a[i], span) + other, of_b = rows(b[i], span);
    for (int k = 0; k < 4; ++k) multiply(d, of_a + 2 * k, of_b + 2 * k, t + k > 0);  // product
    commit();
    if (mistake == early && thread == 0) arrive(empty + i);
    if (mistake == sum && t == 2) out[0] = d[3];  // read
    wait_group<0>();
    if (mistake != early && thread == 0) arrive(empty + i);
    if (mistake == twice && thread == 0 && t == 2) arrive(empty + i);
  }
  fence();
  multiply(e, ones, rows(scale), 0);
  commit();
  if (mistake == fragment) ones[1] = 2;
  if (mistake == leaves) return;
  wait_group<0>();
  for (int j = 0; j < 8; ++j) {
    const int row = thread / 32 * 16 + thread % 32 / 4 + j / 2 % 2 * 8,
              column = j / 4 * 8 + thread % 4 * 2 + j % 2;
    out[row * 16 + column] = d[j] + e[j] * ones[1];
  }
}

// Three warpgroups have 504 registers between them.
__global__ void divide(Mistake mistake) {
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
  } else if (mistake == greedy) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");  // takes
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  }
}

int main(int, char** arguments) {
  float *x, *w, *out;
  static float host[64 * TILES * 32], sums[64 * 16];
  for (int i = 0; i < 64 * TILES * 32; ++i) host[i] = i * 7 % 13 - 6;
  cudaMalloc(&x, sizeof(host)), cudaMalloc(&w, sizeof(host) / 4), cudaMalloc(&out, sizeof(sums));
  cudaMemcpy(x, host, sizeof(host), cudaMemcpyHostToDevice);
  cudaMemcpy(w, host, sizeof(host) / 4, cudaMemcpyHostToDevice);
  cudaMemset(out, 0, sizeof(sums));
  const CUtensorMap of_x = map_of(x, TILES * 32, 64, 64), of_w = map_of(w, TILES * 32, 16, 16);
  for (int i = 0; i < static_cast<int>(sizeof(NAMES) / sizeof(*NAMES)); ++i) {
    if (std::strcmp(NAMES[i], arguments[1]) == 0)
      pipeline<<<1, 256>>>(of_x, of_w, static_cast<Mistake>(i), out),
          divide<<<1, 384>>>(static_cast<Mistake>(i));
  }
  const cudaError_t error = cudaDeviceSynchronize();
  cudaMemcpy(sums, out, sizeof(sums), cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int i = 0; i < 64 * 16; ++i) {
    float sum = 8;
    for (int k = 0; k < TILES * 32; ++k)
      sum += host[i / 16 * TILES * 32 + k] * host[i % 16 * TILES * 32 + k];
    wrong += sums[i] != sum;
  }
  std::printf("%s, %d sums are wrong\n", cudaGetErrorString(error), wrong);
  return std::strcmp(arguments[1], "right") == 0 && wrong;
}
