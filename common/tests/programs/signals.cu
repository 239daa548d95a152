// Signals that a program sends itself, and an environment that it takes away.
// options: --count
// seen: handled 15, 11
// seen: children ended by 11, 8, 6, 15
// seen: quiet: 1 launch, nothing found
// seen: the program was ended by SIGINT
// seen: quiet: at least
// status: 130
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

int last;
void handle(int number) { last = number; }
__global__ void quiet() {}

int handled(int number) {
  const auto before = signal(number, handle);
  raise(number);
  signal(number, before);
  return last;
}

int child_ended_by(int number) {
  if (fork() == 0) {
    raise(number);
    _exit(0);
  }
  int status = 0;
  wait(&status);
  return WTERMSIG(status);
}

int main() {
  clearenv();
  quiet<<<1, 1>>>();
  cudaDeviceSynchronize();
  const int term = handled(SIGTERM), segv = handled(SIGSEGV);
  printf("handled %d, %d\n", term, segv);
  const int access = child_ended_by(SIGSEGV), division = child_ended_by(SIGFPE);
  const int aborted = child_ended_by(SIGABRT), ended = child_ended_by(SIGTERM);
  printf("children ended by %d, %d, %d, %d\n", access, division, aborted, ended);
  raise(SIGINT);
  printf("not reached\n");
}
