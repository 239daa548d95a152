// What a user would call instead of a stage: the convolution of a library, with its bias.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/check/compare.h"
#include "common/check/reference.h"
#include "common/core/stage.h"
#include "common/measure/stopwatch.h"

namespace convladder {

struct CompetitorInfo {
  std::string competitor;  // "cudnn" or "pytorch"
  Precision precision = Precision::kFp32;
  std::string layout;   // of its tensors: "nchw" or "nhwc"
  std::string version;  // "9.19.0"
  std::string library;  // for the reader: "cuDNN 9.19.0"
};

std::string label(const CompetitorInfo& info);  // "PyTorch TF32 NHWC"; NCHW goes without saying

// The competitor can't take part, through no fault of its own: a problem that the library doesn't
// support, or too little memory.
struct Skipped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Choice {
  std::string algorithm;  // as the library calls it
  std::string remark;     // empty, or what else to know of it
};

// One library in one precision and layout, on one problem after another. What goes wrong is thrown:
// Skipped, or another std::runtime_error for a failure.
class Competitor {
 public:
  explicit Competitor(CompetitorInfo info) : info_(std::move(info)) {}
  virtual ~Competitor() = default;
  Competitor(const Competitor&) = delete;

  const CompetitorInfo& info() const { return info_; }

  // Device memory that its tensors take, without what the library wants to work in.
  virtual double bytes(const ConvShape& shape, bool bias) const;

  // Gets everything ready to be timed on `problem`; `reference` is of this problem, too. All host
  // arrays must outlive release(). `stopwatch`, here and below, is for those who run in this
  // process.
  virtual Choice prepare(const HostProblem& problem, const Reference& reference,
                         Stopwatch& stopwatch) = 0;
  // One cold and one warm run.
  virtual void time(Stopwatch& stopwatch, Samples& samples) = 0;
  // The result of the last run, held against float64 within error_factor().
  virtual Comparison check(const HostProblem& problem, const Reference& reference) = 0;
  // Gives back what prepare() took.
  virtual void release() noexcept = 0;

 private:
  const CompetitorInfo info_;
};

using Competitors = std::vector<std::shared_ptr<Competitor>>;

// cuDNN: FP32 and TF32, both NCHW. None where this program was built without it.
Competitors cudnn_competitors();

}  // namespace convladder
