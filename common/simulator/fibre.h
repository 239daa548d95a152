// A fibre: a stack of its own, and the place where its execution stands.
#pragma once

// NOLINTBEGIN(bugprone-reserved-identifier): the sanitizer's names
#include <algorithm>
#include <boost/context/fiber.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#else  // AddressSanitizer's calls, as nothing
inline void __sanitizer_start_switch_fiber(void**, const void*, std::size_t) {}
inline void __sanitizer_finish_switch_fiber(void*, const void**, std::size_t*) {}
#endif

namespace convladder::simulator {

class Fibre {
 public:
  Fibre() = default;  // stands for the stack that is running already
  // A new stack on which `body` begins when it is first switched to. When body returns, the fibre
  // that switched here last goes on; it must have returned before the Fibre is destroyed. Throws
  // std::bad_alloc.
  explicit Fibre(std::function<void()> body);
  Fibre(const Fibre&) = delete;

  // Leaves this fibre, which must be the running one, for `to`; returns when something switches
  // back to it. Inline, because the processor mispredicts every return after a change of stack.
  void switch_to(Fibre& to) {
    to.left_ = this;
    __sanitizer_start_switch_fiber(&fake_stack_, to.stack_bottom_, to.stack_bytes_);
    arrive(std::move(to.context_).resume());
  }

  // Of its stack: for what the simulator does when a kernel has taken all the rest.
  static constexpr std::size_t RESERVE = 32 << 10;
  // Of address space, that one takes.
  static std::size_t stack_bytes();
  // Whether the caller, on this stack, has more than that left.
  bool has_room() const {
    return static_cast<const char*>(__builtin_frame_address(0)) >
           static_cast<const char*>(stack_bottom_) + RESERVE;
  }

  // A number for what the caller keeps, in registers and on this stack's last 8 KB, and for how deep it is. The
  // same number: the same state.
  __attribute__((noinline, no_sanitize("address"))) uint64_t digest() const {
    __builtin_unwind_init();  // registers of callers go to this stack
    uint64_t state = 0;
    const void* volatile here = &state;
    const auto* word = static_cast<const uint64_t*>(here) + 1;
    const auto* const top =
        reinterpret_cast<const uint64_t*>(static_cast<const char*>(stack_bottom_) + stack_bytes_);
    state = top - word;
    for (const auto* const end = std::min(top, word + 1024); word < end; ++word) {
      state = (state ^ *word) * 0x9e3779b97f4a7c15;
      state ^= state >> 29;
    }
    return state;
  }

  // Whether `address` is on its stack.
  bool holds(const void* address) const {
    return static_cast<std::size_t>(static_cast<const char*>(address) -
                                    static_cast<const char*>(stack_bottom_)) < stack_bytes_;
  }

 private:
  // Runs first after a switch: keeps the place where the fibre that was left stands.
  void arrive(boost::context::fiber&& left) {
    __sanitizer_finish_switch_fiber(fake_stack_, &left_->stack_bottom_, &left_->stack_bytes_);
    left_->context_ = std::move(left);
  }

  boost::context::fiber context_;  // where it stands; empty while it runs
  Fibre* left_ = nullptr;          // the fibre that switched here last
  // For AddressSanitizer, which must be told of every change of stack.
  const void* stack_bottom_ = nullptr;
  std::size_t stack_bytes_ = 0;
  void* fake_stack_ = nullptr;
};

}  // namespace convladder::simulator
// NOLINTEND(bugprone-reserved-identifier)
