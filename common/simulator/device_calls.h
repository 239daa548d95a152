// What CUDA's device functions (include/) ask of the simulator, from inside a kernel.
#pragma once

#include "common/simulator/include/names_begin.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace convladder::simulator {

// Where in the source something is called; as a default argument, where the caller stands.
struct Place {
  const char* file;  // null: `line` is a code_offset() of core/program.h
  int line;
  static constexpr Place here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

// ---- Threads that wait for others ----

// Waits for all threads of the block, and returns how many have come with `predicate`.
int sync_threads(bool predicate, Place place);
// Waits for all threads of the grid, whose blocks then all run at a time.
void sync_grid(Place place);
bool is_cooperative();  // the launch

// The block's barrier of that number: comes to it, and goes on when so many threads have come, or without
// waiting for them.
void named_barrier(unsigned number, unsigned threads, bool waits, Place place);

// What lanes of a warp do together. Each gives its part, and goes on when all have come.
struct LaneCall {
  enum class Kind {
    kExchange,  // orders no memory
    kBarrier,   // __syncwarp()
    kMatrix,    // by the tensor core: of all 32 lanes, at one place in the source
    kFragment,  // wmma's loads and stores: likewise, and a barrier
  };
  bool needs_all_lanes() const { return kind == Kind::kMatrix || kind == Kind::kFragment; }
  bool is_barrier() const { return kind == Kind::kBarrier || kind == Kind::kFragment; }

  const char* name;  // "__shfl_sync"
  Place place;
  unsigned mask;  // lanes that must come, but for those that have left; 0: as many as can come
  Kind kind = Kind::kExchange;
  void* part = nullptr;  // operands and result
  // Called once: parts[i] is that of lane i, which takes part if it is one of `lanes`.
  void (*act)(void* const* parts, unsigned lanes) = nullptr;
  int instructions = 1;  // of kMatrix: of the tensor core
  int words = 0;         // of 4 bytes that each lane gives to another, by a shuffle
};
// Fails the kernel where the mask leaves out the calling lane, lanes that wait for each other ask for
// different things, or some never come.
void meet(const LaneCall& call);

// Lets others have their turn, threads of this block and other blocks: the caller will ask again for
// something that has not yet come. Fails the kernel when nobody is left who could bring it.
void spin(Place place);

unsigned lane_id();  // 0 to 31
uint64_t clock_ns();

// ---- Memory ----

// How far a pointer lies behind the begin of the block's shared memory; ~0 where it is none into that.
std::size_t shared_offset(const void* pointer);
char* shared_pointer(std::size_t offset);

// What kind of instruction an atomic operation is, by its type and what it does.
enum class Atomic : uint8_t {
  kWhole,      // of 32 bits, or a swap without condition
  kIncrement,  // of those, one that adds 1
  kCompare,    // atomicCAS()
  kLoop,       // in shared memory, where there is no such instruction: a loop of the one before
  kHalf        // likewise; in global memory one that always returns its result
};
// Nobody uses the result of the next one.
void ignore_result();
// The next volatile access is an atomic load or store: it doesn't race with others in shared memory either.
void atomic_next();
// For cuda::atomic, which the host may use as well: whether it does. Then its next operation is the host's.
bool host_atomic();
// A strong load or store by PTX, which builds that don't count notice by nothing else: who loads the same again and
// again lets others have their turn.
void note_strong(const void* address, bool store, Place place = Place::here());

template <typename T>
using Same = std::enable_if_t<true, T>;  // a parameter that no type is deduced from
// to = from, in one store, where a list gives `from`.
template <typename T>
__attribute__((always_inline)) inline void assign(T& to, Same<T> from) {
  to = std::move(from);
}
// The same where the value is assigned on, as in x = y = {1, 2}.
template <typename T>
__attribute__((always_inline)) inline T assigned(T& to, Same<T> from) {
  return to = from, from;
}

// Around an atomic operation, which begins with checking the access. `changed`: what is there now
// differs. A thread that goes on asking, and changes nothing, lets others have their turn.
void begin_atomic(void* address, std::size_t bytes, Atomic kind);
void end_atomic(bool changed, Place place);

// What the thread has written before, and what has come to it by barriers, is for others to see:
// those that have then read by an atomic operation or a volatile access what was written after it.
// `in_block`: for others of its block alone.
void fence(bool in_block = false);

// From here on the thread may touch what the kernel before has, where its own was launched early.
void wait_for_kernel_before();

// What translate.py puts in the place of these, in builds that count: word by word where both ends are aligned,
// else byte by byte.
void* memcpy(void* to, const void* from, std::size_t bytes);
void* memmove(void* to, const void* from, std::size_t bytes);
void* memset(void* to, int value, std::size_t bytes);

// ---- Hopper's asynchronous instructions, as inline PTX asks for them: simulator/hopper.h ----

namespace ptx {

void mbarrier_init(void* barrier, unsigned arrivals);
void mbarrier_inval(void* barrier);
// Arrives `count` times, and has the phase wait for so many bytes more. Returns the phase.
uint64_t mbarrier_arrive(void* barrier, unsigned count, int bytes, bool drops);
void mbarrier_expect(void* barrier, int bytes);
// Whether the phase (of that parity, or number) has ended. `sleeps`: waits until it has.
bool mbarrier_wait(void* barrier, uint64_t phase, bool is_parity, bool sleeps);
// An arrival, at the end of all copies that cp.async has begun so far. `counts`: one more is pending.
void arrive_when_copied(void* barrier, bool counts);

void bulk_copy(void* to_shared, const void* from, unsigned bytes, void* barrier);
void bulk_store(void* to, const void* from_shared, unsigned bytes);
void tensor_copy(void* to_shared, const void* map, void* barrier, const int (&at)[5],
                 const int (&offsets)[3], bool im2col);
void tensor_store(const void* map, const void* from_shared, const int (&at)[5]);
void commit_stores();
void wait_for_stores(unsigned pending);

// A thread's part of wgmma.mma_async.
struct WarpgroupProduct {
  enum Number : uint8_t { kTf32, kHalf, kBfloat16 };
  Number number;
  bool sums_are_half, a_in_registers, adds;
  bool a_transposed, b_transposed;
  int8_t a_sign, b_sign;
  uint16_t columns;
  uint64_t a, b;             // descriptors
  uint32_t fragment[4];      // of a
  const void* variables[4];  // they are of, where they are variables; else null
};
// Begins the product. Returns true where no product under way has these sums, the first of which is given: then
// take_sums() must be told of all registers.
bool begin_product(const WarpgroupProduct& product, void* first_sum);
void take_sums(void* const* registers);
void fence_registers();
void commit_products();
void wait_for_products(unsigned pending);

void fence_proxies();
void fence_barriers();
void set_registers(unsigned count);

}  // namespace ptx

// ---- Findings ----

// The result is not defined, which need not hurt: the kernel goes on. Kept once for each place.
void note_undefined(const char* name, Place place, unsigned lane, unsigned source, unsigned lanes);

// Likewise: what wmma is given of a matrix in memory, whose lines must begin a multiple of so many elements apart.
void note_matrix(const char* name, Place place, unsigned stride, unsigned multiple);

[[noreturn]] void fail_assertion(const char* text, const char* function, Place place);
[[noreturn]] void fail_kernel(const char* what, Place place, const char* more = "");

}  // namespace convladder::simulator

#include "common/simulator/include/names_end.h"
