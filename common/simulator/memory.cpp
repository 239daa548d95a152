#include <cuda_runtime.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <fmt/format.h>
#include "common/core/platform.h"
#include "common/core/program.h"
#include "common/simulator/counting/shadow.h"
#include "common/simulator/enqueueing.h"
#include "common/simulator/errors.h"
#include "common/simulator/fault.h"
#include "common/simulator/launch.h"
#include "common/simulator/observer.h"
#include "common/simulator/report.h"

#ifdef __ELF__  // the linker's, around the variables that translate.py has put into sections
extern "C" {
extern char __start_convladder_device[] __attribute__((weak));
extern char __stop_convladder_device[] __attribute__((weak));
extern char __start_convladder_constant[] __attribute__((weak));
extern char __stop_convladder_constant[] __attribute__((weak));
}
#endif

namespace convladder::simulator {
namespace {

// Device memory lies apart from the host's heap, between margins that nobody may touch: far astray, a
// kernel ends the program, where it would have changed the simulator itself, which then might wait
// for ever. AddressSanitizer has margins of its own. Zeros; null without memory.
#ifdef __SANITIZE_ADDRESS__
constexpr std::size_t ALIGNMENT = 256;  // cudaMalloc's promise

void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  return posix_memalign(&memory, ALIGNMENT, bytes) == 0 ? std::memset(memory, 0, bytes) : nullptr;
}

void release(void* memory, std::size_t) { std::free(memory); }
#else
constexpr std::size_t MARGIN = 1 << 20;  // bytes; of address space alone

void release(void* memory, std::size_t bytes) {
  munmap(static_cast<char*>(memory) - MARGIN, bytes + 2 * MARGIN);
}

void* allocate(std::size_t bytes) {
  void* const all =
      mmap(nullptr, bytes + 2 * MARGIN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) return nullptr;
  char* const memory = static_cast<char*>(all) + MARGIN;
  madvise(memory, bytes, MADV_HUGEPAGE);  // which go into reach and out of it faster
  if (mprotect(memory, bytes, PROT_READ | PROT_WRITE) == 0) return memory;
  release(memory, bytes);
  return nullptr;
}
#endif

// What cudaMalloc and its like gave and has not been freed.
enum class Kind {
  kDevice,
  kManaged,
  kHost,
  kRegistered,  // not allocated: the host's
  kSymbol       // nor this: an instance of a template, as know_symbol() was told
};
struct Block {
  std::size_t bytes;
  Kind kind;
  std::size_t of_heap = 0;  // bytes of the kernels' heap that it takes
};
std::mutex allocations_mutex;  // guards this, and what follows
std::map<char*, Block>& allocations() {
  static auto* all = new std::map<char*, Block>;  // outlives every other static
  return *all;
}
std::size_t heap_bytes = 0;    // in use
std::size_t device_bytes = 0;  // of a program, managed ones among them
bool heap_is_used = false;
int in_reach = 0, out_of_reach = 0;  // DeviceMemoryInReach and its opposite

// The allocation with the address in it, or the end of all.
std::map<char*, Block>::iterator find_allocation(const void* address) {
  auto found = allocations().upper_bound(static_cast<char*>(const_cast<void*>(address)));
  if (found == allocations().begin()) return allocations().end();
  --found;
  const std::size_t offset = static_cast<const char*>(address) - found->first;
  return offset < found->second.bytes ? found : allocations().end();
}

bool is_on_device(Kind kind) { return kind == Kind::kDevice || kind == Kind::kManaged; }

// What a program's device has, in all: what the host could give at first.
std::size_t device_capacity() {
  static const std::size_t all = host_memory().free;
  return all;
}

bool is_out_of_reach() { return in_reach == 0 && (is_program() || out_of_reach > 0); }

void protect(char* begin, const Block& block) {
#ifndef __SANITIZE_ADDRESS__
  if (block.kind != Kind::kDevice) return;
  mprotect(begin, block.bytes, is_out_of_reach() ? PROT_NONE : PROT_READ | PROT_WRITE);
#endif
}

void change_reach(int& reason, int by) {
  const std::lock_guard lock(allocations_mutex);
  const bool before = is_out_of_reach();
  reason += by;
  if (is_out_of_reach() == before) return;
  for (const auto& [begin, block] : allocations()) protect(begin, block);
}

cudaError_t allocate(void** pointer, std::size_t bytes, Kind kind, std::size_t of_heap = 0) {
  if (!pointer) return set_last_error(cudaErrorInvalidValue);
  Enqueueing::note("allocates memory");
  *pointer = nullptr;
  if (failed_before()) return failed_before();
  if (bytes == 0) return cudaSuccess;
  if (fault_due(Call::kMalloc) || bytes > host_memory().free) {
    return set_last_error(cudaErrorMemoryAllocation);
  }
  if (is_program() && is_on_device(kind)) {
    const std::lock_guard lock(allocations_mutex);
    if (bytes > device_capacity() - std::min(device_capacity(), device_bytes)) {
      return set_last_error(cudaErrorMemoryAllocation);
    }
  }
  void* const memory = allocate(bytes);
  if (!memory) return set_last_error(cudaErrorMemoryAllocation);
  const bool undefined = kind == Kind::kDevice;
  // All bits set is a quiet NaN. A program's begins with zeros, as it mostly does on a GPU.
  if (undefined && !is_program()) std::memset(memory, 0xff, bytes);
  const std::lock_guard lock(allocations_mutex);
  const Block& block = allocations()[static_cast<char*>(memory)] = {bytes, kind, of_heap};
  if (is_on_device(kind)) device_bytes += bytes;
  if constexpr (COUNTING) {
    memory_allocated(memory, bytes, !undefined);
    if (!undefined) set_memory_state(memory, bytes, MemoryState::kDefined);
  }
  if (is_out_of_reach()) protect(static_cast<char*>(memory), block);
  *pointer = memory;
  return cudaSuccess;
}

cudaError_t refuse(const char* call, const std::string& what) {
  if (what.empty()) return cudaSuccess;
  if constexpr (COUNTING) {
    add_finding("", 0, 0,
                [&] { return std::string(call) + " at " + calling_line() + ": " + what; });
  }
  return set_last_error(cudaErrorInvalidValue);
}

// False: none of that kind begins there.
bool free_block(void* pointer, bool of_host, bool of_heap) {
  std::size_t bytes = 0;
  {
    const std::lock_guard lock(allocations_mutex);
    const auto found = allocations().find(static_cast<char*>(pointer));
    if (found == allocations().end()) return false;
    const Block& block = found->second;
    if (block.kind >= Kind::kRegistered || (block.kind == Kind::kHost) != of_host ||
        (block.of_heap > 0) != of_heap) {
      return false;
    }
    bytes = block.bytes;
    heap_bytes -= block.of_heap;
    if (is_on_device(block.kind)) device_bytes -= bytes;
    allocations().erase(found);
    if constexpr (COUNTING) memory_freed(pointer);
  }
  release(pointer, bytes);
  return true;
}

cudaError_t free_memory(const char* call, void* pointer, bool of_host) {
  Enqueueing::note("frees memory");
  last_kernel_may_run = false;
  if (!pointer) return cudaSuccess;
  if (failed_before()) return failed_before();
  if (free_block(pointer, of_host, false)) return cudaSuccess;
  return is_program()
             ? refuse(call, "nothing begins there that its counterpart gave and that is not freed")
             : set_last_error(cudaErrorInvalidValue);
}

// What is wrong with one end of a copy, or of cudaMemset, in a program: in words, empty if nothing is.
std::string wrong_end(const void* address, std::size_t bytes, bool is_device, const char* end) {
  const std::lock_guard lock(allocations_mutex);
  const auto found = find_allocation(address);
  if (found == allocations().end()) {
    const bool is_symbol = COUNTING && is_device_variable(address);
    return !is_device || is_symbol ? "" : fmt::format("its {} is no device memory", end);
  }
  if (found->second.of_heap > 0) {
    return fmt::format("its {} is memory of the kernels' heap (of malloc() or new)", end);
  }
  const std::size_t rest = found->second.bytes - (static_cast<const char*>(address) - found->first);
  if (bytes > rest) {
    return fmt::format("{} bytes, but its {} has {} bytes from there to its end", bytes, end, rest);
  }
  return is_device || found->second.kind != Kind::kDevice
             ? ""
             : fmt::format("its {} is device memory", end);
}

// What a copy is a part of: its call, and how many bytes that has from here to its end.
struct Whole {
  const char* call;
  std::size_t to_bytes, from_bytes;
};

// In the place of what the host has under the names of variables of the device.
char* const of_symbols = new char;

cudaError_t check_copy(const void* to, const void* from, cudaMemcpyKind kind, const Whole& whole) {
  if (to == of_symbols || from == of_symbols) {
    return refuse(whole.call,
                  "a variable of the device is named where an address belongs: "
                  "cudaMemcpyToSymbol() takes its name, cudaGetSymbolAddress() has its address");
  }
  if (!is_program() || kind == cudaMemcpyDefault) return cudaSuccess;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  const std::string wrong = wrong_end(to, whole.to_bytes, to_device, "destination");
  return refuse(whole.call,
                wrong.empty() ? wrong_end(from, whole.from_bytes, from_device, "source") : wrong);
}

// The words at `to` are written now, but for those that nobody has written at `from`.
void note_copy(void* to, const void* from, std::size_t bytes) {
  if constexpr (COUNTING) {
    const Allocations memory = device_memory();
    const auto there = reinterpret_cast<uintptr_t>(from), here = reinterpret_cast<uintptr_t>(to);
    const Allocation* const source = find(memory, there);
    Allocation* const target = find(memory, here);
    std::vector<std::size_t> unwritten;
    if (source && target && there % 4 == 0 && here % 4 == 0) {
      const std::size_t first = (there - source->begin()) / 4;
      const std::size_t words = std::min(bytes / 4, source->words() - first);
      for (std::size_t i = 0; i < words; ++i) {
        if (source->state(first + i) == MemoryState::kUndefined) unwritten.push_back(i);
      }
    }
    set_memory_state(to, bytes, MemoryState::kDefined);
    for (const std::size_t i : unwritten) {
      target->set_state((here - target->begin()) / 4 + i, 1, MemoryState::kUndefined);
    }
  }
}

// Whether there is memory at its ends.
bool is_mapped(const void* begin, std::size_t bytes) {
  const auto is_there = [](uintptr_t byte) {
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    return msync(reinterpret_cast<void*>(byte / page * page), 1, MS_ASYNC) == 0;
  };
  const auto first = reinterpret_cast<uintptr_t>(begin);
  return is_there(first) && is_there(first + bytes - 1);
}

cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                 const Whole& whole) {
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) {
    return set_last_error(cudaErrorInvalidMemcpyDirection);
  }
  if (failed_before()) return failed_before();
  if (bytes == 0) return cudaSuccess;
  if (fault_due(Call::kMemcpy)) return set_last_error(cudaErrorUnknown);
  if (!to || !from) {
    return is_program() ? refuse(whole.call, to ? "its source is null" : "its destination is null")
                        : set_last_error(cudaErrorInvalidValue);
  }
  if (const cudaError_t error = check_copy(to, from, kind, whole)) return error;
  if (is_planning()) return cudaSuccess;
  if (!is_mapped(to, bytes) || !is_mapped(from, bytes))
    return set_last_error(cudaErrorInvalidValue);
  last_kernel_may_run = false;
  const DeviceMemoryInReach in_reach;
  const std::size_t first = kind == cudaMemcpyDeviceToDevice ? bytes_left_out(bytes) : 0;
  std::memmove(static_cast<char*>(to) + first, static_cast<const char*>(from) + first,
               bytes - first);
  note_copy(to, from, bytes);
  return cudaSuccess;
}

