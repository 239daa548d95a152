// How often a kernel's code multiplies floats. The compiler calls no function of ours before a
// multiplication, but one at the begin of every basic block; what stands in a block is read from the
// program's own code, once per kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace convladder::simulator {

class BlockProducts {
 public:
  // Of the kernel that begins at `kernel`. Asks binutils' objdump; without it, or without symbols,
  // nothing is known.
  explicit BlockProducts(const void* kernel = nullptr);

  bool known() const { return !of_block_.empty(); }

  // What is looked up at the begin of every block: nothing to follow.
  struct View {
    uintptr_t begin = 0;
    std::size_t size = 0;
    const uint16_t* of_block = nullptr;

    // Products of floats in the block whose hook returns to `pc`; 0 where that is no such block's.
    unsigned of(const void* pc) const {
      const std::size_t at = reinterpret_cast<uintptr_t>(pc) - begin;
      return at < size ? of_block[at] : 0;
    }
  };
  View view() const { return {begin_, of_block_.size(), of_block_.data()}; }

 private:
  uintptr_t begin_ = 0;
  std::vector<uint16_t> of_block_;  // by the offset of that return address
};

}  // namespace convladder::simulator
