#include "common/measure/stopwatch.h"

#include <algorithm>

#include "common/core/launch.h"

namespace convladder {

void Samples::drop() {
  cold.clear();
  warm.clear();
  host_late = 0;
}

bool measure_in_time(int& flushes, const std::function<bool(int flushes)>& measure) {
  while (!measure(flushes)) {
    if (flushes >= FLUSHES_AT_MOST) return false;
    flushes = std::min(2 * flushes, FLUSHES_AT_MOST);
  }
  return true;
}

Stopwatch::Stopwatch(double l2_bytes)
    : flush_(static_cast<int64_t>(2 * l2_bytes / sizeof(float))) {}

void Stopwatch::time(const std::function<void()>& enqueue, Samples& samples) {
  const bool in_time = measure_in_time(
      samples.flushes, [&](int flushes) { return enqueue_in_time(flushes, enqueue); });
  if (!in_time) ++samples.host_late;
  samples.warm.push_back(stop_.milliseconds_since(between_));
  samples.cold.push_back(between_.milliseconds_since(start_));
}

// Waits for nothing in between, and says whether the GPU was still at the flushes when all the rest
// was enqueued.
bool Stopwatch::enqueue_in_time(int flushes, const std::function<void()>& enqueue) {
  const std::size_t bytes = static_cast<std::size_t>(flush_.count()) * sizeof(float);
  for (int i = 0; i < flushes; ++i) {
    check_cuda(cudaMemsetAsync(flush_.data(), 0, bytes, nullptr), "cudaMemsetAsync");
  }
  start_.record();
  enqueue();
  between_.record();
  enqueue();
  stop_.record();
  return !start_.reached();
}

}  // namespace convladder
