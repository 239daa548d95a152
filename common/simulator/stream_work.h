// How much work each stream has been given. All of it is done at once here, so that a stage that
// uses another stream than it was told to would not show in its results.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace convladder::simulator {

// Kernels and library calls that were put on `stream` so far; nullptr: the default stream.
int64_t work_on(cudaStream_t stream);
// One more.
void note_work(cudaStream_t stream);

}  // namespace convladder::simulator
