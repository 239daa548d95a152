#include "common/check/trial.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "common/check/backend.h"
#include "common/core/launch.h"

namespace convladder {
namespace {

// A reference of more multiply-adds than this is sampled: seconds on a few cores.
constexpr double FULL_REFERENCE_MACS = 1e9;
constexpr int64_t SAMPLES = 8192;

int64_t floats_for(std::size_t bytes) {
  return static_cast<int64_t>((bytes + sizeof(float) - 1) / sizeof(float));
}

// The bounded rule's factor for data of any kind. On a photograph partial sums grow far beyond the
// result, and their rounding errors with them. However large they grow, a sum of n products stays
// within 4·sqrt(n)·2^-24·A with probability 1 - 2·exp(-8) (Higham and Mary, "A New Approach to
// Probabilistic Rounding Error Analysis", 2019).
double any_data_factor(const ConvShape& shape) {
  return 4 * std::sqrt(shape.CRS() + 1.0);  // + 1: the bias
}

// [images][rows][columns] as [images][columns][rows].
std::vector<float> turned(const float* from, int64_t images, int64_t rows, int64_t columns) {
  std::vector<float> to(static_cast<std::size_t>(images * rows * columns));
  for (int64_t i = 0; i < images * rows; ++i) {
    float* const image = to.data() + i / rows * rows * columns + i % rows;
    for (int64_t j = 0; j < columns; ++j) image[j * rows] = from[i * columns + j];
  }
  return to;
}

bool is_sampled(const ConvShape& shape) { return shape.flops() / 2 > FULL_REFERENCE_MACS; }

}  // namespace

Trial::Trial(const Stage& stage, const HostProblem& problem, const Placement& placement,
             Guards guards)
    : stage_(stage),
      problem_(problem),
      workspace_bytes_(placement.least_workspace
                           ? least_workspace_bytes(stage, problem.shape)
                           : workspace_bytes(stage, problem.shape, placement.workspace_limit)),
      tensors_(new Tensors{
          DeviceBuffer(problem.shape.input_count(), placement.offsets[0], guards),
          DeviceBuffer(problem.shape.filter_count(), placement.offsets[1], guards),
          DeviceBuffer(problem.bias ? problem.shape.total_K() : 0, placement.offsets[2], guards),
          DeviceBuffer(problem.shape.output_count(), placement.offsets[3], guards)}),
      // Aligned to 256 bytes, and to no more.
      workspace_(floats_for(workspace_bytes_), guards == Guards::kNone ? 0 : 64, guards) {
  with_input([&](const float* input) { tensors_->input.upload(input); });
  with_filters([&](const float* filters) { tensors_->filters.upload(filters); });

  if (problem.bias) tensors_->bias.upload(problem.bias);
#ifndef CUDART_VERSION
  for (const auto& [name, buffer] : buffers()) {
    simulator::name_memory(buffer->data(), std::string("the ") + name);
  }
#endif
}

Trial::Trial(const Stage& stage, const Trial& other)
    : stage_(stage),
      problem_(other.problem_),
      workspace_bytes_(workspace_bytes(stage, problem_.shape)),
      tensors_(other.tensors_),
      workspace_(floats_for(workspace_bytes_)) {
  if (stage.layout == other.stage_.layout) return;
  tensors_ = Trial(stage, problem_).tensors_;
}

void Trial::with_input(const std::function<void(const float*)>& use) const {
  const ConvShape& shape = problem_.shape;
  if (stage_.layout == NCHW) return use(problem_.input);
  use(turned(problem_.input, shape.N, shape.total_C(), int64_t{shape.H} * shape.W).data());
}

void Trial::with_filters(const std::function<void(const float*)>& use) const {
  const ConvShape& shape = problem_.shape;
  if (stage_.layout == NCHW) return use(problem_.filters);
  use(turned(problem_.filters, shape.total_K(), shape.C, int64_t{shape.R} * shape.S).data());
}

Convolution Trial::arguments() const {
  Convolution conv;
  conv.shape = problem_.shape;
  conv.input = tensors_->input.data(), conv.input_count = tensors_->input.count();
  conv.filters = tensors_->filters.data(), conv.filter_count = tensors_->filters.count();
  conv.bias = problem_.bias ? tensors_->bias.data() : nullptr,
  conv.bias_count = tensors_->bias.count();
  conv.output = tensors_->output.data(), conv.output_count = tensors_->output.count();
  conv.relu = problem_.relu;
  conv.workspace = workspace_bytes_ > 0 ? workspace_.data() : nullptr;
  conv.workspace_bytes = workspace_bytes_;
  return conv;
}

// Whatever a stage throws is its own failure, and ends nothing else.
void Trial::enqueue(cudaStream_t stream) const {
  const std::string thrown = std::string(stage_.name) + ": its enqueue has thrown ";
#ifndef CUDART_VERSION
  const simulator::DeviceMemoryOutOfReach also_of_its_other_functions;
#endif
  try {
    run(stage_, arguments(), stream);
  } catch (const CudaError&) {
    throw;
  } catch (const std::invalid_argument&) {  // of the arguments, or of a setting
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw CudaError(thrown + "an exception: " + error.what());
  } catch (...) {
    throw CudaError(thrown + "what is no std::exception");
  }
}

void Trial::wait() const { check_cuda(cudaDeviceSynchronize(), stage_.name); }

std::vector<float> Trial::output() const {
  std::vector<float> values;
  read_output(values);
  return values;
}

void Trial::read_output(std::vector<float>& values) const {
  values.resize(static_cast<std::size_t>(tensors_->output.count()));
  tensors_->output.download(values.data());
  const ConvShape& shape = problem_.shape;
  if (stage_.layout == NHWC) values = turned(values.data(), shape.N, shape.PQ(), shape.total_K());
}

void Trial::fill_nan() {
  tensors_->output.fill_nan();
  workspace_.fill_nan();
}

std::array<std::pair<const char*, const DeviceBuffer*>, 5> Trial::buffers() const {
  return {{{"input", &tensors_->input},
           {"filters", &tensors_->filters},
           {"bias", &tensors_->bias},
           {"output", &tensors_->output},
           {"workspace", &workspace_}}};
}

std::vector<TensorPlace> Trial::tensors() const {
  std::vector<TensorPlace> places;
  for (const auto& [name, buffer] : buffers()) {
    places.push_back({name, reinterpret_cast<uint64_t>(buffer->data()),
                      static_cast<uint64_t>(buffer->count()) * sizeof(float)});
  }
  return places;
}

std::string Trial::damage() const {
  for (const auto& [name, buffer] : buffers()) {
    const std::string damage = buffer->guard_damage();
    if (!damage.empty()) return "around the " + std::string(name) + ": " + damage;
  }
  bool whole = true;
  with_input([&](const float* input) { whole = tensors_->input.holds(input); });
  if (!whole) return "the input was changed";
  with_filters([&](const float* filters) { whole = tensors_->filters.holds(filters); });
  if (!whole) return "the filters were changed";

  if (problem_.bias && !tensors_->bias.holds(problem_.bias)) return "the bias was changed";
  return "";
}

Comparison check_output(const Trial& trial, const std::vector<float>& output,
                        const Reference& reference, Rule rule, Signs signs) {
  const ConvShape& shape = trial.problem().shape;
  double factor = error_factor(shape, trial.stage().precision);
  if (signs == Signs::kAny) factor += std::max(0.0, any_data_factor(shape) - error_factor(shape));
  Comparison result = compare(output.data(), shape, reference, rule, factor);
  const std::string damage = trial.damage();
  if (!damage.empty()) {
    result.pass = false;
    result.message = damage + (result.message.empty() ? "" : "; " + result.message);
  }
  return result;
}

Reference affordable_reference(const HostProblem& problem, uint64_t seed) {
  if (!is_sampled(problem.shape)) return compute_reference(problem);
  return compute_reference(problem, sample_outputs(problem.shape, SAMPLES, seed));
}

void require_memory_for(const ConvShape& shape) {
  const double input = static_cast<double>(shape.input_count());
  const double filters = static_cast<double>(shape.filter_count());
  const double output = static_cast<double>(shape.output_count());
  double bytes = sizeof(float) * (input + filters + output);           // what the stage works on
  bytes += sizeof(float) * std::max({input, filters, output});         // a tensor read back
  if (!is_sampled(shape)) bytes += 2 * sizeof(double) * output;        // the reference
  if (!on_gpu()) bytes += sizeof(float) * (input + filters + output);  // the device's memory
  require_host_memory(bytes);
}

}  // namespace convladder
