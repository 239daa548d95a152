// What takes the place of kernel<<<grid, block, bytes, stream>>>(args...): the simulator's own names.
#pragma once

#include "common/simulator/include/names_begin.h"

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/simulator/counts.h"

namespace convladder::simulator {

// Seeds the order in which blocks, and threads between two barriers, take their turns. 0, the
// default: in order of their indices. Begins with the environment's CONVLADDER_SIM_SEED.
void set_thread_order_seed(uint64_t seed);

// Has every grid run its last `blocks` blocks alone; 0, the default: all of them. For tests on
// tensors too large to be computed in full: what lies at their ends is these blocks' work.
void run_last_blocks_only(uint64_t blocks);

// What `enqueue` launches, in order; none of it is carried out, and no memory is touched.
std::vector<LaunchWork> plan_launches(const std::function<void()>& enqueue);

// Whether plan_launches() is under way on this host thread. is_planned() notes the launch as well.
bool is_planning();
bool is_planned(const LaunchWork& launch);

// Of so many bytes that are to be filled or copied, those at the beginning that run_last_blocks_only() leaves out.
std::size_t bytes_left_out(std::size_t bytes);

// Whether there is such a stream: it is the default one, or was made and not destroyed.
bool is_stream(cudaStream_t stream);
// Kernels and library calls that were put on `stream` so far; nullptr: the default stream. All work
// is done at once here, so that a stage that uses another stream than it was told to would not show
// in its results.
int64_t work_on(cudaStream_t stream);
// One more.
void note_work(cudaStream_t stream);

// How many multiprocessors the device says that it has; it begins with 132, an H200's. For tests of
// what a stage makes of the number.
void set_multiprocessors(int count);

// Whether this is a program of ./ladder sim: it meets the error of a kernel again in every later call, its
// device memory is out of the host's reach, and what is found in its kernels goes into a report.
bool is_program();

// Of a kernel: the bytes of its __shared__ variables, and how many it may be given besides.
std::size_t static_shared_bytes(const void* kernel);
std::size_t dynamic_limit(const void* kernel);

// How far the launch under way has come, for whom it takes too long.
std::string progress_of_launch();

enum class LaunchKind {
  kPlain,
  kEarly,       // on a GPU it may begin before the one before it has ended
  kCooperative  // its blocks may wait for each other
};

// A grid to run: body(argument), once per thread.
struct Grid {
  dim3 blocks, threads;
  void (*body)(const void*);
  const void* argument;
  std::size_t argument_bytes;
  const void* kernel;  // its code
  cudaStream_t stream;
  std::size_t dynamic_bytes = 0;  // of shared memory, besides the kernel's __shared__ variables
  LaunchKind kind = LaunchKind::kPlain;
  uint64_t seed = 0;  // of the order of blocks and threads; 0: that of their indices
};

// Runs the grid in the order that was asked for, and waits for its end. Gives its errors as CUDA
// does, through cudaGetLastError(): cudaErrorInvalidConfiguration for a grid or block that CUDA
// refuses, cudaErrorLaunchFailure and others for a kernel that failed. Grids of several host threads
// run one after another. Throws std::invalid_argument when CONVLADDER_SIM_THREADS or
// CONVLADDER_SIM_SEED can't be read.
void run_grid(Grid grid);

template <typename Body>
void launch(dim3 blocks, dim3 threads, cudaStream_t stream, const Body& body, const void* kernel,
            std::size_t dynamic_bytes = 0, LaunchKind kind = LaunchKind::kPlain) {
  const auto call = [](const void* argument) { (*static_cast<const Body*>(argument))(); };
  run_grid({blocks, threads, call, &body, sizeof(body), kernel, stream, dynamic_bytes, kind});
}

// ---- What translate.py makes of `extern __shared__` and <<<>>> ----

extern "C" __thread char convladder_dynamic_shared[];

// extern __shared__ T x[] is T (&x)[] = DynamicShared().
struct DynamicShared {
  template <typename T>
  using Array = T[];
  template <typename T>
  operator Array<T>&() const {
    return *reinterpret_cast<Array<T>*>(convladder_dynamic_shared);
  }
};

// What a class makes when it is copied or destroyed happens on the host. A thread gets the bytes: as the C++ ABI
// has it, such an object is handed over by its address.
template <typename T>
constexpr bool IS_BYTES =
    std::is_trivially_copy_constructible_v<T>&& std::is_trivially_move_constructible_v<T>;
template <typename T>
using Passed = std::conditional_t<IS_BYTES<T>, T, T&>;
template <typename T>
struct Bytes {
  alignas(T) unsigned char bytes[sizeof(T)];

