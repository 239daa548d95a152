#include "common/core/platform.h"

#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <cstring>

#if defined(__APPLE__)
#include <mach-o/dyld.h>
#include <mach/mach.h>
#include <malloc/malloc.h>
#include <pthread.h>
#include <sys/sysctl.h>
#include <sys/ucontext.h>
#else
#include <dirent.h>
#include <link.h>
#include <ucontext.h>

#include <fstream>
#endif

namespace convladder {

#if defined(__APPLE__)  // written from Apple's documentation, and never run by us

std::string own_file() {
  uint32_t bytes = 0;
  _NSGetExecutablePath(nullptr, &bytes);
  std::string path(bytes, '\0');
  _NSGetExecutablePath(path.data(), &bytes);
  return path.c_str();
}

uintptr_t load_address() { return static_cast<uintptr_t>(_dyld_get_image_vmaddr_slide(0)); }

Module module_of(const void* address) {
  Dl_info info;
  if (dladdr(address, &info) == 0) return {};
  for (uint32_t i = 0; i < _dyld_image_count(); ++i) {
    if (_dyld_get_image_header(i) == info.dli_fbase)
      return {info.dli_fname, static_cast<uintptr_t>(_dyld_get_image_vmaddr_slide(i))};
  }
  return {};
}

HostMemory host_memory() {
  HostMemory memory{SIZE_MAX, SIZE_MAX};
  std::size_t size = sizeof(memory.total);
  sysctlbyname("hw.memsize", &memory.total, &size, nullptr, 0);
  vm_statistics64_data_t pages;
  mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
  if (host_statistics64(mach_host_self(), HOST_VM_INFO64, reinterpret_cast<host_info64_t>(&pages),
                        &count) == KERN_SUCCESS) {
    const std::size_t available =
        std::size_t{pages.free_count} + pages.inactive_count + pages.purgeable_count;
    memory.free = available * static_cast<std::size_t>(getpagesize());
  }
  return memory;
}

// dyld has malloc() make one block for each thread and library. With the dynamic shared memory in it, it is
// large enough to begin on a page.
ThreadStorage thread_storage(const void* variable) {
  constexpr int MOST_PAGES = 1024;
  const auto page = static_cast<uintptr_t>(getpagesize());
  uintptr_t begin = reinterpret_cast<uintptr_t>(variable) / page * page;
  for (int i = 0; i < MOST_PAGES; ++i, begin -= page) {
    const std::size_t bytes = malloc_size(reinterpret_cast<const void*>(begin));
    if (bytes > 0) return {reinterpret_cast<char*>(begin), bytes};
  }
  return {};
}

void interrupt_other_threads(int signal) {
  thread_act_array_t threads;
  mach_msg_type_number_t count = 0;
  if (task_threads(mach_task_self(), &threads, &count) != KERN_SUCCESS) return;
  for (mach_msg_type_number_t i = 0; i < count; ++i) {
    const pthread_t thread = pthread_from_mach_thread_np(threads[i]);
    if (thread && !pthread_equal(thread, pthread_self())) pthread_kill(thread, signal);
  }
}

std::string signal_name(int signal) {
  std::string name = sys_signame[signal];
  std::transform(name.begin(), name.end(), name.begin(), toupper);
  return "SIG" + name;
}

#else  // Linux, and with it WSL 2

namespace {

// The number behind a key in a file of the system's; SIZE_MAX if it isn't there.
std::size_t find_number(const char* path, const std::string& key) {
  std::ifstream file(path);
  std::string word, rest;
  std::size_t number = 0;
  while (file >> word) {
    if (word == key && file >> number) return number;
    std::getline(file, rest);
  }
  return SIZE_MAX;
}

struct Search {
  const char* variable;
  ThreadStorage found;
};

// For dl_iterate_phdr, which ends when it returns 1.
int find_storage(dl_phdr_info* module, std::size_t, void* result) {
  auto& search = *static_cast<Search*>(result);
  for (int i = 0; i < module->dlpi_phnum; ++i) {
    if (module->dlpi_phdr[i].p_type != PT_TLS) continue;
    auto* const begin = static_cast<char*>(module->dlpi_tls_data);
    const std::size_t bytes = module->dlpi_phdr[i].p_memsz;
    if (static_cast<std::size_t>(search.variable - begin) >= bytes) continue;
    search.found = {begin, bytes};
    return 1;
  }
  return 0;
}

}  // namespace

std::string own_file() { return "/proc/" + std::to_string(getpid()) + "/exe"; }

uintptr_t load_address() { return _r_debug.r_map->l_addr; }

Module module_of(const void* address) {
  Dl_info ignored;
  link_map* module = nullptr;
  if (!dladdr1(address, &ignored, reinterpret_cast<void**>(&module), RTLD_DL_LINKMAP)) return {};
  return {*module->l_name ? module->l_name : own_file(), module->l_addr};
}

HostMemory host_memory() {
  HostMemory memory{find_number("/proc/meminfo", "MemAvailable:"),
                    find_number("/proc/meminfo", "MemTotal:")};
  if (memory.total != SIZE_MAX) memory.total *= 1024;  // the file counts in KiB
  if (memory.free != SIZE_MAX) memory.free *= 1024;

  std::size_t limit = SIZE_MAX;                         // of a control group, version 2
  std::ifstream("/sys/fs/cgroup/memory.max") >> limit;  // the word "max" reads as 0
  const std::size_t used = find_number("/sys/fs/cgroup/memory.stat", "anon");
  if (limit > 0 && limit < memory.total && used != SIZE_MAX) {
    memory.total = limit;
    memory.free = std::min(memory.free, limit - std::min(limit, used));
  }
  return memory;
}

ThreadStorage thread_storage(const void* variable) {
  Search search{static_cast<const char*>(variable), {}};
  dl_iterate_phdr(find_storage, &search);
  return search.found;
}

void interrupt_other_threads(int signal) {
  DIR* const threads = opendir("/proc/self/task");
  if (!threads) return;
  while (const dirent* thread = readdir(threads)) {
    const int id = std::atoi(thread->d_name);
    if (id > 0 && id != gettid()) tgkill(getpid(), id, signal);
  }
  closedir(threads);
}

std::string signal_name(int signal) { return "SIG" + std::string(sigabbrev_np(signal)); }

#endif

const void* interrupted_code(const void* context) {
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__APPLE__) && defined(__x86_64__)
  return reinterpret_cast<const void*>(registers->__ss.__rip);
#elif defined(__APPLE__)
  return reinterpret_cast<const void*>(registers->__ss.__pc);
#elif defined(__x86_64__)
  return reinterpret_cast<const void*>(registers.gregs[REG_RIP]);
#else
  return reinterpret_cast<const void*>(registers.pc);
#endif
}

