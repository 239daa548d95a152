// Runs the blocks of a grid, one at a time: every CUDA thread on a fibre, scheduled by hand.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/simulator/device_calls.h"
#include "common/simulator/errors.h"
#include "common/simulator/fibre.h"
#include "common/simulator/launch.h"
#include "common/simulator/observer.h"
#include "common/simulator/random.h"
#include "common/simulator/shared_memory.h"

namespace convladder::simulator {

// "(1,0,0)"
inline std::string to_string(uint3 i) {
  return "(" + std::to_string(i.x) + "," + std::to_string(i.y) + "," + std::to_string(i.z) + ")";
}

// A block or thread by its number. x runs fastest, as on a GPU.
inline uint3 unflatten(uint64_t index, dim3 extents) {
  return {static_cast<unsigned>(index % extents.x),
          static_cast<unsigned>(index / extents.x % extents.y),
          static_cast<unsigned>(index / extents.x / extents.y)};
}

// A block whose threads all wait, or ask for the same again and again, has gone round once more:
// another may begin beside it, and others have time. The answer is why the block should give up;
// empty: it should not. `rounds` counts up while nothing happens, from 0. `repeats`: the block's threads are as
// they were before, so that only another block can change anything; else they may be counting.
std::string wait_for_other_blocks(unsigned rounds, bool repeats);
constexpr std::chrono::seconds PATIENCE{20};  // with threads that may be counting
// Something has happened in a block for which wait_for_other_blocks() was called.
void end_wait_for_other_blocks();

class Hopper;

// How often blocks of the grid have come to a barrier of all.
inline std::atomic<uint64_t> grid_arrivals{0};

// Belongs to one operating-system thread, on which it must be made, used and destroyed.
//
// A thread runs until it reaches a barrier, then the next has its turn. Threads begin on whatever
// fibre is free: as long as none waits, that is one and the same, and costs no switch. A thread
// that waits keeps its fibre, and the next thread begins on another.
class Worker {
 public:
  Worker();
  ~Worker();
  Worker(const Worker&) = delete;

  // Runs block `index` (x fastest) to its end. Throws KernelError, naming block and thread, when
  // the kernel fails; the worker is then ready for another block.
  void run_block(const Grid& grid, uint64_t index);

  // Called inside a kernel, by the thread that runs. When the kernel has failed elsewhere, they
  // don't return but unwind the thread.
  // Returns how many threads have come with `predicate`.
  int sync_threads(bool predicate, Place place);
  void named_barrier(unsigned number, unsigned threads, bool waits, Place place);
  void meet(const LaneCall& call);
  // Lets others have their turn: the thread asks for something that it may ask for ever.
  void give_way();
  void spin(Place place, const char* verb = "asks");
  // One more operation that may ask for what others will bring: the second in a row that changes
  // nothing lets them have their turn.
  void ask(bool changed, Place place);
  void ignore_result() { result_ignored_ = true; }
  void atomic_next() const;
  void note_strong(const void* address, bool store, Place place);
  void begin_atomic(void* address, std::size_t bytes, Atomic kind, const void* pc);
  void end_atomic(bool changed, Place place);
  void fence(bool in_block = false);
  void wait_for_kernel_before();
  void pause()
      const;  // the simulator's own code runs: its accesses and memory are not the kernel's
  // What is wrong with a program, but does not stop it.
  void note(Place place, const std::function<std::string()>& describe);
  void go_on() const;    // ... until here
  void note_progress();  // what others ask for may have come
  // Until somebody else wakes all that sleep with the same key.
  void sleep(const void* key, const void* pc);
  void wake(const void* key);
  Hopper& hopper() const { return *hopper_; }
  void sync_grid(Place place);
  bool is_cooperative() const { return grid_->kind == LaunchKind::kCooperative; }
  [[noreturn]] void fail_assertion(const char* text, const char* function, Place place) const;
  bool runs_kernel() const;  // and not the simulator's own code, as far as that is known
  // What a signal says of the kernel that runs.
  [[noreturn]] void fail_by_signal(int signal, const void* address, const void* pc,
                                   const void* stack);
  // Fails the kernel like an exception thrown by it, from where none may be thrown: a hook that the
  // compiler counts on. What the thread has on its stack is not destroyed.
  [[noreturn]] void stop_thread(cudaError_t code, const std::string& message);

