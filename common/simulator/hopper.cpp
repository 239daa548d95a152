#include "common/simulator/hopper.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include "common/core/program.h"
#include "common/simulator/counting/block_observer.h"
#include "common/simulator/errors.h"
#include "common/simulator/tensor_core.h"
#include "common/simulator/worker.h"

namespace convladder::simulator {
namespace {

constexpr unsigned GROUP = 128;            // threads of a warpgroup
constexpr uint32_t POISON = 0x7fe1dead;    // in sums under way; a NaN
constexpr unsigned REGISTERS = 64 * 1024;  // of a multiprocessor

[[noreturn]] void fail(const std::string& what, uint32_t code) {
  throw KernelError(cudaErrorIllegalInstruction, what + ", at " + called_line(code));
}

void require(bool condition, const char* what, const void* pc) {
  if (!condition) fail(what, code_offset(pc));
}

// visit(in shared memory, in the tensor or null, bytes) for what lies together in both.
template <typename Visit>
void for_each_part(uint32_t address, const std::vector<Piece>& pieces, int swizzle,
                   const Visit& visit) {
  for (const Piece& piece : pieces) {
    for (uint32_t done = 0, count; done < piece.bytes; done += count) {
      const uint32_t place = address + piece.at + done;
      count = swizzle == 0 ? piece.bytes : std::min(16 - place % 16, piece.bytes - done);
      visit(shared_pointer(swizzled(place, swizzle)), piece.tensor ? piece.tensor + done : nullptr,
            count);
    }
  }
}

// To nearest, of two as near the even one.
void round_to_tf32(char* at) {
  uint32_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  if ((bits & 0x7f800000) != 0x7f800000) bits += 0xfff + (bits >> 13 & 1);
  bits &= 0xffffe000;
  std::memcpy(at, &bits, sizeof(bits));
}

std::vector<Piece> pieces(const TensorMap& map, const int* at, const int* offsets, const void* pc) {
  try {
    return pieces_of(map, at, offsets);
  } catch (const KernelError& error) {
    fail(error.what(), code_offset(pc));
  }
}

std::string plural(uint64_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

uint32_t at(const Clock& clock, unsigned actor) { return actor < clock.size() ? clock[actor] : 0; }

}  // namespace

// ---- The course of a block ----

void Hopper::begin_block(unsigned threads, bool immediate) {
  immediate_ = immediate;
  barriers_.clear();
  actions_.clear();
  pending_sums_ = 0;
  registers_.clear(), free_registers_ = 0;
  if (!groups_.empty()) threads_.clear(), groups_.clear();
  threads_.resize(threads);
  if (!std::exchange(active_, false)) return;
  clocks_.clear(), operations_.clear(), words_.clear(), published_.clear();
  for (Clock& clock : numbered_) clock.clear();
}

void Hopper::end_block() {
  if (actions_.empty()) return;
  throw KernelError(cudaErrorLaunchFailure, "block " + to_string(worker_.block_) + " ends while " +
                                                plural(actions_.size(), "bulk copy") +
                                                " into its shared memory is under way");
}

void Hopper::leave(unsigned thread) {
  if (groups_.empty()) return;
  const Thread& self = threads_[thread];
  for (const OwnSums& sums : self.sums) {
    if (sums.pending) {
      object(self.code, 0, [&] {
        return "leaves the kernel without wgmma.wait_group for the product begun at " +
               called_line(self.code);
      });
      return;
    }
  }
}

bool Hopper::advance() {
  if (actions_.empty()) return false;
  const auto at = actions_.begin() + static_cast<std::ptrdiff_t>(worker_.draw(actions_.size()));
  const std::function<void()> act = std::move(*at);
  actions_.erase(at);
  act();
  return true;
}

void Hopper::later(std::function<void()> act) {
  if (immediate_) return act();
  actions_.push_back(std::move(act));
}

std::string Hopper::reason(const void* key, unsigned thread) const {
  for (const auto& [address, barrier] : barriers_) {
    if (&barrier != key) continue;
    std::string text =
        fmt::format("for the end of phase {} (parity {}) of the barrier {}, which lacks {} of {}",
                    barrier.phase, barrier.phase % 2, name_of(address), barrier.pending,
                    plural(barrier.count, "arrival"));
    if (barrier.bytes > 0) text += fmt::format(" and {}", plural(barrier.bytes, "byte"));
    if (barrier.bytes < 0) {
      text += fmt::format("; {} more have come than were expected", plural(-barrier.bytes, "byte"));
    }
    return text;
  }
  if (key == &free_registers_) {
    return fmt::format("for registers: its {} threads begin with {} each at most, and {} are free",
                       threads_.size(), registers_at_most(), free_registers_);
  }
  for (const Group& group : groups_) {
    for (const Product& product : group.products) {
      if (&product != key) continue;
      const auto first = static_cast<unsigned>(&group - groups_.data()) * GROUP;
      unsigned missing = first;
      while (threads_[missing].begun > threads_[thread].begun) ++missing;
      for (unsigned i = first; i < first + GROUP; ++i) {
        if (threads_[i].begun < threads_[missing].begun) missing = i;
      }
      return fmt::format(
          "for the product begun at {}, to which not all of its warpgroup have come: {}",
          called_line(product.code), worker_.whereabouts(missing));
    }
  }
  return "";
}

unsigned Hopper::running() const { return worker_.running_thread(); }

void Hopper::object(uint32_t code, uint32_t other, const std::function<std::string()>& text) const {
  if constexpr (COUNTING) return worker_.observer_->object(code, other, text);
  static_cast<void>(code), static_cast<void>(other);
  throw KernelError(cudaErrorIllegalInstruction, text());
}

// The shared address of `bytes` bytes.
uint32_t Hopper::address_of(const void* pointer, std::size_t bytes, const void* pc) const {
  require(worker_.memory().contains(pointer, bytes), "the address is not in shared memory", pc);
  if constexpr (COUNTING) {
    if (!worker_.observer_->is_in_a_variable(pointer, bytes)) {
      object(code_offset(pc), 0, [&] {
        return fmt::format("{} of shared memory ({}) out of bounds, at {}", plural(bytes, "byte"),
                           name_of(static_cast<uint32_t>(shared_offset(pointer))),
                           called_line(code_offset(pc)));
      });
    }
  }
  return static_cast<uint32_t>(shared_offset(pointer));
}

// "full + 8 bytes", or where it is.
std::string Hopper::name_of(uint32_t address) const {
  const std::size_t offset = shared_pointer(address) - worker_.memory().begin;
  std::string text = "in dynamic shared memory";
  for (const SharedVariable& variable : read_symbols(worker_.grid_->kernel).shared) {
    const std::size_t within = offset - variable.begin;
    if (within < variable.bytes) {
      text = variable.name + (within == 0 ? "" : " + " + plural(within, "byte"));
    }
  }
  return text;
}

// ---- Barriers ----

void Hopper::init(void* barrier, unsigned arrivals, const void* pc) {
  activate();
  const uint32_t address = address_of(barrier, 8, pc);
  require(address % 8 == 0, "a barrier is not aligned to 8 bytes", pc);
  require(arrivals > 0 && arrivals < 1 << 20, "a barrier's count of arrivals is 0 or too large",
          pc);
  Barrier made;
  made.count = made.pending = arrivals;
  made.made_by = running();
  made.code = code_offset(pc);
  if constexpr (COUNTING) {
    made.actor = new_actor();
    made.epoch = clock()[running()];
    made.interval = worker_.observer_->interval();
    worker_.observer_->enter_barrier(barrier, pc);
  }
  std::memset(barrier, 0, 8);
  barriers_[address] = made;
}

void Hopper::inval(void* barrier, const void* pc) { barrier_at(barrier, pc).count = 0; }

Hopper::Barrier& Hopper::barrier_at(void* barrier, const void* pc) {
  const uint32_t address = address_of(barrier, 8, pc);
  const auto found = barriers_.find(address);
  if (found == barriers_.end() || found->second.count == 0) {
    fail("no barrier has been made (mbarrier.init) " + name_of(address), code_offset(pc));
  }
  Barrier& made = found->second;
  if constexpr (COUNTING) {
    if (made.made_by != running() && made.interval == worker_.observer_->interval() &&
        at(clock(), made.made_by) < made.epoch) {
      object(code_offset(pc), made.code, [&] {
        return fmt::format(
            "uses the barrier {} at {}, and nothing orders that and mbarrier.init by thread {} at "
            "{}",
            name_of(address), called_line(code_offset(pc)),
            to_string(worker_.thread_index(made.made_by)), called_line(made.code));
      });
    }
  }
  return made;
}

void Hopper::complete(Barrier& barrier) {
  if (barrier.pending > 0 || barrier.bytes != 0) return;
  ++barrier.phase;
  barrier.pending = barrier.count;
  if constexpr (COUNTING) {
    join(barrier.ended, barrier.arrived);
    barrier.ended.resize(std::max<std::size_t>(barrier.ended.size(), barrier.actor + 1));
    barrier.ended[barrier.actor] = barrier.phase;
  }
  worker_.wake(&barrier);
}

uint64_t Hopper::arrive(void* at, unsigned count, int bytes, bool drops, const void* pc) {
  Barrier& barrier = barrier_at(at, pc);
  publish(barrier.arrived);
  barrier.bytes += bytes;
  const uint64_t phase = arrive(barrier, count, drops, code_offset(pc));
  worker_.give_way();
  return phase;
}

uint64_t Hopper::arrive(Barrier& barrier, unsigned count, bool drops, uint32_t code) {
  if (count > barrier.pending) {
    const auto own = std::find_if(barriers_.begin(), barriers_.end(),
                                  [&](const auto& each) { return &each.second == &barrier; });
    fail(
        fmt::format("makes {} at the barrier {}, which waits for {} more in this phase, and for {}",
                    plural(count, "arrival"), name_of(own->first), barrier.pending,
                    plural(std::max<int64_t>(0, barrier.bytes), "byte")),
        code);
  }
  const uint64_t phase = barrier.phase;
  barrier.pending -= count;
  barrier.count -= drops ? count : 0;
  worker_.note_progress();
  complete(barrier);
  return phase;
}

void Hopper::expect(void* barrier, int bytes, const void* pc) {
  Barrier& found = barrier_at(barrier, pc);
  found.bytes += bytes;
  complete(found);
}

bool Hopper::wait(void* at, uint64_t phase, bool is_parity, bool sleeps, const void* pc) {
  Barrier& barrier = barrier_at(at, pc);
  const auto is_over = [&] {
    return is_parity ? barrier.phase % 2 != phase % 2 : barrier.phase > phase;
  };
  while (sleeps && !is_over()) worker_.sleep(&barrier, pc);
  if (!is_over()) {
    worker_.ask(false, {nullptr, static_cast<int>(code_offset(pc))});
    return false;
  }
  if constexpr (COUNTING) {
    join(clock(), barrier.ended);
    worker_.observer_->look_all();
  }
  return true;
}

void Hopper::arrive_when_copied(void* at, bool counts, const void* pc) {
  Barrier& barrier = barrier_at(at, pc);
  barrier.pending += counts;
  Clock known;
  publish(known);
  const uint32_t code = code_offset(pc);
  later([this, &barrier, known, code, end_copies = copy_queue->hand_over(running())] {
    end_copies();
    join(barrier.arrived, known);
    arrive(barrier, 1, false, code);
  });
  worker_.give_way();
}

// ---- Bulk copies ----

void Hopper::copy(void* to, const void* from, unsigned bytes, void* barrier, const void* pc) {
  const auto ends = reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from) | bytes;
  require(ends % 16 == 0 && bytes > 0, "a bulk copy's ends and size are not multiples of 16 bytes",
          pc);
  begin_copy(to, {{0, bytes, static_cast<const char*>(from)}}, bytes, nullptr, barrier, pc);
}

void Hopper::copy(void* to, const TensorMap& map, void* barrier, const int* at, const int* offsets,
                  const void* pc) {
  require(reinterpret_cast<uintptr_t>(to) % 128 == 0,
          "a tensor copy's end in shared memory is not aligned to 128 bytes", pc);
  begin_copy(to, pieces(map, at, offsets, pc), map.bytes(), &map, barrier, pc);
}

void Hopper::begin_copy(void* to, const std::vector<Piece>& pieces, int64_t bytes,
                        const TensorMap* map, void* at_barrier, const void* pc) {
  activate();
  Barrier& barrier = barrier_at(at_barrier, pc);
  const uint32_t address = address_of(to, map ? map->shared_bytes() : bytes, pc);
  const int swizzle = map ? map->swizzle : 0;
  const bool rounds = map && map->rounds_to_tf32;
  const uint16_t outside = map && map->fills_nan ? 0x7ff7 : 0;  // a NaN of 16 bits and of 32
  unsigned operation = 0;
  require_not_read(address, pieces, code_offset(pc));
  if constexpr (COUNTING) {
    if (!barrier.is_fenced) {
      object(code_offset(pc), 0, [&] {
        return "a copy ends at a barrier that was not shown to the copy engine: behind "
               "mbarrier.init "
               "fence.mbarrier_init or fence.proxy.async is missing; the copy is begun at " +
               called_line(code_offset(pc));
      });
      barrier.is_fenced = true;
    }
    worker_.observer_->enter_bulk_load(pieces, pc);
    operation = new_operation(barrier.actor, pc, map ? swizzle : -1, false);
    for_each_part(address, pieces, swizzle, [&](char* shared, const char*, uint32_t count) {
      enter(operation, shared, count, true, {clock(), fenced_[running()]});
    });
  }
  later([this, &barrier, address, pieces, bytes, swizzle, rounds, outside, operation] {
    for_each_part(address, pieces, swizzle, [&](char* shared, const char* tensor, uint32_t count) {
      if (tensor) {
        std::memcpy(shared, tensor, count);
        for (uint32_t i = 0; i < count && rounds; i += 4) round_to_tf32(shared + i);
      } else {
        for (uint32_t i = 0; i < count; ++i) shared[i] = outside >> i % 2 * 8;
      }
    });
    if constexpr (COUNTING) operations_[operation].done = barrier.phase + 1;
    barrier.bytes -= bytes;
    complete(barrier);
  });
}

// A copy must not come over what a product reads that nobody has waited for. Builds that count know more: whether
// the copying thread can know that it is over.
void Hopper::require_not_read(uint32_t address, const std::vector<Piece>& pieces,
                              uint32_t code) const {
  if constexpr (COUNTING) return;
  const auto is_copied = [&](uint32_t chunk) {
    return std::any_of(pieces.begin(), pieces.end(), [&](const Piece& piece) {
      const uint32_t first = address + piece.at;
      return chunk < first + piece.bytes && first < chunk + 16;
    });
  };
  const uint32_t end = address + pieces.back().at + pieces.back().bytes;
  for (const Group& group : groups_) {
    for (const Product& product : group.products) {
      for (const auto* const chunks : {&product.a, &product.b}) {
        for (const uint32_t chunk : *chunks) {
          if (chunk + 16 <= address || chunk >= end || !is_copied(chunk)) continue;
          object(code, product.code, [&] {
            return fmt::format(
                "the copy begun at {} writes to shared memory ({}), which the product begun at {} "
                "reads: it is not known to have ended",
                called_line(code), name_of(chunk), called_line(product.code));
          });
        }
      }
    }
  }
}

void Hopper::store(void* to, const void* from, unsigned bytes, const void* pc) {
  const auto ends = reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from) | bytes;
  require(ends % 16 == 0 && bytes > 0, "a bulk copy's ends and size are not multiples of 16 bytes",
          pc);
  begin_store(from, {{0, bytes, static_cast<char*>(to)}}, bytes, nullptr, pc);
}

