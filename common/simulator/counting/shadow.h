// Shadow memory: for every 4-byte word of memory, who touched it last. Two accesses to one word by
// different threads race when one of them writes and no barrier lies between.
#pragma once

#include <cstdint>

namespace convladder::simulator {

// When and by whom: 64 bits, so that it is read and written at once. The interval is the number of
// __syncthreads() before, the phase that of __syncwarp(), both modulo their bits.
struct Stamp {
  uint64_t present : 1;
  uint64_t in_flight : 1;        // written by an asynchronous copy that nobody has waited for
  uint64_t several_threads : 1;  // of this warp, in this interval; `thread` is the last of them
  uint64_t several_warps : 1;    // of this block, in this interval
  uint64_t several_blocks : 1;   // of this launch; `block` is the last of them
  uint64_t thread : 10;          // x fastest
  uint64_t phase : 3;
  uint64_t interval : 15;
  uint64_t block : 31;  // x fastest
};
static_assert(sizeof(Stamp) == 8);

// A stamp, and the instruction behind it as an offset in the program's code.
struct Touch {
  Stamp stamp;
  uint32_t code;
};

struct ShadowWord {
  Stamp write, read;
  uint32_t write_code, read_code;
};

enum class Scope { kBlock, kGrid };  // which threads see the word: shared or global memory

// Enters a read (a write) in `word`. Returns the touch that it races with; .stamp.present is 0 when
// there is none.
Touch enter_read(ShadowWord& word, Touch now, Scope scope);
Touch enter_write(ShadowWord& word, Touch now, Scope scope);

}  // namespace convladder::simulator
