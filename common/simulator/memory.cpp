#include <cuda_runtime.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <string>
#include <unordered_map>

#include "common/simulator/errors.h"
#include "common/simulator/fault.h"
#include "common/simulator/launch.h"
#include "common/simulator/observer.h"

namespace convladder::simulator {
namespace {

// Device memory lies apart from the host's heap, between margins that nobody may touch: far astray, a
// kernel ends the program, where it would have changed the simulator itself, which then might wait
// for ever. AddressSanitizer has margins of its own. Null without memory.
#ifdef __SANITIZE_ADDRESS__
constexpr std::size_t ALIGNMENT = 256;  // cudaMalloc's promise

void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  return posix_memalign(&memory, ALIGNMENT, bytes) == 0 ? memory : nullptr;
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
  if (mprotect(memory, bytes, PROT_READ | PROT_WRITE) == 0) return memory;
  release(memory, bytes);
  return nullptr;
}
#endif

// The number after `key` in a file of lines "key number ..."; SIZE_MAX without such a line.
std::size_t find_number(const char* path, const std::string& key) {
  std::ifstream file(path);
  std::string word, rest;
  std::size_t number = 0;
  while (file >> word) {
    if (word == key && file >> number) return number;
    std::getline(file, rest);
  }
  return SIZE_MAX;
}

// The pointers that cudaMalloc gave and cudaFree has not taken back, and their bytes.
std::mutex allocations_mutex;
std::unordered_map<void*, std::size_t>& allocations() {
  static auto* all = new std::unordered_map<void*, std::size_t>;  // outlives every other static
  return *all;
}

struct HostMemory {
  std::size_t free, total;  // bytes
};

// What this process may still take without swapping, and what it might have taken at most: of the
// machine, or of its control group (cgroup v2) where that allows less.
HostMemory host_memory() {
  HostMemory memory{find_number("/proc/meminfo", "MemAvailable:"),
                    find_number("/proc/meminfo", "MemTotal:")};
  if (memory.total != SIZE_MAX) memory.total *= 1024;  // the file counts in KiB
  if (memory.free != SIZE_MAX) memory.free *= 1024;

  std::size_t limit = SIZE_MAX;
  std::ifstream("/sys/fs/cgroup/memory.max") >> limit;  // the word "max" reads as 0
  const std::size_t used = find_number("/sys/fs/cgroup/memory.stat", "anon");
  if (limit > 0 && limit < memory.total && used != SIZE_MAX) {
    memory.total = limit;
    memory.free = std::min(memory.free, limit - std::min(limit, used));
  }
  return memory;
}

}  // namespace

std::size_t allocation_count() {
  const std::lock_guard lock(allocations_mutex);
  return allocations().size();
}

void forbid_memory(const void* begin, std::size_t bytes) {
  if constexpr (COUNTING) set_memory_state(begin, bytes, MemoryState::kForbidden);
}

}  // namespace convladder::simulator

using namespace convladder::simulator;

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  if (!pointer) return set_last_error(cudaErrorInvalidValue);
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (fault_due(Call::kMalloc) || bytes > host_memory().free) {
    return set_last_error(cudaErrorMemoryAllocation);
  }
  void* const memory = allocate(bytes);
  if (!memory) return set_last_error(cudaErrorMemoryAllocation);
  std::memset(memory, 0xff, bytes);  // all bits set is a quiet NaN
  const std::lock_guard lock(allocations_mutex);
  allocations()[memory] = bytes;
  if constexpr (COUNTING) memory_allocated(memory, bytes);
  *pointer = memory;
  return cudaSuccess;
}

cudaError_t cudaFree(void* pointer) {
  if (!pointer) return cudaSuccess;
  std::size_t bytes = 0;
  {
    const std::lock_guard lock(allocations_mutex);
    const auto found = allocations().find(pointer);
    if (found == allocations().end()) return set_last_error(cudaErrorInvalidValue);
    bytes = found->second;
    allocations().erase(found);
    if constexpr (COUNTING) memory_freed(pointer);
  }
  release(pointer, bytes);
  return cudaSuccess;
}

cudaError_t cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t) {
  return cudaMalloc(pointer, bytes);
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t) { return cudaFree(pointer); }

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  if (!free || !total) return set_last_error(cudaErrorInvalidValue);
  const HostMemory memory = host_memory();
  *free = memory.free;
  *total = memory.total;
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) {
    return set_last_error(cudaErrorInvalidMemcpyDirection);
  }
  if (bytes == 0) return cudaSuccess;
  if (fault_due(Call::kMemcpy)) return set_last_error(cudaErrorUnknown);
  if (!to || !from) return set_last_error(cudaErrorInvalidValue);
  std::memmove(to, from, bytes);
  if constexpr (COUNTING) set_memory_state(to, bytes, MemoryState::kDefined);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t) {
  return cudaMemcpy(to, from, bytes, kind);
}

cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  if (bytes == 0) return cudaSuccess;
  if (fault_due(Call::kMemset)) return set_last_error(cudaErrorUnknown);
  if (!to) return set_last_error(cudaErrorInvalidValue);
  std::memset(to, value, bytes);
  if constexpr (COUNTING) {
    // All bits set, a NaN, is how cudaMalloc leaves memory, and how it is made undefined again.
    const bool nan = (value & 0xff) == 0xff;
    set_memory_state(to, bytes, nan ? MemoryState::kUndefined : MemoryState::kDefined);
  }
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t) {
  return cudaMemset(to, value, bytes);
}
