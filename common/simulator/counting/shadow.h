// Shadow memory: for every 4-byte word of memory, who touched it last; of global memory also whether
// kernels may touch it. Two accesses to one word by different threads race when one of them writes,
// no barrier lies between, and not both are strong. (Of strong ones only updates do, of which one is lost.)
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/simulator/observer.h"

namespace convladder::simulator {

// When and by whom: 64 bits, so that it is read and written at once. The interval is the number of
// __syncthreads() before, the phase counts the __syncwarp(), both modulo their bits (and so is the block).
struct Stamp {
  uint64_t present : 1;
  uint64_t strong : 1;  // by an atomic operation, or a volatile access to global memory
  // Not done at once. Of shared memory: written by an asynchronous copy that nobody has waited for. Of
  // global memory: an update, the volatile store of a thread that has read the word before.
  uint64_t in_flight : 1;
  uint64_t several_threads : 1;  // of this warp, in this interval; `thread` is the last of them
  uint64_t several_warps : 1;    // of this block, in this interval
  uint64_t several_blocks : 1;   // of this launch; `block` is the last of them
  uint64_t thread : 10;          // x fastest
  uint64_t interval : 16;
  uint64_t fences : 2;  // the thread's since the last __syncthreads(), at most 3
  uint64_t phase : 10;
  uint64_t block : 20;  // x fastest
};
static_assert(sizeof(Stamp) == 8);
constexpr unsigned PHASES = 1 << 10, INTERVALS = 1 << 16;  // that stamps tell apart

// A stamp, the instruction behind it as an offset in the program's code, and a bit for each byte of the
// word that it touches.
struct Touch {
  Stamp stamp;
  uint32_t code : 28, bytes : 4;
  bool is_read = false;  // of one that is returned
  // Of one that comes now: for each lane of its warp the phase that a __syncwarp() of both has begun, and its own
  // one. A lane may be ahead, by its own with others.
  const uint32_t* known = nullptr;
  const uint32_t* reached = nullptr;

  // Whether a __syncwarp() lies between what a lane of this warp did and now.
  bool is_behind(Stamp before) const {
    const uint64_t lane = before.thread % uint64_t{warpSize};
    const uint32_t phase = before.phase;
    const bool is_ahead = (reached[lane] - phase) % PHASES < reached[lane] - known[lane];
    return !is_ahead && (known[lane] - phase) % PHASES != 0;
  }
};

struct ShadowWord {
  Stamp write, read;
  uint32_t write_code : 28, write_bytes : 4, read_code : 28, read_bytes : 4;
};

enum class Scope { kBlock, kGrid };  // which threads see the word: shared or global memory

inline bool same_interval(Stamp a, Stamp b) {
  return a.block == b.block && a.interval == b.interval;
}
inline bool same_warp(Stamp a, Stamp b) {
  return a.thread / uint64_t{warpSize} == b.thread / uint64_t{warpSize};
}

// Whether nothing orders `before` and `now`, two touches of one word by different threads.
inline bool is_concurrent(Stamp before, const Touch& touch, Scope scope) {
  const Stamp now = touch.stamp;
  const bool are_updates = before.in_flight && now.in_flight;
  if (!before.present || (before.strong && now.strong && !are_updates)) return false;
  if (scope == Scope::kGrid && (before.several_blocks || before.block != now.block)) return true;
  if (!same_interval(before, now)) return false;  // in shared memory: also what blocks before left
  if (before.several_warps || !same_warp(before, now)) return true;
  if (touch.is_behind(before)) return false;
  return before.several_threads || before.thread != now.thread;
}

// Has `now`, the stamp of `touch`, tell of those as well whose touch it takes the place of.
inline void add_others(Stamp& now, const Touch& touch, Stamp before, Scope scope) {
  if (scope == Scope::kGrid) {
    now.several_blocks = before.several_blocks || before.block != now.block;
  }
  if (!same_interval(before, now)) return;
  now.several_warps = before.several_warps || !same_warp(before, now);
  if (!touch.is_behind(before)) {
    now.several_threads = before.several_threads || before.thread != now.thread;
  }
}

// Enters a read (a write) in `word`. Returns the touch that it races with, and enters nothing;
// .stamp.present is 0 when there is none, or one is `allowed`. A read takes the place of earlier ones where those
// are known to be `ordered` before it.
inline Touch enter_read(ShadowWord& word, Touch now, Scope scope, bool allowed = false,
                        bool ordered = false) {
  if (!allowed && (word.write_bytes & now.bytes) && is_concurrent(word.write, now, scope)) {
    return {word.write, word.write_code, word.write_bytes};
  }
  const Stamp before = word.read;
  Stamp read = now.stamp;
  word.read_code = now.code;
  const bool share = before.present && !ordered && (word.read_bytes & now.bytes);
  word.read_bytes = share ? word.read_bytes & now.bytes : now.bytes;
  if (share) {
    read.strong = before.strong && read.strong;
    add_others(read, now, before, scope);
  }
  word.read = read;
  return {};
}

// The same of most reads of shared memory, for speed: others of the warp, or of several warps, have read the word
// since the barrier, and it was written before. False: it is for enter_read().
inline bool join_readers(ShadowWord& word, const Touch& now) {
  const Stamp write = word.write, read = word.read;
  if (!write.present || write.in_flight || write.block != now.stamp.block) return false;
  if (write.interval == now.stamp.interval || !same_interval(read, now.stamp)) return false;
  if (!read.present || read.strong || word.read_bytes != now.bytes) return false;
  if (!read.several_warps &&
      !(read.several_threads && same_warp(read, now.stamp) && !now.is_behind(read))) {
    return false;
  }
  word.read.thread = now.stamp.thread;
  word.read.fences = now.stamp.fences;
  word.read_code = now.code;
  return true;
}

inline Touch enter_write(ShadowWord& word, Touch now, Scope scope, bool allowed = false) {
  for (const Touch& before : {Touch{word.write, word.write_code, word.write_bytes},
                              Touch{word.read, word.read_code, word.read_bytes, true}}) {
    const bool share = (before.bytes & now.bytes) != 0;
    if (!allowed && share && is_concurrent(before.stamp, now, scope)) return before;
  }
  if (now.stamp.strong && word.write.present && (word.write_bytes & now.bytes) == now.bytes) {
    const Stamp before = word.write;
    const bool is_own = same_interval(before, now.stamp) && before.thread == now.stamp.thread;
    // Its own plain write races with what its strong one doesn't.
    if (is_own && !before.strong && before.phase == now.stamp.phase) return {};
    if (before.strong && scope == Scope::kBlock) add_others(now.stamp, Touch(now), before, scope);
  }
  word.write = now.stamp;
  word.write_code = now.code;
  word.write_bytes = now.bytes;
  return {};
}

// ---- The global memory that kernels may touch ----

// Neighbouring words of a line that threads have touched one after another in the same way: what `first`
// says of the word `origin`, and of those `width` words later with a thread that is `step` further.
struct Run {
  Stamp first;
  uint32_t code : 28, bytes : 4;
  uint32_t write : 1;
  uint32_t begin : 6, end : 6;  // the words that it still tells of
  uint32_t origin : 5;
  uint32_t width : 6;  // 0: all by one thread so far
  uint32_t step : 8;

