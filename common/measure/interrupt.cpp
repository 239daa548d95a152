#include "common/measure/interrupt.h"

namespace convladder {
namespace {

constexpr int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP};

volatile std::sig_atomic_t noted = 0;  // the signal; 0: none

void note(int signal) { noted = signal; }

}  // namespace

InterruptScope::InterruptScope() {
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = SA_RESETHAND;  // the next one finds the default action: to end
  sigemptyset(&action.sa_mask);
  noted = 0;
  for (int i = 0; i < 3; ++i) sigaction(SIGNALS[i], &action, &before_[i]);
}

InterruptScope::~InterruptScope() {
  for (int i = 0; i < 3; ++i) sigaction(SIGNALS[i], &before_[i], nullptr);
  noted = 0;
}

void throw_if_interrupted() {
  if (noted != 0) throw Interrupted(noted);
}

}  // namespace convladder
