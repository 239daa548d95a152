#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include <fmt/format.h>
#include "common/measure/competitor.h"

namespace convladder {

PyTorch::PyTorch(const std::string& command) : command_(command) {
  std::signal(SIGPIPE, SIG_IGN);  // a request to a process that is gone fails like any write
  start();
}

PyTorch::~PyTorch() { end(); }

// popen() gives one direction, a pipe the other. The process ends with its input, so also where this
// one is killed.
void PyTorch::start() {
  int answers[2];
  if (pipe(answers) != 0) throw std::runtime_error("no pipe");
  requests_ = popen(fmt::format("{} >/dev/fd/{}", command_, answers[1]).c_str(), "we");
  close(answers[1]);
  answers_ = fdopen(answers[0], "r");
  try {
    greeting_ = std::make_unique<Json>(read_answer());
  } catch (const std::runtime_error&) {
    end();
    throw;
  }
}

Json PyTorch::ask(const Json& request) {
  if (!requests_) start();
  const std::string line = request.dump() + "\n";
  std::fputs(line.c_str(), requests_);
  std::fflush(requests_);  // what can't be sent shows in the answer that doesn't come
  return read_answer();
}

Json PyTorch::read_answer() {
  std::string line;
  for (int c = 0; (c = std::fgetc(answers_)) != EOF && c != '\n';) line += static_cast<char>(c);
  Json answer = Json::parse(line, nullptr, false);
  if (answer.is_object() && !answer.contains("error")) return answer;
  const bool explained = answer.is_object();  // such a process goes on
  const int status = explained ? 0 : end();
  throw std::runtime_error(explained ? std::string(answer["error"])
                                     : fmt::format("the process ended, exit status {}{}", status,
                                                   line.empty() ? "" : ": " + line.substr(0, 80)));
}

int PyTorch::end() {
  if (!requests_) return 0;
  std::fclose(answers_);
  const int status = pclose(requests_);
  requests_ = answers_ = nullptr;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace convladder
