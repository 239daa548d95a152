#include "common/measure/floor.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace convladder {
namespace {

using simulator::KernelCounts;
using simulator::LaunchWork;

constexpr double SECTOR_BYTES = 32;
constexpr double TENSOR_FLOP = 2 * 16 * 8 * 8;  // of one instruction

// What the busiest of the multiprocessors has to do at the least, whichever blocks it was given.
// `amounts` may be of a sample of the launch's `blocks`.
double busiest(const std::map<int64_t, int64_t>& amounts, int64_t blocks, double multiprocessors) {
  double counted = 0, total = 0;
  for (const auto& [amount, count] : amounts) {
    counted += static_cast<double>(count);
    total += static_cast<double>(amount) * static_cast<double>(count);
  }
  if (counted == 0) return 0;
  const double all = static_cast<double>(blocks), ratio = all / counted;
  double share = std::ceil(all / multiprocessors), least = 0;  // the share's smallest blocks
  for (const auto& [amount, count] : amounts) {
    const double taken = std::min(share, static_cast<double>(count) * ratio);
    least += taken * static_cast<double>(amount);
    share -= taken;
  }
  return std::max(total * ratio / multiprocessors, least);
}

double dram_bytes(const LaunchWork& work, const MachineRates& machine, bool cold) {
  const double read = SECTOR_BYTES * static_cast<double>(work.sectors_read);
  const double written = SECTOR_BYTES * static_cast<double>(work.sectors_written);
  return std::max(0.0, read - (cold ? 0 : machine.l2_bytes)) +
         std::max(0.0, written - machine.l2_bytes);
}

// All launches of a kernel as one.
LaunchWork merged(const std::vector<LaunchWork>& launches) {
  LaunchWork all;
  for (const LaunchWork& launch : launches) {
    all.blocks += launch.blocks;
    for (const auto amounts :
         {&LaunchWork::products, &LaunchWork::wavefronts, &LaunchWork::tensor_instructions}) {
      for (const auto& [amount, count] : launch.*amounts) (all.*amounts)[amount] += count;
    }
    all.sectors_read += launch.sectors_read;
    all.sectors_written += launch.sectors_written;
  }
  return all;
}

// `counted` as a launch of more blocks.
LaunchWork enlarged(LaunchWork counted, const LaunchWork& launch, const Enlarged& problem) {
  const double ratio = static_cast<double>(launch.blocks) / static_cast<double>(counted.blocks);
  const auto read = static_cast<double>(counted.sectors_read);
  const auto written = static_cast<double>(counted.sectors_written);
  const double own = std::max(0.0, read - problem.shared_sectors);
  counted.sectors_read = static_cast<int64_t>(std::min(ratio, problem.inputs) * own +
                                              std::min(ratio, 1.0) * (read - own));
  counted.sectors_written = static_cast<int64_t>(std::min(ratio, problem.outputs) * written);
  counted.blocks = launch.blocks;
  return counted;
}

bool is_of(const KernelCounts& kernel, const void* code) {
  return !kernel.work.empty() && std::all_of(kernel.work.begin(), kernel.work.end(),
                                             [&](const LaunchWork& w) { return w.code == code; });
}

}  // namespace

const char* name_of(Limit limit) {
  switch (limit) {
    case Limit::kProducts:
      return "multiplications";
    case Limit::kTensor:
      return "tensor cores";
    case Limit::kPipe:
      return "L1's data pipe";
    case Limit::kDram:
      return "DRAM";
    case Limit::kLaunch:
      return "launch";
  }
  return "";
}

Floor floor_of(const LaunchWork& work, const MachineRates& machine, bool cold) {
  const double cycle = 1 / machine.clock_hz, all = machine.multiprocessors;
  const double products =
      std::max(busiest(work.products, work.blocks, all), work.library_products / all);
  const double tensor_flop =
      TENSOR_FLOP * all * busiest(work.tensor_instructions, work.blocks, all);
  const double tensor = machine.tf32_flops > 0 ? tensor_flop / machine.tf32_flops : 0;
  const Floor candidates[] = {
      {products / machine.fmas_per_cycle * cycle, Limit::kProducts},
      {tensor, Limit::kTensor},
      {busiest(work.wavefronts, work.blocks, all) / machine.wavefronts_per_cycle * cycle,
       Limit::kPipe},
      {dram_bytes(work, machine, cold) / machine.dram_bytes, Limit::kDram},
      {machine.launch_seconds, Limit::kLaunch}};
  Floor longest;
  for (const Floor& floor : candidates) {
    if (floor.seconds > longest.seconds) longest = floor;
  }
  return longest;
}

Floor sum_of(const std::vector<Floor>& floors) {
  std::map<Limit, double> seconds;
  Floor sum;
  for (const Floor& floor : floors) {
    sum.seconds += floor.seconds;
    seconds[floor.limit] += floor.seconds;
  }
  for (const auto& [limit, own] : seconds) {
    if (own > seconds[sum.limit]) sum.limit = limit;
  }
  return sum;
}

std::vector<Floor> floors_of(const std::vector<KernelCounts>& kernels,
                             const MachineRates& machine) {
  std::vector<Floor> floors;
  bool cold = true;
  for (const KernelCounts& kernel : kernels) {  // in the order of their first launch
    std::vector<Floor> launches;
    for (const LaunchWork& work : kernel.work) {
      launches.push_back(floor_of(work, machine, cold));
      cold = false;
    }
    floors.push_back(sum_of(launches));
  }
  return floors;
}

std::optional<std::vector<Floor>> floors_of(const std::vector<KernelCounts>& kernels,
                                            const Enlarged& problem, const MachineRates& machine) {
  std::vector<std::vector<Floor>> launches(kernels.size());
  bool cold = true;
  for (const LaunchWork& launch : problem.launches) {
    const auto kernel =
        std::find_if(kernels.begin(), kernels.end(),
                     [&](const KernelCounts& known) { return is_of(known, launch.code); });
    if (kernel == kernels.end()) return std::nullopt;
    const LaunchWork work = launch.code ? enlarged(merged(kernel->work), launch, problem) : launch;
    launches[kernel - kernels.begin()].push_back(floor_of(work, machine, cold));
    cold = false;
  }
  std::vector<Floor> floors;
  for (const std::vector<Floor>& own : launches) floors.push_back(sum_of(own));
  return floors;
}

}  // namespace convladder
