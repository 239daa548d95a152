// The simulator's <cooperative_groups.h>: blocks, tiles of a warp, lanes that are together, the grid.
#pragma once

#include "common/simulator/include/names_begin.h"

#include <cuda_pipeline.h>
#include <cuda_runtime.h>

namespace cooperative_groups {
namespace sim = convladder::simulator;

// Some lanes of a warp, or all threads of a block or of the grid.
class thread_group {
 public:
  void sync(CONVLADDER_HERE) const {
    if (kind_ == kGrid) return sim::sync_grid(place);
    if (kind_ == kBlock) return static_cast<void>(sim::sync_threads(false, place));
    sim::meet({"sync", place, mask_, sim::LaneCall::Kind::kBarrier});
  }
  unsigned long long size() const {
    if (kind_ == kLanes) return __popc(mask_);
    return sim::block_size() * (kind_ == kBlock ? 1ull : gridDim.x * gridDim.y * gridDim.z);
  }
  unsigned long long num_threads() const { return size(); }
  unsigned long long thread_rank() const {
    if (kind_ == kLanes) return __popc(mask_ & ((1u << sim::lane_id()) - 1));
    return sim::thread_rank() +
           (kind_ == kBlock ? 0ull : uint64_t{sim::block_rank()} * sim::block_size());
  }
  bool is_valid() const { return kind_ != kGrid || sim::is_cooperative(); }
  // The simulator's own.
  bool is_of_lanes() const { return kind_ == kLanes; }
  unsigned lanes() const { return is_of_lanes() ? mask_ : ~0u; }

  struct arrival_token {};
  arrival_token barrier_arrive() const { return {}; }  // nobody goes on before the other
  void barrier_wait(arrival_token&&, CONVLADDER_HERE) const { sync(place); }

 protected:
  enum Kind { kLanes, kBlock, kGrid };
  thread_group(Kind kind, unsigned mask) : kind_(kind), mask_(mask) {}

 private:
  Kind kind_;
  unsigned mask_;
};

class thread_block : public thread_group {
 public:
  thread_block() : thread_group(kBlock, ~0u) {}
  static void sync(CONVLADDER_HERE) { static_cast<void>(sim::sync_threads(false, place)); }
  static unsigned size() { return sim::block_size(); }
  static unsigned num_threads() { return size(); }
  static unsigned thread_rank() { return sim::thread_rank(); }
  static dim3 group_index() { return blockIdx; }
  static dim3 thread_index() { return threadIdx; }
  static dim3 group_dim() { return blockDim; }
  static dim3 dim_threads() { return blockDim; }
};
inline thread_block this_thread_block() { return {}; }

class grid_group : public thread_group {
 public:
  grid_group() : thread_group(kGrid, ~0u) {}
  static dim3 group_dim() { return gridDim; }
  static dim3 dim_blocks() { return gridDim; }
  static dim3 block_index() { return blockIdx; }
  static unsigned block_rank() { return sim::block_rank(); }
  static unsigned long long num_blocks() { return uint64_t{gridDim.x} * gridDim.y * gridDim.z; }
};
inline grid_group this_grid() { return {}; }

// Ranks count the group's lanes; what a vote finds is by rank.
class coalesced_group : public thread_group {
 public:
  explicit coalesced_group(unsigned mask, unsigned meta_rank = 0, unsigned meta_size = 1)
      : thread_group(kLanes, mask), meta_rank_(meta_rank), meta_size_(meta_size) {}

  template <typename T>
  T shfl(T value, int rank, CONVLADDER_HERE) const {
    return from("shfl", value, static_cast<unsigned>(rank) % rank_count(), place);
  }
  template <typename T>
  T shfl_up(T value, unsigned delta, CONVLADDER_HERE) const {
    const unsigned rank = own_rank();
    return from("shfl_up", value, delta > rank ? rank : rank - delta, place);
  }
  template <typename T>
  T shfl_down(T value, unsigned delta, CONVLADDER_HERE) const {
    const unsigned rank = own_rank();
    return from("shfl_down", value, delta >= rank_count() - rank ? rank : rank + delta, place);
  }
  int any(int predicate, CONVLADDER_HERE) const { return __any_sync(lanes(), predicate, place); }
  int all(int predicate, CONVLADDER_HERE) const { return __all_sync(lanes(), predicate, place); }
  unsigned ballot(int predicate, CONVLADDER_HERE) const {
    return by_rank(__ballot_sync(lanes(), predicate, place));
  }
  template <typename T>
  unsigned match_any(T value, CONVLADDER_HERE) const {
    return by_rank(__match_any_sync(lanes(), value, place));
  }
  template <typename T>
  unsigned match_all(T value, int& all_same, CONVLADDER_HERE) const {
    return by_rank(__match_all_sync(lanes(), value, &all_same, place));
  }
  unsigned size() const { return __popc(lanes()); }
  unsigned num_threads() const { return size(); }
  unsigned thread_rank() const { return __popc(lanes() & ((1u << sim::lane_id()) - 1)); }
  unsigned meta_group_rank() const { return meta_rank_; }
  unsigned meta_group_size() const { return meta_size_; }

