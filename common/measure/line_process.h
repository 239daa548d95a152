// A child process that is asked by lines on its stdin and answers by lines on its stdout.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace convladder {

class LineProcess {
 public:
  // Starts `command`, whose first word is looked up in PATH. Throws std::runtime_error when no
  // process can be made; a program that isn't there shows when the first line is read.
  explicit LineProcess(const std::vector<std::string>& command);
  // Ends the child and whatever it has started. Should this program end without getting here, the
  // child is ended all the same.
  ~LineProcess();
  LineProcess(const LineProcess&) = delete;

  // Both throw std::runtime_error, with the reason, when the child ends (its exit status and the
  // last line of its stderr) or takes longer than `seconds`, and Interrupted (interrupt.h). After
  // that the child is gone.
  std::string read_line(double seconds);
  std::string ask(const std::string& line, double seconds);

  bool running() const { return pid_ > 0; }
  void end();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  void receive();            // what has come, if anything does within a while
  std::string reap();        // waits for the child; says how it ended
  std::string last_error();  // the last line of its stderr

  pid_t pid_ = 0;  // 0: gone
  int socket_ = -1;
  std::string received_;                      // not yet a whole line
  std::unique_ptr<std::FILE, Close> errors_;  // its stderr
};

}  // namespace convladder
