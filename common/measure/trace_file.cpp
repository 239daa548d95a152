#include "common/measure/trace_file.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include <fmt/format.h>
#include "common/check/files.h"
#include "common/command/selection.h"
#include "common/simulator/observer.h"

namespace convladder {
namespace {

using simulator::Operation;
using simulator::Space;
using simulator::TracedExecution;
using simulator::TracedInstruction;
using simulator::TracedKernel;
using simulator::TracedWarp;
using simulator::WarpAccess;

constexpr unsigned LANES = 32;
constexpr uint64_t LINE = 128;  // bytes: what addresses are counted in keeps its place in a line

const char* name_of(Operation operation) {
  return operation == Operation::kLoad ? "load" : operation == Operation::kStore ? "store" : "copy";
}

// Global memory in the file's addresses, which are the same from run to run: each tensor begins at a
// place of its own, as far into a line of 128 bytes as it does in memory.
class GlobalMap {
 public:
  explicit GlobalMap(const std::vector<TensorPlace>& tensors) {
    uint64_t next = 0;
    for (const TensorPlace& tensor : tensors) {
      if (tensor.bytes == 0) continue;
      places_.push_back({tensor, next + tensor.begin % LINE});
      next = (next + tensor.bytes + 2 * LINE) / LINE * LINE;
    }
    rest_ = next + (1 << 16);
  }

  uint64_t address(uint64_t real) const {
    const Place* place = find(real);
    return place ? place->begin + (real - place->tensor.begin) : rest_ + real % (1 << 16);
  }

  std::string name(uint64_t real) const {
    const Place* place = find(real);
    return place ? place->tensor.name : "memory";  // a __device__ variable's
  }

  Json json() const {
    std::vector<Json> all;
    for (const auto& [tensor, begin] : places_) {
      all.push_back(
          Json::object({{"name", tensor.name}, {"begin", begin}, {"bytes", tensor.bytes}}));
    }
    return Json(all);
  }

 private:
  struct Place {
    TensorPlace tensor;
    uint64_t begin;
  };

  const Place* find(uint64_t real) const {
    for (const Place& place : places_) {
      if (real - place.tensor.begin < place.tensor.bytes) return &place;
    }
    return nullptr;
  }

  std::vector<Place> places_;
  uint64_t rest_;
};

// The lanes' values less that of the first lane that has one; NaN for the others.
using Pattern = std::vector<double>;

struct Relative {
  Pattern pattern;
  int64_t base = 0;  // what the first one has
};

template <typename Value>  // lane -> its value
Relative relative(uint32_t lanes, const Value& value) {
  Relative result;
  if (lanes != 0) result.base = static_cast<int64_t>(value(__builtin_ctz(lanes)));
  for (unsigned lane = 0; lane < LANES; ++lane) {
    result.pattern.push_back(
        lanes >> lane & 1 ? static_cast<double>(static_cast<int64_t>(value(lane)) - result.base)
                          : std::nan(""));
  }
  return result;
}

// Patterns that a stage's runs refer to by number.
class Patterns {
 public:
  int number_of(const Pattern& pattern) {
    std::vector<double> key = pattern;  // NaN is not equal to itself
    for (double& value : key) value = std::isnan(value) ? 0.5 : value;
    const auto [found, is_new] = numbers_.try_emplace(key, static_cast<int>(texts_.size()));
    if (is_new) {
      texts_.push_back(Json(pattern));
      bytes_ += texts_.back().dump().size() + 1;
    }
    return found->second;
  }

  std::size_t bytes() const { return bytes_; }
  Json json() const { return Json(texts_); }

 private:
  std::map<std::vector<double>, int> numbers_;
  std::vector<Json> texts_;
  std::size_t bytes_ = 0;
};

// The run under way of one instruction, and its list so far.
struct Runs {
  std::vector<int64_t> numbers;
  std::size_t last = 0;  // where the last run begins
  std::size_t bytes = 2;

  // What stays the same in a run, and the address (two for a copy).
  void add(int pattern, int64_t base, int cost, int conflicts, int other_pattern, int64_t other) {
    const bool copy = other_pattern >= 0;
    if (!numbers.empty()) {
      int64_t* run = &numbers[last];
      const int64_t times = run[3], step = base - run[1], other_step = copy ? other - run[7] : 0;
      const bool same = run[0] == pattern && run[4] == cost && run[5] == conflicts &&
                        (!copy || run[6] == other_pattern);
      if (same && times == 1) {
        run[2] = step, run[3] = 2;
        if (copy) run[8] = other_step;
        return;
      }
      if (same && step == run[2] * times && (!copy || other_step == run[8] * times)) {
        ++run[3];
        return;
      }
    }
    last = numbers.size();
    numbers.insert(numbers.end(), {pattern, base, 0, 1, cost, conflicts});
    if (copy) numbers.insert(numbers.end(), {other_pattern, other, 0});
    bytes += 40 + (copy ? 16 : 0);  // as long as they get, more or less
  }

