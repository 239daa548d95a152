#include "common/harness/stopwatch.h"

#include "common/core/launch.h"

namespace convladder {

Stopwatch::Stopwatch(double l2_bytes)
    : flush_(static_cast<int64_t>(2 * l2_bytes / sizeof(float))) {}

// Nothing is waited for in between: while the flush runs, the rest is enqueued, so that the GPU
// never waits for the host inside a timed window.
void Stopwatch::time(const std::function<void()>& enqueue, Samples& samples) {
  const std::size_t bytes = static_cast<std::size_t>(flush_.count()) * sizeof(float);
  check_cuda(cudaMemsetAsync(flush_.data(), 0, bytes, nullptr), "cudaMemsetAsync");
  start_.record();
  enqueue();
  between_.record();
  enqueue();
  stop_.record();
  samples.warm.push_back(stop_.milliseconds_since(between_));
  samples.cold.push_back(between_.milliseconds_since(start_));
}

}  // namespace convladder
