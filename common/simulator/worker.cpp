#include "common/simulator/worker.h"

#include <algorithm>
#include <csetjmp>
#include <filesystem>
#include <new>
#include <numeric>

#include <fmt/format.h>
#include "common/core/program.h"
#include "common/simulator/copy_queue.h"
#include "common/simulator/counting/block_observer.h"
#include "common/simulator/report.h"

namespace convladder::simulator {
namespace {

constexpr unsigned WARP = warpSize;

thread_local Worker* current_worker = nullptr;

struct Abandoned {};  // thrown to unwind a thread after another one has failed

unsigned lane_bit(unsigned thread) { return 1u << thread % WARP; }

// "12_tensor_cores/tensor_cores.cu:41": the last folder will do.
std::string place(const LaneProduct& product) {
  const std::filesystem::path file(product.file);
  return (file.parent_path().filename() / file.filename()).string() + ":" +
         std::to_string(product.line);
}

}  // namespace

struct Worker::Carrier {
  explicit Carrier(Worker& worker) : fibre([this, &worker] { worker.run_threads(*this); }) {}

  Fibre fibre;
  CopyQueue copies;
  std::jmp_buf start;  // where stop_thread() goes
  unsigned thread = 0;
  const void* place = nullptr;           // of its __syncthreads()
  bool waits = false;                    // its thread waits at a barrier
  unsigned warp_mask = 0;                // at __syncwarp(): the lanes it waits for
  const LaneProduct* product = nullptr;  // at mma_tf32()
};

Worker::Worker() {
  if constexpr (COUNTING) {
    observer_ = std::make_unique<BlockObserver>(*this);
    if (is_program()) use_signal_stack();
  }
}

Worker::~Worker() {
  closing_ = true;
  for (auto& carrier : carriers_) scheduler_.switch_to(carrier->fibre);
}

void Worker::run_block(const Grid& grid, uint64_t index) {
  start_block(grid, index);
  scheduler_.switch_to(next_turn());
  if (error_) throw KernelError(*error_);
  if (out_of_memory_) throw std::bad_alloc();
  if constexpr (COUNTING) observer_->end_block();
}

void Worker::start_block(const Grid& grid, uint64_t index) {
  memory_.fill_nan(grid.dynamic_bytes);  // all thread_locals, hence these:
  shared_memory = memory_;
  current_worker = this;
  blockIdx = block_ = unflatten(index, grid.blocks);
  blockDim = grid.threads;
  gridDim = grid.blocks;

  grid_ = &grid;
  random_ = Random(grid.seed ^ Random(index).next());
  immediate_copies_ = grid.seed != 0 && random_.next() % 2 == 1;
  set_block_dim(grid.threads);
  std::iota(order_.begin(), order_.end(), 0u);
  if (grid.seed != 0) random_.shuffle(order_);

  begun_ = 0;
  last_left_.reset();
  ready_.clear();
  next_ready_ = 0;
  at_barrier_.clear();
  error_.reset();
  out_of_memory_ = false;
  for (std::size_t i = 0; i < warps_.size(); ++i) {
    const std::size_t lanes = order_.size() - i * WARP;
    warps_[i].alive = lanes >= WARP ? ~0u : (1u << lanes) - 1;
    warps_[i].waiting.clear();
    warps_[i].products.clear();
  }
  if constexpr (COUNTING) observer_->begin_block(grid, index);
}

void Worker::set_block_dim(dim3 threads) {
  if (threads.x == block_dim_.x && threads.y == block_dim_.y && threads.z == block_dim_.z) return;
  block_dim_ = threads;
  thread_index_.resize(std::size_t{threads.x} * threads.y * threads.z);
  for (std::size_t i = 0; i < thread_index_.size(); ++i) thread_index_[i] = unflatten(i, threads);
  order_.resize(thread_index_.size());
  warps_.resize((thread_index_.size() + WARP - 1) / WARP);
  // Now, since abandon_block() may come because there is no memory left.
  for (auto* carriers : {&ready_, &at_barrier_, &free_}) carriers->reserve(thread_index_.size());
}

// ---- Turns ----

// What a fibre does all its life: begin threads until there is none left to begin.
void Worker::run_threads(Carrier& self) {
  while (!closing_) {
    while (begun_ < order_.size()) run_thread(self, order_[begun_++]);
    free_.push_back(&self);
    self.fibre.switch_to(next_turn());
  }
}

void Worker::run_thread(Carrier& self, unsigned thread) {
  self.thread = thread;
  self.copies.immediate = immediate_copies_;
  take_turn(self);
  if constexpr (COUNTING) {
    if (setjmp(self.start) == 0) run_body();
    observer_->leave(thread);
  } else {
    run_body();
  }
  self.waits = false;
  self.copies.clear();
  leave(thread);
}

void Worker::run_body() {
  try {
    grid_->body(grid_->argument);
  } catch (...) {
    if constexpr (COUNTING) observer_->pause();
    try {
      throw;
    } catch (const Abandoned&) {
    } catch (const std::bad_alloc&) {  // no room for another fibre, say: nor for a message
      out_of_memory_ = true;
      abandon_block();
    } catch (const KernelError& error) {
      fail(error.code, running_->thread, error.what());
    } catch (const std::exception& error) {
      fail(cudaErrorLaunchFailure, running_->thread, std::string("exception: ") + error.what());
    } catch (...) {
      fail(cudaErrorLaunchFailure, running_->thread, "an exception of unknown type");
    }
  }
}

void Worker::stop_thread(cudaError_t code, const std::string& message) {
  fail(code, running_->thread, message);
  std::longjmp(running_->start, 1);
}

void Worker::take_turn(Carrier& self) {
  running_ = &self;
  threadIdx = thread_index_[self.thread];
  copy_queue = &self.copies;
  if constexpr (COUNTING) observer_->resume(self.thread, self.fibre);
}

// Lets others have their turn until the thread of `self` may go on.
void Worker::wait(Carrier& self) {
  self.waits = true;
  Fibre& next = next_turn();
  if (&next != &self.fibre) self.fibre.switch_to(next);
  self.waits = false;
  if (error_ || out_of_memory_) throw Abandoned{};
  take_turn(self);
}

// Whose turn it is; the scheduler's when the block is done.
Fibre& Worker::next_turn() {
  if (next_ready_ == ready_.size()) {
    if (begun_ < order_.size()) return free_fibre();
    release_block();
  }
  if (next_ready_ == ready_.size()) return scheduler_;
  return ready_[next_ready_++]->fibre;
}

Fibre& Worker::free_fibre() {
  if (free_.empty()) {
    carriers_.push_back(std::make_unique<Carrier>(*this));
    return carriers_.back()->fibre;
  }
  Carrier* carrier = free_.back();
  free_.pop_back();
  return carrier->fibre;
}

// ---- Barriers ----

void Worker::sync_threads(const void* place) {
  if constexpr (COUNTING) observer_->leave(running_->thread);
  running_->place = place;
  at_barrier_.push_back(running_);
  wait(*running_);
}

// Called when no thread can go on: all wait at the barrier, all have left, or the kernel is wrong.
void Worker::release_block() {
  if (at_barrier_.size() == order_.size()) return open_barrier();
  const Carrier* in_warp = nullptr;
  for (const Warp& warp : warps_) {
    if (!warp.products.empty()) return fail_product(warp);
    if (!warp.waiting.empty()) in_warp = warp.waiting.front();
  }
  if (at_barrier_.empty() && !in_warp) return;

  if constexpr (COUNTING) {
    if (is_program() && !in_warp) {  // a GPU goes on, though CUDA promises nothing
      const Carrier& first = *at_barrier_.front();
      add_finding(read_symbols(grid_->kernel).name, code_offset(first.place), 0, [&] {
        return fmt::format(
            "block {}: {} of {} threads came to __syncthreads() at {}, the others have left the "
            "kernel, thread "
            "{} at {}",
            to_string(block_), at_barrier_.size(), order_.size(),
            source_line(code_offset(first.place)), to_string(thread_index_[*last_left_]),
            line_of_leaving(*last_left_));
      });
      return open_barrier();
    }
  }
  const unsigned waits = at_barrier_.empty() ? in_warp->thread : at_barrier_.front()->thread;
  const std::string barrier = at_barrier_.empty() ? "__syncwarp()" : "__syncthreads()";
  fail(cudaErrorLaunchFailure, waits,
       "waits for ever at " + barrier +
           (last_left_ ? ", thread " + to_string(thread_index_[*last_left_]) +
                             " has left the kernel without reaching it"
                       : ", thread " + to_string(thread_index_[in_warp->thread]) +
                             " waits at __syncwarp()"));
}

// All that are still there have come to the barrier.
void Worker::open_barrier() {
  ready_.swap(at_barrier_);
  at_barrier_.clear();
  next_ready_ = 0;
  if (grid_->seed != 0) random_.shuffle(ready_);
  if constexpr (COUNTING) observer_->sync_threads();
}

// The branch before the thread's last block.
std::string Worker::line_of_leaving(unsigned thread) const {
  if constexpr (COUNTING) {
    const auto before = observer_->code_before_last(thread);
    return source_line(next_jump(code_offset(reinterpret_cast<const void*>(before))));
  }
  return "";
}

void Worker::sync_warp(unsigned mask) {
  if constexpr (COUNTING) observer_->pause();
  Carrier& self = *running_;
  if (!(mask & lane_bit(self.thread))) {
    throw KernelError(cudaErrorInvalidValue, "__syncwarp: the mask leaves out the calling lane");
  }
  Warp& warp = warps_[self.thread / WARP];
  self.warp_mask = mask;
  warp.waiting.push_back(&self);
  release_warp(warp, mask);
  wait(self);
  if constexpr (COUNTING) observer_->sync_warp(self.thread);
}

// Makes those ready that wait for the lanes in `mask`, once all of these are there.
void Worker::release_warp(Warp& warp, unsigned mask) {
  unsigned here = 0;
  for (const Carrier* carrier : warp.waiting) {
    if (carrier->warp_mask == mask) here |= lane_bit(carrier->thread);
  }
  if (mask & warp.alive & ~here) return;
  std::vector<Carrier*> others;
  for (Carrier* carrier : warp.waiting) {
    (carrier->warp_mask == mask ? ready_ : others).push_back(carrier);
  }
  warp.waiting.swap(others);
}

// ---- Tensor cores ----

void Worker::mma_tf32(const LaneProduct& product) {
  if constexpr (COUNTING) observer_->pause();
  Carrier& self = *running_;
  Warp& warp = warps_[self.thread / WARP];
  self.product = &product;
  if (!warp.products.empty()) {
    const Carrier& first = *warp.products.front();
    const LaneProduct& there = *first.product;
    if (there.line != product.line || std::string(there.file) != product.file) {
      throw KernelError(cudaErrorLaunchFailure, "mma_tf32() at " + place(product) +
                                                    ", but thread " +
                                                    to_string(thread_index_[first.thread]) +
                                                    " of the same warp is at " + place(there));
    }
  }
  warp.products.push_back(&self);
  if (warp.products.size() < WARP) return wait(self);
  const LaneProduct* lanes[WARP];
  for (const Carrier* carrier : warp.products) lanes[carrier->thread % WARP] = carrier->product;
  multiply(lanes);
  warp.products.pop_back();  // this one goes on at once
  if (next_ready_ == ready_.size()) ready_.clear(), next_ready_ = 0;
  ready_.insert(ready_.end(), warp.products.begin(), warp.products.end());
  warp.products.clear();
  if constexpr (COUNTING) observer_->mma();
}

// Some lanes wait for others, which will never come.
void Worker::fail_product(const Warp& warp) {
  const Carrier& first = *warp.products.front();
  uint32_t here = 0;
  for (const Carrier* carrier : warp.products) here |= lane_bit(carrier->thread);
  unsigned missing = first.thread / WARP * WARP;
  while (here & lane_bit(missing)) ++missing;
  fail(cudaErrorLaunchFailure, first.thread,
       "waits for ever at mma_tf32(), " + place(*first.product) + ": " + whereabouts(missing));
}

std::string Worker::whereabouts(unsigned thread) const {
  if (thread >= order_.size()) return "its warp has fewer than 32 threads";
  const std::string name = "thread " + to_string(thread_index_[thread]);
  const auto is_it = [&](const Carrier* carrier) { return carrier->thread == thread; };
  if (std::any_of(at_barrier_.begin(), at_barrier_.end(), is_it)) {
    return name + " waits at __syncthreads()";
  }
  const auto& waiting = warps_[thread / WARP].waiting;
  if (std::any_of(waiting.begin(), waiting.end(), is_it)) return name + " waits at __syncwarp()";
  return name + " has left the kernel without reaching it";
}

// ---- Ends ----

void Worker::leave(unsigned thread) {
  last_left_ = thread;
  Warp& warp = warps_[thread / WARP];
  warp.alive &= ~lane_bit(thread);
  const std::vector<Carrier*> waiting = warp.waiting;  // which release_warp() changes
  for (const Carrier* carrier : waiting) release_warp(warp, carrier->warp_mask);
}

// Keeps the first error.
void Worker::fail(cudaError_t code, unsigned thread, const std::string& message) {
  if (!error_) {
    error_ = KernelError(code, "block " + to_string(block_) + ", thread " +
                                   to_string(thread_index_[thread]) + ": " + message);
  }
  abandon_block();
}

// No more threads begin, and those that wait get a turn to unwind.
void Worker::abandon_block() {
  begun_ = static_cast<unsigned>(order_.size());
  at_barrier_.clear();
  for (Warp& warp : warps_) warp.waiting.clear(), warp.products.clear();
  ready_.clear();
  next_ready_ = 0;
  for (auto& carrier : carriers_) {
    if (carrier->waits) ready_.push_back(carrier.get());
  }
}

}  // namespace convladder::simulator

void __syncthreads() {
  convladder::simulator::current_worker->sync_threads(__builtin_return_address(0));
}
void __syncwarp(unsigned mask) { convladder::simulator::current_worker->sync_warp(mask); }

void convladder::simulator::mma_tf32(const LaneProduct& product) {
  current_worker->mma_tf32(product);
}
