#include "common/measure/trace_file.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "common/check/files.h"
#include "common/command/selection.h"
#include "common/core/program.h"
#include "common/simulator/observer.h"

namespace convladder {
namespace {

using simulator::Instruction;
using simulator::InstructionCounts;
using simulator::KernelCounts;
using simulator::Operation;
using simulator::Space;
using simulator::TracedExecution;
using simulator::TracedKernel;
using simulator::TracedWarp;
using simulator::WarpAccess;

constexpr int TRACE_VERSION = 3;
constexpr unsigned LANES = 32;
constexpr uint64_t LINE = 128;  // bytes: what addresses are counted in keeps its place in a line
constexpr int64_t NONE = INT64_MIN;  // null in the file

// Global memory in the file's addresses, which are the same from run to run: tensors lie one behind the
// other, each as far into a line of 128 bytes as in memory.
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
    Json all = Json::array();
    for (const auto& [tensor, begin] : places_) {
      all.push_back({{"name", tensor.name}, {"begin", begin}, {"bytes", tensor.bytes}});
    }
    return all;
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

// Lists of numbers, which a stage's runs refer to by their places.
class Table {
 public:
  int place_of(const std::vector<int64_t>& list) {
    const auto [found, is_new] = places_.try_emplace(list, static_cast<int>(json_.size()));
    if (is_new) {
      Json numbers = Json::array();
      for (const int64_t number : list) numbers.push_back(number == NONE ? Json() : Json(number));
      json_.push_back(numbers);
    }
    return found->second;
  }

  const Json& json() const { return json_; }

 private:
  std::map<std::vector<int64_t>, int> places_;
  Json json_ = Json::array();
};

struct Tables {
  Table patterns, services;
};

// Addresses of the lanes: that of the first one that has any, and the others' by their distance from it.
struct Side {
  int pattern;
  int64_t begin, step = 0;  // the next time they are so much further
};

template <typename Address>  // lane -> its address
Side side_of(uint32_t lanes, const Address& address, Table& patterns) {
  const auto begin = lanes == 0 ? 0 : static_cast<int64_t>(address(__builtin_ctz(lanes)));
  std::vector<int64_t> pattern;
  for (unsigned lane = 0; lane < LANES; ++lane) {
    const bool has_one = lanes >> lane & 1;
    pattern.push_back(has_one ? static_cast<int64_t>(address(lane)) - begin : NONE);
  }
  return {patterns.place_of(pattern), begin};
}

struct Run {
  int services;
  std::vector<Side> sides;
  int64_t times = 1;

