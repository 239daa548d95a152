// One worker's block, watched: every access is entered in the log of its thread, for counting, and
// in shadow memory, for finding bugs.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/core/program.h"
#include "common/simulator/counting/launch_counts.h"
#include "common/simulator/counting/shadow.h"
#include "common/simulator/counting/warp_log.h"
#include "common/simulator/counting/warp_trace.h"
#include "common/simulator/fibre.h"
#include "common/simulator/hopper.h"
#include "common/simulator/observer.h"
#include "common/simulator/tensor_map.h"
#include "common/simulator/worker.h"

namespace convladder::simulator {

// What an instruction does to memory.
struct Access {
  uintptr_t address;
  unsigned bytes;
  Operation operation;
  const void* pc;           // where the hook's call returns to
  uintptr_t other_end = 0;  // of a copy: its source, or NO_SOURCE; or its destination
  bool strong = false;      // an atomic operation, or a volatile access
  bool atomic = false;      // an atomic operation, load or store
};

// It is told of accesses on this worker; null while no kernel's code runs. The hooks themselves,
// and all else in the simulator, may call functions that are instrumented: the linker keeps one
// version of an inline function, which may be that from a kernel's source.
inline thread_local BlockObserver* watching = nullptr;

// This worker's.
inline thread_local BlockObserver* observing = nullptr;

// threadIdx and the like are registers on a GPU.
inline bool is_index(uintptr_t address) {
  const auto within = [&](const auto& variable) {
    return address - reinterpret_cast<uintptr_t>(&variable.x) < 3 * sizeof(variable.x);
  };
  return within(threadIdx) || within(blockIdx) || within(blockDim) || within(gridDim);
}

// Follows the blocks of one worker, one at a time.
class BlockObserver {
 public:
  explicit BlockObserver(Worker& worker);

  void begin_block(const Grid& grid, uint64_t block);
  void end_block();  // the kernel has not failed

  void resume(unsigned thread, const Fibre& fibre);  // has its turn from here on
  void leave(unsigned thread);  // has left the kernel, or waits at __syncthreads()
  void order_lanes(unsigned warp, uint32_t lanes);  // have come to a __syncwarp()
  void sync_warp(unsigned thread);                  // goes on behind it
  void sync_threads();                              // all threads have come to __syncthreads()
  // The lanes of a warp have given each other so many words: each passes L1's data pipe once.
  void shuffle(int words) { counts_.pipe_wavefronts += words; }
  // One of the warps has multiplied by its tensor core.
  void mma(int instructions) { counts_.tensor_instructions += instructions; }
  // A warpgroup has: a product with so many columns, whose operands in shared memory take so many bytes.
  // The banks give 128 bytes at a time, and all four warps read the same.
  void mma_of_warpgroup(unsigned columns, std::size_t bytes) {
    counts_.hopper.products += 4;
    counts_.hopper.columns += columns;
    const auto wavefronts = static_cast<int64_t>(bytes / 128);
    counts_.hopper.operand_wavefronts += wavefronts;
    counts_.pipe_wavefronts += wavefronts;
  }
  // The running thread publishes what it has done, to its block alone or to the grid, ...
  void fence(bool in_block);
  void look_again();  // ... sees what the word that it has read last tells of, ...
  void look_all();    // ... or all that is published, ...
  // ... or what those tell of that come to a barrier of that number.
  void tell_barrier(unsigned number) { tell_here(number); }
  void look_barrier(unsigned number) { look(told_here(number)); }
  void wait_for_kernel_before();
  uint64_t code_before_last(unsigned thread) const { return logs_[thread].code_before_last(); }
  uint64_t last_code(unsigned thread) const { return logs_[thread].last_code(); }

  void atomic_next() { atomic_next_ = true; }
  bool take_atomic() { return std::exchange(atomic_next_, false); }

  // From here on the running thread is in the simulator's own code, until it has its turn again, or
  // comes out of the call that said so.
  void pause() {
    watching = nullptr;
    forget_known();
  }
  void go_on() { watching = this; }
  void forget_known() { ++turn_; }

  // An asynchronous copy of the running thread, asked for by the call that returns to `pc`, and its
  // end. Nothing is read from `from` where bytes == zfill.
  void begin_copy(void* to, const void* from, std::size_t bytes, std::size_t zfill, const void* pc);
  void end_copy(void* to, std::size_t bytes, int thread);

