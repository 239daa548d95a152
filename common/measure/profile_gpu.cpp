// `profile` on a GPU: the kernels that each stage launches, and what the CUDA runtime knows of them
// before they run. What happens while they run is for Nsight Compute to read:
// common/measure/profile_gpu.py has it do so, and learns from here which kernels are the stages'.
#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <utility>

#include "common/check/backend.h"
#include "common/check/trial.h"
#include "common/command/commands.h"
#include "common/command/options.h"
#include "common/command/run_job.h"
#include "common/command/selection.h"
#include "common/core/launch.h"
#include "common/io/json.h"
#include "common/io/progress.h"
#include "common/io/symbols.h"
#include "common/io/table.h"
#include "common/measure/last_profile.h"

namespace convladder {
namespace {

constexpr const char* HELP =
    "usage: convladder profile [OPTION...]\n"
    "\n"
    "Launches each stage once and lists its kernels with the registers, shared memory and blocks\n"
    "per multiprocessor that the CUDA runtime gives them: on AlexNet's first layer, or with\n"
    "--shape or an extent on another problem. The kernels inside a library are not listed.\n"
    "The results are held against the reference first; a stage whose results are wrong is not\n"
    "listed, and the status is 1.\n"
    "Counters of memory traffic: ./ladder profile, which runs Nsight Compute (docs/profiling.md).\n"
    "\n";

std::vector<OptionSpec> option_specs() {
  std::vector<OptionSpec> specs = job_options();
  for (const OptionSpec& spec : stage_options()) specs.push_back(spec);
  for (const OptionSpec& spec : problem_options()) specs.push_back(spec);
  specs.push_back({"--help", "", "this text"});
  return specs;
}

struct KernelLaunch {
  const void* kernel;
  int64_t blocks;
  int threads;  // per block
};

std::vector<KernelLaunch> launches;  // since it was emptied last

void note_launch(const void* kernel, dim3 grid, dim3 block) {
  launches.push_back(
      {kernel, int64_t{grid.x} * grid.y * grid.z, static_cast<int>(block.x * block.y * block.z)});
}

// One kernel of a stage. Of several launches, or instances of one template, the largest figures,
// and the lowest occupancy.
struct KernelResources {
  std::string kernel;
  int launches = 0;
  int64_t blocks = 0;
  int threads = 0;         // per block
  int registers = 0;       // per thread
  int shared_bytes = 0;    // per block
  double occupancy = 100;  // percent of the warps that a multiprocessor holds
};

double occupancy_of(const KernelLaunch& launch) {
  int device = 0, most_threads = 0, warp = 0, blocks = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&most_threads, cudaDevAttrMaxThreadsPerMultiProcessor, device),
             "cudaDeviceGetAttribute");
  check_cuda(cudaDeviceGetAttribute(&warp, cudaDevAttrWarpSize, device), "cudaDeviceGetAttribute");
  check_cuda(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, launch.kernel, launch.threads, 0),
      "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  const double warps = static_cast<double>(blocks) * ceil_div(launch.threads, warp);
  return 100 * warps / (most_threads / warp);
}

void add_launch(const KernelLaunch& launch, std::vector<KernelResources>& kernels) {
  const std::string name = read_symbols(launch.kernel).name;
  auto found = std::find_if(kernels.begin(), kernels.end(),
                            [&](const KernelResources& known) { return known.kernel == name; });
  if (found == kernels.end()) {
    found = kernels.insert(found, KernelResources{});
    found->kernel = name;
  }
  cudaFuncAttributes attributes;
  check_cuda(cudaFuncGetAttributes(&attributes, launch.kernel), "cudaFuncGetAttributes");
  ++found->launches;
  found->blocks = std::max(found->blocks, launch.blocks);
  found->threads = std::max(found->threads, launch.threads);
  found->registers = std::max(found->registers, attributes.numRegs);
  found->shared_bytes = std::max(found->shared_bytes, static_cast<int>(attributes.sharedSizeBytes));
  found->occupancy = std::min(found->occupancy, occupancy_of(launch));
}