void Hopper::require_of_the_device(const void* map, const void* pc) const {
  if constexpr (COUNTING) {
    if (worker_.observer_->is_of_the_host(map)) fail("a tensor map of the host's", code_offset(pc));
  }
  static_cast<void>(map), static_cast<void>(pc);
}

void Hopper::store(const TensorMap& map, const void* from, const int* at, const void* pc) {
  require(!map.is_im2col, "a tensor map of im2col stores nothing", pc);
  require(reinterpret_cast<uintptr_t>(from) % 128 == 0,
          "a tensor copy's end in shared memory is not aligned to 128 bytes", pc);
  begin_store(from, pieces(map, at, nullptr, pc), map.bytes(), &map, pc);
}

void Hopper::begin_store(const void* from, const std::vector<Piece>& pieces, int64_t bytes,
                         const TensorMap* map, const void* pc) {
  activate();
  const uint32_t address = address_of(from, map ? map->shared_bytes() : bytes, pc);
  const int swizzle = map ? map->swizzle : 0;
  Thread& self = threads_[running()];
  if constexpr (COUNTING) {
    if (self.store_actor == 0) self.store_actor = new_actor();
    const unsigned operation = new_operation(self.store_actor, pc, map ? swizzle : -1, false);
    operations_[operation].done = self.stores_committed + 1;
    for_each_part(address, pieces, swizzle, [&](char* shared, const char* tensor, uint32_t count) {
      if (tensor) enter(operation, shared, count, false, {clock(), fenced_[running()]});
    });
    for (const Piece& piece : pieces) {
      if (piece.tensor) worker_.observer_->enter_bulk(piece.tensor, piece.bytes, true, pc);
    }
  }
  const auto act = [address, pieces, swizzle] {
    for_each_part(address, pieces, swizzle, [](char* shared, const char* tensor, uint32_t count) {
      if (tensor) std::memcpy(const_cast<char*>(tensor), shared, count);
    });
  };
  if (immediate_) return act();
  self.stores.push_back(act);
}

