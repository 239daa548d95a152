// What `bench` knows of a machine, and what it makes of times: statistics, rates, and the physical floor
// below which no time can be.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/check/files.h"
#include "common/core/stage.h"
#include "common/measure/stopwatch.h"
#include "common/measure/work.h"

namespace convladder {

// Bytes per second that a level of memory gives when it is read, all multiprocessors together.
struct ReadRates {
  double dram = 0;    // a region far larger than L2, once
  double l2 = 0;      // a quarter of what L2 holds, 64 times
  double l1 = 0;      // 32 KiB per block, two blocks on each multiprocessor
  double shared = 0;  // shared memory, likewise
};

// The GPU, and what it can do at the most.
struct Machine {
  std::string name, pci_bus_id;
  std::string compute_capability;  // "9.0"
  std::string cuda_runtime;        // "13.0": the version this program is linked with
  std::string driver;              // "570.86.15"; empty without nvidia-smi
  int multiprocessors = 0;
  double l2_bytes = 0;
  double clock_hz = 0;    // the highest
  double peak_flops = 0;  // per second: what the FP32 units do at that clock
  double fma_flops = 0;   // per second: what a loop of nothing but FMAs reaches, measured
  double tf32_flops = 0;  // per second: what a loop of mma_tf32() reaches; 0: there is no such unit
  double wgmma_flops =
      0;  // per second: what a loop of wgmma reaches, in TF32; 0: there is no such unit
  double copy_bytes = 0;      // per second, read and written: a copy inside device memory, measured
  ReadRates read;             // measured
  double launch_seconds = 0;  // from one empty kernel's begin to the next one's, the least
  std::map<std::string, std::string> libraries;  // versions: {"cudnn", "9.19.0"}
};

// Measures the current device: some 0.8 s. Throws CudaError; in a build without a GPU UsageError,
// since the simulator's times say nothing.
Machine measure_machine();

// FLOP per second of wgmma in TF32, on a device of compute capability 9.0.
double measure_wgmma(int multiprocessors);

Json to_json(const Machine& machine);

// What nvidia-smi says of the GPU at `pci_bus_id` ("0000:3B:00.0"), which decides as well how long a
// kernel takes: its driver, clock, power and temperature, and what keeps the clock low. null where
// nvidia-smi is missing or fails.
Json query_gpu_state(const std::string& pci_bus_id);

// Sums up times in milliseconds: count, min, max, median and quartiles. Quantiles between two samples are
// interpolated. Throws InvalidArgument without samples.
Json statistics(std::vector<double> samples);

enum class Cache { kCold, kWarm };

// Milliseconds that the work takes at the least: its FLOP at the peak, or its bytes at the rate of
// the copy, whichever is longer. With a warm cache, an L2 full of bytes needs no trip to memory.
double floor_ms(const Work& work, const Machine& machine, Cache cache);

// Puts the times of what has passed into its record. A median below the floor gives it the status
// "impossible". `work` is without FLOP where they are not the FP32 units' work.
void add_times(Json& record, const Samples& samples, const Work& work, Precision precision,
               const Machine& machine);

}  // namespace convladder
