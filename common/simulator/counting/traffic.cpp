#include "common/simulator/counting/traffic.h"

#include <algorithm>
#include <utility>

namespace convladder::simulator {
namespace {

constexpr unsigned LANES = 32, SECTOR = 32, BANKS = 32, WORD = 4;

using Services = std::vector<Service>;

// Lanes [first, first + count) by the pieces of `unit` bytes that their addresses lie in.
class Pieces {
 public:
  Pieces(const WarpAccess& access, unsigned unit, unsigned first = 0, unsigned count = LANES) {
    for (unsigned lane = first; lane < first + count; ++lane) {
      if (access.lanes >> lane & 1) keys_[size_++] = access.address[lane] / unit * LANES + lane;
    }
    if (!std::is_sorted(keys_, keys_ + size_)) std::sort(keys_, keys_ + size_);
  }

  // seen(piece, lanes) of each different piece, in their order.
  template <typename Seen>
  void for_each(const Seen& seen) const {
    for (int i = 0; i < size_;) {
      const uint64_t piece = keys_[i] / LANES;
      uint32_t lanes = 0;
      for (; i < size_ && keys_[i] / LANES == piece; ++i) lanes |= 1u << keys_[i] % LANES;
      seen(piece, lanes);
    }
  }

 private:
  uint64_t keys_[LANES];  // the piece and the lane
  int size_ = 0;
};

void enter(Services* services, std::size_t number, uint32_t lanes, Service::Kind kind) {
  if (!services) return;
  if (services->size() <= number) services->resize(number + 1);
  (*services)[number].lanes |= lanes;
  (*services)[number].kind = kind;
}

// Where the services of the next group of lanes begin.
std::size_t size_of(const Services* services) { return services ? services->size() : 0; }

bool takes_part(const WarpAccess& access, unsigned lane) { return access.lanes >> lane & 1; }

// Whether every lane has the same address as the lane whose number differs in `bit`, where both
// take part.
bool pairs_agree(const WarpAccess& access, unsigned bit) {
  for (unsigned lane = 0; lane < LANES; ++lane) {
    const unsigned other = lane ^ bit;
    if (takes_part(access, lane) && takes_part(access, other) &&
        access.address[lane] != access.address[other]) {
      return false;
    }
  }
  return true;
}

// Wavefronts for lanes [first, first + count): the most different words that one bank must give. (A
// lane's words lie in neighbouring banks, so that they count as one of its size.) Those beyond
// `needed` are conflicts.
int count_passes(const WarpAccess& access, unsigned first, unsigned count, int needed = 1,
                 Services* services = nullptr) {
  const unsigned unit = std::max(access.bytes, WORD), banks = BANKS * WORD / unit;
  const std::size_t begin = size_of(services);
  int asked[BANKS] = {}, most = 0;
  Pieces(access, unit, first, count).for_each([&](uint64_t piece, uint32_t lanes) {
    const int pass = asked[piece % banks]++;
    most = std::max(most, pass + 1);
    enter(services, begin + pass, lanes, pass < needed ? Service::kNeeded : Service::kConflict);
  });
  return most;
}

bool copies(const WarpAccess& access, unsigned lane) {
  return takes_part(access, lane) && access.other_end[lane] != NO_SOURCE;
}

// A copy of 4 or 8 bytes goes from the banks of the L1 to those of shared memory. Each lane needs
// its own: not even lanes that copy the same word share one. 8-byte copies go by half warps. Lanes
// that are filled with zeros need only the latter. What Nsight Compute says of an instruction adds
// up the conflicts of both ends; in the pipe itself, as it reads that, they may overlap.
Cost cost_of_copies_through_l1(const WarpAccess& access, bool overlap, Services* services) {
  const unsigned group = LANES * WORD / access.bytes;  // as many as there are banks of that width
  Cost cost;
  for (unsigned first = 0; first < LANES; first += group) {
    const std::size_t begin = size_of(services);
    int from[BANKS] = {}, to[BANKS] = {}, read[LANES] = {};
    int most_from = 1, most_to = 0;
    for (unsigned lane = first; lane < first + group; ++lane) {
      if (!takes_part(access, lane)) continue;
      const int pass = to[access.address[lane] / access.bytes % group]++;
      most_to = std::max(most_to, pass + 1);
      enter(services, begin + pass, 1u << lane, pass > 0 ? Service::kConflict : Service::kNeeded);
      if (!copies(access, lane)) continue;
      read[lane] = from[access.other_end[lane] / access.bytes % group]++;
      most_from = std::max(most_from, read[lane] + 1);
    }
    if (most_to == 0) continue;
    for (unsigned lane = first; lane < first + group; ++lane) {
      if (read[lane] == 0) continue;
      enter(services, begin + most_to + read[lane] - 1, 1u << lane, Service::kSourceConflict);
    }
    const int needed = overlap ? std::max(most_from, most_to) : most_from + most_to - 1;
    cost.total += needed;
    cost.conflicts += needed - 1;
  }
  return cost;
}

// What travels as one in a copy past the L1: a sector, or half of one.
struct Parcel {
  unsigned bytes;
  uint64_t from, to;  // in units of `bytes`
  uint32_t lanes;
};

// In one wavefront: neighbours within a 128-byte line on both sides, moved in the same way. Whole sectors may
// also be moved by the same distance, if the lanes stand in the order of what they read.
bool go_together(const Parcel& a, const Parcel& b) {
  const unsigned line = 4 * SECTOR / a.bytes;
  const auto out_of_order = [](const Parcel& parcel) {
    return parcel.from ^ __builtin_ctz(parcel.lanes) / (SECTOR / 16);
  };
  return a.bytes == b.bytes && a.from != b.from && a.from / line == b.from / line &&
         a.to / line == b.to / line &&
         ((a.from ^ a.to) == (b.from ^ b.to) ||
          (a.bytes == SECTOR && a.from - a.to == b.from - b.to &&
           out_of_order(a) == out_of_order(b)));
}

// Whether lanes 2i and 2i + 1 of a copy of 16 bytes move the halves of one sector, from global to
// shared memory or seen the other way round.
bool share_sector(const WarpAccess& access, unsigned lane) {
  const auto in_one = [&](const auto* end) { return end[lane] / SECTOR == end[lane + 1] / SECTOR; };
  return copies(access, lane) && copies(access, lane + 1) && in_one(access.address) &&
         in_one(access.other_end);
}

// A copy of 16 bytes, by quarter warps. Explains all readings of regular patterns, but not those
// where lanes copy in no order. A quarter that is all zeros only passes the banks.
Cost cost_of_copies_past_l1(const WarpAccess& access, Services* services) {
  Cost cost;
  for (unsigned quarter = 0; quarter < LANES; quarter += 8) {
    std::vector<Parcel> parcels;
    for (unsigned lane = quarter; lane < quarter + 8; lane += 2) {
      const uint16_t* from = access.other_end;
      if (share_sector(access, lane) && from[lane] != from[lane + 1]) {
        parcels.push_back(
            {SECTOR, from[lane] / uint64_t{SECTOR}, access.address[lane] / SECTOR, 3u << lane});
        continue;
      }
      for (const unsigned one : {lane, lane + 1}) {
        if (!copies(access, one)) continue;
        parcels.push_back({access.bytes, from[one] / uint64_t{access.bytes},
                           access.address[one] / access.bytes, 1u << one});
      }
    }
    const int zeros = parcels.empty() ? count_passes(access, quarter, 8, 1, services) : 0;
    cost.total += zeros;
    if (parcels.empty() && zeros == 0) continue;
    cost.conflicts += zeros - 1;  // the first one is none
    for (auto kind = Service::kNeeded; !parcels.empty(); kind = Service::kConflict) {
      std::vector<Parcel> taken = {parcels.front()}, left;
      for (const Parcel& parcel : parcels) {
        const auto fits = [&](const Parcel& other) { return go_together(parcel, other); };
        (std::all_of(taken.begin(), taken.end(), fits) ? taken : left).push_back(parcel);
      }
      left.erase(left.begin());  // parcels.front(), which does not go together with itself
      const std::size_t number = size_of(services);
      for (const Parcel& parcel : taken) enter(services, number, parcel.lanes, kind);
      parcels = left;
      ++cost.total, ++cost.conflicts;
    }
  }
  return cost;
}

Cost cost_of_copies(const WarpAccess& access, bool overlap, Services* services = nullptr) {
  return access.bytes == 16 ? cost_of_copies_past_l1(access, services)
                            : cost_of_copies_through_l1(access, overlap, services);
}

// What L1's data pipe is busy with at the least, for some stages less than Nsight Compute says of
// the instructions: zeros add nothing, but for the one wavefront of a request of zeros alone. Copies past
// the L1 that lie otherwise in a 128-byte line than where they go take a quarter (read in stage 16).
int count_copy_passes(WarpAccess access) {
  bool moved = false;
  for (unsigned lane = 0; lane < LANES; ++lane) {
    if (!copies(access, lane)) {
      access.lanes &= ~(1u << lane);
    } else if ((access.address[lane] - access.other_end[lane]) % (4 * SECTOR) != 0) {
      moved = true;
    }
  }
  const int passes = cost_of_copies(access, true).total;
  return std::max(access.bytes == 16 && moved ? passes / 4 : passes, 1);
}

// The data path gives a warp 128 bytes per pass, 4 for each lane, so that 8-byte accesses go by
// half warps and 16-byte ones by quarters. Two of these go together when each lane has the same
// address as its neighbour (or as the neighbour's neighbour): then one value serves both.
Cost cost_in_shared_memory(const WarpAccess& access, Services* services) {
  if (access.operation == Operation::kCopy) {
    Cost cost = cost_of_copies(access, false, services);
    cost.pipe = count_copy_passes(access);
    return cost;
  }
  const unsigned own = access.bytes <= WORD ? LANES : LANES * WORD / access.bytes;
  unsigned group = own;
  if (group < LANES && (pairs_agree(access, 1) || pairs_agree(access, 2))) group *= 2;
  // Two that a store needs for both are no conflict.
  const int least = access.operation == Operation::kStore ? static_cast<int>(group / own) : 1;
  Cost cost;
  for (unsigned first = 0; first < LANES; first += group) {
    const int passes = count_passes(access, first, group, least, services);
    cost.total += passes;
    cost.conflicts += std::max(passes - least, 0);
  }
  cost.pipe = cost.total;
  return cost;
}

Cost cost_in_global_memory(const WarpAccess& access, Services* services) {
  const unsigned bytes = access.bytes;
  const bool past_l1 = access.operation == Operation::kCopy && bytes == 16;
  Cost cost;
  uint64_t last = UINT64_MAX;
  int asked[BANKS] = {};
  Pieces(access, bytes).for_each([&](uint64_t piece, uint32_t lanes) {
    cost.bytes += static_cast<int>(bytes);
    if (bytes == WORD) cost.pipe = std::max(cost.pipe, ++asked[piece % BANKS]);
    if (past_l1) return;
    cost.total += piece * bytes / SECTOR != last;
    last = piece * bytes / SECTOR;
    enter(services, cost.total - 1, lanes, Service::kNeeded);
  });
  for (unsigned lane = 0; past_l1 && lane < LANES; lane += 2) {
    const bool one = share_sector(access, lane) && access.address[lane] != access.address[lane + 1];
    for (const uint32_t lanes : {one ? 3u : 1u, one ? 0u : 2u}) {
      const uint32_t served = lanes << lane & access.lanes;
      if (served != 0) enter(services, cost.total++, served, Service::kNeeded);
    }
  }
  if (access.operation == Operation::kCopy || bytes == WORD) return cost;
  // As in shared memory, but that half or quarter warps never go together.
  const unsigned group = std::min(LANES, LANES * WORD / bytes);
  for (unsigned first = 0; first < LANES; first += group) {
    cost.pipe += count_passes(access, first, group);
  }
  return cost;
}

// How the lanes of an atomic operation are served.
struct AtomicWay {
  explicit AtomicWay(const WarpAccess& access) {
    const uint16_t way = access.other_end[lowest(access.lanes)];
    ignored = way & 1;
    kind = static_cast<Atomic>(way >> 1);
  }
  static unsigned lowest(uint32_t lanes) { return static_cast<unsigned>(__builtin_ctz(lanes)); }
  Atomic kind;
  bool ignored;
};

// The most lanes that one bank must serve, one after the other, though they name one word: by half or quarter
// warps where the words are wider than a bank.
int count_lanes_per_bank(const WarpAccess& access) {
  const unsigned unit = std::max(access.bytes, WORD), banks = BANKS * WORD / unit;
  int sum = 0;
  for (unsigned first = 0; first < LANES; first += banks) {
    int asked[BANKS] = {}, most = 0;
    for (unsigned lane = first; lane < first + banks; ++lane) {
      if (takes_part(access, lane))
        most = std::max(most, ++asked[access.address[lane] / unit % banks]);
    }
    sum += most;
  }
  return sum;
}

// A sector is touched as often as the word in it that most lanes name.
Cost cost_of_global_atomic(const WarpAccess& access) {
  Cost cost;
  uint64_t sector = UINT64_MAX;
  int most = 0;
  Pieces(access, access.bytes).for_each([&](uint64_t piece, uint32_t lanes) {
    const int count = __builtin_popcount(lanes);
    if (piece * access.bytes / SECTOR != std::exchange(sector, piece * access.bytes / SECTOR)) {
      cost.total += most, most = 0;
    }
    most = std::max(most, count);
  });
  cost.total += most;
  cost.pipe = count_lanes_per_bank(access) * (AtomicWay(access).ignored ? 1 : 2);
  return cost;
}

Cost cost_in_shared_memory(const WarpAccess& access, Services* services);

// Each turn all lanes that are left read their words. Then, for each bank of each half or quarter warp, the first
// puts its value there, unless another has changed that word in this turn.
Cost cost_of_loop(WarpAccess access) {
  const unsigned unit = std::max(access.bytes, WORD), banks = BANKS * WORD / unit;
  Cost cost;
  access.operation = Operation::kLoad;
  while (access.lanes != 0) {
    const Cost load = cost_in_shared_memory(access, nullptr);
    ++cost.loads.requests;
    cost.loads.wavefronts += load.total;
    cost.loads.conflicts += load.conflicts;
    std::vector<uint64_t> changed;
    uint32_t left = access.lanes;
    for (unsigned first = 0; first < LANES; first += banks) {
      uint32_t taken = 0;  // banks
      bool any = false;
      for (unsigned lane = first; lane < first + banks; ++lane) {
        if (!takes_part(access, lane)) continue;
        any = true;
        const uint64_t word = access.address[lane] / unit;
        if (taken >> word % banks & 1) continue;
        taken |= 1u << word % banks;
        if (std::find(changed.begin(), changed.end(), word) != changed.end()) continue;
        changed.push_back(word);
        left &= ~(1u << lane);
      }
      cost.total += any ? 2 : 0;
    }
    access.lanes = left;
  }
  cost.pipe = cost.total + static_cast<int>(cost.loads.wavefronts);
  return cost;
}

Cost cost_of_shared_atomic(const WarpAccess& access) {
  const AtomicWay way(access);
  if (way.kind >= Atomic::kLoop) return cost_of_loop(access);
  Cost cost;
  const int turns = way.kind == Atomic::kIncrement && way.ignored ? count_passes(access, 0, LANES)
                                                                  : count_lanes_per_bank(access);
  cost.total = cost.pipe = turns * (way.kind == Atomic::kCompare ? 2 : 1);
  cost.conflicts = turns - 1;
  return cost;
}

bool is_constant(const WarpAccess& access) {
  return access.operation == Operation::kLoad &&
         access.other_end[AtomicWay::lowest(access.lanes)] == FROM_CONSTANT;
}

}  // namespace

Cost cost_of(const WarpAccess& access, std::vector<Service>* services) {
  if (access.operation == Operation::kAtomic) {
    return access.space == Space::kShared ? cost_of_shared_atomic(access)
                                          : cost_of_global_atomic(access);
  }
  if (is_constant(access)) {
    Cost cost;
    Pieces(access, WORD).for_each([&](uint64_t, uint32_t) { ++cost.total; });
    return cost;
  }
  return access.space == Space::kShared ? cost_in_shared_memory(access, services)
                                        : cost_in_global_memory(access, services);
}

void add(const WarpAccess& access, const Cost& cost, KernelCounts& counts) {
  const Operation operation = access.operation;
  if (is_constant(access)) {
    counts.constant_words += cost.total;
    return;
  }
  if (access.space == Space::kShared) {
    SharedCounts& shared = operation == Operation::kLoad     ? counts.shared_load
                           : operation == Operation::kStore  ? counts.shared_store
                           : operation == Operation::kAtomic ? counts.shared_atomic
                                                             : counts.shared_copy;
    counts.shared_load.requests += cost.loads.requests;
    counts.shared_load.wavefronts += cost.loads.wavefronts;
    counts.shared_load.conflicts += cost.loads.conflicts;
    ++shared.requests;
    shared.wavefronts += cost.total;
    shared.conflicts += cost.conflicts;
  } else {
    const bool atomic = operation == Operation::kAtomic;
    GlobalCounts& global = operation == Operation::kLoad         ? counts.load
                           : operation == Operation::kStore      ? counts.store
                           : atomic && AtomicWay(access).ignored ? counts.reduction
                           : atomic                              ? counts.atomic
                           : access.bytes == 16                  ? counts.copy_past_l1
                                                                 : counts.copy_through_l1;
    ++global.requests;
    global.sectors += cost.total;
    global.bytes += cost.bytes;
    if (operation == Operation::kCopy) return;  // its shared side has the pipe's wavefronts
  }
  counts.pipe_wavefronts += cost.pipe;
}

}  // namespace convladder::simulator
