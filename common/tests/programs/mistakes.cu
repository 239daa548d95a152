// Mistakes, one for each name that the program is called with, and what must then be found:
//
// mask_without_caller: __ballot_sync\(\), .*: the mask 0x0000ffff leaves out the calling lane, 1\d
// two_questions: __a(ny|ll)_sync\(\), .*, but thread \(\d+,0,0\) of the same warp is at __a(ny|ll)_sync\(\)
// masks_apart: with the mask 0x0000000., but thread \(\d,0,0\) of the same warp is at __syncwarp\(\), .*with the mask
// never_comes: waits for ever at __shfl_sync\(\), .*: thread \(16,0,0\) waits at __syncthreads\(\), .*mistakes.cu:
// left_barrier: 32 of 64 threads have come to __syncthreads\(\) at common/tests/programs/{barrier}, .* at common/tests/programs/{left}
// unwritten_byte: reads 1 byte of shared memory \(held_bytes \+ \d+ bytes?\) that nobody has written, at .*{unwritten_byte}
// left_by_else: 32 of 64 threads have come to __syncthreads\(\) at common/tests/programs/{before_else}, .* at common/tests/programs/{by_else}
// undefined: __shfl_down_sync\(\), .*mistakes.cu:\d+: lane 0 reads of lane 8, but the lanes that take part are 0x000000ff
// bad_width: __shfl_sync\(\): the width is no power of two up to 32, at .*mistakes.cu
// atomic_and_plain: data race: .*changes \(by an atomic operation\) 4 bytes of global memory|data race: writes 4 bytes
// own_plain_hidden: data race: .* 4 bytes of shared memory \(sum
// last_reads: data race: reads 4 bytes of shared memory \(sum .*; several threads
// itself_last: data race: writes 4 bytes of shared memory \(held .*; several threads \(others, and last this one\) touched it at
// itself_last_of_grid: data race: writes 4 bytes of global memory .*; several blocks \(others, and last this one\) touched it at
// half_a_load: waits for ever at load_matrix_sync\(\), .*{half_a_load}: thread \(16,0,0\) has left the kernel
// two_loads: load_matrix_sync\(\), .*, but thread \(\d+,0,0\) of the same warp is at load_matrix_sync\(\)
// half_a_store: waits for ever at store_matrix_sync\(\), .*{half_a_store}: thread \(16,0,0\) waits at __syncthreads\(\)
// half_a_product: waits for ever at mma_sync\(\), .*{half_a_product}: thread \(16,0,0\) has left the kernel
// no_fence: data race: reads 4 bytes of global memory at .*mistakes.cu.*nothing orders the blocks of a grid
// fence_of_block: data race: reads 4 bytes of global memory at .*mistakes.cu.*nothing orders the blocks of a grid
// behind_fence: data race: reads 4 bytes of global memory at .*{read_behind_fence}; .* touched it at .*{behind_fence}
// other_flag: data race: .* 4 bytes of global memory at .*mistakes.cu
// behind_arrival: data race: .* 4 bytes of shared memory \(held .* at .*{behind_arrival}
// behind_meeting: data race: .* 4 bytes of shared memory \(held .* at .*{behind_meeting}
// lost_update: data race: writes 4 bytes of global memory at .*{lost_update}; .* touched it at .*{lost_update}
// no_syncwarp: data race: reads 4 bytes of shared memory \(held \+ \d+ bytes\)
// for_ever: asks for ever at .*mistakes.cu:\d+: no thread that is left will change that
// assertion: assertion `threadIdx.x < 7` failed at .*mistakes.cu
// trap: __trap\(\) at .*mistakes.cu
// constant: writes 4 bytes of .*constant
// behind_constants: reads 4 bytes of global memory.*mistakes.cu
// behind_variable: writes 4 bytes of global memory out of bounds, 0 bytes past the end of __device__ arrived, 4 bytes, at .*{behind_variable}
// behind_constant: reads 4 bytes of global memory out of bounds, 0 bytes past the end of __constant__ constants, 16 bytes, at .*{behind_constant}
// structure: data race: .* 8 bytes of shared memory \(pairs|data race: .* 4 bytes of shared memory \(pairs
// grid: not launched by cudaLaunchCooperativeKernel\(\), it waits for the grid at .*mistakes.cu
// unaligned: not aligned
// freed: out of bounds
// nameless: data race: .* 4 bytes of shared memory \(mine|reads 4 bytes of shared memory .*that nobody has written
// barrier_at_once: uses the barrier meeting at .*mistakes.cu.*nothing orders that and mbarrier.init by thread \(0,0,0\)|no barrier has been made \(mbarrier.init\) meeting, at .*mistakes.cu
// copied_over: data race: copies 16 bytes of shared memory \(held .*{copied_over}; .* touched it at .*{read_before}
// one_forgotten: data race: writes 4 bytes of shared memory \(held .*{one_forgotten}; block \(0,0,0\), thread \(5,0,0\) touched it|data race: reads 4 bytes of shared memory \(held
// released_early: data race: copies 16 bytes of shared memory \(held .* touched it at .*{released_early}
// not_released: waits for ever at .*{not_released} for the end of phase 0 \(parity 0\) of the barrier state \+ 8 bytes
// anothers: : it is a local variable of thread \(5,0,0\), which no other can reach, at .*{anothers}
// recursion: overflows its stack, at .*mistakes.cu:\d+
// across_the_end: writes 4 bytes of global memory out of bounds, .*, at .*{across_the_end}
// behind_heap: out of bounds, 0 bytes past the end of 16 bytes, at .*{behind_heap}
// freed_heap: out of bounds: it has been freed, at .*{freed_heap}
// frees_memory_of_the_host: frees what malloc\(\) and new of a kernel haven't given, .*{frees_memory_of_the_host}
// copies_from_the_heap: cudaMemcpy.* its source is memory of the kernels' heap
// freed_twice: frees what malloc\(\) and new of a kernel haven't given, or what has been freed, at .*{freed_twice}
// early: reads 4 bytes of shared memory \(held \+ \d+ bytes\), into which an asynchronous copy is under way: .* asked for it at .*{ask}, at .*{early}
// beyond_heap: writes 4 bytes of global memory out of bounds, 0 bytes past a null pointer, at .*{beyond_heap}
// by_zero: divides an integer by 0, at .*{by_zero}
// large_frame: overflows its stack, at .*mistakes.cu:\d+
// ldm: load_matrix_sync\(\), .*{ldm}: ldm is 18, not a multiple of 8
// ldm_of_sums: store_matrix_sync\(\), .*{ldm_of_sums}: ldm is 18, not a multiple of 4
// half_aligned: load_matrix_sync\(\), .*{half_aligned}: the matrix is not aligned to 32 bytes
// copy_misaligned: __pipeline_memcpy_async: a pointer is not aligned to the bytes copied, at .*{copy_misaligned}
// copy_of_6: __pipeline_memcpy_async: bytes must be 4, 8 or 16, at .*{copy_of_6}
// group_copy: __pipeline_memcpy_async: the destination is not in shared memory, at .*{group_copy}
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda_pipeline.h>
#include <mma.h>

