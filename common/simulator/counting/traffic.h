// What one memory instruction of a warp costs: requests, sectors, wavefronts.
#pragma once

#include <cstdint>

#include "common/simulator/counts.h"

namespace convladder::simulator {

enum class Space : uint8_t { kGlobal, kShared };
// kCopy: an asynchronous copy, seen from the global or from the shared side.
enum class Operation : uint8_t { kLoad, kStore, kCopy };

// One instruction that the lanes of a warp execute together, each with an address of its own.
struct WarpAccess {
  Space space = Space::kGlobal;
  Operation operation = Operation::kLoad;
  unsigned bytes = 4;         // per lane: 1, 2, 4, 8 or 16
  uint32_t lanes = 0;         // a bit per lane that takes part
  uint64_t address[32] = {};  // of those lanes; aligned to `bytes`
  // Of a copy, the address's low bits: its source, as seen from shared memory, and its destination,
  // as seen from global memory.
  uint16_t other_end[32] = {};
};

// other_end[] of a lane whose copy is all zeros: no source is so badly aligned.
constexpr uint16_t NO_SOURCE = 1;

// The 32-byte sectors of global memory that the lanes ask for. Each counts once, but for copies of
// 16 bytes, which go past the L1: there only lanes 2i and 2i + 1 share one, if its halves go to one
// sector's worth of shared memory.
int count_sectors(const WarpAccess& access);

// The different bytes that the lanes ask for: a broadcast counts once.
int count_unique_bytes(const WarpAccess& access);

// Passes through the 32 banks of shared memory, each 4 bytes wide. `conflicts` are those beyond
// what the same lanes and bytes would need without bank conflicts.
struct Wavefronts {
  int total, conflicts;
};
Wavefronts count_wavefronts(const WarpAccess& access);

// Adds the access to `counts`, and returns the sectors or wavefronts that it costs.
int64_t add(const WarpAccess& access, KernelCounts& counts);

}  // namespace convladder::simulator
