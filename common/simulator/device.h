// The simulated device: one worker per core, which share out the blocks of a grid.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "common/simulator/random.h"
#include "common/simulator/worker.h"

namespace convladder::simulator {

// The order in which the blocks from `begin` to before `end` have their turns:
// i -> begin + (first + i * step) mod count, where step has no divisor in common with their count,
// so that each has its turn once.
class BlockOrder {
 public:
  BlockOrder(uint64_t begin, uint64_t end, uint64_t seed);  // seed 0: begin, begin + 1, ...
  uint64_t operator[](uint64_t i) const;
  uint64_t count() const { return count_; }

 private:
  uint64_t begin_, count_, first_ = 0, step_ = 1;
};

class Device {
 public:
  // Made on first use, in a forked process once more: threads stay behind with the parent. Throws
  // std::invalid_argument when CONVLADDER_SIM_THREADS is no number from 1 to 1024.
  static Device& instance();

  ~Device();

  // Runs `grid`, or its last blocks where only they are asked for, to the end, after any other that
  // another host thread has under way. Throws what the first failing block threw (KernelError,
  // std::bad_alloc); blocks not begun are left out.
  void run(const Grid& grid);

 private:
  Device();
  void work();
  void run_blocks(Worker& worker);

  std::mutex one_grid_;  // held while a grid runs

  std::mutex mutex_;  // guards all below, but for the atomic
  std::condition_variable wake_, done_;
  const Grid* grid_ = nullptr;
  const BlockOrder* order_ = nullptr;
  uint64_t blocks_ = 0;
  std::atomic<uint64_t> next_block_{0};
  int openings_ = 0;  // workers that may still join the grid
  int busy_ = 0;      // workers that have joined, or may, and are not done
  std::exception_ptr error_;
  bool closing_ = false;

  std::vector<std::thread> threads_;
};

}  // namespace convladder::simulator