#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <locale>

#include "check.h"

constexpr unsigned ALL = ~0u;
__constant__ int constants[4];
__constant__ const int four[4] = {1, 2, 3, 4};

__global__ void mask_without_caller(int* out) { out[threadIdx.x] = __ballot_sync(0xffff, 1); }
__global__ void two_questions(int* out) {
  out[threadIdx.x] = threadIdx.x < 16 ? __any_sync(ALL, 1) : __all_sync(ALL, 1);
}
__global__ void masks_apart(int*) {
  if (threadIdx.x < 2) __syncwarp(threadIdx.x == 0 ? 3 : 7);
}
__global__ void never_comes(int* out) {
  if (threadIdx.x < 16) out[threadIdx.x] = __shfl_sync(ALL, int(threadIdx.x), 0);
  __syncthreads();
}
__global__ void unwritten_byte(int* out) {
  __shared__ unsigned char held_bytes[128];
  held_bytes[threadIdx.x * 2] = 1;
  __syncthreads();
  out[threadIdx.x] = held_bytes[threadIdx.x * 2 + 1];  // unwritten_byte
}
__global__ void left_by_else(int* out) {
  if (threadIdx.x < 32)
    __syncthreads();  // before_else
  else
    out[threadIdx.x] = 1;  // by_else
}
__global__ void left_barrier(int*) {
  if (threadIdx.x < 32) return;  // left
  __syncthreads();               // barrier
}
__global__ void undefined(int* out) {
  if (threadIdx.x >= 8) return;
  int value = threadIdx.x;
  for (int by = 16; by > 0; by /= 2) value += __shfl_down_sync(0xff, value, by > 8 ? 0 : by);
  out[threadIdx.x] = value;
}
__global__ void bad_width(int* out) { out[threadIdx.x] = __shfl_sync(ALL, 1, 0, 12); }
__global__ void atomic_and_plain(int* out) {
  if (threadIdx.x % 2 == 0) {
    atomicAdd(out, 1);
  } else {
    out[0] = 5;
  }
}
__global__ void own_plain_hidden(int* out) {  // by the same thread's atomicAdd()
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  atomicAdd(&sum, 1);
  __syncthreads();
  out[threadIdx.x] = sum;
}
__global__ void last_reads(int* out) {  // by whose own the others' are not hidden
  __shared__ int sum, count;
  if (threadIdx.x == 0) sum = count = 0;
  __syncthreads();
  atomicAdd(&sum, 1);
  if (atomicAdd(&count, 1) == 63) *out = sum;
}
// All read, and the last of them once more before it writes.
__global__ void itself_last(int* out) {
  __shared__ int held, count;
  if (threadIdx.x == 0) held = count = 0;
  __syncthreads();
  out[threadIdx.x] = held;
  if (atomicAdd(&count, 1) == 63) ++held;
}
__global__ void itself_last_of_grid(int* out) {
  if (threadIdx.x > 0) return;
  out[2 + blockIdx.x] = out[0];
  if (atomicAdd(out + 1, 1) == 1) ++out[0];
}
// What all 32 lanes must do together.
using namespace nvcuda;
using Left = wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major>;
using Right = wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major>;
using Sum = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;
__shared__ float sums[256];
__global__ void half_a_load(int* out) {
  Left left;
  if (threadIdx.x >= 16) return;
  wmma::load_matrix_sync(left, reinterpret_cast<const __half*>(out), 16);  // half_a_load
}
__global__ void two_loads(int* out) {
  Left left;
  const __half* const matrix = reinterpret_cast<const __half*>(out);
  if (threadIdx.x < 16) {
    wmma::load_matrix_sync(left, matrix, 16);
  } else {
    wmma::load_matrix_sync(left, matrix, 16);
  }
}
__global__ void half_a_store(int*) {
  Sum sum;
  wmma::fill_fragment(sum, 1.0f);
  if (threadIdx.x < 16) {
    wmma::store_matrix_sync(sums, sum, 16, wmma::mem_row_major);  // half_a_store
  }
  __syncthreads();
}
__global__ void half_a_product(int*) {
  Left left;
  Right right;
  Sum sum;
  wmma::fill_fragment(left, __half(1));
  wmma::fill_fragment(right, __half(1));
  wmma::fill_fragment(sum, 0.0f);
  if (threadIdx.x < 16) wmma::mma_sync(sum, left, right, sum);  // half_a_product
}
__device__ unsigned arrived;
__global__ void fence_of_block(int* out) {  // likewise, with one for its block alone
  if (threadIdx.x > 0) return;
  out[blockIdx.x] = 1;
  __threadfence_block();
  if (atomicAdd(&arrived, 1) != gridDim.x - 1) return;
  for (unsigned i = 0; i < gridDim.x; ++i) out[64] = out[i];
}
__global__ void no_fence(int* out) {  // as flags.cu's sum(), without its __threadfence()
  if (threadIdx.x > 0) return;
  out[blockIdx.x] = 1;
  if (atomicAdd(&arrived, 1) != gridDim.x - 1) return;
  for (unsigned i = 0; i < gridDim.x; ++i) out[64] = out[i];
}
__global__ void behind_fence(int* out) {
  volatile int* const flag = out + 1;
  if (threadIdx.x > 0) return;
  if (blockIdx.x == 0) {
    __threadfence();
    out[0] = 5;  // behind_fence
    *flag = 1;
  } else {
    while (*flag == 0) continue;
    out[2] = out[0];  // read_behind_fence
  }
}
__global__ void other_flag(int* out) {  // which nobody has set behind a fence
  volatile int* const flags = out + 1;
  if (threadIdx.x > 0) return;
  if (blockIdx.x == 0) {
    out[0] = 5;  // other_flag
    __threadfence();
    flags[0] = 1;
  } else if (flags[1] == 0) {
    out[3] = out[0];  // by_other_flag
  }
}
__global__ void behind_arrival(int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  __shared__ int held[64];
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  auto token = barrier.arrive();
  held[threadIdx.x] = 1;
  barrier.wait(std::move(token));
  out[threadIdx.x] = held[63 - threadIdx.x];  // behind_arrival
}
__global__ void behind_meeting(int* out) {
  __shared__ int held[64];
  asm volatile("bar.sync 1, 64;" ::: "memory");
  held[threadIdx.x] = 1;
  out[threadIdx.x] = held[63 - threadIdx.x];  // behind_meeting
}
__global__ void lost_update(int* out) {
  volatile int* const count = out;
  *count = *count + 1;  // lost_update
}
__global__ void no_syncwarp(int* out) {  // a shuffle orders no memory
  __shared__ int held[64];
  held[threadIdx.x] = __shfl_sync(ALL, int(threadIdx.x), 0);
  out[threadIdx.x] = held[threadIdx.x ^ 1];
}
__global__ void for_ever(int* out) {
  while (atomicAdd(out, 0) != 12345) {
  }
}
__global__ void assertion(int*) { assert(threadIdx.x < 7); }
__global__ void trap(int*) { __trap(); }
__global__ void constant(int*) { const_cast<volatile int*>(constants)[1] = 3; }
__global__ void unaligned(int* out) {
  atomicAdd(reinterpret_cast<int*>(reinterpret_cast<char*>(out) + 2), 1);
}
__global__ void freed(int* out) {
  int* list = new int[4];
  for (int i = 0; i < 4; ++i) list[i] = i;
  delete[] list;
  out[threadIdx.x] = list[threadIdx.x % 4];
}

