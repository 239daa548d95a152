#include "common/simulator/counting/launch_counts.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "common/simulator/counting/warp_trace.h"
#include "common/simulator/launch.h"
#include "common/simulator/report.h"
#include "common/simulator/worker.h"

namespace convladder::simulator {
namespace {

// What can be read of a kernel. That takes milliseconds, so once.
struct KernelFacts {
  Symbols symbols;
  BlockProducts products;
};

const KernelFacts& facts_of(const void* kernel) {
  static std::map<const void*, KernelFacts> known;
  const auto [found, is_new] = known.try_emplace(kernel);
  if (is_new) {
    const Symbols symbols = read_symbols(kernel);
    found->second = {symbols, read_products(kernel, symbols.bytes)};
  }
  return found->second;
}

bool same(dim3 a, dim3 b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

// A launch of a program that would do the same again, as long as what it has touched is as it has left it: it has
// found nothing, and written nothing that it had read before, or that the host may change.
struct Repeatable {
  const void* kernel;
  dim3 blocks, threads;
  std::size_t dynamic_bytes;
  std::vector<char> arguments;
  std::vector<uint64_t> versions;  // of what it has touched
  uint64_t constants;
  KernelCounts counts;

  bool is(const Grid& grid) const {
    const char* const argument = static_cast<const char*>(grid.argument);
    return grid.kernel == kernel && same(grid.blocks, blocks) && same(grid.threads, threads) &&
           grid.dynamic_bytes == dynamic_bytes &&
           std::equal(argument, argument + grid.argument_bytes, arguments.begin(), arguments.end());
  }
};
std::deque<Repeatable> repeatable;  // the last ones
constexpr std::size_t MOST_REPEATABLE = 16;
std::map<const void*, bool> effects_in_memory_alone;  // of the kernels that were asked for

// What a kernel may call whose effects are all in memory.
constexpr const char* CALLED =
    "__tsan_(unaligned_)?(read|write).*|__sanitizer_cov_trace_pc|__pipeline_.*|"
    "convladder::simulator::(sync_threads|sync_grid|named_barrier|wait_for_kernel_before|meet|lane_"
    "id|shared_pointer)|"
    "(a?(sin|cos|tan)h?|atan2|sqrt|cbrt|hypot|exp|exp2|expm1|log|log2|log10|log1p|pow|erfc?|fma|"
    "fmin|fmax|"
    "fmod|floor|ceil|trunc|round|rint)f?|"
    "mem(cpy|set)";

Launch current;  // changes between launches alone
KernelBefore last;
std::atomic<bool> begins_early{false};  // a kernel of the program
std::mutex mutex;                       // for what follows
KernelCounts current_counts;
std::vector<KernelCounts> finished;

void add_finished(const KernelCounts& counts) {
  const std::lock_guard lock(mutex);
  for (KernelCounts& other : finished) {
    if (other.kernel == counts.kernel) {
      other += counts;
      return;
    }
  }
  finished.push_back(counts);
}

// To read that takes milliseconds, so only once a launch may be a repeat.
bool has_effects_in_memory_alone(const void* kernel) {
  const auto [found, is_new] = effects_in_memory_alone.try_emplace(kernel);
  if (is_new) found->second = calls_only(kernel, facts_of(kernel).symbols.bytes, CALLED);
  return found->second;
}

// The launch has ended.
void keep_repeatable() {
  const Grid& grid = *current.grid;
  std::vector<uint64_t> versions;
  for (const auto& allocation : current.memory) {
    if (allocation->was_overwritten() || allocation->was_written_by_host()) return;
    if (allocation->was_touched()) versions.push_back(allocation->version());
  }
  const auto known = effects_in_memory_alone.find(grid.kernel);
  if (finding_count() != current.findings ||
      (known != effects_in_memory_alone.end() && !known->second))
    return;
  const char* const argument = static_cast<const char*>(grid.argument);
  repeatable.push_front({grid.kernel,
                         grid.blocks,
                         grid.threads,
                         grid.dynamic_bytes,
                         {argument, argument + grid.argument_bytes},
                         versions,
                         version_of_constants(),
                         current_counts});
  if (repeatable.size() > MOST_REPEATABLE) repeatable.pop_back();
}

// The floats of the matrix that no kernel or copy has written, as one line; empty if none.
std::string find_undefined(const Allocations& memory, const MatrixView& matrix) {
  for (int64_t column = 0; column < matrix.columns; ++column) {
    for (int64_t row = 0; row < matrix.rows; ++row) {
      const auto address = reinterpret_cast<uintptr_t>(matrix.data + column * matrix.pitch + row);
      const Allocation* allocation = find(memory, address);
      if (!allocation) continue;  // the host's
      const MemoryState state = allocation->state((address - allocation->begin()) / 4);
      if (state == MemoryState::kDefined || state == MemoryState::kPartial) continue;
      return (state == MemoryState::kForbidden ? "global memory out of bounds"
                                               : "global memory that nobody has written") +
             (", row " + std::to_string(row)) + " of column " + std::to_string(column);
    }
  }
  return "";
}

}  // namespace

const Launch& current_launch() { return current; }

bool counts_accesses() {
  static const bool counts = !is_program() || std::getenv("CONVLADDER_SIM_COUNT");
  return counts;
}

void begin_launch(const Grid& grid) {
  const auto& [symbols, products] = facts_of(grid.kernel);
  current = {current.number + 1,
             &symbols,
             products,
             grid.argument,
             grid.argument_bytes,
             device_memory(),
             &grid,
             is_program() ? finding_count() : 0,
             {}};
  const bool may_overlap = last_kernel_may_run.exchange(false) && grid.kind == LaunchKind::kEarly &&
                           last.stream == grid.stream;
  if (may_overlap) current.before = last;
  for (const auto& allocation : current.memory) allocation->forget_touches(may_overlap);
  forget_publications(may_overlap);
  current_counts = {};
  current_counts.kernel = symbols.name;
  current_counts.launches = 1;
  current_counts.knows_products = products.of_block != nullptr;
  current_counts.work = {{grid.kernel}};
  current_counts.shared_bytes = static_cast<int64_t>(grid.dynamic_bytes);
  for (const auto& variable : symbols.shared) {
    if (variable.is_own) current_counts.shared_bytes += static_cast<int64_t>(variable.bytes);
  }
  trace_launch(symbols.name, grid.blocks, grid.threads, symbols.shared);
}

void add_block(const KernelCounts& block) {
  const std::lock_guard lock(mutex);
  current_counts += block;
  LaunchWork& work = current_counts.work[0];
  ++work.blocks;
  ++work.products[static_cast<int64_t>(block.products)];
  ++work.wavefronts[block.pipe_wavefronts];
  if (block.tensor_instructions > 0) ++work.tensor_instructions[block.tensor_instructions];
  if (block.hopper.columns > 0) ++work.wgmma_columns[block.hopper.columns];
}

bool repeats_earlier_launch(const Grid& grid) {
  // What the kernel before has touched must be known.
  if (grid.kind == LaunchKind::kEarly) begins_early = true;
  if (begins_early) return false;
  const auto is_it = [&](const Repeatable& earlier) { return earlier.is(grid); };
  const auto found = std::find_if(repeatable.begin(), repeatable.end(), is_it);
  if (found == repeatable.end()) return false;
  std::vector<uint64_t> versions;
  for (const auto& allocation : device_memory()) versions.push_back(allocation->version());
  const auto is_there = [&](uint64_t version) {
    return std::find(versions.begin(), versions.end(), version) != versions.end();
  };
  if (found->constants != version_of_constants() ||
      !std::all_of(found->versions.begin(), found->versions.end(), is_there) ||
      !has_effects_in_memory_alone(grid.kernel)) {
    repeatable.erase(found);
    return false;
  }
  add_finished(found->counts);
  last_kernel_may_run = false;
  return true;
}

void end_launch() {
  for (const auto& allocation : current.memory) {
    if (!counts_accesses()) break;
    current_counts.sectors_read += allocation->sectors_touched(false);
    current_counts.sectors_written += allocation->sectors_touched(true);
  }
  current_counts.work[0].sectors_read = current_counts.sectors_read;
  current_counts.work[0].sectors_written = current_counts.sectors_written;
  add_finished(current_counts);
  if (is_program()) keep_repeatable();
  last = {current.symbols, current.grid->blocks, current.grid->threads, current.grid->stream};
  last_kernel_may_run = true;
}

std::string library_call(const std::string& function, const LaunchWork& work,
                         const std::vector<MatrixView>& reads,
                         const std::vector<MatrixView>& writes) {
  last_kernel_may_run = false;
  const Allocations memory = device_memory();
  for (const MatrixView& matrix : reads) {
    const std::string undefined = find_undefined(memory, matrix);
    if (!undefined.empty()) return function + " reads " + undefined;
  }
  for (const MatrixView& matrix : writes) {
    for (int64_t column = 0; column < matrix.columns; ++column) {
      set_memory_state(matrix.data + column * matrix.pitch, matrix.rows * 4, MemoryState::kDefined);
    }
  }
  KernelCounts counts;
  counts.kernel = function;
  counts.launches = 1;
  counts.library = true;
  counts.sectors_read = work.sectors_read;
  counts.sectors_written = work.sectors_written;
  counts.work = {work};
  add_finished(counts);
  return "";
}

std::vector<KernelCounts> take_launch_counts() {
  const std::lock_guard lock(mutex);
  return std::exchange(finished, {});
}

}  // namespace convladder::simulator