// Of the device, whether the build counts or not.
bool is_variable([[maybe_unused]] const void* address) {
#ifdef __ELF__
  const auto* byte = static_cast<const char*>(address);
  return (byte >= __start_convladder_device && byte < __stop_convladder_device) ||
         (byte >= __start_convladder_constant && byte < __stop_convladder_constant);
#else
  return false;
#endif
}

// Device memory, or the host's that cudaMallocHost() gave: to other memory a copy waits until it is done.
bool is_kept_by_runtime(const void* address) {
  if (is_variable(address)) return true;
  const std::lock_guard lock(allocations_mutex);
  const auto found = find_allocation(address);
  return found != allocations().end() && found->second.kind != Kind::kSymbol;
}

void note_asynchronous_copy(const void* to, std::size_t bytes) {
  if (bytes == 0 || is_planning()) return;  // of a plan no memory need be there
  if (!is_kept_by_runtime(to)) Enqueueing::note("waits for a copy");
}

cudaError_t copy_box(const char* call, const cudaMemcpy3DParms& box) {
  const cudaExtent& extent = box.extent;
  if (extent.width > box.dstPtr.pitch || extent.width > box.srcPtr.pitch) {
    refuse(call, is_program() ? "a row of it is longer than the pitch" : "");
    return set_last_error(cudaErrorInvalidPitchValue);
  }
  const auto row = [](const cudaPitchedPtr& memory, const cudaPos& at, std::size_t y,
                      std::size_t z) {
    return static_cast<char*>(memory.ptr) + ((at.z + z) * memory.ysize + at.y + y) * memory.pitch +
           at.x;
  };
  const auto to = [&](std::size_t y, std::size_t z) { return row(box.dstPtr, box.dstPos, y, z); };
  const auto from = [&](std::size_t y, std::size_t z) { return row(box.srcPtr, box.srcPos, y, z); };
  for (std::size_t z = 0; z < extent.depth; ++z) {
    for (std::size_t y = 0; y < extent.height; ++y) {
      const auto rest = [&](const auto& row) {
        return row(extent.height - 1, extent.depth - 1) + extent.width - row(y, z);
      };
      note_asynchronous_copy(to(y, z), extent.width);
      const cudaError_t error = copy(to(y, z), from(y, z), extent.width, box.kind,
                                     {call, std::size_t(rest(to)), std::size_t(rest(from))});
      if (error) return error;
    }
  }
  return cudaSuccess;
}

