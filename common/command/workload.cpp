#include "common/command/workload.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "common/check/backend.h"
#include "common/check/filter_bank.h"
#include "common/check/image.h"
#include "common/check/npy.h"
#include "common/check/photo.h"
#include "common/command/selection.h"

namespace convladder {
namespace {

constexpr const char* PHOTO = "common/data/raccoon_224.ppm";
constexpr int PHOTO_SIZE = 224;
constexpr int BATCH_GPU = 256, BATCH_SIM = 1;

// A tensor that the command line names a file for.
struct GivenArray {
  std::string path;  // empty: none is named
  Array array;

  bool is_given() const { return !path.empty(); }

  void replace(std::vector<float>& tensor, const char* what, const std::vector<int64_t>& shape) {
    if (!is_given()) return;
    if (array.shape != shape) {
      throw std::runtime_error(
          fmt::format("{}: shape is [{}], the {} must be [{}] (without --shape and extents the "
                      "arrays give them)",
                      path, fmt::join(array.shape, ","), what, fmt::join(shape, ",")));
    }
    const auto finite = [](float value) { return std::isfinite(value); };
    const auto odd = std::find_if_not(array.data.begin(), array.data.end(), finite);
    if (odd != array.data.end()) {
      throw std::runtime_error(
          fmt::format("{}: element {} is not finite, so the result could not be checked", path,
                      odd - array.data.begin()));
    }
    tensor = std::move(array.data);
  }
};

GivenArray read_given(const Options& options, const char* name, std::size_t dimensions) {
  const std::string path = options.text(name);
  if (path.empty() || path == "0" || path == "1") return {};  // --bias is a file, or a flag
  GivenArray given = {path, read_npy(path)};
  const std::vector<int64_t>& shape = given.array.shape;
  if (shape.size() != dimensions || std::count(shape.begin(), shape.end(), 0) > 0) {
    throw std::runtime_error(
        fmt::format("{}: shape is [{}], {} takes {} dimensions, none of them 0", path,
                    fmt::join(shape, ","), name, dimensions));
  }
  return given;
}

// `a` with the extents of the arrays.
ConvArguments with_extents_of(const GivenArray& input, const GivenArray& filters, ConvArguments a) {
  const std::vector<int64_t>&x = input.array.shape, &w = filters.array.shape;
  if (input.is_given()) a.n = x[0], a.c = x[1], a.h = x[2], a.w = x[3];
  if (!filters.is_given()) return a;
  a.k = w[0], a.r = w[2], a.s = w[3];
  if (!input.is_given()) a.c = w[1];
  a.groups = w[1] > 0 && a.c % w[1] == 0 ? a.c / w[1] : 1;
  return a;
}

Problem alexnet_conv1() {
  Problem layer;
  layer.name = "alexnet_conv1";
  ConvArguments& a = layer.arguments;
  a.n = BATCH_GPU, a.c = BANK_CHANNELS, a.h = a.w = PHOTO_SIZE;
  a.k = BANK_FILTERS, a.r = a.s = BANK_SIZE;
  a.stride_h = a.stride_w = 4, a.pad_h = a.pad_w = 2;
  return layer;
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

}  // namespace

std::vector<OptionSpec> workload_options() {
  return {{"--batch", "N", "images (default: 1 on the simulator, 256 on a GPU)"},
          {"--input", "X.npy", "the input, [N,C,H,W]; gives the extents that no option gives"},
          {"--filters", "W.npy", "the filters, [K,C/groups,R,S]; the same"},
          {"--bias", "B.npy|0|1", "the bias, [K]; 0: none (default where --filters is given)"},
          {"--shapes", "FILE.csv", "where --shape is found, instead"}};
}

Workload make_workload(const Options& options) {
  GivenArray input = read_given(options, "--input", 4), bias = read_given(options, "--bias", 1),
             filters = read_given(options, "--filters", 4);
  const uint64_t seed = seed_of(options);
  const double most = max_gmac(options);
  const bool arrays = input.is_given() || filters.is_given() || bias.is_given();
  const bool photo = !names_problem(options) && !options.has("--shapes") &&
                     !(input.is_given() && filters.is_given());
  const bool bank = photo && !filters.is_given();
  if (options.has("--batch") && options.has("--n")) {
    throw UsageError("--batch and --n both say how many images: give one of them");
  }
  if (options.has("--max-gmac") && (photo || arrays)) {
    throw UsageError(
        "--max-gmac cuts down problems of random numbers, not the photograph or given arrays");
  }
  if (photo && !input.is_given() && filters.is_given() && filters.array.shape[1] != BANK_CHANNELS) {
    throw std::runtime_error(
        fmt::format("{}: its filters have {} channels, and the photograph has {}: give --input",
                    filters.path, filters.array.shape[1], BANK_CHANNELS));
  }
  Problem problem =
      photo ? alexnet_conv1() : named_problems(options, with_extents_of(input, filters, {}))[0];
  ConvArguments& a = problem.arguments;
  // A problem of the file whose --h is less is a part of it.
  const ConvArguments whole =
      options.has("--shape") ? problem_called(options, options.all("--shape").front()).arguments
                             : a;
  if (photo) {
    if (!input.is_given()) a.n = on_gpu() ? BATCH_GPU : BATCH_SIM;
    a = with_extents_of(input, filters, a);
    if (bank) a.c = BANK_CHANNELS;
  }
  a.n = options.integer("--batch", a.n, 1);
  const std::string note = photo || arrays ? "" : cut_down(problem, most);

  Workload w;
  w.name = problem.name;
  try {
    w.shape = make_conv_shape(a);
  } catch (const InvalidArgument& error) {
    if (!photo || !input.is_given() || filters.is_given()) throw;
    throw InvalidArgument(std::string(error.what()) +
                          "; the filters are AlexNet's: give --filters");
  }
  w.whole = larger_than(w.shape, whole);
  require_memory_for(w.shape);
  w.data = bank ? make_filter_bank() : make_test_data(w.shape, DataKind::kUniform, seed);
  if (photo && !input.is_given()) {
    const Image image = read_image(repository_path(PHOTO));
    if (image.width != PHOTO_SIZE || image.height != PHOTO_SIZE) {
      throw std::runtime_error(fmt::format("{}: is {}x{}, must be {}x{}", PHOTO, image.width,
                                           image.height, PHOTO_SIZE, PHOTO_SIZE));
    }
    w.data.input = make_photo_batch(image, w.shape.N);
  }
  const ConvShape& s = w.shape;
  input.replace(w.data.input, "input", {s.N, s.total_C(), s.H, s.W});
  filters.replace(w.data.filters, "filters", {s.total_K(), s.C, s.R, s.S});
  bias.replace(w.data.bias, "bias", {s.total_K()});
  const bool with_bias =
      options.has("--bias") ? options.text("--bias") != "0" : problem.bias && !filters.is_given();
  if (!photo && !arrays) w.signs = Signs::kRandom;
  std::vector<std::string> sources;
  for (const GivenArray* given : {&input, &filters, &bias}) {
    if (given->is_given()) sources.push_back(given->path);
  }
  if (!input.is_given() || !filters.is_given() || (with_bias && !bias.is_given())) {
    sources.emplace_back(photo && !input.is_given() ? PHOTO
                         : bank                     ? "Gabor filters"
                                                    : "random numbers in [-1, 1)");
  }
  w.source = fmt::format("{}{}{}", fmt::join(sources, ", "), note.empty() ? "" : "; ", note);
  static_cast<HostProblem&>(w) = host_problem(w.shape, w.data, with_bias, options.has("--relu"));
  return w;
}

}  // namespace convladder
