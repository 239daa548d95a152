// Gathers what the workers count during a launch.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "common/io/symbols.h"
#include "common/simulator/counting/arithmetic.h"
#include "common/simulator/counting/device_memory.h"
#include "common/simulator/counts.h"

namespace convladder::simulator {

// The launch under way, as the workers see it.
struct Launch {
  uint64_t number = 0;  // counts up
  std::string kernel;   // its name
  const BlockProducts* products = nullptr;
  const void* argument = nullptr;  // of the kernel: constant memory on a GPU
  std::size_t argument_bytes = 0;
  std::vector<SharedVariable> shared;
  Allocations memory;
};

class LaunchCounts {
 public:
  static LaunchCounts& instance();

  void begin(const void* kernel, const void* argument, std::size_t argument_bytes);
  void end();
  void add(const KernelCounts& block);  // of the launch under way
  const Launch& launch() const { return launch_; }

  void add_finished(const KernelCounts& counts);
  std::vector<KernelCounts> take();

 private:
  std::mutex mutex_;
  Launch launch_;
  KernelCounts counts_;
  LaunchWork work_;
  std::vector<KernelCounts> finished_;
};

}  // namespace convladder::simulator
