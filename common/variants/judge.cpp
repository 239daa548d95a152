// Judges the one stage that it is linked with, for common/variants/judge.py: held against the
// reference, counted, timed. Its findings go to standard output, one JSON object per line, each as soon
// as it stands: whatever the kernel does to this process, what was found before is safe. A line counts if
// it begins with the word that standard input gives, which code that runs before main() can't know.
#include <signal.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "common/check/backend.h"
#include "common/check/checker.h"
#include "common/check/files.h"
#include "common/check/problems.h"
#include "common/check/test_data.h"
#include "common/check/trial.h"
#include "common/core/launch.h"
#include "common/core/platform.h"
#include "common/core/stage.h"
#include "common/measure/profile.h"
#ifdef CONVLADDER_COUNTING
#include "common/core/program.h"
#include "common/simulator/counts.h"
#endif

namespace convladder {
namespace {

constexpr int TIMED_RUNS = 20;
constexpr int NO_MEMORY = 0;  // in place of a signal's number

std::string secret;

void tell(const Json& members) {
  std::fflush(stdout);  // what the kernel has printed comes before
  const std::string line = "\n" + secret + members.dump() + "\n";
  if (write(STDOUT_FILENO, line.data(), line.size()) != static_cast<ssize_t>(line.size())) _exit(3);
}

// ---- What ends the process ----

uintptr_t offset_of(const void* code) {
#ifdef CONVLADDER_COUNTING
  return code_offset(code);
#else
  return reinterpret_cast<uintptr_t>(code);
#endif
}

// Says where a thread stands, innermost call first: for addr2line. SIGALRM comes from judge.py, when
// time is up.
void tell_crash(int signal, siginfo_t*, void*) {
  if (signal == SIGALRM) {
    interrupt_other_threads(SIGUSR1);  // each says where it stands, too
    usleep(300'000);
  }
  const void* frames[32];
  const std::size_t count = return_addresses(frames, 32);
  char line[1024];
  int length =
      std::snprintf(line, sizeof(line), "\n%s{\"crash\": %d, \"code\": [", secret.c_str(), signal);
  for (std::size_t i = 0; i < count; ++i) {
    length += std::snprintf(line + length, sizeof(line) - length, "%s%zu", i ? ", " : "",
                            static_cast<std::size_t>(offset_of(frames[i])));
  }
  length += std::snprintf(line + length, sizeof(line) - length, "]}\n");
  if (write(STDOUT_FILENO, line, length) != length) _exit(3);
  if (signal != SIGUSR1) _exit(4);
}

void watch_for_crashes() {
  const void* frame[1];
  return_addresses(frame, 1);  // loads what it needs while memory is still whole
  static char stack[1 << 16];
  const stack_t alternate = {stack, 0, sizeof(stack)};
  sigaltstack(&alternate, nullptr);  // of this thread: recursion of the host's code ends here
  struct sigaction action = {};
  action.sa_sigaction = tell_crash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM, SIGUSR1}) {
    sigaction(signal, &action, nullptr);
  }
  std::set_new_handler([] { tell_crash(NO_MEMORY, nullptr, nullptr); });
}

// ---- What is asked ----

// Every other problem with ReLU (of a stage that has it), pointers aligned to 4 bytes only, and
// threads in another order. False with the first that fails.
bool check(const Stage& stage, const std::vector<Problem>& problems) {
  Checker checker([](const std::string&) {});
  int odd = 0;
  for (const Problem& problem : problems) {
    CheckCase c;
    c.name = problem.name;
    c.shape = make_conv_shape(problem.arguments);
    c.bias = problem.bias;
    c.relu = odd && stage.fuses_relu;
    c.placement.offsets = {odd, odd, odd, odd};
#ifdef CONVLADDER_COUNTING
    simulator::set_thread_order_seed(7 * odd);
#endif
    odd = 1 - odd;
    const Record record = checker.check(c, {stage})[0];
    tell({{"checked", problem.name},
          {"shape", to_string(c.shape) + (c.bias ? ", bias" : "") + (c.relu ? ", ReLU" : "")},
          {"pass", record.status == "pass"},
          {"message", record.message}});
    if (record.status != "pass") return false;
  }
#ifdef CONVLADDER_COUNTING
  simulator::set_thread_order_seed(0);
#endif
  return true;
}

// Once each, and right: what is wrong counts for nothing. On a GPU, Nsight Compute counts meanwhile.
bool count(const Stage& stage, const std::vector<Problem>& problems, uint64_t seed) {
  for (const Problem& problem : problems) {
    const ConvShape shape = make_conv_shape(problem.arguments);
    const TestData data = make_test_data(shape, DataKind::kUniform, seed);
    const HostProblem host = host_problem(shape, data, problem.bias);
    const Trial trial(stage, host);
#ifdef CONVLADDER_COUNTING
    simulator::take_kernel_counts();  // what came before is not of this problem
#endif
    int launches = 0;
    Comparison result;
    try {
      for (const auto& [kernel, count] : own_launches(trial)) launches += count;
      result =
          check_output(trial, trial.output(), affordable_reference(host, seed), Rule::kBounded);
    } catch (const CudaError& error) {
      result.message = error.what();
    }
    std::vector<Json> kernels;
#ifdef CONVLADDER_COUNTING
    for (const simulator::KernelCounts& kernel : simulator::take_kernel_counts()) {
      std::vector<Json> places;
      for (const auto& [instruction, counts] : kernel.instructions) {
        places.push_back(Json::object({{"code", static_cast<int64_t>(instruction.code)},
                                       {"shared", instruction.space == simulator::Space::kShared},
                                       {"requests", counts.requests},
                                       {"cost", counts.cost}}));
      }
      Json members = {{"kernel", kernel.kernel},
                      {"launches", kernel.launches},
                      {"blocks", kernel.blocks},
                      {"barriers", kernel.barriers},
                      {"shared_bytes", kernel.shared_bytes},
                      {"places", Json(places)}};
      for (const auto& [name, value] : metrics(kernel)) members.push_back({name, number(value)});
      members.push_back({"tensor_instructions", kernel.tensor_instructions});  // zero, too
      kernels.push_back(members);
    }
#endif
    tell({{"counted", problem.name},
          {"kernels", Json(kernels)},
          {"launches", launches},
          {"shape", to_string(shape)},
          {"pass", result.pass},
          {"message", result.message}});
    if (!result.pass) return false;
  }
  return true;
}

// Caches warm; CUDA events. What is timed is right as well, or it counts for nothing.
bool time(const Stage& stage, const std::vector<Problem>& problems) {
  for (const Problem& problem : problems) {
    const ConvShape shape = make_conv_shape(problem.arguments);
    const TestData data = make_test_data(shape, DataKind::kUniform, 1);
    const HostProblem host = host_problem(shape, data, problem.bias);
    const Trial trial(stage, host);
    const Timing timing = time_on_backend([&] { trial.enqueue(); }, TIMED_RUNS);
    const Comparison result =
        check_output(trial, trial.output(), affordable_reference(host, 1), Rule::kBounded);
    tell({{"timed", problem.name},
          {"milliseconds", timing.milliseconds},
          {"runs", timing.runs},
          {"device", device_name()},
          {"shape", to_string(shape)},
          {"pass", result.pass},
          {"message", result.message}});
    if (!result.pass) return false;
  }
  return true;
}

// The words: --check, --count and --time, each with a CSV of problems; --seed, of the data; --precision, by
// whose rule is judged; --relu, whether it must be for problems with ReLU; --secret, with which standard input gives the word.
int judge_stage(const std::map<std::string, std::string>& options) {
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // nothing that is printed is lost in a crash
  if (options.count("--secret")) std::getline(std::cin, secret);
  watch_for_crashes();
  try {
    if (stages().size() != 1) {
      tell({{"refused",
             "registers " + std::to_string(stages().size()) +
                 " stages, not one: CONVLADDER_REGISTER_STAGE() stands at the end of the start"}});
      return 2;
    }
    const Stage& stage = stages()[0];
    const auto asked = options.find("--precision");
    if (asked != options.end() && asked->second != to_string(stage.precision)) {
      tell({{"refused",
             "is registered for another precision than the exercise's, " + asked->second}});
      return 2;
    }
    if (stage.layout != NCHW) {
      tell({{"refused", "is registered for another layout than the exercise's, [N,C,H,W]"}});
      return 2;
    }
    const auto relu = options.find("--relu");
    if (relu != options.end() && relu->second == "true" && !stage.fuses_relu) {
      tell({{"refused",
             "is registered otherwise than the start: for a stage that applies no ReLU"}});
      return 2;
    }
    const auto problems = [&](const char* option) {
      const auto found = options.find(option);
      return found == options.end() ? std::vector<Problem>() : read_problems(found->second);
    };
    require_device();
    if (!check(stage, problems("--check"))) return 1;
    if (!count(stage, problems("--count"), std::stoull(options.at("--seed")))) return 1;
    if (!time(stage, problems("--time"))) return 1;
    tell({{"end", true}});
    return 0;
  } catch (const std::bad_alloc&) {
    tell({{"error", "out of memory"}});
  } catch (const std::exception& error) {
    tell({{"error", error.what()}});
  }
  return 1;
}

}  // namespace
}  // namespace convladder

int main(int argc, char** argv) {
  std::map<std::string, std::string> options;
  for (int i = 1; i + 1 < argc; i += 2) options[argv[i]] = argv[i + 1];
  return convladder::judge_stage(options);
}
