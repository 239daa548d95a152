#include "common/measure/line_process.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "common/measure/interrupt.h"

namespace convladder {
namespace {

constexpr int PATIENCE_MS = 100;  // between two looks for a signal
constexpr int GRACE_MS = 2000;    // to end, for a child that has closed its side
constexpr int NOT_FOUND = 127;    // exit status, as a shell gives it
constexpr std::size_t LONGEST_LINE = 64 << 10;

// In the child, between fork and exec: calls that are safe there, and nothing else.
[[noreturn]] void become(char* const* command, int socket, int errors) {
  setpgid(0, 0);  // out of reach of the terminal's Ctrl-C: it is the parent who ends it
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // not to be left behind by a parent that is killed
  dup2(socket, STDIN_FILENO);
  dup2(socket, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  execvp(command[0], command);
  _exit(NOT_FOUND);
}

std::runtime_error system_error(const char* what) {
  return std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

}  // namespace

LineProcess::LineProcess(const std::vector<std::string>& command) : errors_(std::tmpfile()) {
  if (!errors_) throw system_error("no temporary file");
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  int sockets[2];  // a socket rather than pipes: writing to a child that is gone raises no SIGPIPE
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    throw system_error("no socket");
  }
  pid_ = fork();
  if (pid_ == 0) become(words.data(), sockets[1], fileno(errors_.get()));
  close(sockets[1]);
  socket_ = sockets[0];
  if (pid_ < 0) {
    pid_ = 0;
    close(socket_);
    throw system_error("no process");
  }
  setpgid(pid_, pid_);  // the child does so, too: whoever comes first
}

LineProcess::~LineProcess() {
  end();
  close(socket_);
}

void LineProcess::end() {
  if (!running()) return;
  kill(-pid_, SIGKILL);
  reap();
}

std::string LineProcess::ask(const std::string& line, double seconds) {
  const std::string text = line + "\n";
  // What can't be sent because the child is gone shows in the next line.
  if (running()) send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
  return read_line(seconds);
}

std::string LineProcess::read_line(double seconds) {
  if (!running()) throw std::runtime_error("the process is gone");
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  try {
    std::size_t end = 0;
    while ((end = received_.find('\n')) == std::string::npos) {
      throw_if_interrupted();
      receive();
      if (received_.size() > LONGEST_LINE) throw std::runtime_error("an answer without an end");
      if (Clock::now() > deadline) {
        throw std::runtime_error("no answer within " + std::to_string(std::lround(seconds)) + " s");
      }
    }
    std::string line = received_.substr(0, end);
    received_.erase(0, end + 1);
    return line;
  } catch (...) {
    end();
    throw;
  }
}

void LineProcess::receive() {
  pollfd readable = {socket_, POLLIN, 0};
  if (poll(&readable, 1, PATIENCE_MS) <= 0) return;
  char bytes[4096];
  const ssize_t count = read(socket_, bytes, sizeof bytes);
  if (count > 0) {
    received_.append(bytes, static_cast<std::size_t>(count));
    return;
  }
  const std::string how = reap();
  const std::string why = last_error();
  throw std::runtime_error("the process ended: " + how + (why.empty() ? "" : ": " + why));
}

std::string LineProcess::reap() {
  int status = 0;
  for (int waited = 0; waitpid(pid_, &status, WNOHANG) == 0; ++waited) {
    if (waited == GRACE_MS) kill(-pid_, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  pid_ = 0;
  if (WIFSIGNALED(status)) return std::string("signal ") + strsignal(WTERMSIG(status));
  if (WEXITSTATUS(status) == NOT_FOUND) return "the program was not found";
  return "exit status " + std::to_string(WEXITSTATUS(status));
}

std::string LineProcess::last_error() {
  std::string last;
  std::rewind(errors_.get());
  char line[512];
  while (std::fgets(line, sizeof line, errors_.get())) {
    const std::string text(line, std::strcspn(line, "\n"));
    if (!text.empty()) last = text;
  }
  return last;
}

}  // namespace convladder
