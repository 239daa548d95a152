// Which kernels are the stages' own, for their records. What they ask of memory is for Nsight Compute to read:
// common/measure/profile.py has it do so.
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "common/check/backend.h"
#include "common/measure/profile.h"

namespace convladder {
namespace {

class LaunchProfiler : public Profiler {
 public:
  std::vector<Json> profile(const Stage& stage, const Workload&, const Trial& trial) override {
    std::vector<Json> kernels;
    for (const auto& [kernel, launches] : own_launches(trial)) {
      kernels.push_back({{"kernel", kernel},
                         {"launches", launches},
                         {"library", false},
                         {"machine", device_name()}});
    }
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
      "Launches each stage once and writes which kernels are its own; ./ladder profile has Nsight "
      "Compute read\ntheir counters. Of",
      {},
      "cuda_runtime"};
}

std::unique_ptr<Profiler> make_profiler(const Options&) {
  require_device();
  return std::make_unique<LaunchProfiler>();
}

}  // namespace convladder
