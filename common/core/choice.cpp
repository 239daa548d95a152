#include "common/core/choice.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <map>
#include <mutex>

#include "common/core/launch.h"

namespace convladder {
namespace {

// What common/measure/timed_layers.py has made of docs/results: TIMED_STAGES, and of each layer the name, the
// counts_of(), and each stage's milliseconds; 0: it is not for that layer.
using Counts = std::array<double, 6>;
#include "common/core/timed_layers.inc"

Counts counts_of(const ConvShape& shape) {
  const double images = shape.N;
  return {double(shape.C),     double(shape.CRS()), double(shape.K), images * shape.H * shape.W,
          images * shape.PQ(), double(shape.groups)};
}

double distance(const Counts& a, const Counts& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::pow(std::log2(a[i] / b[i]), 2);
  return sum;
}

bool suits(const Stage& stage, const ConvShape& shape) {
  return stage.precision == FP32 && stage.layout == NCHW && lack_of(stage).empty() &&
         !(stage.wants && stage.wants(shape));
}

// A stage that can be chosen, and its place in TIMED_STAGES; those that a program holds, if none of them has
// been timed.
struct Candidate {
  const Stage* stage;
  int timed;  // -1: not timed
};

std::vector<Candidate> candidates(const ConvShape& shape, std::size_t limit) {
  std::vector<Candidate> timed, others;
  for (const Stage& stage : stages()) {
    if (!suits(stage, shape)) continue;
    const auto* const found =
        std::find_if(std::begin(TIMED_STAGES), std::end(TIMED_STAGES),
                     [&](const char* name) { return std::string(name) == stage.name; });
    const bool is_timed = found != std::end(TIMED_STAGES);
    (is_timed ? timed : others)
        .push_back({&stage, is_timed ? static_cast<int>(found - TIMED_STAGES) : -1});
  }
  std::vector<Candidate>& all = timed.empty() ? others : timed;
  if (all.empty()) throw InvalidArgument("no stage here takes " + to_string(shape));
  const auto least = [&](const Candidate& each) {
    return least_workspace_bytes(*each.stage, shape);
  };
  std::vector<Candidate> fitting;
  for (const Candidate& each : all) {
    if (least(each) <= limit) fitting.push_back(each);
  }
  if (!fitting.empty()) return fitting;
  return {*std::min_element(all.begin(), all.end(), [&](const Candidate& a, const Candidate& b) {
    return least(a) < least(b);
  })};
}

Choice choose_by_layers(const std::vector<Candidate>& from, const ConvShape& shape) {
  if (from.size() == 1) return {from[0].stage, "the only one that takes the problem"};
  // With one filter for each channel none but the layers like that count, which all candidates are timed on.
  const bool alike = shape.C == 1 && shape.K == 1;
  const TimedLayer* like = nullptr;
  double least = HUGE_VAL;
  for (const TimedLayer& layer : TIMED_LAYERS) {
    const auto is_timed = [&](const Candidate& each) {
      return each.timed >= 0 && layer.milliseconds[each.timed] > 0;
    };
    const bool counts = alike ? std::all_of(from.begin(), from.end(), is_timed)
                              : std::any_of(from.begin(), from.end(), is_timed);
    const double far = distance(layer.counts, counts_of(shape));
    if (counts && far < least) least = far, like = &layer;
  }
  if (!like) return {from.back().stage, "the last of those that take the problem"};
  const auto time =
      [&](const Candidate& each) {  // of one that isn't timed there: none can be longer
        const double known = each.timed >= 0 ? like->milliseconds[each.timed] : 0;
        return known > 0 ? known : HUGE_VAL;
      };
  const Candidate best =
      *std::min_element(from.begin(), from.end(),
                        [&](const Candidate& a, const Candidate& b) { return time(a) < time(b); });
  std::string why =
      std::string("the fastest on ") + like->name + ", the timed layer most like it (";
  for (const Candidate& each : from) {
    if (std::isinf(time(each))) continue;
    char text[80];
    std::snprintf(text, sizeof text, "%s%.2s %.4g ms", why.back() == '(' ? "" : ", ",
                  each.stage->name, time(each));
    why += text;
  }
  return {best.stage, why + ")"};
}

// ---- What was tuned ----

std::mutex tuned_mutex;
std::map<std::string, Choice> tuned;  // by device and shape
std::atomic<int64_t> changes = 0;

std::string key_of(const ConvShape& shape) {
  int device = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  return std::to_string(device) + " " + to_string(shape);
}

}  // namespace

Choice choose(const ConvShape& shape, std::size_t limit) {
  validate(shape);
  const std::vector<Candidate> from = candidates(shape, limit);
  {
    const std::lock_guard lock(tuned_mutex);
    const auto found = tuned.empty() ? tuned.end() : tuned.find(key_of(shape));
    if (found != tuned.end() && std::any_of(from.begin(), from.end(), [&](const Candidate& each) {
          return each.stage == found->second.stage;
        })) {
      return found->second;
    }
  }
  return choose_by_layers(from, shape);
}

#ifdef CUDART_VERSION
namespace {

constexpr int RUNS = 5;

// Device memory that is let go of on any way out.
class Memory {
 public:
  explicit Memory(std::size_t bytes, cudaStream_t stream) {
    if (bytes == 0) return;
    check_cuda(cudaMalloc(&pointer_, bytes), "cudaMalloc, to time stages");
    check_cuda(cudaMemsetAsync(pointer_, 0, bytes, stream), "cudaMemsetAsync");
  }
  ~Memory() { cudaFree(pointer_); }
  Memory(const Memory&) = delete;
  float* floats() const { return static_cast<float*>(pointer_); }