const void* interrupted_stack(const void* context) {
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__APPLE__) && defined(__x86_64__)
  return reinterpret_cast<const void*>(registers->__ss.__rsp);
#elif defined(__APPLE__)
  return reinterpret_cast<const void*>(registers->__ss.__sp);
#elif defined(__x86_64__)
  return reinterpret_cast<const void*>(registers.gregs[REG_RSP]);
#else
  return reinterpret_cast<const void*>(registers.sp);
#endif
}

#ifdef __x86_64__
bool finish_division(void* context) {
  auto& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
#ifdef __APPLE__
  auto& all = machine->__ss;
  auto& next = all.__rip;
  decltype(&next)
      const registers[] = {&all.__rax, &all.__rcx, &all.__rdx, &all.__rbx, &all.__rsp, &all.__rbp,
                           &all.__rsi, &all.__rdi, &all.__r8,  &all.__r9,  &all.__r10, &all.__r11,
                           &all.__r12, &all.__r13, &all.__r14, &all.__r15};
#else
  auto& all = machine.gregs;
  auto& next = all[REG_RIP];
  decltype(&next) const registers[] = {&all[REG_RAX], &all[REG_RCX], &all[REG_RDX], &all[REG_RBX],
                                       &all[REG_RSP], &all[REG_RBP], &all[REG_RSI], &all[REG_RDI],
                                       &all[REG_R8],  &all[REG_R9],  &all[REG_R10], &all[REG_R11],
                                       &all[REG_R12], &all[REG_R13], &all[REG_R14], &all[REG_R15]};
#endif
  // [FS] [REX] IDIV with a register, or with memory at FS + base + index * scale + displacement.
  const auto* code = reinterpret_cast<const unsigned char*>(next);
  uintptr_t address = 0;
#ifdef __linux__
  if (*code ==
      0x64) {  // FS: shared memory is thread-local storage, whose begin holds its own address
    ++code;
    asm("mov %%fs:0, %0" : "=r"(address));
  }
#endif
  const unsigned rex = (*code & 0xf0) == 0x40 ? *code++ : 0;
  if (code[0] != 0xf7 || (code[1] >> 3 & 7) != 7) return false;
  const unsigned mode = code[1] >> 6;
  unsigned base = code[1] & 7;
  code += 2;
  const void* divisor = registers[base | (rex & 1) << 3];
  if (mode != 3) {
    const bool has_index = base == 4;
    if (has_index) {
      const unsigned index = (*code >> 3 & 7) | (rex & 2) << 2;
      if (index != 4) address += static_cast<uintptr_t>(*registers[index]) << (*code >> 6);
      base = *code++ & 7;
    }
    const bool lacks_base = mode == 0 && base == 5;
    int32_t displacement = 0;
    if (mode == 1) displacement = static_cast<signed char>(*code++);
    if (mode == 2 || lacks_base) {
      std::memcpy(&displacement, code, sizeof(displacement));
      code += sizeof(displacement);
    }
    if (!lacks_base) address += *registers[base | (rex & 1) << 3];
    if (lacks_base && !has_index) address += reinterpret_cast<uintptr_t>(code);
    divisor = reinterpret_cast<const void*>(address + displacement);
  }
  const bool is_wide = rex & 8;
  int32_t narrow_value = 0;
  int64_t value = 0;
  std::memcpy(&narrow_value, divisor, sizeof(narrow_value));
  value = narrow_value;
  if (is_wide) std::memcpy(&value, divisor, sizeof(value));
  if (value != -1) return false;
  if (!is_wide) *registers[0] &= 0xffffffff;  // as any result of 32 bits
  *registers[2] = 0;
  next = reinterpret_cast<uintptr_t>(code);
  return true;
}
#else
bool finish_division(void*) { return false; }  // ARM gives a result
#endif

std::size_t return_addresses(const void** addresses, std::size_t most) {
  struct Found {
    const void** next;
    const void** end;
  } found = {addresses, addresses + most};
  _Unwind_Backtrace(
      [](_Unwind_Context* frame, void* into) {
        auto& found = *static_cast<Found*>(into);
        if (found.next == found.end) return _URC_END_OF_STACK;
        int interrupted = 0;
        const uintptr_t address = _Unwind_GetIPInfo(frame, &interrupted);
        *found.next++ = reinterpret_cast<const void*>(address + (interrupted ? 1 : 0));
        return _URC_NO_REASON;
      },
      &found);
  return found.next - addresses;
}

}  // namespace convladder
