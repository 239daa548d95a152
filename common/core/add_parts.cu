#include "common/core/add_parts.h"

#include "common/core/hopper.h"
#include "common/core/launch.h"

namespace convladder {
namespace {

constexpr int THREADS = 128;

// Neighbouring threads add up neighbouring outputs.
__global__ void add_parts_kernel(int64_t count, int parts, bool relu,
                                 const float* __restrict__ sums,  // [parts][count]
                                 float* __restrict__ output) {    // [count]
  const int64_t i = int64_t{blockIdx.x} * THREADS + threadIdx.x;
  if (i >= count) return;
  wait_for_kernel_before();

  float sum = 0.0f;
  UNROLL_BY(8) for (int part = 0; part < parts; ++part) sum += sums[count * part + i];
  output[i] = relu && sum < 0.0f ? 0.0f : sum;  // false for NaN, which stays
}

}  // namespace

void add_parts(int parts, const Convolution& conv, cudaStream_t stream) {
  if (parts == 1) return;
  const int64_t count = conv.shape.output_count();
  launch_early(add_parts_kernel, grid_x(ceil_div(count, THREADS)), THREADS, 0, stream, count, parts,
               conv.relu, static_cast<const float*>(conv.workspace), conv.output);
}

}  // namespace convladder
