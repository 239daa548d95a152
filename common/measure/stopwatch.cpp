#include "common/measure/stopwatch.h"

#include <algorithm>

#include "common/core/launch.h"

namespace convladder {

void Samples::drop() {
  cold.clear();
  warm.clear();
  host_late = 0;
}

Stopwatch::Stopwatch(double l2_bytes)
    : flush_(static_cast<int64_t>(2 * l2_bytes / sizeof(float))) {}

void Stopwatch::time(const std::function<void()>& enqueue, Samples& samples) {
  bool in_time = enqueue_in_time(enqueue, samples.flushes);
  while (!in_time && samples.flushes < FLUSHES_AT_MOST) {  // the measurement is void: once more
    samples.flushes = std::min(2 * samples.flushes, FLUSHES_AT_MOST);
    in_time = enqueue_in_time(enqueue, samples.flushes);
  }
  samples.host_late += !in_time;
  samples.warm.push_back(stop_.milliseconds_since(between_));
  samples.cold.push_back(between_.milliseconds_since(start_));
}

// Waits for nothing in between, and says whether the GPU was still at the flushes when all the rest
// was enqueued.
bool Stopwatch::enqueue_in_time(const std::function<void()>& enqueue, int flushes) {
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
