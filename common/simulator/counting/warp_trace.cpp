#include "common/simulator/counting/warp_trace.h"

#include <utility>

namespace convladder::simulator {
namespace {

// Written between launches only, and during one by the only worker that has the block.
struct {
  bool on = false;
  uint64_t block = 0;
  unsigned warp = 0;
  std::vector<TracedAccess> kept;
} trace;

}  // namespace

void trace_warp(uint64_t block, unsigned warp) {
  trace.on = true;
  trace.block = block;
  trace.warp = warp;
}

std::vector<TracedAccess> take_trace() { return std::exchange(trace.kept, {}); }

bool is_traced(uint64_t block, unsigned warp) {
  return trace.on && trace.block == block && trace.warp == warp;
}

void keep(TracedAccess access) { trace.kept.push_back(std::move(access)); }

}  // namespace convladder::simulator
