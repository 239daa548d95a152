// The runtime API but for memory: errors, the device, streams and events.
#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <cstdio>

#include "common/simulator/errors.h"
#include "common/simulator/fault.h"

using namespace convladder::simulator;
using Clock = std::chrono::steady_clock;

// All work is done when a call returns: there is nothing else to remember.
struct CUstream_st {
  std::atomic<int64_t> work{0};
};

struct CUevent_st {
  bool timing;
  Clock::time_point recorded = {};
};

namespace {

CUstream_st default_stream;
std::atomic<int> multiprocessors{132};  // an H200's

// The fault that a test asks for, without a lock: a forked process may find that held.
constexpr int64_t HAPPENED = -1, NONE = -2;
std::atomic<Call> faulty;
std::atomic<int64_t> left{NONE};  // calls until then

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

int64_t work_on(cudaStream_t stream) { return (stream ? stream : &default_stream)->work; }

void note_work(cudaStream_t stream) { ++(stream ? stream : &default_stream)->work; }

void set_multiprocessors(int count) { multiprocessors = count; }

void inject_fault(Call call, int64_t skip) {
  faulty = call;
  left = skip;
}

bool clear_fault() { return left.exchange(NONE) == HAPPENED; }

bool fault_due(Call call) { return left >= 0 && call == faulty && left.fetch_sub(1) == 0; }

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

cudaError_t cudaGetDeviceCount(int* count) {
  if (!count) return set_last_error(cudaErrorInvalidValue);
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  if (!device) return set_last_error(cudaErrorInvalidValue);
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  return set_last_error(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (!properties) return set_last_error(cudaErrorInvalidValue);
  if (device != 0) return set_last_error(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof(properties->name), "ConvLadder simulator");
  std::size_t free = 0;
  cudaMemGetInfo(&free, &properties->totalGlobalMem);
  properties->sharedMemPerBlock = std::size_t{48} * 1024;
  properties->warpSize = warpSize;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = 1024;
  properties->maxThreadsDim[2] = 64;
  properties->maxGridSize[0] = 0x7fffffff;
  properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
  properties->multiProcessorCount = multiprocessors;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (!value || attribute != cudaDevAttrMultiProcessorCount) {
    return set_last_error(cudaErrorInvalidValue);
  }
  if (device != 0) return set_last_error(cudaErrorInvalidDevice);
  *value = multiprocessors;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (!stream || flags > cudaStreamNonBlocking) return set_last_error(cudaErrorInvalidValue);
  *stream = new CUstream_st;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (!stream) return set_last_error(cudaErrorInvalidResourceHandle);
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (!event) return set_last_error(cudaErrorInvalidValue);
  *event = new CUevent_st{!(flags & cudaEventDisableTiming)};
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (!event) return set_last_error(cudaErrorInvalidResourceHandle);
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  if (!event) return set_last_error(cudaErrorInvalidResourceHandle);
  event->recorded = Clock::now();
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return set_last_error(event ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventQuery(cudaEvent_t event) { return cudaEventSynchronize(event); }

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  if (!milliseconds) return set_last_error(cudaErrorInvalidValue);
  for (auto* event : {start, stop}) {
    if (!event || !event->timing || event->recorded == Clock::time_point()) {
      return set_last_error(cudaErrorInvalidResourceHandle);
    }
  }
  *milliseconds =
      std::chrono::duration<float, std::milli>(stop->recorded - start->recorded).count();
  return cudaSuccess;
}
