// Asynchronous copies from global to shared memory, as one thread has them under way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "common/simulator/device_calls.h"
#include "common/simulator/errors.h"
#include "common/simulator/observer.h"
#include "common/simulator/shared_memory.h"

namespace convladder::simulator {

// Throws KernelError unless `bytes` is 4, 8 or 16, both pointers are aligned to it, and the
// destination is in shared memory.
inline void require_valid_copy(const void* to_shared, const void* from_global, std::size_t bytes,
                               std::size_t zfill, Place place) {
  if ((bytes != 4 && bytes != 8 && bytes != 16) || zfill > bytes) {
    fail_copy(cudaErrorInvalidValue, "bytes must be 4, 8 or 16", place);
  }
  const auto addresses =
      reinterpret_cast<uintptr_t>(to_shared) | reinterpret_cast<uintptr_t>(from_global);
  if (addresses % bytes != 0) {
    fail_copy(cudaErrorMisalignedAddress, "a pointer is not aligned to the bytes copied", place);
  }
  if (!shared_memory.contains(to_shared, bytes)) {
    fail_copy(cudaErrorIllegalAddress, "the destination is not in shared memory", place);
  }
}

// A copy may take effect at any moment between its issue and the wait for its group. Here it is
// the last one, so that a kernel which forgets to wait reads what was there before (NaN, in fresh
// shared memory); or, where `immediate` is set, the first, so that a kernel which overwrites what
// others still read is caught as well. Copies that nobody waits for are dropped.
class CopyQueue {
 public:
  bool immediate = false;

  // Copies `bytes` (4, 8 or 16) to shared memory, the last `zfill` of them as zeros; nothing is
  // read from `from` when zfill == bytes.
  void push(void* to, const void* from, std::size_t bytes, std::size_t zfill) {
    const Copy copy{to, from, static_cast<unsigned>(bytes), static_cast<unsigned>(zfill)};
    copies_.push_back(copy);
    if (immediate) perform(copy);
  }

  void commit() { groups_.push_back(copies_.size()); }

  // Completes all groups committed but the last `pending`.
  void wait(std::size_t pending) {
    if (groups_.size() <= pending) return;
    const std::size_t groups = groups_.size() - pending;
    const std::size_t copies = groups_[groups - 1];
    for (std::size_t i = 0; i < copies; ++i) end(copies_[i], immediate);
    copies_.erase(copies_.begin(), copies_.begin() + copies);
    groups_.erase(groups_.begin(), groups_.begin() + groups);
    for (std::size_t& end : groups_) end -= copies;
  }

  // Forgets the copies so far; they end when the result is called.
  std::function<void()> hand_over(unsigned thread) {
    groups_.clear();
    return [copies = std::exchange(copies_, {}), done = immediate, thread] {
      for (const Copy& copy : copies) end(copy, done, static_cast<int>(thread));
    };
  }

  void clear() {
    copies_.clear();
    groups_.clear();
  }

 private:
  struct Copy {
    void* to;
    const void* from;
    unsigned bytes, zfill;
  };

  // `thread`: whose copy it is, -1: the running one's.
  static void end(const Copy& copy, bool done, int thread = -1) {
    if constexpr (COUNTING) note_end_of_copy(copy.to, copy.bytes, thread);
    if (!done) perform(copy);
  }

  static void perform(const Copy& copy) {
    if (copy.bytes == 4) perform<4>(copy);
    if (copy.bytes == 8) perform<8>(copy);
    if (copy.bytes == 16) perform<16>(copy);
  }

  template <int BYTES>  // known to the compiler, so that memcpy is a single move
  static void perform(const Copy& copy) {
    if (copy.zfill == 0) {
      std::memcpy(copy.to, copy.from, BYTES);
    } else {
      char value[BYTES] = {};
      if (copy.zfill < BYTES) std::memcpy(value, copy.from, BYTES - copy.zfill);
      std::memcpy(copy.to, value, BYTES);
    }
  }

  std::vector<Copy> copies_;         // in order of issue
  std::vector<std::size_t> groups_;  // for each committed group, the end of its copies
};

// The running thread's; set by Worker with threadIdx.
inline thread_local CopyQueue* copy_queue = nullptr;

}  // namespace convladder::simulator
