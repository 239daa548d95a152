// Times what is enqueued on the GPU, with a cold and a warm L2.
//
// A call of a library can keep the host longer than the GPU. A GPU that comes to it too early waits
// for the host, and the time is the host's. So it gets flushes of the L2 to do until everything has
// been enqueued. common/measure/time_pytorch.py keeps to the same rule.
#pragma once

#include <functional>
#include <vector>

#include "common/check/device_buffer.h"
#include "common/check/event.h"

namespace convladder {

// Flushes ahead of a measurement: each writes twice the L2, at the rate of DRAM.
constexpr int FLUSHES_AT_FIRST = 16, FLUSHES_AT_MOST = 1024;

// What was timed of one call.
struct Samples {
  std::vector<double> cold, warm;  // ms
  int host_late = 0;               // of the pairs: those that the GPU began before all was enqueued
  int flushes = FLUSHES_AT_FIRST;  // ahead of the next pair: what the host has needed so far

  void drop();  // the times; `flushes` stays
};

class Stopwatch {
 public:
  // Throws CudaError when there is no room for the buffer that flushes the L2: twice its size.
  explicit Stopwatch(double l2_bytes);

  // Runs `enqueue` (on the default stream) twice, cold and then warm: one sample for each list.
  // Both runs are repeated while the host is late. What goes wrong in a kernel is thrown here, as
  // CudaError.
  void time(const std::function<void()>& enqueue, Samples& samples);

 private:
  bool enqueue_in_time(const std::function<void()>& enqueue, int flushes);

  DeviceBuffer flush_;
  Event start_, between_, stop_;
};

}  // namespace convladder
