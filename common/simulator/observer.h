// What the counting simulator wants to know while kernels run. A build that doesn't count compiles
// none of it. How counting works: docs/counting.md.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace convladder::simulator {

#ifdef CONVLADDER_COUNTING
constexpr bool COUNTING = true;
#else
constexpr bool COUNTING = false;
#endif

class Fibre;
class Worker;
struct KernelCounts;
struct Grid;

// Follows the blocks of one worker, one at a time.
class Observer {
 public:
  virtual ~Observer() = default;

  virtual void begin_block(const Grid& grid, uint64_t block) = 0;
  virtual void end_block() = 0;  // the kernel has not failed

  virtual void resume(unsigned thread, const Fibre& fibre) = 0;  // has its turn from here on
  virtual void leave(unsigned thread) = 0;      // has left the kernel, or waits at __syncthreads()
  virtual void sync_warp(unsigned thread) = 0;  // has come through __syncwarp()
  virtual void sync_threads() = 0;              // all threads have come to __syncthreads()
  virtual void mma() = 0;  // the running thread's warp has multiplied by its tensor core

  // From here on the running thread is in the simulator's own code, until it has its turn again, or
  // comes out of the call that said so.
  virtual void pause() = 0;

  // An asynchronous copy of the running thread, asked for by the call that returns to `pc`, and its
  // end. Nothing is read from `from` where bytes == zfill.
  virtual void begin_copy(void* to, const void* from, std::size_t bytes, std::size_t zfill,
                          const void* pc) = 0;
  virtual void end_copy(void* to, std::size_t bytes) = 0;
};

std::unique_ptr<Observer> make_observer(Worker& worker);

// Around every grid that runs. Without end_launch() (the kernel failed) nothing is counted.
void begin_launch(const Grid& grid);
void end_launch();
std::vector<KernelCounts> take_launch_counts();  // as take_kernel_counts()

// Device memory: what there is of it, and whether a kernel may read it.
enum class MemoryState : uint8_t {
  kUndefined,  // as cudaMalloc leaves it: nobody has written it
  kDefined,
  kForbidden,  // see forbid_memory()
};
void memory_allocated(void* begin, std::size_t bytes);
void memory_freed(void* begin);
// Does nothing for memory of the host.
void set_memory_state(const void* begin, std::size_t bytes, MemoryState state);

// A column-major matrix of floats, with `pitch` of them from column to column.
struct MatrixView {
  const float* data;
  int64_t rows, columns, pitch;
};
// 32-byte sectors that it takes at the least: as if it had no gaps.
inline int64_t sectors_of(const MatrixView& matrix) {
  return (matrix.rows * matrix.columns * int64_t{sizeof(float)} + 31) / 32;
}
// Counts a call of a library function, which multiplies `products` times, and returns what is wrong
// with it: that it reads what nobody has written. Empty if nothing is.
std::string library_call(const std::string& function, double products,
                         const std::vector<MatrixView>& reads,
                         const std::vector<MatrixView>& writes);

}  // namespace convladder::simulator
