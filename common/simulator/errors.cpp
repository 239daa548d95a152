#include "common/simulator/errors.h"

namespace {

struct Description {
  cudaError_t code;
  const char* text;
};

constexpr Description DESCRIPTIONS[] = {
    {cudaSuccess, "no error"},
    {cudaErrorInvalidValue, "invalid argument"},
    {cudaErrorMemoryAllocation, "out of memory"},
    {cudaErrorInvalidConfiguration, "invalid configuration argument"},
    {cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"},
    {cudaErrorInvalidDevice, "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "invalid resource handle"},
    {cudaErrorNotReady, "device not ready"},
    {cudaErrorIllegalAddress, "illegal memory access"},
    {cudaErrorMisalignedAddress, "misaligned address"},
    {cudaErrorLaunchFailure, "the kernel failed"},
    {cudaErrorUnknown, "unknown error"},
};

const char* describe(cudaError_t code) {
  for (const Description& description : DESCRIPTIONS) {
    if (description.code == code) return description.text;
  }
  return "unrecognized error code";
}

thread_local cudaError_t last_error = cudaSuccess;
thread_local cudaError_t detailed_error = cudaSuccess;
thread_local std::string detailed_text;

}  // namespace

namespace convladder::simulator {

cudaError_t set_last_error(cudaError_t error, const std::string& detail) {
  if (error == cudaSuccess) return error;
  last_error = error;
  detailed_error = detail.empty() ? cudaSuccess : error;
  detailed_text = std::string(describe(error)) + " (" + detail + ")";
  return error;
}

}  // namespace convladder::simulator

const char* cudaGetErrorString(cudaError_t error) {
  const bool detailed = error != cudaSuccess && error == detailed_error;
  return detailed ? detailed_text.c_str() : describe(error);
}

cudaError_t cudaPeekAtLastError() { return last_error; }

cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}
