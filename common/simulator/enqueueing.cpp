#include "common/simulator/enqueueing.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <mutex>
#include <system_error>
#include <thread>

#include "common/core/platform.h"
#include "common/core/program.h"
#include "common/simulator/observer.h"
#include "common/simulator/report.h"

namespace convladder::simulator {
namespace {

thread_local Enqueueing* current = nullptr;
std::atomic<Enqueueing*> latest{nullptr};  // of any thread: it may have begun others

// An `enqueue` that waits, for a lock or for input, takes no time of a processor: a thread looks every second.
constexpr int IDLE_SECONDS = 20;
std::atomic<bool> is_idle{false};
std::mutex latest_mutex;  // guards this, with `latest`
pthread_t latest_thread;

void watch_for_idleness() {
  const auto processor_time = [] {
    timespec now = {};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * 1e3 + now.tv_nsec * 1e-6;  // milliseconds
  };
  const Enqueueing* seen = nullptr;
  double before = 0;
  for (int idle = 0;; sleep(1)) {
    const double now = processor_time();
    const std::lock_guard lock(latest_mutex);
    idle = latest && latest == seen && now - before < 5 ? idle + 1 : 0;
    seen = latest, before = now;
    if (idle < IDLE_SECONDS) continue;
    is_idle = true;
    pthread_kill(latest_thread, NO_END);
    return;
  }
}

std::atomic<bool> program_runs{false};
std::atomic<int> status_of_program{-1};  // once it has one

constexpr int WATCHED[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, NO_END};
struct sigaction before[std::size(WATCHED)];

[[noreturn]] void end_now(int status) {
#ifdef __linux__
  syscall(SYS_exit_group, status);
  __builtin_unreachable();
#else
  _exit(status);
#endif
}

// A stage has come to what ends the process: it must not look like an end in peace.
void end_in_enqueue(const std::string& what) {
  if (!current) current = latest;
  if (!current && !program_runs) return;
  if (current) Enqueueing::note(what.c_str());
  std::fflush(stdout);
  std::fprintf(stderr, "convladder: error: %s\n",
               current ? current->wrong().c_str()
                       : ("a stage's host code " + what + ", at " + calling_line()).c_str());
  end_now(1);
}

// Code of a library may hold a lock, as printf() does, and can't be left halfway.
bool is_in_library(const void* code) {
  Dl_info of_code, ours;
  return dladdr(code, &of_code) && dladdr(reinterpret_cast<void*>(is_in_library), &ours) &&
         of_code.dli_fbase != ours.dli_fbase;
}

// Where the heap is broken, no report can be written: another signal comes on the way, or somebody holds a lock,
// malloc() say, and the process would wait for ever.
constexpr unsigned PATIENCE = 8;  // seconds
std::atomic<pthread_t> ending{};  // the first thread that a signal ends

[[noreturn]] void end_without_a_report(int) {
  constexpr char TEXT[] =
      "convladder: error: the host's heap is broken: the program has probably written "
      "beyond memory that malloc() or new gave it\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, TEXT, sizeof(TEXT) - 1);
  end_now(128 + SIGABRT);
}

void on_signal(int number, siginfo_t* info, void* context) {
  if (ending == pthread_self()) end_without_a_report(number);
  const void* const code = interrupted_code(context);
  if (number == NO_END && info->si_code == SI_TIMER) {
    if (is_in_library(code)) return;  // the timer comes again
    end_in_enqueue("has come to no end in 20 seconds of the processor's time");
  }
  if (number == NO_END && is_idle) end_in_enqueue("waits for what doesn't come");
  if (number == SIGFPE && runs_kernel() && finish_division(context)) return;
  const bool must_end = number == SIGABRT || (is_program() && is_in_library(code));
  if (!must_end || number == NO_END)
    fail_running_kernel(number, info->si_addr, code, interrupted_stack(context));
  if (number == NO_END) return;  // this thread runs none
  pthread_t nobody{};
  if (is_program() && ending.compare_exchange_strong(nobody, pthread_self())) {
    signal(SIGALRM, end_without_a_report);
    alarm(PATIENCE);
  }
  const bool is_access = number == SIGSEGV || number == SIGBUS;
  std::string memory = is_access ? describe_address(info->si_addr) : "";
  if (!memory.empty()) end_in_enqueue("touches " + memory + " on the host");
  end_in_enqueue("is ended by " + signal_name(number));
  if constexpr (COUNTING) {
    if (is_program()) {
      note_end_of_running_kernel(number);
      if (is_access && memory.empty() && !runs_kernel()) memory = "memory that is not allocated";
      end_program(memory);
    }
  }
  for (std::size_t i = 0; i < std::size(WATCHED); ++i) {
    if (WATCHED[i] == number) sigaction(number, &before[i], nullptr);
  }
  raise(number);  // (an access would bring it again, a signal that was sent would not)
}

}  // namespace

void watch_signals() {
#ifndef __SANITIZE_ADDRESS__  // which does so itself
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action = {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (std::size_t i = 0; i < std::size(WATCHED); ++i) sigaction(WATCHED[i], &action, &before[i]);
    std::atexit([] { end_in_enqueue("ends the process"); });
    std::at_quick_exit([] { end_in_enqueue("ends the process"); });
#ifdef __linux__
    if (is_program()) return;
    try {
      std::thread(watch_for_idleness).detach();
    } catch (const std::system_error&) {  // what waits without end isn't ended then
    }
#endif
  });
#endif
}

