// <cuda_pipeline.h> of the counting simulator.
#include <cuda_pipeline.h>

#include "common/simulator/async_copy.h"
#include "common/simulator/observer.h"

using namespace convladder::simulator;

void __pipeline_memcpy_async(void* to_shared, const void* from_global, std::size_t bytes,
                             std::size_t zfill) {
  copy_queue->observer->pause();
  require_valid_copy(to_shared, from_global, bytes, zfill);
  copy_queue->observer->begin_copy(to_shared, from_global, bytes, zfill,
                                   __builtin_return_address(0));
  copy_queue->push(to_shared, from_global, bytes, zfill);
}

void __pipeline_commit() { copy_queue->commit(); }

void __pipeline_wait_prior(std::size_t pending) { copy_queue->wait(pending); }
