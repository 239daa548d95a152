// Hopper's own instructions (compute capability 9.0, code for sm_90a): copies that nobody waits for but a
// barrier, and products of a whole warpgroup, four warps in a row of which the first is a multiple of 4.
// PTX's documentation has them as mbarrier, cp.async.bulk, wgmma and setmaxnreg.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "common/core/launch.h"

namespace convladder {

__device__ inline unsigned shared_address(const void* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}

// ---- Barriers in shared memory ----

// A barrier counts arrivals, and bytes that are still to come. When `arrivals` have arrived and no byte is
// missing its phase ends, and the next begins. Phases are known by their parity: the first is 0, then 1, 0...
using Barrier = uint64_t;

// By one thread; then all need start_barriers() by that thread, and __syncthreads().
__device__ inline void init_barrier(Barrier* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(arrivals)
               : "memory");
}
// What this thread has initialised is seen by other threads, and by the copy engine.
__device__ inline void start_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ inline void arrive(Barrier* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}
// Arrives, and has the phase wait for so many bytes of bulk copies.
__device__ inline void arrive_and_expect(Barrier* barrier, int bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
}
// Arrives when all that this thread copies by copy_async() so far is there.
__device__ inline void arrive_when_copied(Barrier* barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(barrier))
               : "memory");
}
// Until the phase of that parity has ended. (The phase before the first counts as ended, with parity 1.)
__device__ inline void wait(Barrier* barrier, int parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}

// ---- Bulk copies ----

// One thread has so many bytes copied to shared memory, a multiple of 16 as both addresses are.
__device__ inline void copy_bulk(void* to_shared, const void* from, int bytes, Barrier* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(to_shared)),
      "l"(from), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}

// One thread has the map's box copied to shared memory: of each of its pixels, the windows of the batch from
// (w, h, image n) on, the tap that lies (s, r) beyond the window's corner, from channel c on.
__device__ inline void copy_windows(void* to_shared, const CUtensorMap* map, int c, int w, int h,
                                    int n, int s, int r, Barrier* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(shared_address(to_shared)),
      "l"(map), "r"(shared_address(barrier)), "r"(c), "r"(w), "r"(h), "r"(n),
      "h"(static_cast<uint16_t>(s)), "h"(static_cast<uint16_t>(r))
      : "memory");
}

// The copy engine and the tensor cores reach shared memory on a way of their own (the "async proxy"), and barriers
// don't keep it in order with the threads' own. Behind this fence and a barrier they see what this thread has
// stored, and write over nothing that it still reads.
__device__ inline void fence_async_proxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// ---- A kernel that begins early ----

// Until the kernel before it has ended, where this one was launched early.
__device__ inline void wait_for_kernel_before() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

// Launches a kernel that may begin before the one before it on the stream has ended, once all blocks of that have
// called cudaTriggerProgrammaticLaunchCompletion() or ended (compute capability 9.0). What that one writes it reads
// behind wait_for_kernel_before() only.
template <class... Parameters, class... Arguments>
void launch_early(void (*kernel)(Parameters...), dim3 grid, dim3 threads, std::size_t shared_bytes,
                  cudaStream_t stream, const Arguments&... arguments) {
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid, config.blockDim = threads, config.dynamicSmemBytes = shared_bytes;
  config.stream = stream, config.attrs = &early, config.numAttrs = 1;
  cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);  // it fails as other launches do
}

// ---- Products of a warpgroup ----

// How a warpgroup finds rows of 32 TF32 numbers (128 bytes) in shared memory, from an address that is a
// multiple of 1024: eight rows by eight, and within each row 16 bytes i at place i ^ (row % 8), so that eight
// rows' i lie in banks of their own. 8 numbers on is 2 more.
__device__ inline uint64_t descriptor(const float* rows) {
  constexpr uint64_t SWIZZLE_128 = uint64_t{1} << 62, EIGHT_ROWS = uint64_t{1024 / 16} << 32;
  return SWIZZLE_128 | EIGHT_ROWS | uint64_t{1} << 16 | (shared_address(rows) & 0x3ffff) >> 4;
}
// Where that puts number k of a row.
__host__ __device__ inline int swizzled(int row, int k) {
  return row * 32 + ((k / 4) ^ (row % 8)) * 4 + k % 4;
}

// Registers that products read or write next are as this thread sees them.
__device__ inline void products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void products_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// To the compiler these registers change here, so that it uses them no earlier.
template <int COUNT>
__device__ inline void fence_registers(float (&registers)[COUNT]) {
  UNROLL for (float& one : registers) asm volatile("" : "+f"(one)::"memory");
}
// Until all products that were committed are made, but for the last so many commits': before that nobody may
// touch their registers. `sums` are those that are used next.
template <int MORE = 0, class... Sums>
__device__ inline void products_wait(Sums&... sums) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(MORE) : "memory");
  (fence_registers(sums), ...);
}

// sum += a * b, or = where `add` is 0, with a [64 x 8], b [N x 8] in shared memory and the sum [64 x N] in
// registers. a is in shared memory, too, or in registers. Warp w of the four has rows 16 w to 16 w + 15, and
// of them lane 4 * row + col
//   a[0]: (row, col)   a[1]: (row + 8, col)   a[2]: (row, col + 4)   a[3]: (row + 8, col + 4)
//   sum[4 j], sum[4 j + 1]: (row, 8 j + 2 col), (row, 8 j + 2 col + 1), and sum[4 j + 2], [4 j + 3] 8 rows below
// Begins the product; all threads of the warpgroup must come to the same call. T is float: a parameter, so that
// nobody who does not multiply has all of these compiled.
#define CONVLADDER_D0 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define CONVLADDER_D16 \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define CONVLADDER_D32 \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define CONVLADDER_D48 \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define CONVLADDER_D64 \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define CONVLADDER_D80 \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define CONVLADDER_D96 \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"
#define CONVLADDER_D112 \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define CONVLADDER_R8(i)                                                                \
  "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3]), "+f"(sum[i + 4]), \
      "+f"(sum[i + 5]), "+f"(sum[i + 6]), "+f"(sum[i + 7])
