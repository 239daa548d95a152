#include "common/command/run_job.h"

#include <cmath>

#include <fmt/format.h>
#include "common/check/backend.h"
#include "common/check/filter_bank.h"
#include "common/check/image.h"
#include "common/check/npy.h"
#include "common/check/photo.h"
#include "common/command/selection.h"

namespace convladder {
namespace {

constexpr const char* PHOTO = "common/data/raccoon_224.ppm";
constexpr int BATCH_GPU = 256, BATCH_SIM = 1;

std::string list(const std::vector<int64_t>& extents) {
  std::string text;
  for (int64_t extent : extents) text += (text.empty() ? "" : ",") + std::to_string(extent);
  return "[" + text + "]";
}

std::vector<float> read_tensor(const std::string& path, const char* what,
                               const std::vector<int64_t>& shape) {
  Array array = read_npy(path);
  if (array.shape != shape) {
    throw std::runtime_error(path + ": shape is " + list(array.shape) + ", the " + what +
                             " must be " + list(shape));
  }
  for (std::size_t i = 0; i < array.data.size(); ++i) {
    if (!std::isfinite(array.data[i])) {
      throw std::runtime_error(path + ": element " + std::to_string(i) +
                               " is not finite, so the result could not be checked");
    }
  }
  return std::move(array.data);
}

// --bias is a file, or 0 or 1 as for `check`.
bool bias_is_file(const Options& options) {
  const std::string bias = options.text("--bias");
  return !bias.empty() && bias != "0" && bias != "1";
}

bool has_tensors(const Options& options) {
  return options.has("--input") || options.has("--filters") || bias_is_file(options);
}

void replace_tensors(RunJob& job, const Options& options) {
  const ConvShape& s = job.shape;
  if (options.has("--input")) {
    job.data.input = read_tensor(options.text("--input"), "input", {s.N, s.total_C(), s.H, s.W});
  }
  if (options.has("--filters")) {
    job.data.filters =
        read_tensor(options.text("--filters"), "filters", {s.total_K(), s.C, s.R, s.S});
  }
  if (bias_is_file(options)) {
    job.data.bias = read_tensor(options.text("--bias"), "bias", {s.total_K()});
  }
}

// --batch; else as many images as --input holds; else what suits the backend.
int64_t photo_batch(const Options& options) {
  if (!options.has("--batch") && options.has("--input")) {
    const Array array = read_npy(options.text("--input"));
    if (!array.shape.empty()) return array.shape.front();
  }
  return options.integer("--batch", on_gpu() ? BATCH_GPU : BATCH_SIM, 1);
}

// The shape of `whole`, if it has more images or rows than `shape` and differs in nothing else.
std::optional<ConvShape> larger_than(const ConvShape& shape, const ConvArguments& whole) {
  if (multiply_adds(whole) == 0) return std::nullopt;  // it would be rejected
  const ConvShape larger = make_conv_shape(whole);
  ConvShape same = larger;
  same.N = shape.N, same.H = shape.H;
  const bool more = larger.N > shape.N || larger.H > shape.H;
  const bool all = larger.N >= shape.N && larger.H >= shape.H;
  return more && all && to_string(same) == to_string(shape) ? std::optional(larger) : std::nullopt;
}

RunJob photo_job(const Options& options) {
  const Image photo = read_image(repository_path(PHOTO));
  ConvArguments layer;
  layer.n = photo_batch(options);
  layer.c = BANK_CHANNELS;
  layer.h = photo.height;
  layer.w = photo.width;
  layer.k = BANK_FILTERS;
  layer.r = layer.s = BANK_SIZE;
  layer.stride_h = layer.stride_w = 4;
  layer.pad_h = layer.pad_w = 2;

  RunJob job;
  job.name = "alexnet_conv1";
  job.source = options.has("--input") ? options.text("--input") : PHOTO;
  job.shape = make_conv_shape(layer);
  layer.n = BATCH_GPU;
  job.whole = larger_than(job.shape, layer);
  require_memory_for(job.shape);
  job.data = make_filter_bank();
  if (!options.has("--input")) job.data.input = make_photo_batch(photo, job.shape.N);
  job.bias = job.data.bias.data();
  return job;
}

RunJob problem_job(const Options& options, uint64_t seed) {
  Problem problem = named_problem(options);
  const ConvArguments whole =
      options.has("--shape")
          ? find_problem(read_problems(problems_file(options)), options.text("--shape")).arguments
          : problem.arguments;
  problem.arguments.n = options.integer("--batch", problem.arguments.n, 1);
  const std::string note = has_tensors(options) ? "" : fit_to_backend(problem, options);

  RunJob job;
  job.name = problem.name;
  job.source = "random numbers in [-1, 1)" + (note.empty() ? "" : "; " + note);
  job.shape = make_conv_shape(problem.arguments);
  job.whole = larger_than(job.shape, whole);
  if (!has_tensors(options)) job.signs = Signs::kRandom;
  require_memory_for(job.shape);
  job.data = make_test_data(job.shape, DataKind::kUniform, seed);
  job.bias = problem.bias ? job.data.bias.data() : nullptr;
  return job;
}

}  // namespace

std::vector<OptionSpec> job_options() {
  return {{"--batch", "N", "images (default: 1 on the simulator, 256 on a GPU)"},
          {"--input", "X.npy", "the input, [N,C,H,W]"},
          {"--filters", "W.npy", "the filters, [K,C/groups,R,S]"},
          {"--bias", "B.npy|0|1", "the bias, [K]; 0: none"}};
}

RunJob make_job(const Options& options) {
  const auto seed = static_cast<uint64_t>(options.integer("--seed", 1, 0));
  RunJob job = names_problem(options) ? problem_job(options, seed) : photo_job(options);
  const bool bias = options.has("--bias") ? options.text("--bias") != "0" : job.bias != nullptr;
  replace_tensors(job, options);
  static_cast<HostProblem&>(job) = host_problem(job.shape, job.data, bias, options.has("--relu"));
  return job;
}

Comparison judge(const Trial& trial, const std::vector<float>& output, const RunJob& job,
                 const Reference& reference) {
  return judge(trial, output, reference, Rule::kBounded, job.signs);
}

std::string verdict(const Comparison& result, const ConvShape& shape) {
  if (result.pass)
    return "right (max error / allowed: " + fmt::format("{:.3f}", result.max_error_ratio) + ")";
  if (result.failures == 0) return "wrong: " + result.message;
  // Of a sample, but NaNs are looked for everywhere.
  const int64_t all = result.failures > result.checked ? shape.output_count() : result.checked;
  return "wrong: " + std::to_string(result.failures) + " of " + std::to_string(all) + " outputs; " +
         result.message;
}

}  // namespace convladder
