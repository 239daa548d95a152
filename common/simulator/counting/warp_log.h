// From what single threads do to what their warp does: accesses by the same instruction in the same
// iteration of all loops around it are one instruction of the warp.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/simulator/counting/traffic.h"

namespace convladder::simulator {

// The loops of a kernel's code, learned as its threads jump back. A loop extends from the block that is
// jumped back to, to the last place that jumps there. Where one place jumps back to several blocks, the
// compiler has moved a condition from the loop's begin to its end: it is one loop, and begins with the first
// of them.
class Loops {
 public:
  struct Loop {
    uint64_t begin, end;  // code addresses: of its first block, and of the last access in it
  };

  // The number of the place `end` from which a jump has led back to `target`.
  unsigned jump(uint64_t target, uint64_t end) {
    const Jump& known = recent_[(target ^ end >> 2) % RECENT];
    return known.target == target && known.end == end ? known.place : learn(target, end);
  }

  // Where the loop begins that is closed at that place, and its number.
  uint64_t begin(unsigned place) const { return places_[place].begin; }
  std::size_t index(unsigned place) const { return places_[place].loop; }

  const std::vector<Loop>& all() const { return loops_; }  // sorted by begin
  uint64_t version() const { return version_; }            // counts up when a loop changes
  std::vector<unsigned> around(uint64_t code) const;       // numbers of those that hold it

 private:
  struct Jump {
    uint64_t target, end;
    unsigned place;
  };
  struct Place {
    uint64_t end, begin;
    std::size_t loop;  // which begins there
  };
  static constexpr std::size_t RECENT = 256;

  unsigned learn(uint64_t target, uint64_t end);
  void extend(uint64_t begin, uint64_t end);

  std::array<Jump, RECENT> recent_{};
  std::vector<Place> places_;
  std::vector<Loop> loops_;
  uint64_t version_ = 0;
};

// What one thread did between two barriers, in order: accesses, and jumps back to a loop's begin.
class LaneLog {
 public:
  struct Event {
    uint64_t
        what;  // an instruction (code address, space, operation, bytes), or a place that jumps back
    uint64_t address;  // of the data; or how often it jumped back
    bool is_jump() const { return (what & 0xff) == JUMP; }
    unsigned place() const { return static_cast<unsigned>(what >> 8); }
  };

  // `other_end`: of a copy, or NO_SOURCE.
  void access(const void* pc, Space space, Operation operation, unsigned bytes, uint64_t address,
              uint64_t other_end = 0) {
    events_.push_back({pack(pc, space, operation, bytes), address | other_end << ADDRESS_BITS});
    last_code_ = reinterpret_cast<uint64_t>(pc);
    ++steps_;
  }

  // What access() and jump_to() do where nothing is counted.
  void pass(const void* pc) {
    last_code_ = reinterpret_cast<uint64_t>(pc);
    ++steps_;
  }
  void pass_to(const void* pc) {
    code_before_ = last_code_;
    pass(pc);
    last_block_ = last_code_;
  }

  // A basic block begins at `pc`. Code addresses grow along the source, so that a jump to an
  // earlier one (or to the same) closes a loop: false, and it is for jump_to().
  bool enter(const void* pc) {
    const auto begin = reinterpret_cast<uint64_t>(pc);
    if (begin <= last_block_) return false;
    code_before_ = last_code_;
    last_block_ = last_code_ = begin;
    return true;
  }
  void jump_to(const void* pc, Loops& loops) {
    const auto begin = reinterpret_cast<uint64_t>(pc);
    jump(loops.jump(begin, last_code_), loops);
    code_before_ = last_code_;
    last_block_ = last_code_ = begin;
  }

  void clear() { events_.clear(), steps_ = 0; }  // at a barrier
  void restart() {
    clear(), last_block_ = last_code_ = code_before_ = 0;
  }  // at the begin of a thread
  const std::vector<Event>& events() const { return events_; }
  // Memory for events. Warps that take turns share it, so that it stays in the processor's cache.
  bool has_memory() const { return events_.capacity() > 0; }
  bool has_room() const { return events_.size() < events_.capacity(); }
  void take_memory(std::vector<Event>&& memory) { events_ = std::move(memory); }
  std::vector<Event> give_memory() { return std::exchange(events_, {}); }
  // Of the block before the last one: its last access, or its begin; 0 if there is none.
  uint64_t code_before_last() const { return code_before_; }
  uint64_t last_code() const { return last_code_; }  // its last access, or its last block's begin
  std::size_t steps() const { return steps_; }       // accesses and jumps back, also those left out

