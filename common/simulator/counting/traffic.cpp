#include "common/simulator/counting/traffic.h"

#include <algorithm>
#include <vector>

namespace convladder::simulator {
namespace {

constexpr unsigned LANES = 32, SECTOR = 32, BANKS = 32, WORD = 4;

// The different values among `count` of them, which are sorted on the way.
int count_distinct(uint64_t* values, int count) {
  if (!std::is_sorted(values, values + count)) std::sort(values, values + count);
  return static_cast<int>(std::unique(values, values + count) - values);
}

bool takes_part(const WarpAccess& access, unsigned lane) { return access.lanes >> lane & 1; }

// The different pieces of `unit` bytes that the lanes' addresses lie in.
int count_pieces(const WarpAccess& access, unsigned unit) {
  uint64_t pieces[LANES];
  int size = 0;
  for (unsigned lane = 0; lane < LANES; ++lane) {
    if (takes_part(access, lane)) pieces[size++] = access.address[lane] / unit;
  }
  return count_distinct(pieces, size);
}

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

// Passes for lanes [first, first + count): the most different words that one bank must give.
int passes(const WarpAccess& access, unsigned first, unsigned count) {
  uint64_t words[LANES * 4];
  int size = 0;
  for (unsigned lane = first; lane < first + count; ++lane) {
    if (!takes_part(access, lane)) continue;
    for (unsigned byte = 0; byte < access.bytes; byte += WORD) {
      words[size++] = (access.address[lane] + byte) / WORD;
    }
  }
  size = count_distinct(words, size);
  int in_bank[BANKS] = {};
  int most = 0;
  for (int i = 0; i < size; ++i) most = std::max(most, ++in_bank[words[i] % BANKS]);
  return most;
}

bool copies(const WarpAccess& access, unsigned lane) {
  return takes_part(access, lane) && access.other_end[lane] != NO_SOURCE;
}

// A copy of 4 or 8 bytes goes from the banks of the L1 to those of shared memory. Each lane needs
// its own: not even lanes that copy the same word share one. 8-byte copies go by half warps. Lanes
// that are filled with zeros need only the latter. What Nsight Compute says of an instruction adds
// up the conflicts of both ends; in the pipe itself, as it reads that, they may overlap.
Wavefronts count_copies_through_l1(const WarpAccess& access, bool overlap) {
  const unsigned group = LANES * WORD / access.bytes;
  Wavefronts wavefronts{0, 0};
  for (unsigned first = 0; first < LANES; first += group) {
    int from[BANKS] = {}, to[BANKS] = {};
    int most_from = 1, most_to = 0;
    for (unsigned lane = first; lane < first + group; ++lane) {
      if (!takes_part(access, lane)) continue;
      for (unsigned byte = 0; byte < access.bytes; byte += WORD) {
        most_to = std::max(most_to, ++to[(access.address[lane] + byte) / WORD % BANKS]);
        if (!copies(access, lane)) continue;
        most_from = std::max(most_from, ++from[(access.other_end[lane] + byte) / WORD % BANKS]);
      }
    }
    if (most_to == 0) continue;
    const int needed = overlap ? std::max(most_from, most_to) : most_from + most_to - 1;
    wavefronts.total += needed;
    wavefronts.conflicts += needed - 1;
  }
  return wavefronts;
}

// What travels as one in a copy past the L1: a sector, or half of one.
struct Parcel {
  unsigned bytes;
  uint64_t from, to;  // in units of `bytes`
};

// In one wavefront: neighbours within a 128-byte line on both sides, moved in the same way.
bool go_together(const Parcel& a, const Parcel& b) {
  const unsigned line = 4 * SECTOR / a.bytes;
  return a.bytes == b.bytes && a.from != b.from && a.from / line == b.from / line &&
         a.to / line == b.to / line && (a.from ^ a.to) == (b.from ^ b.to);
}

// A copy of 16 bytes, by quarter warps. Explains all readings of regular patterns, but not those
// where lanes copy in no order. A quarter that is all zeros only passes the banks.
Wavefronts count_copies_past_l1(const WarpAccess& access) {
  Wavefronts wavefronts{0, 0};
  for (unsigned quarter = 0; quarter < LANES; quarter += 8) {
    std::vector<Parcel> parcels;
    for (unsigned lane = quarter; lane < quarter + 8; lane += 2) {
      const bool both = copies(access, lane) && copies(access, lane + 1);
      const Parcel sector{SECTOR, access.other_end[lane] / SECTOR, access.address[lane] / SECTOR};
      if (both && access.other_end[lane] != access.other_end[lane + 1] &&
          access.other_end[lane + 1] / SECTOR == sector.from &&
          access.address[lane + 1] / SECTOR == sector.to) {
        parcels.push_back(sector);
        continue;
      }
      for (const unsigned one : {lane, lane + 1}) {
        if (!copies(access, one)) continue;
        parcels.push_back({access.bytes, access.other_end[one] / access.bytes,
                           access.address[one] / access.bytes});
      }
    }
    const int zeros = parcels.empty() ? passes(access, quarter, 8) : 0;
    wavefronts.total += zeros;
    if (parcels.empty() && zeros == 0) continue;
    wavefronts.conflicts += zeros - 1;  // the first one is none
    while (!parcels.empty()) {
      std::vector<Parcel> taken = {parcels.front()}, left;
      for (const Parcel& parcel : parcels) {
        const auto fits = [&](const Parcel& other) { return go_together(parcel, other); };
        (std::all_of(taken.begin(), taken.end(), fits) ? taken : left).push_back(parcel);
      }
      left.erase(left.begin());  // parcels.front(), which does not go together with itself
      parcels = left;
      ++wavefronts.total, ++wavefronts.conflicts;
    }
  }
  return wavefronts;
}

// What L1's data pipe is busy with at the least, for some stages less than Nsight Compute says of
// the instructions: zeros add nothing, but for the one wavefront of a request of zeros alone.
int count_copy_passes(WarpAccess access) {
  for (unsigned lane = 0; lane < LANES; ++lane) {
    if (!copies(access, lane)) access.lanes &= ~(1u << lane);
  }
  const Wavefronts needed =
      access.bytes == 16 ? count_copies_past_l1(access) : count_copies_through_l1(access, true);
  return std::max(needed.total, 1);
}

// As of shared memory, but that half or quarter warps never go together.
int count_global_passes(const WarpAccess& access) {
  const unsigned group = std::min(LANES, LANES * WORD / access.bytes);
  int total = 0;
  for (unsigned first = 0; first < LANES; first += group) total += passes(access, first, group);
  return total;
}

// As count_sectors() and count_unique_bytes() would say of a load or store; returns what
// count_global_passes() would. Each of them would sort the addresses anew.
int add_plain(const WarpAccess& access, GlobalCounts& counts) {
  uint64_t addresses[LANES];
  int size = 0;
  for (unsigned lane = 0; lane < LANES; ++lane) {
    if (takes_part(access, lane)) addresses[size++] = access.address[lane];
  }
  size = count_distinct(addresses, size);
  int in_bank[BANKS] = {};
  int sectors = 0, most = 0;
  for (int i = 0; i < size; ++i) {
    sectors += i == 0 || addresses[i] / SECTOR != addresses[i - 1] / SECTOR;
    most = std::max(most, ++in_bank[addresses[i] / WORD % BANKS]);
  }
  counts.sectors += sectors;
  counts.bytes += size * static_cast<int>(access.bytes);
  return access.bytes == WORD ? most : count_global_passes(access);
}

}  // namespace

int count_sectors(const WarpAccess& access) {
  if (access.operation == Operation::kCopy && access.bytes == 16) {
    int sectors = 0;
    for (unsigned lane = 0; lane < LANES; lane += 2) {
      const bool one = takes_part(access, lane), other = takes_part(access, lane + 1);
      const bool shared = one && other && access.address[lane] != access.address[lane + 1] &&
                          access.address[lane] / SECTOR == access.address[lane + 1] / SECTOR &&
                          access.other_end[lane] / SECTOR == access.other_end[lane + 1] / SECTOR;
      sectors += shared ? 1 : one + other;
    }
    return sectors;
  }
  return count_pieces(access, SECTOR);
}

int count_unique_bytes(const WarpAccess& access) {
  return count_pieces(access, access.bytes) * static_cast<int>(access.bytes);
}

// The data path gives a warp 128 bytes per pass, 4 for each lane, so that 8-byte accesses go by
// half warps and 16-byte ones by quarters. Two of these go together when each lane has the same
// address as its neighbour (or as the neighbour's neighbour): then one value serves both.
Wavefronts count_wavefronts(const WarpAccess& access) {
  if (access.operation == Operation::kCopy) {
    return access.bytes == 16 ? count_copies_past_l1(access)
                              : count_copies_through_l1(access, false);
  }
  const unsigned own = access.bytes <= WORD ? LANES : LANES * WORD / access.bytes;
  unsigned group = own;
  if (group < LANES && (pairs_agree(access, 1) || pairs_agree(access, 2))) group *= 2;
  // Two that a store needs for both are no conflict.
  const int least = access.operation == Operation::kStore ? static_cast<int>(group / own) : 1;
  Wavefronts wavefronts{0, 0};
  for (unsigned first = 0; first < LANES; first += group) {
    const int needed = passes(access, first, group);
    wavefronts.total += needed;
    wavefronts.conflicts += std::max(needed - least, 0);
  }
  return wavefronts;
}

int64_t add(const WarpAccess& access, KernelCounts& counts) {
  if (access.space == Space::kShared) {
    SharedCounts& shared = access.operation == Operation::kLoad    ? counts.shared_load
                           : access.operation == Operation::kStore ? counts.shared_store
                                                                   : counts.shared_copy;
    const Wavefronts wavefronts = count_wavefronts(access);
    ++shared.requests;
    shared.wavefronts += wavefronts.total;
    shared.conflicts += wavefronts.conflicts;
    counts.pipe_wavefronts +=
        access.operation == Operation::kCopy ? count_copy_passes(access) : wavefronts.total;
    return wavefronts.total;
  }
  GlobalCounts& global = access.operation == Operation::kLoad    ? counts.load
                         : access.operation == Operation::kStore ? counts.store
                         : access.bytes == 16                    ? counts.copy_past_l1
                                                                 : counts.copy_through_l1;
  const int64_t before = global.sectors;
  ++global.requests;
  if (access.operation == Operation::kCopy) {
    global.sectors += count_sectors(access);
    global.bytes += count_unique_bytes(access);
  } else {
    counts.pipe_wavefronts += add_plain(access, global);
  }
  return global.sectors - before;
}

}  // namespace convladder::simulator
