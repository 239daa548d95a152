#include "common/simulator/shared_memory.h"

#include <cstring>
#include <stdexcept>

#include "common/core/platform.h"

// What every `extern __shared__` array is a name of.
extern "C" {
__thread __attribute__((
    aligned(1024))) char convladder_dynamic_shared[convladder::simulator::MOST_DYNAMIC_BYTES];
}

namespace convladder::simulator {

SharedMemory SharedMemory::of_this_thread() {
  shared_memory = {};  // a library's thread-local storage comes into being when it is first touched
  const ThreadStorage found = thread_storage(&shared_memory);
  if (!found.begin) throw std::runtime_error("the simulator can't find its thread-local storage");
  return {found.begin, found.bytes};
}

std::size_t SharedMemory::dynamic_offset() const { return convladder_dynamic_shared - begin; }

void SharedMemory::fill_nan(std::size_t dynamic_bytes) const {
  for_each_part(dynamic_bytes, [this](std::size_t offset, std::size_t count) {
    std::memset(begin + offset, 0xff, count);
  });
}

}  // namespace convladder::simulator
