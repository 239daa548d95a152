#include "common/core/gradients.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <tuple>

#include "common/core/choice.h"
#include "common/core/launch.h"

namespace convladder {
namespace {

constexpr int THREADS = 256;
constexpr std::size_t ALIGNMENT = 256;
constexpr std::size_t STAGE_LIMIT = DEFAULT_WORKSPACE_LIMIT / 4;  // of a stage's own workspace

// ---- Passes ----

// So many elements along five axes, and how far apart they lie along each, there and here.
constexpr int AXES = 5;
struct Box {
  int extents[AXES];
  int64_t from[AXES], to[AXES];
};

// Turns filters, swaps axes, spreads phases. A row of threads has a row of the last axis. From null come
// zeros.
__global__ void copy_box(Box box, unsigned rows, const float* from, float* to) {
  unsigned row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  int64_t source = 0, target = 0;
  for (int axis = AXES - 2; axis >= 0; --axis) {
    const unsigned index = row % box.extents[axis];
    row /= box.extents[axis];
    source += index * box.from[axis], target += index * box.to[axis];
  }
  for (int i = threadIdx.x; i < box.extents[AXES - 1]; i += blockDim.x) {
    to[target + i * box.to[AXES - 1]] = from ? from[source + i * box.from[AXES - 1]] : 0.0f;
  }
}

// Writes behind one another what the first tap of each row of the filters meets, for all of their rows and
// channels: [groups][images][P][W][C,R], or with the images first, and zeros for rows of padding. A thread
// has a row of the input; its neighbours write what lies beside.
__global__ void line_up(ConvShape shape, int images, bool images_first,
                        const float* __restrict__ input, float* __restrict__ to) {
  const unsigned columns = shape.C * shape.R, blocks = (columns + blockDim.x - 1) / blockDim.x;
  const unsigned column = blockIdx.x % blocks * blockDim.x + threadIdx.x, P = shape.P();
  const unsigned row = blockIdx.x / blocks, p = row % P, plane = row / P;
  if (column >= columns) return;
  const int n = images_first ? plane / shape.groups : plane % images;
  const int group = images_first ? plane % shape.groups : plane / images;
  const int c = group * shape.C + column / shape.R;
  const int64_t h =
      int64_t{p} * shape.stride_h + int64_t{column % shape.R} * shape.dil_h - shape.pad_h;
  const bool inside = h >= 0 && h < shape.H;
  const float* from = input + n * shape.input_pitch() + (int64_t{c} * shape.H + h) * shape.W;
  to += int64_t{row} * shape.W * columns + column;
  for (int w = 0; w < shape.W; ++w) to[int64_t{w} * columns] = inside ? from[w] : 0.0f;
}

// Where a result of the convolution that computes filters' gradients belongs.
struct Places {
  int64_t filter, channel, row, column;  // how far from one to the next, there
  int parts;                             // so many, to be added up
  int64_t pitch;                         // from one to the next
};

// A thread has an element of the filters' gradient. What is lost in each addition is added to the next.
__global__ void gather(ConvShape shape, Places places, const float* __restrict__ from,
                       float* __restrict__ to, bool add) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= shape.filter_count()) return;
  const int s = i % shape.S, r = i / shape.S % shape.R, c = i / shape.S / shape.R % shape.C;
  from += i / shape.CRS() * places.filter + c * places.channel + r * places.row + s * places.column;
  float sum = add ? to[i] : 0.0f, lost = 0.0f;
  for (int part = 0; part < places.parts; ++part) {
    const float value = from[part * places.pitch] - lost, more = sum + value;
    lost = (more - sum) - value, sum = more;
  }
  to[i] = sum;
}

