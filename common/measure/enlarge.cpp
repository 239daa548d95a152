#include "common/measure/enlarge.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/check/trial.h"
#include "common/core/launch.h"
#include "common/simulator/launch.h"

namespace convladder {
namespace {

using simulator::KernelCounts;
using simulator::LaunchWork;

constexpr double SECTOR_BYTES = 32;

// How a stage would be launched on the whole problem, and how much larger that is than the part.
struct WholeProblem {
  std::vector<LaunchWork> plan;    // without what the launches ask for
  double inputs = 1, outputs = 1;  // how many times as many elements these tensors have
  double sectors_read_by_all = 0;  // at most: filters, bias and workspace
};

double quotient(int64_t large, int64_t small) {
  return static_cast<double>(large) / static_cast<double>(small);
}

// Nothing is launched, and no memory is touched.
std::vector<LaunchWork> plan_of(const Stage& stage, const Workload& job, const ConvShape& shape) {
  Convolution conv;
  conv.shape = shape;
  auto* const somewhere = reinterpret_cast<float*>(uintptr_t{1} << 40);  // any address will do
  conv.input = conv.filters = conv.output = somewhere;
  conv.bias = job.bias ? somewhere : nullptr;
  conv.workspace = somewhere;
  conv.input_count = shape.input_count();
  conv.filter_count = shape.filter_count();
  conv.bias_count = job.bias ? shape.total_K() : 0;
  conv.output_count = shape.output_count();
  conv.relu = job.relu;
  conv.workspace_bytes = workspace_bytes(stage, shape);
  return simulator::plan_launches([&] { run(stage, conv, nullptr); });
}

WholeProblem whole_problem(const Stage& stage, const Workload& job) {
  const ConvShape& whole = *job.whole;
  const double bytes_read_by_all =
      sizeof(float) * static_cast<double>(whole.filter_count() + (job.bias ? whole.total_K() : 0)) +
      static_cast<double>(workspace_bytes(stage, job.shape));
  return {plan_of(stage, job, whole), quotient(whole.input_count(), job.shape.input_count()),
          quotient(whole.output_count(), job.shape.output_count()),
          bytes_read_by_all / SECTOR_BYTES};
}

// Whether the part is launched with the kernels that the whole is, and its sums are cut into as many
// parts: only then do its blocks do what those of the whole do.
bool has_plan_of_whole(const Stage& stage, const Workload& job, const WholeProblem& whole) {
  const auto kernels_of = [](const std::vector<LaunchWork>& plan) {
    std::set<std::pair<const void*, int64_t>> kernels;
    for (const LaunchWork& launch : plan) kernels.insert({launch.code, launch.blocks_y});
    return kernels;
  };
  return kernels_of(plan_of(stage, job, job.shape)) == kernels_of(whole.plan);
}

// All launches of a kernel as one.
LaunchWork merged(const std::vector<LaunchWork>& launches) {
  LaunchWork all;
  for (const LaunchWork& launch : launches) {
    all.blocks += launch.blocks;
    for (const auto amounts : {&LaunchWork::products, &LaunchWork::wavefronts,
                               &LaunchWork::tensor_instructions, &LaunchWork::wgmma_columns}) {
      for (const auto& [amount, count] : launch.*amounts) (all.*amounts)[amount] += count;
    }
    all.sectors_read += launch.sectors_read;
    all.sectors_written += launch.sectors_written;
  }
  return all;
}

// The counted work as that of a launch of more blocks.
LaunchWork enlarged(LaunchWork counted, int64_t blocks, const WholeProblem& whole) {
  const double ratio = quotient(blocks, counted.blocks);
  const auto read = static_cast<double>(counted.sectors_read);
  const auto written = static_cast<double>(counted.sectors_written);
  const double by_one_block = std::max(0.0, read - whole.sectors_read_by_all);
  counted.sectors_read = static_cast<int64_t>(std::min(ratio, whole.inputs) * by_one_block +
                                              std::min(ratio, 1.0) * (read - by_one_block));
  counted.sectors_written = static_cast<int64_t>(std::min(ratio, whole.outputs) * written);
  counted.blocks = blocks;
  return counted;
}

const KernelCounts* find_kernel(const std::vector<KernelCounts>& kernels, const void* code) {
  for (const KernelCounts& kernel : kernels) {
    const bool all = std::all_of(kernel.work.begin(), kernel.work.end(),
                                 [&](const LaunchWork& work) { return work.code == code; });
    if (all && !kernel.work.empty()) return &kernel;
  }
  return nullptr;
}

std::optional<std::vector<StageLaunch>> enlarged(const std::vector<KernelCounts>& kernels,
                                                 const WholeProblem& whole) {
  std::vector<StageLaunch> launches;
  for (const LaunchWork& launch : whole.plan) {
    const KernelCounts* kernel = find_kernel(kernels, launch.code);
    if (!kernel) return std::nullopt;
    const bool library = launch.code == nullptr;  // its plan says all that is known
    launches.push_back(
        {kernel->kernel, library ? launch : enlarged(merged(kernel->work), launch.blocks, whole)});
  }
  return launches;
}

// The device has other multiprocessors while this lives.
struct DeviceOf {
  explicit DeviceOf(int count) : before(multiprocessors()) {
    simulator::set_multiprocessors(count);
  }
  ~DeviceOf() { simulator::set_multiprocessors(before); }
  int before;
};

}  // namespace

std::vector<StageLaunch> counted_launches(const std::vector<KernelCounts>& kernels) {
  std::vector<StageLaunch> launches;
  for (const KernelCounts& kernel : kernels) {
    for (const LaunchWork& work : kernel.work) launches.push_back({kernel.kernel, work});
  }
  return launches;
}

std::optional<std::vector<StageLaunch>> launches_of_whole(
    const Stage& stage, const Workload& job, const std::vector<KernelCounts>& kernels) {
  if (!job.whole) return std::nullopt;
  const WholeProblem whole = whole_problem(stage, job);
  if (has_plan_of_whole(stage, job, whole)) return enlarged(kernels, whole);
  // A stage that fills the device plans the part for one as much smaller as the whole is larger, or near it.
  int count = multiprocessors();
  const int all = count, near = std::max(1, static_cast<int>(all / whole.outputs));
  const auto suits = [&](int other) {
    const DeviceOf device(other);
    return has_plan_of_whole(stage, job, whole);
  };
  for (int distance = 0; distance < all && count == all; ++distance) {
    for (const int other : {near - distance, near + distance}) {
      if (count == all && other >= 1 && other < all && suits(other)) count = other;
    }
  }
  if (count == all) return std::nullopt;
  const DeviceOf device(count);
  const Trial trial(stage, job);
  trial.enqueue();
  trial.wait();
  return enlarged(simulator::take_kernel_counts(), whole);
}

}  // namespace convladder
