#include "common/simulator/report.h"

#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "common/core/program.h"
#include "common/simulator/counting/block_observer.h"
#include "common/simulator/counts_json.h"
#include "common/simulator/enqueueing.h"
#include "common/simulator/launch.h"

namespace convladder::simulator {
namespace {

struct Finding {
  Finding(std::string of_kernel, std::string text)
      : kernel(std::move(of_kernel)), what(std::move(text)) {}
  std::string kernel, what;
  std::atomic<int64_t> times{0};
};

struct Launched {
  std::string kernel;
  int64_t launches = 0, repeats = 0;
};

struct Report {
  std::mutex mutex;
  std::deque<Finding> findings;
  std::map<std::tuple<std::string, uint32_t, uint32_t>, std::size_t> by_place;
  std::vector<Launched> launches;  // in the order of the first
  std::string ended;               // where it was, if somebody has ended it
  std::string path;
};
Report& report() {
  static auto* the_report = new Report;  // outlives every other static
  return *the_report;
}

Json kernel_json(const Launched& launched, const std::vector<KernelCounts>& all_counts) {
  Json members = {
      {"kernel", launched.kernel}, {"launches", launched.launches}, {"repeats", launched.repeats}};
  for (const KernelCounts& counts : all_counts) {
    if (counts.kernel != launched.kernel || !counts_accesses()) continue;
    std::vector<const LaunchWork*> work;
    for (const LaunchWork& launch : counts.work) work.push_back(&launch);
    members.push_back({"library", counts.library});
    members.push_back({"work", work_json(work, &all_counts[0].work[0])});
    for (const auto& [metric, value] : metrics(counts)) members.push_back({metric, value});
  }
  return members;
}

void write_report() {
  static std::atomic<bool> written{false};
  if (written.exchange(true)) return;
  const std::vector<KernelCounts> counts = take_kernel_counts();
  Json kernels = Json::array(), findings = Json::array();
  for (const Launched& launched : report().launches) {
    kernels.push_back(kernel_json(launched, counts));
  }
  for (const KernelCounts& library : counts) {
    if (library.library) {
      kernels.push_back(kernel_json({library.kernel, library.launches}, counts));
    }
  }
  for (const Finding& finding : report().findings) {
    findings.push_back(
        {{"kernel", finding.kernel}, {"what", finding.what}, {"times", finding.times.load()}});
  }
  Json all = {{"kernels", kernels}, {"findings", findings}};
  if (!report().ended.empty()) all.push_back({"ended", report().ended});
  // A text or a file's name may be no UTF-8.
  std::ofstream(report().path) << all.dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
}

// Whoever loses patience with a program gets to know what was found until then. A thread waits for these
// signals, since a handler might interrupt whoever writes down a finding; one that the program sends itself
// it survives no more than elsewhere.
sem_t end_asked_for;
std::atomic<int> asked_by{0};
const pid_t own_process = getpid();

void ask_for_an_end(int number, siginfo_t* info, void*) {
  if (getpid() != own_process) {  // forked: nobody waits here
    signal(number, SIG_DFL);
    raise(number);  // when this handler is left
    return;
  }
  asked_by = number;
  sem_post(&end_asked_for);
  while (info->si_code <= 0 && info->si_pid == own_process) pause();
}

void watch_for_an_end() {
  sem_init(&end_asked_for, 0, 0);
  struct sigaction action = {};
  action.sa_sigaction = ask_for_an_end;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGXCPU, SIGPIPE, SIGQUIT, SIGALRM, SIGVTALRM,
                           SIGPROF, SIGUSR1, SIGUSR2}) {
    struct sigaction before = {};  // nohup, say, ignores one
    sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
  }
  std::thread([] {
    while (sem_wait(&end_asked_for)) continue;
    const std::string progress = progress_of_launch();
    const std::lock_guard lock(report().mutex);
    report().ended = progress;
    if (asked_by == SIGPIPE) {  // who writes, waits in the handler, and has the stream locked
      write_report();
    } else {
      end_program("");
    }
    _exit(128 + asked_by);
  }).detach();
}

const bool writes_report = [] {
  if (!is_program()) return false;
  // Read before main(), which may change the environment.
  report().path = std::getenv("CONVLADDER_SIM_REPORT");
  counts_accesses();
  use_signal_stack();
  watch_signals();
  watch_for_an_end();
  const auto at_the_end = [] {
    while (asked_by != 0) pause();  // the thread above writes it, and ends the program
    write_report();
  };
  std::atexit(at_the_end);
  std::at_quick_exit(at_the_end);
  return true;
}();

}  // namespace

void end_program(const std::string& memory) {
  if (!memory.empty()) {
    add_finding("", 0, 0, [&] { return "the host touches " + memory + ", at " + calling_line(); });
  }
  write_report();
  std::fflush(nullptr);
}

std::atomic<int64_t>& add_finding(const std::string& kernel, uint32_t code, uint32_t other_code,
                                  const std::function<std::string()>& describe) {
  const std::lock_guard lock(report().mutex);
  const std::tuple place(kernel, code, other_code);
  std::deque<Finding>& all = report().findings;
  const auto known = code ? report().by_place.find(place) : report().by_place.end();
  std::size_t index = all.size();
  if (known != report().by_place.end()) {
    index = known->second;
  } else {
    const std::string what = describe();
    const auto same = std::find_if(all.begin(), all.end(), [&](const Finding& finding) {
      return finding.kernel == kernel && finding.what == what;
    });
    index = same - all.begin();
    if (same == all.end()) all.emplace_back(kernel, what);
    if (code) report().by_place[place] = index;
  }
  ++all[index].times;
  return all[index].times;
}

int64_t finding_count() {
  const std::lock_guard lock(report().mutex);
  int64_t count = 0;
  for (const Finding& finding : report().findings) count += finding.times;
  return count;
}

void require_main() {
  static std::atomic<bool> has_ended{false};
  static const bool asked [[maybe_unused]] = std::atexit([] { has_ended = true; }) == 0;
  if (writes_report && !has_ended) return;
  std::fputs(writes_report ? "convladder: error: a launch after main() has ended is not simulated\n"
                           : "convladder: error: a launch before main() begins is not simulated\n",
             stderr);
  if (writes_report) end_program("");
  _exit(1);
}

void note_launch(const Grid& grid, bool repeats) {
  const std::string name = read_symbols(grid.kernel).name;
  const std::lock_guard lock(report().mutex);
  std::vector<Launched>& all = report().launches;
  auto known = std::find_if(all.begin(), all.end(),
                            [&](const Launched& launched) { return launched.kernel == name; });
  if (known == all.end()) known = all.insert(all.end(), {name});
  ++known->launches;
  known->repeats += repeats;
}

}  // namespace convladder::simulator
