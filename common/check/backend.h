// Where the kernels run, and how long they take there.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <string>

namespace convladder {

#ifdef CUDART_VERSION
constexpr bool on_gpu() { return true; }
#else
constexpr bool on_gpu() { return false; }
#endif
const char* backend_name();  // "gpu" or "sim", as in CONVLADDER_BACKEND
std::string device_name();   // "NVIDIA H200", or "simulator, 2 cores"

// Throws CudaError, with the runtime's reason, when this is a GPU build and there is no GPU.
void require_device();

// Throws std::runtime_error when `bytes` of host memory are more than the machine has left: better
// one clear line than a program that is killed.
void require_host_memory(double bytes);

// Bytes that can still be allocated on the device. Throws CudaError.
double free_device_memory();

struct Timing {
  double milliseconds = 0;  // median
  int runs = 0;
};

// Runs `enqueue` (on the default stream) and waits for it. GPU: CUDA events around each of `runs`
// calls, each right behind another call: caches are warm, and the GPU is busy while the host
// enqueues what is timed. Where a call keeps the host longer than the GPU, the time is the host's
// all the same (for a competitor there is stopwatch.h). Simulator: the wall time of a single call.
Timing time_on_backend(const std::function<void()>& enqueue, int runs);

}  // namespace convladder
