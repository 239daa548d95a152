#include "common/profile/enlarge.h"

#include "common/simulator/launch.h"

namespace convladder {
namespace {

constexpr double SECTOR_BYTES = 32;

double times(int64_t large, int64_t small) {
  return static_cast<double>(large) / static_cast<double>(small);
}

}  // namespace

Enlarged enlarge(const Stage& stage, const ConvShape& counted, const ConvShape& whole, bool bias,
                 bool relu) {
  Convolution conv;
  conv.shape = whole;
  // No memory is touched: any address will do.
  auto* const somewhere = reinterpret_cast<float*>(uintptr_t{1} << 40);
  conv.input = conv.filters = conv.output = somewhere;
  conv.bias = bias ? somewhere : nullptr;
  conv.workspace = somewhere;
  conv.input_count = whole.input_count();
  conv.filter_count = whole.filter_count();
  conv.bias_count = bias ? whole.total_K() : 0;
  conv.output_count = whole.output_count();
  conv.relu = relu;
  conv.workspace_bytes = workspace_bytes(stage, whole);

  Enlarged problem;
  problem.launches = simulator::plan_launches([&] { run(stage, conv, nullptr); });
  problem.inputs = times(conv.input_count, counted.input_count());
  problem.outputs = times(conv.output_count, counted.output_count());
  problem.shared_sectors =
      (sizeof(float) * static_cast<double>(conv.filter_count + conv.bias_count) +
       static_cast<double>(workspace_bytes(stage, counted))) /
      SECTOR_BYTES;
  return problem;
}

}  // namespace convladder
