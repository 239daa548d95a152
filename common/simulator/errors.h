// What stops a kernel, and the error that cudaGetLastError() gives.
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

// Makes `error` the calling host thread's last error, unless it is cudaSuccess, and returns it.
// `detail` is what cudaGetErrorString() adds to the name, until the next error.
cudaError_t set_last_error(cudaError_t error, const std::string& detail = "");

}  // namespace convladder::simulator
