#include "common/simulator/counting/shadow.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>

#include "common/core/program.h"

// The linker's: behind the program's code, where its variables begin, and behind its data; and what
// translate.py has put into sections.
extern "C" {
extern char etext, __data_start, end;
extern char __start_convladder_device[] __attribute__((weak));
extern char __stop_convladder_device[] __attribute__((weak));
extern char __start_convladder_constant[] __attribute__((weak));
extern char __stop_convladder_constant[] __attribute__((weak));
}

namespace convladder::simulator {
namespace {

constexpr unsigned SECTOR_WORDS = 8;
constexpr std::size_t STRETCH = 128;  // lines
constexpr uint8_t FIRST_SETTLED = 4 | static_cast<uint8_t>(MemoryState::kDefined);

// Zeros, which cost memory only where something is written. In large pages, since most of a tensor is
// touched if any of it is.
template <typename T>
T* map_zeros(std::size_t count) {
  const std::size_t bytes = count * sizeof(T);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  madvise(memory, bytes, MADV_HUGEPAGE);
  return static_cast<T*>(memory);
}

// Guards a line while a worker is at it.
class LineLock {
 public:
  explicit LineLock(Line& line) : busy_(line.busy) {
    while (busy_.test_and_set(std::memory_order_acquire)) {
    }
  }
  ~LineLock() { busy_.clear(std::memory_order_release); }

 private:
  std::atomic_flag& busy_;
};

// Room for lines whose words are told of one by one, for one launch.
class Words {
 public:
  ShadowWord* take() {
    const std::lock_guard lock(mutex_);
    const std::size_t chunk = taken_ / CHUNK;
    if (chunk == chunks_.size()) {
      chunks_.push_back(std::make_unique<ShadowWord[]>(CHUNK * Line::WORDS));
    }
    return &chunks_[chunk][taken_++ % CHUNK * Line::WORDS];
  }
  void forget() { taken_ = 0; }

