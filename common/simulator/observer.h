// What the counting simulator wants to know while kernels run. A build that doesn't count compiles
// none of it. How counting works: docs/counting.md.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace convladder::simulator {

#ifdef CONVLADDER_COUNTING
constexpr bool COUNTING = true;
#else
constexpr bool COUNTING = false;
#endif

class Fibre;
class Worker;
struct Grid;

// Follows the blocks of one worker, one at a time.
class Observer {
 public:
  virtual ~Observer() = default;

  virtual void begin_block(const Grid& grid, uint64_t block) = 0;
  virtual void end_block() = 0;  // the kernel has not failed

  virtual void resume(unsigned thread, const Fibre& fibre) = 0;  // has its turn from here on
  virtual void leave(unsigned thread) = 0;        // has left the kernel, or waits at a barrier
  virtual void sync_warp(unsigned thread) = 0;    // has come through __syncwarp()
  virtual void sync_threads() = 0;                // all have come to __syncthreads()

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

// Device memory: what there is of it, and what the host has done to it.
void memory_allocated(void* begin, std::size_t bytes);
void memory_freed(void* begin);
void memory_written(const void* begin, std::size_t bytes);
void memory_undefined(const void* begin, std::size_t bytes);  // as fresh from cudaMalloc

// A column-major matrix in device memory that a library reads or writes, `columns` times
// `rows` floats, `pitch` floats from column to column.
struct MatrixView {
  const float* data;
  int64_t rows, columns, pitch;
};
void library_reads(const char* function, const MatrixView& matrix);
void library_writes(const char* function, const MatrixView& matrix);
void end_library_call(const char* function);

}  // namespace convladder::simulator
