#include "common/simulator/counting/warp_trace.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "common/core/program.h"
#include "common/simulator/counting/warp_log.h"

namespace convladder::simulator {
namespace {

constexpr int MAX_TIMES = 512;  // that an instruction of a warp is kept

struct Counted {
  TracedKernel kernel;
  CountsByInstruction counts;
};

// Written between launches only; during one, a warp by the only worker that has its block, and
// counts under the mutex.
struct {
  bool on = false;
  TraceSample sample;
  std::vector<Counted> kernels;  // in the order of their first launch
  std::size_t current = 0;
  bool sampling = false;  // it is the kernel's first launch
  std::mutex mutex;
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

std::vector<TracedInstruction> instructions_of(const CountsByInstruction& counts,
                                               std::vector<uint64_t>& order) {
  for (const auto& entry : counts) order.push_back(entry.first);
  std::sort(order.begin(), order.end());
  std::vector<uint32_t> codes;
  for (const uint64_t what : order) {
    codes.push_back(code_offset(reinterpret_cast<const void*>(LaneLog::code(what))));
  }
  const std::vector<std::vector<std::string>> lines = source_lines(codes);
  std::vector<TracedInstruction> instructions;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const WarpAccess access = LaneLog::unpack(order[i]);
    instructions.push_back(
        {lines[i], access.space, access.operation, access.bytes, counts.at(order[i])});
  }
  return instructions;
}

}  // namespace

void InstructionCounts::add(const WarpAccess& access) {
  ++requests;
  unique_bytes += count_unique_bytes(access);
  if (access.space == Space::kShared) {
    const Wavefronts needed = count_wavefronts(access);
    wavefronts += needed.total;
    conflicts += needed.conflicts;
  } else {
    sectors += count_sectors(access);
  }
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (access.lanes >> lane & 1) first_address = std::min(first_address, access.address[lane]);
  }
}

void start_trace(const TraceSample& sample) {
  trace.on = true;
  trace.sample = sample;
  trace.kernels.clear();
}

std::vector<TracedKernel> take_trace() {
  std::vector<TracedKernel> kernels;
  for (Counted& counted : trace.kernels) {
    std::vector<uint64_t> order;
    counted.kernel.instructions = instructions_of(counted.counts, order);
    const auto place = [&](uint64_t what) {
      return std::lower_bound(order.begin(), order.end(), what) - order.begin();
    };
    for (TracedWarp& warp : counted.kernel.warps) {
      for (TracedExecution& execution : warp.executions) {
        execution.instruction = place(execution.what);
      }
      for (const auto& [what, times] : warp.times) {
        if (times > MAX_TIMES) warp.cut.insert(place(what));
      }
    }
    kernels.push_back(std::move(counted.kernel));
  }
  trace.kernels.clear();
  trace.on = false;
  return kernels;
}

bool tracing() { return trace.on; }

void trace_launch(const std::string& kernel, dim3 blocks, dim3 threads,
                  const std::vector<SharedVariable>& shared) {
  const auto same = [&](const Counted& known) { return known.kernel.kernel == kernel; };
  const auto known = std::find_if(trace.kernels.begin(), trace.kernels.end(), same);
  trace.current = known - trace.kernels.begin();
  trace.sampling = known == trace.kernels.end();
  if (trace.sampling) {
    trace.kernels.push_back({{kernel, 0, blocks, threads, shared, {}, {}}, {}});
    const auto warps = static_cast<unsigned>((product(threads) + 31) / 32);
    for (const uint64_t block : sample_of(product(blocks), trace.sample.block)) {
      for (const unsigned warp : sample_of(warps, trace.sample.warp)) {
        trace.kernels.back().kernel.warps.push_back({block, warp, {}});
      }
    }
  }
  ++trace.kernels[trace.current].kernel.launches;
}

TracedWarp* traced_warp(uint64_t block, unsigned warp) {
  if (!trace.sampling) return nullptr;
  for (TracedWarp& traced : trace.kernels[trace.current].kernel.warps) {
    if (traced.block == block && traced.warp == warp) return &traced;
  }
  return nullptr;
}

void keep(TracedWarp& warp, uint64_t what, const WarpAccess& access) {
  if (++warp.times[what] > MAX_TIMES) return;
  const bool shared = access.space == Space::kShared;
  const Wavefronts cost = shared ? count_wavefronts(access) : Wavefronts{count_sectors(access), 0};
  warp.executions.push_back({what, 0, access, cost.total, cost.conflicts});
}

void add_to_trace(const CountsByInstruction& counts) {
  const std::lock_guard lock(trace.mutex);
  for (const auto& [what, count] : counts) trace.kernels[trace.current].counts[what] += count;
}

}  // namespace convladder::simulator