#define CONVLADDER_R16(i) CONVLADDER_R8(i), CONVLADDER_R8(i + 8)
// N, the texts of the sum's registers and of the four operands behind them, and the sum's registers.
#define CONVLADDER_MULTIPLY(N, D, B, ADD, A0, A1, A2, A3, ...)                                 \
  template <int COUNT, class T>                                                                \
  __device__ inline std::enable_if_t<COUNT == N> multiply(T* sum, const float* a, uint64_t b,  \
                                                          int add) {                           \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " ADD                                       \
                 ", 0;\n"                                                                      \
                 "wgmma.mma_async.sync.aligned.m64n" #N "k8.f32.tf32.tf32 {" D                 \
                 "}, "                                                                         \
                 "{" A0 ", " A1 ", " A2 ", " A3 "}, " B ", p, 1, 1;\n}"                        \
                 : __VA_ARGS__                                                                 \
                 : "l"(b), "r"(add), "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])),   \
                   "r"(__float_as_uint(a[2])), "r"(__float_as_uint(a[3])));                    \
  }                                                                                            \
  template <int COUNT, class T>                                                                \
  __device__ inline std::enable_if_t<COUNT == N> multiply(T* sum, uint64_t a, uint64_t b,      \
                                                          int add) {                           \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " ADD                                       \
                 ", 0;\n"                                                                      \
                 "wgmma.mma_async.sync.aligned.m64n" #N "k8.f32.tf32.tf32 {" D "}, " A0 ", " B \
                 ", p, 1, 1;\n}"                                                               \
                 : __VA_ARGS__                                                                 \
                 : "l"(b), "r"(add), "l"(a));                                                  \
  }
CONVLADDER_MULTIPLY(32, CONVLADDER_D0, "%16", "%17", "%18", "%19", "%20", "%21", CONVLADDER_R16(0))
CONVLADDER_MULTIPLY(64, CONVLADDER_D0 ", " CONVLADDER_D16, "%32", "%33", "%34", "%35", "%36", "%37",
                    CONVLADDER_R16(0), CONVLADDER_R16(16))
CONVLADDER_MULTIPLY(96, CONVLADDER_D0 ", " CONVLADDER_D16 ", " CONVLADDER_D32, "%48", "%49", "%50",
                    "%51", "%52", "%53", CONVLADDER_R16(0), CONVLADDER_R16(16), CONVLADDER_R16(32))
CONVLADDER_MULTIPLY(128, CONVLADDER_D0 ", " CONVLADDER_D16 ", " CONVLADDER_D32 ", " CONVLADDER_D48,
                    "%64", "%65", "%66", "%67", "%68", "%69", CONVLADDER_R16(0), CONVLADDER_R16(16),
                    CONVLADDER_R16(32), CONVLADDER_R16(48))
CONVLADDER_MULTIPLY(160,
                    CONVLADDER_D0 ", " CONVLADDER_D16 ", " CONVLADDER_D32 ", " CONVLADDER_D48
                                  ", " CONVLADDER_D64,
                    "%80", "%81", "%82", "%83", "%84", "%85", CONVLADDER_R16(0), CONVLADDER_R16(16),
                    CONVLADDER_R16(32), CONVLADDER_R16(48), CONVLADDER_R16(64))
CONVLADDER_MULTIPLY(192,
                    CONVLADDER_D0 ", " CONVLADDER_D16 ", " CONVLADDER_D32 ", " CONVLADDER_D48
                                  ", " CONVLADDER_D64 ", " CONVLADDER_D80,
                    "%96", "%97", "%98", "%99", "%100", "%101", CONVLADDER_R16(0),
                    CONVLADDER_R16(16), CONVLADDER_R16(32), CONVLADDER_R16(48), CONVLADDER_R16(64),
                    CONVLADDER_R16(80))
CONVLADDER_MULTIPLY(224,
                    CONVLADDER_D0 ", " CONVLADDER_D16 ", " CONVLADDER_D32 ", " CONVLADDER_D48
                                  ", " CONVLADDER_D64 ", " CONVLADDER_D80 ", " CONVLADDER_D96,
                    "%112", "%113", "%114", "%115", "%116", "%117", CONVLADDER_R16(0),
                    CONVLADDER_R16(16), CONVLADDER_R16(32), CONVLADDER_R16(48), CONVLADDER_R16(64),
                    CONVLADDER_R16(80), CONVLADDER_R16(96))
CONVLADDER_MULTIPLY(256,
                    CONVLADDER_D0 ", " CONVLADDER_D16 ", " CONVLADDER_D32 ", " CONVLADDER_D48
                                  ", " CONVLADDER_D64 ", " CONVLADDER_D80 ", " CONVLADDER_D96
                                  ", " CONVLADDER_D112,
                    "%128", "%129", "%130", "%131", "%132", "%133", CONVLADDER_R16(0),
                    CONVLADDER_R16(16), CONVLADDER_R16(32), CONVLADDER_R16(48), CONVLADDER_R16(64),
                    CONVLADDER_R16(80), CONVLADDER_R16(96), CONVLADDER_R16(112))

// From here on each thread of this warpgroup has so many registers; all its warps must call it.
template <int COUNT>
__device__ inline void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}
template <int COUNT>
__device__ inline void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

}  // namespace convladder