void Hopper::commit_stores() {
  Thread& self = threads_[running()];
  self.store_groups.push_back(std::exchange(self.stores, {}));
  ++self.stores_committed;
}

void Hopper::wait_for_stores(unsigned pending) {
  Thread& self = threads_[running()];
  while (self.store_groups.size() > pending) {
    for (const auto& act : self.store_groups.front()) act();
    self.store_groups.pop_front();
  }
  if constexpr (COUNTING) {
    if (self.store_actor == 0) return;
    clock().resize(actors_);
    clock()[self.store_actor] = self.stores_committed - self.store_groups.size();
  }
}

// ---- Products ----

bool Hopper::begin_product(const ptx::WarpgroupProduct& what, void* first_sum, const void* pc) {
  activate();
  const unsigned thread = running(), within = thread % GROUP;
  require(thread / GROUP < threads_.size() / GROUP,
          "wgmma without a whole warpgroup of 128 threads", pc);
  if (groups_.empty()) {
    groups_.resize(threads_.size() / GROUP);
    if constexpr (COUNTING) {
      for (Group& group : groups_) group.actor = new_actor();
    }
  }
  Group& group = this->group();
  Thread& self = threads_[thread];
  const uint32_t code = code_offset(pc);
  const uint64_t number = self.begun++;
  self.code = code;
  if (number - group.made == group.products.size()) {
    group.products.emplace_back();
    group.products.back().what = what;
    group.products.back().code = code;
    group.products.back().number = number;
    find_operands(group.products.back());
  }
  Product& product = group.products[number - group.made];
  const auto uniform = [](const ptx::WarpgroupProduct& one) {
    return std::tuple(one.number, one.sums_are_half, one.a_in_registers, one.adds, one.a_transposed,
                      one.b_transposed, one.a_sign, one.b_sign, one.columns, one.a, one.b);
  };
  if (product.code != code || uniform(product.what) != uniform(what)) {
    fail(product.code == code
             ? "the threads of a warpgroup give wgmma different descriptors or scales"
             : "the threads of a warpgroup come to different products, others to that at " +
                   called_line(product.code),
         code);
  }
  auto own = std::find_if(self.sums.begin(), self.sums.end(), [&](const OwnSums& sums) {
    return sums.first == first_sum && sums.columns == what.columns;
  });
  if (own == self.sums.end()) {
    OwnSums made;
    made.first = first_sum, made.columns = what.columns, made.number = self.sums.size();
    self.sums.push_back(made);
    own = self.sums.end() - 1;
  }
  self.latest = own - self.sums.begin();
  if (!self.is_fenced && (what.a_in_registers || !what.adds || self.begun == 1)) {
    object(code, 0, [&] {
      return "wgmma.fence is missing before a product of registers that the thread may have used: "
             "begun at " +
             called_line(code);
    });
    self.is_fenced = true;
  }
  if (product.came == 0) product.sums = self.latest;
  if (product.sums != self.latest)
    fail("the threads of a warpgroup give wgmma different sums", code);
  if (group.sums.size() <= product.sums) group.sums.resize(product.sums + 1);
  group.sums[product.sums].values.resize(64 * what.columns);
  if (what.a_in_registers) {
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned row = within / 32 * 16 + within % 32 / 4 + i % 2 * 8;
      product.words[row][within % 4 + i / 2 * 4] = what.fragment[i];
    }
    const auto* const variables = static_cast<const uint32_t*>(what.variables[0]);
    const auto follows = [&](unsigned i) { return what.variables[i] == variables + i; };
    if (variables && follows(1) && follows(2) && follows(3)) {
      Fragment fragment{number, variables, {}, code};
      std::copy_n(what.fragment, 4, fragment.values);
      self.fragments.push_back(fragment);
    }
  }
  own->last = number;
  own->half = what.sums_are_half;
  if (own->pending) {
    come(product);
    return false;
  }
  return true;
}