void program_begins() {
  watch_signals();
  program_runs = true;
}

void program_ends(int status) {
  program_runs = false;
  status_of_program = status;
}

void use_signal_stack() {
  constexpr std::size_t BYTES = 1 << 18;  // the handler reads names and lines
  stack_t signal_stack = {};
  if (sigaltstack(nullptr, &signal_stack) == 0 && !(signal_stack.ss_flags & SS_DISABLE)) return;
  signal_stack = {};
  signal_stack.ss_sp = new char[BYTES];  // for the rest of the process
  signal_stack.ss_size = BYTES;
  sigaltstack(&signal_stack, nullptr);
}

#ifdef __linux__
Enqueueing::Limit::Limit() {
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = NO_END;
#ifdef sigev_notify_thread_id
  event.sigev_notify_thread_id = static_cast<pid_t>(syscall(SYS_gettid));
#else
  event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
#endif
  constexpr itimerspec TOO_LONG = {{1, 0}, {20, 0}};
  runs_ = timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer_) == 0;
  if (runs_) timer_settime(timer_, 0, &TOO_LONG, nullptr);
}

Enqueueing::Limit::~Limit() {
  if (runs_) timer_delete(timer_);
}
#else
Enqueueing::Limit::Limit() = default;
Enqueueing::Limit::~Limit() = default;
#endif

Enqueueing::Enqueueing(const char* stage, cudaStream_t stream)
    : stage_(stage), stream_(stream), outer_(current) {
  watch_signals();
  use_signal_stack();  // this thread's recursion may have no end
  note("hands over to another stage");
  const std::lock_guard lock(latest_mutex);
  latest = current = this, latest_thread = pthread_self();
}

Enqueueing::~Enqueueing() {
  const std::lock_guard lock(latest_mutex);
  latest = current = outer_;
}

void Enqueueing::forget() { current = nullptr; }

void Enqueueing::note(const char* what) {
  if (!current || !current->wrong_.empty()) return;
  current->wrong_ =
      std::string(current->stage_) + ": its enqueue " + what + ", at " + calling_line();
}

void Enqueueing::note_stream(cudaStream_t stream) {
  const auto number = [](cudaStream_t any) {  // of the default stream, by either name: 1
    return std::max<uintptr_t>(1, reinterpret_cast<uintptr_t>(any));
  };
  if (current && number(stream) != number(current->stream_))
    note("uses another stream than it was given");
}

}  // namespace convladder::simulator

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)
// In the place of the C library's, which ask nobody that atexit() has named.
extern "C" void _exit(int status) {
  using namespace convladder::simulator;
  end_in_enqueue("ends the process");
  end_now(status_of_program > 0 ? status_of_program.load() : status);
}

extern "C" void _Exit(int status) noexcept { _exit(status); }
#endif
