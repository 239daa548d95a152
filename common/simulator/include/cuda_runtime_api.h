// The simulator's <cuda_runtime_api.h>: what the host calls. The device says that it is an H200, unless a test
// has set another number of multiprocessors: a kernel that is launched according to it is launched alike on a
// GPU.
#pragma once

#include "common/simulator/include/names_begin.h"

#include <vector_types.h>

#include <cstddef>
#include <cstdint>

// What programs ask whether CUDA's headers have been included, and what they write before callbacks.
// NOLINTBEGIN(bugprone-reserved-identifier): they are CUDA's names
#define __CUDA_RUNTIME_API_H__
#define __CUDA_RUNTIME_H__
#define __DRIVER_TYPES_H__
// NOLINTEND(bugprone-reserved-identifier)
#define CUDART_CB
#define CUDARTAPI

// ---- Errors ----

// A launch that fails has failed when it returns. The last error belongs to the host thread that caused it, and
// reading it clears it, even where CUDA would keep it for good (a kernel that failed); but not in a program of
// ./ladder sim, which meets it again in every later call, as on a GPU. Many are here for programs that name them
// all, in a table of their own.
#define CONVLADDER_CUDA_ERRORS(ERROR)                                                             \
  ERROR(cudaSuccess, 0, "no error")                                                               \
  ERROR(cudaErrorInvalidValue, 1, "invalid argument")                                             \
  ERROR(cudaErrorMemoryAllocation, 2, "out of memory")                                            \
  ERROR(cudaErrorInitializationError, 3, "initialization error")                                  \
  ERROR(cudaErrorCudartUnloading, 4, "driver shutting down")                                      \
  ERROR(cudaErrorProfilerDisabled, 5, "profiler disabled while using external profiling tool")    \
  ERROR(cudaErrorProfilerNotInitialized, 6,                                                       \
        "profiler not initialized: call cudaProfilerInitialize()")                                \
  ERROR(cudaErrorProfilerAlreadyStarted, 7, "profiler already started")                           \
  ERROR(cudaErrorProfilerAlreadyStopped, 8, "profiler already stopped")                           \
  ERROR(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")                       \
  ERROR(cudaErrorInvalidPitchValue, 12, "invalid pitch argument")                                 \
  ERROR(cudaErrorInvalidSymbol, 13, "invalid device symbol")                                      \
  ERROR(cudaErrorInvalidHostPointer, 16, "invalid host pointer")                                  \
  ERROR(cudaErrorInvalidDevicePointer, 17, "invalid device pointer")                              \
  ERROR(cudaErrorInvalidTexture, 18, "invalid texture reference")                                 \
  ERROR(cudaErrorInvalidTextureBinding, 19, "texture is not bound to a pointer")                  \
  ERROR(cudaErrorInvalidChannelDescriptor, 20, "invalid channel descriptor")                      \
  ERROR(cudaErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy")                 \
  ERROR(cudaErrorAddressOfConstant, 22, "invalid address of constant")                            \
  ERROR(cudaErrorTextureFetchFailed, 23, "fetch from texture failed")                             \
  ERROR(cudaErrorTextureNotBound, 24, "cannot fetch from a texture that is not bound")            \
  ERROR(cudaErrorSynchronizationError, 25, "incorrect use of __syncthreads()")                    \
  ERROR(cudaErrorInvalidFilterSetting, 26, "linear filtering not supported for non-float type")   \
  ERROR(cudaErrorInvalidNormSetting, 27,                                                          \
        "read as normalized float not supported for 32-bit non float type")                       \
  ERROR(cudaErrorMixedDeviceExecution, 28,                                                        \
        "device emulation mode and device execution mode cannot be mixed")                        \
  ERROR(cudaErrorNotYetImplemented, 31, "feature not yet implemented")                            \
  ERROR(cudaErrorMemoryValueTooLarge, 32,                                                         \
        "memory size or pointer value too large to fit in 32 bit")                                \
  ERROR(cudaErrorInsufficientDriver, 35,                                                          \
        "CUDA driver version is insufficient for CUDA runtime version")                           \
  ERROR(cudaErrorInvalidSurface, 37, "invalid surface reference")                                 \
  ERROR(cudaErrorDuplicateVariableName, 43, "duplicate global variable looked up by string name") \
  ERROR(cudaErrorDuplicateTextureName, 44, "duplicate texture looked up by string name")          \
  ERROR(cudaErrorDuplicateSurfaceName, 45, "duplicate surface looked up by string name")          \
  ERROR(cudaErrorDevicesUnavailable, 46, "CUDA-capable device(s) is/are busy or unavailable")     \
  ERROR(cudaErrorIncompatibleDriverContext, 49, "incompatible driver context")                    \
  ERROR(cudaErrorMissingConfiguration, 52, "__global__ function call is not configured")          \
  ERROR(cudaErrorPriorLaunchFailure, 53, "unspecified launch failure in prior launch")            \
  ERROR(cudaErrorLaunchMaxDepthExceeded, 65,                                                      \
        "launch would exceed maximum depth of nested launches")                                   \
  ERROR(cudaErrorLaunchFileScopedTex, 66,                                                         \
        "launch failed because kernel uses unsupported, file-scoped textures (texture objects "   \
        "are supported)")                                                                         \
  ERROR(cudaErrorLaunchFileScopedSurf, 67,                                                        \
        "launch failed because kernel uses unsupported, file-scoped surfaces (surface objects "   \
        "are supported)")                                                                         \
  ERROR(cudaErrorSyncDepthExceeded, 68,                                                           \
        "cudaDeviceSynchronize failed because caller's grid depth exceeds "                       \
        "cudaLimitDevRuntimeSyncDepth")                                                           \
  ERROR(cudaErrorLaunchPendingCountExceeded, 69,                                                  \
        "launch failed because launch would exceed cudaLimitDevRuntimePendingLaunchCount")        \
  ERROR(cudaErrorInvalidDeviceFunction, 98, "invalid device function")                            \
  ERROR(cudaErrorNoDevice, 100, "no CUDA-capable device is detected")                             \
  ERROR(cudaErrorInvalidDevice, 101, "invalid device ordinal")                                    \
  ERROR(cudaErrorStartupFailure, 127, "startup failure in cuda runtime")                          \
  ERROR(cudaErrorInvalidKernelImage, 200, "device kernel image is invalid")                       \
  ERROR(cudaErrorDeviceUninitialized, 201, "invalid device context")                              \
  ERROR(cudaErrorMapBufferObjectFailed, 205, "mapping of buffer object failed")                   \
  ERROR(cudaErrorUnmapBufferObjectFailed, 206, "unmapping of buffer object failed")               \
  ERROR(cudaErrorNoKernelImageForDevice, 209,                                                     \
        "no kernel image is available for execution on the device")                               \
  ERROR(cudaErrorECCUncorrectable, 214, "uncorrectable ECC error encountered")                    \
  ERROR(cudaErrorUnsupportedLimit, 215, "limit is not supported on this architecture")            \
  ERROR(cudaErrorDeviceAlreadyInUse, 216,                                                         \
        "exclusive-thread device already in use by a different thread")                           \
  ERROR(cudaErrorPeerAccessUnsupported, 217,                                                      \
        "peer access is not supported between these two devices")                                 \
  ERROR(cudaErrorInvalidPtx, 218, "a PTX JIT compilation failed")                                 \
  ERROR(cudaErrorInvalidGraphicsContext, 219, "invalid OpenGL or DirectX context")                \
  ERROR(cudaErrorNvlinkUncorrectable, 220,                                                        \
        "uncorrectable NVLink error detected during the execution")                               \
  ERROR(cudaErrorJitCompilerNotFound, 221, "PTX JIT compiler library not found")                  \
  ERROR(cudaErrorInvalidSource, 300, "device kernel image is invalid")                            \
  ERROR(cudaErrorFileNotFound, 301, "file not found")                                             \
  ERROR(cudaErrorSharedObjectSymbolNotFound, 302, "shared object symbol not found")               \
  ERROR(cudaErrorSharedObjectInitFailed, 303, "shared object initialization failed")              \
  ERROR(cudaErrorOperatingSystem, 304, "OS call failed or operation not supported on this OS")    \
  ERROR(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")                           \
  ERROR(cudaErrorSymbolNotFound, 500, "named symbol not found")                                   \
  ERROR(cudaErrorNotReady, 600, "device not ready")                                               \
  ERROR(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered")                 \
  ERROR(cudaErrorLaunchOutOfResources, 701, "too many resources requested for launch")            \
  ERROR(cudaErrorLaunchTimeout, 702, "the launch timed out and was terminated")                   \
  ERROR(cudaErrorPeerAccessAlreadyEnabled, 704, "peer access is already enabled")                 \
  ERROR(cudaErrorPeerAccessNotEnabled, 705, "peer access has not been enabled")                   \
  ERROR(cudaErrorSetOnActiveProcess, 708, "cannot set while device is active in this process")    \
  ERROR(cudaErrorAssert, 710, "device-side assert triggered")                                     \
  ERROR(cudaErrorTooManyPeers, 711, "peer mapping resources exhausted")                           \
  ERROR(cudaErrorHostMemoryAlreadyRegistered, 712,                                                \
        "part or all of the requested memory range is already mapped")                            \
  ERROR(cudaErrorHostMemoryNotRegistered, 713,                                                    \
        "pointer does not correspond to a registered memory region")                              \
  ERROR(cudaErrorHardwareStackError, 714, "hardware stack error")                                 \
  ERROR(cudaErrorIllegalInstruction, 715, "an illegal instruction was encountered")               \
  ERROR(cudaErrorMisalignedAddress, 716, "misaligned address")                                    \
  ERROR(cudaErrorInvalidAddressSpace, 717,                                                        \
        "operation not supported on global/shared address space")                                 \
  ERROR(cudaErrorInvalidPc, 718, "invalid program counter")                                       \
  ERROR(cudaErrorLaunchFailure, 719, "unspecified launch failure")                                \
  ERROR(cudaErrorCooperativeLaunchTooLarge, 720, "too many blocks in cooperative launch")         \
  ERROR(cudaErrorNotPermitted, 800, "operation not permitted")                                    \
  ERROR(cudaErrorNotSupported, 801, "operation not supported")                                    \
  ERROR(cudaErrorUnknown, 999, "unknown error")                                                   \
  ERROR(cudaErrorApiFailureBase, 10000, "api failure base")

