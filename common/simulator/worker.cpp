#include "common/simulator/worker.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <new>
#include <numeric>
#include <string_view>

#include <fmt/format.h>
#include "common/core/platform.h"
#include "common/core/program.h"
#include "common/simulator/copy_queue.h"
#include "common/simulator/counting/block_observer.h"
#include "common/simulator/enqueueing.h"
#include "common/simulator/hopper.h"
#include "common/simulator/report.h"
#include "common/simulator/tensor_core.h"

namespace convladder::simulator {
namespace {

constexpr unsigned WARP = warpSize;

thread_local Worker* current_worker = nullptr;

// Blocks on different workers may be at the same word.
constexpr std::size_t ATOMIC_LOCKS = 1024;
std::atomic_flag atomic_locks[ATOMIC_LOCKS];

struct Abandoned {};  // thrown to unwind a thread after another one has failed

unsigned lane_bit(unsigned thread) { return 1u << thread % WARP; }

// "12_tensor_cores/tensor_cores.cu:41"
std::string to_string(Place place) {
  if (!place.file) return called_line(static_cast<uint32_t>(place.line));
  return shown_path(place.file) + ":" + std::to_string(place.line);
}

// "__shfl_sync(), reduce/reduce.cu:41"
std::string to_string(const LaneCall& call) {
  return std::string(call.name) + "(), " + to_string(call.place);
}

std::string hexadecimal(unsigned mask) {
  char text[16];
  std::snprintf(text, sizeof(text), "0x%08x", mask);
  return text;
}

bool operator==(Place a, Place b) {
  return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

}  // namespace

struct Worker::Carrier {
  explicit Carrier(Worker& worker) : fibre([this, &worker] { worker.run_threads(*this); }) {}

