// A kernel that is launched early, in ways that are right and, with one mistake each, wrong; and what must then be found:
//
// right: ^$
// plain: ^$
// synchronized: ^$
// cleared: ^$
// other_stream: ^$
// in_ptx: ^$
// before_barrier: ^$
// before_syncwarp: ^$
// before_mbarrier: ^$
// before_flag: ^$
// counted: ^$
// no_wait: block \(\d,0,0\), thread \(\d+,0,0\): data race: reads 4 bytes of global memory at .*{read}, before it has called cudaGridDependencySynchronize\(\); block \(\d,0,0\), thread \(\d+,0,0\) of kernel prepare, which may still run, writes it at .*{prepared}
// one_does_not: block \(7,0,0\), thread \(63,0,0\): data race: reads 4 bytes of global memory at .*{read}
// after_barrier: thread \(([1-9]|\d\d),0,0\): data race: reads 4 bytes of global memory at .*{read}
// writes: data race: writes 4 bytes of global memory at .*{written}, before .* of kernel prepare, which may still run, reads it at .*{source}
// adds: data race: changes \(by an atomic operation\) 4 bytes of global memory at .*{added}, before .* of kernel prepare, which may still run, writes it at .*{prepared}
// copies: data race: copies 4 bytes of global memory at .*{copied}, before .* writes it at .*{prepared}
// bulk_copies: data race: copies 4 bytes of global memory at .*hopper.h:\d+, before .* writes it at .*{prepared}
#include <cuda_pipeline.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "hopper.h"

constexpr int BLOCKS = 8, THREADS = 64, COUNT = BLOCKS * THREADS;
enum Way {
  right,
  plain,
  synchronized,
  cleared,
  other_stream,
  in_ptx,
  before_barrier,
  before_syncwarp,
  before_mbarrier,
  before_flag,
  counted,
  no_wait,
  one_does_not,
  after_barrier,
  writes,
  adds,
  copies,
  bulk_copies
};
constexpr const char* NAMES[] = {
    "right",   "plain",          "synchronized",    "cleared",         "other_stream",
    "in_ptx",  "before_barrier", "before_syncwarp", "before_mbarrier", "before_flag",
    "counted", "no_wait",        "one_does_not",    "after_barrier",   "writes",
    "adds",    "copies",         "bulk_copies"};
__device__ int counter;
__device__ int flag;

__global__ void prepare(const int* x, int* middle) {
  const int i = blockIdx.x * THREADS + threadIdx.x;
  const int value = x[i];  // source
  middle[i] = value + 1;   // prepared
  atomicAdd(&counter, 1);
}

__global__ void use(Way way, int* x, int* middle, int* y) {
  __shared__ __align__(16) int tile[THREADS];
  __shared__ uint64_t barrier;
  const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
  if (t == 0 && (way == before_mbarrier || way == bulk_copies)) init(&barrier, 1), fence_init();
  if (way == before_mbarrier || way == bulk_copies) __syncthreads();
  y[i] = -1;  // nobody else's
  switch (way) {
    case in_ptx:
      asm volatile("griddepcontrol.wait;" ::: "memory");
      break;
    case before_barrier:
      if (t == 40) cudaGridDependencySynchronize();
      __syncthreads();
      break;
    case before_syncwarp:
      if (t % 32 == 5) cudaGridDependencySynchronize();
      __syncwarp();
      break;
    case before_mbarrier:
      if (t == 40) cudaGridDependencySynchronize(), arrive(&barrier);
      wait(&barrier, 0);
      break;
    case before_flag:
      if (i == COUNT - 1) {
        cudaGridDependencySynchronize();
        __threadfence();
        atomicExch(&flag, 1);
      }
      while (*static_cast<volatile int*>(&flag) == 0) continue;
      __threadfence();
      break;
    case counted:
      atomicAdd(&counter, 1);
      y[i] = i + 1;
      return;
    case one_does_not:
      if (i != COUNT - 1) cudaGridDependencySynchronize();
      break;
    case after_barrier:
      __syncthreads();
      if (t == 0) cudaGridDependencySynchronize();
      break;
    case writes:
      x[i] = 0;  // written
      break;
    case adds:
      atomicAdd(&middle[i], 0);  // added
      break;
    case copies:
      __pipeline_memcpy_async(&tile[t], &middle[i], 4);  // copied
      __pipeline_commit();
      break;
    case bulk_copies:
      if (t > 0) break;
      expect(&barrier, sizeof(tile));
      copy(tile, middle + i, sizeof(tile), &barrier);
      break;
    case no_wait:
    case plain:
    case synchronized:
    case cleared:
    case other_stream:
      break;
    default:
      cudaGridDependencySynchronize();
  }
  if (way >= writes) cudaGridDependencySynchronize();
  if (way == copies) __pipeline_wait_prior(0);
  if (way == bulk_copies) wait(&barrier, 0);
  y[i] = way >= copies ? tile[t] : middle[i];  // read
}

int main(int, char** arguments) {
  Way way = right;
  for (int i = 0; i < static_cast<int>(sizeof(NAMES) / sizeof(*NAMES)); ++i) {
    if (std::strcmp(NAMES[i], arguments[1]) == 0) way = static_cast<Way>(i);
  }
  int *x, *middle, *y, *other, host[COUNT];
  cudaStream_t stream, second;
  cudaStreamCreate(&stream), cudaStreamCreate(&second);
  for (int** array : {&x, &middle, &y, &other}) cudaMalloc(array, sizeof(host));
  for (int i = 0; i < COUNT; ++i) host[i] = i;
  cudaMemcpy(x, host, sizeof(host), cudaMemcpyHostToDevice);

  prepare<<<BLOCKS, THREADS, 0, way == other_stream ? second : stream>>>(x, middle);
  if (way == synchronized) cudaStreamSynchronize(stream);
  if (way == cleared) cudaMemsetAsync(other, 0, sizeof(host), stream);
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = way != plain;
  cudaLaunchConfig_t config = {};
  config.gridDim = BLOCKS, config.blockDim = THREADS, config.stream = stream;
  config.attrs = &early, config.numAttrs = 1;
  cudaLaunchKernelEx(&config, use, way, x, middle, y);

  const cudaError_t error = cudaDeviceSynchronize();
  cudaMemcpy(host, y, sizeof(host), cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int i = 0; i < COUNT; ++i) wrong += host[i] != i + 1;
  std::printf("%s, %d are wrong\n", cudaGetErrorString(error), wrong);
  return error != cudaSuccess || wrong;  // what begins early here begins late enough
}