#define CONVLADDER_ENUMERATOR(name, code, text) name = (code),
enum cudaError { CONVLADDER_CUDA_ERRORS(CONVLADDER_ENUMERATOR) };
#undef CONVLADDER_ENUMERATOR
typedef cudaError cudaError_t;

const char* cudaGetErrorName(cudaError_t error);
// For the error that this thread's last failed kernel gave: with kernel, block, thread and reason,
// valid until the next such error.
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();

// ---- The device ----

struct cudaDeviceProp {
  char name[256];
  std::size_t totalGlobalMem, sharedMemPerBlock;
  int regsPerBlock, warpSize;
  std::size_t memPitch;
  int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
  int clockRate;  // kHz
  std::size_t totalConstMem;
  int major, minor;  // of a program that is compiled for a GPU; else 0.0, no compute capability
  std::size_t textureAlignment, texturePitchAlignment, surfaceAlignment;
  int maxTexture1D, maxTexture2D[2], maxTexture3D[3], maxTexture1DLayered[2],
      maxTexture2DLayered[3];
  int deviceOverlap, multiProcessorCount, kernelExecTimeoutEnabled, integrated, canMapHostMemory,
      computeMode;
  int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver,
      asyncEngineCount;
  int unifiedAddressing, memoryClockRate, memoryBusWidth, l2CacheSize, maxThreadsPerMultiProcessor;
  int streamPrioritiesSupported, globalL1CacheSupported, localL1CacheSupported;
  std::size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID,
      pageableMemoryAccess;
  int concurrentManagedAccess, cooperativeLaunch, cooperativeMultiDeviceLaunch,
      memoryPoolsSupported;
  std::size_t sharedMemPerBlockOptin;
  int maxBlocksPerMultiProcessor, hostNativeAtomicSupported, computePreemptionSupported;
  int persistingL2CacheMaxSize, accessPolicyMaxWindowSize;
};

