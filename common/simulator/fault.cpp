#include "common/simulator/fault.h"

#include <atomic>
#include <mutex>
#include <utility>

namespace convladder::simulator {
namespace {

std::atomic<bool> armed{false};  // else no lock is taken: a forked process may find it held
std::mutex mutex;                // for what follows
Call faulty;
int64_t left = -1;  // calls until then; below 0: no fault is to come
bool happened = false;

}  // namespace

void inject_fault(Call call, int64_t skip) {
  const std::lock_guard lock(mutex);
  faulty = call;
  left = skip;
  happened = false;
  armed = true;
}

bool clear_fault() {
  const std::lock_guard lock(mutex);
  armed = false;
  left = -1;
  return std::exchange(happened, false);
}

bool fault_due(Call call) {
  if (!armed) return false;
  const std::lock_guard lock(mutex);
  if (left < 0 || call != faulty || left-- > 0) return false;
  return happened = true;
}

}  // namespace convladder::simulator
