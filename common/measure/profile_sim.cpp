// `profile` on the simulator: what every kernel asks of memory, counted, and what each stage
// changed.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <utility>

#include "common/check/trial.h"
#include "common/command/commands.h"
#include "common/command/options.h"
#include "common/command/run_job.h"
#include "common/command/selection.h"
#include "common/core/launch.h"
#include "common/io/json.h"
#include "common/io/progress.h"
#include "common/io/table.h"
#include "common/measure/floor.h"
#include "common/measure/last_profile.h"
#include "common/measure/machine_rates.h"
#include "common/measure/trace_file.h"
#include "common/simulator/counts.h"
#include "common/simulator/launch.h"
#include "common/simulator/observer.h"

namespace convladder {
namespace {

using simulator::KernelCounts;

constexpr int SECTOR_BYTES = 32;

constexpr const char* HELP =
    "usage: convladder profile [OPTION...]\n"
    "\n"
    "Counts what the stages' kernels ask of memory, under the names of Nsight Compute's counters:\n"
    "on AlexNet's first layer, or with --shape or an extent on another problem. Finds races and\n"
    "accesses out of bounds on the way. docs/counting.md says how. The results are held against\n"
    "the reference first; a stage whose results are wrong has no counts, and the status is 1.\n"
    "With the rates of a GPU (--machine) the counts say what a stage takes there at the least.\n"
    "\n";

std::vector<OptionSpec> option_specs() {
  std::vector<OptionSpec> specs = job_options();
  for (const OptionSpec& spec : trace_options()) specs.push_back(spec);
  specs.push_back({"--machine", "FILE", "a GPU's rates (default common/machines/h200.json)"});
  for (const OptionSpec& spec : stage_options()) specs.push_back(spec);
  for (const OptionSpec& spec : problem_options()) specs.push_back(spec);
  specs.push_back({"--shapes", "FILE.csv", "where --shape is found, instead"});
  specs.push_back({"--help", "", "this text"});
  return specs;
}

struct StageProfile {
  std::string stage;
  std::vector<KernelCounts> kernels;
  std::vector<Floor> floors;                       // of each kernel
  std::optional<std::vector<Floor>> whole_floors;  // likewise, of the whole problem
};

// The device's multiprocessors are fewer while this lives.
struct FewerMultiprocessors {
  explicit FewerMultiprocessors(int count) { simulator::set_multiprocessors(count); }
  ~FewerMultiprocessors() { simulator::set_multiprocessors(all); }
  int all = multiprocessors();
};

// Of `stage` on the whole problem, from its kernels' counts on the job's. A plan may depend on how many
// blocks there are for each multiprocessor: where the whole problem's is another, the job is counted
// again, for a device that is as much smaller.
std::optional<std::vector<Floor>> whole_floors(const Stage& stage, const RunJob& job,
                                               const std::vector<KernelCounts>& kernels,
                                               const MachineRates& machine) {
  if (!job.whole) return std::nullopt;
  const bool bias = job.bias != nullptr;
  const Enlarged whole = enlarge(stage, job.shape, *job.whole, bias, job.relu);
  if (is_alike(stage, job.shape, bias, job.relu, whole)) return floors_of(kernels, whole, machine);
  const FewerMultiprocessors device(
      std::max(1, static_cast<int>(multiprocessors() / whole.outputs)));
  if (!is_alike(stage, job.shape, bias, job.relu, whole)) return std::nullopt;
  const Trial trial(stage, job);
  trial.enqueue();
  trial.wait();
  const std::vector<KernelCounts> again = simulator::take_kernel_counts();
  const std::optional<std::vector<Floor>> known = floors_of(again, whole, machine);
  if (!known) return std::nullopt;
  std::vector<Floor> floors(kernels.size());  // nothing of what the whole problem doesn't launch
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    for (std::size_t j = 0; j < again.size(); ++j) {
      if (again[j].kernel == kernels[i].kernel) floors[i] = (*known)[j];
    }
  }
  return floors;
}

// `result` becomes what the reference says of the stage's output.
StageProfile profile_stage(const Stage& stage, const RunJob& job, const Reference& reference,
                           const MachineRates& machine, Comparison& result, TraceFile& trace) {
  const Trial trial(stage, job);
  simulator::take_kernel_counts();  // what came before is not ours
  trace.begin();
  trial.enqueue();
  trial.wait();
  StageProfile profile{stage.name, simulator::take_kernel_counts(), {}, {}};
  trace.end(stage.name, trial);
  profile.floors = floors_of(profile.kernels, machine);
  profile.whole_floors = whole_floors(stage, job, profile.kernels, machine);
  result = judge(trial, trial.output(), job, reference);
  return profile;
}

Traffic traffic_of(const StageProfile& profile) {
  Traffic t;
  for (const KernelCounts& k : profile.kernels) {
    t.dram_bytes += SECTOR_BYTES * static_cast<double>(k.sectors_read + k.sectors_written);
    for (const auto* global : {&k.load, &k.store, &k.copy_through_l1, &k.copy_past_l1}) {
      t.requests += static_cast<double>(global->requests);
      t.sectors += static_cast<double>(global->sectors);
    }
    for (const auto* shared : {&k.shared_load, &k.shared_store, &k.shared_copy}) {
      t.wavefronts += static_cast<double>(shared->wavefronts);
    }
  }
  return t;
}

bool has_library(const StageProfile& profile) {
  return std::any_of(profile.kernels.begin(), profile.kernels.end(),
                     [](const KernelCounts& kernel) { return kernel.library; });
}

// "6.91 M"
std::string count_of(double count) {
  if (count >= 1e9) return fixed(count / 1e9, 2) + " G";
  if (count >= 1e6) return fixed(count / 1e6, 2) + " M";
  if (count >= 1e4) return fixed(count / 1e3, 1) + " k";
  return fixed(count, 0) + "  ";
}

// Of one kernel, in the order of the tables' columns. Nothing where it asks nothing of that memory.
using Counts = std::vector<int64_t>;

Counts global_counts(const KernelCounts& k) {
  return {k.load.requests,
          k.load.sectors,
          k.copy_through_l1.requests + k.copy_past_l1.requests,
          k.copy_through_l1.sectors + k.copy_past_l1.sectors,
          k.store.requests,
          k.store.sectors};
}

Counts shared_counts(const KernelCounts& k) {
  Counts counts;
  int64_t requests = 0;
  for (const auto* shared : {&k.shared_load, &k.shared_store, &k.shared_copy}) {
    for (const int64_t count : {shared->requests, shared->wavefronts, shared->conflicts}) {
      counts.push_back(count);
    }
    requests += shared->requests;
  }
  return requests > 0 ? counts : Counts();
}

// One row per kernel that has any of these counts; nothing where none has.
void print_kernels(const std::vector<StageProfile>& profiles, const char* about,
                   const std::vector<const char*>& headers,
                   Counts (*counts_of)(const KernelCounts&)) {
  Table table;
  table.add_column("stage", Align::kLeft);
  table.add_column("kernel", Align::kLeft);
  for (const char* header : headers) table.add_column(header, Align::kRight);
  bool empty = true;
  for (const StageProfile& profile : profiles) {
    for (const KernelCounts& kernel : profile.kernels) {
      const Counts counts = counts_of(kernel);
      if (counts.empty()) continue;
      std::vector<std::string> row = {profile.stage, kernel.kernel};
      for (const int64_t count : counts) row.push_back(kernel.library ? "-  " : count_of(count));
      table.add_row(row);
      empty = false;
    }
  }
  if (!empty) std::printf("%s\n\n%s\n", about, table.text().c_str());
}

void print_global(const std::vector<StageProfile>& profiles) {
  print_kernels(
      profiles,
      "Global memory: instructions, warp by warp, and the 32-byte sectors that they touch.\n"
      "Copies: asynchronous, from global to shared memory. A library's kernel isn't counted (-).",
      {"loads", "sectors", "copies", "sectors", "stores", "sectors"}, global_counts);
}

void print_shared(const std::vector<StageProfile>& profiles) {
  print_kernels(
      profiles,
      "Shared memory: instructions, warp by warp, the wavefronts that they take, and those of\n"
      "them due to bank conflicts. Copies: the same as above, where they arrive.",
      {"loads", "wavefronts", "conflicts", "stores", "wavefronts", "conflicts", "copies",
       "wavefronts", "conflicts"},
      shared_counts);
}

// "0.62": what a figure is of another; "-" where there is no other.
std::string quotient(double now, std::optional<double> other) {
  return other && *other > 0 ? significant(now / *other, 3) : "-";
}

void print_stages(const std::vector<StageProfile>& profiles, const RunJob& job) {
  constexpr std::pair<const char*, double Traffic::*> FIGURES[] = {
      {"global requests", &Traffic::requests},
      {"L1 sectors", &Traffic::sectors},
      {"shared wavefronts", &Traffic::wavefronts},
      {"least DRAM bytes", &Traffic::dram_bytes}};
  std::vector<std::optional<Traffic>> last;  // of each stage, the last time
  for (const StageProfile& profile : profiles) {
    last.push_back(last_traffic(profile.stage, job));
  }
  const bool any_last = std::any_of(last.begin(), last.end(), [](const auto& t) { return !!t; });

  Table table;
  table.add_column("stage", Align::kLeft);
  for (const auto& [name, figure] : FIGURES) {
    table.add_column(name, Align::kRight);
    table.add_column("/ before", Align::kRight);
    if (any_last) table.add_column("/ last time", Align::kRight);
  }
  table.add_column("FLOP per such byte", Align::kRight);
  bool any_library = false;
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    const Traffic now = traffic_of(profiles[i]);
    const bool library = has_library(profiles[i]);
    std::vector<std::string> row = {profiles[i].stage + (library ? " *" : "")};
    for (const auto& [name, figure] : FIGURES) {
      // Next to a library, whose kernels are not counted, a quotient would compare unlike things.
      const bool comparable =
          i > 0 && (figure == &Traffic::dram_bytes || (!library && !has_library(profiles[i - 1])));
      row.push_back(count_of(now.*figure));
      row.push_back(quotient(now.*figure, comparable
                                              ? std::optional(traffic_of(profiles[i - 1]).*figure)
                                              : std::nullopt));
      if (!any_last) continue;
      row.push_back(
          quotient(now.*figure, last[i] ? std::optional((*last[i]).*figure) : std::nullopt));
    }
    row.push_back(fixed(job.shape.flops() / now.dram_bytes, 1));
    table.add_row(row);
    any_library |= library;
  }
  std::printf("%s\n", table.text().c_str());
  std::printf(
      "Counted, not modelled. Least DRAM bytes: the different sectors that each kernel\n"
      "touches, as if every cache were large enough for one kernel.\n");
  if (any_library) {
    std::printf(
        "* without what the library's own kernel asks for, which is not counted; of its\n"
        "  traffic the table has the least possible: each matrix once.\n");
  }
  std::printf("\n");
}