// The sum of `count` elements that lie `step` apart, for each block; the next block's begin `next` behind.
// In the same order every time.
__global__ void add_up(const float* __restrict__ from, int64_t next, int64_t count, int64_t step,
                       float* __restrict__ sums) {
  __shared__ float parts[THREADS];
  float sum = 0.0f;
  for (int64_t i = threadIdx.x; i < count; i += THREADS) sum += from[blockIdx.x * next + i * step];
  parts[threadIdx.x] = sum;
  for (int half = THREADS / 2; half > 0; half /= 2) {
    __syncthreads();  // the halves before are added
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = parts[0];
}

// ---- Enqueueing, or asking for workspace ----

// Does the work step by step, each step on the workspace that it needs; without a workspace to begin with it
// enqueues nothing, and finds out how much that is.
class Work {
 public:
  Work(const Stage& stage, void* workspace, cudaStream_t stream, bool only_asked)
      : stage_(stage), begin_(static_cast<char*>(workspace)), stream_(stream), asked_(only_asked) {}

  std::size_t most_bytes() const { return most_; }
  bool asked() const { return asked_; }  // for workspace alone

  // Floats that stay until the next clear().
  float* take(int64_t count) { return static_cast<float*>(take_bytes(count * sizeof(float))); }
  void clear() { used_ = 0; }

  void copy(const Box& box, const float* from, float* to) const {
    int64_t rows = 1;
    for (int axis = 0; axis < AXES - 1; ++axis) rows *= box.extents[axis];
    int x = 1;
    while (x < THREADS && x < box.extents[AXES - 1]) x *= 2;
    const int y = THREADS / x;
    if (rows > INT32_MAX) {
      throw InvalidArgument("the gradient needs a pass over " + std::to_string(rows) +
                            " rows, more than 2147483647");
    }
    if (asked_ || rows == 0) return;
    copy_box<<<grid_x(ceil_div(rows, y)), dim3(x, y), 0, stream_>>>(
        box, static_cast<unsigned>(rows), from, to);
  }

  void convolve(const ConvShape& shape, const float* input, const float* filters, float* output) {
    validate(shape);
    const bool takes = !stage_.wants || !stage_.wants(shape);
    const Stage& stage = takes ? stage_ : *choose(shape, STAGE_LIMIT).stage;
    const std::size_t before = used_;
    Convolution conv;
    conv.shape = shape;
    conv.workspace_bytes =  // the least that it can work with, where that is more than the limit
        stage.workspace_bytes ? stage.workspace_bytes(shape, STAGE_LIMIT) : 0;
    conv.workspace = take_bytes(conv.workspace_bytes);
    used_ = before;
    if (asked_) return;
    conv.input = input, conv.filters = filters, conv.output = output;
    stage.enqueue(conv, stream_);
  }

  void line_up(const ConvShape& shape, int images, bool images_first, const float* input,
               float* to) const {
    const int64_t columns = int64_t{shape.C} * shape.R;
    int threads = 32;
    while (threads < THREADS && threads < columns) threads *= 2;
    const unsigned grid = grid_x(ceil_div(columns, threads) * shape.groups * images * shape.P());
    if (asked_) return;
    convladder::line_up<<<grid, threads, 0, stream_>>>(shape, images, images_first, input, to);
  }

  void gather(const ConvShape& shape, const Places& places, const float* from, float* to,
              bool add) const {
    const unsigned grid = grid_x(ceil_div(shape.filter_count(), THREADS));
    if (asked_) return;
    convladder::gather<<<grid, THREADS, 0, stream_>>>(shape, places, from, to, add);
  }

  void add(const float* from, int64_t blocks, int64_t next, int64_t count, int64_t step,
           float* sums) const {
    const unsigned grid = grid_x(blocks);
    if (!asked_) add_up<<<grid, THREADS, 0, stream_>>>(from, next, count, step, sums);
  }

 private:
  void* take_bytes(std::size_t bytes) {
    char* const taken = begin_ + used_;
    used_ += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    most_ = std::max(most_, used_);
    return taken;
  }

  const Stage& stage_;
  char* const begin_;
  cudaStream_t const stream_;
  const bool asked_;
  std::size_t used_ = 0, most_ = 0;
};

// What stands for memory while workspace is asked for.
float* const NOWHERE = reinterpret_cast<float*>(ALIGNMENT);

// ---- By the input ----

// What an input row (or column) gets depends on its phase, what is left of it when divided by the stride. For
// those of one phase, the taps that reach them are `step` apart, and the outputs that they come from a
// dilation: a convolution of stride 1 over the output's gradient.
struct Phase {
  int first, rows;  // of the input: first, first + stride, ...
  int tap, step, taps;
  int dilation, pad;  // of that convolution
  int skipped;        // of its outputs, before those that are wanted
};

Phase phase_of(int first, int extent, int outputs, int filter, int stride, int pad, int dilation) {
  const int common = std::gcd(stride, dilation);
  Phase phase = {first, static_cast<int>((int64_t{extent} - first + stride - 1) / stride),
                 0,     stride / common,
                 0,     dilation / common,
                 0,     0};
  const auto meets = [&](int tap) { return (first + pad - int64_t{tap} * dilation) % stride == 0; };
  while (phase.tap < std::min(phase.step, filter) && !meets(phase.tap)) ++phase.tap;
  if (phase.tap >= std::min(phase.step, filter)) return phase;  // taps = 0: nothing reaches them
  phase.taps = static_cast<int>((int64_t{filter} - phase.tap + phase.step - 1) / phase.step);
  // The output that the first tap takes to the first row. Those that meet padding alone are left out.
  int64_t output = (first + pad - int64_t{phase.tap} * dilation) / stride;
  const auto misses = [&](int64_t tap) {
    const int64_t at = output - tap * phase.dilation;
    return at >= outputs || at + phase.rows <= 0;
  };
  while (phase.taps > 0 && misses(phase.taps - 1)) --phase.taps;
  for (; phase.taps > 0 && misses(0); --phase.taps) {
    phase.tap += phase.step, output -= phase.dilation;
  }
  if (phase.taps == 0) return phase;
  const int64_t span = int64_t{phase.dilation} * (phase.taps - 1);
  const int64_t before = span - output, behind = phase.rows - before + span - outputs;
  phase.pad = static_cast<int>(std::max({before, behind, int64_t{0}}));
  phase.skipped = static_cast<int>(phase.pad - before);
  return phase;
}

void input_gradient(Work& work, const Gradients& g) {
  const ConvShape& s = g.shape;
  const int64_t RS = int64_t{s.R} * s.S;
  for (int h = 0; h < std::min(s.stride_h, s.H); ++h) {
    const Phase y = phase_of(h, s.H, s.P(), s.R, s.stride_h, s.pad_h, s.dil_h);
    for (int w = 0; w < std::min(s.stride_w, s.W); ++w) {
      const Phase x = phase_of(w, s.W, s.Q(), s.S, s.stride_w, s.pad_w, s.dil_w);
      ConvShape back = s;  // the output's gradient by turned filters, from K channels to C
      back.C = s.K, back.K = s.C, back.H = s.P(), back.W = s.Q(), back.R = y.taps, back.S = x.taps;
      back.stride_h = back.stride_w = 1;
      back.pad_h = y.pad, back.pad_w = x.pad, back.dil_h = y.dilation, back.dil_w = x.dilation;
      Box spread = {
          {s.N, s.total_C(), y.rows, 1, x.rows},
          {},
          {s.input_pitch(), int64_t{s.H} * s.W, int64_t{s.stride_h} * s.W, 0, s.stride_w}};
      float* const to = g.input_gradient + int64_t{h} * s.W + w;
      work.clear();
      if (y.taps == 0 || x.taps == 0) {
        work.copy(spread, nullptr, to);
        continue;
      }
      validate(back);
      float* const turned = work.take(back.filter_count());
      work.copy({{s.groups, s.C, s.K, y.taps, x.taps},
                 {int64_t{s.K} * s.CRS(), RS, s.CRS(), -int64_t{y.step} * s.S, -x.step},
                 {int64_t{s.C} * s.K * y.taps * x.taps, int64_t{s.K} * y.taps * x.taps,
                  int64_t{y.taps} * x.taps, x.taps, 1}},
                g.filters + (y.tap + (y.taps - 1) * y.step) * s.S + x.tap + (x.taps - 1) * x.step,
                turned);
      const bool whole = s.stride_h == 1 && s.stride_w == 1 && back.P() == s.H && back.Q() == s.W;
      float* const rows = whole ? to : work.take(back.output_count());
      work.convolve(back, g.output_gradient, turned, rows);
      if (whole) continue;
      const int64_t from[] = {back.output_pitch(), back.PQ(), back.Q(), 0, 1};
      std::copy_n(from, AXES, spread.from);
      work.copy(spread, rows + y.skipped * back.Q() + x.skipped, to);
    }
  }
}

// ---- By the filters ----

// The input by the output's gradient, of so many images. A depthwise layer's planes are convolved as they lie.
// Otherwise what was a channel's row for one row of taps is a column now (line_up()), and rows of the input
// are what they were channels for; then a row of `dy` is a filter's, and lies as it should. Images are
// channels as well; or groups, whose results are added up, where those are smaller than `dy`.
void filter_gradient(Work& work, const Gradients& g, int64_t first, int images) {
  const ConvShape& s = g.shape;
  const bool planes = s.C == 1 && s.groups > 1, apart = planes || s.CRS() < s.PQ();
  const int P = s.P(), parts = apart ? images : 1;
  ConvShape by = s;
  by.N = 1, by.groups = s.groups * parts;
  std::swap(by.stride_h, by.dil_h), std::swap(by.stride_w, by.dil_w);
  by.R = P, by.S = s.Q();
  if (!planes) {
    by.C = images / parts * P, by.H = s.W, by.W = s.C * s.R, by.R = s.Q(), by.S = 1;
    by.stride_h = by.stride_w, by.dil_h = by.dil_w, by.pad_h = by.pad_w;
    by.stride_w = by.dil_w = 1, by.pad_w = 0;
  }
  validate(by);
  work.clear();
  const float* input = g.input + first * s.input_pitch();
  if (!planes) {
    float* const lined = work.take(by.input_count());
    work.line_up(s, images, apart, input, lined);
    input = lined;
  }
  const float* gradient = g.output_gradient + first * s.output_pitch();
  if (!apart && images > 1) {
    float* const swapped = work.take(by.filter_count());
    work.copy({{1, 1, s.total_K(), images, s.PQ()},
               {0, 0, s.PQ(), s.output_pitch(), 1},
               {0, 0, int64_t{images} * s.PQ(), s.PQ(), 1}},
              gradient, swapped);
    gradient = swapped;
  }
  // Rows and columns of the input that no window saw make it more than R x S.
  float* const found = work.take(by.output_count());
  work.convolve(by, input, gradient, found);
  const int64_t Q = by.Q(), filter = by.P() * Q;
  const Places places = planes ? Places{filter, 0, Q, 1, parts, s.groups * s.K * filter}
                               : Places{filter, s.R, 1, Q, parts, s.groups * s.K * filter};
  work.gather(s, places, found, g.filter_gradient, first > 0);
}

// ---- All ----

// What run_gradients() does, with the filters' gradient of so many images at a time, or asks for.
void enqueue(Work& work, const Gradients& g, int images) {
  const ConvShape& s = g.shape;
  if (g.input_gradient) input_gradient(work, g);
  if (g.filter_gradient) {
    const int last = (s.N - 1) % images + 1;
    // All but the last times ask for the same.
    const int64_t begin = work.asked() ? std::max(0, s.N - last - images) : 0;
    for (int64_t first = begin; first < s.N; first += images) {
      filter_gradient(work, g, first, first + images < s.N ? images : last);
    }
  }
  if (g.bias_gradient) {  // of each plane, and of the planes of each filter
    work.clear();
    const int64_t planes = int64_t{s.N} * s.total_K();
    float* const sums = s.N > 1 ? work.take(planes) : g.bias_gradient;
    work.add(g.output_gradient, planes, s.PQ(), s.PQ(), 1, sums);
    if (s.N > 1) work.add(sums, s.total_K(), 1, s.N, s.total_K(), g.bias_gradient);
  }
}

struct GradientPlan {
  int images;  // at a time
  std::size_t bytes, least_bytes;
};

// The most images at a time that the limits of a shape and of the workspace allow; at least one. One image
// needs the least, but fewer may need more than all: a stage sees other groups then.
GradientPlan make_plan(const Stage& stage, const Gradients& g, std::size_t limit) {
  const auto bytes_for = [&](int images) {
    Work work(stage, NOWHERE, nullptr, true);
    enqueue(work, g, images);
    return work.most_bytes();
  };
  const std::size_t least = bytes_for(1);
  for (int images = g.shape.N; images > 1; images = (images + 1) / 2) {
    try {
      const std::size_t bytes = bytes_for(images);
      if (bytes <= limit) return {images, std::max(bytes, least), least};
    } catch (const InvalidArgument&) {  // too many for one convolution
    }
    if (!g.filter_gradient) break;
  }
  return {1, least, least};
}

// As make_plan(). A network asks for the same few plans in every step, and stages that are asked for their
// workspace plan for longer than the kernels of small layers run: the plans are kept, by all that they
// depend on.
GradientPlan plan_of(const Stage& stage, const Gradients& gradients, std::size_t limit) {
  require_taken(stage, gradients.shape);
  if (stage.layout != NCHW) {
    throw InvalidArgument(std::string(stage.name) + " has no gradients: they are [N,C,H,W]");
  }
  int device = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  const auto key =
      std::make_tuple(stage.name, to_string(gradients.shape), gradients.input_gradient != nullptr,
                      gradients.filter_gradient != nullptr, gradients.bias_gradient != nullptr,
                      limit, device, multiprocessors(), tunings());
  constexpr std::size_t MOST = 1000;
  static std::mutex mutex;
  static std::map<std::remove_const_t<decltype(key)>, GradientPlan> plans;
  const std::lock_guard lock(mutex);
  if (const auto found = plans.find(key); found != plans.end()) return found->second;
  Gradients g = gradients;
  g.input = g.filters = g.output_gradient = NOWHERE;
  const GradientPlan plan = make_plan(stage, g, limit);
  if (plans.size() == MOST) plans.clear();
  return plans[key] = plan;
}

}  // namespace

