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

  void fill_nan() const;  // all bits set: as float a quiet NaN, as int -1

  bool contains(const void* address, std::size_t size) const {
    const auto offset = static_cast<std::size_t>(static_cast<const char*>(address) - begin);
    return offset < bytes && bytes - offset >= size;
  }
};

inline thread_local SharedMemory shared_memory;  // set by Worker

}  // namespace convladder::simulator
