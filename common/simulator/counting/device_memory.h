// The global memory that kernels may touch, and its shadow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/simulator/counting/shadow.h"
#include "common/simulator/observer.h"

namespace convladder::simulator {

// What cudaMalloc gave, in words of 4 bytes.
class Allocation {
 public:
  Allocation(const void* begin, std::size_t bytes);
  ~Allocation();
  Allocation(const Allocation&) = delete;

  uintptr_t begin() const { return begin_; }
  std::size_t bytes() const { return bytes_; }
  bool contains(uintptr_t address) const { return address - begin_ < bytes_; }
  std::size_t words() const { return (bytes_ + 3) / 4; }

  void set_state(std::size_t first, std::size_t count, MemoryState state);
  MemoryState state(std::size_t word) const { return state_[word]; }

  // As enter_read() and enter_write(); several workers may be at it at a time.
  Touch enter(std::size_t word, Touch now, bool write);

  void forget_touches();  // a new launch begins
  // 32-byte sectors with a word that was read (written) since.
  int64_t sectors_touched(bool written) const;

 private:
  uintptr_t begin_;
  std::size_t bytes_;
  MemoryState* state_;
  ShadowWord* shadow_;
};

using Allocations = std::vector<std::shared_ptr<Allocation>>;

// All that there is now.
Allocations device_memory();

// The allocation with `address` in it, or null.
Allocation* find(const Allocations& all, uintptr_t address);

// Whether `address` is that of a variable of the program: __device__ memory.
bool is_program_data(uintptr_t address);

}  // namespace convladder::simulator
