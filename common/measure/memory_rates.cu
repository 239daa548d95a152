// Every kernel reads 16 bytes per lane, neighbours from neighbours, and adds them up; the region
// that is read again and again decides where it comes from.
#include "common/measure/memory_rates.h"

#include "common/check/backend.h"
#include "common/check/device_buffer.h"
#include "common/core/launch.h"

namespace convladder {
namespace {

constexpr int THREADS = 1024;
constexpr int IN_FLIGHT = 8;  // loads of a thread before the first is used

__device__ float sum_of(float4 quad) { return quad.x + quad.y + quad.z + quad.w; }

// Writes in a case that never comes, which the compiler can't know: so nothing is left out.
__device__ void keep(float sum, float* sink) {
  if (sum == -1.0f) *sink = sum;
}

// All blocks together read `quads` quads, `rounds` times. L2 only: L1 is passed by (__ldcg).
__global__ void read_past_l1(const float4* from, int64_t quads, int rounds, float* sink) {
  const int64_t step = int64_t{gridDim.x} * THREADS;
  const int64_t first = int64_t{blockIdx.x} * THREADS + threadIdx.x;
  float sum = 0.0f;
  for (int round = 0; round < rounds; ++round) {
    for (int64_t i = first; i < quads; i += IN_FLIGHT * step) {
      float4 quad[IN_FLIGHT] = {};
      UNROLL for (int j = 0; j < IN_FLIGHT; ++j) {
        if (i + j * step < quads) quad[j] = __ldcg(from + i + j * step);
      }
      UNROLL for (int j = 0; j < IN_FLIGHT; ++j) sum += sum_of(quad[j]);
    }
  }
  keep(sum, sink);
}

// Quads of the region that each block reads for itself: 32 KiB, less than L1 holds for two blocks.
constexpr int REGION = 2048;

// `at` moves on from round to round: no load is one that the compiler has seen before.
template <typename Pointer>
__device__ float read_region(Pointer region, int rounds) {
  float sum = 0.0f;
  unsigned at = threadIdx.x;
  for (int round = 0; round < rounds; ++round) {
    float4 quad[IN_FLIGHT];
    UNROLL for (int j = 0; j < IN_FLIGHT; ++j) quad[j] = region[(at + j * 96) % REGION];
    UNROLL for (int j = 0; j < IN_FLIGHT; ++j) sum += sum_of(quad[j]);
    at += 32;
  }
  return sum;
}

__global__ void read_l1(const float4* __restrict__ from, int rounds, float* sink) {
  keep(read_region(from + int64_t{blockIdx.x} * REGION, rounds), sink);
}

__global__ void read_shared(const float4* from, int rounds, float* sink) {
  __shared__ float4 region[REGION];
  for (int i = threadIdx.x; i < REGION; i += THREADS) region[i] = from[i];
  __syncthreads();  // the region is complete
  keep(read_region(region, rounds), sink);
}

DeviceBuffer zeros(int64_t count) {
  DeviceBuffer buffer(count);
  check_cuda(cudaMemset(buffer.data(), 0, count * sizeof(float)), "cudaMemset");
  return buffer;
}

const float4* quads_of(const DeviceBuffer& buffer) {
  return reinterpret_cast<const float4*>(buffer.data());
}

template <typename Enqueue>
double rate(double bytes, const Enqueue& enqueue) {
  return bytes / (time_on_backend(enqueue, MEMORY_RATE_RUNS).milliseconds * 1e-3);
}

double rate_past_l1(int64_t bytes, int rounds) {
  const auto quads = static_cast<int64_t>(bytes / sizeof(float4));
  const DeviceBuffer from = zeros(quads * 4), sink = zeros(1);
  return rate(static_cast<double>(quads) * sizeof(float4) * rounds, [&] {
    launch(read_past_l1, grid_x(2 * multiprocessors()), THREADS, nullptr, quads_of(from), quads,
           rounds, sink.data());
  });
}

// Both levels of a multiprocessor: two blocks on each.
void measure_regions(MemoryRates& rates) {
  constexpr int ROUNDS = 4096;
  const int blocks = 2 * multiprocessors();
  const DeviceBuffer from = zeros(int64_t{blocks} * REGION * 4), sink = zeros(1);
  const double bytes = double{ROUNDS} * IN_FLIGHT * THREADS * blocks * sizeof(float4);
  rates.l1 = rate(bytes, [&] {
    launch(read_l1, grid_x(blocks), THREADS, nullptr, quads_of(from), ROUNDS, sink.data());
  });
  rates.shared = rate(bytes, [&] {
    launch(read_shared, grid_x(blocks), THREADS, nullptr, quads_of(from), ROUNDS, sink.data());
  });
}

}  // namespace

MemoryRates measure_memory_rates(int64_t dram_bytes, int64_t l2_bytes) {
  MemoryRates rates;
  rates.dram = rate_past_l1(dram_bytes, 1);
  rates.l2 = rate_past_l1(l2_bytes / 4 / 4096 * 4096, 64);
  measure_regions(rates);
  return rates;
}

}  // namespace convladder
