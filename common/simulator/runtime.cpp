// The runtime API but for memory: errors, the device, streams and events.
#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "common/core/program.h"
#include "common/simulator/enqueueing.h"
#include "common/simulator/errors.h"
#include "common/simulator/fault.h"
#include "common/simulator/launch.h"
#include "common/simulator/observer.h"
#include "common/simulator/report.h"
#include "common/simulator/shared_memory.h"

using namespace convladder::simulator;
using Clock = std::chrono::steady_clock;

// All work is done when a call returns: there is nothing else to remember.
struct CUstream_st {
  unsigned flags = cudaStreamDefault;
  int priority = 0;
  std::atomic<int64_t> work{0};
};

struct CUevent_st {
  bool timing;
  Clock::time_point recorded = {};
};

namespace {

CUstream_st default_stream;
constexpr int GREATEST_PRIORITY = -5;
std::atomic<int> multiprocessors{132};  // an H200's

// The streams and events that there are: a program may come with one that it has destroyed.
class Handles {
 public:
  bool hold(const void* handle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return handles_.count(handle) > 0;
  }
  template <typename Handle>
  Handle* make(Handle* handle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    handles_.insert(handle);
    return handle;
  }
  template <typename Handle>
  cudaError_t destroy(Handle* handle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (handles_.erase(handle) == 0) return set_last_error(cudaErrorInvalidResourceHandle);
    delete handle;
    return cudaSuccess;
  }

 private:
  std::mutex mutex_;
  std::unordered_set<const void*> handles_;
};
Handles& handles() {
  static Handles all;
  return all;
}

// What cudaStreamLegacy and cudaStreamPerThread stand for, and no stream.
CUstream_st& stream_of(cudaStream_t stream) {
  return handles().hold(stream) ? *stream : default_stream;
}

// An H200's, but for its memory.
cudaDeviceProp properties() {
  cudaDeviceProp p = {};
  std::snprintf(p.name, sizeof(p.name), "ConvLadder simulator");
  std::size_t free = 0;
  cudaMemGetInfo(&free, &p.totalGlobalMem);
  p.sharedMemPerBlock = DYNAMIC_BYTES;
  p.sharedMemPerBlockOptin = MOST_DYNAMIC_BYTES;
  p.sharedMemPerMultiprocessor = MOST_DYNAMIC_BYTES + BLOCK_BYTES;
  p.regsPerBlock = p.regsPerMultiprocessor = 65536;
  p.warpSize = warpSize;
  p.memPitch = INT_MAX;
  p.maxThreadsPerBlock = 1024;
  p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = INT_MAX;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.maxThreadsPerMultiProcessor = 2048;
  p.maxBlocksPerMultiProcessor = 32;
  p.computePreemptionSupported = 1;
  p.multiProcessorCount = multiprocessors;
  p.clockRate = 1980000;
  p.memoryClockRate = 3201000;
  p.memoryBusWidth = 6144;
  p.l2CacheSize = 60 << 20;
  p.persistingL2CacheMaxSize = p.l2CacheSize / 4 * 3;  // this and the next as an A100's: not asked
  p.accessPolicyMaxWindowSize = 128 << 20;
  p.totalConstMem = 65536;
  p.textureAlignment = p.surfaceAlignment = 512;
  p.texturePitchAlignment = 32;
  constexpr int MOST_1D = 1 << 17, MOST_2D = 1 << 16, MOST_3D = 1 << 14, MOST_LAYERED = 1 << 15;
  p.maxTexture1D = p.maxTexture2D[0] = MOST_1D;
  p.maxTexture2D[1] = MOST_2D;
  for (int& extent : p.maxTexture3D) extent = MOST_3D;
  p.maxTexture1DLayered[0] = p.maxTexture2DLayered[0] = p.maxTexture2DLayered[1] = MOST_LAYERED;
  p.maxTexture1DLayered[1] = p.maxTexture2DLayered[2] = 2048;
  p.major = is_program() ? 9 : 0;
  p.asyncEngineCount = 3;
  for (int* yes : {&p.deviceOverlap, &p.canMapHostMemory, &p.concurrentKernels, &p.ECCEnabled,
                   &p.unifiedAddressing, &p.streamPrioritiesSupported, &p.globalL1CacheSupported,
                   &p.localL1CacheSupported, &p.managedMemory, &p.concurrentManagedAccess,
                   &p.cooperativeLaunch, &p.memoryPoolsSupported}) {
    *yes = 1;
  }
  return p;
}

// What a block of the kernel takes of a multiprocessor's shared memory.
std::size_t shared_bytes(const void* kernel, std::size_t dynamic_bytes) {
  return static_shared_bytes(kernel) + dynamic_bytes + BLOCK_BYTES;
}

int resident_blocks(const void* kernel, int threads, std::size_t dynamic_bytes) {
  const cudaDeviceProp p = properties();
  if (threads > p.maxThreadsPerBlock || dynamic_bytes > dynamic_limit(kernel) ||
      dynamic_bytes + static_shared_bytes(kernel) > MOST_DYNAMIC_BYTES) {
    return 0;
  }
  const int warps = (threads + warpSize - 1) / warpSize;
  const auto by_memory =
      static_cast<int>(p.sharedMemPerMultiprocessor / shared_bytes(kernel, dynamic_bytes));
  return std::min(
      {p.maxBlocksPerMultiProcessor, p.maxThreadsPerMultiProcessor / warpSize / warps, by_memory});
}

// As CUDA begins with them, by cudaLimit. That of the heap is kept (memory.cpp); nothing acts on the others here.
std::atomic<std::size_t> limits[] = {1024, 1 << 20, 8 << 20, 2, 2048, 64, 0};

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
std::atomic<cudaError_t> failure{cudaSuccess};  // of a program's kernel: every call meets it again

}  // namespace