// The members of cudaDeviceProp by number.
#define CONVLADDER_ATTRIBUTES(ATTRIBUTE)                                      \
  ATTRIBUTE(MaxThreadsPerBlock, 1, maxThreadsPerBlock)                        \
  ATTRIBUTE(MaxBlockDimX, 2, maxThreadsDim[0])                                \
  ATTRIBUTE(MaxBlockDimY, 3, maxThreadsDim[1])                                \
  ATTRIBUTE(MaxBlockDimZ, 4, maxThreadsDim[2])                                \
  ATTRIBUTE(MaxGridDimX, 5, maxGridSize[0])                                   \
  ATTRIBUTE(MaxGridDimY, 6, maxGridSize[1])                                   \
  ATTRIBUTE(MaxGridDimZ, 7, maxGridSize[2])                                   \
  ATTRIBUTE(MaxSharedMemoryPerBlock, 8, sharedMemPerBlock)                    \
  ATTRIBUTE(TotalConstantMemory, 9, totalConstMem)                            \
  ATTRIBUTE(WarpSize, 10, warpSize)                                           \
  ATTRIBUTE(MaxPitch, 11, memPitch)                                           \
  ATTRIBUTE(MaxRegistersPerBlock, 12, regsPerBlock)                           \
  ATTRIBUTE(ClockRate, 13, clockRate)                                         \
  ATTRIBUTE(TextureAlignment, 14, textureAlignment)                           \
  ATTRIBUTE(GpuOverlap, 15, deviceOverlap)                                    \
  ATTRIBUTE(MultiProcessorCount, 16, multiProcessorCount)                     \
  ATTRIBUTE(KernelExecTimeout, 17, kernelExecTimeoutEnabled)                  \
  ATTRIBUTE(Integrated, 18, integrated)                                       \
  ATTRIBUTE(CanMapHostMemory, 19, canMapHostMemory)                           \
  ATTRIBUTE(ComputeMode, 20, computeMode)                                     \
  ATTRIBUTE(ConcurrentKernels, 31, concurrentKernels)                         \
  ATTRIBUTE(EccEnabled, 32, ECCEnabled)                                       \
  ATTRIBUTE(PciBusId, 33, pciBusID)                                           \
  ATTRIBUTE(PciDeviceId, 34, pciDeviceID)                                     \
  ATTRIBUTE(TccDriver, 35, tccDriver)                                         \
  ATTRIBUTE(MemoryClockRate, 36, memoryClockRate)                             \
  ATTRIBUTE(GlobalMemoryBusWidth, 37, memoryBusWidth)                         \
  ATTRIBUTE(L2CacheSize, 38, l2CacheSize)                                     \
  ATTRIBUTE(MaxThreadsPerMultiProcessor, 39, maxThreadsPerMultiProcessor)     \
  ATTRIBUTE(AsyncEngineCount, 40, asyncEngineCount)                           \
  ATTRIBUTE(UnifiedAddressing, 41, unifiedAddressing)                         \
  ATTRIBUTE(PciDomainId, 50, pciDomainID)                                     \
  ATTRIBUTE(ComputeCapabilityMajor, 75, major)                                \
  ATTRIBUTE(ComputeCapabilityMinor, 76, minor)                                \
  ATTRIBUTE(StreamPrioritiesSupported, 78, streamPrioritiesSupported)         \
  ATTRIBUTE(GlobalL1CacheSupported, 79, globalL1CacheSupported)               \
  ATTRIBUTE(LocalL1CacheSupported, 80, localL1CacheSupported)                 \
  ATTRIBUTE(MaxSharedMemoryPerMultiprocessor, 81, sharedMemPerMultiprocessor) \
  ATTRIBUTE(MaxRegistersPerMultiprocessor, 82, regsPerMultiprocessor)         \
  ATTRIBUTE(ManagedMemory, 83, managedMemory)                                 \
  ATTRIBUTE(IsMultiGpuBoard, 84, isMultiGpuBoard)                             \
  ATTRIBUTE(HostNativeAtomicSupported, 86, hostNativeAtomicSupported)         \
  ATTRIBUTE(PageableMemoryAccess, 88, pageableMemoryAccess)                   \
  ATTRIBUTE(ConcurrentManagedAccess, 89, concurrentManagedAccess)             \
  ATTRIBUTE(ComputePreemptionSupported, 90, computePreemptionSupported)       \
  ATTRIBUTE(CooperativeLaunch, 95, cooperativeLaunch)                         \
  ATTRIBUTE(MaxSharedMemoryPerBlockOptin, 97, sharedMemPerBlockOptin)         \
  ATTRIBUTE(MaxBlocksPerMultiprocessor, 106, maxBlocksPerMultiProcessor)      \
  ATTRIBUTE(MemoryPoolsSupported, 115, memoryPoolsSupported)
