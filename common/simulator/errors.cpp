#include "common/simulator/errors.h"

namespace {

struct Description {
  cudaError_t code;
  const char* name;
  const char* text;
};

#define CONVLADDER_DESCRIPTION(name, code, text) {name, #name, text},
constexpr Description DESCRIPTIONS[] = {CONVLADDER_CUDA_ERRORS(CONVLADDER_DESCRIPTION)};
#undef CONVLADDER_DESCRIPTION

const Description& describe(cudaError_t code) {
  for (const Description& description : DESCRIPTIONS) {
    if (description.code == code) return description;
  }
  static constexpr Description UNRECOGNIZED{cudaErrorUnknown, "unrecognized error code",
                                            "unrecognized error code"};
  return UNRECOGNIZED;
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
  detailed_text = std::string(describe(error).text) + " (" + detail + ")";
  return error;
}

}  // namespace convladder::simulator

const char* cudaGetErrorName(cudaError_t error) { return describe(error).name; }

const char* cudaGetErrorString(cudaError_t error) {
  const bool detailed = error != cudaSuccess && error == detailed_error;
  return detailed ? detailed_text.c_str() : describe(error).text;
}

cudaError_t cudaPeekAtLastError() { return last_error; }

cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}
