// What the compiler calls: with -fsanitize=thread before every access to memory, with
// -fsanitize-coverage=trace-pc at the begin of every basic block. Its own runtime library is not
// linked; these functions take its place. Host code is instrumented as well where it stands in a
// kernel's source: nobody is watching then.
// NOLINTBEGIN(bugprone-reserved-identifier): the compiler's names
#include <cuda_pipeline.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "common/simulator/copy_queue.h"
#include "common/simulator/counting/block_observer.h"

using namespace convladder::simulator;

namespace {

void hook(const void* address, unsigned bytes, Operation operation, const void* pc) {
  BlockObserver* const observer = watching;
  if (!observer || observer->is_plain(address, bytes, operation == Operation::kStore, pc)) return;
  watching = nullptr;
  observer->access({reinterpret_cast<uintptr_t>(address), bytes, operation, pc});
  watching = observer;
}

void hook_volatile(const void* address, unsigned bytes, Operation operation, const void* pc) {
  BlockObserver* const observer = watching;
  if (!observer) return;
  watching = nullptr;
  const Access access = {
      reinterpret_cast<uintptr_t>(address), bytes, operation, pc, 0, true, observer->take_atomic()};
  if (operation == Operation::kLoad) {
    observer->poll(access);
  } else {
    observer->note_progress();
  }
  watching = nullptr;
  observer->access(access);
  watching = observer;
}

// A range: a struct of a size that no single instruction moves. Word by word, or what its alignment
// allows.
void hook_range(const void* address, unsigned long bytes, Operation operation, const void* pc) {
  const uintptr_t ends = reinterpret_cast<uintptr_t>(address) | bytes;
  const unsigned step = ends % 4 == 0 ? 4 : ends % 2 == 0 ? 2 : 1;
  for (unsigned long done = 0; done < bytes; done += step) {
    hook(static_cast<const char*>(address) + done, step, operation, pc);
  }
}

// Of a type whose alignment is less than its size.
void hook_unaligned(const void* address, unsigned bytes, Operation operation, const void* pc) {
  if (reinterpret_cast<uintptr_t>(address) % bytes == 0) return hook(address, bytes, operation, pc);
  hook_range(address, bytes, operation, pc);
}

}  // namespace

extern "C" {

#define CONVLADDER_HOOKS(bytes)                                                     \
  void __tsan_read##bytes(void* address) {                                          \
    hook(address, bytes, Operation::kLoad, __builtin_return_address(0));            \
  }                                                                                 \
  void __tsan_write##bytes(void* address) {                                         \
    hook(address, bytes, Operation::kStore, __builtin_return_address(0));           \
  }                                                                                 \
  void __tsan_volatile_read##bytes(void* address) {                                 \
    hook_volatile(address, bytes, Operation::kLoad, __builtin_return_address(0));   \
  }                                                                                 \
  void __tsan_volatile_write##bytes(void* address) {                                \
    hook_volatile(address, bytes, Operation::kStore, __builtin_return_address(0));  \
  }                                                                                 \
  void __tsan_unaligned_read##bytes(void* address) {                                \
    hook_unaligned(address, bytes, Operation::kLoad, __builtin_return_address(0));  \
  }                                                                                 \
  void __tsan_unaligned_write##bytes(void* address) {                               \
    hook_unaligned(address, bytes, Operation::kStore, __builtin_return_address(0)); \
  }
CONVLADDER_HOOKS(1)
CONVLADDER_HOOKS(2)
CONVLADDER_HOOKS(4)
CONVLADDER_HOOKS(8)
CONVLADDER_HOOKS(16)
#undef CONVLADDER_HOOKS

void __tsan_read_range(void* address, unsigned long bytes) {
  hook_range(address, bytes, Operation::kLoad, __builtin_return_address(0));
}
void __tsan_write_range(void* address, unsigned long bytes) {
  hook_range(address, bytes, Operation::kStore, __builtin_return_address(0));
}

void __sanitizer_cov_trace_pc() {
  BlockObserver* const observer = watching;
  const void* const pc = __builtin_return_address(0);
  if (!observer || observer->enter_code(pc)) return;
  watching = nullptr;
  observer->enter_again(pc);
  watching = observer;
}

