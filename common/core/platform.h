// What operating systems and processors do differently. Nothing else in C++ asks which one it is on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace convladder {

// The running program's file, by a name that other programs can open as well.
std::string own_file();

// How far from the addresses in its file the program has been loaded: 0 unless it is position-independent.
uintptr_t load_address();

// The program or library that an address is in.
struct Module {
  std::string file;  // empty: not known
  uintptr_t load_address = 0;
};
Module module_of(const void* address);

struct HostMemory {
  std::size_t free, total;  // bytes; SIZE_MAX: not known
};

// What this process may still take without swapping, and what it might have taken at most: of the
// machine, or of its control group where that allows less.
HostMemory host_memory();

// The calling thread's copy of all thread_locals of the program or library that has `variable`, which is
// one of them. Empty if it isn't found.
struct ThreadStorage {
  char* begin = nullptr;
  std::size_t bytes = 0;
};
ThreadStorage thread_storage(const void* variable);

// Sends the signal to each other thread of this process.
void interrupt_other_threads(int signal);

// The instruction that a signal has interrupted; `context` is the handler's third argument.
const void* interrupted_code(const void* context);

// Its stack's end.
const void* interrupted_stack(const void* context);

// Where a signal has interrupted a division of the least integer by -1, which x86 refuses as it does one by 0:
// gives a GPU's results (the least integer, and 0) and goes on behind it. False: it is another instruction.
bool finish_division(void* context);

// Of the calls that are under way on this thread, innermost first, the addresses that they return to: how
// many it found, `most` at most. An instruction that a signal has interrupted counts as a call of one byte.
// Allocates nothing.
std::size_t return_addresses(const void** addresses, std::size_t most);

std::string signal_name(int signal);  // "SIGSEGV"

}  // namespace convladder