  const SharedMemory& memory() const { return memory_; }
  unsigned running_thread() const;
  // The thread on whose stack the address is; -1: none's.
  int owner_of_local(const void* address) const;
  uint3 thread_index(unsigned thread) const { return thread_index_[thread]; }

 private:
  friend class Hopper;
  struct Carrier;  // a fibre, and the thread that it carries
  struct Warp {
    unsigned alive = 0;             // a bit per lane that has not left the kernel
    std::vector<Carrier*> waiting;  // for other lanes
    bool alike = true;              // whether these are known to ask for the same
  };

  void start_block(const Grid& grid, uint64_t index);
  void set_block_dim(dim3 threads);
  void run_threads(Carrier& self);
  void run_thread(Carrier& self, unsigned thread);
  void run_body(Carrier& self);
  void take_turn(Carrier& self);
  void wait(Carrier& self);
  void switch_to(Carrier& self, Fibre& next);
  Fibre& next_turn();
  Fibre& free_fibre();
  void advance();
  void release_block();
  void open_barrier();
  std::string line_of_leaving(unsigned thread) const;
  bool repeats();
  void go_round();
  void fail_waiting();
  void fail_asleep();
  std::size_t draw(std::size_t count);  // by the seed
  void fail_apart(const Carrier& first, const Carrier& other);
  void require_agreement(const LaneCall& call, const Carrier& other) const;
  void release_lanes(Warp& warp, unsigned mask, const Carrier* like = nullptr);
  uint64_t way_here();
  bool release_converged();
  void make_ready(const std::vector<Carrier*>& carriers);
  std::string whereabouts(unsigned thread) const;
  void leave(unsigned thread);
  void fail(cudaError_t code, unsigned thread, const std::string& message);
  void abandon_block();

  const SharedMemory memory_ = SharedMemory::of_this_thread();
  Fibre scheduler_;  // the worker's own stack
  std::vector<std::unique_ptr<Carrier>> carriers_;
  std::vector<Carrier*> free_;  // those that carry no thread
  bool closing_ = false;
  std::unordered_map<std::size_t, uint64_t> ways_;  // of the return addresses that led there

  // The block that runs.
  const Grid* grid_ = nullptr;
  uint3 block_{};
  Random random_;
  bool immediate_copies_ = false;
  dim3 block_dim_{0};
  std::vector<uint3> thread_index_;    // threadIdx of each thread, x fastest
  std::vector<unsigned> order_;        // in which the threads begin
  unsigned begun_ = 0;                 // threads that have begun
  std::optional<unsigned> last_left_;  // the last thread that left the kernel
  Carrier* running_ = nullptr;
  std::vector<Carrier*> ready_;  // those from next_ready_ onwards may go on
  std::size_t next_ready_ = 0;
  std::vector<Carrier*> at_barrier_;  // those that wait at __syncthreads() ...
  int predicates_ = 0;                // ... and how many came with a predicate that is true, ...
  int agreed_ = 0;                    // ... or came to the last one
  unsigned arrived_[16] = {},
           opened_[16] = {};  // of barriers with a number: who has come, how often it has opened
  std::vector<Carrier*> spinning_;  // those that ask again
  std::vector<Carrier*> asleep_;
  bool progress_ = false;     // something has changed since they asked
  unsigned idle_rounds_ = 0;  // in which nothing has
  // Of the threads that ask again: their state in a round before, and whether they have come to it again.
  uint64_t state_before_ = 0;
  bool repeats_ = false, has_repeated_ = false;
  std::atomic_flag* atomic_lock_ = nullptr;
  bool result_ignored_ = false;  // of the next atomic operation
  bool is_reduction_ = false;    // this atomic operation
  std::vector<Warp> warps_;
  std::jmp_buf* advancing_ = nullptr;  // where stop_thread() goes while no thread has its turn
  std::optional<KernelError> error_;   // once set, no thread begins, and all must leave ...
  bool out_of_memory_ = false;         // ... or once this is

  std::unique_ptr<Hopper> hopper_;
  std::unique_ptr<BlockObserver> observer_;  // null without counting
};

Worker& this_worker();  // inside a kernel

}  // namespace convladder::simulator