std::size_t gradient_workspace_bytes(const Stage& stage, const Gradients& gradients,
                                     std::size_t limit) {
  return plan_of(stage, gradients, limit).bytes;
}

void run_gradients(const Stage& stage, const Gradients& g, cudaStream_t stream) {
  const ConvShape& s = g.shape;
  const GradientPlan plan = plan_of(stage, g, g.workspace_bytes);
  const bool by_input = g.input_gradient, by_filters = g.filter_gradient;
  require_buffer("output_gradient", g.output_gradient, g.output_count, s.output_count());
  if (by_filters) {
    require_buffer("input", g.input, g.input_count, s.input_count());
    require_buffer("filter_gradient", g.filter_gradient, g.filter_count, s.filter_count());
  }
  if (by_input) {
    require_buffer("filters", g.filters, g.filter_count, s.filter_count());
    require_buffer("input_gradient", g.input_gradient, g.input_count, s.input_count());
  }
  if (g.bias_gradient) {
    require_buffer("bias_gradient", g.bias_gradient, g.bias_count, s.total_K());
  }
  require_workspace(g.workspace, g.workspace_bytes, plan.least_bytes,
                    std::string(stage.name) + "'s gradients");
  require_no_earlier_error();
  Work work(stage, g.workspace, stream, false);
  enqueue(work, g, plan.images);
  check_cuda(cudaGetLastError(), "kernel launch");
}

}  // namespace convladder