  bool holds(unsigned word) const { return word >= begin && word < end; }
  Stamp stamp(unsigned word) const;
  // Also tells of that word from here on; false where it was not touched in the same way.
  bool append(unsigned word, const Touch& touch, bool is_write);
};
static_assert(sizeof(Run) == 16);

// The shadow of 32 words in few runs, since most kernels touch them in order; else of each word alone.
struct Line {
  static constexpr unsigned WORDS = 32;
  union {
    Run runs[4];
    ShadowWord* words;
  };
  uint32_t launch;  // in which it was touched last: of one before nothing is left
  static constexpr uint16_t EACH_WORD = 5;
  uint16_t count;         // of runs, or EACH_WORD
  std::atomic_flag busy;  // a worker is at it

  // Whether the word has been untouched; then it is no longer.
  bool touch_first(unsigned word, const Touch& now, bool write);
  ShadowWord load(unsigned word) const;
  void store(unsigned word, const ShadowWord& shadow, bool write);  // its write, or its read
  uint32_t touched(bool written) const;                             // a bit for each word

 private:
  bool add(unsigned word, const Touch& touch, bool write);
  bool forget(unsigned word, bool write);
  void expand();
};

// What cudaMalloc gave, in words of 4 bytes.
class Allocation {
 public:
  Allocation(const void* begin, std::size_t bytes, bool host_writes = false);
  ~Allocation();
  Allocation(const Allocation&) = delete;

  uintptr_t begin() const { return begin_; }
  std::size_t bytes() const { return bytes_; }
  bool contains(uintptr_t address) const { return address - begin_ < bytes_; }
  std::size_t words() const { return (bytes_ + 3) / 4; }

  std::string name;  // of the tensor in it, where that is known: "the input"

  void retire() { begin_ = uintptr_t{1} << 63; }  // has been freed: nothing is in it any more

  void set_state(std::size_t first, std::size_t count, MemoryState state);
  MemoryState state(std::size_t word) const { return static_cast<MemoryState>(state_[word] & 3); }
  // These bytes of the words (bits, 15: all) are written now; several workers may be at it at a time.
  void set_written(std::size_t first, std::size_t last, unsigned bytes);
  // Whether nobody has written any of them. (Of a structure that is copied, those between its members are not.)
  bool is_unwritten(std::size_t word, unsigned bytes) const {
    const MemoryState is = state(word);
    return is == MemoryState::kUndefined ||
           (is == MemoryState::kPartial && (state_[word] >> 2 & bytes) == 0);
  }

