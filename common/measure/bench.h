// What `bench` measures: rates of the machine, statistics of times, and the physical floor below which
// no time can be.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/check/record.h"
#include "common/core/conv_shape.h"
#include "common/core/stage.h"
#include "common/measure/competitor.h"
#include "common/measure/gpu_state.h"
#include "common/measure/memory_rates.h"
#include "common/measure/work.h"

namespace convladder {

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
  double copy_bytes = 0;  // per second, read and written: a copy inside device memory, measured
  MemoryRates read_rates;
  double launch_seconds =
      0;  // from one empty kernel's begin to the next one's, the least of several
  std::map<std::string, std::string>
      libraries;  // versions of the competitors': {"cudnn", "9.19.0"}
};

// Measures the current device: some 0.5 s. Throws CudaError; in a build without a GPU UsageError,
// since the simulator's times say nothing.
Machine measure_machine();

// Of times in milliseconds.
struct Statistics {
  int count = 0;
  double least = 0, lower_quartile = 0, median = 0, upper_quartile = 0, most = 0;
};

// Quantiles between two samples are interpolated. Throws InvalidArgument without samples.
Statistics summarise(std::vector<double> samples);

enum class Cache { kCold, kWarm };

// Milliseconds that the work takes at the least: its FLOP at the peak, or its bytes at the rate of
// the copy, whichever is longer. With a warm cache, an L2 full of bytes needs no trip to memory.
double floor_ms(const Work& work, const Machine& machine, Cache cache);

// One stage on one problem. The record's status can also be "impossible": right results, in a time
// below the floor.
struct BenchRecord {
  Record record;
  std::optional<Statistics> cold, warm;  // none if the stage failed or didn't run
  int host_late = 0;  // of the runs that count: times that may contain the host's (stopwatch.h)
  Precision precision = Precision::kFp32;  // of a stage
};

// One competitor on one problem. `bench.record.stage` is its label().
struct CompetitorRecord {
  CompetitorInfo info;
  std::string algorithm;  // empty if it got no further
  BenchRecord bench;
};

// One problem.
struct BenchResult {
  std::string problem;
  bool bias = true;
  std::optional<ConvShape> shape;         // none: the problem was rejected
  std::string error;                      // what ended it early; empty: nothing did
  std::optional<GpuState> before, after;  // the timed runs; none without nvidia-smi
  std::vector<BenchRecord> records;       // by stage, in the ladder's order
  std::vector<CompetitorRecord> competitors;
};

// Turns the times of a record that has passed into its statistics.
void set_times(BenchRecord& bench, const Samples& samples);

// Gives a record that has passed the status "impossible" if a median lies below its floor.
void flag_impossible(BenchRecord& record, const Work& work, const Machine& machine);

// Bytes of device memory for trials (trial.h) of all `stages` at once, what allocation rounds up
// included. Throws InvalidArgument where a stage can't take the shape.
double trial_bytes(const std::vector<Stage>& stages, const ConvShape& shape, bool bias);

// The largest batch, at most shape.N, for which `bytes` of the shape is at most `available`; 0 if
// not even one image fits.
int largest_batch(ConvShape shape, double available,
                  const std::function<double(const ConvShape&)>& bytes);

// "out of device memory: 34 bytes needed for `what`, 12 free; --batch 2 would fit"; `batch` 0: none.
std::string memory_shortage(double needed, const std::string& what, double available, int batch);

}  // namespace convladder