// visit(register, i-th float of the thread's sums)
template <typename Visit>
void Hopper::for_each_sum(const OwnSums& own, const Visit& visit) {
  const unsigned thread = running() % GROUP;
  Sums& sums = group().sums[own.number];
  for (unsigned i = 0; i < own.columns / 2; ++i) {
    const unsigned row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;
    const unsigned column = i / 4 * 8 + thread % 4 * 2 + i % 2;
    visit(own.half ? static_cast<char*>(own.registers[i / 2]) + i % 2 * 2
                   : static_cast<char*>(own.registers[i]),
          sums.values[row * own.columns + column]);
  }
}

void Hopper::take_sums(void* const* registers) {
  Thread& self = threads_[running()];
  OwnSums& own = self.sums[self.latest];
  Product& product = group().products[own.last - group().made];
  const unsigned count = own.columns / (own.half ? 4 : 2);
  own.registers.assign(registers, registers + count);
  if (product.what.adds) {
    for_each_sum(own, [&](const char* from, float& sum) {
      uint16_t half;
      std::memcpy(own.half ? static_cast<void*>(&half) : &sum, from, own.half ? 2 : 4);
      if (own.half) sum = float_of_half(half);
    });
  }
  for (void* const each : own.registers) std::memcpy(each, &POISON, sizeof(POISON));
  own.pending = true;
  ++pending_sums_;
  come(product);
}

// One more thread of the warpgroup has begun it.
void Hopper::come(Product& product) {
  if (++product.came < GROUP) return;
  Group& group = this->group();
  if constexpr (COUNTING) watch(group, product);
  worker_.wake(&product);
  if (immediate_) make_next(group);
}

