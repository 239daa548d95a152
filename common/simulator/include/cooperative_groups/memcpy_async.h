// The simulator's <cooperative_groups/memcpy_async.h>: copies that the threads of a group share out.
#pragma once

#include "common/simulator/include/names_begin.h"

#include <cooperative_groups.h>

namespace convladder::simulator {
// Copies thread `rank` of `count`'s share, in the largest pieces that the alignments allow.
inline void copy_share(void* to, const void* from, std::size_t bytes, std::size_t rank,
                       std::size_t count) {
  const auto low = reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from) | bytes;
  const std::size_t piece = low % 16 == 0 ? 16 : low % 8 == 0 ? 8 : low % 4 == 0 ? 4 : 1;
  for (std::size_t at = rank * piece; at < bytes; at += count * piece) {
    char* const destination = static_cast<char*>(to) + at;
    const char* const source = static_cast<const char*>(from) + at;
    if (piece == 1) {
      *destination = *source;
    } else {
      __pipeline_memcpy_async(destination, source, piece);
    }
  }
}
}  // namespace convladder::simulator

namespace cuda {
template <std::size_t ALIGNMENT>
struct aligned_size_t {
  std::size_t value;
  explicit aligned_size_t(std::size_t bytes) : value(bytes) {}
  operator std::size_t() const { return value; }
};
}  // namespace cuda

namespace cooperative_groups {

template <typename Group, typename T>
void memcpy_async(const Group& group, T* to, const T* from, std::size_t bytes) {
  sim::copy_share(to, from, bytes, group.thread_rank(), group.size());
  __pipeline_commit();
}
// Waits for all of the group's copies but the last STAGES calls'.
template <unsigned STAGES, typename Group>
void wait_prior(const Group& group, CONVLADDER_HERE) {
  __pipeline_wait_prior(STAGES);
  group.sync(place);
}
template <typename Group>
void wait(const Group& group, CONVLADDER_HERE) {
  wait_prior<0>(group, place);
}

}  // namespace cooperative_groups

#include "common/simulator/include/names_end.h"
