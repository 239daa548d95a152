#include "common/simulator/shared_memory.h"

#include <link.h>

#include <cstring>
#include <stdexcept>

// What every `extern __shared__` array is a name of.
extern "C" {
__thread __attribute__((
    aligned(1024))) char convladder_dynamic_shared[convladder::simulator::MOST_DYNAMIC_BYTES];
}

namespace convladder::simulator {
namespace {

// For dl_iterate_phdr: is this the module (program or library) whose thread-local storage holds
// our own thread_local? Returns 1, which ends the iteration, when it is.
int find_own_module(dl_phdr_info* module, std::size_t, void* result) {
  for (int i = 0; i < module->dlpi_phnum; ++i) {
    if (module->dlpi_phdr[i].p_type != PT_TLS) continue;
    const SharedMemory storage{static_cast<char*>(module->dlpi_tls_data),
                               module->dlpi_phdr[i].p_memsz};
    if (!storage.contains(&shared_memory, sizeof(shared_memory))) continue;
    *static_cast<SharedMemory*>(result) = storage;
    return 1;
  }
  return 0;
}

}  // namespace

SharedMemory SharedMemory::of_this_thread() {
  shared_memory = {};  // a library's thread-local storage comes into being when it is first touched
  SharedMemory found;
  if (dl_iterate_phdr(find_own_module, &found) == 0) {
    throw std::runtime_error("the simulator can't find its thread-local storage");
  }
  return found;
}

std::size_t SharedMemory::dynamic_offset() const { return convladder_dynamic_shared - begin; }

void SharedMemory::fill_nan(std::size_t dynamic_bytes) const {
  for_each_part(dynamic_bytes, [this](std::size_t offset, std::size_t count) {
    std::memset(begin + offset, 0xff, count);
  });
}

}  // namespace convladder::simulator