#define CONVLADDER_ENUMERATOR(name, number, member) cudaDevAttr##name = (number),
enum cudaDeviceAttr { CONVLADDER_ATTRIBUTES(CONVLADDER_ENUMERATOR) };
#undef CONVLADDER_ENUMERATOR

enum cudaComputeMode {
  cudaComputeModeDefault,
  cudaComputeModeExclusive,
  cudaComputeModeProhibited,
  cudaComputeModeExclusiveProcess
};
enum cudaLimit {
  cudaLimitStackSize,
  cudaLimitPrintfFifoSize,
  cudaLimitMallocHeapSize,
  cudaLimitDevRuntimeSyncDepth,
  cudaLimitDevRuntimePendingLaunchCount,
  cudaLimitMaxL2FetchGranularity,
  cudaLimitPersistingL2CacheSize
};
enum cudaFuncCache {
  cudaFuncCachePreferNone,
  cudaFuncCachePreferShared,
  cudaFuncCachePreferL1,
  cudaFuncCachePreferEqual
};
enum cudaSharedMemConfig {
  cudaSharedMemBankSizeDefault,
  cudaSharedMemBankSizeFourByte,
  cudaSharedMemBankSizeEightByte
};
enum {
  cudaDeviceScheduleAuto = 0,
  cudaDeviceScheduleSpin = 1,
  cudaDeviceScheduleYield = 2,
  cudaDeviceScheduleBlockingSync = 4,
  cudaDeviceBlockingSync = 4,
  cudaDeviceMapHost = 8
};
constexpr int cudaCpuDeviceId = -1, cudaInvalidDeviceId = -2;

// Where managed memory should be; a hint that has nothing to act on here.
enum cudaMemLocationType {
  cudaMemLocationTypeInvalid,
  cudaMemLocationTypeDevice,
  cudaMemLocationTypeHost,
  cudaMemLocationTypeHostNuma,
  cudaMemLocationTypeHostNumaCurrent
};
struct cudaMemLocation {
  cudaMemLocationType type;
  int id;
};

cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* wanted);
cudaError_t cudaDeviceSynchronize();
inline cudaError_t cudaThreadSynchronize() { return cudaDeviceSynchronize(); }
cudaError_t cudaDeviceReset();  // frees all device memory, and forgets errors
inline cudaError_t cudaThreadExit() { return cudaDeviceReset(); }
cudaError_t cudaDeviceSetLimit(cudaLimit limit, std::size_t value);
cudaError_t cudaDeviceGetPCIBusId(char* id, int bytes, int device);
cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* id);
cudaError_t cudaDeviceGetLimit(std::size_t* value, cudaLimit limit);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest);
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
cudaError_t cudaDeviceDisablePeerAccess(int peer);

// Hints that have nothing to act on here.
inline cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
inline cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
inline cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) { return cudaSuccess; }
template <typename Kernel>
cudaError_t cudaFuncSetCacheConfig(Kernel*, cudaFuncCache) {
  return cudaSuccess;
}
template <typename Kernel>
cudaError_t cudaFuncSetSharedMemConfig(Kernel*, cudaSharedMemConfig) {
  return cudaSuccess;
}
inline cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  *flags = cudaDeviceScheduleAuto;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  *config = cudaFuncCachePreferNone;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  *config = cudaSharedMemBankSizeFourByte;
  return cudaSuccess;
}
inline cudaError_t cudaProfilerStart() { return cudaSuccess; }
inline cudaError_t cudaProfilerStop() { return cudaSuccess; }

// ---- Kernels ----

enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9
};
enum {
  cudaSharedmemCarveoutDefault = -1,
  cudaSharedmemCarveoutMaxShared = 100,
  cudaSharedmemCarveoutMaxL1 = 0
};

// What the host compiler knows of a kernel: its shared memory. Registers are the GPU compiler's, and 0 here.
struct cudaFuncAttributes {
  std::size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
  int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA,
      maxDynamicSharedSizeBytes;
  int preferredShmemCarveout;
};

// The carve-out is a hint that has nothing to act on here.
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value);

// Of the driver's functions <cuda.h> has two.
enum cudaDriverEntryPointQueryResult {
  cudaDriverEntryPointSuccess,
  cudaDriverEntryPointSymbolNotFound,
  cudaDriverEntryPointVersionNotSufficent
};
constexpr unsigned long long cudaEnableDefault = 0;
cudaError_t cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* result = nullptr);
inline cudaError_t cudaGetDriverEntryPointByVersion(
    const char* name, void** function, unsigned /*version*/, unsigned long long flags,
    cudaDriverEntryPointQueryResult* result = nullptr) {
  return cudaGetDriverEntryPoint(name, function, flags, result);
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel);
// As threads and shared memory limit it; registers, which may allow less, are not known.
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel,
                                                          int threads, std::size_t dynamic_bytes);

template <typename... Params>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Params...), cudaFuncAttribute attribute,
                                 int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
template <typename... Params>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, void (*kernel)(Params...)) {
  return cudaFuncGetAttributes(attributes, reinterpret_cast<const void*>(kernel));
}
template <typename... Params>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void (*kernel)(Params...),
                                                          int threads, std::size_t dynamic_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      blocks, reinterpret_cast<const void*>(kernel), threads, dynamic_bytes);
}
template <typename Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, Kernel kernel,
                                                                   int threads,
                                                                   std::size_t dynamic_bytes,
                                                                   unsigned /*flags*/) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, threads, dynamic_bytes);
}
// The block with most resident threads, of multiples of a warp and of `most_threads`; 0, where none can run.
template <typename Kernel, typename Bytes>
cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int* blocks, int* threads, Kernel kernel,
                                                           Bytes bytes_of, int most_threads = 0) {
  if (!blocks || !threads) return cudaErrorInvalidValue;
  cudaDeviceProp device;
  cudaGetDeviceProperties(&device, 0);
  const int limit = most_threads > 0 && most_threads < 1024 ? most_threads : 1024;
  int most = *blocks = *threads = 0;  // resident
  for (int n = (limit + 31) / 32 * 32; n > 0; n -= 32) {
    const int some = n < limit ? n : limit;
    int resident = 0;
    if (const cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
            &resident, kernel, some, bytes_of(some))) {
      return error;
    }
    if (resident * some <= most) continue;
    most = resident * some;
    *threads = some;
    *blocks = resident * device.multiProcessorCount;
  }
  return cudaSuccess;
}
template <typename Kernel>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int* blocks, int* threads, Kernel kernel,
                                               std::size_t dynamic_bytes = 0,
                                               int most_threads = 0) {
  return cudaOccupancyMaxPotentialBlockSizeVariableSMem(
      blocks, threads, kernel, [dynamic_bytes](int) { return dynamic_bytes; }, most_threads);
}
template <typename Kernel>
cudaError_t cudaOccupancyMaxPotentialBlockSizeWithFlags(int* blocks, int* threads, Kernel kernel,
                                                        std::size_t dynamic_bytes = 0,
                                                        int most_threads = 0,
                                                        unsigned /*flags*/ = 0) {
  return cudaOccupancyMaxPotentialBlockSize(blocks, threads, kernel, dynamic_bytes, most_threads);
}