cudaMemcpy3DParms rows_of(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                          std::size_t width, std::size_t height, cudaMemcpyKind kind) {
  return {{},
          {const_cast<void*>(from), from_pitch, width, height},
          {},
          {to, to_pitch, width, height},
          {width, height, 1},
          kind};
}

}  // namespace

std::size_t allocation_count() {
  const std::lock_guard lock(allocations_mutex);
  return allocations().size();
}

DeviceMemoryOutOfReach::DeviceMemoryOutOfReach() { change_reach(out_of_reach, 1); }
DeviceMemoryOutOfReach::~DeviceMemoryOutOfReach() { change_reach(out_of_reach, -1); }
DeviceMemoryInReach::DeviceMemoryInReach() { change_reach(in_reach, 1); }
DeviceMemoryInReach::~DeviceMemoryInReach() { change_reach(in_reach, -1); }

void free_device_memory() {
  const std::lock_guard lock(allocations_mutex);
  for (auto block = allocations().begin(); block != allocations().end();) {
    const auto [begin, about] = *block;
    if constexpr (COUNTING) memory_freed(begin);
    if (about.kind < Kind::kRegistered) release(begin, about.bytes);
    block = allocations().erase(block);
  }
  heap_bytes = device_bytes = 0;
  heap_is_used = false;
}