namespace convladder::simulator {

bool is_stream(cudaStream_t stream) {
  return reinterpret_cast<uintptr_t>(stream) <= 2 || handles().hold(stream);
}

int64_t work_on(cudaStream_t stream) { return stream_of(stream).work; }

void note_work(cudaStream_t stream) {
  Enqueueing::note_stream(stream);
  ++stream_of(stream).work;
}

bool is_program() {
  static const bool is = COUNTING && std::getenv("CONVLADDER_SIM_REPORT") != nullptr;
  return is;
}

namespace {
std::mutex launchers_mutex;
std::unordered_map<const void*, Launcher>& launchers() {
  static auto* all = new std::unordered_map<const void*, Launcher>;  // outlives every other static
  return *all;
}
}  // namespace

void note_launcher(const void* kernel, Launcher launcher) {
  const std::lock_guard lock(launchers_mutex);
  launchers()[kernel] = launcher;
}

cudaError_t launch_known(const void* kernel, dim3 blocks, dim3 threads, void** arguments,
                         std::size_t dynamic_bytes, cudaStream_t stream, LaunchKind kind) {
  Launcher launcher = nullptr;
  {
    const std::lock_guard lock(launchers_mutex);
    if (const auto found = launchers().find(kernel); found != launchers().end()) {
      launcher = found->second;
    }
  }
  if (!launcher) {
    if constexpr (COUNTING) {
      if (is_program()) {
        add_finding("", 0, 0, [] {
          return "the launch at " + calling_line() +
                 ": no kernel is known at the address that it is given";
        });
      }
    }
    return set_last_error(cudaErrorInvalidDeviceFunction);
  }
  launcher(kernel, blocks, threads, arguments, dynamic_bytes, stream, kind);
  return cudaPeekAtLastError();
}

bool read_attributes(const cudaLaunchConfig_t& config, LaunchKind& kind) {
  kind = LaunchKind::kPlain;
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const auto& [id, value] = config.attrs[i];
    const auto& cluster = value.clusterDim;
    if (id == cudaLaunchAttributeClusterDimension &&
        (cluster.x != 1 || cluster.y != 1 || cluster.z != 1)) {
      if (!is_program()) set_last_error(cudaErrorNotSupported);  // an enqueue asks for no errors
      return false;
    }
    if (id == cudaLaunchAttributeProgrammaticStreamSerialization &&
        value.programmaticStreamSerializationAllowed) {
      kind = LaunchKind::kEarly;
    }
    if (id == cudaLaunchAttributeCooperative && value.cooperative) {
      kind = LaunchKind::kCooperative;
    }
  }
  return true;
}

cudaError_t failed_before() {
  // Behind a kernel of a stage that failed, until somebody asks, none runs: on a GPU none would.
  if (!is_program() && last_error != cudaSuccess && last_error == detailed_error) return last_error;
  return failure == cudaSuccess ? cudaSuccess : set_last_error(failure);
}

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
  if (is_program()) {
    if (!detail.empty()) failure = error;
    return error;
  }
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

cudaError_t cudaPeekAtLastError() {
  failed_before();
  return last_error;
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
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

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* result, int device) {
  if (!result) return set_last_error(cudaErrorInvalidValue);
  if (device != 0) return set_last_error(cudaErrorInvalidDevice);
  *result = properties();
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (!value) return set_last_error(cudaErrorInvalidValue);
  if (device != 0) return set_last_error(cudaErrorInvalidDevice);
  const cudaDeviceProp p = properties();
  switch (attribute) {
#define CONVLADDER_CASE(name, number, member) \
  case cudaDevAttr##name:                     \
    *value = static_cast<int>(p.member);      \
    return cudaSuccess;
    CONVLADDER_ATTRIBUTES(CONVLADDER_CASE)
#undef CONVLADDER_CASE
  }
  return set_last_error(cudaErrorInvalidValue);
}

cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp*) { return cudaGetDevice(device); }

cudaError_t cudaDeviceSynchronize() {
  Enqueueing::note("waits for the device");
  last_kernel_may_run = false;
  return failed_before();
}

