// The error that cudaGetLastError() gives.
#pragma once

#include <cuda_runtime.h>

#include <string>

namespace convladder::simulator {

// Makes `error` the calling host thread's last error, unless it is cudaSuccess, and returns it.
// `detail` is what cudaGetErrorString() adds to the name, until the next error.
cudaError_t set_last_error(cudaError_t error, const std::string& detail = "");

}  // namespace convladder::simulator
