#include "common/measure/competitor_pytorch.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "common/core/extents.h"
#include "common/measure/line_process.h"

namespace convladder {
namespace {

constexpr int STARTS = 3;  // at most: a process that keeps hanging would take up hours
constexpr int SEED = 1;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

// The process, and the form of what it says.
class PyTorch {
 public:
  explicit PyTorch(PyTorchSettings settings) : settings_(std::move(settings)) { start(); }

  const std::string& version() const { return version_; }
  const std::string& library() const { return library_; }

  // Before a problem: a process that is gone is started anew.
  void require_running() {
    if (process_->running()) return;
    if (starts_ == STARTS) {
      throw std::runtime_error("given up after " + std::to_string(STARTS) + " starts");
    }
    start();
  }

  // The `count` numbers of the answer. Throws Skipped and std::runtime_error as the process says;
  // one that says anything else is ended.
  std::vector<double> ask(const std::string& request, std::size_t count) {
    const std::string answer = process_->ask(request, settings_.seconds);
    const std::string word = answer.substr(0, answer.find(' '));
    const std::string rest = word == answer ? "" : answer.substr(word.size() + 1);
    if (word == "memory") throw Skipped(rest);
    if (word == "error") throw std::runtime_error(rest);
    std::vector<double> numbers;
    std::istringstream stream(rest);
    for (std::string text; stream >> text;) {
      char* end = nullptr;
      numbers.push_back(std::strtod(text.c_str(), &end));
      if (*end != '\0') fail(request, answer);
    }
    if (word != "ok" || numbers.size() != count) fail(request, answer);
    return numbers;
  }

  [[noreturn]] void fail(const std::string& request, const std::string& answer) {
    process_->end();  // there is no telling what it will say next
    throw std::runtime_error("to '" + request.substr(0, request.find(' ')) + "' it answered '" +
                             answer.substr(0, 80) + "'");
  }

 private:
  void start() {
    std::vector<std::string> command = settings_.command;
    command.push_back(number(2 * settings_.l2_bytes));
    command.push_back(std::to_string(FLUSHES_AT_FIRST));
    command.push_back(std::to_string(FLUSHES_AT_MOST));
    process_ = std::make_unique<LineProcess>(command);
    ++starts_;
    const std::string answer = process_->read_line(settings_.seconds);
    std::istringstream stream(answer);
    std::string word, cudnn;
    stream >> word;
    if (word == "error") throw std::runtime_error(answer.substr(word.size() + 1));
    stream >> version_ >> cudnn;
    if (word != "ready" || !stream) fail("start", answer);
    library_ = "PyTorch " + version_ + ", cuDNN " + cudnn;
  }

  const PyTorchSettings settings_;
  std::unique_ptr<LineProcess> process_;
  int starts_ = 0;
  std::string version_, library_;
};

class PyTorchCompetitor : public Competitor {
 public:
  PyTorchCompetitor(std::shared_ptr<PyTorch> pytorch, const CompetitorInfo& info)
      : Competitor(info), pytorch_(std::move(pytorch)) {}

  double bytes(const ConvShape& shape, bool bias) const override {
    // The input is drawn in NCHW, whatever becomes of it.
    const double copy = info().layout == "nhwc" ? sizeof(float) * double(shape.input_count()) : 0;
    return Competitor::bytes(shape, bias) + copy;
  }

  Choice prepare(const HostProblem& problem, const Reference&, Stopwatch&) override {
    pytorch_->require_running();
    const ConvShape& s = problem.shape;
    const double bound = error_factor(s, info().precision) * 0x1p-24;
    std::ostringstream request;
    request << "prepare " << id() << " " << to_string(info().precision) << " " << info().layout
            << " " << SEED << " " << number(bound);
    const ConvArguments arguments = to_arguments(s);
    for (const Extent& e : EXTENTS) request << " " << arguments.*e.given;
    request << " " << (problem.bias ? 1 : 0);
    pytorch_->ask(request.str(), 0);
    return {"torch.backends.cudnn.benchmark", ""};
  }

  void time(Stopwatch&, Samples& samples) override {
    const std::string request = "time " + id();
    const std::vector<double> answer = pytorch_->ask(request, 3);
    for (const double ms : {answer[0], answer[1]}) {
      if (!(std::isfinite(ms) && ms > 0)) pytorch_->fail(request, "ok " + number(ms));
    }
    const double late = answer[2];
    if (late != 0 && late != 1) pytorch_->fail(request, "ok ... " + number(late));
    samples.cold.push_back(answer[0]);
    samples.warm.push_back(answer[1]);
    samples.host_late += late == 1;
  }

  // On samples, in Python: its data never leave the device.
  Comparison check(const HostProblem&, const Reference&) override {
    Comparison result;
    result.max_error_ratio = pytorch_->ask("check " + id(), 1)[0];
    result.pass = result.max_error_ratio <= 1;  // which a NaN is not
    if (!result.pass) result.message = "an error beyond the bound, or NaN";
    return result;
  }

  void release() noexcept override {
    try {
      pytorch_->ask("release " + id(), 0);
    } catch (const std::exception&) {
      // It is gone, and its memory with it.
    }
  }

 private:
  std::string id() const { return std::string(to_string(info().precision)) + "_" + info().layout; }

  std::shared_ptr<PyTorch> pytorch_;
};

}  // namespace

Competitors pytorch_competitors(const PyTorchSettings& settings) {
  const auto pytorch = std::make_shared<PyTorch>(settings);
  Competitors competitors;
  for (const auto& [precision, layout] :
       {std::pair{Precision::kFp32, "nchw"}, std::pair{Precision::kTf32, "nchw"},
        std::pair{Precision::kTf32, "nhwc"}}) {
    const CompetitorInfo info{"pytorch", precision, layout, pytorch->version(), pytorch->library()};
    competitors.push_back(std::make_shared<PyTorchCompetitor>(pytorch, info));
  }
  return competitors;
}

}  // namespace convladder