cudaError_t cudaDeviceReset() {
  Enqueueing::note("resets the device");
  failure = last_error = cudaSuccess;
  free_device_memory();
  return cudaSuccess;
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, std::size_t value) {
  if (limit > cudaLimitPersistingL2CacheSize ||
      (limit == cudaLimitMallocHeapSize && is_heap_used())) {
    return set_last_error(cudaErrorInvalidValue);
  }
  limits[limit] = value;
  return cudaSuccess;
}

constexpr char BUS_ID[] = "0000:00:00.0";

cudaError_t cudaDeviceGetPCIBusId(char* id, int bytes, int device) {
  if (device != 0) return set_last_error(cudaErrorInvalidDevice);
  if (!id || bytes < static_cast<int>(sizeof(BUS_ID))) return set_last_error(cudaErrorInvalidValue);
  std::memcpy(id, BUS_ID, sizeof(BUS_ID));
  return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* id) {
  if (!device || !id) return set_last_error(cudaErrorInvalidValue);
  if (std::strcmp(id, BUS_ID) != 0) return set_last_error(cudaErrorInvalidDevice);
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetLimit(std::size_t* value, cudaLimit limit) {
  if (!value || limit > cudaLimitPersistingL2CacheSize) {
    return set_last_error(cudaErrorInvalidValue);
  }
  *value = limits[limit];
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }

cudaError_t cudaRuntimeGetVersion(int* version) {
  if (!version) return set_last_error(cudaErrorInvalidValue);
  *version = 12080;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = GREATEST_PRIORITY;
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  if (!can) return set_last_error(cudaErrorInvalidValue);
  *can = 0;  // there is one device
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) {
  return set_last_error(cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceDisablePeerAccess(int) {
  return set_last_error(cudaErrorPeerAccessNotEnabled);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  if (!attributes || !kernel) return set_last_error(cudaErrorInvalidDeviceFunction);
  *attributes = {};
  attributes->sharedSizeBytes = static_shared_bytes(kernel);
  attributes->maxThreadsPerBlock = 1024;
  attributes->maxDynamicSharedSizeBytes = static_cast<int>(dynamic_limit(kernel));
  attributes->ptxVersion = attributes->binaryVersion = 90;
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel,
                                                          int threads, std::size_t dynamic_bytes) {
  if (!blocks || threads <= 0) return set_last_error(cudaErrorInvalidValue);
  *blocks = resident_blocks(kernel, threads, dynamic_bytes);
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (!stream || flags > cudaStreamNonBlocking) return set_last_error(cudaErrorInvalidValue);
  Enqueueing::note("makes a stream");
  *stream = handles().make(new CUstream_st{flags});
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  const cudaError_t error = cudaStreamCreateWithFlags(stream, flags);
  if (error == cudaSuccess) (*stream)->priority = std::clamp(priority, GREATEST_PRIORITY, 0);
  return error;
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  if (!flags) return set_last_error(cudaErrorInvalidValue);
  if (!is_stream(stream)) return set_last_error(cudaErrorInvalidResourceHandle);
  *flags = stream_of(stream).flags;
  return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  if (!priority) return set_last_error(cudaErrorInvalidValue);
  if (!is_stream(stream)) return set_last_error(cudaErrorInvalidResourceHandle);
  *priority = stream_of(stream).priority;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) { return handles().destroy(stream); }

cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaDeviceSynchronize(); }

cudaError_t cudaStreamQuery(cudaStream_t) {
  Enqueueing::note("asks how far the device is");
  last_kernel_may_run = false;
  return failed_before();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t event, unsigned) {
  last_kernel_may_run = false;
  return set_last_error(handles().hold(event) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t call, void* data,
                                  unsigned) {
  if (!call) return set_last_error(cudaErrorInvalidValue);
  last_kernel_may_run = false;
  call(stream, failure, data);
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t call, void* data) {
  if (!call) return set_last_error(cudaErrorInvalidValue);
  last_kernel_may_run = false;
  call(data);
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (!event) return set_last_error(cudaErrorInvalidValue);
  Enqueueing::note("makes an event");
  *event = handles().make(new CUevent_st{!(flags & cudaEventDisableTiming)});
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) { return handles().destroy(event); }

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  if (!handles().hold(event)) return set_last_error(cudaErrorInvalidResourceHandle);
  event->recorded = Clock::now();
  return failed_before();
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return handles().hold(event) ? cudaDeviceSynchronize()
                               : set_last_error(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  Enqueueing::note("asks how far the device is");
  last_kernel_may_run = false;
  return handles().hold(event) ? failed_before() : set_last_error(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  if (!milliseconds) return set_last_error(cudaErrorInvalidValue);
  for (auto* event : {start, stop}) {
    if (!handles().hold(event) || !event->timing || event->recorded == Clock::time_point()) {
      return set_last_error(cudaErrorInvalidResourceHandle);
    }
  }
  *milliseconds =
      std::chrono::duration<float, std::milli>(stop->recorded - start->recorded).count();
  return cudaSuccess;
}
