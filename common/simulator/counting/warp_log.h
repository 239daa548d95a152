// From what single threads do to what their warp does: accesses by the same instruction in the same
// iteration of all loops around it are one instruction of the warp.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "common/simulator/counting/traffic.h"

namespace convladder::simulator {

// What one thread did between two barriers, in order: accesses, and jumps back to a loop's begin.
class LaneLog {
 public:
  struct Event {
    uint64_t what;     // an instruction (code address, space, operation, bytes), or a loop's begin
    uint64_t address;  // of the data; or where in the code the loop jumps back from
  };

  // `from`: of a copy to shared memory, where it comes from.
  void access(const void* pc, Space space, Operation operation, unsigned bytes, uint64_t address,
              uint64_t from = 0) {
    events_.push_back({pack(pc, space, operation, bytes), address | from << ADDRESS_BITS});
    last_code_ = reinterpret_cast<uint64_t>(pc);
  }

  // A basic block begins at `pc`. Code addresses grow along the source, so that a jump to an
  // earlier one (or to the same) closes a loop.
  void block(const void* pc) {
    const auto begin = reinterpret_cast<uint64_t>(pc);
    if (begin <= last_block_) events_.push_back({begin << 8 | BACK_EDGE, last_code_});
    last_block_ = last_code_ = begin;
  }

  void clear() { events_.clear(); }                          // at a barrier
  void restart() { clear(), last_block_ = last_code_ = 0; }  // at the begin of a thread
  const std::vector<Event>& events() const { return events_; }

  static constexpr uint64_t BACK_EDGE = 0xff;   // no instruction's low byte
  static constexpr unsigned ADDRESS_BITS = 48;  // above them: the low bits of `from`
  static uint64_t code(uint64_t what) { return what >> 8; }
  static WarpAccess unpack(uint64_t what);  // with no lanes yet

 private:
  static uint64_t pack(const void* pc, Space space, Operation operation, unsigned bytes) {
    const unsigned low = static_cast<unsigned>(space) << 7 | static_cast<unsigned>(operation) << 5 |
                         bytes;  // at most 16
    return reinterpret_cast<uint64_t>(pc) << 8 | low;
  }

  std::vector<Event> events_;
  uint64_t last_block_ = 0;  // where the block that runs begins
  uint64_t last_code_ = 0;   // its last access, or its begin
};

// Puts the logs of a warp's lanes together. Learns the loops of the kernels as it sees them.
class WarpLog {
 public:
  // Adds the warp instructions behind `logs` (one per lane, `count` of them) to `counts`.
  void add(const LaneLog* logs, unsigned count, KernelCounts& counts);

  // Those that add() has added last: seen(return address as LaneLog::code() has it, access).
  template <typename Seen>
  void for_each(const Seen& seen) const {
    for (std::size_t i = 1; i < groups_.size(); ++i) {
      seen(LaneLog::code(groups_[i].what), groups_[i].access);
    }
  }

 private:
  struct Loop {
    uint64_t begin, end;  // code addresses: of its first block, and of the last access in it
  };
  struct Site {                   // an instruction
    std::vector<unsigned> loops;  // around it, the outermost first
  };
  struct Group {  // one instruction of the warp
    uint64_t what;
    uint64_t iterations;  // of all loops around it, hashed
    const Site* site;
    unsigned next;  // the group that a lane went to from here
    WarpAccess access;
  };

  void learn_loops(const LaneLog& log);
  void add_lane(const LaneLog& log, unsigned lane);
  void jump_back(uint64_t begin);
  unsigned find_group(uint64_t what, unsigned guess, unsigned lane);
  const Site& site(uint64_t what);
  uint64_t iterations(const Site& site) const;

  std::vector<Loop> loops_;                          // sorted by begin
  std::unordered_map<uint64_t, uint64_t> begin_of_;  // the loop's, by where the code jumps back
  std::unordered_map<uint64_t, Site> sites_;
  std::vector<uint32_t> iteration_;  // of each loop, for the lane at hand
  std::vector<Group> groups_;        // in the order in which they were found
  std::unordered_map<uint64_t, unsigned> group_of_;
};

}  // namespace convladder::simulator
