// The rest of the runtime API: the device, streams and events.
#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <cstdio>

#include "common/simulator/errors.h"

using namespace convladder::simulator;
using Clock = std::chrono::steady_clock;

static std::atomic<int> multiprocessors{132};  // an H200's

// All work is done when a call returns: there is nothing else to remember.
struct CUstream_st {
  std::atomic<int64_t> work{0};
};
static CUstream_st default_stream;

struct CUevent_st {
  bool timing;
  Clock::time_point recorded = {};
};

namespace convladder::simulator {

int64_t work_on(cudaStream_t stream) { return (stream ? stream : &default_stream)->work; }

void note_work(cudaStream_t stream) { ++(stream ? stream : &default_stream)->work; }

void set_multiprocessors(int count) { multiprocessors = count; }

}  // namespace convladder::simulator

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
