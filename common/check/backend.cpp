#include "common/check/backend.h"

#include <fmt/format.h>

#include <fstream>
#include <stdexcept>

#include "common/core/launch.h"

namespace convladder {
namespace {

constexpr double GIB = 1024.0 * 1024.0 * 1024.0;

// Bytes that new allocations can take without swapping; a negative value where it isn't known.
double available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  double kib = 0;
  while (file >> key >> kib) {
    if (key == "MemAvailable:") return kib * 1024;
    std::getline(file, unit);
  }
  return -1;
}

}  // namespace

void require_host_memory(double bytes) {
  const double available = available_memory();
  if (available < 0 || bytes <= available) return;
  throw std::runtime_error(fmt::format(
      "out of host memory: the problem needs about {:.1f} GiB, {:.1f} GiB are available",
      bytes / GIB, available / GIB));
}

double free_device_memory() {
  std::size_t free = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return static_cast<double>(free);
}

}  // namespace convladder
