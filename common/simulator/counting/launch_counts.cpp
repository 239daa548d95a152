#include "common/simulator/counting/launch_counts.h"

#include <algorithm>
#include <map>
#include <utility>

#include "common/simulator/counting/warp_trace.h"
#include "common/simulator/worker.h"

namespace convladder::simulator {
namespace {

// What the program's symbols say of a kernel. Reading them takes milliseconds, so once.
struct KernelSymbols {
  std::string name;
  std::vector<SharedVariable> shared;
  BlockProducts products;
};

const KernelSymbols& symbols_of(const void* kernel) {
  static std::map<const void*, KernelSymbols> known;
  const auto [found, is_new] = known.try_emplace(kernel);
  if (is_new) {
    found->second = {symbol_name(kernel), shared_variables(kernel), BlockProducts(kernel)};
  }
  return found->second;
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

LaunchCounts& LaunchCounts::instance() {
  static auto* counts = new LaunchCounts;
  return *counts;
}

void LaunchCounts::begin(const void* kernel, const void* argument, std::size_t argument_bytes) {
  const KernelSymbols& symbols = symbols_of(kernel);
  launch_ = {launch_.number + 1,
             symbols.name,
             &symbols.products,
             argument,
             argument_bytes,
             symbols.shared,
             DeviceMemory::instance().allocations()};
  for (const auto& allocation : launch_.memory) allocation->forget_touches();
  counts_ = {};
  counts_.kernel = symbols.name;
  counts_.launches = 1;
  counts_.knows_products = symbols.products.known();
  work_ = {};
  work_.code = kernel;
  for (const SharedVariable& variable : symbols.shared) counts_.shared_bytes += variable.bytes;
}

void LaunchCounts::end() {
  for (const auto& allocation : launch_.memory) {
    counts_.sectors_read += allocation->sectors_touched(false);
    counts_.sectors_written += allocation->sectors_touched(true);
  }
  work_.sectors_read = counts_.sectors_read;
  work_.sectors_written = counts_.sectors_written;
  counts_.work = {work_};
  add_finished(counts_);
}

void LaunchCounts::add(const KernelCounts& block) {
  const std::lock_guard lock(mutex_);
  counts_ += block;
  ++work_.blocks;
  ++work_.products[static_cast<int64_t>(block.products)];
  ++work_.wavefronts[block.pipe_wavefronts];
  if (block.tensor_instructions > 0) ++work_.tensor_instructions[block.tensor_instructions];
}

void LaunchCounts::add_finished(const KernelCounts& counts) {
  const std::lock_guard lock(mutex_);
  for (KernelCounts& finished : finished_) {
    if (finished.kernel != counts.kernel) continue;
    finished += counts;
    return;
  }
  finished_.push_back(counts);
}

std::vector<KernelCounts> LaunchCounts::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(finished_, {});
}

void begin_launch(const Grid& grid) {
  LaunchCounts& counts = LaunchCounts::instance();
  counts.begin(grid.kernel, grid.argument, grid.argument_bytes);
  if (!tracing()) return;
  trace_launch(counts.launch().kernel, grid.blocks, grid.threads, counts.launch().shared);
}

void end_launch() { LaunchCounts::instance().end(); }

std::string library_call(const std::string& function, double products,
                         const std::vector<MatrixView>& reads,
                         const std::vector<MatrixView>& writes) {
  DeviceMemory& memory = DeviceMemory::instance();
  KernelCounts counts;
  counts.kernel = function;
  counts.launches = 1;
  counts.library = true;
  for (const MatrixView& matrix : reads) {
    const std::string undefined = find_undefined(memory.allocations(), matrix);
    if (!undefined.empty()) return function + " reads " + undefined;
    counts.sectors_read += sectors_of(matrix);
  }
  for (const MatrixView& matrix : writes) {
    for (int64_t column = 0; column < matrix.columns; ++column) {
      memory.set_state(matrix.data + column * matrix.pitch, matrix.rows * 4, MemoryState::kDefined);
    }
    counts.sectors_written += sectors_of(matrix);
  }
  LaunchWork work;
  work.library_products = products;
  work.sectors_read = counts.sectors_read;
  work.sectors_written = counts.sectors_written;
  counts.work = {work};
  LaunchCounts::instance().add_finished(counts);
  return "";
}

std::vector<KernelCounts> take_launch_counts() { return LaunchCounts::instance().take(); }

}  // namespace convladder::simulator