// C++'s own atomic operations are the host's: of a std::shared_ptr, say.
#define CONVLADDER_FETCH(bits, operation)                                                         \
  uint##bits##_t __tsan_atomic##bits##_fetch_##operation(volatile void* at, uint##bits##_t value, \
                                                         int) {                                   \
    return __atomic_fetch_##operation(static_cast<volatile uint##bits##_t*>(at), value,           \
                                      __ATOMIC_SEQ_CST);                                          \
  }
#define CONVLADDER_ATOMICS(bits)                                                                 \
  uint##bits##_t __tsan_atomic##bits##_load(const volatile void* at, int) {                      \
    return __atomic_load_n(static_cast<const volatile uint##bits##_t*>(at), __ATOMIC_SEQ_CST);   \
  }                                                                                              \
  void __tsan_atomic##bits##_store(volatile void* at, uint##bits##_t value, int) {               \
    __atomic_store_n(static_cast<volatile uint##bits##_t*>(at), value, __ATOMIC_SEQ_CST);        \
  }                                                                                              \
  uint##bits##_t __tsan_atomic##bits##_exchange(volatile void* at, uint##bits##_t value, int) {  \
    return __atomic_exchange_n(static_cast<volatile uint##bits##_t*>(at), value,                 \
                               __ATOMIC_SEQ_CST);                                                \
  }                                                                                              \
  bool __tsan_atomic##bits##_compare_exchange_strong(volatile void* at, void* expected,          \
                                                     uint##bits##_t value, int, int) {           \
    return __atomic_compare_exchange_n(static_cast<volatile uint##bits##_t*>(at),                \
                                       static_cast<uint##bits##_t*>(expected), value, false,     \
                                       __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                      \
  }                                                                                              \
  bool __tsan_atomic##bits##_compare_exchange_weak(volatile void* at, void* expected,            \
                                                   uint##bits##_t value, int order, int other) { \
    return __tsan_atomic##bits##_compare_exchange_strong(at, expected, value, order, other);     \
  }                                                                                              \
  CONVLADDER_FETCH(bits, add)                                                                    \
  CONVLADDER_FETCH(bits, sub)                                                                    \
  CONVLADDER_FETCH(bits, and)                                                                    \
  CONVLADDER_FETCH(bits, or)                                                                     \
  CONVLADDER_FETCH(bits, xor)
CONVLADDER_ATOMICS(8)
CONVLADDER_ATOMICS(16)
CONVLADDER_ATOMICS(32)
CONVLADDER_ATOMICS(64)
#undef CONVLADDER_ATOMICS
#undef CONVLADDER_FETCH
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) {}

void __tsan_init() {}
void __tsan_vptr_update(void** address, void*) {
  hook(address, sizeof(void*), Operation::kStore, __builtin_return_address(0));
}
void __tsan_vptr_read(void**) {}

}  // extern "C"

// ---- Moves of memory ----

namespace {

void hook_move(const void* to, const void* from, std::size_t bytes, const void* pc) {
  const auto ends = reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from) | bytes;
  const unsigned step = ends % 4 == 0 ? 4 : 1;
  if (watching && !from && watching->is_own(to, bytes)) return;
  for (std::size_t done = 0; watching && done < bytes; done += step) {
    if (from) hook(static_cast<const char*>(from) + done, step, Operation::kLoad, pc);
    hook(static_cast<const char*>(to) + done, step, Operation::kStore, pc);
  }
}

}  // namespace

void* convladder::simulator::memcpy(void* to, const void* from, std::size_t bytes) {
  hook_move(to, from, bytes, __builtin_return_address(0));
  return std::memcpy(to, from, bytes);
}
void* convladder::simulator::memmove(void* to, const void* from, std::size_t bytes) {
  hook_move(to, from, bytes, __builtin_return_address(0));
  return std::memmove(to, from, bytes);
}
void* convladder::simulator::memset(void* to, int value, std::size_t bytes) {
  hook_move(to, nullptr, bytes, __builtin_return_address(0));
  return std::memset(to, value, bytes);
}

// ---- <cuda_pipeline.h>, whose functions kernels call as well ----

void __pipeline_memcpy_async(void* to_shared, const void* from_global, std::size_t bytes,
                             std::size_t zfill, Place) {
  BlockObserver* const observer = std::exchange(watching, nullptr);
  const Place place = {
      // also where a header's function is inlined that calls this
      nullptr, static_cast<int>(convladder::code_offset(__builtin_return_address(0)))};
  require_valid_copy(to_shared, from_global, bytes, zfill, place);
  observer->begin_copy(to_shared, from_global, bytes, zfill, __builtin_return_address(0));
  copy_queue->push(to_shared, from_global, bytes, zfill);
  watching = observer;
}

