// What the CUDA runtime knows of each kernel before it runs, for its record. What happens while it runs is
// for Nsight Compute to read: common/measure/profile.py has it do so, and learns from these records which
// kernels are the stages'.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "common/check/backend.h"
#include "common/core/launch.h"
#include "common/core/program.h"
#include "common/measure/profile.h"

namespace convladder {
namespace {

// Members of the records of those launched since it was emptied last. If a kernel has several launches, or
// is several instances of one template, these are the largest figures, and the lowest occupancy.
std::vector<Json> kernels;

// Percent of the warps that a multiprocessor holds.
constexpr const char* OCCUPANCY = "sm__maximum_warps_per_active_cycle_pct";

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
                            [&](const Json& known) { return known["kernel"] == name; });
  if (found == kernels.end()) {
    const Json members = {{"kernel", name},
                          {"launches", 0},
                          {"library", false},
                          {"machine", device_name()},
                          {OCCUPANCY, 100.0}};
    found = kernels.insert(found, members);
  }
  Json& members = *found;
  const auto note_largest = [&](const char* figure, int64_t value) {
    members[figure] = std::max(members.value(figure, int64_t{0}), value);
  };
  const auto threads = static_cast<int>(block.x * block.y * block.z);
  cudaFuncAttributes attributes;
  check_cuda(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
  members["launches"] = members["launches"].get<int>() + 1;
  note_largest("launch__grid_size", int64_t{grid.x} * grid.y * grid.z);
  note_largest("launch__block_size", threads);
  note_largest("launch__registers_per_thread", attributes.numRegs);
  note_largest("launch__shared_mem_per_block_static", attributes.sharedSizeBytes);
  members[OCCUPANCY] = std::min(members[OCCUPANCY].get<double>(), occupancy_of(kernel, threads));
}

class LaunchProfiler : public Profiler {
 public:
  std::vector<Json> profile(const Stage& stage, const Workload&, const Trial& trial) override {
    kernels.clear();
    launch_observer = note_launch;
    trial.enqueue();
    launch_observer = nullptr;
    trial.wait();
    if (kernels.empty()) {
      throw std::runtime_error(std::string(stage.name) +
                               ": launches no kernel, or only a library's");
    }
    return kernels;
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