 protected:
  unsigned own_rank() const { return thread_rank(); }
  unsigned rank_count() const { return size(); }
  template <typename T>
  T from(const char* name, T value, unsigned rank, sim::Place place) const {
    return sim::exchange(name, place, lanes(), value,
                         __fns(lanes(), 0, static_cast<int>(rank) + 1));
  }

 private:
  unsigned by_rank(unsigned found) const {
    unsigned result = 0;
    for (unsigned rank = 0; rank < rank_count(); ++rank) {
      result |= (found >> __fns(lanes(), 0, static_cast<int>(rank) + 1) & 1) << rank;
    }
    return result;
  }

  unsigned meta_rank_, meta_size_;
};
inline coalesced_group coalesced_threads(CONVLADDER_HERE) {
  return coalesced_group(__activemask(place));
}

namespace detail {
inline unsigned tile_mask(unsigned size) {
  const unsigned first = sim::lane_id() & ~(size - 1);
  return (size == 32 ? ~0u : (1u << size) - 1) << first;
}
}  // namespace detail

template <unsigned SIZE, typename Parent = void>
class thread_block_tile;

namespace detail {
// Threads of the group that was cut in tiles: a tile, or the block.
template <typename Parent>
struct Cut {
  static unsigned size() { return sim::block_size(); }
};
template <unsigned SIZE, typename Parent>
struct Cut<thread_block_tile<SIZE, Parent>> {
  static unsigned size() { return SIZE; }
};
}  // namespace detail

template <unsigned SIZE, typename Parent>
class thread_block_tile : public coalesced_group {
  static_assert(SIZE <= 32 && (SIZE & (SIZE - 1)) == 0,
                "the simulator has tiles of 1, 2, 4, 8, 16 and 32 threads, not of several warps");

 public:
  thread_block_tile() : coalesced_group(detail::tile_mask(SIZE)) {}
  template <typename Other>
  thread_block_tile(const thread_block_tile<SIZE, Other>&) : thread_block_tile() {}
  static constexpr unsigned size() { return SIZE; }
  static constexpr unsigned num_threads() { return SIZE; }
  static unsigned thread_rank() { return sim::lane_id() % SIZE; }
  template <typename T>
  T shfl_xor(T value, unsigned bits, CONVLADDER_HERE) const {
    return from("shfl_xor", value, (own_rank() ^ bits) % SIZE, place);
  }
  static unsigned meta_group_rank() {
    return sim::thread_rank() % detail::Cut<Parent>::size() / SIZE;
  }
  static unsigned meta_group_size() { return (detail::Cut<Parent>::size() + SIZE - 1) / SIZE; }
};
template <unsigned SIZE, typename Group>
thread_block_tile<SIZE, Group> tiled_partition(const Group&) {
  return {};
}
// Of so many ranks each; a block's last may have fewer.
inline coalesced_group tiled_partition(const thread_group& group, unsigned size) {
  const unsigned lane = sim::lane_id(), left = sim::block_size() - (sim::thread_rank() - lane);
  const unsigned lanes = group.is_of_lanes() ? group.lanes() : left < 32 ? (1u << left) - 1 : ~0u;
  const unsigned tile = __popc(lanes & ((1u << lane) - 1)) / size;
  unsigned mask = 0;
  for (unsigned other = 0; other < 32; ++other) {
    const bool is_in = lanes >> other & 1;
    if (is_in && __popc(lanes & ((1u << other) - 1)) / size == tile) mask |= 1u << other;
  }
  return coalesced_group(mask, static_cast<unsigned>(group.thread_rank() / size),
                         static_cast<unsigned>((group.size() + size - 1) / size));
}
// The one with the lowest lane is the first.
template <typename T>
coalesced_group labeled_partition(const coalesced_group& group, T label, CONVLADDER_HERE) {
  const unsigned own = __match_any_sync(group.lanes(), label, place), first = own & -own;
  const unsigned all = __ballot_sync(group.lanes(), first == 1u << sim::lane_id(), place);
  return coalesced_group(own, __popc(all & (first - 1)), __popc(all));
}
inline coalesced_group binary_partition(const coalesced_group& group, bool side, CONVLADDER_HERE) {
  const unsigned where_true = __ballot_sync(group.lanes(), side, place);
  const bool both = where_true != 0 && where_true != group.lanes();
  return coalesced_group(side ? where_true : group.lanes() & ~where_true, both && side,
                         both ? 2 : 1);
}

// One thread of the group calls it, here the first.
template <typename Group, typename Call, typename... Arguments>
void invoke_one(const Group& group, Call&& call, Arguments&&... arguments) {
  if (group.thread_rank() == 0) std::forward<Call>(call)(std::forward<Arguments>(arguments)...);
}

inline void sync(const thread_group& group, CONVLADDER_HERE) { group.sync(place); }
inline unsigned long long thread_rank(const thread_group& group) { return group.thread_rank(); }
inline unsigned long long group_size(const thread_group& group) { return group.size(); }

}  // namespace cooperative_groups

#include "common/simulator/include/names_end.h"