void __pipeline_commit() {
  BlockObserver* const observer = std::exchange(watching, nullptr);
  copy_queue->commit();
  watching = observer;
}

void __pipeline_wait_prior(std::size_t pending) {
  BlockObserver* const observer = std::exchange(watching, nullptr);
  copy_queue->wait(pending);
  watching = observer;
}

void convladder::simulator::note_end_of_copy(void* to, std::size_t bytes, int thread) {
  observing->end_copy(to, bytes, thread);
}

// ---- Memory that kernels ask for: `new` and malloc() (the linker calls these in its place) ----

namespace {

std::atomic<int64_t> kernel_allocations{0};

// Null outside kernels.
void* allocate_in_kernel(std::size_t bytes) {
  BlockObserver* const observer = std::exchange(watching, nullptr);
  void* const memory = observer ? allocate_on_heap(bytes) : nullptr;
  kernel_allocations += memory != nullptr;
  watching = observer;
  return memory;
}

bool free_in_kernel(void* memory, const void* pc) {
  if (!memory || (!watching && (kernel_allocations == 0 || std::uncaught_exceptions() == 0))) {
    return false;  // the simulator's own
  }
  BlockObserver* const observer = std::exchange(watching, nullptr);
  const bool freed = free_on_heap(memory);
  kernel_allocations -= freed;
  if (observer) {
    observer->forget_known();
    if (!freed) {
      const uint32_t code = convladder::code_offset(pc);
      observer->object(code, 0, [&] {
        return "frees what malloc() and new of a kernel haven't given, or what has been freed, "
               "at " +
               convladder::called_line(code);
      });
    }
  }
  watching = observer;
  return freed || observer;
}

}  // namespace

// ---- printf(), which would write (%n, not CUDA's) and read (%s) where no hook sees it ----

namespace {

void refuse_unseen(const char* format, const void* pc) {
  if (!watching) return;
  while ((format = std::strchr(format, '%'))) {
    format += 1 + std::strspn(format + 1, "-+ #0123456789.*'$IhlLqjzt");
    const bool reads = (*format == 's' || *format == 'S') && !is_program();
    if (*format == 'n' || reads) {
      fail_kernel(reads ? "calls printf() with %s, which reads uncounted,"
                        : "calls printf() with %n, which CUDA doesn't have,",
                  {nullptr, static_cast<int>(convladder::code_offset(pc))});
    }
    if (*format) ++format;
  }
}

}  // namespace

#define CONVLADDER_PRINT                              \
  refuse_unseen(format, __builtin_return_address(0)); \
  va_list values;                                     \
  va_start(values, format);                           \
  const int written = std::vprintf(format, values);   \
  va_end(values);                                     \
  return written;
extern "C" int __wrap_printf(const char* format, ...) { CONVLADDER_PRINT }
extern "C" int __wrap___printf_chk(int, const char* format, ...) { CONVLADDER_PRINT }
#undef CONVLADDER_PRINT

extern "C" {
void* __real_malloc(std::size_t bytes);
void __real_free(void* memory);
void* __wrap_malloc(std::size_t bytes) {
  return watching ? allocate_in_kernel(bytes) : __real_malloc(bytes);
}
void __wrap_free(void* memory) {
  if (!free_in_kernel(memory, __builtin_return_address(0))) __real_free(memory);
}
}

void* operator new(std::size_t bytes) {
  void* const memory = __wrap_malloc(std::max<std::size_t>(bytes, 1));
  if (!memory && !watching) throw std::bad_alloc();  // a kernel gets null
  return memory;
}
void* operator new[](std::size_t bytes) { return operator new(bytes); }
#define CONVLADDER_DELETE(...)                                                     \
  void operator delete(__VA_ARGS__) noexcept {                                     \
    if (!free_in_kernel(memory, __builtin_return_address(0))) __real_free(memory); \
  }                                                                                \
  void operator delete[](__VA_ARGS__) noexcept {                                   \
    if (!free_in_kernel(memory, __builtin_return_address(0))) __real_free(memory); \
  }
CONVLADDER_DELETE(void* memory)
CONVLADDER_DELETE(void* memory, std::size_t /*bytes*/)
#undef CONVLADDER_DELETE
// NOLINTEND(bugprone-reserved-identifier)