  // As enter_read() and enter_write(); several workers may be at it at a time.
  // `seen`: until when the thread has seen what fences publish.
  Touch enter(std::size_t word, Touch now, bool write, bool allowed = false, uint64_t seen = 0);
  // Whether these bytes may be touched, and nobody has touched them in this launch; then they are entered.
  bool touch_first(uintptr_t address, unsigned bytes, const Touch& now, bool write);
  // Whether to enter another read of these bytes would change nothing: several blocks have read the words
  // in this launch, and none has written them.
  bool is_settled(uintptr_t address, unsigned bytes) const {
    const std::size_t first = (address - begin_) / 4, last = (address + bytes - 1 - begin_) / 4;
    if (address - begin_ + bytes > bytes_ || address % bytes != 0) return false;
    for (std::size_t word = first; word <= last; ++word) {
      if (state_[word] != settled_) return false;
    }
    return true;
  }

  // What was done to it in this launch.
  bool was_touched() const;
  bool was_written_by_host() const { return host_writes_ && was_touched(); }  // or may have been
  // Whether something that was read before has been written.
  bool was_overwritten() const { return overwritten_; }
  void note_write() {  // also by the host
    if (!written_.load(std::memory_order_relaxed)) written_ = true;
  }
  // Of what is in it: another number, that nothing else has, once it may have changed.
  uint64_t version();

  // cudaMemset() has filled it from `begin` on; and whether the same once more would change nothing.
  struct Fill {
    uintptr_t begin;
    std::size_t bytes;
    int value;
  };
  void note_fill(Fill fill) { fill_ = fill; }
  bool is_filled(Fill fill) const;

  // A new launch begins, beside which the one before may still run on a GPU where `keeps` says so.
  void forget_touches(bool keeps);
  // Then: what that one has done to the word and `now` must come behind; .stamp.present is 0 when there is nothing.
  Touch touch_before(std::size_t word, Touch now, bool write) const;
  // 32-byte sectors with a word that was read (written) since.
  int64_t sectors_touched(bool written) const;

 private:
  std::size_t lines() const { return (words() + Line::WORDS - 1) / Line::WORDS; }
  void begin_launch(Line& line);
  template <typename Seen>
  void for_each_touched(const Seen& seen) const;

  uintptr_t begin_;
  std::size_t bytes_;
  bool host_writes_;  // to managed memory, and its own that kernels may touch
  // A MemoryState; above it, of a settled word, the launch's number modulo 2^6, but never 0; of a partial one,
  // the bytes that are written.
  uint8_t* state_;
  uint8_t settled_;
  uint32_t launch_ = 1;
  std::atomic<bool> written_{false};  // since version() was asked for
  std::atomic<bool> overwritten_{false};
  uint64_t version_ = 0;
  Line* lines_;
  Line* lines_before_ =
      nullptr;  // of the launch before, if they were kept: else their launches are older
  std::vector<uint8_t> touched_;  // stretches with lines that were touched in this launch
  Fill fill_{};                   // the last one, unless something has changed it since
};

// ---- What fences order ----

// A time is the number of publications until then. Threads tell of a time by strong writes, and see it by strong reads
// of the same word.

// The thread of `now` has come to a fence: what it has touched, and what barriers have ordered before
// it, is published, to its block alone or to the grid. `waited`: that the kernel before has ended is among it.
// Returns the time.
uint64_t publish(Stamp now, bool waited, bool in_block);
uint64_t publication_time();  // now
// Whether what `touch` did had been published to that block at that time.
bool was_published(Stamp touch, uint64_t time, uint64_t block);
// A word of global memory tells of that time from here on; and the latest of which it tells.
void tell(uintptr_t word, uint64_t time);
uint64_t told(uintptr_t word);
// Whether anybody's wait for the kernel before had.
bool was_wait_published(uint64_t time);
// A new launch begins, also as regards what kernels have freed; `keeps` as above.
void forget_publications(bool keeps);

using Allocations = std::vector<std::shared_ptr<Allocation>>;

// All that there is now.
Allocations device_memory();
// As Allocation::version(), of all __constant__ memory.
uint64_t version_of_constants();

// The allocation with `address` in it, or null.
Allocation* find(const Allocations& all, uintptr_t address);

// Where there is none, but one is near: ", 4 bytes past the end of 1024 bytes"; or null is; else empty.
std::string nearest(const Allocations& all, uintptr_t address);

// Whether there was device memory that has been freed.
bool was_freed(uintptr_t address);
// Whether cudaMalloc() gave this.
bool is_device_memory(const void* begin);

// Whether `address` is that of a variable of the program.
bool is_program_data(uintptr_t address);
// Whether it is one that a kernel of a program must not touch: neither constant, nor one of the device.
bool is_host_variable(uintptr_t address);
// Whether there is memory at all.
bool is_mapped(uintptr_t address);

// Whether it lies among the __constant__ variables; and whether all of these bytes are one's.
bool is_constant(uintptr_t address);
bool holds_constant(uintptr_t address, unsigned bytes);

// Near a variable of the device: "4 bytes past the end of __device__ table, 1024 bytes"; else empty.
std::string nearest_variable(uintptr_t address);

}  // namespace convladder::simulator