 private:
  void* pointer_ = nullptr;
};

struct Event {
  Event() { check_cuda(cudaEventCreate(&event), "cudaEventCreate"); }
  ~Event() { cudaEventDestroy(event); }
  Event(const Event&) = delete;
  cudaEvent_t event;
};

// The least of some runs, warm.
float milliseconds(const Stage& stage, Convolution conv, cudaStream_t stream) {
  conv.workspace_bytes = workspace_bytes(stage, conv.shape);
  const Memory workspace(conv.workspace_bytes, stream);
  conv.workspace = workspace.floats();
  const Event begin, end;
  float least = HUGE_VALF;
  for (int i = 0; i <= RUNS; ++i) {
    check_cuda(cudaEventRecord(begin.event, stream), "cudaEventRecord");
    run(stage, conv, stream);
    check_cuda(cudaEventRecord(end.event, stream), "cudaEventRecord");
    check_cuda(cudaEventSynchronize(end.event), stage.name);
    float time = 0;
    check_cuda(cudaEventElapsedTime(&time, begin.event, end.event), "cudaEventElapsedTime");
    if (i > 0) least = std::min(least, time);
  }
  return least;
}

}  // namespace

Choice tune(const ConvShape& shape, cudaStream_t stream) {
  validate(shape);
  Convolution conv;
  conv.shape = shape;
  conv.input_count = shape.input_count(), conv.filter_count = shape.filter_count();
  conv.output_count = shape.output_count();
  const Memory input(conv.input_count * sizeof(float), stream);
  const Memory filters(conv.filter_count * sizeof(float), stream);
  const Memory output(conv.output_count * sizeof(float), stream);
  conv.input = input.floats(), conv.filters = filters.floats(), conv.output = output.floats();
  Choice best = {nullptr, "the fastest here, warm ("};
  float least = HUGE_VALF;
  for (const Candidate& each : candidates(shape, DEFAULT_WORKSPACE_LIMIT)) {
    const float time = milliseconds(*each.stage, conv, stream);
    char text[80];
    std::snprintf(text, sizeof text, "%s%.2s %.4g ms", best.stage ? ", " : "", each.stage->name,
                  time);
    best.why += text;
    if (time < least || !best.stage) least = time, best.stage = each.stage;
  }
  best.why += ")";
  const std::lock_guard lock(tuned_mutex);
  ++changes;
  return tuned[key_of(shape)] = best;
}
#else
Choice tune(const ConvShape& shape, cudaStream_t) {
  const Choice choice = choose(shape);
  const std::lock_guard lock(tuned_mutex);
  ++changes;
  return tuned[key_of(shape)] = choice;
}
#endif

int64_t tunings() { return changes; }

const Stage& auto_stage() {
  static const Stage stage = {
      "auto",
      "the stage that suits",
      [](const Convolution& conv, cudaStream_t stream) {
        choose(conv.shape, conv.workspace_bytes).stage->enqueue(conv, stream);
      },
      [](const ConvShape& shape, std::size_t limit) {
        const Stage& chosen = *choose(shape, limit).stage;
        return chosen.workspace_bytes ? chosen.workspace_bytes(shape, limit) : 0;
      },
      true,
      FP32,
      true};
  return stage;
}

}  // namespace convladder
