// What one memory instruction of a warp costs: sectors or wavefronts, and which lanes each of them serves.
#pragma once

#include <cstdint>
#include <vector>

#include "common/simulator/counts.h"
#include "common/simulator/device_calls.h"

namespace convladder::simulator {

// One instruction that the lanes of a warp execute together, each with its address.
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
// other_end[] of a load: it is one of __constant__ memory.
constexpr uint16_t FROM_CONSTANT = 1;
// other_end[] of an atomic operation.
constexpr uint16_t way_of(Atomic kind, bool result_ignored) {
  return static_cast<uint16_t>(static_cast<unsigned>(kind) << 1 | unsigned{result_ignored});
}

struct Cost {
  int total = 0;      // sectors of global memory, or wavefronts of shared memory
  int conflicts = 0;  // wavefronts beyond what the same lanes and bytes need without bank conflicts
  int bytes = 0;      // of global memory: different ones, so that a broadcast counts once
  int pipe = 0;  // wavefronts of L1's data pipe, at the least; of a copy, those of its shared side
  SharedCounts loads;  // of an atomic operation that is a loop
};

// A sector or a wavefront: the lanes that it serves, and what a wavefront is needed for.
struct Service {
  enum Kind : uint8_t {
    kNeeded,
    kConflict,
    kSourceConflict
  };  // the last: where a copy reads the L1
  uint32_t lanes = 0;
  Kind kind = kNeeded;
};

// A sector of global memory counts once, but for copies of 16 bytes, which go past the L1: there only
// lanes 2i and 2i + 1 share one, if its halves go to one sector's worth of shared memory. A wavefront
// is a pass through the 32 banks of shared memory, each 4 bytes wide.
// `services`, where given, gets as many entries as the access costs.
Cost cost_of(const WarpAccess& access, std::vector<Service>* services = nullptr);

// Adds the access, which costs so much, to `counts`.
void add(const WarpAccess& access, const Cost& cost, KernelCounts& counts);

}  // namespace convladder::simulator