// "H200"
std::string short_name(const MachineRates& machine) {
  const std::string vendor = "NVIDIA ";
  return machine.gpu.rfind(vendor, 0) == 0 ? machine.gpu.substr(vendor.size()) : machine.gpu;
}

// At least so many milliseconds; what limits it; and the most of the FMA ceiling that this leaves.
std::vector<std::string> floor_cells(const std::vector<Floor>& floors, const ConvShape& shape,
                                     const MachineRates& machine) {
  const Floor floor = sum_of(floors);
  if (floor.seconds == 0) return {"-", "-", "-"};
  const double rate = shape.flops() / floor.seconds;
  return {significant(floor.seconds * 1e3, 3), name_of(floor.limit),
          fixed(100 * std::min(1.0, rate / machine.fma_flops), 1)};
}

// "an H200"
std::string with_article(const std::string& name) {
  const bool vowel = std::string("AEFHILMNORSX8").find(name[0]) != std::string::npos;
  return (vowel ? "an " : "a ") + name;
}

void print_floors(const std::vector<StageProfile>& profiles, const RunJob& job,
                  const MachineRates& machine) {
  const std::string heading = "at least on " + with_article(short_name(machine)) + " [ms]";
  Table table;
  table.add_column("stage", Align::kLeft);
  for (const bool whole : {false, true}) {
    if (whole && !job.whole) continue;
    table.add_column(whole ? "the whole problem" : heading, Align::kRight);
    table.add_column("limited by", Align::kLeft);
    table.add_column("FMA ceiling, at most [%]", Align::kRight);
  }
  for (const StageProfile& profile : profiles) {
    std::vector<std::string> row = {profile.stage};
    const auto add = [&](const std::vector<Floor>& floors, const ConvShape& shape) {
      for (const std::string& cell : floor_cells(floors, shape, machine)) row.push_back(cell);
    };
    add(profile.floors, job.shape);
    if (job.whole) add(profile.whole_floors.value_or(std::vector<Floor>()), *job.whole);
    table.add_row(row);
  }
  std::printf("%s\n", table.text().c_str());
  std::printf(
      "At least: what the counts take at the rates of the %s, were that all it did; no time can\n"
      "be below. Whatever it does besides, other instructions and waiting, comes on top.\n",
      short_name(machine).c_str());
  if (job.whole) {
    std::printf("The whole problem: %s, whose blocks do what the counted ones do.\n",
                to_string(*job.whole).c_str());
  }
  std::printf("\n");
}

