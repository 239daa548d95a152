// The simulator's <cuda_pipeline.h>: asynchronous copies from global to shared memory.
#pragma once

#include "common/simulator/include/names_begin.h"

// NOLINTBEGIN(bugprone-reserved-identifier): CUDA's names
#include <cstddef>

#include "common/simulator/device_calls.h"

// Copies `bytes` (4, 8 or 16, to which both pointers are aligned) to shared memory, the last
// `zfill` of them as zeros. When it takes effect: see CopyQueue. Fails the kernel for any other
// size, a pointer not aligned to it, or a destination that isn't in shared memory.
void __pipeline_memcpy_async(
    void* to_shared, const void* from_global, std::size_t bytes, std::size_t zfill = 0,
    convladder::simulator::Place place = convladder::simulator::Place::here());
// The copies issued since the last commit become a group, which may be empty.
void __pipeline_commit();
// Waits for all of this thread's groups but the last `pending`.
void __pipeline_wait_prior(std::size_t pending);

// Where kernels are instrumented, these must not become part of them: see counting/hooks.cpp.
#ifndef CONVLADDER_COUNTING
#include "common/simulator/copy_queue.h"

inline void __pipeline_memcpy_async(void* to_shared, const void* from_global, std::size_t bytes,
                                    std::size_t zfill, convladder::simulator::Place place) {
  using namespace convladder::simulator;
  require_valid_copy(to_shared, from_global, bytes, zfill, place);
  copy_queue->push(to_shared, from_global, bytes, zfill);
}

inline void __pipeline_commit() { convladder::simulator::copy_queue->commit(); }

inline void __pipeline_wait_prior(std::size_t pending) {
  convladder::simulator::copy_queue->wait(pending);
}
#endif
// NOLINTEND(bugprone-reserved-identifier)

#include "common/simulator/include/names_end.h"