  static constexpr uint64_t JUMP = 0xff;        // no instruction's low byte
  static constexpr unsigned ADDRESS_BITS = 48;  // above them: the low bits of `other_end`
  static uint64_t code(uint64_t what) { return what >> 8; }
  static WarpAccess access_of(uint64_t what);  // with no lanes yet
  static Instruction instruction(uint64_t what);

 private:
  // One that closes a loop forgets those within it since the last access: they start afresh.
  void jump(unsigned place, const Loops& loops) {
    ++steps_;
    const uint64_t begin = loops.begin(place);
    while (!events_.empty() && events_.back().is_jump()) {
      const uint64_t last = loops.begin(events_.back().place());
      if (last == begin) ++events_.back().address;
      if (last <= begin) break;
      events_.pop_back();
    }
    if (events_.empty() || !events_.back().is_jump() ||
        loops.begin(events_.back().place()) != begin) {
      events_.push_back({uint64_t{place} << 8 | JUMP, 1});
    }
  }

  static uint64_t pack(const void* pc, Space space, Operation operation, unsigned bytes) {
    const unsigned low = static_cast<unsigned>(space) << 7 | static_cast<unsigned>(operation) << 5 |
                         bytes;  // at most 16
    return reinterpret_cast<uint64_t>(pc) << 8 | low;
  }

  std::vector<Event> events_;
  std::size_t steps_ = 0;
  uint64_t last_block_ = 0;  // where the block that runs begins
  uint64_t last_code_ = 0;   // its last access, or its begin
  uint64_t code_before_ = 0;
};

// Puts the logs of a warp's lanes together.
class WarpLog {
 public:
  // Adds the warp instructions behind `logs` (one per lane, `count` of them) to `counts`, but for
  // KernelCounts::instructions.
  void add(const LaneLog* logs, unsigned count, KernelCounts& counts);
  // Adds those, of all warps since the last call.
  void take_instructions(KernelCounts& counts);

  // Calls seen(what, access) for each that add() has added last, `what` as in LaneLog::Event.
  template <typename Seen>
  void for_each(const Seen& seen) const {
    for (std::size_t i = 1; i < groups_.size(); ++i) {
      seen(groups_[i].what, groups_[i].access);
    }
  }

  Loops& loops() { return loops_; }

 private:
  struct Site {                   // an instruction
    std::vector<unsigned> loops;  // around it, the outermost first
    InstructionCounts counts;
  };
  struct Group {  // one instruction of the warp
    uint64_t what;
    uint64_t iterations;  // of all loops around it, hashed
    Site* site;
    unsigned next;  // the group that a lane went to from here
    WarpAccess access;
  };

  std::size_t follow(const std::vector<LaneLog::Event>& events, unsigned lane);
  void add_lane(const LaneLog& log, unsigned lane);
  void enter(unsigned group, const LaneLog::Event& event, unsigned lane);
  void jump_back(const LaneLog::Event& jump);
  unsigned find_group(uint64_t what, unsigned guess, unsigned lane);
  Site& site(uint64_t what);
  uint64_t iterations(const Site& site) const;

  Loops loops_;
  uint64_t version_ = 0;                      // of the loops that sites_ know
  std::unordered_map<uint64_t, Site> sites_;  // by LaneLog::Event's `what`
  std::vector<uint32_t> iteration_;           // of each loop, for the lane at hand
  std::vector<Group> groups_;                 // in the order in which they were found
  std::unordered_map<uint64_t, unsigned> group_of_;
  const std::vector<LaneLog::Event>* before_ = nullptr;  // events of the lane before ...
  std::vector<unsigned> path_;                           // ... and the group of each
};

}  // namespace convladder::simulator