// In the order of their first launch. `result` becomes what the reference says of the output.
std::vector<KernelResources> kernels_of(const Stage& stage, const RunJob& job,
                                        const Reference& reference, Comparison& result) {
  const Trial trial(stage, job);
  launches.clear();
  launch_observer = note_launch;
  trial.enqueue();
  launch_observer = nullptr;
  trial.wait();
  result = judge(trial, trial.output(), job, reference);
  if (launches.empty()) {
    throw std::runtime_error(std::string(stage.name) + ": launches no kernel of its own");
  }
  std::vector<KernelResources> kernels;
  for (const KernelLaunch& launch : launches) add_launch(launch, kernels);
  return kernels;
}

struct StageKernels {
  std::string stage;
  std::vector<KernelResources> kernels;
};

void print_kernels(const std::vector<StageKernels>& profiles) {
  Table table;
  table.add_column("stage", Align::kLeft);
  table.add_column("kernel", Align::kLeft);
  for (const char* header :
       {"launches", "blocks", "threads", "registers", "shared [bytes]", "occupancy at most [%]"}) {
    table.add_column(header, Align::kRight);
  }
  for (const StageKernels& profile : profiles) {
    for (const KernelResources& k : profile.kernels) {
      table.add_row({profile.stage, k.kernel, std::to_string(k.launches), std::to_string(k.blocks),
                     std::to_string(k.threads), std::to_string(k.registers),
                     std::to_string(k.shared_bytes), fixed(k.occupancy, 1)});
    }
  }
  std::printf("%s\nFrom the CUDA runtime; nothing here was measured.\n", table.text().c_str());
}

// The records of the simulator's and Nsight Compute's profile, with the latter's names.
Json to_json(const RunJob& job, const std::vector<StageKernels>& profiles) {
  std::vector<Json> records;
  for (const StageKernels& profile : profiles) {
    for (const KernelResources& k : profile.kernels) {
      records.push_back(Json::object({{"version", PROFILE_VERSION},
                                      {"stage", profile.stage},
                                      {"problem", job.name},
                                      {"shape", to_string(job.shape)},
                                      {"bias", job.bias != nullptr},
                                      {"kernel", k.kernel},
                                      {"launches", k.launches},
                                      {"source", "cuda_runtime"},
                                      {"library", false},
                                      {"flop", job.shape.flops()},
                                      {"machine", device_name()},
                                      {"launch__grid_size", k.blocks},
                                      {"launch__block_size", k.threads},
                                      {"launch__registers_per_thread", k.registers},
                                      {"launch__shared_mem_per_block_static", k.shared_bytes},
                                      {"sm__maximum_warps_per_active_cycle_pct", k.occupancy}}));
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
  const std::vector<Stage> stages = capable_stages(options);
  const std::string records = json_path(options);
  require_device();
  const RunJob job = make_job(options);
  std::printf("%s: %s%s; backend: %s (%s)\n\n", job.name.c_str(), to_string(job.shape).c_str(),
              job.bias ? ", bias" : "", backend_name(), device_name().c_str());
  flush_output();
  const Reference reference = affordable_reference(job, 1);
  std::vector<StageKernels> profiles;
  for (const Stage& stage : stages) {
    Comparison result;
    StageKernels profile{stage.name, kernels_of(stage, job, reference, result)};
    std::printf("%s: %s\n", stage.name, verdict(result, job.shape).c_str());
    flush_output();
    if (result.pass) profiles.push_back(std::move(profile));
  }
  if (profiles.empty()) return 1;
  std::printf("\n");
  print_kernels(profiles);
  if (!records.empty()) write_json(records, to_json(job, profiles));
  return profiles.size() == stages.size() ? 0 : 1;
}

}  // namespace convladder
