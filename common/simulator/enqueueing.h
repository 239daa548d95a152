// What a stage may do while it enqueues its work, and what ends the process.
#pragma once

#include <cuda_runtime.h>
#include <signal.h>
#include <time.h>

#include <string>

#include "common/simulator/launch.h"

namespace convladder::simulator {

// While one lives, this host thread is in a stage's `enqueue`, which may put work on `stream` and no more: device
// memory is out of its reach, and the runtime's calls say here what they do besides.
class Enqueueing {
 public:
  Enqueueing(const char* stage, cudaStream_t stream);
  ~Enqueueing();
  Enqueueing(const Enqueueing&) = delete;

  // The first thing that was not allowed, with stage and line; empty: there was none.
  const std::string& wrong() const { return wrong_; }

  // For the runtime; outside of any `enqueue` they do nothing.
  static void note(const char* what);  // "waits for the device"
  static void note_stream(cudaStream_t stream);
  static void forget();  // a worker's thread-local storage has been filled

 private:
  // Of the host's processor time: a kernel's is not this thread's.
  class Limit {
   public:
    Limit();
    ~Limit();
    Limit(const Limit&) = delete;

   private:
#ifdef __linux__
    timer_t timer_{};
    bool runs_ = false;
#endif
  };

  const char* const stage_;
  cudaStream_t stream_;
  Enqueueing* const outer_;
  const DeviceMemoryOutOfReach out_of_reach_;
  const Limit limit_;
  std::string wrong_;
};

// The program runs stages, and their other host code as well, from its begin until it has its status: what ends the
// process before is named as a stage's fault. Then a status other than 0 stays, whatever a destructor says.
void program_begins();
void program_ends(int status);

// From here on what the processor refuses is a kernel's failure, or named before the process ends.
void watch_signals();

// Signals of the calling thread are handled on a stack besides its own, which may have overflowed.
void use_signal_stack();

bool runs_kernel();  // this thread

// This thread's kernel fails by the signal, which came when `pc` touched `address` and the stack ended at `stack`;
// without one it returns.
constexpr int NO_END = SIGURG;  // sent to a thread whose kernel has run for too long
void fail_running_kernel(int signal, const void* address, const void* pc, const void* stack);

// A finding of the kernel that this thread runs, if any: the signal ends the program.
void note_end_of_running_kernel(int signal);

}  // namespace convladder::simulator