  explicit Bytes(const T& value) { __builtin_memcpy(bytes, &value, sizeof(T)); }
  operator T&() { return *reinterpret_cast<T*>(bytes); }
};

// An argument that names a variable of the device: to the host its address is that of memory of the host.
void* address_for_host(const volatile void* address);
template <typename T>
decltype(auto) seen_by_host(T&& argument) {
  if constexpr (std::is_convertible_v<std::decay_t<T>, const volatile void*>) {
    return static_cast<std::decay_t<T>>(address_for_host(argument));
  } else {
    return std::forward<T>(argument);
  }
}

// kernel<<<blocks, threads, bytes, stream>>>(arguments) is kernel(k).on(blocks, ...)(arguments).
template <typename... Params>
struct KernelPointer {
  void (*pointer)(Params...);

  auto on(dim3 blocks, dim3 threads, std::size_t dynamic_bytes = 0, cudaStream_t stream = nullptr,
          LaunchKind kind = LaunchKind::kPlain) const {
    static_assert((0 + ... + sizeof(Params)) <= 32764, "CUDA takes no more bytes of arguments");
    static_assert(
        !(... || std::is_reference_v<Params>),
        "a kernel's parameter can't be a reference: it would be one to the host's memory");
    return [=, pointer = pointer](Params... arguments) {
      launch(
          blocks, threads, stream,
          [=]() __attribute__((no_sanitize_thread)) {
            if constexpr ((... && IS_BYTES<Params>)) {
              pointer(arguments...);
            } else {
              reinterpret_cast<void (*)(Passed<Params>...)>(pointer)(
                  std::conditional_t<IS_BYTES<Params>, const Params&, Bytes<Params>>(arguments)...);
            }
          },  // which it takes over
          reinterpret_cast<const void*>(pointer), dynamic_bytes, kind);
    };
  }
};
template <typename... Params>
KernelPointer<Params...> kernel(void (*pointer)(Params...)) {
  return {pointer};
}

// Which kernel of several with one name, or which instance of a template, the arguments decide: `find`
// takes them, and its result is a Kernel<pointer>.
template <auto POINTER>
struct Kernel {
  static constexpr auto pointer = POINTER;
};
template <typename Find>
struct Deduced {
  Find find;

  auto on(dim3 blocks, dim3 threads, std::size_t dynamic_bytes = 0,
          cudaStream_t stream = nullptr) const {
    return [=](auto&&... arguments) {
      using Found = decltype(std::declval<Find>()(std::forward<decltype(arguments)>(arguments)...));
      kernel(Found::pointer)
          .on(blocks, threads, dynamic_bytes,
              stream)(std::forward<decltype(arguments)>(arguments)...);
    };
  }
};
template <typename Find>
Deduced<Find> deduced(const Find& find) {
  return {find};
}

// As at the process's end.
void free_device_memory();

// While one lives, the host's touching device memory is a fault; in a program it always is ...
struct DeviceMemoryOutOfReach {
  DeviceMemoryOutOfReach();
  ~DeviceMemoryOutOfReach();
  DeviceMemoryOutOfReach(const DeviceMemoryOutOfReach&) = delete;
};
// ... but while one of these lives: for kernels, and for copies.
struct DeviceMemoryInReach {
  DeviceMemoryInReach();
  ~DeviceMemoryInReach();
  DeviceMemoryInReach(const DeviceMemoryInReach&) = delete;
};

// Of memory that a kernel, or the host, may not touch: what it is; empty where nothing is known.
std::string describe_address(const void* address);

// Makes kernels that touch these bytes of device memory fail, where the build counts (elsewhere it
// does nothing): a guard zone is no part of the tensor, though cudaMalloc gave it.
void forbid_memory(const void* begin, std::size_t bytes);
// How messages call the tensor in the device memory around this address: "the input".
void name_memory(const void* address, const std::string& name);

}  // namespace convladder::simulator

