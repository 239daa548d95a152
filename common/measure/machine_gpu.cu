// What the GPU can do at the most, measured: the yardsticks of `bench`.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/check/backend.h"
#include "common/check/device_buffer.h"
#include "common/core/launch.h"
#include "common/core/mma.h"
#include "common/measure/bench.h"

namespace convladder {
namespace {

constexpr int REPEATS = 15;  // enough for the clock to rise during the first ones

constexpr int THREADS = 256;
constexpr int CHAINS = 16;  // independent sums per thread, to hide the latency of an FMA
// Each chain takes so many FMAs per iteration. The loop itself takes three instructions more, and each takes an
// FMA's turn: of 515 that is 0.6 %; with 8 steps it was 3 of 131, and the ceiling too low by 1.2 %.
constexpr int STEPS = 32;
constexpr int ITERATIONS = 1000;

// Writes in a case that never comes, which the compiler can't know: so nothing is left out.
__device__ void keep(float sum, float* sink) {
  if (sum == -1.0f) *sink = sum;
}

// Nothing but FMAs.
__global__ void fma_loop(float* sink, float scale, float shift, int iterations) {
  float sums[CHAINS];
  UNROLL
  for (int i = 0; i < CHAINS; ++i) sums[i] = static_cast<float>(threadIdx.x + i);
  for (int iteration = 0; iteration < iterations; ++iteration) {
    UNROLL
    for (int step = 0; step < STEPS; ++step) {
      UNROLL
      for (int i = 0; i < CHAINS; ++i) sums[i] = fmaf(sums[i], scale, shift);
    }
  }
  float total = 0;
  UNROLL
  for (int i = 0; i < CHAINS; ++i) total += sums[i];
  keep(total, sink);
}

// A loop of products by the tensor cores: every warp has CHAINS of them under way.
__global__ void mma_loop(float* sink, float factor, int iterations) {
  const float a[4] = {factor, factor, factor, factor}, b[2] = {factor, factor};
  float sums[CHAINS][4] = {};
  for (int iteration = 0; iteration < iterations; ++iteration) {
    UNROLL
    for (int step = 0; step < STEPS; ++step) {
      UNROLL
      for (int i = 0; i < CHAINS; ++i) mma_tf32(sums[i], sums[i] + 2, a, b);
    }
  }
  float total = 0;
  UNROLL
  for (int i = 0; i < CHAINS; ++i) total += sums[i][0] + sums[i][1] + sums[i][2] + sums[i][3];
  keep(total, sink);
}

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  check_cuda(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
  return value;
}

// FP32 FMAs that a multiprocessor begins per clock: CUDA C++ Programming Guide, "Throughput of
// Native Arithmetic Instructions".
int fp32_lanes(int major, int minor) { return major == 7 || (major == 8 && minor == 0) ? 64 : 128; }

// Returns how often a second all threads of a loop together pass through the middle of it.
template <class... Parameters, class... Arguments>
double measure_loop(int multiprocessors, void (*loop)(Parameters...), Arguments... arguments) {
  int blocks_each = 0;  // as many as run at once, so that all end together
  check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_each, loop, THREADS, 0),
             "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  const int64_t blocks = int64_t{multiprocessors} * blocks_each;
  const DeviceBuffer sink(1);
  const Timing timing = time_on_backend(
      [&] {
        loop<<<grid_x(blocks), THREADS>>>(sink.data(), arguments..., ITERATIONS);
        check_cuda(cudaGetLastError(), "kernel launch");
      },
      REPEATS);
  const double passes = static_cast<double>(blocks) * THREADS * CHAINS * STEPS * ITERATIONS;
  return passes / (timing.milliseconds * 1e-3);
}

// ---- How fast each level of memory can be read ----

// Every kernel reads 16 bytes per lane, neighbours from neighbours, and adds them up; the region that
// is read again and again decides where it comes from.

constexpr int READERS = 1024;  // threads of a block
constexpr int IN_FLIGHT = 8;   // loads of a thread before the first is used

__device__ float sum_of(float4 quad) { return quad.x + quad.y + quad.z + quad.w; }

// All blocks together read `quads` quads, `rounds` times. L2 only: L1 is passed by (__ldcg).
__global__ void read_past_l1(const float4* from, int64_t quads, int rounds, float* sink) {
  const int64_t step = int64_t{gridDim.x} * READERS;
  const int64_t first = int64_t{blockIdx.x} * READERS + threadIdx.x;
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
  for (int i = threadIdx.x; i < REGION; i += READERS) region[i] = from[i];
  __syncthreads();  // the region is complete
  keep(read_region(region, rounds), sink);
}

DeviceBuffer zeros(int64_t count) {
  DeviceBuffer buffer(count);
  check_cuda(cudaMemset(buffer.data(), 0, count * sizeof(float)), "cudaMemset");
  return buffer;
}

// Bytes per second that a kernel reads: `bytes` in each launch, of a region of `quads` float4.
template <class... Parameters, class... Arguments>
double measure_read(double bytes, int64_t quads, void (*kernel)(Parameters...),
                    Arguments... arguments) {
  const DeviceBuffer from = zeros(quads * 4), sink = zeros(1);
  const auto enqueue = [&] {
    kernel<<<grid_x(2 * multiprocessors()), READERS>>>(reinterpret_cast<const float4*>(from.data()),
                                                       arguments..., sink.data());
  };
  return bytes / (time_on_backend(enqueue, REPEATS).milliseconds * 1e-3);
}

double measure_past_l1(int64_t bytes, int rounds) {
  const auto quads = static_cast<int64_t>(bytes / sizeof(float4));
  return measure_read(static_cast<double>(bytes) * rounds, quads, read_past_l1, quads, rounds);
}

ReadRates measure_reads(int64_t dram_bytes, int64_t l2_bytes) {
  constexpr int ROUNDS = 4096;
  const int64_t blocks = 2 * multiprocessors();
  const double bytes =
      double{ROUNDS} * IN_FLIGHT * READERS * static_cast<double>(blocks) * sizeof(float4);
  ReadRates rates;
  rates.dram = measure_past_l1(dram_bytes / 16 * 16, 1);
  rates.l2 = measure_past_l1(l2_bytes / 4 / 4096 * 4096, 64);
  rates.l1 = measure_read(bytes, blocks * REGION, read_l1, ROUNDS);
  rates.shared = measure_read(bytes, blocks * REGION, read_shared, ROUNDS);
  return rates;
}

// Bytes of a region to measure DRAM with: `most`, far more than any L2 holds, if there is room.
int64_t dram_region(std::size_t most) {
  std::size_t free = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return static_cast<int64_t>(std::min(most, free / 4));
}

// Bytes per second, read and written.
double measure_copy(int64_t bytes) {
  const auto count = static_cast<int64_t>(bytes / sizeof(float));
  const DeviceBuffer from(count), to(count);
  const Timing timing = time_on_backend(
      [&] {
        check_cuda(cudaMemcpyAsync(to.data(), from.data(), count * sizeof(float),
                                   cudaMemcpyDeviceToDevice, nullptr),
                   "cudaMemcpyAsync");
      },
      REPEATS);
  return 2.0 * static_cast<double>(count) * sizeof(float) / (timing.milliseconds * 1e-3);
}

__global__ void do_nothing() {}

// Seconds that a launch takes at the least: of a row of them, all enqueued before the first begins.
double measure_launch(double l2_bytes) {
  constexpr int LAUNCHES = 256;
  Stopwatch stopwatch(l2_bytes);
  Samples samples;
  for (int i = 0; i < REPEATS; ++i) {
    stopwatch.time(
        [] {
          for (int launches = 0; launches < LAUNCHES; ++launches) do_nothing<<<1, 1>>>();
        },
        samples);
  }
  return 1e-3 * *std::min_element(samples.warm.begin(), samples.warm.end()) / LAUNCHES;
}

std::string version(int code) {  // 13000: "13.0"
  return std::to_string(code / 1000) + "." + std::to_string(code % 1000 / 10);
}

}  // namespace

