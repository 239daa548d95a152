#include "common/simulator/counting/warp_log.h"

#include <algorithm>

#include "common/core/program.h"

namespace convladder::simulator {
namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 32;
}

}  // namespace

Instruction LaneLog::instruction(uint64_t what) {
  const WarpAccess access = access_of(what);
  return {code_offset(reinterpret_cast<const void*>(code(what))), access.space, access.operation,
          access.bytes};
}

WarpAccess LaneLog::access_of(uint64_t what) {
  WarpAccess access;
  access.space = static_cast<Space>(what >> 7 & 1);
  access.operation = static_cast<Operation>(what >> 5 & 3);
  access.bytes = what & 31;
  return access;
}

// ---- Loops ----

unsigned Loops::learn(uint64_t target, uint64_t end) {
  const auto known = std::find_if(places_.begin(), places_.end(),
                                  [&](const Place& place) { return place.end == end; });
  const auto place = static_cast<unsigned>(known - places_.begin());
  if (known == places_.end()) {
    places_.push_back({end, target, 0});
  } else if (target < known->begin) {
    known->begin = target;
  }
  extend(places_[place].begin, end);
  recent_[(target ^ end >> 2) % RECENT] = {target, end, place};
  return place;
}

void Loops::extend(uint64_t begin, uint64_t end) {
  const auto before = [](const Loop& loop, uint64_t b) { return loop.begin < b; };
  const auto at = std::lower_bound(loops_.begin(), loops_.end(), begin, before);
  if (at == loops_.end() || at->begin != begin) {
    loops_.insert(at, {begin, end});
    ++version_;
  } else if (at->end < end) {
    at->end = end;
    ++version_;
  }
  for (Place& place : places_) {
    place.loop =
        std::lower_bound(loops_.begin(), loops_.end(), place.begin, before) - loops_.begin();
  }
}

std::vector<unsigned> Loops::around(uint64_t code) const {
  std::vector<unsigned> around;
  for (std::size_t i = 0; i < loops_.size(); ++i) {
    if (loops_[i].begin <= code && code <= loops_[i].end) around.push_back(i);
  }
  return around;
}

// ---- Warps ----

void WarpLog::add(const LaneLog* logs, unsigned count, KernelCounts& counts) {
  if (version_ != loops_.version()) {  // other loops have been seen since the sites were
    version_ = loops_.version();
    for (auto& [what, site] : sites_) site.loops = loops_.around(LaneLog::code(what));
  }
  groups_.assign(1, {});  // group 0 stands for the begin: its `next` is where lanes begin
  group_of_.clear();
  before_ = nullptr;
  for (unsigned lane = 0; lane < count; ++lane) add_lane(logs[lane], lane);
  for (std::size_t i = 1; i < groups_.size(); ++i) {
    const Group& group = groups_[i];
    const WarpAccess& access = group.access;
    const Cost cost = cost_of(access);
    simulator::add(access, cost, counts);
    group.site->counts +=
        {1, cost.total, cost.conflicts, cost.bytes, access.address[__builtin_ctz(access.lanes)]};
  }
}

void WarpLog::take_instructions(KernelCounts& counts) {
  for (auto& [what, site] : sites_) {
    if (site.counts.requests == 0) continue;
    counts.instructions[LaneLog::instruction(what)] += site.counts;
    site.counts = {};
  }
}

// Lanes mostly go the way of the lane before: enters the accesses as far as this one does, and returns
// how many events that were.
std::size_t WarpLog::follow(const std::vector<LaneLog::Event>& events, unsigned lane) {
  const std::size_t most = before_ ? std::min(events.size(), before_->size()) : 0;
  for (std::size_t i = 0; i < most; ++i) {
    const LaneLog::Event &event = events[i], &before = (*before_)[i];
    if (event.what != before.what) return i;
    if (!event.is_jump()) {
      enter(path_[i], event, lane);
    } else if (event.address != before.address) {
      return i;
    }
  }
  return most;
}

void WarpLog::add_lane(const LaneLog& log, unsigned lane) {
  const std::vector<LaneLog::Event>& events = log.events();
  const std::size_t followed = follow(events, lane);
  before_ = &events;
  path_.resize(events.size());
  if (followed == events.size()) return;

  iteration_.assign(loops_.all().size(), 0);  // since the barrier, where all lanes were together
  unsigned last = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (events[i].is_jump()) {
      jump_back(events[i]);
      continue;
    }
    if (i >= followed) {
      path_[i] = find_group(events[i].what, groups_[last].next, lane);
      groups_[last].next = path_[i];
      enter(path_[i], events[i], lane);
    }
    last = path_[i];
  }
}

void WarpLog::enter(unsigned group, const LaneLog::Event& event, unsigned lane) {
  WarpAccess& access = groups_[group].access;
  access.lanes |= 1u << lane;
  access.address[lane] = event.address & ((1ull << LaneLog::ADDRESS_BITS) - 1);
  access.other_end[lane] = static_cast<uint16_t>(event.address >> LaneLog::ADDRESS_BITS);
}

// More iterations; the loops inside (and those behind, which have not begun) start afresh.
void WarpLog::jump_back(const LaneLog::Event& jump) {
  const std::vector<Loops::Loop>& all = loops_.all();
  std::size_t loop = loops_.index(jump.place());
  const uint64_t end = all[loop].end;
  iteration_[loop] += static_cast<uint32_t>(jump.address);
  for (++loop; loop < all.size() && all[loop].begin <= end; ++loop) iteration_[loop] = 0;
}

// The group of an instruction in the current iteration, in which `lane` is not yet. Lanes mostly go
// the way of the lane before: `guess` is its next group.
unsigned WarpLog::find_group(uint64_t what, unsigned guess, unsigned lane) {
  const bool likely = guess != 0 && groups_[guess].what == what;
  Site& at = likely ? *groups_[guess].site : site(what);
  uint64_t hash = iterations(at);
  if (likely && groups_[guess].iterations == hash && !(groups_[guess].access.lanes >> lane & 1)) {
    return guess;
  }
  // Twice by the same lane in the same iteration: code that no loop explains, such as a function
  // called from two places. The first time goes with the others' first time, and so on.
  for (;; hash = mix(hash, 1)) {
    const auto [found, is_new] = group_of_.try_emplace(mix(what, hash), groups_.size());
    if (is_new) {
      groups_.push_back({what, hash, &at, 0, LaneLog::access_of(what)});
      return groups_.size() - 1;
    }
    if (!(groups_[found->second].access.lanes >> lane & 1)) return found->second;
  }
}

WarpLog::Site& WarpLog::site(uint64_t what) {
  const auto [found, is_new] = sites_.try_emplace(what);
  if (is_new) found->second.loops = loops_.around(LaneLog::code(what));
  return found->second;
}

uint64_t WarpLog::iterations(const Site& site) const {
  uint64_t hash = 0;
  for (const unsigned loop : site.loops) hash = mix(hash, iteration_[loop]);
  return hash;
}

}  // namespace convladder::simulator
