// `profile` on the simulator: what every kernel asks of memory, counted, and what each stage
// changed.
#include <cstdio>
#include <optional>
#include <stdexcept>

#include "common/harness/commands.h"
#include "common/harness/options.h"
#include "common/harness/progress.h"
#include "common/harness/run_job.h"
#include "common/harness/selection.h"
#include "common/harness/table.h"
#include "common/harness/trial.h"
#include "common/simulator/counts.h"

namespace convladder {
namespace {

using simulator::KernelCounts;

constexpr int SECTOR_BYTES = 32;

constexpr const char* HELP =
    "usage: convladder profile [OPTION...]\n"
    "\n"
    "Counts what the stages' kernels ask of memory, under the names of Nsight Compute's counters:\n"
    "on AlexNet's first layer, or with --shape or an extent on another problem. Finds races and\n"
    "accesses out of bounds on the way. docs/counting.md says how.\n"
    "\n";

std::vector<OptionSpec> option_specs() {
  std::vector<OptionSpec> specs = job_options();
  for (const OptionSpec& spec : stage_options()) specs.push_back(spec);
  for (const OptionSpec& spec : problem_options()) specs.push_back(spec);
  specs.push_back({"--help", "", "this text"});
  return specs;
}

struct StageProfile {
  std::string stage;
  std::vector<KernelCounts> kernels;
};

StageProfile profile_stage(const Stage& stage, const RunJob& job) {
  const HostProblem problem = job.problem();
  const Trial trial(stage, problem);
  simulator::take_kernel_counts();  // what came before is not ours
  trial.enqueue();
  trial.wait();
  return {stage.name, simulator::take_kernel_counts()};
}

// What the stage-to-stage table compares, of one stage. A library's kernels are in dram_bytes only.
struct Traffic {
  double requests = 0;    // to global memory, per warp
  double sectors = 0;     // asked of L1
  double wavefronts = 0;  // of shared memory
  double dram_bytes = 0;  // at the least
  bool has_library = false;
};

Traffic traffic_of(const StageProfile& profile) {
  Traffic traffic;
  for (const KernelCounts& kernel : profile.kernels) {
    for (const auto* global :
         {&kernel.load, &kernel.store, &kernel.copy_through_l1, &kernel.copy_past_l1}) {
      traffic.requests += global->requests;
      traffic.sectors += global->sectors;
    }
    for (const auto* shared : {&kernel.shared_load, &kernel.shared_store, &kernel.shared_copy}) {
      traffic.wavefronts += shared->wavefronts;
    }
    traffic.dram_bytes += double{SECTOR_BYTES} * (kernel.sectors_read + kernel.sectors_written);
    traffic.has_library |= kernel.library;
  }
  return traffic;
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

// A figure, and what the stage before had of it times over.
void add_figure(std::vector<std::string>& row, double now, std::optional<double> before) {
  row.push_back(count_of(now));
  row.push_back(before && *before > 0 ? significant(now / *before, 3) : "-");
}

void print_stages(const std::vector<StageProfile>& profiles, const ConvShape& shape) {
  Table table;
  table.add_column("stage", Align::kLeft);
  for (const char* header :
       {"global requests", "/ before", "L1 sectors", "/ before", "shared wavefronts", "/ before",
        "least DRAM bytes", "/ before", "FLOP per such byte"}) {
    table.add_column(header, Align::kRight);
  }
  std::optional<Traffic> before;
  bool has_library = false;
  for (const StageProfile& profile : profiles) {
    const Traffic now = traffic_of(profile);
    // Next to a library, whose kernels are not counted, a quotient would compare unlike things.
    const bool comparable = before && !before->has_library && !now.has_library;
    const auto past = [&](double Traffic::*figure) {
      return comparable ? std::optional<double>(*before.*figure) : std::nullopt;
    };
    std::vector<std::string> row = {profile.stage + (now.has_library ? " *" : "")};
    add_figure(row, now.requests, past(&Traffic::requests));
    add_figure(row, now.sectors, past(&Traffic::sectors));
    add_figure(row, now.wavefronts, past(&Traffic::wavefronts));
    add_figure(row, now.dram_bytes,
               before ? std::optional<double>(before->dram_bytes) : std::nullopt);
    row.push_back(fixed(shape.flops() / now.dram_bytes, 1));
    table.add_row(row);
    has_library |= now.has_library;
    before = now;
  }
  std::printf("%s\n", table.text().c_str());
  std::printf(
      "Counted, not modelled. Least DRAM bytes: the different sectors that each kernel\n"
      "touches, as if every cache were large enough for one kernel.\n");
  if (has_library) {
    std::printf(
        "* without what the library's own kernel asks for, which is not counted; of its\n"
        "  traffic the table has the least possible: each matrix once.\n");
  }
}

Json to_json(const RunJob& job, const std::vector<StageProfile>& profiles) {
  std::vector<Json> records;
  for (const StageProfile& profile : profiles) {
    for (const KernelCounts& kernel : profile.kernels) {
      std::vector<std::pair<std::string, Json>> members = {
          {"version", PROFILE_VERSION},    {"stage", profile.stage}, {"problem", job.name},
          {"shape", to_string(job.shape)}, {"bias", job.bias},       {"kernel", kernel.kernel},
          {"launches", kernel.launches},   {"source", "simulator"},  {"library", kernel.library},
          {"flop", job.shape.flops()}};
      for (const auto& [name, value] : metrics(kernel)) members.push_back({name, value});
      records.push_back(Json::object(members));
    }
  }
  return Json::array(records);
}

}  // namespace

int profile_command(const std::vector<std::string>& arguments) {
  const Options options(option_specs(), arguments);
  if (options.has("--help")) {
    std::printf("%s%s", HELP, describe(option_specs()).c_str());
    return 0;
  }
  const std::vector<Stage> stages = selected_stages(options);
  if (!simulator::counts_kernels()) {
    throw std::runtime_error("this build doesn't count: cmake --preset sim-count makes one");
  }
  const std::string records = json_path(options, "profile.json");
  const RunJob job = make_job(options);
  Progress progress(static_cast<int64_t>(stages.size()));
  std::vector<StageProfile> profiles;
  for (const Stage& stage : stages) {
    if (job.relu && !stage.fuses_relu) continue;
    progress.show(static_cast<int64_t>(profiles.size()) + 1, stage.name);
    profiles.push_back(profile_stage(stage, job));
  }
  progress.clear();
  std::printf("%s: %s%s; %s GFLOP\n\n", job.name.c_str(), to_string(job.shape).c_str(),
              job.bias ? ", bias" : "", significant(job.shape.flops() / 1e9, 3).c_str());
  print_global(profiles);
  print_shared(profiles);
  print_stages(profiles, job.shape);
  write_json(records, to_json(job, profiles));
  std::printf("wrote %s\n", shortened(records).c_str());
  return 0;
}

}  // namespace convladder