void add_floor(std::vector<std::pair<std::string, Json>>& members, const std::string& prefix,
               const Floor& floor) {
  members.push_back({prefix + "floor_ms", floor.seconds * 1e3});
  members.push_back({prefix + "floor_limit", name_of(floor.limit)});
}

// One per kernel.
std::vector<Json> records_of(const RunJob& job, const StageProfile& profile,
                             const MachineRates& machine) {
  std::vector<Json> records;
  for (std::size_t i = 0; i < profile.kernels.size(); ++i) {
    const KernelCounts& kernel = profile.kernels[i];
    std::vector<std::pair<std::string, Json>> members = {
        {"version", PROFILE_VERSION},    {"stage", profile.stage},      {"problem", job.name},
        {"shape", to_string(job.shape)}, {"bias", job.bias != nullptr}, {"kernel", kernel.kernel},
        {"launches", kernel.launches},   {"source", "simulator"},       {"library", kernel.library},
        {"flop", job.shape.flops()},     {"machine", machine.gpu}};
    add_floor(members, "", profile.floors[i]);
    if (profile.whole_floors) {
      members.push_back({"whole_shape", to_string(*job.whole)});
      add_floor(members, "whole_", (*profile.whole_floors)[i]);
    }
    for (const auto& [name, value] : metrics(kernel)) members.push_back({name, value});
    records.push_back(Json::object(members));
  }
  return records;
}