  // Whether `next`, one time, continues the run, which then is so much longer.
  bool take(const Run& next) {
    if (services != next.services) return false;
    for (std::size_t i = 0; i < sides.size(); ++i) {
      const int64_t distance = next.sides[i].begin - sides[i].begin;
      if (sides[i].pattern != next.sides[i].pattern) return false;
      if (times > 1 && distance != sides[i].step * times) return false;
    }
    for (std::size_t i = 0; times == 1 && i < sides.size(); ++i) {
      sides[i].step = next.sides[i].begin - sides[i].begin;
    }
    ++times;
    return true;
  }
};

Run run_of(const TracedExecution& execution, const GlobalMap& memory, Tables& tables) {
  const WarpAccess& access = execution.access;
  std::vector<int64_t> services;
  for (const auto& [lanes, kind] : execution.services) {
    services.insert(services.end(), {lanes, kind});
  }
  Run run{tables.services.place_of(services), {}};
  const auto address = [&](unsigned lane) {
    return access.space == Space::kShared ? access.address[lane]
                                          : memory.address(access.address[lane]);
  };
  run.sides.push_back(side_of(access.lanes, address, tables.patterns));
  if (access.operation != Operation::kCopy) return run;
  uint32_t lanes = access.lanes;
  for (unsigned lane = 0; lane < LANES; ++lane) {
    if (access.other_end[lane] == simulator::NO_SOURCE) lanes &= ~(1u << lane);
  }
  // Only the low bits are known, and of the first one those beyond LINE differ from run to run.
  const unsigned first = lanes == 0 ? 0 : access.other_end[__builtin_ctz(lanes)];
  const auto other_end = [&](unsigned lane) {
    return static_cast<int64_t>(first % LINE) +
           static_cast<int16_t>(access.other_end[lane] - first);
  };
  run.sides.push_back(side_of(lanes, other_end, tables.patterns));
  return run;
}

// An instruction's number in the file, where one may stand for several.
using Numbers = std::map<Instruction, std::size_t>;

Json warp_json(const TracedWarp& warp, const Numbers& numbers, std::size_t instructions,
               const GlobalMap& memory, Tables& tables) {
  std::vector<std::vector<Run>> runs(instructions);
  std::set<std::size_t> cut;
  for (const auto& [instruction, times] : warp.times) {
    if (times > simulator::MOST_TIMES) cut.insert(numbers.at(instruction));
  }
  for (const TracedExecution& execution : warp.executions) {
    const Run run = run_of(execution, memory, tables);
    std::vector<Run>& own = runs[numbers.at(execution.instruction)];
    if (own.empty() || !own.back().take(run)) own.push_back(run);
  }
  Json lists = Json::array();
  for (const std::vector<Run>& own : runs) {
    Json list = Json::array();
    for (const Run& run : own) {
      for (const int64_t number : {run.times, int64_t{run.services}}) list.push_back(number);
      for (const auto& [pattern, begin, step] : run.sides) {
        for (const int64_t number : {int64_t{pattern}, begin, step}) list.push_back(number);
      }
    }
    lists.push_back(list);
  }
  return {{"block", warp.block}, {"warp", warp.warp}, {"cut", cut}, {"runs", lists}};
}

// Where an instruction's data lie: a tensor, or a shared variable.
std::string memory_of(Space space, uint64_t address, const TracedKernel& kernel,
                      const GlobalMap& memory) {
  if (space == Space::kGlobal) return memory.name(address);
  for (const auto& variable : kernel.shared) {
    if (address - variable.begin < variable.bytes) return variable.name;
  }
  return "shared memory";
}

// The kernel's instructions. Those that the compiler has made of one in the source, unrolling a loop, are
// one in the file, by the same line and the same kind of access to the same memory.
Json instructions_json(const TracedKernel& kernel, const KernelCounts& counted,
                       const GlobalMap& memory, Numbers& numbers) {
  std::vector<uint32_t> codes;
  for (const auto& entry : counted.instructions) codes.push_back(entry.first.code);
  const std::vector<std::vector<std::string>> lines = source_lines(codes);
  std::vector<Json> all;
  std::vector<InstructionCounts> counts;
  for (const auto& [own, count] : counted.instructions) {
    const std::vector<std::string>& line = lines[numbers.size()];
    const char* const operation = own.operation == Operation::kLoad    ? "load"
                                  : own.operation == Operation::kStore ? "store"
                                                                       : "copy";
    const Json json = {{"line", line.back()},
                       {"inlined", std::vector(line.begin(), line.end() - 1)},
                       {"space", own.space == Space::kShared ? "shared" : "global"},
                       {"operation", operation},
                       {"bytes", own.bytes},
                       {"memory", memory_of(own.space, count.address, kernel, memory)}};
    const std::size_t number = std::find(all.begin(), all.end(), json) - all.begin();
    if (number == all.size()) {
      all.push_back(json);
      counts.emplace_back();
    }
    counts[number] += count;
    numbers[own] = number;
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].update({{"requests", counts[i].requests},
                   {"cost", counts[i].cost},
                   {"conflicts", counts[i].conflicts},
                   {"unique_bytes", counts[i].bytes}});
  }
  return all;
}

Json extents(dim3 of) { return {of.x, of.y, of.z}; }

// The texts of the files that the lines lie in; a file that isn't there is left out.
Json files_json(const Json& kernels) {
  std::set<std::string> names;
  for (const Json& kernel : kernels) {
    for (const Json& instruction : kernel["instructions"]) {
      const std::string line = instruction["line"];
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

// The kernels of one stage.
Json trace_record(const std::string& stage, const std::vector<TracedKernel>& kernels,
                  const std::vector<KernelCounts>& counts,
                  const std::vector<TensorPlace>& tensors) {
  const GlobalMap memory(tensors);
  Tables tables;
  Json all = Json::array();
  for (const TracedKernel& kernel : kernels) {
    Numbers numbers;
    Json shared = Json::array(), warps = Json::array();
    for (const SharedVariable& variable : kernel.shared) {
      shared.push_back(
          {{"name", variable.name}, {"begin", variable.begin}, {"bytes", variable.bytes}});
    }
    const auto counted = std::find_if(counts.begin(), counts.end(), [&](const KernelCounts& own) {
      return own.kernel == kernel.kernel;
    });
    const Json instructions = instructions_json(kernel, *counted, memory, numbers);
    for (const TracedWarp& warp : kernel.warps) {
      warps.push_back(warp_json(warp, numbers, instructions.size(), memory, tables));
    }
    all.push_back({{"kernel", kernel.kernel},
                   {"launches", kernel.launches},
                   {"grid", extents(kernel.blocks)},
                   {"block", extents(kernel.threads)},
                   {"shared", shared},
                   {"instructions", instructions},
                   {"warps", warps}});
  }
  return {{"stage", stage},
          {"files", files_json(all)},
          {"memory", memory.json()},
          {"patterns", tables.patterns.json()},
          {"services", tables.services.json()},
          {"kernels", all}};
}

}  // namespace

std::vector<OptionSpec> trace_options() {
  return {{"--trace", "FILE", "write every memory instruction there, and some warps' addresses"},
          {"--block", "B", "with --trace: of this block only, counted along x first"},
          {"--warp", "W", "with --trace: of this warp of a block only"}};
}

TraceFile::TraceFile(const Options& options) : path_(options.text("--trace")) {
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

void TraceFile::end(const std::string& stage, const Trial& trial,
                    const std::vector<KernelCounts>& counts) {
  if (path_.empty()) return;
  std::vector<TracedKernel> kernels;
  if constexpr (simulator::COUNTING) kernels = simulator::take_trace();
  const auto empty = [](const TracedKernel& kernel) { return kernel.warps.empty(); };
  if ((sample_.block || sample_.warp) && std::all_of(kernels.begin(), kernels.end(), empty)) {
    throw UsageError(stage + ": no kernel has such a block and warp");
  }
  records_.push_back(trace_record(stage, kernels, counts, trial.tensors()));
}

void TraceFile::write(const Workload& job) const {
  if (path_.empty()) return;
  write_json(path_, {{"format", "convladder trace"},
                     {"version", TRACE_VERSION},
                     {"problem", job.name},
                     {"shape", to_string(job.shape)},
                     {"bias", job.bias != nullptr},
                     {"stages", records_}});
  std::printf("wrote %s\n", shortened(path_).c_str());
}

}  // namespace convladder
