// Gathers what the workers count during a launch.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "common/simulator/counting/device_memory.h"
#include "common/simulator/counts.h"
#include "common/simulator/symbols.h"

namespace convladder::simulator {

// The launch under way, as the workers see it.
struct Launch {
  uint64_t number = 0;             // counts up
  std::string kernel;              // its name
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
  std::vector<KernelCounts> finished_;
};

}  // namespace convladder::simulator