// The stages whose results are right; a line says what became of each.
std::vector<StageProfile> profile_stages(const std::vector<Stage>& stages, const RunJob& job,
                                         const MachineRates& machine, TraceFile& trace) {
  Progress progress(static_cast<int64_t>(stages.size()));
  progress.show(0, "reference");
  const Reference reference = affordable_reference(job, 1);
  std::vector<StageProfile> profiles;
  int64_t begun = 0;
  for (const Stage& stage : stages) {
    progress.show(++begun, stage.name);
    Comparison result;
    StageProfile profile = profile_stage(stage, job, reference, machine, result, trace);
    progress.clear();
    std::printf("%s: %s\n", stage.name, verdict(result, job.shape).c_str());
    flush_output();
    if (result.pass) profiles.push_back(std::move(profile));
  }
  std::printf("\n");
  return profiles;
}

}  // namespace

int profile_command(const std::vector<std::string>& arguments) {
  const Options options(option_specs(), arguments);
  if (options.has("--help")) {
    std::printf("%s%s", HELP, describe(option_specs()).c_str());
    return 0;
  }
  const std::vector<Stage> stages = capable_stages(options);
  if (!simulator::COUNTING) {
    throw std::runtime_error("this build doesn't count: cmake --preset sim-count makes one");
  }
  const std::string records = json_path(options, "profile.json");
  const MachineRates machine =
      read_machine(options.text("--machine", repository_path("common/machines/h200.json")));
  TraceFile trace(options, stages.size());
  const RunJob job = make_job(options);
  std::printf("%s: %s%s; %s GFLOP\n\n", job.name.c_str(), to_string(job.shape).c_str(),
              job.bias ? ", bias" : "", significant(job.shape.flops() / 1e9, 3).c_str());
  const std::vector<StageProfile> profiles = profile_stages(stages, job, machine, trace);
  if (profiles.empty()) return 1;
  print_global(profiles);
  print_shared(profiles);
  print_stages(profiles, job);
  print_floors(profiles, job, machine);
  std::vector<Json> all;
  for (const StageProfile& profile : profiles) {
    const std::vector<Json> own = records_of(job, profile, machine);
    keep_traffic(profile.stage, job, traffic_of(profile));
    all.insert(all.end(), own.begin(), own.end());
  }
  write_json(records, Json::array(all));
  trace.write(job);
  std::printf("wrote %s\n", shortened(records).c_str());
  return profiles.size() == stages.size() ? 0 : 1;
}

}  // namespace convladder