void Hopper::fence_registers() { threads_[running()].is_fenced = true; }

void Hopper::commit_products() {
  Thread& self = threads_[running()];
  self.groups.push_back(self.begun);
  if constexpr (COUNTING) {
    if (!groups_.empty()) publish(group().came);
  }
}

void Hopper::wait_for_products(unsigned pending, const void* pc) {
  Thread& self = threads_[running()];
  self.is_fenced = false;
  if (self.groups.size() <= pending || groups_.empty()) return;
  const uint64_t end = self.groups[self.groups.size() - pending - 1];
  self.groups.erase(self.groups.begin(), self.groups.end() - pending);
  Group& group = this->group();
  bool is_patient = true;
  while (group.made < end) {
    Product& next = group.products.front();
    if (next.came < GROUP) {
      worker_.sleep(&next, pc);
    } else if (std::exchange(is_patient, false)) {  // as late as may be: others go on before
      worker_.note_progress();
      worker_.spin({nullptr, static_cast<int>(code_offset(pc))});
      worker_.pause();
    } else {
      make_next(group);
    }
  }
  if constexpr (COUNTING) {
    join(clock(), group.came);
    clock().resize(actors_);
    clock()[group.actor] = std::max(clock()[group.actor], static_cast<uint32_t>(end));
  }
  for (; !self.fragments.empty() && self.fragments.front().product < end;
       self.fragments.pop_front()) {
    const Fragment& fragment = self.fragments.front();
    if (std::memcmp(fragment.variables, fragment.values, sizeof(fragment.values)) == 0) continue;
    object(fragment.code, code_offset(pc), [&] {
      return "changes registers that a product still reads: that begun at " +
             called_line(fragment.code) + ", before wgmma.wait_group at " +
             called_line(code_offset(pc));
    });
  }
  for (OwnSums& own : self.sums) {
    if (!own.pending || own.last >= end) continue;
    for (const void* const each : own.registers) {
      if (std::memcmp(each, &POISON, sizeof(POISON)) == 0) continue;
      object(self.code, code_offset(pc), [&] {
        return "changes sums of a product under way: that begun at " + called_line(self.code) +
               ", before wgmma.wait_group at " + called_line(code_offset(pc));
      });
      break;
    }
    for_each_sum(own, [&](char* to, const float& sum) {
      const uint16_t half = own.half ? half_of(sum) : 0;
      std::memcpy(to, own.half ? static_cast<const void*>(&half) : &sum, own.half ? 2 : 4);
    });
    own.pending = false;
    --pending_sums_;
  }
}

std::string Hopper::touch_own(const void* address) const {
  const Thread& self = threads_[running()];
  const auto* const byte = static_cast<const char*>(address);
  for (const OwnSums& own : self.sums) {
    if (!own.pending) continue;
    for (const void* const each : own.registers) {
      if (byte >= each && byte < static_cast<const char*>(each) + sizeof(POISON)) {
        return "a sum of the product begun at " + called_line(self.code) +
               " before wgmma.wait_group";
      }
    }
  }
  return "";
}

// Where the 16 bytes begin that a descriptor addresses, of `rows` rows: two of each; or where rows run along
// memory, each 8 rows of each of the 16 numbers in depth.
std::vector<uint32_t> Hopper::chunks_of(uint64_t descriptor, unsigned rows, bool transposed,
                                        uint32_t code) const {
  constexpr uint32_t FIELD = 0x3fff, WINDOW = 1 << 18;
  constexpr int SWIZZLES[] = {0, 3, 2, 1};
  const uint32_t leading = (descriptor >> 16 & FIELD) * 16,
                 stride = (descriptor >> 32 & FIELD) * 16;
  const int swizzle = SWIZZLES[descriptor >> 62];
  const uint32_t span = 16u << swizzle, base = descriptor >> 49 & 7;
  // A descriptor has 18 bits of an address: of those that it may mean, one in the memory that the block has.
  const SharedMemory& memory = worker_.memory();
  const auto dynamic = static_cast<uint32_t>(shared_offset(memory.begin + memory.dynamic_offset()));
  const uint32_t low = (descriptor & FIELD) * 16;
  uint32_t start = dynamic + (low - dynamic) % WINDOW;
  if (start - dynamic >= worker_.grid_->dynamic_bytes) {
    for (start = low;
         start < memory.bytes && start >= dynamic && start < dynamic + MOST_DYNAMIC_BYTES;) {
      start += WINDOW;
    }
  }
  std::vector<uint32_t> chunks;
  const auto add = [&](uint32_t address) {
    const uint32_t pattern = address - (base << 7);
    address ^= swizzled(pattern, swizzle) ^ pattern;
    if (!memory.contains(shared_pointer(address), 16)) {
      fail("a descriptor of wgmma leads out of shared memory", code);
    }
    chunks.push_back(address);
  };
  if (!transposed) {
    for (unsigned i = 0; i < rows * 2; ++i) {
      const unsigned row = i / 2, part = i % 2;
      add(start + row / 8 * stride +
          (swizzle == 0 ? row % 8 * 16 + part * leading : row % 8 * span + part * 16));
    }
  } else {
    const unsigned wide = span / 16;  // chunks side by side
    for (unsigned i = 0; i < 16 * rows / 8; ++i) {
      const unsigned depth = i / (rows / 8), part = i % (rows / 8);
      add(start + depth / 8 * (swizzle == 0 ? leading : stride) + depth % 8 * span +
          part / wide * (swizzle == 0 ? stride : leading) + part % wide * 16);
    }
  }
  return chunks;
}

void Hopper::find_operands(Product& product) const {
  const ptx::WarpgroupProduct& what = product.what;
  if (!what.a_in_registers) product.a = chunks_of(what.a, 64, what.a_transposed, product.code);
  product.b = chunks_of(what.b, what.columns, what.b_transposed, product.code);
}