// ---- Streams and events ----

// Every call does its work before it returns, which is one of the orders that CUDA allows.
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
typedef void (*cudaStreamCallback_t)(cudaStream_t stream, cudaError_t status, void* data);
typedef void (*cudaHostFn_t)(void* data);

enum { cudaStreamDefault = 0, cudaStreamNonBlocking = 1 };
enum {
  cudaEventDefault = 0,
  cudaEventBlockingSync = 1,
  cudaEventDisableTiming = 2,
  cudaEventInterprocess = 4
};
#define cudaStreamLegacy (reinterpret_cast<cudaStream_t>(1))
#define cudaStreamPerThread (reinterpret_cast<cudaStream_t>(2))

cudaError_t cudaStreamCreate(cudaStream_t* stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority);
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags);
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t call, void* data,
                                  unsigned flags);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t call, void* data);
// What a stream's kernels should keep in L2, and other hints that have nothing to act on here.
enum cudaAccessProperty {
  cudaAccessPropertyNormal,
  cudaAccessPropertyStreaming,
  cudaAccessPropertyPersisting
};
struct cudaAccessPolicyWindow {
  void* base_ptr;
  std::size_t num_bytes;
  float hitRatio;
  cudaAccessProperty hitProp, missProp;
};
struct cudaStreamAttrValue {
  cudaAccessPolicyWindow accessPolicyWindow;
  int priority;
};
enum cudaStreamAttrID {
  cudaStreamAttributeAccessPolicyWindow = 1,
  cudaStreamAttributePriority = 8
};
inline cudaError_t cudaStreamSetAttribute(cudaStream_t, cudaStreamAttrID,
                                          const cudaStreamAttrValue*) {
  return cudaSuccess;
}
inline cudaError_t cudaCtxResetPersistingL2Cache() { return cudaSuccess; }
template <typename T>
cudaError_t cudaStreamAttachMemAsync(cudaStream_t, T*, std::size_t = 0, unsigned = 0) {
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
inline cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned flags) {
  return cudaEventCreateWithFlags(event, flags);
}
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
inline cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream = nullptr,
                                            unsigned /*flags*/ = 0) {
  return cudaEventRecord(event, stream);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);  // never cudaErrorNotReady: see above
// Milliseconds of the host's clock: simulated time, which says nothing of a GPU.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop);

// ---- Memory ----

enum {
  cudaHostAllocDefault = 0,
  cudaHostAllocPortable = 1,
  cudaHostAllocMapped = 2,
  cudaHostAllocWriteCombined = 4
};
enum {
  cudaHostRegisterDefault = 0,
  cudaHostRegisterPortable = 1,
  cudaHostRegisterMapped = 2,
  cudaHostRegisterIoMemory = 4,
  cudaHostRegisterReadOnly = 8
};
enum { cudaMemAttachGlobal = 1, cudaMemAttachHost = 2, cudaMemAttachSingle = 4 };

enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4
};
enum cudaMemoryType {
  cudaMemoryTypeUnregistered,
  cudaMemoryTypeHost,
  cudaMemoryTypeDevice,
  cudaMemoryTypeManaged
};
enum cudaMemoryAdvise {
  cudaMemAdviseSetReadMostly = 1,
  cudaMemAdviseUnsetReadMostly,
  cudaMemAdviseSetPreferredLocation,
  cudaMemAdviseUnsetPreferredLocation,
  cudaMemAdviseSetAccessedBy,
  cudaMemAdviseUnsetAccessedBy
};

struct cudaPointerAttributes {
  cudaMemoryType type;
  int device;
  void *devicePointer, *hostPointer;
};
struct cudaExtent {
  std::size_t width, height, depth;  // width in bytes
};
struct cudaPos {
  std::size_t x, y, z;
};
struct cudaPitchedPtr {
  void* ptr;
  std::size_t pitch, xsize, ysize;
};
struct cudaMemcpy3DParms {  // arrays are not simulated
  cudaPos srcPos;
  cudaPitchedPtr srcPtr;
  cudaPos dstPos;
  cudaPitchedPtr dstPtr;
  cudaExtent extent;
  cudaMemcpyKind kind;
};
constexpr cudaExtent make_cudaExtent(std::size_t w, std::size_t h, std::size_t d) {
  return {w, h, d};
}
constexpr cudaPos make_cudaPos(std::size_t x, std::size_t y, std::size_t z) { return {x, y, z}; }
constexpr cudaPitchedPtr make_cudaPitchedPtr(void* data, std::size_t pitch, std::size_t x,
                                             std::size_t y) {
  return {data, pitch, x, y};
}