  Fibre fibre;
  CopyQueue copies;
  std::jmp_buf start;  // where stop_thread() goes
  unsigned thread = 0;
  bool waits = false;              // its thread waits for others
  const LaneCall* call = nullptr;  // for lanes of its warp
  uint64_t way = 0;                // the calls that have led there, where these matter
  Place place{"", 0};              // at __syncthreads(), or where it asks again
  const char* verb = "";           // of the latter: asks, or waits
  const void* key = nullptr;       // with which it sleeps
  unsigned asked = 0;              // atomic operations in a row that changed nothing
  const void* loaded = nullptr;    // by its last strong load
  uint64_t state = 0;              // of its thread, which asks again
};

Worker::Worker() : hopper_(std::make_unique<Hopper>(*this)) {
  if constexpr (COUNTING) {
    observer_ = std::make_unique<BlockObserver>(*this);
  }
  use_signal_stack();
}

Worker::~Worker() {
  closing_ = true;
  for (auto& carrier : carriers_) scheduler_.switch_to(carrier->fibre);
}

void Worker::run_block(const Grid& grid, uint64_t index) {
  start_block(grid, index);
  scheduler_.switch_to(next_turn());
  running_ = nullptr;
  if (std::exchange(idle_rounds_, 0) > 0) end_wait_for_other_blocks();
  if (error_) throw KernelError(*error_);
  if (out_of_memory_) throw std::bad_alloc();
  hopper_->end_block();
  if constexpr (COUNTING) observer_->end_block();
}

void Worker::start_block(const Grid& grid, uint64_t index) {
  memory_.fill_nan(grid.dynamic_bytes);  // all thread_locals, hence these:
  Enqueueing::forget();
  if constexpr (COUNTING) observer_->pause();
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
  if (grid.seed != 0) random_.shuffle(order_.begin(), order_.end());

  begun_ = 0;
  last_left_.reset();
  ready_.clear();
  next_ready_ = 0;
  at_barrier_.clear();
  predicates_ = 0;
  std::fill(std::begin(arrived_), std::end(arrived_), 0);
  spinning_.clear();
  asleep_.clear();
  hopper_->begin_block(order_.size(), immediate_copies_);
  progress_ = true;
  idle_rounds_ = 0;
  error_.reset();
  out_of_memory_ = false;
  for (std::size_t i = 0; i < warps_.size(); ++i) {
    const std::size_t lanes = order_.size() - i * WARP;
    warps_[i].alive = lanes >= WARP ? ~0u : (1u << lanes) - 1;
    warps_[i].waiting.clear();
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

unsigned Worker::running_thread() const { return running_->thread; }

int Worker::owner_of_local(const void* address) const {
  for (const auto& carrier : carriers_) {
    if (carrier->fibre.holds(address)) return static_cast<int>(carrier->thread);
  }
  return -1;
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
  if (setjmp(self.start) == 0) run_body(self);
  if constexpr (COUNTING) observer_->leave(thread);
  try {
    if (!error_) hopper_->leave(thread);
  } catch (const KernelError& error) {
    fail(error.code, thread, error.what());
  }
  self.waits = false;
  self.copies.clear();
  leave(thread);
}

// A thread's own variables begin as on a GPU, with what means nothing: not with what the last thread on this stack has
// left there. As far as registers go, and frames beside.
[[gnu::noinline]] void spoil_stack() {
  char below[8192];
  std::memset(below, 0xff, sizeof(below));  // NaN
  asm volatile("" ::"r"(below) : "memory");
}

void Worker::run_body(Carrier& self) {
  try {
    if constexpr (COUNTING) spoil_stack();
    grid_->body(grid_->argument);
  } catch (...) {
    if constexpr (COUNTING) observer_->pause();
    self.waits = false;
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
  if (!advancing_) running_->waits = false;
  fail(code, running_->thread, message);
  std::longjmp(advancing_ ? *advancing_ : running_->start, 1);
}

bool Worker::runs_kernel() const {
  if constexpr (COUNTING) return watching != nullptr;
  return running_ != nullptr;
}

void Worker::fail_by_signal(int signal, const void* address, const void* pc, const void* stack) {
  pause();
  if (std::atomic_flag* const lock = std::exchange(atomic_lock_, nullptr)) lock->clear();
  std::string what = fmt::format("touches memory that is nobody's ({})", address);
  if (!address) what = "touches memory at null, or not aligned to as many bytes";
  const Fibre& fibre = running_->fibre;
  if (fibre.holds(address) || !fibre.holds(stack)) what = "overflows its stack";
  if (signal == SIGFPE) what = "divides an integer by 0";
  // The compiler's word for what it has seen to be undefined.
  if (signal == SIGILL) what = "traps: a null pointer, or a function that ends without its result";
  uint32_t place = code_offset(pc) + 1;
  if (signal == NO_END) what = "has come to no end", place = before_empty_loop(place);
  stop_thread(signal == SIGFPE   ? cudaErrorLaunchFailure
              : signal == SIGILL ? cudaErrorIllegalInstruction
              : signal == NO_END ? cudaErrorLaunchTimeout
                                 : cudaErrorIllegalAddress,
              what + ", at " + source_line(place));
}

void Worker::take_turn(Carrier& self) {
  running_ = &self;
  threadIdx = thread_index_[self.thread];
  copy_queue = &self.copies;
  if constexpr (COUNTING) observer_->resume(self.thread, self.fibre);
}

// Lets others have their turn until the thread of `self` may go on.
void Worker::wait(Carrier& self) {
  self.waits = true;  // already: if the block fails now, this thread must unwind as well
  switch_to(self, next_turn());
}

void Worker::switch_to(Carrier& self, Fibre& next) {
  self.waits = true;
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

// ---- Waiting ----

int Worker::sync_threads(bool predicate, Place place) {
  if constexpr (COUNTING) observer_->leave(running_->thread);
  running_->place = place;
  at_barrier_.push_back(running_);
  predicates_ += predicate;
  wait(*running_);
  return agreed_;
}

void Worker::named_barrier(unsigned number, unsigned threads, bool waits, Place place) {
  if (number >= std::size(arrived_) || threads % WARP != 0) {
    throw KernelError(
        cudaErrorIllegalInstruction,
        fmt::format("barrier {} of {} threads at {}: numbers go to 15, threads come in warps",
                    number, threads, to_string(place)));
  }
  if constexpr (COUNTING) {
    observer_->pause();
    observer_->fence(true);
    observer_->tell_barrier(number);
    hopper_->meet(number, false);
  }
  const unsigned before = opened_[number];
  if (++arrived_[number] == threads) arrived_[number] = 0, ++opened_[number];
  note_progress();
  while (waits && opened_[number] == before) spin(place, "waits");
  if constexpr (COUNTING) {
    if (waits) observer_->look_barrier(number), hopper_->meet(number, true);
    observer_->go_on();
  }
}

// What runs on by itself, until a thread can go on. A copy that fails must not end the thread whose stack
// this is: that one waits, or has left.
void Worker::advance() {
  std::jmp_buf here;
  if (setjmp(here) == 0) {
    advancing_ = &here;
    try {
      while (next_ready_ == ready_.size() && hopper_->advance()) continue;
    } catch (const KernelError& error) {
      fail(error.code, last_left_.value_or(0), error.what());
    }
  }
  advancing_ = nullptr;
}

// Called when no thread can go on: all wait, ask again, or have left, or the kernel is wrong.
void Worker::release_block() {
  if (release_converged()) return;
  // Where all have come to __syncthreads(), nobody waits for what runs on by itself.
  const bool waits = !spinning_.empty() || !asleep_.empty() || at_barrier_.size() < order_.size();
  if (waits) advance();
  if (error_ || next_ready_ < ready_.size()) return;
  if (!spinning_.empty()) return go_round();
  if (!asleep_.empty()) return fail_asleep();
  if (at_barrier_.size() < order_.size()) return fail_waiting();
  const Carrier& first = *at_barrier_.front();
  for (const Carrier* other : at_barrier_) {
    if (!(other->place == first.place)) return fail_apart(first, *other);
  }
  open_barrier();
}

// All that are still there have come to the barrier.
void Worker::open_barrier() {
  note_progress();
  agreed_ = std::exchange(predicates_, 0);
  make_ready(at_barrier_);
  at_barrier_.clear();
  if constexpr (COUNTING) observer_->sync_threads();
}

void Worker::make_ready(const std::vector<Carrier*>& carriers) {
  progress_ = true;
  if (next_ready_ == ready_.size() || next_ready_ > 2 * order_.size()) {
    ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(next_ready_));
    next_ready_ = 0;
  }
  const auto first = ready_.insert(ready_.end(), carriers.begin(), carriers.end());
  if (grid_->seed != 0) random_.shuffle(first, ready_.end());
}

// Under some seeds others go on at once, those that have not begun first: who waits for what this thread has done
// may be quick.
void Worker::give_way() {
  if (grid_->seed % 4 != 3 || random_.next() % 2 == 0) return;
  make_ready({running_});
  if (begun_ < order_.size()) {
    switch_to(*running_, free_fibre());
  } else {
    wait(*running_);
  }
  if constexpr (COUNTING) observer_->pause();
}

void Worker::spin(Place place, const char* verb) {
  if constexpr (COUNTING) observer_->pause();
  running_->place = place;
  running_->verb = verb;
  running_->state = running_->fibre.digest();
  spinning_.push_back(running_);
  wait(*running_);
}

void Worker::sleep(const void* key, const void* pc) {
  running_->place = {nullptr, static_cast<int>(code_offset(pc))};
  running_->key = key;
  asleep_.push_back(running_);
  wait(*running_);
  if constexpr (COUNTING) observer_->pause();
}

void Worker::wake(const void* key) {
  const auto first = std::stable_partition(
      asleep_.begin(), asleep_.end(), [&](const Carrier* carrier) { return carrier->key != key; });
  if (first == asleep_.end()) return;
  const std::vector<Carrier*> awake(first, asleep_.end());
  asleep_.erase(first, asleep_.end());
  note_progress();
  make_ready(awake);
}

std::size_t Worker::draw(std::size_t count) {
  return grid_->seed == 0 ? 0 : random_.next() % count;
}

// Who waits for whom: of those that wait at one place for the same, one.
void Worker::fail_asleep() {
  std::string text;
  std::vector<const Carrier*> told;
  for (const Carrier* carrier : asleep_) {
    const auto is_same = [&](const Carrier* other) {
      return other->key == carrier->key && other->place.line == carrier->place.line;
    };
    if (std::any_of(told.begin(), told.end(), is_same) || told.size() == 8) continue;
    text += told.empty()
                ? "waits for ever at "
                : "; thread " + simulator::to_string(thread_index_[carrier->thread]) + " at ";
    text += to_string(carrier->place) + ' ' + hopper_->reason(carrier->key, carrier->thread);
    told.push_back(carrier);
  }
  if (!at_barrier_.empty()) text += "; " + whereabouts(at_barrier_.front()->thread);
  fail(cudaErrorLaunchTimeout, told.front()->thread, text);
}

void Worker::note_progress() {
  progress_ = true;
  if (std::exchange(idle_rounds_, 0) > 0) end_wait_for_other_blocks();
}

// The block's first thread waits for the other blocks, and the others for it.
void Worker::sync_grid(Place place) {
  if (!is_cooperative()) {
    fail_kernel("not launched by cudaLaunchCooperativeKernel(), it waits for the grid", place);
  }
  sync_threads(false, place);
  if (running_->thread == 0) {
    fence();
    const uint64_t blocks = uint64_t{grid_->blocks.x} * grid_->blocks.y * grid_->blocks.z;
    const uint64_t all = (grid_arrivals++ / blocks + 1) * blocks;
    note_progress();
    while (grid_arrivals < all) spin(place, "waits");
    if constexpr (COUNTING) observer_->look_all();
  }
  sync_threads(false, place);
}

// Where nothing has happened, threads that have the state of a round before will have it for ever. The round to
// compare with is one further back each time: 1, 2, 4, ... (Brent's way to find a cycle).
bool Worker::repeats() {
  uint64_t state = 0;
  for (const Carrier* carrier : spinning_) state += carrier->state * (2 * carrier->thread + 1);
  has_repeated_ |= state == state_before_;
  if ((idle_rounds_ & (idle_rounds_ - 1)) == 0) {
    state_before_ = state;
    repeats_ = std::exchange(has_repeated_, false);
  }
  return repeats_ || has_repeated_;
}

// Those that ask again do so, if need be after other blocks have had time.
void Worker::go_round() {
  if (!progress_) {
    const bool same = repeats();
    const std::string reason = wait_for_other_blocks(idle_rounds_++, same);
    if (!reason.empty()) {
      const Carrier& first = *spinning_.front();
      const std::string place = to_string(first.place);
      return fail(
          cudaErrorLaunchTimeout, first.thread,
          same ? fmt::format("{} for ever at {}: {}", first.verb, place, reason)
               : fmt::format("has come to no end: it {} at {}, and nothing has changed for {} s",
                             first.verb, place, PATIENCE.count()));
    }
  } else if (idle_rounds_ > 0) {
    idle_rounds_ = 0;
    end_wait_for_other_blocks();
  }
  make_ready(spinning_);
  spinning_.clear();
  progress_ = false;
}

void Worker::begin_atomic(void* address, std::size_t bytes, Atomic kind, const void* pc) {
  const bool ignored = std::exchange(result_ignored_, false) && kind != Atomic::kHalf;
  is_reduction_ = ignored;
  if constexpr (COUNTING) {
    observer_->pause();
    observer_->access({reinterpret_cast<uintptr_t>(address), static_cast<unsigned>(bytes),
                       Operation::kAtomic, pc, way_of(kind, ignored), true});
  } else {
    static_cast<void>(pc);
  }
  if (reinterpret_cast<uintptr_t>(address) % bytes != 0) {
    throw KernelError(cudaErrorMisalignedAddress, "an atomic operation's address is not aligned");
  }
  atomic_lock_ = &atomic_locks[reinterpret_cast<uintptr_t>(address) / 64 % ATOMIC_LOCKS];
  while (atomic_lock_->test_and_set(std::memory_order_acquire)) {
  }
}

void Worker::end_atomic(bool changed, Place place) {
  std::exchange(atomic_lock_, nullptr)->clear(std::memory_order_release);
  if (changed) note_progress();
  if (changed || !is_reduction_) ask(changed, place);  // one that adds 0 asks for nothing
  if constexpr (COUNTING) observer_->go_on();
}

void Worker::atomic_next() const {
  if constexpr (COUNTING) observer_->atomic_next();
}

void Worker::note_strong(const void* address, bool store, Place place) {
  if constexpr (COUNTING) return;
  if (store) note_progress();
  ask(store || std::exchange(running_->loaded, address) != address, place);
}

void Worker::ask(bool changed, Place place) {
  running_->asked = changed ? 0 : running_->asked + 1;
  if (running_->asked > 1) spin(place);
}

void Worker::pause() const {
  if constexpr (COUNTING) observer_->pause();
}

void Worker::go_on() const {
  if constexpr (COUNTING) observer_->go_on();
}

// Once for each place.
// What CUDA leaves undefined: a program goes on, as on a GPU.
void Worker::note(Place place, const std::function<std::string()>& describe) {
  if constexpr (COUNTING) {
    if (!is_program()) {  // threads end when they have waited
      if (!error_)
        error_ = KernelError(cudaErrorLaunchFailure,
                             "block " + simulator::to_string(block_) + ": " + describe());
      return;
    }
    const std::size_t hash = std::hash<std::string>()(to_string(place));
    add_finding(read_symbols(grid_->kernel).name, static_cast<uint32_t>(hash) | 1, 0,
                [&] { return "block " + simulator::to_string(block_) + ": " + describe(); });
  }
}

void Worker::fence(bool in_block) {
  if constexpr (COUNTING) {
    observer_->pause();
    observer_->fence(in_block);
    hopper_->fence();
    observer_->go_on();
  }
}

void Worker::wait_for_kernel_before() {
  if constexpr (COUNTING) {
    observer_->pause();
    observer_->wait_for_kernel_before();
    observer_->go_on();
  }
}

// ---- What the lanes of a warp do together ----

void Worker::meet(const LaneCall& call) {
  if constexpr (COUNTING) observer_->pause(), observer_->look_again();
  Carrier& self = *running_;
  Warp& warp = warps_[self.thread / WARP];
  const bool any = call.mask == 0 && std::strcmp(call.name, "__activemask") == 0;
  if (any) self.way = way_here();
  if (!any && !(call.mask & lane_bit(self.thread))) {
    throw KernelError(cudaErrorInvalidValue,
                      to_string(call) + ": the mask " + hexadecimal(call.mask) +
                          " leaves out the calling lane, " + std::to_string(self.thread % WARP));
  }
  const LaneCall* const last = warp.waiting.empty() ? &call : warp.waiting.back()->call;
  warp.alike = (warp.alike || warp.waiting.empty()) && call.mask == last->mask &&
               call.name == last->name && call.place == last->place;
  if (!warp.alike) {
    for (const Carrier* other : warp.waiting) require_agreement(call, *other);
  }
  self.call = &call;
  warp.waiting.push_back(&self);
  if (!any) release_lanes(warp, call.mask);
  wait(self);
  if constexpr (COUNTING) {
    if (call.is_barrier()) observer_->sync_warp(self.thread);
  }
}

// A number for the lines of the calls that are under way. A function that both arms of a branch call is at two places,
// as on a GPU, where it is inlined; code that the compiler has doubled is at one.
uint64_t Worker::way_here() {
  const void* frames[32];
  const std::size_t count = return_addresses(frames, std::size(frames));
  const std::string_view key(reinterpret_cast<const char*>(frames), count * sizeof(*frames));
  const auto [known, is_new] = ways_.try_emplace(std::hash<std::string_view>()(key));
  if (is_new) {
    std::vector<uint32_t> codes;
    for (std::size_t i = 0; i < count; ++i) codes.push_back(code_offset(frames[i]));
    std::string all;
    for (const std::vector<std::string>& lines : source_lines(codes)) {
      for (const std::string& line : lines) all += line + '\n';
    }
    known->second = std::hash<std::string>()(all);
  }
  return known->second;
}

// Two lanes that wait for each other must ask for the same.
void Worker::require_agreement(const LaneCall& call, const Carrier& other) const {
  const LaneCall& there = *other.call;
  if (!(call.mask & lane_bit(other.thread)) || !(there.mask & lane_bit(running_->thread))) return;
  const bool same = call.mask == there.mask && std::strcmp(call.name, there.name) == 0;
  if (same && (!call.needs_all_lanes() || call.place == there.place)) return;
  const auto with_mask = [&](const LaneCall& one) {
    return to_string(one) +
           (call.mask == there.mask ? "" : ", with the mask " + hexadecimal(one.mask));
  };
  throw KernelError(cudaErrorLaunchFailure, with_mask(call) + ", but thread " +
                                                simulator::to_string(thread_index_[other.thread]) +
                                                " of the same warp is at " + with_mask(there));
}

// Lets those go on that wait for the lanes in `mask`, once all of these are there; or those that wait as `like` does,
// for no lane in particular.
void Worker::release_lanes(Warp& warp, unsigned mask, const Carrier* like) {
  const std::size_t waited_for = __builtin_popcount(mask & warp.alive);
  if (!like && warp.waiting.size() < waited_for) return;  // most
  const auto is_meant = [&](const Carrier* carrier) {
    return carrier->call->mask == mask &&
           (!like || (carrier->call->place == like->call->place && carrier->way == like->way));
  };
  unsigned lanes = 0;
  const LaneCall* first = nullptr;
  for (const Carrier* carrier : warp.waiting) {
    if (!is_meant(carrier)) continue;
    lanes |= lane_bit(carrier->thread);
    if (!first) first = carrier->call;
  }
  if (!first) return;
  const LaneCall& call = *first;
  const bool all = call.needs_all_lanes();  // even those that have left
  if (mask & (all ? ~0u : warp.alive) & ~lanes) return;
  std::vector<Carrier*> here, others;
  void* parts[WARP] = {};
  for (Carrier* carrier : warp.waiting) {
    (is_meant(carrier) ? here : others).push_back(carrier);
    if (is_meant(carrier)) parts[carrier->thread % WARP] = carrier->call->part;
  }
  if (call.act) call.act(parts, lanes);
  if constexpr (COUNTING) {
    if (call.kind == LaneCall::Kind::kMatrix) observer_->mma(call.instructions);
    observer_->shuffle(call.words);
    if (call.is_barrier()) {
      observer_->order_lanes(here[0]->thread / WARP, lanes);
      hopper_->sync_lanes(here[0]->thread / WARP, lanes);
    }
  }
  warp.waiting.swap(others);
  note_progress();
  make_ready(here);
}

// Lanes that have come to one place, and wait for whoever else may come: nobody can any more.
bool Worker::release_converged() {
  bool any = false;
  for (Warp& warp : warps_) {
    const auto converges = [](const Carrier* carrier) { return carrier->call->mask == 0; };
    for (;;) {
      const auto first = std::find_if(warp.waiting.begin(), warp.waiting.end(), converges);
      if (first == warp.waiting.end()) break;
      const Carrier& like = **first;
      release_lanes(warp, 0, &like);
      any = true;
    }
  }
  return any;
}

// Some wait for others, which will never come.
void Worker::fail_waiting() {
  for (const Warp& warp : warps_) {
    if (warp.waiting.empty()) continue;
    const Carrier& first = *warp.waiting.front();
    unsigned here = 0;
    for (const Carrier* carrier : warp.waiting) {
      if (carrier->call->mask == first.call->mask) here |= lane_bit(carrier->thread);
    }
    const bool all = first.call->needs_all_lanes();
    unsigned missing = first.thread / WARP * WARP;
    while (!(first.call->mask & (all ? ~0u : warp.alive) & ~here & lane_bit(missing))) ++missing;
    return fail(cudaErrorLaunchFailure, first.thread,
                "waits for ever at " + to_string(*first.call) + ": " + whereabouts(missing));
  }
  if (at_barrier_.empty()) return;
  const Carrier& first = *at_barrier_.front();
  const std::string came =
      fmt::format("{} of {} threads have come", at_barrier_.size(), order_.size());
  if constexpr (COUNTING) {
    if (is_program()) {  // a GPU goes on, though CUDA promises nothing
      note(first.place, [&] {
        return fmt::format(
            "{} to __syncthreads() at {}, the others have left the kernel, thread {} at {}", came,
            to_string(first.place), simulator::to_string(thread_index_[*last_left_]),
            line_of_leaving(*last_left_));
      });
      return open_barrier();
    }
  }
  fail(cudaErrorLaunchFailure, first.thread,
       "waits for ever at __syncthreads(), " + to_string(first.place) + ", where " + came + ": " +
           whereabouts(*last_left_));
}

// Threads that wait at two barriers. A GPU may let them pass, though CUDA promises nothing: a program goes on.
void Worker::fail_apart(const Carrier& first, const Carrier& other) {
  const std::string apart =
      "waits at __syncthreads(), " + to_string(first.place) + ", but " + whereabouts(other.thread);
  if (!is_program()) return fail(cudaErrorLaunchFailure, first.thread, apart);
  note(first.place, [&] {
    return fmt::format("thread {} {}", simulator::to_string(thread_index_[first.thread]), apart);
  });
  open_barrier();
}

// The branch before the thread's last block; or where it has been last, if there is none.
std::string Worker::line_of_leaving(unsigned thread) const {
  if constexpr (COUNTING) {
    const auto offset = [](uint64_t code) {
      return code_offset(reinterpret_cast<const void*>(code));
    };
    const uint64_t before = observer_->code_before_last(thread);
    return source_line(before ? next_jump(offset(before)) : offset(observer_->last_code(thread)));
  }
  static_cast<void>(thread);
  return "";
}

std::string Worker::whereabouts(unsigned thread) const {
  if (thread >= order_.size()) return "its warp has fewer than 32 threads";
  const std::string name = "thread " + simulator::to_string(thread_index_[thread]);
  for (const Carrier* carrier : asleep_) {
    if (carrier->thread == thread) return name + " waits at " + to_string(carrier->place);
  }
  for (const Carrier* carrier : at_barrier_) {
    if (carrier->thread == thread) {
      return name + " waits at __syncthreads(), " + to_string(carrier->place);
    }
  }
  for (const Carrier* carrier : warps_[thread / WARP].waiting) {
    if (carrier->thread == thread) return name + " waits at " + to_string(*carrier->call);
  }
  return name + " has left the kernel without reaching it";
}

// ---- Ends ----

// As CUDA words it, on stderr.
void Worker::fail_assertion(const char* text, const char* function, Place place) const {
  pause();
  const uint3 thread = thread_index_[running_->thread];
  std::fprintf(stderr, "%s:%d: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n",
               place.file, place.line, function, block_.x, block_.y, block_.z, thread.x, thread.y,
               thread.z, text);
  throw KernelError(cudaErrorAssert,
                    std::string("assertion `") + text + "` failed at " + to_string(place));
}

void Worker::leave(unsigned thread) {
  last_left_ = thread;
  note_progress();
  Warp& warp = warps_[thread / WARP];
  warp.alive &= ~lane_bit(thread);
  std::vector<unsigned> masks;  // a copy, since release_lanes() changes those that wait
  for (const Carrier* carrier : warp.waiting) masks.push_back(carrier->call->mask);
  for (const unsigned mask : masks) {
    if (mask != 0) release_lanes(warp, mask);
  }
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
  spinning_.clear();
  asleep_.clear();
  for (Warp& warp : warps_) warp.waiting.clear();
  ready_.clear();
  next_ready_ = 0;
  for (auto& carrier : carriers_) {
    if (carrier->waits) ready_.push_back(carrier.get());
  }
}

Worker& this_worker() {
  if (current_worker) return *current_worker;
  std::fprintf(stderr, "%s: the host calls what only kernels can call\n", calling_line().c_str());
  std::abort();
}

int sync_threads(bool predicate, Place place) {
  return this_worker().sync_threads(predicate, place);
}
void named_barrier(unsigned number, unsigned threads, bool waits, Place place) {
  this_worker().named_barrier(number, threads, waits, place);
}
void meet(const LaneCall& call) { this_worker().meet(call); }

// Not in tensor_core.cpp, which GPU builds hold against the tensor core.
void multiply(const char* name, LaneProduct& part, Place place) {
  const int instructions = part.d == LaneProduct::kInteger ? 0 : 1;  // of the pipe for floats
  meet({name, place, ~0u, LaneCall::Kind::kMatrix, &part,
        [](void* const* parts, unsigned) { multiply(parts); }, instructions});
}

void multiply_tf32(float* d, const float* a, const float* b, const float* c, Place place) {
  using Part = LaneProduct;
  Part part = {Part::kFloat, Part::kTf32, Part::kTf32, Part::kFloat, 8, {}, {}, {}, {}};
  std::memcpy(part.left, a, sizeof(part.left));
  std::memcpy(part.right, b, 2 * sizeof(float));
  std::memcpy(part.addend, c, sizeof(part.addend));
  multiply("mma_tf32", part, place);
  std::memcpy(d, part.result, sizeof(part.result));
}

void spin(Place place) { this_worker().spin(place); }
void sync_grid(Place place) { this_worker().sync_grid(place); }
bool is_cooperative() { return this_worker().is_cooperative(); }
void ignore_result() { this_worker().ignore_result(); }
void atomic_next() { this_worker().atomic_next(); }
void note_strong(const void* address, bool store, Place place) {
  this_worker().note_strong(address, store, place);
}
thread_local bool is_host_atomic =
    false;  // for workers it means nothing: theirs is filled before each block
std::mutex host_atomics;

bool host_atomic() {
  if (!current_worker) is_host_atomic = true;
  return !current_worker;
}
void begin_atomic(void* address, std::size_t bytes, Atomic kind) {
  if (!current_worker && is_host_atomic) return host_atomics.lock();
  this_worker().begin_atomic(address, bytes, kind, __builtin_return_address(0));
}
void end_atomic(bool changed, Place place) {
  if (current_worker || !is_host_atomic) return this_worker().end_atomic(changed, place);
  is_host_atomic = false;
  host_atomics.unlock();
}
void fence(bool in_block) { this_worker().fence(in_block); }
void wait_for_kernel_before() { this_worker().wait_for_kernel_before(); }
std::size_t shared_offset(const void* pointer) {
  const SharedMemory& memory = this_worker().memory();
  return memory.contains(pointer, 1) ? static_cast<const char*>(pointer) - memory.zero()
                                     : ~std::size_t{0};
}
char* shared_pointer(std::size_t offset) { return this_worker().memory().zero() + offset; }
unsigned lane_id() { return this_worker().running_thread() % WARP; }

bool runs_kernel() { return current_worker && current_worker->runs_kernel(); }

void fail_running_kernel(int signal, const void* address, const void* pc, const void* stack) {
  if (runs_kernel()) current_worker->fail_by_signal(signal, address, pc, stack);
}

void note_end_of_running_kernel(int signal) {
  if (!runs_kernel()) return;
  current_worker->pause();  // from here on memory is the host's
  current_worker->note({"signal", signal}, [&] {
    return "is ended by " + signal_name(signal) + ", at " + calling_line();
  });
}

uint64_t clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void note_undefined(const char* name, Place place, unsigned lane, unsigned source, unsigned lanes) {
  const auto describe = [=] {
    return std::string(name) + "(), " + to_string(place) + ": lane " + std::to_string(lane) +
           " reads of lane " + std::to_string(source) + ", but the lanes that take part are " +
           hexadecimal(lanes) + ": what it gets is undefined";
  };
  current_worker->note(place, describe);
}

void note_matrix(const char* name, Place place, unsigned stride, unsigned multiple) {
  current_worker->pause();
  current_worker->note(place, [=] {
    const std::string what = stride % multiple == 0
                                 ? "the matrix is not aligned to 32 bytes"
                                 : fmt::format("ldm is {}, not a multiple of {}", stride, multiple);
    return fmt::format("{}(), {}: {}", name, to_string(place), what);
  });
  current_worker->go_on();
}

void fail_copy(cudaError_t code, const char* what, Place place) {
  throw KernelError(code,
                    fmt::format("__pipeline_memcpy_async: {}, at {}", what, to_string(place)));
}

void fail_assertion(const char* text, const char* function, Place place) {
  if (current_worker) current_worker->fail_assertion(text, function, place);
  std::fprintf(stderr, "%s:%d: %s: Assertion `%s` failed.\n", place.file, place.line, function,
               text);
  std::abort();
}

void fail_kernel(const char* what, Place place, const char* more) {
  current_worker->pause();
  throw KernelError(cudaErrorLaunchFailure, std::string(what) + more + " at " + to_string(place));
}

}  // namespace convladder::simulator