// Makes the first product that is not yet made.
void Hopper::make_next(Group& group) {
  Product& product = group.products.front();
  const ptx::WarpgroupProduct& what = product.what;
  using Part = ptx::WarpgroupProduct;
  const unsigned depth = what.number == Part::kTf32 ? 8 : 16;
  const auto read = [&](const void* from, unsigned count, float* to, unsigned pitch) {
    for (unsigned i = 0; i < count; ++i) {
      uint32_t bits = 0;
      if (what.number == Part::kTf32) {
        std::memcpy(&bits, static_cast<const char*>(from) + i * 4, 4);
        bits &= 0xffffe000;
        std::memcpy(to + i * pitch, &bits, 4);
        continue;
      }
      uint16_t half;
      std::memcpy(&half, static_cast<const char*>(from) + i * 2, 2);
      to[i * pitch] = what.number == Part::kHalf ? float_of_half(half) : float_of_bfloat16(half);
    }
  };
  const auto operand = [&](const std::vector<uint32_t>& chunks, unsigned rows, bool transposed,
                           float* to) {
    for (unsigned i = 0; i < chunks.size(); ++i) {
      float* const first =
          !transposed ? to + i * (depth / 2) : to + i % (rows / 8) * 8 * depth + i / (rows / 8);
      read(shared_pointer(chunks[i]), depth / 2, first, transposed ? depth : 1);
    }
  };
  float a[64 * 16], b[256 * 16];
  if (what.a_in_registers) {
    for (unsigned row = 0; row < 64; ++row) read(product.words[row], depth, a + row * depth, 1);
  } else {
    operand(product.a, 64, what.a_transposed, a);
  }
  operand(product.b, what.columns, what.b_transposed, b);
  if (what.a_sign * what.b_sign < 0) {
    for (unsigned i = 0; i < 64 * depth; ++i) a[i] = -a[i];
  }
  float* const sums = group.sums[product.sums].values.data();
  if (!what.adds) std::fill_n(sums, 64 * what.columns, 0.0f);
  multiply_add(a, b, 64, what.columns, depth, what.number == Part::kHalf, what.sums_are_half, sums);
  group.products.pop_front();
  ++group.made;
}

// ---- Fences ----

void Hopper::fence_proxies() {
  activate();
  fence_barriers();
  if constexpr (COUNTING) {
    fenced_[running()] = clock();
    ++clock()[running()];
  }
}

void Hopper::fence_barriers() {
  for (auto& [address, barrier] : barriers_) barrier.is_fenced |= barrier.made_by == running();
}

void Hopper::set_registers(unsigned count, const void* pc) {
  require(count % 8 == 0 && count >= 24 && count <= 256,
          "setmaxnreg with a number that is no multiple of 8 from 24 to 256", pc);
  if (registers_.empty()) registers_.assign(threads_.size(), registers_at_most());
  unsigned& own = registers_[running()];
  while (own + free_registers_ < count) worker_.sleep(&free_registers_, pc);
  free_registers_ += own - count;
  own = count;
  worker_.wake(&free_registers_);
}

// What a thread can begin with, in steps of 8: all together have a multiprocessor's, whatever the compiler gives.
unsigned Hopper::registers_at_most() const {
  return std::min<unsigned>(REGISTERS / threads_.size() / 8 * 8, 256);
}

// ---- Clocks ----

void Hopper::activate() {
  if (std::exchange(active_, true)) return;
  if constexpr (COUNTING) {
    actors_ = threads_.size();
    clocks_.assign(actors_, Clock(actors_, 0));
    fenced_ = clocks_;
    for (unsigned thread = 0; thread < actors_; ++thread) clocks_[thread][thread] = 1;
    operations_.assign(1, {});
    words_.assign(worker_.memory().bytes / 4 + 1, {});
    others_.assign(1, {});
  }
}

unsigned Hopper::new_actor() { return actors_++; }

void Hopper::join(Clock& to, const Clock& from) {
  if (to.size() < from.size()) to.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = std::max(to[i], from[i]);
}

void Hopper::publish(Clock& to) {
  if constexpr (COUNTING) {
    join(to, clock());
    ++clock()[running()];
    worker_.observer_->fence(true);
  }
  static_cast<void>(to);
}

void Hopper::fence() {
  if (!active_) return;
  join(published_, clock());
  ++clock()[running()];
}

void Hopper::look() {
  if (active_) join(clock(), published_);
}

void Hopper::sync_threads() {
  if (!active_) return;
  Clock all;
  for (const Clock& clock : clocks_) join(all, clock);
  for (unsigned thread = 0; thread < clocks_.size(); ++thread) {
    clocks_[thread] = all;
    ++clocks_[thread][thread];  // what comes now is known to nobody yet
  }
}

void Hopper::sync_lanes(unsigned warp, uint32_t lanes) {
  if (!active_) return;
  const auto for_each = [&](const auto& act) {
    for (unsigned lane = 0; lane < 32; ++lane) {
      if (lanes >> lane & 1) act(warp * 32 + lane);
    }
  };
  Clock all;
  for_each([&](unsigned thread) { join(all, clocks_[thread]); });
  for_each([&](unsigned thread) {
    clocks_[thread] = all;
    ++clocks_[thread][thread];
  });
}

void Hopper::meet(unsigned number, bool leaves) {
  if constexpr (COUNTING) {
    activate();
    if (leaves) {
      join(clock(), numbered_[number]);
    } else {
      join(numbered_[number], clock());
      ++clock()[running()];
    }
  }
  static_cast<void>(number), static_cast<void>(leaves);
}

unsigned Hopper::new_operation(unsigned actor, const void* pc, int swizzle, bool is_product) {
  operations_.push_back({actor, ~0u, code_offset(pc), swizzle, is_product});
  return operations_.size() - 1;
}