// Aligned to 256 bytes and filled with NaN, so that reading what nobody wrote shows. What the
// machine has not left is refused with cudaErrorMemoryAllocation.
cudaError_t cudaMalloc(void** pointer, std::size_t bytes);
cudaError_t cudaMallocPitch(void** pointer, std::size_t* pitch, std::size_t width,
                            std::size_t height);
cudaError_t cudaMalloc3D(cudaPitchedPtr* pointer, cudaExtent extent);
cudaError_t cudaFree(void* pointer);
cudaError_t cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream);
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total);
// Memory of both, filled with zeros: the host's that a kernel may touch, and managed memory.
cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned flags);
cudaError_t cudaMallocManaged(void** pointer, std::size_t bytes,
                              unsigned flags = cudaMemAttachGlobal);
cudaError_t cudaFreeHost(void* pointer);
cudaError_t cudaHostRegister(void* pointer, std::size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void* pointer);
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned flags);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer);
inline cudaError_t cudaMemPrefetchAsync(const void*, std::size_t, int, cudaStream_t = nullptr) {
  return cudaSuccess;
}
inline cudaError_t cudaMemPrefetchAsync(const void*, std::size_t, cudaMemLocation, unsigned,
                                        cudaStream_t = nullptr) {
  return cudaSuccess;
}
inline cudaError_t cudaMemAdvise(const void*, std::size_t, cudaMemoryAdvise, int) {
  return cudaSuccess;
}
inline cudaError_t cudaMemAdvise(const void*, std::size_t, cudaMemoryAdvise, cudaMemLocation) {
  return cudaSuccess;
}

template <typename T>
cudaError_t cudaMalloc(T** pointer, std::size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(pointer), bytes);
}
template <typename T>
cudaError_t cudaMallocAsync(T** pointer, std::size_t bytes, cudaStream_t stream) {
  return cudaMallocAsync(reinterpret_cast<void**>(pointer), bytes, stream);
}
template <typename T>
cudaError_t cudaMallocPitch(T** pointer, std::size_t* pitch, std::size_t width,
                            std::size_t height) {
  return cudaMallocPitch(reinterpret_cast<void**>(pointer), pitch, width, height);
}
template <typename T>
cudaError_t cudaHostAlloc(T** pointer, std::size_t bytes, unsigned flags) {
  return cudaHostAlloc(reinterpret_cast<void**>(pointer), bytes, flags);
}
template <typename T>
cudaError_t cudaMallocHost(T** pointer, std::size_t bytes, unsigned flags = cudaHostAllocDefault) {
  return cudaHostAlloc(reinterpret_cast<void**>(pointer), bytes, flags);
}
template <typename T>
cudaError_t cudaMallocManaged(T** pointer, std::size_t bytes,
                              unsigned flags = cudaMemAttachGlobal) {
  return cudaMallocManaged(reinterpret_cast<void**>(pointer), bytes, flags);
}
template <typename T>
cudaError_t cudaHostGetDevicePointer(T** device, void* host, unsigned flags) {
  return cudaHostGetDevicePointer(reinterpret_cast<void**>(device), host, flags);
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                         std::size_t width, std::size_t height, cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                              std::size_t from_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream = nullptr);
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* what);
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* what, cudaStream_t stream = nullptr);
cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device,
                           std::size_t bytes);
cudaError_t cudaMemset(void* to, int value, std::size_t bytes);
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream = nullptr);
cudaError_t cudaMemset2D(void* to, std::size_t pitch, int value, std::size_t width,
                         std::size_t height);
cudaError_t cudaMemset2DAsync(void* to, std::size_t pitch, int value, std::size_t width,
                              std::size_t height, cudaStream_t stream = nullptr);
inline cudaError_t cudaMemset3DAsync(cudaPitchedPtr to, int value, cudaExtent extent,
                                     cudaStream_t stream = nullptr) {
  cudaError_t error = cudaSuccess;
  for (std::size_t z = 0; z < extent.depth && error == cudaSuccess; ++z) {
    error = cudaMemset2DAsync(static_cast<char*>(to.ptr) + z * to.ysize * to.pitch, to.pitch, value,
                              extent.width, extent.height, stream);
  }
  return error;
}
inline cudaError_t cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent) {
  return cudaMemset3DAsync(to, value, extent);
}
inline cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes,
                                       cudaStream_t stream = nullptr) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

// ---- Pools of memory, which keep nothing: what is freed is free ----