Machine measure_machine() {
  require_device();
  int device = 0, runtime = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  char pci_bus_id[32] = "";
  check_cuda(cudaDeviceGetPCIBusId(pci_bus_id, sizeof pci_bus_id, device), "cudaDeviceGetPCIBusId");
  const int major = attribute(cudaDevAttrComputeCapabilityMajor, device);
  const int minor = attribute(cudaDevAttrComputeCapabilityMinor, device);

  Machine machine;
  machine.name = device_name();
  machine.pci_bus_id = pci_bus_id;
  machine.compute_capability = std::to_string(major) + "." + std::to_string(minor);
  machine.cuda_runtime = version(runtime);
  const Json state = query_gpu_state(machine.pci_bus_id);
  if (!state.is_null()) machine.driver = state["driver"];
  machine.multiprocessors = multiprocessors();
  machine.l2_bytes = attribute(cudaDevAttrL2CacheSize, device);
  machine.clock_hz = 1e3 * attribute(cudaDevAttrClockRate, device);
  machine.peak_flops = 2.0 * fp32_lanes(major, minor) * machine.multiprocessors * machine.clock_hz;
  machine.fma_flops = 2 * measure_loop(machine.multiprocessors, fma_loop, 0.999f, 0.5f);
  if (major >= 8) {
    constexpr double FLOP = 2.0 * 16 * 8 * 8 / 32;  // of a product, by thread
    machine.tf32_flops = FLOP * measure_loop(machine.multiprocessors, mma_loop, 1.0f);
  }
  if (major == 9 && minor == 0) machine.wgmma_flops = measure_wgmma(machine.multiprocessors);
  constexpr std::size_t GIB = std::size_t{1} << 30;
  machine.copy_bytes = measure_copy(dram_region(GIB));
  machine.read = measure_reads(dram_region(2 * GIB), static_cast<int64_t>(machine.l2_bytes));
  machine.launch_seconds = measure_launch(machine.l2_bytes);
  return machine;
}

}  // namespace convladder
