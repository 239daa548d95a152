// What stops a kernel.
#pragma once

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

namespace convladder::simulator {

// Thrown inside a kernel, or by a worker with block and thread added. Never leaves the simulator:
// the host gets `code` from cudaGetLastError() and the message from cudaGetErrorString().
struct KernelError : std::runtime_error {
  KernelError(cudaError_t code, const std::string& message)
      : std::runtime_error(message), code(code) {}
  cudaError_t code;
};

}  // namespace convladder::simulator