__global__ void early(int* out) {  // no wait
  __shared__ int held[64];
  __pipeline_memcpy_async(&held[threadIdx.x], &out[threadIdx.x], 4);  // ask
  __pipeline_commit();
  out[64 + threadIdx.x] = held[threadIdx.x];  // early
  __pipeline_wait_prior(0);
}

__global__ void behind_constants(int* out) { out[threadIdx.x] = four[threadIdx.x * 999]; }
__device__ unsigned next_to_it[4];
__global__ void behind_variable(int* out) {
  if (threadIdx.x == 0) (&arrived)[1] = out[0] + next_to_it[0];  // behind_variable
}
__global__ void behind_constant(int* out) {
  if (threadIdx.x < 5) out[threadIdx.x] = constants[threadIdx.x];  // behind_constant
}
// A structure that a function is given, which the compiler might not have made part of the kernel.
__device__ __noinline__ float sum_of(float2 pair) { return pair.x + pair.y; }
__global__ void structure(int* out) {
  __shared__ float2 pairs[64];
  pairs[threadIdx.x] = make_float2(threadIdx.x, 1);
  out[threadIdx.x] = static_cast<int>(sum_of(pairs[63 - threadIdx.x]));
}
__global__ void grid(int*) { cooperative_groups::this_grid().sync(); }