  // ---- For Hopper ----

  // The running thread makes a barrier; it asks the copy engine for an access to global memory.
  void enter_barrier(void* barrier, const void* pc);
  void enter_bulk(const char* begin, unsigned bytes, bool write, const void* pc);
  // The copy engine's instruction that has asked for these, to load.
  void enter_bulk_load(const std::vector<Piece>& pieces, const void* pc);
  unsigned interval() const { return interval_; }
  const ShadowWord& shared_word(std::size_t index) const { return shared_shadow_[index]; }
  bool is_of_this_block(Stamp stamp) const { return stamp.present && stamp.block == block_; }
  bool is_of_this_interval(Stamp stamp) const {
    return is_of_this_block(stamp) && stamp.interval == stamp_.interval;
  }
  // The word has been written by the copy engine, of which Hopper knows more.
  void forget_touches(std::size_t index) {
    ShadowWord& word = shared_shadow_[index];
    word = {};
    word.write = stamp_;
    --word.write.interval;
    word.write_bytes = 15;
    note_written(index, 15, true);
  }
  void object(uint32_t code, uint32_t other, const std::function<std::string()>& text);

  // Called by the hooks, for the running thread. Do not return when the access is wrong.
  void access(const Access& access);
  // Whether it was an access with which nothing can be wrong, and is done with. Of most reads in long
  // programs that is known at once: several blocks have read the same.
  bool is_plain(const void* address, unsigned bytes, bool write, const void* pc) {
    const auto begin = reinterpret_cast<uintptr_t>(address);
    Allocation* const allocation = recent(begin);
    if (!allocation && !write && is_index(begin)) return true;
    if (counts_accesses_ || !allocation || write || !allocation->is_settled(begin, bytes)) {
      return enter_plain(begin, bytes, write, pc, allocation);
    }
    log_->pass(pc);
    return true;
  }
  // Whether all of it is the running thread's, and no sum of a product under way.
  bool is_own(const void* begin, std::size_t bytes) const;
  // Whether one variable in shared memory, the dynamic one maybe, has all of it.
  bool is_in_a_variable(const void* begin, std::size_t bytes) const {
    const std::size_t offset = reinterpret_cast<uintptr_t>(begin) - shared_begin_;
    return std::any_of(variables_.begin(), variables_.end(), [&](const SharedVariable& variable) {
      const std::size_t inside = offset - variable.begin;
      return inside < variable.bytes && inside + bytes <= variable.bytes;
    });
  }
  // Whether it is neither the kernel's argument, nor the device's or a thread's memory.
  bool is_of_the_host(const void* pointer) const;
  // A volatile read of the running thread; lets others have their turn where it only asks again.
  void poll(const Access& access);
  void note_progress() { worker_.note_progress(); }
  // Called at every basic block of a kernel, more often than all else: forwards it is just this.
  // Returns false for a jump back, which is for enter_again().
  bool enter_code(const void* pc) {
    if (log_->enter(pc)) {
      if (counts_accesses_) products_ += block_products_.of(pc);
      return true;
    }
    if (counts_accesses_) return false;
    log_->pass_to(pc);
    return log_->steps() < most_steps_ && fibre_->has_room();
  }
  void enter_again(const void* pc);

