#include "common/profile/tile_reads.h"

#include "common/core/launch.h"
#include "common/harness/device_buffer.h"

namespace convladder {
namespace {

constexpr int LANES = 32;

__global__ void read_row(float* sink) {
  __shared__ float tile[LANES][LANES];
  const int lane = threadIdx.x;
  tile[2][lane] = 1.0f;
  __syncthreads();
  sink[lane] = tile[2][lane];  // 32 neighbours: 32 banks
}

__global__ void read_column(float* sink) {
  __shared__ float tile[LANES][LANES];
  const int lane = threadIdx.x;
  for (int row = 0; row < LANES; ++row) tile[row][lane] = 1.0f;
  __syncthreads();
  sink[lane] = tile[lane][2];  // 128 bytes apart: all in one bank
}

__global__ void read_padded_column(float* sink) {
  __shared__ float tile[LANES][LANES + 1];
  const int lane = threadIdx.x;
  for (int row = 0; row < LANES; ++row) tile[row][lane] = 1.0f;
  __syncthreads();
  sink[lane] = tile[lane][2];  // 132 bytes apart: 32 banks again
}

}  // namespace

void launch_tile_reads() {
  const DeviceBuffer sink(LANES);
  for (const auto kernel : {read_row, read_column, read_padded_column}) {
    launch(kernel, 1, LANES, nullptr, sink.data());
  }
}

}  // namespace convladder
