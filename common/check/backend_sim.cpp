// The simulator half of backend.h.
#include <algorithm>
#include <chrono>
#include <thread>

#include "common/check/backend.h"
#include "common/core/launch.h"

namespace convladder {

bool on_gpu() { return false; }

const char* backend_name() { return "sim"; }

std::string device_name() {
  return "simulator, " + std::to_string(std::max(1u, std::thread::hardware_concurrency())) +
         " cores";
}

void require_device() {}

Timing time_on_backend(const std::function<void()>& enqueue, int /*runs*/) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  enqueue();
  check_cuda(cudaDeviceSynchronize(), "running the stage");
  return {std::chrono::duration<double, std::milli>(Clock::now() - start).count(), 1};
}

}  // namespace convladder
