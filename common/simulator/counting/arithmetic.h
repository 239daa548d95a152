// How often a kernel's code multiplies floats. The compiler calls no function of ours before a
// multiplication, but one at the begin of every basic block; what stands in a block is read from the
// program's own code, once per kernel.
#pragma once

#include <cstddef>
#include <cstdint>

namespace convladder::simulator {

struct BlockProducts {
  uintptr_t begin = 0;
  std::size_t size = 0;
  const uint16_t* of_block =
      nullptr;  // by the offset of the hook's return address; null: not known

  // Products of floats in the block whose hook returns to `pc`; 0 where that is no such block's.
  unsigned of(const void* pc) const {
    const std::size_t at = reinterpret_cast<uintptr_t>(pc) - begin;
    return at < size ? of_block[at] : 0;
  }
};

// Of the kernel that begins at `kernel` and has so many bytes of code; kept until the program ends.
// Asks binutils' objdump; without it, or with no bytes, nothing is known.
BlockProducts read_products(const void* kernel, std::size_t bytes);

}  // namespace convladder::simulator