struct CUmemPoolHandle_st;
using cudaMemPool_t = CUmemPoolHandle_st*;
enum cudaMemPoolAttr {
  cudaMemPoolReuseFollowEventDependencies = 1,
  cudaMemPoolReuseAllowOpportunistic,
  cudaMemPoolReuseAllowInternalDependencies,
  cudaMemPoolAttrReleaseThreshold,
  cudaMemPoolAttrReservedMemCurrent,
  cudaMemPoolAttrReservedMemHigh,
  cudaMemPoolAttrUsedMemCurrent,
  cudaMemPoolAttrUsedMemHigh
};
inline cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
  *pool = nullptr;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return cudaDeviceGetDefaultMemPool(pool, device);
}
inline cudaError_t cudaDeviceSetMemPool(int, cudaMemPool_t) { return cudaSuccess; }
inline cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return cudaSuccess;
}
template <typename T>
cudaError_t cudaMallocFromPoolAsync(T** pointer, std::size_t bytes, cudaMemPool_t,
                                    cudaStream_t stream) {
  return cudaMallocAsync(pointer, bytes, stream);
}
inline cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, std::size_t) { return cudaSuccess; }

// ---- Variables of the device ----

// A variable of the device, given by its name, or by its address as in C (`bytes` 0). An instance of a template,
// which can't be put with the others, is known from here on. Without bytes: it is none.
struct Symbol {
  char* begin;
  std::size_t bytes;
};
Symbol find_symbol(const volatile void* address, std::size_t bytes);
cudaError_t get_symbol(Symbol symbol, void** begin, std::size_t* bytes);
// To it, or from it where `to` is null; on a stream, or at once.
cudaError_t copy_symbol(Symbol symbol, void* to, const void* from, std::size_t bytes,
                        std::size_t offset, cudaMemcpyKind kind, const cudaStream_t* stream);

inline cudaError_t cudaGetSymbolAddress(void** pointer, const void* symbol) {
  return get_symbol(find_symbol(symbol, 0), pointer, nullptr);
}
template <typename P, typename T>
cudaError_t cudaGetSymbolAddress(P** pointer, const T& symbol) {
  return get_symbol(find_symbol(&symbol, sizeof(T)), reinterpret_cast<void**>(pointer), nullptr);
}
inline cudaError_t cudaGetSymbolSize(std::size_t* bytes, const void* symbol) {
  return get_symbol(find_symbol(symbol, 0), nullptr, bytes);
}
template <typename T>
cudaError_t cudaGetSymbolSize(std::size_t* bytes, const T& symbol) {
  return get_symbol(find_symbol(&symbol, sizeof(T)), nullptr, bytes);
}
inline cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, std::size_t bytes,
                                      std::size_t offset = 0,
                                      cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
  return copy_symbol(find_symbol(symbol, 0), nullptr, from, bytes, offset, kind, nullptr);
}
template <typename T>
cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* from, std::size_t bytes,
                               std::size_t offset = 0,
                               cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
  return copy_symbol(find_symbol(&symbol, sizeof(T)), nullptr, from, bytes, offset, kind, nullptr);
}
inline cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, std::size_t bytes,
                                        std::size_t offset = 0,
                                        cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
  return copy_symbol(find_symbol(symbol, 0), to, nullptr, bytes, offset, kind, nullptr);
}
template <typename T>
cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, std::size_t bytes,
                                 std::size_t offset = 0,
                                 cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
  return copy_symbol(find_symbol(&symbol, sizeof(T)), to, nullptr, bytes, offset, kind, nullptr);
}
inline cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, std::size_t bytes,
                                           std::size_t offset, cudaMemcpyKind kind,
                                           cudaStream_t stream = nullptr) {
  return copy_symbol(find_symbol(symbol, 0), nullptr, from, bytes, offset, kind, &stream);
}
template <typename T>
cudaError_t cudaMemcpyToSymbolAsync(const T& symbol, const void* from, std::size_t bytes,
                                    std::size_t offset = 0,
                                    cudaMemcpyKind kind = cudaMemcpyHostToDevice,
                                    cudaStream_t stream = nullptr) {
  return copy_symbol(find_symbol(&symbol, sizeof(T)), nullptr, from, bytes, offset, kind, &stream);
}
inline cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, std::size_t bytes,
                                             std::size_t offset, cudaMemcpyKind kind,
                                             cudaStream_t stream = nullptr) {
  return copy_symbol(find_symbol(symbol, 0), to, nullptr, bytes, offset, kind, &stream);
}
template <typename T>
cudaError_t cudaMemcpyFromSymbolAsync(void* to, const T& symbol, std::size_t bytes,
                                      std::size_t offset = 0,
                                      cudaMemcpyKind kind = cudaMemcpyDeviceToHost,
                                      cudaStream_t stream = nullptr) {
  return copy_symbol(find_symbol(&symbol, sizeof(T)), to, nullptr, bytes, offset, kind, &stream);
}

#include "common/simulator/include/names_end.h"
