// A point in a stream's work, and the time between two of them on the device's own clock.
#pragma once

#include <cuda_runtime.h>

#include "common/core/launch.h"

namespace convladder {

class Event {
 public:
  Event() { check_cuda(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // Enqueued on the default stream.
  void record() { check_cuda(cudaEventRecord(event_), "cudaEventRecord"); }

  // Whether the GPU has come to it.
  bool reached() const {
    const cudaError_t code = cudaEventQuery(event_);
    if (code != cudaErrorNotReady) return check_cuda(code, "cudaEventQuery"), true;
    cudaGetLastError();  // no error, but the next launch would report it as one
    return false;
  }

  // Waits until both have happened.
  double milliseconds_since(const Event& start) const {
    float elapsed = 0;
    check_cuda(cudaEventSynchronize(event_), "cudaEventSynchronize");
    check_cuda(cudaEventElapsedTime(&elapsed, start.event_, event_), "cudaEventElapsedTime");
    return elapsed;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace convladder
