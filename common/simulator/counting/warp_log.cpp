#include "common/simulator/counting/warp_log.h"

#include <algorithm>

namespace convladder::simulator {
namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 32;
}

}  // namespace

WarpAccess LaneLog::unpack(uint64_t what) {
  WarpAccess access;
  access.space = static_cast<Space>(what >> 7 & 1);
  access.operation = static_cast<Operation>(what >> 5 & 3);
  access.bytes = what & 31;
  return access;
}

void WarpLog::add(const LaneLog* logs, unsigned count, KernelCounts& counts) {
  for (unsigned lane = 0; lane < count; ++lane) learn_loops(logs[lane]);
  groups_.assign(1, {});  // group 0 stands for the begin: its `next` is where lanes begin
  group_of_.clear();
  for (unsigned lane = 0; lane < count; ++lane) add_lane(logs[lane], lane);
  for (std::size_t i = 1; i < groups_.size(); ++i) {
    simulator::add(groups_[i].access, counts);
  }
}

// A loop extends from the block that is jumped back to, to the last place that jumps there. Where
// one place jumps back to several blocks, the compiler has moved a condition from the loop's begin
// to its end: it is one loop, and begins with the first of them.
void WarpLog::learn_loops(const LaneLog& log) {
  uint64_t known_target = 0, known_end = 0;  // of the jump seen last
  for (const LaneLog::Event& event : log.events()) {
    if ((event.what & 0xff) != LaneLog::BACK_EDGE) continue;
    const uint64_t target = LaneLog::code(event.what), end = event.address;
    if (target == known_target && end == known_end) continue;
    known_target = target, known_end = end;
    const uint64_t begin = std::min(begin_of_.try_emplace(end, target).first->second, target);
    begin_of_[end] = begin;
    const auto at = std::lower_bound(loops_.begin(), loops_.end(), begin,
                                     [](const Loop& loop, uint64_t b) { return loop.begin < b; });
    if (at == loops_.end() || at->begin != begin) {
      loops_.insert(at, {begin, end});
      sites_.clear();
    } else if (at->end < end) {
      at->end = end;
      sites_.clear();
    }
  }
}

void WarpLog::add_lane(const LaneLog& log, unsigned lane) {
  iteration_.assign(loops_.size(), 0);  // since the barrier, where all lanes were together
  unsigned last = 0;
  for (const LaneLog::Event& event : log.events()) {
    if ((event.what & 0xff) == LaneLog::BACK_EDGE) {
      jump_back(begin_of_[event.address]);
      continue;
    }
    const unsigned at = find_group(event.what, groups_[last].next, lane);
    groups_[last].next = at;
    groups_[at].access.lanes |= 1u << lane;
    groups_[at].access.address[lane] = event.address & ((1ull << LaneLog::ADDRESS_BITS) - 1);
    groups_[at].access.from[lane] = static_cast<uint16_t>(event.address >> LaneLog::ADDRESS_BITS);
    last = at;
  }
}

// One more iteration; the loops inside (and those behind, which have not begun) start afresh.
void WarpLog::jump_back(uint64_t begin) {
  auto loop = std::lower_bound(loops_.begin(), loops_.end(), begin,
                               [](const Loop& l, uint64_t b) { return l.begin < b; });
  const uint64_t end = loop->end;
  ++iteration_[loop - loops_.begin()];
  for (++loop; loop != loops_.end() && loop->begin <= end; ++loop) {
    iteration_[loop - loops_.begin()] = 0;
  }
}

// The group of an instruction in the current iteration, in which `lane` is not yet. Lanes mostly go
// the way of the lane before: `guess` is its next group.
unsigned WarpLog::find_group(uint64_t what, unsigned guess, unsigned lane) {
  const bool likely = guess != 0 && groups_[guess].what == what;
  const Site& at = likely ? *groups_[guess].site : site(what);
  uint64_t hash = iterations(at);
  if (likely && groups_[guess].iterations == hash && !(groups_[guess].access.lanes >> lane & 1)) {
    return guess;
  }
  // Twice by the same lane in the same iteration: code that no loop explains, such as a function
  // called from two places. The first time goes with the others' first time, and so on.
  for (;; hash = mix(hash, 1)) {
    const auto [found, is_new] = group_of_.try_emplace(mix(what, hash), groups_.size());
    if (is_new) {
      groups_.push_back({what, hash, &at, 0, LaneLog::unpack(what)});
      return groups_.size() - 1;
    }
    if (!(groups_[found->second].access.lanes >> lane & 1)) return found->second;
  }
}

const WarpLog::Site& WarpLog::site(uint64_t what) {
  const uint64_t code = LaneLog::code(what);
  const auto [found, is_new] = sites_.try_emplace(code);
  if (is_new) {
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      if (loops_[i].begin <= code && code <= loops_[i].end) found->second.loops.push_back(i);
    }
  }
  return found->second;
}

uint64_t WarpLog::iterations(const Site& site) const {
  uint64_t hash = 0;
  for (const unsigned loop : site.loops) hash = mix(hash, iteration_[loop]);
  return hash;
}

}  // namespace convladder::simulator
