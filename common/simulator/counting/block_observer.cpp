#include "common/simulator/counting/block_observer.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>
#include "common/simulator/launch.h"
#include "common/simulator/report.h"

namespace convladder::simulator {
namespace {

constexpr unsigned WARP = warpSize;

// Where a kernel is taken for one that never ends: accesses and turns of loops of one thread between
// two barriers, and barriers of one block. A thousand times what any layer needs. Others' programs may
// have a single thread do all of their work.
constexpr std::size_t MOST_STEPS = std::size_t{1} << 24, MOST_OF_PROGRAM = std::size_t{1} << 30;
constexpr unsigned MOST_BARRIERS = 1u << 16, MOST_BARRIERS_OF_PROGRAM = 1u << 24;

// Behind a block's shared memory lies what the system keeps of its thread: no array of the host.
constexpr std::size_t BEHIND_SHARED = 2048;

std::atomic<int64_t> reads_in_vain{0};

unsigned most_barriers() { return is_program() ? MOST_BARRIERS_OF_PROGRAM : MOST_BARRIERS; }

std::string plural(uint64_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace

// ---- The course of a block ----

BlockObserver::BlockObserver(Worker& worker) : worker_(worker) {}

void BlockObserver::begin_block(const Grid& grid, uint64_t block) {
  watching = nullptr;  // thread-local storage has just been filled with NaN
  observing = this;
  launch_ = &current_launch();
  grid_ = grid.blocks;
  block_ = block;
  threads_ = grid.threads.x * grid.threads.y * grid.threads.z;
  interval_ = 0;
  most_steps_ = counts_accesses_ ? MOST_STEPS : MOST_OF_PROGRAM;
  phase_.assign(threads_, 0);
  known_lanes_.assign(threads_, {});
  fences_.assign(threads_, 0);
  seen_.assign(threads_, 0);
  told_.assign(threads_, 0);
  told_in_block_.assign(threads_, 0);
  asked_.assign(threads_, {});
  block_seen_ = block_told_ = 0;
  told_here_.clear();
  waited_.assign(launch_->before.symbols ? threads_ : 0, 0);
  logs_.resize(std::max<std::size_t>(logs_.size(), threads_));
  for (unsigned thread = 0; thread < threads_; ++thread) logs_[thread].restart();
  left_.assign((threads_ + WARP - 1) / WARP, 0);
  counts_ = {};
  products_ = 0;
  block_products_ = launch_->products;
  if (any_partly_written_) std::fill(partly_written_.begin(), partly_written_.end(), uint8_t{0});
  any_partly_written_ = false;
  if (launch_->number == launch_number_) return;

  launch_number_ = launch_->number;
  std::fill(std::begin(recent_), std::end(recent_), nullptr);
  std::fill(std::begin(recent_variables_), std::end(recent_variables_), nullptr);
  found_ = nullptr;
  shared_begin_ = reinterpret_cast<uintptr_t>(worker_.memory().begin);
  shared_bytes_ = worker_.memory().bytes;
  shared_shadow_.resize(shared_bytes_ / 4 + 1);
  partly_written_.resize(shared_shadow_.size());
  worker_.memory().for_each_part(grid.dynamic_bytes, [&](std::size_t offset, std::size_t bytes) {
    std::fill_n(shared_shadow_.begin() + offset / 4, (bytes + 3) / 4, ShadowWord());
  });
  variables_ = launch_->symbols->shared;
  variables_.push_back(
      {"dynamic shared memory", worker_.memory().dynamic_offset(), grid.dynamic_bytes});
}

void BlockObserver::end_block() {
  counts_.blocks = 1;
  counts_.barriers = interval_;
  counts_.products = static_cast<double>(products_);
  warp_log_.take_instructions(counts_);
  add_block(counts_);
}

void BlockObserver::resume(unsigned thread, const Fibre& fibre) {
  thread_ = thread;
  log_ = &logs_[thread];
  fibre_ = &fibre;
  if (!log_->has_memory() && !memory_.empty()) {
    log_->take_memory(std::move(memory_.back()));
    memory_.pop_back();
  }
  stamp_ = stamp(thread);
  polled_ = 0;
  // Each access is for access() then, which looks for what the kernel before has touched.
  if (overlaps()) std::fill(std::begin(recent_), std::end(recent_), nullptr);
  go_on();
  forget_known();
}

// When all lanes of a warp have left, their logs are put together.
void BlockObserver::leave(unsigned thread) {
  look_again();
  watching = nullptr;
  if (!counts_accesses_) return logs_[thread].clear();
  const unsigned warp = thread / WARP, lanes = std::min(WARP, threads_ - warp * WARP);
  if (++left_[warp] < lanes) return;
  left_[warp] = 0;
  warp_log_.add(&logs_[warp * WARP], lanes, counts_);
  if (TracedWarp* const traced = traced_warp(block_, warp)) {
    warp_log_.for_each(
        [&](uint64_t what, const WarpAccess& access) { keep(*traced, what, access); });
  }
  for (unsigned lane = 0; lane < lanes; ++lane) {
    LaneLog& log = logs_[warp * WARP + lane];
    log.clear();
    memory_.push_back(log.give_memory());
  }
}

void BlockObserver::order_lanes(unsigned warp, uint32_t lanes) {
  const unsigned first = warp * WARP, end = std::min(threads_, first + WARP);
  unsigned phase = 0;
  std::array<uint32_t, WARP> known{};
  for (unsigned thread = first; thread < end; ++thread) {
    if (!(lanes >> (thread - first) & 1)) continue;
    phase = std::max(phase, phase_[thread] + 1);
    for (unsigned lane = 0; lane < WARP; ++lane) {
      known[lane] = std::max(known[lane], known_lanes_[thread][lane]);
    }
  }
  for (unsigned thread = first; thread < end; ++thread) {
    if (lanes >> (thread - first) & 1) known[thread - first] = phase_[thread] = phase;
  }
  for (unsigned thread = first; thread < end; ++thread) {
    if (lanes >> (thread - first) & 1) known_lanes_[thread] = known;
  }
}

void BlockObserver::sync_warp(unsigned thread) {
  stamp_ = stamp(thread);
  const unsigned first = thread / WARP * WARP;
  const unsigned end = std::min(threads_, first + WARP);
  if (publication_time() > 0) {
    for (unsigned lane = first; lane < end; ++lane) {
      seen_[thread] = std::max(seen_[thread], seen_[lane]);
      told_[thread] = std::max(told_[thread], told_[lane]);
      told_in_block_[thread] = std::max(told_in_block_[thread], told_in_block_[lane]);
    }
  }
  if (overlaps()) {
    waited_[thread] = *std::max_element(waited_.begin() + first, waited_.begin() + end);
  }
  go_on();
  forget_known();
}

void BlockObserver::sync_threads() {
  if (++interval_ >= most_barriers()) most_steps_ = 0;
  worker_.hopper().sync_threads();
  if (publication_time() > 0) {
    for (unsigned thread = 0; thread < threads_; ++thread) {
      block_seen_ = std::max(block_seen_, seen_[thread]);
      block_told_ = std::max(block_told_, told_[thread]);
      fences_[thread] = 0;
    }
  }
  if (!waited_.empty() && *std::max_element(waited_.begin(), waited_.end())) {
    waited_.assign(threads_, 1);
  }
}

void BlockObserver::wait_for_kernel_before() {
  if (overlaps()) waited_[thread_] = 1;
}

// ---- What fences order ----

void BlockObserver::fence(bool in_block) {
  constexpr uint8_t MOST = 3;
  look_again();
  (in_block ? told_in_block_ : told_)[thread_] =
      publish(stamp_, !waited_.empty() && waited_[thread_], in_block);
  fences_[thread_] = std::min<uint8_t>(fences_[thread_] + 1, MOST);
  stamp_ = stamp(thread_);
  forget_known();
}

void BlockObserver::look_all() { look(publication_time()); }

void BlockObserver::look(uint64_t time) {
  if (time == 0) return;
  seen_[thread_] = std::max(seen_[thread_], time);
  forget_known();
  worker_.hopper().look();
}

void BlockObserver::look_again() {
  const Words asked = std::exchange(asked_[thread_], {});
  uint64_t time = 0;
  for (uintptr_t word = asked.begin; word < asked.end; ++word) {
    time = std::max(time, told_here(word));
    if (!is_shared(word * 4)) time = std::max(time, simulator::told(word));
  }
  look(time);
}

void BlockObserver::tell(const Access& access) {
  if (told_in_block() == 0) return;
  for (uintptr_t word = access.address / 4; word * 4 < access.address + access.bytes; ++word) {
    tell_here(word);
    if (!is_shared(access.address) && told() > 0) simulator::tell(word, told());
  }
}

void BlockObserver::tell_here(uintptr_t word) {
  uint64_t& time = told_here_[word];
  time = std::max(time, told_in_block());
}

uint64_t BlockObserver::told_here(uintptr_t word) const {
  const auto found = told_here_.find(word);
  return found == told_here_.end() ? 0 : found->second;
}

// A loop that never ends comes through here, and recursion: at every turn, or once there are too many.
void BlockObserver::enter_again(const void* pc) {
  if (counts_accesses_) {
    log_->jump_to(pc, warp_log_.loops());
    products_ += block_products_.of(pc);
  }
  if (!fibre_->has_room()) {
    worker_.stop_thread(cudaErrorIllegalAddress,
                        "overflows its stack, at " + source_line(code_offset(pc)));
  }
  if (log_->steps() < most_steps_) return;
  worker_.stop_thread(
      cudaErrorLaunchFailure,
      "has come to no end after " +
          (most_steps_ > 0 ? plural(most_steps_, "step") : plural(most_barriers(), "barrier")) +
          ", at " + source_line(code_offset(pc)));
}

// ---- Accesses ----

// A strong one is told of before it is made. Of which time the word tells by the time that it is made, nobody knows
// before the thread's next step.
void BlockObserver::access(const Access& access) {
  const bool is_shown = access.strong && publication_time() > 0 &&
                        !fibre_->holds(reinterpret_cast<const void*>(access.address));
  look_again();
  if (is_shown && access.operation != Operation::kLoad) tell(access);
  access_memory(access);
  if (!access.strong || access.operation == Operation::kStore) return;
  asked_[thread_] = {access.address / 4, (access.address + access.bytes + 3) / 4};
}

void BlockObserver::access_memory(const Access& access) {
  if (recent(access.address)) {  // as of most
    check_global(access);
    return enter(access, Space::kGlobal, access.address);
  }
  if (fibre_->holds(reinterpret_cast<const void*>(access.address))) {  // the thread's own
    if (worker_.hopper().has_pending_sums()) access_own(access);
    return;
  }
  if (access.address - reinterpret_cast<uintptr_t>(launch_->argument) < launch_->argument_bytes) {
    return;  // the kernel's arguments
  }
  if (!is_shared(access.address)) {
    access_global(access);
  } else if (!is_index(access.address)) {
    access_shared(access);
  } else if (access.operation != Operation::kLoad) {
    worker_.stop_thread(
        cudaErrorIllegalAddress,
        "writes to threadIdx, blockIdx, blockDim or gridDim, which are constant, at " +
            source_line(code_offset(access.pc)));
  }
}

bool BlockObserver::is_own(const void* begin, std::size_t bytes) const {
  return bytes > 0 && !worker_.hopper().has_pending_sums() && fibre_->holds(begin) &&
         fibre_->holds(static_cast<const char*>(begin) + bytes - 1);
}

bool BlockObserver::is_of_the_host(const void* pointer) const {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  return address - reinterpret_cast<uintptr_t>(launch_->argument) >= launch_->argument_bytes &&
         !fibre_->holds(pointer) && !is_device_variable(pointer) &&
         !find(launch_->memory, address) && !find(device_memory(), address);
}

void BlockObserver::access_own(const Access& access) {
  const std::string what =
      worker_.hopper().touch_own(reinterpret_cast<const void*>(access.address));
  if (what.empty()) return;
  object(access, 1, [&] {
    return std::string(access.operation == Operation::kLoad ? "reads " : "writes ") + what +
           ", at " + source_line(code_offset(access.pc));
  });
}

void BlockObserver::access_shared(const Access& access) {
  if (!is_shared_variable(access)) return;
  require_aligned(access);
  enter(access, Space::kShared, access.address - shared_begin_);
  check_shared(access);
}

void BlockObserver::check_shared(const Access& access) {
  Hopper& hopper = worker_.hopper();
  const bool write = access.operation != Operation::kLoad;
  const bool atomic = access.operation == Operation::kAtomic;
  Touch now = touch_of(access);
  now.stamp.strong = atomic || access.atomic;
  now.stamp.in_flight = access.operation == Operation::kCopy;
  const std::size_t first = (access.address - shared_begin_) / 4;
  const std::size_t last = (access.address + access.bytes - 1 - shared_begin_) / 4;
  for (std::size_t i = first; i <= last; ++i) {
    ShadowWord& word = shared_shadow_[i];
    const bool written = word.write.present && word.write.block == block_;
    if (written && word.write.in_flight) {
      object(access, word.write_code, [&] {
        return complaint(
            access, Space::kShared,
            ", into which an asynchronous copy is under way: " +
                describe({word.write, word.write_code, 15}, grid_, launch_->grid->threads) +
                " asked for it at " + called_line(word.write_code));
      });
      continue;
    }
    if ((!write || atomic) && (!written || is_unwritten(i, now.bytes))) {
      object(access, 0,
             [&] { return complaint(access, Space::kShared, " that nobody has written"); });
    }
    const bool ordered = !write && !hopper.is_active() && word.read.present &&
                         is_ordered({word.read, word.read_code, word.read_bytes});
    if (write) note_written(i, now.bytes, written);
    bool raced = false;
    for (const bool allowed : {false, true}) {
      const Touch before = write ? enter_write(word, now, Scope::kBlock, allowed)
                                 : enter_read(word, now, Scope::kBlock, allowed, ordered);
      if (!before.stamp.present) break;
      if (hopper.is_active() ? hopper.knows(i, !before.is_read, before.stamp.thread)
                             : is_ordered(before)) {
        continue;
      }
      raced = true;
      object(access, before.code, [&] { return race(access, Space::kShared, before); });
    }
    if (!hopper.is_active()) continue;
    const Hopper::Reader* const other = write && !raced ? hopper.unknown_reader(i) : nullptr;
    if (other && other->thread != thread_) {
      Touch before{stamp(other->thread), other->code};
      object(access, before.code, [&] { return race(access, Space::kShared, before); });
    }
    const std::string what = hopper.touch(i, write, now.stamp.strong, now.code);
    if (!what.empty()) object(access, 1, [&] { return complaint(access, Space::kShared, what); });
  }
}

void BlockObserver::access_global(const Access& access) {
  if (is_constant(access.address)) {
    if (access.operation != Operation::kLoad && access.operation != Operation::kCopy) {
      stop(access, Space::kGlobal, ", but it is __constant__ memory");
    }
    if (!holds_constant(access.address, access.bytes)) {
      stop(access, Space::kGlobal, " out of bounds" + distance(access));
    }
    Access constant = access;
    constant.other_end = FROM_CONSTANT;
    return enter(constant, Space::kGlobal, access.address);
  }
  check_global(access);
  enter(access, Space::kGlobal, access.address);
}

void BlockObserver::check_global(const Access& access) {
  const bool atomic = access.operation == Operation::kAtomic;
  const bool write = access.operation == Operation::kStore || atomic;
  if (Allocation* allocation = require_allocation(access)) {
    require_aligned(access);
    const std::size_t first = (access.address - allocation->begin()) / 4;
    const std::size_t last = (access.address + access.bytes - 1 - allocation->begin()) / 4;
    Touch now = touch_of(access);
    now.stamp.strong = access.strong;
    now.stamp.in_flight =
        access.strong && access.operation == Operation::kStore && access.address == polled_;
    bool objected = false;
    const auto complain = [&](uint32_t code, const auto& text) {
      objected = true;
      object(access, code, text);
    };
    for (std::size_t i = first; i <= last; ++i) {
      if (overlaps()) {
        const Touch before = touch_before(*allocation, i, now, write);
        if (before.stamp.present) {
          complain(before.code, [&] { return race_with_kernel_before(access, before); });
        }
      }
      if ((!write || atomic) && allocation->is_unwritten(i, now.bytes)) {
        complain(0, [&] { return complaint(access, Space::kGlobal, " that nobody has written"); });
      }
      for (const bool allowed : {false, true}) {
        const Touch before = allocation->enter(i, now, write, allowed, seen());
        if (!before.stamp.present) break;
        if (is_ordered(before)) continue;
        complain(before.code, [&] { return race(access, Space::kGlobal, before); });
      }
    }
    if (write) allocation->set_written(first, last, now.bytes);
    if (objected || access.strong || access.operation == Operation::kCopy) return;
    known_[place_of_known(access.address, access.pc)] = {turn_, access.address, access.pc,
                                                         access.bytes, access.operation};
  }
}

void BlockObserver::enter_barrier(void* barrier, const void* pc) {
  const Access access = {reinterpret_cast<uintptr_t>(barrier), 8, Operation::kStore, pc};
  if (is_shared_variable(access)) check_shared(access);
}

void BlockObserver::enter_bulk(const char* begin, unsigned bytes, bool write, const void* pc) {
  const auto first = reinterpret_cast<uintptr_t>(begin);
  const unsigned step = (first | bytes) % 4 == 0 ? 4 : 1;
  for (unsigned done = 0; done < bytes; done += step) {
    check_global({first + done, step, write ? Operation::kStore : Operation::kCopy, pc});
  }
}

// What is out of bounds counts as read, in whole pieces of 16 bytes: Nsight Compute's readings of stage 15.
void BlockObserver::enter_bulk_load(const std::vector<Piece>& pieces, const void* pc) {
  constexpr uintptr_t SECTOR = 32, LEAST = 16;
  ++counts_.hopper.copies;
  for (const Piece& piece : pieces) {
    if (!piece.tensor) {
      counts_.hopper.copied_sectors += (piece.bytes / LEAST * LEAST + SECTOR - 1) / SECTOR;
      continue;
    }
    enter_bulk(piece.tensor, piece.bytes, false, pc);
    const auto begin = reinterpret_cast<uintptr_t>(piece.tensor);
    counts_.hopper.copied_sectors += (begin + piece.bytes - 1) / SECTOR - begin / SECTOR + 1;
  }
}

void BlockObserver::object(uint32_t code, uint32_t other,
                           const std::function<std::string()>& text) {
  if (!is_program()) throw KernelError(cudaErrorIllegalAddress, text());
  add_finding(launch_->symbols->name, code, other, [&] {
    return "block " + to_string(unflatten(block_, grid_)) + ", thread " +
           to_string(worker_.thread_index(worker_.running_thread())) + ": " + text();
  });
}

void BlockObserver::begin_copy(void* to, const void* from, std::size_t bytes, std::size_t zfill,
                               const void* pc) {
  const auto size = static_cast<unsigned>(bytes);
  const auto destination = reinterpret_cast<uintptr_t>(to);
  uintptr_t source = NO_SOURCE;
  if (zfill < bytes) {
    source = reinterpret_cast<uintptr_t>(from);
    access_global({source, size, Operation::kCopy, pc, destination - shared_begin_});
  }
  access_shared({destination, size, Operation::kCopy, pc, source});
}

void BlockObserver::end_copy(void* to, std::size_t bytes, int thread) {
  const std::size_t first = (reinterpret_cast<uintptr_t>(to) - shared_begin_) / 4;
  for (std::size_t i = first; i < first + bytes / 4; ++i) {
    Stamp& write = shared_shadow_[i].write;
    write = stamp(thread < 0 ? thread_ : thread);  // done only now, as far as others can know
  }
}

// ---- What is wrong with an access ----

void BlockObserver::require_aligned(const Access& access) {
  if (access.address % access.bytes == 0) return;
  const Space space = is_shared(access.address) ? Space::kShared : Space::kGlobal;
  worker_.stop_thread(cudaErrorMisalignedAddress,
                      complaint(access, space, ", not aligned to as many"));
}

// False for what the compiler keeps beside a variable whose type has constructors: whether it has been
// initialised, which nothing in shared memory is. Stops the thread where there is neither.
bool BlockObserver::is_shared_variable(const Access& access) {
  const std::size_t offset = access.address - shared_begin_;
  const auto holds = [&](const SharedVariable* variable) {
    const std::size_t inside = offset - variable->begin;
    return inside < variable->bytes && inside + access.bytes <= variable->bytes;
  };
  for (const SharedVariable& variable : variables_) {
    if (!holds(&variable)) continue;
    if (recent_variables_[0] != &variable) {
      recent_variables_[1] = std::exchange(recent_variables_[0], &variable);
    }
    return true;
  }
  for (const SharedVariable& guard : launch_->symbols->guards) {
    if (holds(&guard)) return false;
  }
  stop(access, Space::kShared, " out of bounds");
}

// Whether a pointer of the host's leads to an address that is nobody's on the device: the kernel was given one, or
// everything of the device is far away.
bool BlockObserver::comes_from_the_host(uintptr_t address) const {
  constexpr uintptr_t REACH = uintptr_t{1} << 32;  // of a wrong index
  const auto is_near = [&](uintptr_t other) {
    return std::min(address - other, other - address) < REACH;
  };
  const char* const arguments = static_cast<const char*>(launch_->argument);
  for (std::size_t i = 0; i + sizeof(uintptr_t) <= launch_->argument_bytes;
       i += sizeof(uintptr_t)) {
    uintptr_t word = 0;
    std::memcpy(&word, arguments + i, sizeof(word));
    if (is_near(word) && is_mapped(word) && !find(launch_->memory, word)) return true;
  }
  return std::none_of(launch_->memory.begin(), launch_->memory.end(),
                      [&](const auto& allocation) { return is_near(allocation->begin()); });
}

// The allocation that holds all bytes of the access; null for a variable of the program.
Allocation* BlockObserver::require_allocation(const Access& access) {
  Allocation* allocation = recent(access.address);
  if (!allocation) {
    Allocation* found = find(launch_->memory, access.address);
    if (!found) found = find(device_memory(), access.address);  // a kernel's `new`
    if (!found && is_program_data(access.address)) {
      if (is_host_variable(access.address)) {
        const std::string near = nearest_variable(access.address);
        stop(access, Space::kGlobal,
             ", a variable of the host" + (near.empty() ? near : " (" + near + ")"));
      }
      return nullptr;
    }
    if (!found) {
      std::string near = was_freed(access.address) ? ": it has been freed"
                                                   : nearest(launch_->memory, access.address);
      if (near.empty()) near = nearest(device_memory(), access.address);  // a kernel's `new`
      if (near.empty() && access.address - shared_begin_ < shared_bytes_ + BEHIND_SHARED) {
        stop(access, Space::kShared, " out of bounds");
      }
      const int owner = worker_.owner_of_local(reinterpret_cast<const void*>(access.address));
      if (owner >= 0) {
        stop(access, Space::kGlobal,
             ": it is a local variable of thread " + to_string(worker_.thread_index(owner)) +
                 ", which no other can reach");
      }
      const bool is_host =
          near.empty() && is_mapped(access.address) && comes_from_the_host(access.address);
      stop(access, Space::kGlobal, is_host ? ", which is the host's" : " out of bounds" + near);
    }
    allocation = found;
    if (!overlaps()) recent_[oldest_++ % std::size(recent_)] = found;
  }
  const std::size_t last = access.address + access.bytes - 1 - allocation->begin();
  const std::size_t first = access.address - allocation->begin();
  if (last >= allocation->bytes() || allocation->state(first / 4) == MemoryState::kForbidden ||
      allocation->state(last / 4) == MemoryState::kForbidden) {
    stop(access, Space::kGlobal, " out of bounds" + distance(access));
  }
  return allocation;
}

// Reading again what nobody has changed is waiting. Stores in between are none.
int64_t vain_reads() { return reads_in_vain; }

void BlockObserver::poll(const Access& access) {
  if (std::exchange(polled_, access.address) != access.address) return;
  reads_in_vain.fetch_add(1, std::memory_order_relaxed);
  worker_.spin({nullptr, static_cast<int>(code_offset(access.pc))});
  polled_ = access.address;
}

// Whether fences order it: what it did was published, and this thread has looked since.
bool BlockObserver::is_ordered(const Touch& before) {
  return seen() > 0 && was_published(before.stamp, seen(), stamp_.block);
}

// What the kernel before has done to the word and nothing orders with `now`. Where others have waited, and published that,
// or have told by a flag what they have done, nothing.
Touch BlockObserver::touch_before(const Allocation& allocation, std::size_t word, const Touch& now,
                                  bool write) {
  const Touch before = allocation.touch_before(word, now, write);
  if (!before.stamp.present) return {};
  if (!was_wait_published(seen()) && !(before.stamp.strong && now.stamp.strong)) return before;
  waited_[thread_] = 1;
  return {};
}

Stamp BlockObserver::stamp(unsigned thread) const {
  Stamp stamp{};
  stamp.present = 1;
  stamp.thread = thread;
  stamp.fences = fences_[thread];
  stamp.phase = phase_[thread];
  stamp.interval = interval_;
  stamp.block = block_;
  return stamp;
}

// How far from a buffer an access in a guard zone, or across the end of an allocation, is.
std::string BlockObserver::distance(const Access& access) const {
  if (is_device_variable(reinterpret_cast<const void*>(access.address))) {
    const std::string near = nearest_variable(access.address);
    return near.empty() ? near : ", " + near;
  }
  const Allocations all = device_memory();  // of which some may be a kernel's `new`
  const Allocation* const found = find(all, access.address);
  if (!found) return "";
  const Allocation& memory = *found;
  const auto allowed = [&](std::size_t word) {
    return word < memory.words() && memory.state(word) != MemoryState::kForbidden;
  };
  const std::size_t word = (access.address - memory.begin()) / 4;
  const std::string of = memory.name.empty() ? "" : " of " + memory.name;
  for (std::size_t away = 1; away <= memory.words(); ++away) {
    if (allowed(word - away)) return ", " + plural(4 * (away - 1), "byte") + " past the end" + of;
    if (allowed(word + away)) return ", " + plural(4 * away, "byte") + " before the begin" + of;
  }
  return "";
}

// Something is wrong, but the kernel could go on, and a program's does.
template <typename Describe>
void BlockObserver::object(const Access& access, uint32_t other_code, const Describe& text) {
  if (!is_program()) worker_.stop_thread(cudaErrorIllegalAddress, text());
  const std::pair places(code_offset(access.pc), other_code);
  if (found_ && places == found_at_) {
    ++*found_;
    return;
  }
  found_at_ = places;
  found_ = &add_finding(launch_->symbols->name, places.first, other_code, [&] {
    return "block " + to_string(unflatten(block_, grid_)) + ", thread " +
           to_string(worker_.thread_index(thread_)) + ": " + text();
  });
}

void BlockObserver::stop(const Access& access, Space space, const std::string& what) {
  worker_.stop_thread(cudaErrorIllegalAddress, complaint(access, space, what));
}

std::string BlockObserver::complaint(const Access& access, Space space,
                                     const std::string& what) const {
  const uint32_t code = code_offset(access.pc);
  const bool is_copy = access.operation == Operation::kCopy;  // which a function may ask for
  return describe(access, space) + what + ", at " +
         (is_copy ? called_line(code) : source_line(code));
}

std::string BlockObserver::race(const Access& access, Space space, const Touch& before) const {
  const bool in_block = before.stamp.block == block_ && !before.stamp.several_blocks;
  const std::string order = in_block ? ", and no barrier lies between (both come after " +
                                           plural(interval_, "barrier") + ")"
                                     : ", and nothing orders the blocks of a grid";
  return "data race: " + describe(access, space) + " at " + source_line(code_offset(access.pc)) +
         "; " + others(before) + " touched it at " + source_line(before.code) + order;
}

// Who has touched what the running thread races for. Of several only the last is known, which may be itself.
std::string BlockObserver::others(const Touch& before) const {
  if (before.stamp.block != block_ || before.stamp.thread != thread_) {
    return describe(before, grid_, launch_->grid->threads);
  }
  return before.stamp.several_blocks ? "several blocks (others, and last this one)"
                                     : "several threads (others, and last this one)";
}

std::string BlockObserver::race_with_kernel_before(const Access& access,
                                                   const Touch& before) const {
  const KernelBefore& kernel = launch_->before;
  return "data race: " + describe(access, Space::kGlobal) + " at " +
         source_line(code_offset(access.pc)) +
         ", before it has called cudaGridDependencySynchronize(); " +
         describe(before, kernel.blocks, kernel.threads) + " of kernel " + kernel.symbols->name +
         ", which may still run, " + (before.is_read ? "reads" : "writes") + " it at " +
         source_line(before.code);
}

// "reads 4 bytes of shared memory (x_tile + 48 bytes)"
std::string BlockObserver::describe(const Access& access, Space space) const {
  const char* verb = access.operation == Operation::kLoad    ? "reads "
                     : access.operation == Operation::kStore ? "writes "
                     : access.operation == Operation::kCopy  ? "copies "
                                                             : "changes (by an atomic operation) ";
  std::string text = verb + plural(access.bytes, "byte") +
                     (space == Space::kShared ? " of shared memory" : " of global memory");
  if (space == Space::kGlobal) return text;
  for (const SharedVariable& variable : variables_) {
    const std::size_t offset = access.address - shared_begin_ - variable.begin;
    if (offset >= variable.bytes) continue;
    text += " (" + variable.name + " + " + plural(offset, "byte") + ")";
  }
  return text;
}

// "block (0,0,0), thread (1,0,0)", or that it was several, of which this was the last.
std::string BlockObserver::describe(const Touch& touch, dim3 blocks, dim3 threads) {
  const Stamp& stamp = touch.stamp;
  const std::string last = "block " + to_string(unflatten(stamp.block, blocks)) + ", thread " +
                           to_string(unflatten(stamp.thread, threads));
  if (stamp.several_blocks) return "several blocks (last: " + last + ")";
  if (stamp.several_warps || stamp.several_threads) return "several threads (last: " + last + ")";
  return last;
}

}  // namespace convladder::simulator
