#include "common/harness/run_job.h"

#include <cmath>

#include "common/harness/backend.h"
#include "common/harness/filter_bank.h"
#include "common/harness/photo.h"
#include "common/harness/selection.h"
#include "common/harness/trial.h"
#include "common/io/image.h"
#include "common/io/npy.h"

namespace convladder {
namespace {

constexpr const char* PHOTO = "common/data/raccoon_224.ppm";
constexpr int BATCH_GPU = 256, BATCH_SIM = 1;
constexpr uint32_t BANK_SEED = 2012;

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
    job.data.input = read_tensor(options.text("--input"), "input", {s.N, s.C, s.H, s.W});
  }
  if (options.has("--filters")) {
    job.data.filters = read_tensor(options.text("--filters"), "filters", {s.K, s.C, s.R, s.S});
  }
  if (bias_is_file(options)) {
    job.data.bias = read_tensor(options.text("--bias"), "bias", {s.K});
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

RunJob photo_job(const Options& options) {
  const Image photo = read_ppm(repository_path(PHOTO));
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
  job.photo = true;
  require_memory_for(job.shape);
  if (!options.has("--input")) job.data.input = make_photo_batch(photo, job.shape.N);
  FilterBank bank = make_filter_bank(BANK_SEED);
  job.data.filters = std::move(bank.filters);
  job.data.bias = std::move(bank.bias);
  return job;
}

RunJob problem_job(const Options& options, uint64_t seed) {
  Problem problem = named_problem(options);
  problem.arguments.n = options.integer("--batch", problem.arguments.n, 1);
  const std::string note = has_tensors(options) ? "" : fit_to_backend(problem, options);

  RunJob job;
  job.name = problem.name;
  job.source = "random numbers in [-1, 1)" + (note.empty() ? "" : "; " + note);
  job.shape = make_conv_shape(problem.arguments);
  job.bias = problem.bias;
  job.random = !has_tensors(options);
  require_memory_for(job.shape);
  job.data = make_test_data(job.shape, DataKind::kUniform, seed);
  return job;
}

}  // namespace

std::vector<OptionSpec> job_options() {
  return {{"--batch", "N", "images (default: 1 on the simulator, 256 on a GPU)"},
          {"--input", "X.npy", "the input, [N,C,H,W]"},
          {"--filters", "W.npy", "the filters, [K,C,R,S]"},
          {"--bias", "B.npy|0|1", "the bias, [K]; 0: none"}};
}

RunJob make_job(const Options& options) {
  const auto seed = static_cast<uint64_t>(options.integer("--seed", 1, 0));
  RunJob job = names_problem(options) ? problem_job(options, seed) : photo_job(options);
  if (options.has("--bias")) job.bias = options.text("--bias") != "0";
  job.relu = options.has("--relu");
  replace_tensors(job, options);
  return job;
}

}  // namespace convladder