void* allocate_on_heap(std::size_t bytes) {
  constexpr std::size_t HEADER = 16;  // of each block: a GPU's heap has something of the kind
  std::size_t limit = 0;
  cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize);
  if (bytes > limit) return nullptr;
  const std::size_t of_heap = HEADER + (bytes + HEADER - 1) / HEADER * HEADER;
  {
    const std::lock_guard lock(allocations_mutex);
    heap_is_used = true;
    if (of_heap > limit - std::min(limit, heap_bytes)) return nullptr;
    heap_bytes += of_heap;
  }
  void* memory = nullptr;
  if (allocate(&memory, std::max<std::size_t>(bytes, 1), Kind::kDevice, of_heap) != cudaSuccess) {
    const std::lock_guard lock(allocations_mutex);
    heap_bytes -= of_heap;
  }
  return memory;
}

bool free_on_heap(void* memory) { return free_block(memory, false, true); }

bool is_heap_used() {
  const std::lock_guard lock(allocations_mutex);
  return heap_is_used;
}

std::string describe_address(const void* address) {
  const std::lock_guard lock(allocations_mutex);
  constexpr std::size_t HEADER = 8;  // in which malloc() keeps a size, and free() looks for it
  auto found = find_allocation(address);
  const bool is_before = found == allocations().end();
  if (is_before) found = find_allocation(static_cast<const char*>(address) + HEADER);
  if (found == allocations().end()) return "";
  const char* kind = found->second.kind == Kind::kDevice    ? "device"
                     : found->second.kind == Kind::kManaged ? "managed"
                                                            : "pinned";
  return fmt::format("{} memory ({} bytes, at byte {}{})", kind, found->second.bytes,
                     static_cast<const char*>(address) - found->first,
                     is_before ? ": free() can't free it, but cudaFree() or cudaFreeHost()" : "");
}

void forbid_memory(const void* begin, std::size_t bytes) {
  if constexpr (COUNTING) set_memory_state(begin, bytes, MemoryState::kForbidden);
}

void name_memory(const void* address, const std::string& name) {
  if constexpr (COUNTING) memory_named(address, name);
}

std::string wrong_operand(const void* begin, std::size_t bytes, const std::string& name) {
  return wrong_end(begin, bytes, true, name.c_str());
}