bool Hopper::is_over(unsigned operation, const Clock& known) const {
  return operation == 0 || operations_[operation].done <= at(known, operations_[operation].actor);
}

bool Hopper::knows(std::size_t word, bool write, unsigned by) const {
  const Word& touched = words_[word];
  return at(clocks_[running()], by) >= std::max(1u, write ? touched.written : touched.last.epoch);
}

const Hopper::Reader* Hopper::unknown_reader(std::size_t word, const Clock& known) const {
  const Others& others = others_[words_[word].others];
  const auto end = others.readers + others.count;
  const auto found = std::find_if(others.readers, end, [&](const Reader& reader) {
    return at(known, reader.thread) < reader.epoch;
  });
  return found == end ? nullptr : found;
}

std::string Hopper::objection(const Word& word, bool write, const Clock& known) const {
  const auto about = [&](unsigned operation) {
    return std::string(operations_[operation].is_product ? "the product" : "the copy") +
           " begun at " + called_line(operations_[operation].code);
  };
  if (!is_over(word.writer, known)) {
    return ", into which " + about(word.writer) + " writes: its barrier has not been waited for";
  }
  for (const unsigned reader : word.readers) {
    if (write && !is_over(reader, known)) {
      return ", which " + about(reader) + " reads: it is not known to have ended";
    }
  }
  return "";
}

std::string Hopper::touch(std::size_t index, bool write, bool strong, uint32_t code) {
  Word& word = words_[index];
  std::string text = objection(word, write, clock());
  const uint32_t epoch = clock()[running()];
  if (write) {
    others_[word.others].count = 0;
    word = {epoch, 0, {}, word.last, word.others};
    return text;
  }
  if (strong) return text;
  if (at(clock(), word.last.thread) < word.last.epoch) {
    if (word.others == 0) {
      word.others = others_.size();
      others_.emplace_back();
    }
    Others& others = others_[word.others];
    if (others.count < std::size(others.readers)) others.readers[others.count++] = word.last;
  }
  word.last = {running(), epoch, code};
  return text;
}

// An operation's access to shared memory: what is wrong with it, as far as these clocks know.
void Hopper::enter(unsigned number, const char* begin, unsigned bytes, bool write,
                   const Knowledge& knowledge) {
  const Operation& operation = operations_[number];
  const std::size_t first = (begin - worker_.memory().begin) / 4;
  const auto say = [&](uint32_t other, const auto& what) {
    object(operation.code, other, [&] {
      return std::string(operation.is_product ? "the product" : "the copy") + " begun at " +
             called_line(operation.code) + (write ? " writes to" : " reads") + " shared memory (" +
             name_of(static_cast<uint32_t>(shared_offset(begin))) + ")" + what();
    });
  };
  for (std::size_t i = first; i < first + (bytes + 3) / 4; ++i) {
    Word& word = words_[i];
    if (write && word.writer == number) continue;  // that row ends, or begins, within a word
    const ShadowWord& shadow = worker_.observer_->shared_word(i);
    const auto unordered = [&](Stamp stamp, uint32_t epoch) {
      return worker_.observer_->is_of_this_interval(stamp) &&
             at(knowledge.known, stamp.thread) < std::max(1u, epoch);
    };
    const auto thread = [&](Stamp stamp) { return to_string(worker_.thread_index(stamp.thread)); };
    if (word.writer != 0 || word.readers[0] != 0 || word.readers[1] != 0) {
      const auto before = [&] { return objection(word, write, knowledge.known); };
      unsigned other = is_over(word.writer, knowledge.known) ? 0 : word.writer;
      for (const unsigned reader : word.readers) {
        if (write && other == 0 && !is_over(reader, knowledge.known)) other = reader;
      }
      if (other != 0) say(operations_[other].code, before);
    }
    const Operation& writer = operations_[word.writer];
    if (!write && word.writer != 0 && writer.swizzle >= 0 && writer.swizzle != operation.swizzle) {
      say(writer.code, [&] {
        return fmt::format(
            " with a swizzle of {} bytes, into which the copy begun at {} writes with one "
            "of {} (16: none)",
            16 << operation.swizzle, called_line(writer.code), 16 << writer.swizzle);
      });
    }
    if (word.writer == 0) {
      const Stamp& by = shadow.write;
      if (!write && !worker_.observer_->is_of_this_block(by)) {
        say(1, [] { return std::string(" that nobody has written"); });
      } else if (unordered(by, word.written)) {
        say(shadow.write_code, [&] {
          return " that thread " + thread(by) + " writes at " + called_line(shadow.write_code) +
                 ", and nothing orders the two";
        });
      } else if (worker_.observer_->is_of_this_block(by) &&
                 at(fenced_[by.thread], by.thread) < std::max(1u, word.written) &&
                 at(knowledge.fenced, by.thread) < std::max(1u, word.written)) {
        say(shadow.write_code, [&] {
          return " that thread " + thread(by) + " wrote at " + called_line(shadow.write_code) +
                 ", without fence.proxy.async behind it";
        });
      }
    }
    const Reader* const other = write ? unknown_reader(i, knowledge.known) : nullptr;
    if (write && (other || unordered(shadow.read, word.last.epoch))) {
      const Reader by = other ? *other : Reader{shadow.read.thread, 0, shadow.read_code};
      say(by.code, [&] {
        return " that thread " + to_string(worker_.thread_index(by.thread)) + " reads at " +
               called_line(by.code) + ", and nothing orders the two";
      });
    }
    if (write) {
      others_[word.others].count = 0;
      word = {0, number, {}, {}, word.others};
      if constexpr (COUNTING) worker_.observer_->forget_touches(i);
    } else {
      word.readers[operation.actor % 2] = number;
    }
  }
}

