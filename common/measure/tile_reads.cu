// Three ways for a warp to read a 32 x 32 tile of shared memory, for the picture of its banks:
// `tile_reads FILE` writes what they ask of memory, as `profile --trace` does. Counting simulator only.
#include <cstdio>
#include <exception>

#include "common/check/device_buffer.h"
#include "common/core/launch.h"
#include "common/measure/trace_file.h"

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
}  // namespace convladder

int main(int argc, char** argv) {
  using namespace convladder;
  if (argc != 2) {
    std::fprintf(stderr, "usage: tile_reads FILE\n");
    return 2;
  }
  try {
    const DeviceBuffer sink(LANES);
    simulator::start_trace({});
    for (const auto kernel : {read_row, read_column, read_padded_column}) {
      launch(kernel, 1, LANES, nullptr, sink.data());
    }
    const Json record = trace_record("tile_reads", simulator::take_trace(), {}, TRACE_BYTES);
    write_json(argv[1],
               Json::object({{"version", TRACE_VERSION}, {"stages", Json::array({record})}}));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tile_reads: error: %s\n", error.what());
    return 1;
  }
}
