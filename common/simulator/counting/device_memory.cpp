#include "common/simulator/counting/device_memory.h"

#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

namespace convladder::simulator {
namespace {

constexpr std::size_t SECTOR_WORDS = 8;

// Zeros, which cost memory only where something is written.
template <typename T>
T* map_zeros(std::size_t count) {
  void* memory = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return static_cast<T*>(memory);
}

// Guards the shadow of a stretch of memory while a worker is at it.
class StretchLock {
 public:
  explicit StretchLock(uintptr_t address) : flag_(flags_[address / 4096 % COUNT]) {
    while (flag_.test_and_set(std::memory_order_acquire)) {
    }
  }
  ~StretchLock() { flag_.clear(std::memory_order_release); }

 private:
  static constexpr std::size_t COUNT = 1024;
  static inline std::atomic_flag flags_[COUNT] = {};
  std::atomic_flag& flag_;
};

Stamp load(const Stamp& stamp) {
  Stamp copy;
  uint64_t bits = __atomic_load_n(reinterpret_cast<const uint64_t*>(&stamp), __ATOMIC_RELAXED);
  std::memcpy(&copy, &bits, sizeof(copy));
  return copy;
}

// For dl_iterate_phdr, which begins with the program itself: 1 if the address is in its data.
int find_in_program(dl_phdr_info* program, std::size_t, void* address) {
  for (int i = 0; i < program->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = program->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || segment.p_flags & PF_X) continue;
    const uintptr_t begin = program->dlpi_addr + segment.p_vaddr;
    if (*static_cast<uintptr_t*>(address) - begin < segment.p_memsz) return 1;
  }
  return -1;  // ends the iteration
}

}  // namespace

Allocation::Allocation(const void* begin, std::size_t bytes)
    : begin_(reinterpret_cast<uintptr_t>(begin)),
      bytes_(bytes),
      state_(map_zeros<MemoryState>(words())),
      shadow_(map_zeros<ShadowWord>(words())) {}

Allocation::~Allocation() {
  munmap(state_, words());
  munmap(shadow_, words() * sizeof(ShadowWord));
}

void Allocation::set_state(std::size_t first, std::size_t count, MemoryState state) {
  std::fill_n(state_ + first, count, state);
}

Touch Allocation::enter(std::size_t word, Touch now, bool write) {
  ShadowWord& shadow = shadow_[word];
  // The common case: what no kernel writes, and many blocks have read before.
  if (!write && load(shadow.read).several_blocks && !load(shadow.write).present) return {};
  const StretchLock lock(begin_ + word * 4);
  return write ? enter_write(shadow, now, Scope::kGrid) : enter_read(shadow, now, Scope::kGrid);
}

void Allocation::forget_touches() {
  madvise(shadow_, words() * sizeof(ShadowWord), MADV_DONTNEED);  // zeros again
}

int64_t Allocation::sectors_touched(bool written) const {
  int64_t sectors = 0;
  for (std::size_t first = 0; first < words(); first += SECTOR_WORDS) {
    const auto touched = [&](const ShadowWord& word) {
      return written ? word.write.present : word.read.present;
    };
    const ShadowWord* begin = shadow_ + first;
    const ShadowWord* end = shadow_ + std::min(first + SECTOR_WORDS, words());
    sectors += std::any_of(begin, end, touched);
  }
  return sectors;
}

DeviceMemory& DeviceMemory::instance() {
  static auto* memory = new DeviceMemory;  // outlives every other static
  return *memory;
}

void DeviceMemory::add(const void* begin, std::size_t bytes) {
  auto allocation = std::make_shared<Allocation>(begin, bytes);
  const std::lock_guard lock(mutex_);
  const auto at = std::find_if(all_.begin(), all_.end(), [&](const auto& other) {
    return other->begin() > allocation->begin();
  });
  all_.insert(at, std::move(allocation));
}

void DeviceMemory::remove(const void* begin) {
  const std::lock_guard lock(mutex_);
  const auto at = std::find_if(all_.begin(), all_.end(), [&](const auto& allocation) {
    return allocation->begin() == reinterpret_cast<uintptr_t>(begin);
  });
  if (at != all_.end()) all_.erase(at);
}

void DeviceMemory::set_state(const void* begin, std::size_t bytes, MemoryState state) {
  const std::lock_guard lock(mutex_);
  Allocation* allocation = find(all_, reinterpret_cast<uintptr_t>(begin));
  if (!allocation || bytes == 0) return;
  const std::size_t offset = reinterpret_cast<uintptr_t>(begin) - allocation->begin();
  const std::size_t end = std::min(offset + bytes, allocation->bytes());
  allocation->set_state(offset / 4, (end + 3) / 4 - offset / 4, state);
}

Allocations DeviceMemory::allocations() const {
  const std::lock_guard lock(mutex_);
  return all_;
}

Allocation* find(const Allocations& all, uintptr_t address) {
  for (const auto& allocation : all) {
    if (allocation->contains(address)) return allocation.get();
  }
  return nullptr;
}

void memory_allocated(void* begin, std::size_t bytes) {
  DeviceMemory::instance().add(begin, bytes);
}

void memory_freed(void* begin) { DeviceMemory::instance().remove(begin); }

void set_memory_state(const void* begin, std::size_t bytes, MemoryState state) {
  DeviceMemory::instance().set_state(begin, bytes, state);
}

bool is_program_data(uintptr_t address) { return dl_iterate_phdr(find_in_program, &address) == 1; }

}  // namespace convladder::simulator
