// Times what is enqueued on the GPU, with a cold and a warm L2.
#pragma once

#include <functional>
#include <vector>

#include "common/harness/device_buffer.h"
#include "common/harness/event.h"

namespace convladder {

struct Samples {
  std::vector<double> cold, warm;  // ms
};

class Stopwatch {
 public:
  // Throws CudaError when there is no room for the buffer that flushes the L2: twice its size.
  explicit Stopwatch(double l2_bytes);

  // Runs `enqueue` (on the default stream) twice, cold and then warm: one sample for each list.
  // What goes wrong in a kernel is thrown here, as CudaError.
  void time(const std::function<void()>& enqueue, Samples& samples);

 private:
  DeviceBuffer flush_;
  Event start_, between_, stop_;
};

}  // namespace convladder