 private:
  void enter(const Access& access, Space space, uintptr_t address) {
    if (!counts_accesses_) return log_->pass(access.pc);
    log_->access(access.pc, space, access.operation, access.bytes, address, access.other_end);
  }
  // Enters it where nothing can be wrong with it; else false, and it is for access().
  // Not inlined: is_plain(), called at every access, then needs few registers.
  [[gnu::noinline]] bool enter_plain(uintptr_t begin, unsigned bytes, bool write, const void* pc,
                                     Allocation* allocation) {
    const Access access = {begin, bytes, write ? Operation::kStore : Operation::kLoad, pc};
    // To make room takes memory, which would be the kernel's while it is watched.
    if (counts_accesses_ && !log_->has_room()) return false;
    if (allocation) {
      if ((write || !allocation->is_settled(access.address, access.bytes)) && !is_known(access) &&
          !allocation->touch_first(access.address, access.bytes, touch_of(access), write)) {
        return false;
      }
      enter(access, Space::kGlobal, access.address);
      return true;
    }
    if (is_shared(access.address) && enter_shared(access)) {
      enter(access, Space::kShared, access.address - shared_begin_);
      return true;
    }
    return fibre_->holds(reinterpret_cast<const void*>(access.address)) &&
           !worker_.hopper().has_pending_sums();
  }
  bool enter_shared(const Access& access) {
    const std::size_t offset = access.address - shared_begin_;
    const bool write = access.operation == Operation::kStore;
    const auto holds = [&](const SharedVariable* variable) {
      return variable && offset - variable->begin < variable->bytes &&
             offset - variable->begin + access.bytes <= variable->bytes;
    };
    if ((access.address & (access.bytes - 1)) != 0 || worker_.hopper().is_active() || seen() > 0 ||
        !std::any_of(std::begin(recent_variables_), std::end(recent_variables_), holds)) {
      return false;
    }
    const Touch now = touch_of(access);
    for (std::size_t i = offset / 4; i <= (offset + access.bytes - 1) / 4; ++i) {
      ShadowWord& word = shared_shadow_[i];
      if (!write && is_unwritten(i, now.bytes)) return false;
      if (!write && join_readers(word, now)) continue;
      const bool written = word.write.present && word.write.block == block_;
      if (written ? word.write.in_flight : !write) return false;
      const Touch before =
          write ? enter_write(word, now, Scope::kBlock) : enter_read(word, now, Scope::kBlock);
      if (before.stamp.present) return false;
      if (write) note_written(i, now.bytes, written);
    }
    return true;
  }
  // These bytes (bits) of a word in shared memory are written; others were before, in this block.
  void note_written(std::size_t index, unsigned bytes, bool others) {
    if (bytes == 15 && !any_partly_written_) return;
    uint8_t& written = partly_written_[index];
    if (bytes == 15) {
      written = 0;
    } else if (!others) {
      written = static_cast<uint8_t>(bytes), any_partly_written_ = true;
    } else if (written) {
      written = static_cast<uint8_t>((written | bytes) % 15);
    }
  }
  bool is_unwritten(std::size_t index, unsigned bytes) const {
    return any_partly_written_ && partly_written_[index] && !(partly_written_[index] & bytes);
  }

  // Whether the running thread has touched it before by this instruction, and has called nothing since
  // that orders what threads do: to enter it once is enough.
  bool is_known(const Access& access) const {
    const Known& known = known_[place_of_known(access.address, access.pc)];
    return known.turn == turn_ && known.address == access.address && known.pc == access.pc &&
           known.bytes == access.bytes && known.operation == access.operation;
  }
  void access_memory(const Access& access);
  void access_own(const Access& access);
  void access_shared(const Access& access);
  void check_shared(const Access& access);
  void access_global(const Access& access);
  void check_global(const Access& access);
  void require_aligned(const Access& access);
  bool is_shared_variable(const Access& access);
  bool comes_from_the_host(uintptr_t address) const;
  Allocation* require_allocation(const Access& access);
  bool is_shared(uintptr_t address) const { return address - shared_begin_ < shared_bytes_; }

  // Kernels go to and fro between a few tensors.
  Allocation* recent(uintptr_t address) const {
    for (Allocation* const allocation : recent_) {
      if (allocation && allocation->contains(address)) return allocation;
    }
    return nullptr;
  }
  Stamp stamp(unsigned thread) const;
  Touch touch_of(const Access& access) const {
    const auto code = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(access.pc)) + code_origin_;
    const unsigned bytes =  // of the word
        access.bytes >= 4 ? 15 : ((1u << access.bytes) - 1) << access.address % 4;
    return {stamp_,
            code,
            bytes,
            false,
            known_lanes_[thread_].data(),
            phase_.data() + thread_ / 32 * 32};
  }
  bool is_ordered(const Touch& before);
  // Until when the running thread has seen what is published; and of which time its strong writes tell.
  uint64_t seen() const { return std::max(block_seen_, seen_[thread_]); }
  uint64_t told() const { return std::max({block_told_, told_[thread_], seen()}); }
  uint64_t told_in_block() const { return std::max(told(), told_in_block_[thread_]); }
  void look(uint64_t time);
  void tell(const Access& access);
  // The same of barriers and of words in shared memory.
  void tell_here(uintptr_t word);
  uint64_t told_here(uintptr_t word) const;
  // Whether the kernel before may still run, as far as the running thread can know.
  bool overlaps() const { return !waited_.empty() && !waited_[thread_]; }
  Touch touch_before(const Allocation& allocation, std::size_t word, const Touch& now, bool write);
  [[noreturn]] void stop(const Access& access, Space space, const std::string& what);
  std::string distance(const Access& access) const;
  template <typename Describe>
  void object(const Access& access, uint32_t other_code, const Describe& text);
  std::string complaint(const Access& access, Space space, const std::string& what) const;
  std::string race(const Access& access, Space space, const Touch& before) const;
  std::string others(const Touch& before) const;
  std::string describe(const Access& access, Space space) const;
  std::string race_with_kernel_before(const Access& access, const Touch& before) const;
  static std::string describe(const Touch& touch, dim3 blocks, dim3 threads);

