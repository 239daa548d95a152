// What a GPU can do at the most, for floor.h: common/machines/*.json.
#pragma once

#include <string>
#include <vector>

namespace convladder {

// The most that any kernel can reach; 0 where nothing has measured it.
struct MachineRates {
  std::string gpu;  // "NVIDIA H200"
  double multiprocessors = 0;
  double clock_hz = 0;              // the highest
  double fmas_per_cycle = 0;        // FP32, of a multiprocessor
  double wavefronts_per_cycle = 0;  // of L1's data pipe, 128 bytes each, of a multiprocessor
  double dram_bytes = 0;            // per second: the faster of a copy and of reading alone
  double l2_bytes = 0;              // that L2 holds
  double fma_flops = 0;             // per second: what a loop of nothing but FMAs reaches
  double launch_seconds = 0;        // from one empty kernel to the next
  double tf32_flops = 0;            // per second, of the tensor cores
};

// One figure of the file, in the file's unit, and what it was taken from.
struct MachineFigure {
  std::string name;
  double value;
  std::string source;
};

// Throws std::runtime_error naming the file and what is wrong with it: not JSON, of another version, a
// figure that is missing, unknown, there twice or not above 0. launch_us and tf32_tflops may be missing.
MachineRates read_machine(const std::string& path);

// Writes what read_machine() reads; figures of 0 are left out.
void write_machine(const std::string& path, const std::string& gpu,
                   const std::vector<MachineFigure>& figures);

}  // namespace convladder