namespace convladder::simulator {

// kernel<<<...>>>(*arguments[0], ...), where the arguments' types are the kernel's.
using Launcher = void (*)(const void* kernel, dim3 blocks, dim3 threads, void** arguments,
                          std::size_t dynamic_bytes, cudaStream_t stream, LaunchKind kind);
template <typename... Params>
void launch_with(const void* pointer, dim3 blocks, dim3 threads, void** arguments,
                 std::size_t dynamic_bytes, cudaStream_t stream, LaunchKind kind) {
  [[maybe_unused]] std::size_t i = 0;
  std::tuple<Params...> values{*static_cast<std::decay_t<Params>*>(arguments[i++])...};
  const auto of_type =
      reinterpret_cast<void (*)(Params...)>(reinterpret_cast<std::uintptr_t>(pointer));
  std::apply(kernel(of_type).on(blocks, threads, dynamic_bytes, stream, kind), values);
}

// How a kernel is launched of which only the address is known: noted where translate.py finds that one is cast.
void note_launcher(const void* kernel, Launcher launcher);
// cudaErrorInvalidDeviceFunction where nothing is noted of it.
cudaError_t launch_known(const void* kernel, dim3 blocks, dim3 threads, void** arguments,
                         std::size_t dynamic_bytes, cudaStream_t stream, LaunchKind kind);
template <typename... Params>
void* known(void (*kernel)(Params...)) {
  note_launcher(reinterpret_cast<const void*>(kernel), launch_with<Params...>);
  return reinterpret_cast<void*>(kernel);
}
template <typename T>
T known(T other) {
  return other;
}

// The kernel's address, and how it is launched noted.
inline const void* address_of_kernel(const void* kernel) { return kernel; }
template <typename... Params>
const void* address_of_kernel(void (*kernel)(Params...)) {
  return known(kernel);
}

}  // namespace convladder::simulator

template <typename Kernel>
cudaError_t cudaLaunchKernel(Kernel* kernel, dim3 blocks, dim3 threads, void** arguments,
                             std::size_t dynamic_bytes = 0, cudaStream_t stream = nullptr) {
  using namespace convladder::simulator;
  return launch_known(address_of_kernel(kernel), blocks, threads, arguments, dynamic_bytes, stream,
                      LaunchKind::kPlain);
}
// Blocks that wait for each other all run at a time here, as far as threads allow.
template <typename Kernel>
cudaError_t cudaLaunchCooperativeKernel(Kernel* kernel, dim3 blocks, dim3 threads, void** arguments,
                                        std::size_t dynamic_bytes = 0,
                                        cudaStream_t stream = nullptr) {
  using namespace convladder::simulator;
  return launch_known(address_of_kernel(kernel), blocks, threads, arguments, dynamic_bytes, stream,
                      LaunchKind::kCooperative);
}

// ---- Launches with attributes ----

enum cudaLaunchAttributeID {
  cudaLaunchAttributeIgnore = 0,
  cudaLaunchAttributeAccessPolicyWindow = 1,
  cudaLaunchAttributeCooperative = 2,
  cudaLaunchAttributeClusterDimension = 4,
  cudaLaunchAttributeProgrammaticStreamSerialization = 6,
  cudaLaunchAttributePriority = 8
};
union cudaLaunchAttributeValue {
  char pad[64];
  cudaAccessPolicyWindow accessPolicyWindow;
  int cooperative;
  struct {
    unsigned x, y, z;
  } clusterDim;
  int programmaticStreamSerializationAllowed;
  int priority;
};
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  cudaLaunchAttributeValue val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute* attrs = nullptr;
  unsigned numAttrs = 0;
};
namespace convladder::simulator {
// A launch begins when the one before it has ended, which programmatic serialization allows; builds that count find
// what would go wrong if it began early. Clusters of several blocks are not supported: then it is false.
bool read_attributes(const cudaLaunchConfig_t& config, LaunchKind& kind);
}  // namespace convladder::simulator

template <typename... Params, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Params...),
                               Arguments&&... arguments) {
  convladder::simulator::LaunchKind kind;
  if (!convladder::simulator::read_attributes(*config, kind)) return cudaErrorNotSupported;
  convladder::simulator::kernel(kernel).on(config->gridDim, config->blockDim,
                                           config->dynamicSmemBytes, config->stream,
                                           kind)(std::forward<Arguments>(arguments)...);
  return cudaPeekAtLastError();
}
inline cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel,
                                       void** arguments) {
  convladder::simulator::LaunchKind kind;
  if (!convladder::simulator::read_attributes(*config, kind)) return cudaErrorNotSupported;
  return convladder::simulator::launch_known(kernel, config->gridDim, config->blockDim, arguments,
                                             config->dynamicSmemBytes, config->stream, kind);
}
inline void cudaGridDependencySynchronize() { convladder::simulator::wait_for_kernel_before(); }
inline void cudaTriggerProgrammaticLaunchCompletion() {}

#include "common/simulator/include/names_end.h"