  Json json() const { return Json(numbers); }
};

// A warp, as far as `bytes` go.
Json warp_json(const TracedKernel& kernel, const TracedWarp& warp, const GlobalMap& memory,
               Patterns& patterns, std::size_t bytes) {
  std::vector<Runs> runs(kernel.instructions.size());
  std::set<std::size_t> cut = warp.cut;
  std::size_t used = 0, patterns_before = patterns.bytes();
  for (const TracedExecution& execution : warp.executions) {
    if (used + patterns.bytes() - patterns_before >= bytes) {
      cut.insert(execution.instruction);
      continue;
    }
    const WarpAccess& access = execution.access;
    const bool shared = access.space == Space::kShared;
    const Relative at = relative(access.lanes, [&](unsigned lane) {
      return shared ? access.address[lane] : memory.address(access.address[lane]);
    });
    Relative other;
    int other_pattern = -1;
    if (access.operation == Operation::kCopy) {
      uint32_t lanes = access.lanes;
      for (unsigned lane = 0; lane < LANES; ++lane) {
        if (access.other_end[lane] == simulator::NO_SOURCE) lanes &= ~(1u << lane);
      }
      other = relative(lanes, [&](unsigned lane) { return access.other_end[lane]; });
      // Only the low bits are known, and those of the first one beyond LINE differ from run to run.
      for (double& value : other.pattern) {
        if (!std::isnan(value)) value = static_cast<int16_t>(static_cast<int64_t>(value));
      }
      other.base %= LINE;
      other_pattern = patterns.number_of(other.pattern);
    }
    Runs& own = runs[execution.instruction];
    used -= own.bytes;
    own.add(patterns.number_of(at.pattern), at.base, execution.cost, execution.conflicts,
            other_pattern, other.base);
    used += own.bytes;
  }
  std::vector<Json> lists, indices;
  for (const std::size_t instruction : cut) indices.push_back(instruction);
  for (const Runs& own : runs) lists.push_back(own.json());
  return Json::object(
      {{"block", warp.block}, {"warp", warp.warp}, {"cut", Json(indices)}, {"runs", Json(lists)}});
}

// Where an instruction's data lie: a tensor, or a shared variable.
std::string memory_of(const TracedInstruction& instruction, const TracedKernel& kernel,
                      const GlobalMap& memory) {
  const uint64_t address = instruction.counts.first_address;
  if (instruction.space == Space::kGlobal) return memory.name(address);
  for (const auto& variable : kernel.shared) {
    if (address - variable.begin < variable.bytes) return variable.name;
  }
  return "shared memory";
}

// The kernel with one instruction where the compiler has made several of one in the source, unrolling
// a loop: the same line, and the same kind of access to the same memory.
TracedKernel rolled_up(const TracedKernel& kernel, const GlobalMap& memory) {
  TracedKernel result = kernel;
  result.instructions.clear();
  std::vector<std::size_t> place;  // of each old instruction among the new ones
  for (const TracedInstruction& instruction : kernel.instructions) {
    const auto same = [&](const TracedInstruction& other) {
      return other.lines == instruction.lines && other.space == instruction.space &&
             other.operation == instruction.operation && other.bytes == instruction.bytes &&
             memory_of(other, kernel, memory) == memory_of(instruction, kernel, memory);
    };
    const auto found = std::find_if(result.instructions.begin(), result.instructions.end(), same);
    place.push_back(found - result.instructions.begin());
    if (found == result.instructions.end()) {
      result.instructions.push_back(instruction);
    } else {
      found->counts += instruction.counts;
    }
  }
  for (TracedWarp& warp : result.warps) {
    for (TracedExecution& execution : warp.executions) {
      execution.instruction = place[execution.instruction];
    }
    std::set<std::size_t> cut;
    for (const std::size_t instruction : warp.cut) cut.insert(place[instruction]);
    warp.cut = cut;
  }
  return result;
}

Json instruction_json(const TracedInstruction& instruction, const TracedKernel& kernel,
                      const GlobalMap& memory) {
  const simulator::InstructionCounts& counts = instruction.counts;
  const std::vector<Json> inlined(instruction.lines.begin(), instruction.lines.end() - 1);
  return Json::object({{"line", instruction.lines.back()},
                       {"inlined", Json(inlined)},
                       {"space", instruction.space == Space::kShared ? "shared" : "global"},
                       {"operation", name_of(instruction.operation)},
                       {"bytes", instruction.bytes},
                       {"memory", memory_of(instruction, kernel, memory)},
                       {"requests", counts.requests},
                       {"sectors", counts.sectors},
                       {"wavefronts", counts.wavefronts},
                       {"conflicts", counts.conflicts},
                       {"unique_bytes", counts.unique_bytes}});
}

Json extents(dim3 of) { return Json::array({of.x, of.y, of.z}); }

Json kernel_json(const TracedKernel& kernel, const GlobalMap& memory,
                 const std::vector<Json>& warps) {
  std::vector<Json> shared, instructions;
  for (const auto& variable : kernel.shared) {
    shared.push_back(Json::object(
        {{"name", variable.name}, {"begin", variable.begin}, {"bytes", variable.bytes}}));
  }
  for (const TracedInstruction& instruction : kernel.instructions) {
    instructions.push_back(instruction_json(instruction, kernel, memory));
  }
  return Json::object({{"kernel", kernel.kernel},
                       {"launches", kernel.launches},
                       {"grid", extents(kernel.blocks)},
                       {"block", extents(kernel.threads)},
                       {"shared", Json(shared)},
                       {"instructions", Json(instructions)},
                       {"warps", Json(warps)}});
}

// The texts of the files that the lines lie in; a file that isn't there is left out.
Json files_json(const std::vector<TracedKernel>& kernels) {
  std::set<std::string> names;
  for (const TracedKernel& kernel : kernels) {
    for (const TracedInstruction& instruction : kernel.instructions) {
      const std::string& line = instruction.lines.back();
      names.insert(line.substr(0, line.rfind(':')));
    }
  }
  Json files = Json::object();
  for (const std::string& name : names) {
    std::ifstream file(name.front() == '/' ? name : repository_path(name));
    if (!file) continue;
    files[name] = std::string(std::istreambuf_iterator<char>(file), {});
  }
  return files;
}

}  // namespace

Json trace_record(const std::string& stage, const std::vector<TracedKernel>& kernels,
                  const std::vector<TensorPlace>& tensors, std::size_t bytes) {
  const GlobalMap memory(tensors);
  Patterns patterns;
  std::size_t most = 0, left = 0, used = 0;
  for (const TracedKernel& kernel : kernels) {
    most = std::max(most, kernel.warps.size());
    left += kernel.warps.size();
  }
  // The first warp of each kernel, then the second; each has its share of what the others left.
  std::vector<std::vector<Json>> warps(kernels.size());
  for (std::size_t i = 0; i < most; ++i) {
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      if (i >= kernels[k].warps.size()) continue;
      const std::size_t share = (bytes - std::min(bytes, used)) / left--;
      const std::size_t patterns_before = patterns.bytes();
      const Json warp = warp_json(kernels[k], kernels[k].warps[i], memory, patterns, share);
      used += warp.dump().size() + patterns.bytes() - patterns_before;
      warps[k].push_back(warp);
    }
  }
  std::vector<Json> all;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    all.push_back(kernel_json(kernels[k], memory, warps[k]));
  }
  return Json::object({{"stage", stage},
                       {"files", files_json(kernels)},
                       {"memory", memory.json()},
                       {"patterns", patterns.json()},
                       {"kernels", Json(all)}});
}

