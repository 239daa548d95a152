#include "common/simulator/counting/warp_trace.h"

#include <algorithm>
#include <utility>

#include "common/simulator/counting/warp_log.h"

namespace convladder::simulator {
namespace {

// Changes between launches only; during one, each warp is written by the worker that has its block.
struct {
  bool on = false;
  TraceSample sample;
  std::vector<TracedKernel> kernels;  // in the order of their first launch
  TracedKernel* first = nullptr;      // whose first launch is under way
} trace;

uint64_t product(dim3 extents) { return uint64_t{extents.x} * extents.y * extents.z; }

// The first, the middle and the last of `count`; or the one chosen, if there is one.
template <typename T>
std::vector<T> sample_of(T count, std::optional<T> chosen) {
  if (chosen) return *chosen < count ? std::vector<T>{*chosen} : std::vector<T>();
  std::vector<T> all = {0, count / 2, count - 1};
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace

void start_trace(const TraceSample& sample) {
  trace = {};
  trace.on = true;
  trace.sample = sample;
}

std::vector<TracedKernel> take_trace() { return std::exchange(trace, {}).kernels; }

void trace_launch(const std::string& kernel, dim3 blocks, dim3 threads,
                  const std::vector<SharedVariable>& shared) {
  trace.first = nullptr;
  if (!trace.on) return;
  const auto known = std::find_if(trace.kernels.begin(), trace.kernels.end(),
                                  [&](const auto& other) { return other.kernel == kernel; });
  if (known != trace.kernels.end()) {
    ++known->launches;
    return;
  }
  trace.kernels.push_back({kernel, 1, blocks, threads, shared, {}});
  trace.first = &trace.kernels.back();
  const auto warps = static_cast<unsigned>((product(threads) + 31) / 32);
  for (const uint64_t block : sample_of(product(blocks), trace.sample.block)) {
    for (const unsigned warp : sample_of(warps, trace.sample.warp)) {
      trace.first->warps.push_back({block, warp});
    }
  }
}

TracedWarp* traced_warp(uint64_t block, unsigned warp) {
  if (!trace.first) return nullptr;
  for (TracedWarp& traced : trace.first->warps) {
    if (traced.block == block && traced.warp == warp) return &traced;
  }
  return nullptr;
}

void keep(TracedWarp& warp, uint64_t what, const WarpAccess& access) {
  const Instruction instruction = LaneLog::instruction(what);
  if (++warp.times[instruction] > MOST_TIMES) return;
  warp.executions.push_back({instruction, access, {}});
  cost_of(access, &warp.executions.back().services);
}

}  // namespace convladder::simulator
