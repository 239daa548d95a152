// The program: bin/convladder with all stages, bin/01_naive and the like with one.
#include <unistd.h>

#include <cctype>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "common/check/backend.h"
#include "common/check/progress.h"
#include "common/command/commands.h"
#include "common/command/options.h"
#include "common/core/stage.h"
#ifndef CUDART_VERSION
#include "common/simulator/enqueueing.h"
#endif

namespace convladder {

namespace {

void print_help() {
  std::printf(
      "usage: convladder COMMAND [OPTION...]\n"
      "\n"
      "  run      the stages on a photograph through AlexNet's first layer\n"
      "  check    the stages against the reference, on any problem\n"
      "  profile  the stages' kernels; in the simulator, what they ask of memory\n"
      "  bench    the stages timed on a GPU, cold and warm\n"
      "\n"
      "convladder COMMAND --help lists the options. Stages in this program (backend: %s):\n",
      backend_name());
  for (const Stage& stage : stages()) std::printf("  %-22s  %s\n", stage.name, stage.summary);
}

int dispatch(const std::vector<std::string>& words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    print_help();
    return 0;
  }
  const std::vector<std::string> arguments(words.begin() + 1, words.end());
  if (words[0] == "check") return check_command(arguments);
  if (words[0] == "run") return run_command(arguments);
  if (words[0] == "profile") return profile_command(arguments);
  if (words[0] == "bench") return bench_command(arguments);
  throw UsageError("unknown command '" + words[0] + "' (there are run, check, profile and bench)");
}

int fail(std::string reason, int status) {
  for (char& letter : reason) {  // what a terminal would obey
    if (std::iscntrl(static_cast<unsigned char>(letter)) != 0 && letter != '\n') letter = '?';
  }
  std::fflush(stdout);
  std::fprintf(stderr, "convladder: error: %s\n", reason.c_str());
  return status;
}

int status_of(const std::vector<std::string>& words) {
  try {
    const int status = dispatch(words);
    flush_output();
    return status;
  } catch (const std::invalid_argument& error) {  // of the command line, or of the problem
    return fail(error.what(), 2);
  } catch (const std::bad_alloc&) {
    return fail("out of host memory", 1);
  } catch (const std::exception& error) {
    return fail(error.what(), 1);
  } catch (...) {
    return fail("a stage has thrown what is no std::exception", 1);
  }
}

}  // namespace
}  // namespace convladder

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file too large is an error of its write
#ifndef CUDART_VERSION
  convladder::simulator::program_begins();
#endif
  const int status = convladder::status_of({argv + 1, argv + argc});
  // ./ladder must know: a stage may have ended the process with a status of its own.
  const char* const ends = std::getenv("CONVLADDER_ENDS");
  if (ends && write(std::atoi(ends), "", 1) != 1) return 1;
#ifndef CUDART_VERSION
  convladder::simulator::program_ends(status);
#endif
  return status;
}