std::vector<OptionSpec> trace_options() {
  return {{"--trace", "FILE", "write every memory instruction there, and some warps' addresses"},
          {"--block", "B", "with --trace: of this block only, counted along x first"},
          {"--warp", "W", "with --trace: of this warp of a block only"}};
}

TraceFile::TraceFile(const Options& options, std::size_t stages)
    : path_(options.text("--trace")),
      bytes_per_stage_(TRACE_BYTES / std::max<std::size_t>(1, stages)) {
  if (path_.empty() && (options.has("--block") || options.has("--warp"))) {
    throw UsageError("--block and --warp go with --trace");
  }
  if (options.has("--block")) sample_.block = options.integer("--block", 0, 0);
  if (options.has("--warp")) {
    sample_.warp = static_cast<unsigned>(options.integer("--warp", 0, 0, 31));
  }
  if (!path_.empty()) require_writable(path_);
}

void TraceFile::begin() const {
  if (path_.empty()) return;
  if constexpr (simulator::COUNTING) simulator::start_trace(sample_);
}

void TraceFile::end(const std::string& stage, const Trial& trial) {
  if (path_.empty()) return;
  std::vector<TracedKernel> kernels;
  if constexpr (simulator::COUNTING) kernels = simulator::take_trace();
  const GlobalMap memory(trial.tensors());
  for (TracedKernel& kernel : kernels) kernel = rolled_up(kernel, memory);
  const auto empty = [](const TracedKernel& kernel) { return kernel.warps.empty(); };
  if ((sample_.block || sample_.warp) && std::all_of(kernels.begin(), kernels.end(), empty)) {
    throw UsageError(stage + ": no kernel has such a block and warp");
  }
  records_.push_back(trace_record(stage, kernels, trial.tensors(), bytes_per_stage_));
}

void TraceFile::write(const Workload& job) const {
  if (path_.empty()) return;
  write_json(path_, Json::object({{"format", "convladder trace"},
                                  {"version", TRACE_VERSION},
                                  {"problem", job.name},
                                  {"shape", to_string(job.shape)},
                                  {"bias", job.bias != nullptr},
                                  {"stages", Json(records_)}}));
  std::printf("wrote %s\n", shortened(path_).c_str());
}

}  // namespace convladder
