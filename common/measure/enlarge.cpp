// How a stage would be launched on a problem too large to be counted.
#include "common/measure/floor.h"

#include <set>
#include <utility>

#include "common/simulator/launch.h"

namespace convladder {
namespace {

using simulator::LaunchWork;

constexpr double SECTOR_BYTES = 32;

double times(int64_t large, int64_t small) {
  return static_cast<double>(large) / static_cast<double>(small);
}

// No memory is touched.
std::vector<LaunchWork> planned(const Stage& stage, const ConvShape& shape, bool bias, bool relu) {
  Convolution conv;
  conv.shape = shape;
  auto* const somewhere = reinterpret_cast<float*>(uintptr_t{1} << 40);  // any address will do
  conv.input = conv.filters = conv.output = somewhere;
  conv.bias = bias ? somewhere : nullptr;
  conv.workspace = somewhere;
  conv.input_count = shape.input_count();
  conv.filter_count = shape.filter_count();
  conv.bias_count = bias ? shape.total_K() : 0;
  conv.output_count = shape.output_count();
  conv.relu = relu;
  conv.precision = stage.precision;
  conv.workspace_bytes = workspace_bytes(stage, shape);
  return simulator::plan_launches([&] { run(stage, conv, nullptr); });
}

// The kernels, and in how many parts each has its sums.
std::set<std::pair<const void*, int64_t>> kernels_of(const std::vector<LaunchWork>& launches) {
  std::set<std::pair<const void*, int64_t>> kernels;
  for (const LaunchWork& launch : launches) kernels.insert({launch.code, launch.blocks_y});
  return kernels;
}

}  // namespace

Enlarged enlarge(const Stage& stage, const ConvShape& counted, const ConvShape& whole, bool bias,
                 bool relu) {
  Enlarged problem;
  problem.launches = planned(stage, whole, bias, relu);
  problem.inputs = times(whole.input_count(), counted.input_count());
  problem.outputs = times(whole.output_count(), counted.output_count());
  problem.shared_sectors =
      (sizeof(float) * static_cast<double>(whole.filter_count() + (bias ? whole.total_K() : 0)) +
       static_cast<double>(workspace_bytes(stage, counted))) /
      SECTOR_BYTES;
  return problem;
}

bool is_alike(const Stage& stage, const ConvShape& counted, bool bias, bool relu,
              const Enlarged& whole) {
  return kernels_of(planned(stage, counted, bias, relu)) == kernels_of(whole.launches);
}

}  // namespace convladder
