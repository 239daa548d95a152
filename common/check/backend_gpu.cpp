// The GPU half of backend.h.
#include <algorithm>
#include <vector>

#include "common/check/backend.h"
#include "common/check/event.h"
#include "common/core/launch.h"

namespace convladder {

bool on_gpu() { return true; }

const char* backend_name() { return "gpu"; }

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

}  // namespace convladder
