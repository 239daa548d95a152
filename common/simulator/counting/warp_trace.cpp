#include "common/simulator/counting/warp_trace.h"

#include <algorithm>
#include <utility>

#include "common/core/program.h"
#include "common/simulator/counting/warp_log.h"

namespace convladder::simulator {
namespace {

constexpr int MAX_TIMES = 512;  // that an instruction of a warp is kept

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

std::vector<TracedInstruction> instructions_of(const KernelCounts& counts) {
  std::vector<uint32_t> codes;
  for (const auto& entry : counts.instructions) codes.push_back(entry.first.code);
  const std::vector<std::vector<std::string>> lines = source_lines(codes);
  std::vector<TracedInstruction> instructions;
  for (const auto& [instruction, count] : counts.instructions) {
    instructions.push_back({instruction, lines[instructions.size()], count});
  }
  return instructions;
}

template <typename Kernels>
auto find_kernel(Kernels& kernels, const std::string& name) {
  return std::find_if(kernels.begin(), kernels.end(),
                      [&](const auto& known) { return known.kernel == name; });
}

}  // namespace

void start_trace(const TraceSample& sample) {
  trace = {};
  trace.on = true;
  trace.sample = sample;
}

std::vector<TracedKernel> take_trace(const std::vector<KernelCounts>& counts) {
  std::vector<TracedKernel> kernels = std::exchange(trace, {}).kernels;
  for (TracedKernel& kernel : kernels) {
    kernel.instructions = instructions_of(*find_kernel(counts, kernel.kernel));
    const auto place = [&](uint64_t what) {
      const auto& all = kernel.instructions;
      return std::lower_bound(all.begin(), all.end(), LaneLog::instruction(what)) - all.begin();
    };
    for (TracedWarp& warp : kernel.warps) {
      for (TracedExecution& execution : warp.executions) {
        execution.instruction = place(execution.what);
      }
      for (const auto& [what, times] : warp.times) {
        if (times > MAX_TIMES) warp.cut.insert(place(what));
      }
    }
  }
  return kernels;
}

void trace_launch(const std::string& kernel, dim3 blocks, dim3 threads,
                  const std::vector<SharedVariable>& shared) {
  trace.first = nullptr;
  if (!trace.on) return;
  const auto known = find_kernel(trace.kernels, kernel);
  if (known != trace.kernels.end()) {
    ++known->launches;
    return;
  }
  trace.kernels.push_back({kernel, 1, blocks, threads, shared, {}, {}});
  trace.first = &trace.kernels.back();
  const auto warps = static_cast<unsigned>((product(threads) + 31) / 32);
  for (const uint64_t block : sample_of(product(blocks), trace.sample.block)) {
    for (const unsigned warp : sample_of(warps, trace.sample.warp)) {
      trace.first->warps.push_back({block, warp, {}});
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
  if (++warp.times[what] > MAX_TIMES) return;
  warp.executions.push_back({what, 0, access, {}});
  cost_of(access, &warp.executions.back().services);
}

}  // namespace convladder::simulator
