#include "common/simulator/fault.h"

#include <atomic>

namespace convladder::simulator {
namespace {

// No lock is taken: a forked process may find it held.
constexpr int64_t HAPPENED = -1, NONE = -2;
std::atomic<Call> faulty;
std::atomic<int64_t> left{NONE};  // calls until then

}  // namespace

void inject_fault(Call call, int64_t skip) {
  faulty = call;
  left = skip;
}

bool clear_fault() { return left.exchange(NONE) == HAPPENED; }

bool fault_due(Call call) { return left >= 0 && call == faulty && left.fetch_sub(1) == 0; }

}  // namespace convladder::simulator
