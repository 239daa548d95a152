#include "common/simulator/fibre.h"

#include <sys/mman.h>

#include <atomic>
#include <mutex>
#include <new>
#include <vector>

#include "common/simulator/launch.h"

#if defined(__SANITIZE_ADDRESS__)
// Boost's own frames begin before AddressSanitizer hears of a new stack, so that it must not move
// their variables elsewhere (as it does to find uses after return).
extern "C" const char* __asan_default_options() { return "detect_stack_use_after_return=0"; }
#endif

namespace convladder::simulator {
namespace {

constexpr std::size_t PAGE = 4096;
// A page costs memory only when it is touched. Others' programs may have much on the stack.
const std::size_t STACK = (is_program() ? 256 : 32) * PAGE + Fibre::RESERVE;

// A guard page splits a mapping in two, and Linux allows a process 65,530 of them: the first
// stacks have one (all, up to 16 workers with blocks of 1024 threads), the others do without.
constexpr int GUARDED_STACKS = 16 * 1024;

// Stacks of fibres that have ended: to map and to touch new ones takes longer than many a kernel.
std::mutex free_stacks_mutex;
std::vector<boost::context::stack_context>& free_stacks() {
  static auto* stacks =
      new std::vector<boost::context::stack_context>;  // outlives every other static
  return *stacks;
}

// Stacks for boost::context::fiber. A kernel that overflows a guarded one dies of SIGSEGV instead
// of writing over its neighbour.
struct StackAllocator {
  boost::context::stack_context allocate() {
    {
      const std::lock_guard lock(free_stacks_mutex);
      if (!free_stacks().empty()) {
        const boost::context::stack_context stack = free_stacks().back();
        free_stacks().pop_back();
        return stack;
      }
    }
    void* bottom = mmap(nullptr, STACK, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bottom == MAP_FAILED) throw std::bad_alloc();
    static std::atomic<int> stacks{0};
    if (stacks++ < GUARDED_STACKS) mprotect(bottom, PAGE, PROT_NONE);
    boost::context::stack_context stack;
    stack.size = STACK;
    stack.sp = static_cast<char*>(bottom) + STACK;  // stacks grow downwards
    return stack;
  }
  void deallocate(boost::context::stack_context& stack) {
    const std::lock_guard lock(free_stacks_mutex);
    free_stacks().push_back(stack);
  }
};

}  // namespace

std::size_t Fibre::stack_bytes() { return STACK; }

Fibre::Fibre(std::function<void()> body) {
  StackAllocator stacks;
  const boost::context::stack_context stack = stacks.allocate();
  stack_bottom_ = static_cast<char*>(stack.sp) - stack.size;
  stack_bytes_ = stack.size;
  context_ = boost::context::fiber(
      std::allocator_arg, boost::context::preallocated(stack.sp, stack.size, stack), stacks,
      [this, body = std::move(body)](boost::context::fiber&& left) {
        arrive(std::move(left));
        body();
        left_->left_ = this;
        __sanitizer_start_switch_fiber(nullptr, left_->stack_bottom_, left_->stack_bytes_);
        return std::move(left_->context_);
      });
}

}  // namespace convladder::simulator
