#include "common/simulator/fault.h"

#include <atomic>
#include <mutex>

namespace convladder::simulator {
namespace {

enum class State { kNone, kWaiting, kHappened };

std::atomic<State> state{State::kNone};
std::mutex mutex;  // for what follows
Call faulty;
int64_t left;  // calls until then

}  // namespace

void inject_fault(Call call, int64_t skip) {
  const std::lock_guard lock(mutex);
  faulty = call;
  left = skip;
  state = State::kWaiting;
}

bool clear_fault() { return state.exchange(State::kNone) == State::kHappened; }

bool fault_due(Call call) {
  if (state != State::kWaiting) return false;  // as always, but in such tests
  const std::lock_guard lock(mutex);
  if (state != State::kWaiting || call != faulty || left-- > 0) return false;
  state = State::kHappened;
  return true;
}

}  // namespace convladder::simulator