void* address_for_host(const volatile void* address) {
  void* const any = const_cast<void*>(address);
  return COUNTING && is_program() && is_device_variable(any) ? of_symbols : any;
}

}  // namespace convladder::simulator

using namespace convladder::simulator;

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  return allocate(pointer, bytes, Kind::kDevice);
}

cudaError_t cudaMallocManaged(void** pointer, std::size_t bytes, unsigned) {
  return allocate(pointer, bytes, Kind::kManaged);
}

cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  return allocate(pointer, bytes, Kind::kHost);
}

cudaError_t cudaMallocPitch(void** pointer, std::size_t* pitch, std::size_t width,
                            std::size_t height) {
  if (!pitch) return set_last_error(cudaErrorInvalidValue);
  *pitch = (width + 511) / 512 * 512;
  return cudaMalloc(pointer, *pitch * height);
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pointer, cudaExtent extent) {
  if (!pointer) return set_last_error(cudaErrorInvalidValue);
  pointer->xsize = extent.width;
  pointer->ysize = extent.height;
  return cudaMallocPitch(&pointer->ptr, &pointer->pitch, extent.width,
                         extent.height * extent.depth);
}

cudaError_t cudaFree(void* pointer) { return free_memory("cudaFree()", pointer, false); }

cudaError_t cudaFreeHost(void* pointer) { return free_memory("cudaFreeHost()", pointer, true); }

cudaError_t cudaHostRegister(void* pointer, std::size_t bytes, unsigned) {
  if (!pointer || bytes == 0) return set_last_error(cudaErrorInvalidValue);
  const std::lock_guard lock(allocations_mutex);
  if (find_allocation(pointer) != allocations().end()) {
    return set_last_error(cudaErrorHostMemoryAlreadyRegistered);
  }
  allocations()[static_cast<char*>(pointer)] = {bytes, Kind::kRegistered};
  if constexpr (COUNTING) {
    memory_allocated(pointer, bytes, true);
    set_memory_state(pointer, bytes, MemoryState::kDefined);
  }
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* pointer) {
  const std::lock_guard lock(allocations_mutex);
  const auto found = allocations().find(static_cast<char*>(pointer));
  if (found == allocations().end() || found->second.kind != Kind::kRegistered) {
    return set_last_error(cudaErrorHostMemoryNotRegistered);
  }
  allocations().erase(found);
  if constexpr (COUNTING) memory_freed(pointer);
  return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  const std::lock_guard lock(allocations_mutex);
  if (!device || find_allocation(host) == allocations().end()) {
    return set_last_error(cudaErrorInvalidValue);
  }
  *device = host;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  if (!attributes) return set_last_error(cudaErrorInvalidValue);
  void* const address = const_cast<void*>(pointer);
  *attributes = {cudaMemoryTypeUnregistered, -2, nullptr, address};
  const std::lock_guard lock(allocations_mutex);
  const auto found = find_allocation(pointer);
  if (found == allocations().end()) return cudaSuccess;
  const Kind kind = found->second.kind;
  *attributes = {kind == Kind::kDevice    ? cudaMemoryTypeDevice
                 : kind == Kind::kManaged ? cudaMemoryTypeManaged
                                          : cudaMemoryTypeHost,
                 0, address, kind == Kind::kDevice ? nullptr : address};
  return cudaSuccess;
}

cudaError_t cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t) {
  return cudaMalloc(pointer, bytes);
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t) { return cudaFree(pointer); }

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  if (!free || !total) return set_last_error(cudaErrorInvalidValue);
  const convladder::HostMemory memory = convladder::host_memory();
  *free = memory.free;
  *total = memory.total;
  if (!is_program()) return cudaSuccess;
  const std::lock_guard lock(allocations_mutex);
  *free = device_capacity() - std::min(device_capacity(), device_bytes);
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  Enqueueing::note("waits for a copy");
  return copy(to, from, bytes, kind, {"cudaMemcpy()", bytes, bytes});
}

cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                         std::size_t width, std::size_t height, cudaMemcpyKind kind) {
  Enqueueing::note("waits for a copy");
  return copy_box("cudaMemcpy2D()", rows_of(to, to_pitch, from, from_pitch, width, height, kind));
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                              std::size_t from_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  Enqueueing::note_stream(stream);
  return copy_box("cudaMemcpy2DAsync()",
                  rows_of(to, to_pitch, from, from_pitch, width, height, kind));
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* what) {
  Enqueueing::note("waits for a copy");
  return what ? copy_box("cudaMemcpy3D()", *what) : set_last_error(cudaErrorInvalidValue);
}

cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* what, cudaStream_t stream) {
  if (!what) return set_last_error(cudaErrorInvalidValue);
  Enqueueing::note_stream(stream);
  return copy_box("cudaMemcpy3DAsync()", *what);
}

cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, std::size_t bytes) {
  return cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  Enqueueing::note_stream(stream);
  note_asynchronous_copy(to, bytes);
  return copy(to, from, bytes, kind, {"cudaMemcpyAsync()", bytes, bytes});
}

cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  return cudaMemsetAsync(to, value, bytes, nullptr);
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  Enqueueing::note_stream(stream);
  if (bytes == 0) return cudaSuccess;
  if (fault_due(Call::kMemset)) return set_last_error(cudaErrorUnknown);
  if (!to) return set_last_error(cudaErrorInvalidValue);
  if (failed_before()) return failed_before();
  if (is_planning()) return cudaSuccess;
  last_kernel_may_run = false;
  if (is_program()) {
    if (const cudaError_t error =
            refuse("cudaMemset()", wrong_end(to, bytes, true, "destination"))) {
      return error;
    }
    if (COUNTING && is_filled(to, bytes, value)) return cudaSuccess;
  }
  const DeviceMemoryInReach in_reach;
  const std::size_t first = bytes_left_out(bytes);
  std::memset(static_cast<char*>(to) + first, value, bytes - first);
  if constexpr (COUNTING) {
    // All bits set, a NaN, is how cudaMalloc leaves memory, and how it is made undefined again.
    const bool nan = (value & 0xff) == 0xff && !is_program();
    set_memory_state(to, bytes, nan ? MemoryState::kUndefined : MemoryState::kDefined);
    note_fill(to, bytes, value);
  }
  return cudaSuccess;
}

cudaError_t cudaMemset2D(void* to, std::size_t pitch, int value, std::size_t width,
                         std::size_t height) {
  return cudaMemset2DAsync(to, pitch, value, width, height, nullptr);
}

cudaError_t cudaMemset2DAsync(void* to, std::size_t pitch, int value, std::size_t width,
                              std::size_t height, cudaStream_t stream) {
  if (is_program() && to && width > 0 && height > 0) {
    const std::string wrong = wrong_end(to, pitch * (height - 1) + width, true, "destination");
    if (const cudaError_t error = refuse("cudaMemset2D()", wrong)) return error;
  }
  for (std::size_t row = 0; row < height; ++row) {
    const cudaError_t error =
        cudaMemsetAsync(static_cast<char*>(to) + row * pitch, value, width, stream);
    if (error) return error;
  }
  return cudaSuccess;
}

Symbol find_symbol(const volatile void* address, std::size_t bytes) {
  auto* const begin = static_cast<char*>(const_cast<void*>(address));
  if constexpr (COUNTING) {
    if (bytes == 0) return {begin, bytes_of_variable(begin)};
    const std::lock_guard lock(allocations_mutex);
    if (is_device_variable(begin) || find_allocation(begin) != allocations().end()) {
      return {begin, bytes};
    }
    if (!is_instance(begin)) return {};
    memory_allocated(begin, bytes);
    set_memory_state(begin, bytes, MemoryState::kDefined);
    allocations()[begin] = {bytes, Kind::kSymbol};
  }
  return {begin, bytes};
}

cudaError_t get_symbol(Symbol symbol, void** begin, std::size_t* bytes) {
  if (symbol.bytes == 0) return set_last_error(cudaErrorInvalidSymbol);
  if (begin) *begin = symbol.begin;
  if (bytes) *bytes = symbol.bytes;
  return cudaSuccess;
}

cudaError_t copy_symbol(Symbol symbol, void* to, const void* from, std::size_t bytes,
                        std::size_t offset, cudaMemcpyKind kind, const cudaStream_t* stream) {
  if (symbol.bytes == 0) return set_last_error(cudaErrorInvalidSymbol);
  if (offset > symbol.bytes || bytes > symbol.bytes - offset) {
    if (!is_program()) return set_last_error(cudaErrorInvalidValue);
    return refuse("a copy", fmt::format("{} bytes from byte {} on, of a variable of {}", bytes,
                                        offset, symbol.bytes));
  }
  char* const there = symbol.begin + offset;
  if (!to) to = there;
  if (!from) from = there;
  return stream ? cudaMemcpyAsync(to, from, bytes, kind, *stream)
                : cudaMemcpy(to, from, bytes, kind);
}