// What a product reads must be known to all its warps.
void Hopper::watch(Group& group, const Product& product) {
  const auto least = [&](const std::vector<Clock>& clocks) {
    const std::size_t first = (&group - groups_.data()) * GROUP;
    Clock all = clocks[first];
    all.resize(actors_);
    for (unsigned warp = 1; warp < 4; ++warp) {
      for (unsigned i = 0; i < actors_; ++i) {
        all[i] = std::min(all[i], at(clocks[first + warp * 32], i));
      }
    }
    return all;
  };
  const Clock known = least(clocks_), fenced = least(fenced_);
  const auto end = static_cast<uint32_t>(product.number + 1);
  constexpr int SWIZZLES[] = {0, 3, 2, 1};
  const auto enter_operand = [&](uint64_t descriptor, const std::vector<uint32_t>& chunks) {
    operations_.push_back({group.actor, end, product.code, SWIZZLES[descriptor >> 62], true});
    for (const uint32_t chunk : chunks) {
      enter(operations_.size() - 1, shared_pointer(chunk), 16, false, {known, fenced});
    }
  };
  const ptx::WarpgroupProduct& what = product.what;
  if (!what.a_in_registers) enter_operand(what.a, product.a);
  enter_operand(what.b, product.b);
  worker_.observer_->mma_of_warpgroup(what.columns, 16 * (product.a.size() + product.b.size()));
}

}  // namespace convladder::simulator

// ---- What inline PTX calls ----

namespace convladder::simulator::ptx {
namespace {

template <typename Act>
auto within(const Act& act) {
  Worker& worker = this_worker();
  worker.pause();
  if constexpr (std::is_void_v<decltype(act(worker.hopper()))>) {
    act(worker.hopper());
    worker.go_on();
  } else {
    const auto result = act(worker.hopper());
    worker.go_on();
    return result;
  }
}

}  // namespace

#define CONVLADDER_PC __builtin_return_address(0)
void mbarrier_init(void* barrier, unsigned arrivals) {
  const void* const pc = CONVLADDER_PC;
  within([&](Hopper& hopper) { hopper.init(barrier, arrivals, pc); });
}
void mbarrier_inval(void* barrier) {
  const void* const pc = CONVLADDER_PC;
  within([&](Hopper& hopper) { hopper.inval(barrier, pc); });
}
uint64_t mbarrier_arrive(void* barrier, unsigned count, int bytes, bool drops) {
  const void* const pc = CONVLADDER_PC;
  return within([&](Hopper& hopper) { return hopper.arrive(barrier, count, bytes, drops, pc); });
}
void mbarrier_expect(void* barrier, int bytes) {
  const void* const pc = CONVLADDER_PC;
  within([&](Hopper& hopper) { hopper.expect(barrier, bytes, pc); });
}
bool mbarrier_wait(void* barrier, uint64_t phase, bool is_parity, bool sleeps) {
  const void* const pc = CONVLADDER_PC;
  return within([&](Hopper& hopper) { return hopper.wait(barrier, phase, is_parity, sleeps, pc); });
}
void arrive_when_copied(void* barrier, bool counts) {
  const void* const pc = CONVLADDER_PC;
  within([&](Hopper& hopper) { hopper.arrive_when_copied(barrier, counts, pc); });
}
void bulk_copy(void* to_shared, const void* from, unsigned bytes, void* barrier) {
  const void* const pc = CONVLADDER_PC;
  within([&](Hopper& hopper) { hopper.copy(to_shared, from, bytes, barrier, pc); });
}
void bulk_store(void* to, const void* from_shared, unsigned bytes) {
  const void* const pc = CONVLADDER_PC;
  within([&](Hopper& hopper) { hopper.store(to, from_shared, bytes, pc); });
}
void tensor_copy(void* to_shared, const void* map, void* barrier, const int (&at)[5],
                 const int (&offsets)[3], bool im2col) {
  const void* const pc = CONVLADDER_PC;
  within([&](Hopper& hopper) {
    hopper.require_of_the_device(map, pc);
    const TensorMap& found = read_tensor_map(map);
    if (found.is_im2col != im2col) {
      throw KernelError(cudaErrorIllegalInstruction,
                        "a tensor copy is im2col, or tiled, and its map is not");
    }
    hopper.copy(to_shared, found, barrier, at, offsets, pc);
  });
}
void tensor_store(const void* map, const void* from_shared, const int (&at)[5]) {
  const void* const pc = CONVLADDER_PC;
  within([&](Hopper& hopper) {
    hopper.require_of_the_device(map, pc);
    hopper.store(read_tensor_map(map), from_shared, at, pc);
  });
}
void commit_stores() {
  within([](Hopper& hopper) { hopper.commit_stores(); });
}
void wait_for_stores(unsigned pending) {
  within([&](Hopper& hopper) { hopper.wait_for_stores(pending); });
}
bool begin_product(const WarpgroupProduct& product, void* first_sum) {
  const void* const pc = CONVLADDER_PC;
  return within([&](Hopper& hopper) { return hopper.begin_product(product, first_sum, pc); });
}
void take_sums(void* const* registers) {
  within([&](Hopper& hopper) { hopper.take_sums(registers); });
}
void fence_registers() {
  within([](Hopper& hopper) { hopper.fence_registers(); });
}
void commit_products() {
  within([](Hopper& hopper) { hopper.commit_products(); });
}
void wait_for_products(unsigned pending) {
  const void* const pc = CONVLADDER_PC;
  within([&](Hopper& hopper) { hopper.wait_for_products(pending, pc); });
}
void fence_proxies() {
  within([](Hopper& hopper) { hopper.fence_proxies(); });
}
void fence_barriers() {
  within([](Hopper& hopper) { hopper.fence_barriers(); });
}
void set_registers(unsigned count) {
  const void* const pc = CONVLADDER_PC;
  within([&](Hopper& hopper) { hopper.set_registers(count, pc); });
}
#undef CONVLADDER_PC

}  // namespace convladder::simulator::ptx
