// What the CUDA runtime knows of each kernel before it runs, for its record. What happens while it runs is
// for Nsight Compute to read: common/measure/profile.py has it do so, and learns from these records which
// kernels are the stages'.
#include <algorithm>
#include <stdexcept>

#include "common/check/backend.h"
#include "common/core/launch.h"
#include "common/core/program.h"
#include "common/measure/profile.h"

namespace convladder {
namespace {

// One kernel of a stage. If it has several launches, or is several instances of one template, these are
// the largest figures, and the lowest occupancy.
struct KernelResources {
  std::string kernel;
  int launches = 0;
  int64_t blocks = 0;
  int threads = 0;         // per block
  int registers = 0;       // per thread
  int shared_bytes = 0;    // per block
  double occupancy = 100;  // percent of the warps that a multiprocessor holds
};

std::vector<KernelResources> kernels;  // those launched since it was emptied last

double occupancy_of(const void* kernel, int threads) {
  int device = 0, most_threads = 0, warp = 0, blocks = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&most_threads, cudaDevAttrMaxThreadsPerMultiProcessor, device),
             "cudaDeviceGetAttribute");
  check_cuda(cudaDeviceGetAttribute(&warp, cudaDevAttrWarpSize, device), "cudaDeviceGetAttribute");
  check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, 0),
             "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  const double warps = static_cast<double>(blocks) * ceil_div(threads, warp);
  return 100 * warps / (most_threads / warp);
}

void note_launch(const void* kernel, dim3 grid, dim3 block) {
  const std::string name = read_symbols(kernel).name;
  auto found = std::find_if(kernels.begin(), kernels.end(),
                            [&](const KernelResources& known) { return known.kernel == name; });
  if (found == kernels.end()) {
    found = kernels.insert(found, KernelResources{});
    found->kernel = name;
  }
  const auto threads = static_cast<int>(block.x * block.y * block.z);
  cudaFuncAttributes attributes;
  check_cuda(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
  ++found->launches;
  found->blocks = std::max(found->blocks, int64_t{grid.x} * grid.y * grid.z);
  found->threads = std::max(found->threads, threads);
  found->registers = std::max(found->registers, attributes.numRegs);
  found->shared_bytes = std::max(found->shared_bytes, static_cast<int>(attributes.sharedSizeBytes));
  found->occupancy = std::min(found->occupancy, occupancy_of(kernel, threads));
}

class LaunchProfiler : public Profiler {
 public:
  std::vector<ProfiledKernel> profile(const Stage& stage, const Workload&,
                                      const Trial& trial) override {
    kernels.clear();
    launch_observer = note_launch;
    trial.enqueue();
    launch_observer = nullptr;
    trial.wait();
    if (kernels.empty()) {
      throw std::runtime_error(std::string(stage.name) +
                               ": launches no kernel, or only a library's");
    }
    std::vector<ProfiledKernel> profiled;
    for (const KernelResources& k : kernels) {
      profiled.push_back({k.kernel,
                          k.launches,
                          false,
                          {{"machine", device_name()},
                           {"launch__grid_size", k.blocks},
                           {"launch__block_size", k.threads},
                           {"launch__registers_per_thread", k.registers},
                           {"launch__shared_mem_per_block_static", k.shared_bytes},
                           {"sm__maximum_warps_per_active_cycle_pct", k.occupancy}}});
    }
    return profiled;
  }
};

}  // namespace

ProfileBackend profile_backend() {
  return {
      "Launches each stage once and writes which kernels are its own, with the registers, shared "
      "memory\nand occupancy that the CUDA runtime gives them; ./ladder profile has Nsight Compute "
      "read their\ncounters. Of",
      {},
      "cuda_runtime"};
}

std::unique_ptr<Profiler> make_profiler(const Options&, std::size_t) {
  require_device();
  return std::make_unique<LaunchProfiler>();
}

}  // namespace convladder
