#include "common/simulator/counting/launch_counts.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
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

// The last launch of a program, once it has ended without a finding.
struct LastLaunch {
  const void* kernel = nullptr;
  dim3 blocks, threads;
  std::size_t dynamic_bytes = 0;
  std::vector<char> arguments;
  int64_t times_in_reach = 0, findings = 0;
  std::optional<bool> is_repeatable;  // once it has been asked for
} last;

// What a kernel may call whose effects are all in memory.
constexpr const char* CALLED =
    "__tsan_(unaligned_)?(read|write).*|__sanitizer_cov_trace_pc|__sync(threads|warp)|__pipeline_.*"
    "|"
    "(a?(sin|cos|tan)h?|atan2|sqrt|cbrt|hypot|exp|exp2|expm1|log|log2|log10|log1p|pow|erfc?|fma|"
    "fmin|fmax|"
    "fmod|floor|ceil|trunc|round|rint)f?|"
    "mem(cpy|set)";

bool same(dim3 a, dim3 b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

Launch current;    // changes between launches alone
std::mutex mutex;  // for what follows
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

// The floats of the matrix that no kernel or copy has written, as one line; empty if none.
std::string find_undefined(const Allocations& memory, const MatrixView& matrix) {
  for (int64_t column = 0; column < matrix.columns; ++column) {
    for (int64_t row = 0; row < matrix.rows; ++row) {
      const auto address = reinterpret_cast<uintptr_t>(matrix.data + column * matrix.pitch + row);
      const Allocation* allocation = find(memory, address);
      if (!allocation) continue;  // the host's
      const MemoryState state = allocation->state((address - allocation->begin()) / 4);
      if (state == MemoryState::kDefined) continue;
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
  current = {current.number + 1,  &symbols,        products, grid.argument,
             grid.argument_bytes, device_memory(), &grid,    is_program() ? finding_count() : 0};
  for (const auto& allocation : current.memory) allocation->forget_touches();
  forget_publications();
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

bool repeats_last_launch(const Grid& grid) {
  const char* const argument = static_cast<const char*>(grid.argument);
  const bool is_same = grid.kernel == last.kernel && same(grid.blocks, last.blocks) &&
                       same(grid.threads, last.threads) &&
                       grid.dynamic_bytes == last.dynamic_bytes &&
                       std::equal(argument, argument + grid.argument_bytes, last.arguments.begin(),
                                  last.arguments.end()) &&
                       times_in_reach() == last.times_in_reach && finding_count() == last.findings;
  if (!is_same) {
    last = {};
    return false;
  }
  if (!last.is_repeatable) {
    last.is_repeatable =
        calls_only(grid.kernel, current.symbols->bytes, CALLED) &&
        std::all_of(current.memory.begin(), current.memory.end(),
                    [](const auto& allocation) { return allocation->is_repeatable(); });
  }
  if (*last.is_repeatable) add_finished(current_counts);
  return *last.is_repeatable;
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
  if (is_program()) {
    const Grid& grid = *current.grid;
    const char* const argument = static_cast<const char*>(grid.argument);
    last = {grid.kernel,
            grid.blocks,
            grid.threads,
            grid.dynamic_bytes,
            {argument, argument + grid.argument_bytes},
            times_in_reach(),
            current.findings == finding_count() ? current.findings : -1,
            std::nullopt};
  }
}

std::string library_call(const std::string& function, const LaunchWork& work,
                         const std::vector<MatrixView>& reads,
                         const std::vector<MatrixView>& writes) {
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
