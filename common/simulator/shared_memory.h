// Where a worker thread's shared memory lies.
#pragma once

#include <cstddef>

namespace convladder::simulator {

// A __shared__ variable is a thread_local one, so the program's thread-local storage, as this
// thread has it, holds the shared memory of every kernel. It also holds threadIdx and the like:
// whoever fills it must set them again. Worker threads run nothing but kernels, so that no
// thread_local of other code can be hurt there.
struct SharedMemory {
  char* begin = nullptr;
  std::size_t bytes = 0;

  // The calling thread's. Throws std::runtime_error if it isn't found.
  static SharedMemory of_this_thread();

  // All bits set: as float a quiet NaN, as int -1. Of the dynamic shared memory so many bytes.
  void fill_nan(std::size_t dynamic_bytes) const;

  bool contains(const void* address, std::size_t size) const {
    const auto offset = static_cast<std::size_t>(static_cast<const char*>(address) - begin);
    return offset < bytes && bytes - offset >= size;
  }
};

inline thread_local SharedMemory shared_memory;  // set by Worker

// Dynamic shared memory, of which a block may use as much as its launch asks for. As much as an H200 has
// for a block.
constexpr std::size_t MOST_DYNAMIC_BYTES = 227 * 1024;
alignas(128) inline thread_local char dynamic_shared_memory[MOST_DYNAMIC_BYTES];

}  // namespace convladder::simulator
