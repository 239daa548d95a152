// Where a worker thread's shared memory lies.
#pragma once

#include <cstddef>
#include <cstdint>

namespace convladder::simulator {

// Dynamic shared memory that a launch may ask for: usually, and of a kernel that cudaFuncSetAttribute()
// has been called for; an H200's.
constexpr std::size_t DYNAMIC_BYTES = 48 * 1024, MOST_DYNAMIC_BYTES = 227 * 1024;
constexpr std::size_t BLOCK_BYTES = 1024;  // that a block takes besides

// A __shared__ variable is a thread_local one, so the program's thread-local storage, as this
// thread has it, holds the shared memory of every kernel. It also holds threadIdx and the like:
// whoever fills it must set them again. Worker threads run nothing but kernels, so that no
// thread_local of other code can be hurt there.
struct SharedMemory {
  char* begin = nullptr;
  std::size_t bytes = 0;

  // The calling thread's. Throws std::runtime_error if it isn't found.
  static SharedMemory of_this_thread();

  // Without the dynamic shared memory behind its first `dynamic_bytes`, which is most of it.
  template <typename Visit>  // visit(offset, bytes)
  void for_each_part(std::size_t dynamic_bytes, const Visit& visit) const {
    const std::size_t dynamic = dynamic_offset();
    visit(0, dynamic + dynamic_bytes);
    visit(dynamic + MOST_DYNAMIC_BYTES, bytes - dynamic - MOST_DYNAMIC_BYTES);
  }
  std::size_t dynamic_offset() const;

  // All bits set: as float a quiet NaN, as int -1.
  void fill_nan(std::size_t dynamic_bytes) const;

  // From where shared addresses count, so that they are aligned as pointers are.
  char* zero() const { return begin - reinterpret_cast<std::uintptr_t>(begin) % 1024; }

  bool contains(const void* address, std::size_t size) const {
    const auto offset = static_cast<std::size_t>(static_cast<const char*>(address) - begin);
    return offset < bytes && bytes - offset >= size;
  }
};

inline thread_local SharedMemory shared_memory;  // set by Worker

}  // namespace convladder::simulator