 private:
  static constexpr std::size_t CHUNK = 1024;  // lines
  std::mutex mutex_;
  std::vector<std::unique_ptr<ShadowWord[]>> chunks_;
  std::size_t taken_ = 0;
};
// Of this launch; those of the one before are kept where they are asked for.
struct AllWords {
  Words pools[2];
  unsigned current = 0;
};
AllWords& all_words() {
  static auto* words = new AllWords;  // outlives every other static
  return *words;
}

// Whether a read by `now` adds nothing to what `before` says of reads: of other blocks or, where its own has
// read before in the same interval, of other warps, or of no other thread.
bool repeats_read(Stamp before, Touch touch) {
  const Stamp now = touch.stamp;
  if (before.several_blocks) return true;
  if (!before.present || before.strong || touch.bytes != 15) return false;
  if (!same_interval(before, now)) return false;
  return before.several_warps ||
         (before.thread == now.thread && before.phase == now.phase && before.fences == now.fences);
}

// Variables of the device, in a section of translate.py's; between them is what nobody may touch.
struct Section {
  Section(const char* kind, const char* begin, const char* end)
      : kind(kind), variables(variables_between(begin, end)) {
    memory = std::make_shared<Allocation>(begin, end - begin, true);
    const auto set = [&](const char* at, std::size_t bytes, MemoryState state) {
      memory->set_state((at - begin) / 4, (at - begin + bytes + 3) / 4 - (at - begin) / 4, state);
    };
    // Without binutils no variable is known.
    set(begin, end - begin, variables.empty() ? MemoryState::kDefined : MemoryState::kForbidden);
    for (const Variable& each : variables) set(each.begin, each.bytes, MemoryState::kDefined);
  }
  const char* kind;
  std::vector<Variable> variables;
  std::shared_ptr<Allocation> memory;
};
const std::vector<Section>& sections() {
  static const auto* all = [] {  // outlives every other static
    auto* made = new std::vector<Section>;
    if (__start_convladder_device != __stop_convladder_device) {
      made->emplace_back("__device__", __start_convladder_device, __stop_convladder_device);
    }
    if (__start_convladder_constant != __stop_convladder_constant) {
      made->emplace_back("__constant__", __start_convladder_constant, __stop_convladder_constant);
    }
    return made;
  }();
  return *all;
}

// They are the first allocation, if there are any.
Allocations variables() {
  if (__start_convladder_device == __stop_convladder_device) return {};
  return {sections().front().memory};
}

std::atomic<uint64_t> last_version{0}, constants_version{0};

std::mutex mutex;
Allocations freed;  // since the launch began: a worker may still hold one
// Where the last that were freed lay, as (begin, end). The host may get such addresses next.
std::deque<std::pair<uintptr_t, uintptr_t>> freed_ranges;
constexpr std::size_t MOST_FREED_RANGES = 64;
Allocations& allocations() {
  static auto* all = new Allocations(variables());  // outlives every other static
  return *all;
}

}  // namespace

Stamp Run::stamp(unsigned word) const {
  Stamp stamp = first;
  if (width > 0) stamp.thread += (word - origin) / width * step;
  return stamp;
}

bool Run::append(unsigned word, const Touch& touch, bool is_write) {
  if (end != word || touch.code != code || touch.bytes != bytes || is_write != write) return false;
  Stamp last = stamp(end - 1);
  const unsigned by = touch.stamp.thread - last.thread, count = end - origin;
  last.thread = touch.stamp.thread;
  if (std::memcmp(&last, &touch.stamp, sizeof(last)) != 0) return false;
  if (width == 0 && by > 0 && by < 256) {
    width = count;
    step = by;
  } else if (by != (width > 0 && count % width == 0 ? step : 0)) {
    return false;
  }
  ++end;
  return true;
}

ShadowWord Line::load(unsigned word) const {
  if (count == EACH_WORD) return words[word];
  ShadowWord shadow{};
  for (const Run* run = runs; run < runs + count; ++run) {
    if (!run->holds(word)) continue;
    if (run->write) {
      shadow.write = run->stamp(word);
      shadow.write_code = run->code;
      shadow.write_bytes = run->bytes;
    } else {
      shadow.read = run->stamp(word);
      shadow.read_code = run->code;
      shadow.read_bytes = run->bytes;
    }
  }
  return shadow;
}

bool Line::touch_first(unsigned word, const Touch& now, bool write) {
  if (count == EACH_WORD) return false;
  for (const Run* run = runs; run < runs + count; ++run) {
    if (run->holds(word)) return false;
  }
  return add(word, now, write);
}

void Line::store(unsigned word, const ShadowWord& shadow, bool write) {
  if (count != EACH_WORD) {
    const Touch touch = write ? Touch{shadow.write, shadow.write_code, shadow.write_bytes}
                              : Touch{shadow.read, shadow.read_code, shadow.read_bytes};
    if (forget(word, write) && add(word, touch, write)) return;
    expand();
  }
  words[word] = shadow;
}

// No run tells of the word any longer; false where one tells of words before it and behind it.
bool Line::forget(unsigned word, bool write) {
  for (unsigned i = 0; i < count; ++i) {
    Run& run = runs[i];
    if (run.write != write || !run.holds(word)) continue;
    if (run.end == word + 1) {
      --run.end;
    } else if (run.begin == word) {
      ++run.begin;
    } else {
      return false;
    }
    if (run.begin == run.end) run = runs[--count];
    break;
  }
  return true;
}

// False where there is no room.
bool Line::add(unsigned word, const Touch& touch, bool write) {
  for (unsigned i = 0; i < count; ++i) {
    if (runs[i].append(word, touch, write)) return true;
  }
  if (count == std::size(runs)) return false;
  Run& run = runs[count++];
  run = {};
  run.first = touch.stamp;
  run.code = touch.code;
  run.bytes = touch.bytes;
  run.write = write;
  run.begin = run.origin = word;
  run.end = word + 1;
  return true;
}

void Line::expand() {
  AllWords& all = all_words();
  ShadowWord* const each = all.pools[all.current].take();
  for (unsigned word = 0; word < WORDS; ++word) each[word] = load(word);
  words = each;
  count = EACH_WORD;
}

uint32_t Line::touched(bool written) const {
  uint32_t touched = 0;
  if (count == EACH_WORD) {
    for (unsigned word = 0; word < WORDS; ++word) {
      const Stamp& stamp = written ? words[word].write : words[word].read;
      touched |= static_cast<uint32_t>(stamp.present) << word;
    }
    return touched;
  }
  for (const Run* run = runs; run < runs + count; ++run) {
    if (run->write == written) touched |= ~0u >> (WORDS - (run->end - run->begin)) << run->begin;
  }
  return touched;
}

Allocation::Allocation(const void* begin, std::size_t bytes, bool host_writes)
    : begin_(reinterpret_cast<uintptr_t>(begin)),
      bytes_(bytes),
      host_writes_(host_writes),
      state_(map_zeros<uint8_t>(words())),
      settled_(FIRST_SETTLED),
      lines_(map_zeros<Line>(lines())),
      touched_((lines() + STRETCH - 1) / STRETCH) {}

Allocation::~Allocation() {
  munmap(state_, words());
  munmap(lines_, lines() * sizeof(Line));
  if (lines_before_) munmap(lines_before_, lines() * sizeof(Line));
}

void Allocation::set_state(std::size_t first, std::size_t count, MemoryState state) {
  std::fill_n(state_ + first, count, static_cast<uint8_t>(state));
}

void Allocation::set_written(std::size_t first, std::size_t last, unsigned bytes) {
  constexpr unsigned ALL = 15;
  for (std::size_t word = first; word <= last; ++word) {
    uint8_t before = __atomic_load_n(&state_[word], __ATOMIC_RELAXED), after = 0;
    do {
      const auto is = static_cast<MemoryState>(before & 3);
      unsigned written = is == MemoryState::kPartial ? before >> 2 | bytes : bytes;
      if (is == MemoryState::kDefined) written = ALL;
      after = static_cast<uint8_t>(written == ALL ? static_cast<unsigned>(MemoryState::kDefined)
                                                  : written << 2 | unsigned(MemoryState::kPartial));
    } while (!__atomic_compare_exchange_n(&state_[word], &before, after, false, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
  }
}

Touch Allocation::enter(std::size_t word, Touch now, bool write, bool allowed, uint64_t seen) {
  if (!write && state_[word] == settled_) return {};
  if (write) note_write();
  Line& line = lines_[word / Line::WORDS];
  const LineLock lock(line);
  begin_launch(line);
  if (line.touch_first(word % Line::WORDS, now, write)) return {};
  ShadowWord shadow = line.load(word % Line::WORDS);
  if (write && shadow.read.present && !(shadow.write.present && shadow.write_bytes == 15)) {
    overwritten_ = true;
  }
  if (!write && repeats_read(shadow.read, now) && !shadow.write.present) return {};
  const bool ordered = !write && seen > 0 && shadow.read.present &&
                       was_published(shadow.read, seen, now.stamp.block);
  const Touch before = write ? enter_write(shadow, now, Scope::kGrid, allowed)
                             : enter_read(shadow, now, Scope::kGrid, allowed, ordered);
  if (before.stamp.present) return before;
  line.store(word % Line::WORDS, shadow, write);
  if (!write && shadow.read.several_blocks && !shadow.write.present &&
      state(word) == MemoryState::kDefined) {
    state_[word] = settled_;
  }
  return {};
}

bool Allocation::touch_first(uintptr_t address, unsigned bytes, const Touch& now, bool write) {
  const std::size_t offset = address - begin_, first = offset / 4, last = (offset + bytes - 1) / 4;
  if ((address | offset) % bytes != 0 || offset + bytes > bytes_) return false;
  for (std::size_t word = first; word <= last; ++word) {
    const MemoryState is = state(word);
    if (is != MemoryState::kDefined && (!write || bytes < 4 || is == MemoryState::kForbidden)) {
      return false;
    }
  }
  Line& line = lines_[first / Line::WORDS];
  {
    const LineLock lock(line);
    begin_launch(line);
    for (std::size_t word = first; word <= last; ++word) {
      if (!line.touch_first(word % Line::WORDS, now, write)) return false;
    }
  }
  if (write) {
    note_write();
    set_state(first, last - first + 1, MemoryState::kDefined);
  }
  return true;
}

// What is in the line may be of launches before.
void Allocation::begin_launch(Line& line) {
  if (line.launch == launch_) return;
  line.launch = launch_;
  line.count = 0;
  __atomic_store_n(&touched_[(&line - lines_) / STRETCH], 1, __ATOMIC_RELAXED);
}

// Calls seen(line) for each that was touched.
template <typename Seen>
void Allocation::for_each_touched(const Seen& seen) const {
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    if (!touched_[i]) continue;
    for (std::size_t j = i * STRETCH; j < std::min((i + 1) * STRETCH, lines()); ++j) {
      if (lines_[j].launch == launch_) seen(lines_[j]);
    }
  }
}

bool Allocation::is_filled(Fill fill) const {
  return fill.begin == fill_.begin && fill.bytes == fill_.bytes && fill.value == fill_.value &&
         !host_writes_ && !was_touched();
}

Touch Allocation::touch_before(std::size_t word, Touch now, bool write) const {
  const Line* const line = lines_before_ ? &lines_before_[word / Line::WORDS] : nullptr;
  if (!line || line->launch != launch_ - 1) return {};
  const ShadowWord shadow = line->load(word % Line::WORDS);
  if (shadow.write.present && (shadow.write_bytes & now.bytes)) {
    return {shadow.write, shadow.write_code, shadow.write_bytes};
  }
  if (write && shadow.read.present && (shadow.read_bytes & now.bytes)) {
    return {shadow.read, shadow.read_code, shadow.read_bytes, true};
  }
  return {};
}

void Allocation::forget_touches(bool keeps) {
  if (!is_filled(fill_)) fill_ = {};
  if (keeps && was_touched()) {
    if (!lines_before_) lines_before_ = map_zeros<Line>(lines());
    std::swap(lines_, lines_before_);
  }
  ++launch_;
  overwritten_ = false;
  std::fill(touched_.begin(), touched_.end(), 0);
  settled_ += 4;
  if (settled_ > FIRST_SETTLED) return;
  settled_ = FIRST_SETTLED;  // all numbers were used
  for (std::size_t i = 0; i < words(); ++i) state_[i] &= 3;
}

bool Allocation::was_touched() const {
  return std::any_of(touched_.begin(), touched_.end(),
                     [](uint8_t touched) { return touched != 0; });
}

uint64_t Allocation::version() {
  if (written_.exchange(false) || version_ == 0) version_ = ++last_version;
  return version_;
}

int64_t Allocation::sectors_touched(bool written) const {
  int64_t sectors = 0;
  for_each_touched([&](const Line& line) {
    for (uint32_t rest = line.touched(written); rest != 0; rest >>= SECTOR_WORDS) {
      sectors += (rest & 0xff) != 0;
    }
  });
  return sectors;
}

namespace {
// When threads first came to a fence, by who() and by the block's intervals; and what words tell of.
struct Publications {
  std::mutex mutex;
  std::unordered_map<uint64_t, uint64_t> times, times_in_block;
  std::unordered_map<uint64_t, std::vector<std::pair<uint64_t, uint64_t>>>
      intervals;  // (interval, time), in order
  std::unordered_map<uintptr_t, uint64_t> told;
};
Publications publications;
std::atomic<uint64_t> publication_count{0}, wait_published{0};  // the latter: when it was first

// A thread's fence, or one of any thread of its warp.
uint64_t who(Stamp stamp) {
  return ((uint64_t{stamp.block} << 16 | stamp.interval) << 11 | stamp.thread) << 3 | stamp.fences
                                                                                          << 1;
}
constexpr unsigned PHASES_OF_FENCES = 64;  // that are told apart
uint64_t whose_warp(Stamp stamp, unsigned phase) {
  const uint64_t warp = stamp.thread / uint64_t{warpSize};
  return ((uint64_t{stamp.block} << 16 | stamp.interval) << 11 | warp << 6 | phase) << 3 | 1;
}
}  // namespace

uint64_t publish(Stamp now, bool waited, bool in_block) {
  const std::lock_guard lock(publications.mutex);
  if (in_block) {
    auto& times = publications.times_in_block;
    if (times.emplace(who(now), publication_count + 1).second) {
      times.emplace(whose_warp(now, now.phase % PHASES_OF_FENCES), ++publication_count);
    }
    if (waited && wait_published == 0) wait_published = publication_count.load();
    return publication_count;
  }
  // The first covers what comes later: a race may go unseen, and none is invented.
  if (publications.times.emplace(who(now), publication_count + 1).second) {
    ++publication_count;
    publications.times.emplace(whose_warp(now, now.phase % PHASES_OF_FENCES), publication_count);
    auto& intervals = publications.intervals[now.block];
    if (intervals.empty() || intervals.back().first != now.interval) {
      intervals.emplace_back(uint64_t{now.interval}, publication_count);
    }
  }
  if (waited && wait_published == 0) wait_published = publication_count.load();
  return publication_count;
}

uint64_t publication_time() { return publication_count; }

bool was_published(Stamp touch, uint64_t time, uint64_t block) {
  if (touch.in_flight)
    touch.fences = 0;  // who updates a word has read what the update before left there
  constexpr uint64_t HALF = INTERVALS / 2;
  const std::lock_guard lock(publications.mutex);
  const auto was_among = [&](const auto& times, uint64_t who) {
    const auto found = times.find(who);
    return found != times.end() && found->second <= time;
  };
  const auto was = [&](uint64_t who) {
    return was_among(publications.times, who) ||
           (touch.block == block && was_among(publications.times_in_block, who));
  };
  if (was(who(touch))) return true;
  for (unsigned phase = 0; phase < PHASES_OF_FENCES; ++phase) {
    if (phase != touch.phase % PHASES_OF_FENCES && was(whose_warp(touch, phase))) return true;
  }
  const auto found = publications.intervals.find(touch.block);
  if (found == publications.intervals.end()) return false;
  uint64_t first = time + 1;  // fence behind the next barriers
  for (auto each = found->second.rbegin(); each != found->second.rend(); ++each) {
    const uint64_t barriers = (each->first - touch.interval) % (2 * HALF);
    if (barriers == 0 || barriers >= HALF) break;
    first = each->second;
  }
  return first <= time;
}

void tell(uintptr_t word, uint64_t time) {
  const std::lock_guard lock(publications.mutex);
  uint64_t& told = publications.told[word];
  told = std::max(told, time);
}

uint64_t told(uintptr_t word) {
  const std::lock_guard lock(publications.mutex);
  const auto found = publications.told.find(word);
  return found == publications.told.end() ? 0 : found->second;
}

bool was_wait_published(uint64_t time) { return wait_published > 0 && wait_published <= time; }

void forget_publications(bool keeps) {
  const std::lock_guard lock(publications.mutex);
  publications.times.clear();
  publications.times_in_block.clear();
  publications.intervals.clear();
  publications.told.clear();
  publication_count = wait_published = 0;
  AllWords& words = all_words();
  if (keeps) words.current ^= 1;
  words.pools[words.current].forget();
  const std::lock_guard memory(mutex);
  freed.clear();
}

Allocation* find(const Allocations& all, uintptr_t address) {
  for (const auto& allocation : all) {
    if (allocation->contains(address)) return allocation.get();
  }
  return nullptr;
}

std::string nearest_variable(uintptr_t address) {
  std::string text;
  uintptr_t least = 1 << 20;
  for (const Section& section : sections()) {
    for (const Variable& variable : section.variables) {
      const auto begin = reinterpret_cast<uintptr_t>(variable.begin);
      const uintptr_t past = address - (begin + variable.bytes), before = begin - address;
      if (std::min(past, before) >= least) continue;
      least = std::min(past, before);
      text = std::to_string(least) + " bytes " +
             (past == least ? "past the end" : "before the begin") + " of " + section.kind + " " +
             variable.name + ", " + std::to_string(variable.bytes) + " bytes";
    }
  }
  return text;
}

std::string nearest(const Allocations& all, uintptr_t address) {
  constexpr uintptr_t NEAR = 1 << 20;
  std::string text;
  if (address < NEAR) text = ", " + std::to_string(address) + " bytes past a null pointer";
  uintptr_t least = NEAR;
  for (const auto& allocation : all) {
    const uintptr_t past = address - (allocation->begin() + allocation->bytes());
    const uintptr_t before = allocation->begin() - address;
    if (std::min(past, before) >= least) continue;
    least = std::min(past, before);
    const std::string& name = allocation->name;  // a tensor has guards around it
    text = ", " + (name.empty() ? std::to_string(least) + " bytes" : "far") +
           (past == least ? " past the end of " : " before the begin of ") +
           (name.empty() ? std::to_string(allocation->bytes()) + " bytes" : name);
  }
  return text;
}

Allocations device_memory() {
  const std::lock_guard lock(mutex);
  return allocations();
}

void memory_allocated(void* begin, std::size_t bytes, bool host_writes) {
  auto allocation = std::make_shared<Allocation>(begin, bytes, host_writes);
  const std::lock_guard lock(mutex);
  allocations().push_back(std::move(allocation));
}

void memory_freed(void* begin) {
  const std::lock_guard lock(mutex);
  Allocations& all = allocations();
  const auto is_it = [&](const auto& allocation) {
    return allocation->begin() == reinterpret_cast<uintptr_t>(begin);
  };
  const auto found = std::find_if(all.begin(), all.end(), is_it);
  if (found == all.end()) return;
  freed_ranges.emplace_back((*found)->begin(), (*found)->begin() + (*found)->bytes());
  if (freed_ranges.size() > MOST_FREED_RANGES) freed_ranges.pop_front();
  (*found)->retire();
  freed.push_back(std::move(*found));
  all.erase(found);
}

void memory_named(const void* address, const std::string& name) {
  const std::lock_guard lock(mutex);
  if (Allocation* found = find(allocations(), reinterpret_cast<uintptr_t>(address))) {
    found->name = name;
  }
}

bool was_freed(uintptr_t address) {
  const std::lock_guard lock(mutex);
  return std::any_of(freed_ranges.begin(), freed_ranges.end(), [&](const auto& range) {
    return address >= range.first && address < range.second;
  });
}

bool is_device_memory(const void* begin) {
  const std::lock_guard lock(mutex);
  return find(allocations(), reinterpret_cast<uintptr_t>(begin)) != nullptr;
}

void set_memory_state(const void* begin, std::size_t bytes, MemoryState state) {
  const std::lock_guard lock(mutex);
  Allocation* allocation = find(allocations(), reinterpret_cast<uintptr_t>(begin));
  if (is_constant(reinterpret_cast<uintptr_t>(begin))) constants_version = ++last_version;
  if (!allocation || bytes == 0) return;
  allocation->note_write();
  const std::size_t offset = reinterpret_cast<uintptr_t>(begin) - allocation->begin();
  const std::size_t end = std::min(offset + bytes, allocation->bytes());
  allocation->note_fill({});
  allocation->set_state(offset / 4, (end + 3) / 4 - offset / 4, state);
}

bool is_filled(const void* begin, std::size_t bytes, int value) {
  const std::lock_guard lock(mutex);
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const Allocation* allocation = find(allocations(), address);
  return allocation && allocation->is_filled({address, bytes, value});
}

void note_fill(const void* begin, std::size_t bytes, int value) {
  const std::lock_guard lock(mutex);
  const auto address = reinterpret_cast<uintptr_t>(begin);
  if (Allocation* allocation = find(allocations(), address)) {
    allocation->note_fill({address, bytes, value});
  }
}

uint64_t version_of_constants() { return constants_version; }

bool is_constant(uintptr_t address) {
  const std::size_t bytes = __stop_convladder_constant - __start_convladder_constant;
  return address - reinterpret_cast<uintptr_t>(__start_convladder_constant) < bytes;
}

bool holds_constant(uintptr_t address, unsigned bytes) {
  const Allocation& memory = *sections().back().memory;
  const std::size_t first = address - memory.begin(), last = first + bytes - 1;
  return last < memory.bytes() && memory.state(first / 4) != MemoryState::kForbidden &&
         memory.state(last / 4) != MemoryState::kForbidden;
}

bool is_program_data(uintptr_t address) {
  return address >= reinterpret_cast<uintptr_t>(&etext) &&
         address < reinterpret_cast<uintptr_t>(&end);
}

bool is_device_variable(const void* address) {
  const auto* byte = static_cast<const char*>(address);
  return (byte >= __start_convladder_device && byte < __stop_convladder_device) ||
         (byte >= __start_convladder_constant && byte < __stop_convladder_constant);
}

std::size_t bytes_of_variable(const void* begin) {
  for (const Section& section : sections()) {
    for (const Variable& variable : section.variables) {
      if (variable.begin == begin) return variable.bytes;
    }
  }
  return 0;
}

bool is_instance(const void* begin) {
  const auto* const at = static_cast<const char*>(begin);
  const std::vector<Variable> found = variables_between(at, at + 1);
  return !found.empty() && found.front().name.back() == '>';  // name<int>
}

bool is_host_variable(uintptr_t address) {
  return address >= reinterpret_cast<uintptr_t>(&__data_start) &&
         !is_device_variable(reinterpret_cast<const void*>(address));
}

bool is_mapped(uintptr_t address) {
  unsigned char ignored = 0;
  return mincore(reinterpret_cast<void*>(address / 4096 * 4096), 1, &ignored) == 0;
}

}  // namespace convladder::simulator