  struct Known {
    uint64_t turn;
    uintptr_t address;
    const void* pc;
    unsigned bytes;
    Operation operation;
  };
  std::size_t place_of_known(uintptr_t address, const void* pc) const {
    return (address / 4 ^ reinterpret_cast<uintptr_t>(pc) * 8) % std::size(known_);
  }

  Worker& worker_;
  const uint32_t code_origin_ = code_offset(nullptr);
  const bool counts_accesses_ = counts_accesses();
  std::size_t most_steps_ = 0;  // of one thread between two barriers
  const Launch* launch_ = nullptr;
  uint64_t launch_number_ = 0;
  dim3 grid_;
  uint64_t block_ = 0;
  unsigned threads_ = 0;
  unsigned interval_ = 0;  // __syncthreads() so far
  // Per thread. The phase counts up with each __syncwarp(), and is alike for those who have met there.
  std::vector<uint32_t> phase_;
  std::vector<std::array<uint32_t, 32>> known_lanes_;  // Touch::known
  std::vector<uint8_t> fences_;                        // since the last barrier, at most 3
  std::vector<uint64_t> seen_;  // the latest time of which a word has told it
  std::vector<uint64_t> told_,
      told_in_block_;  // that of its last fence, of the one kind and the other
  struct Words {
    uintptr_t begin = 0, end = 0;
  };
  std::vector<Words> asked_;                  // which it has read last, by a strong access
  uint64_t block_seen_ = 0, block_told_ = 0;  // of any thread, before the last __syncthreads()
  std::unordered_map<uintptr_t, uint64_t> told_here_;
  std::vector<char> waited_;   // for the kernel before, per thread; empty where none may still run
  std::vector<LaneLog> logs_;  // per thread
  std::vector<std::vector<LaneLog::Event>> memory_;  // for logs that have none
  std::vector<unsigned> left_;                       // per warp: lanes whose log is complete
  WarpLog warp_log_;
  KernelCounts counts_;   // of this block
  int64_t products_ = 0;  // likewise
  BlockProducts block_products_;

  // Shared memory: the worker's thread-local storage, of which only the kernel's variables are it.
  uintptr_t shared_begin_ = 0;
  std::size_t shared_bytes_ = 0;
  std::vector<ShadowWord> shared_shadow_;
  std::vector<uint8_t> partly_written_;  // of a word some bytes of which are written, which; else 0
  bool any_partly_written_ = false;      // in this block
  std::vector<SharedVariable> variables_;

  // The running thread.
  unsigned thread_ = 0;
  bool atomic_next_ = false;
  LaneLog* log_ = nullptr;
  const Fibre* fibre_ = nullptr;
  Stamp stamp_{};         // as stamp() has it of it now
  uintptr_t polled_ = 0;  // the volatile variable that it has read last
  Allocation* recent_[4] = {};
  unsigned oldest_ = 0;                     // of these
  std::atomic<int64_t>* found_ = nullptr;   // how often was found what was found last ...
  std::pair<uint32_t, uint32_t> found_at_;  // ... at these places in the code
  const SharedVariable* recent_variables_[2] = {};
  Known known_[256] = {};
  uint64_t turn_ = 1;  // counts up when what is known no longer holds
};

}  // namespace convladder::simulator