namespace {
__global__ void nameless(int* out) {
  __shared__ int mine[64];
  mine[threadIdx.x] = 1;
  out[threadIdx.x] = mine[63 - threadIdx.x];
}
}  // namespace
__global__ void barrier_at_once(int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> meeting;
  if (threadIdx.x == 0) init(&meeting, blockDim.x);
  out[threadIdx.x] = 1;
  meeting.arrive_and_wait();  // before the others know that it is made
}
__global__ void copied_over(int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  __shared__ alignas(16) int held[64];
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  const auto block = cooperative_groups::this_thread_block();
  block.sync();
  int sum = 0;
  for (int i = 0; i < 3; ++i) {
    cuda::memcpy_async(block, held, out + 64 * i, sizeof(held), barrier);  // copied_over
    barrier.arrive_and_wait();
    sum += held[63 - threadIdx.x];  // read_before
  }
  out[threadIdx.x + 192] = sum;
}
__global__ void one_forgotten(int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> is_read;
  __shared__ int held;
  if (threadIdx.x == 0) init(&is_read, blockDim.x - 1), held = 3;
  __syncthreads();
  out[threadIdx.x] = held;
  if (threadIdx.x == 63) is_read.arrive_and_wait(), held = 4;  // one_forgotten
  if (threadIdx.x != 63 && threadIdx.x != 5) is_read.arrive();
}
__global__ void released_early(int* out) {
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 1> state;
  __shared__ alignas(16) int held[64];
  const auto block = cooperative_groups::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  for (int i = 0; i < 2; ++i) {
    pipe.producer_acquire();
    cuda::memcpy_async(block, held, out + 64 * i, sizeof(held), pipe);
    pipe.producer_commit();
    pipe.consumer_wait();
    pipe.consumer_release();
    out[threadIdx.x + 128] += held[63 - threadIdx.x];  // released_early
  }
}
__global__ void not_released(int* out) {
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 1> state;
  auto pipe = cuda::make_pipeline(cooperative_groups::this_thread_block(), &state);
  for (int i = 0; i < 2; ++i) {
    pipe.producer_acquire();  // not_released
    pipe.producer_commit();
    pipe.consumer_wait();
  }
  out[threadIdx.x] = 1;
}
__global__ void across_the_end(int*) {
  char* const own = static_cast<char*>(malloc(63));
  for (int i = 0; i < 16; ++i) reinterpret_cast<int*>(own)[i] = i;  // across_the_end
  free(own);
}
__global__ void anothers(int* out) {
  __shared__ int* shown;
  int own = threadIdx.x;
  if (threadIdx.x == 5) shown = &own;
  __syncthreads();
  out[threadIdx.x] = *shown;  // anothers
  __syncthreads();
  out[threadIdx.x] += own;
}
__device__ int recurse(int n, volatile int* p) {
  volatile int own[200];
  own[n % 200] = n;
  return n == p[0] ? 0 : recurse(n + 1, p) + own[n % 200];
}
__global__ void recursion(int* out) { out[1] = recurse(1, out); }
__global__ void behind_heap(int*) {
  int* const own = static_cast<int*>(malloc(16));
  own[4] = 1;  // behind_heap
  free(own);
}
__global__ void freed_heap(int* out) {
  int* const own = static_cast<int*>(malloc(16));
  own[0] = 1;
  free(own);
  out[threadIdx.x] = own[0];  // freed_heap
}
__global__ void freed_twice(int*) {
  void* const own = malloc(16);
  free(own);
  free(own);  // freed_twice
}
__global__ void frees_memory_of_the_host(int* out) {
  if (threadIdx.x == 0) free(out);  // frees_memory_of_the_host
}
__device__ int* of_heap;
__global__ void copies_from_the_heap(int*) {
  if (threadIdx.x == 0) of_heap = static_cast<int*>(malloc(64)), of_heap[0] = 5;
}
__global__ void beyond_heap(int* out) {
  int* const own = static_cast<int*>(malloc(64 << 20));
  own[out[64]] = 1;  // beyond_heap
  out[threadIdx.x] = own[out[65]];
}
__global__ void by_zero(int* out) {
  out[threadIdx.x] = static_cast<int>(threadIdx.x) / out[64];  // by_zero
}
__device__ __noinline__ int with_large_frame(int* out) {
  volatile int own[2000000];
  own[out[0]] = 1;
  return own[out[1]];
}
__global__ void large_frame(int* out) { out[threadIdx.x] = with_large_frame(out); }
__global__ void ldm(int* out) {
  if (threadIdx.x >= 32) return;
  Left left;
  wmma::load_matrix_sync(left, reinterpret_cast<const __half*>(out), 18);  // ldm
}
__global__ void ldm_of_sums(int*) {
  if (threadIdx.x >= 32) return;
  __shared__ float wide[16 * 18];
  Sum sum;
  wmma::fill_fragment(sum, 1.0f);
  wmma::store_matrix_sync(wide, sum, 18, wmma::mem_row_major);  // ldm_of_sums
}
__global__ void half_aligned(int* out) {
  if (threadIdx.x >= 32) return;
  Left left;
  wmma::load_matrix_sync(left, reinterpret_cast<const __half*>(out) + 8, 16);  // half_aligned
}
__global__ void copy_misaligned(int* out) {
  __shared__ int held[66];
  __pipeline_memcpy_async(&held[1], out, 8);  // copy_misaligned
}
__global__ void copy_of_6(int* out) {
  __shared__ int held[66];
  __pipeline_memcpy_async(held, out, 6);  // copy_of_6
}
__global__ void group_copy(int* out) {
  const auto block = cooperative_groups::this_thread_block();
  cooperative_groups::memcpy_async(block, out + 128, out, 256);  // group_copy
}

