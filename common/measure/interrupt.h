// Ctrl-C for commands that have something to tidy up: a child process, a file half written.
#pragma once

#include <csignal>
#include <exception>

namespace convladder {

// Someone wants the program to end. Not a std::runtime_error: no handler of failures takes it for
// one of those.
struct Interrupted : std::exception {
  explicit Interrupted(int signal) : signal(signal) {}
  const char* what() const noexcept override { return "interrupted"; }
  int signal;
};

// While it lives, SIGINT, SIGTERM and SIGHUP are noted instead of ending the program at once; the
// second of a kind ends it as usual. One at a time.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;

 private:
  struct sigaction before_[3];
};

// Throws Interrupted when a signal was noted. To be called between the steps of long work.
void throw_if_interrupted();

}  // namespace convladder
