// What stops a kernel, and the error that cudaGetLastError() gives.
#pragma once

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#include "common/simulator/device_calls.h"

namespace convladder::simulator {

// Thrown inside a kernel, or by a worker with block and thread added. Never leaves the simulator:
// the host gets `code` from cudaGetLastError() and the message from cudaGetErrorString().
struct KernelError : std::runtime_error {
  KernelError(cudaError_t code, const std::string& message)
      : std::runtime_error(message), code(code) {}
  cudaError_t code;
};

// Throws what is wrong with a __pipeline_memcpy_async().
[[noreturn]] void fail_copy(cudaError_t code, const char* what, Place place);

// Makes `error` the calling host thread's last error, unless it is cudaSuccess, and returns it.
// `detail` is what cudaGetErrorString() adds to the name, until the next error.
cudaError_t set_last_error(cudaError_t error, const std::string& detail = "");

// The error of a program's kernel that has failed (is_program() in launch.h), made the last error once more;
// cudaSuccess without one.
cudaError_t failed_before();

}  // namespace convladder::simulator