struct Grouped : std::numpunct<char> {  // as in 4'096, which binutils would not read
  char do_thousands_sep() const override { return '\''; }
  std::string do_grouping() const override { return "\3"; }
};

int main(int, char** arguments) {
  std::locale::global(std::locale(std::locale(), new Grouped));
  const struct {
    const char* name;
    void (*kernel)(int*);
    int blocks;
  } MISTAKES[] = {{"mask_without_caller", mask_without_caller, 1},
                  {"two_questions", two_questions, 1},
                  {"masks_apart", masks_apart, 1},
                  {"never_comes", never_comes, 1},
                  {"left_barrier", left_barrier, 1},
                  {"left_by_else", left_by_else, 1},
                  {"unwritten_byte", unwritten_byte, 1},
                  {"undefined", undefined, 1},
                  {"bad_width", bad_width, 1},
                  {"atomic_and_plain", atomic_and_plain, 1},
                  {"own_plain_hidden", own_plain_hidden, 1},
                  {"last_reads", last_reads, 1},
                  {"itself_last", itself_last, 1},
                  {"itself_last_of_grid", itself_last_of_grid, 2},
                  {"half_a_load", half_a_load, 1},
                  {"two_loads", two_loads, 1},
                  {"half_a_store", half_a_store, 1},
                  {"half_a_product", half_a_product, 1},
                  {"no_fence", no_fence, 8},
                  {"fence_of_block", fence_of_block, 8},
                  {"behind_fence", behind_fence, 2},
                  {"other_flag", other_flag, 2},
                  {"behind_arrival", behind_arrival, 1},
                  {"behind_meeting", behind_meeting, 1},
                  {"lost_update", lost_update, 2},
                  {"no_syncwarp", no_syncwarp, 1},
                  {"for_ever", for_ever, 1},
                  {"assertion", assertion, 1},
                  {"trap", trap, 1},
                  {"constant", constant, 1},
                  {"behind_constants", behind_constants, 1},
                  {"behind_variable", behind_variable, 1},
                  {"behind_constant", behind_constant, 1},
                  {"structure", structure, 1},
                  {"grid", grid, 1},
                  {"unaligned", unaligned, 1},
                  {"freed", freed, 1},
                  {"nameless", nameless, 1},
                  {"barrier_at_once", barrier_at_once, 1},
                  {"copied_over", copied_over, 1},
                  {"one_forgotten", one_forgotten, 1},
                  {"released_early", released_early, 1},
                  {"not_released", not_released, 1},
                  {"across_the_end", across_the_end, 1},
                  {"anothers", anothers, 1},
                  {"recursion", recursion, 1},
                  {"behind_heap", behind_heap, 1},
                  {"freed_heap", freed_heap, 1},
                  {"freed_twice", freed_twice, 1},
                  {"frees_memory_of_the_host", frees_memory_of_the_host, 1},
                  {"copies_from_the_heap", copies_from_the_heap, 1},
                  {"early", early, 1},
                  {"beyond_heap", beyond_heap, 1},
                  {"by_zero", by_zero, 1},
                  {"large_frame", large_frame, 1},
                  {"ldm", ldm, 1},
                  {"ldm_of_sums", ldm_of_sums, 1},
                  {"half_aligned", half_aligned, 1},
                  {"copy_misaligned", copy_misaligned, 1},
                  {"copy_of_6", copy_of_6, 1},
                  {"group_copy", group_copy, 1}};
  int* out;
  cudaMalloc(&out, 256 * sizeof(int));
  cudaMemset(out, 0, 256 * sizeof(int));
  for (const auto& mistake : MISTAKES) {
    if (std::strcmp(mistake.name, arguments[1]) == 0) mistake.kernel<<<mistake.blocks, 64>>>(out);
  }
  const cudaError_t error = cudaDeviceSynchronize();
  std::printf("%s\n", cudaGetErrorString(error));
  int* heap = nullptr;
  cudaMemcpyFromSymbol(&heap, of_heap, sizeof(heap));
  if (heap) cudaMemcpy(out, heap, sizeof(int), cudaMemcpyDeviceToDevice);
  cudaFree(out);
}
