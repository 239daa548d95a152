// What a user would call instead of a stage: the convolution of a library, with its bias.
#pragma once

#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>

#include "common/check/compare.h"
#include "common/check/files.h"
#include "common/core/stage.h"
#include "common/measure/stopwatch.h"

namespace convladder {

// The library can't take part, through no fault of its own: a problem that it doesn't support, or
// too little memory.
struct Skipped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// "9.19.0"; empty where this program was built without cuDNN.
std::string cudnn_version();

struct CudnnPlan {
  std::string algorithm;          // as cuDNN calls it
  std::string remark;             // empty, or what else to know of it
  std::function<void()> enqueue;  // computes the whole problem; holds what it needs besides tensors
  std::function<void()> finish;   // behind it: puts the output where `conv` wants it, untimed
};

// kNhwc: the tensors are copied to that layout first, untimed.
enum class CudnnLayout { kNchw, kNhwc };

// Which plans may be chosen. kWithin: those whose error is within the stages' rule. kAny: also faster
// ones whose error is larger (Winograd's grows with its tile).
enum class CudnnRule { kWithin, kAny };

// Computes `conv` by the fastest plan, cold, that `rule` allows: `check` runs what it is given
// and holds the output against float64. Throws Skipped where cuDNN has no plan for the problem,
// std::runtime_error where none is allowed.
CudnnPlan make_cudnn_plan(
    const Convolution& conv, Precision precision, CudnnLayout layout, CudnnRule rule,
    Stopwatch& stopwatch,
    const std::function<Comparison(const std::function<void()>& enqueue)>& check);

// PyTorch, in a Python process that takes its turns when asked, on random data of its own.
// common/measure/time_pytorch.py says what is asked and answered.
class PyTorch {
 public:
  // Starts `command`, for a shell, and reads its greeting. Throws std::runtime_error with the reason
  // where PyTorch or its GPU is missing.
  explicit PyTorch(const std::string& command);
  ~PyTorch();
  PyTorch(const PyTorch&) = delete;

  const Json& greeting() const { return *greeting_; }

  // One line there and one back. Throws std::runtime_error with the reason where that fails; a
  // process that has ended is started anew by the next request.
  Json ask(const Json& request);

 private:
  void start();
  Json read_answer();
  int end();  // waits for the process; returns its exit status

  const std::string command_;
  std::FILE *requests_ = nullptr, *answers_ = nullptr;
  std::unique_ptr<Json> greeting_;
};

}  // namespace convladder
