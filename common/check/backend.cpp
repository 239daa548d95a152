#include "common/check/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "common/check/event.h"
#include "common/core/launch.h"
#include "common/core/platform.h"

namespace convladder {
namespace {

constexpr double GIB = 1024.0 * 1024.0 * 1024.0;

}  // namespace

void require_host_memory(double bytes) {
  const auto available = static_cast<double>(host_memory().free);
  if (bytes <= available) return;
  throw std::runtime_error(fmt::format(
      "out of host memory: the problem needs about {:.1f} GiB, {:.1f} GiB are available",
      bytes / GIB, available / GIB));
}

double free_device_memory() {
  std::size_t free = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return static_cast<double>(free);
}

const char* backend_name() { return on_gpu() ? "gpu" : "sim"; }

#ifdef CUDART_VERSION

std::string device_name() {
  cudaDeviceProp properties;
  check_cuda(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  return properties.name;
}

void require_device() {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  check_cuda(code, "no GPU can be used (try --backend sim)");
  if (count == 0) throw CudaError("there is no GPU (try --backend sim)");
}

Timing time_on_backend(const std::function<void()>& enqueue, int runs) {
  Event start, stop;
  std::vector<double> times;
  for (int run = 0; run < runs; ++run) {
    enqueue();
    start.record();
    enqueue();
    stop.record();
    times.push_back(stop.milliseconds_since(start));
  }
  std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
  return {times[runs / 2], runs};
}

#else  // the simulator

std::string device_name() {
  return fmt::format("simulator, {} cores", std::max(1u, std::thread::hardware_concurrency()));
}

void require_device() {}

Timing time_on_backend(const std::function<void()>& enqueue, int /*runs*/) {
  using Clock = std::chrono::steady_clock;
  simulator::plan_launches(enqueue);  // reads the kernels' names, which takes longer than many run
  const Clock::time_point start = Clock::now();
  enqueue();
  check_cuda(cudaDeviceSynchronize(), "running the stage");
  return {std::chrono::duration<double, std::milli>(Clock::now() - start).count(), 1};
}

#endif

}  // namespace convladder
