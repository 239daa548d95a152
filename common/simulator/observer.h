// What the counting simulator wants to know while kernels run. A build that doesn't count compiles
// none of it. How counting works: docs/counting.md.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace convladder::simulator {

#ifdef CONVLADDER_COUNTING
constexpr bool COUNTING = true;
#else
constexpr bool COUNTING = false;
#endif

class BlockObserver;
struct KernelCounts;
struct LaunchWork;
struct Grid;

// Around every grid that runs. Without end_launch() (the kernel failed) nothing is counted.
void begin_launch(const Grid& grid);
void end_launch();
std::vector<KernelCounts> take_launch_counts();  // as take_kernel_counts()

// Whether the last kernel may still run on a GPU: the host has not waited for it, and nothing that is no kernel has
// come behind it.
inline std::atomic<bool> last_kernel_may_run{false};

// Whether the launch of a program does once more what one of the last has done: it need not run, and is counted like
// that one.
bool repeats_earlier_launch(const Grid& grid);

// An asynchronous copy of that thread is done; -1: of the running one.
void note_end_of_copy(void* to, std::size_t bytes, int thread);

// Device memory: what there is of it, and whether a kernel may read it.
enum class MemoryState : uint8_t {
  kUndefined,  // as cudaMalloc leaves it: nobody has written it
  kDefined,
  kForbidden,  // see forbid_memory()
  kPartial     // some bytes of the word are written, others not
};
void memory_allocated(void* begin, std::size_t bytes, bool host_writes = false);
void memory_freed(void* begin);
void memory_named(const void* address, const std::string& name);  // see name_memory()
// Memory of the kernels' heap, to be freed by free_on_heap(); null where its limit (cudaLimitMallocHeapSize) is reached.
void* allocate_on_heap(std::size_t bytes);
bool free_on_heap(void* memory);  // false: nothing that this gave begins there
// Whether kernels have asked for some of it: the limit can't be changed any more.
bool is_heap_used();
// Of a program's variable: __device__, __managed__ or __constant__.
bool is_device_variable(const void* address);
std::size_t bytes_of_variable(const void* begin);  // 0: none begins there
// Whether a variable lies there that is an instance of a template. (Of these nothing says that they are a device's.)
bool is_instance(const void* begin);
// Does nothing for memory of the host.
void set_memory_state(const void* begin, std::size_t bytes, MemoryState state);
// What cudaMemset() has done; and whether doing it again would change nothing. Programs clear a GPU's L2 so
// between launches that they time, and these launches then repeat each other.
void note_fill(const void* begin, std::size_t bytes, int value);
bool is_filled(const void* begin, std::size_t bytes, int value);

// A column-major matrix of floats, with `pitch` of them from column to column.
struct MatrixView {
  const float* data;
  int64_t rows, columns, pitch;
};
// What is wrong with these bytes of a program, which a call of a library is given as device memory: in words, empty
// if nothing is.
std::string wrong_operand(const void* begin, std::size_t bytes, const std::string& name);
// Counts a call of a library function, and returns what is wrong with it: that it reads what nobody
// has written. Empty if nothing is.
std::string library_call(const std::string& function, const LaunchWork& work,
                         const std::vector<MatrixView>& reads,
                         const std::vector<MatrixView>& writes);

}  // namespace convladder::simulator
