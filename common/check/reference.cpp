#include "common/check/reference.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>

#include "common/check/parallel.h"
#include "common/check/random.h"

namespace convladder {
namespace {

// The outputs q in [begin, end) whose tap s reads a column of the input, not padding:
// 0 <= q*stride_w + shift < W, with shift = s*dil_w - pad_w.
struct Span {
  int64_t begin, end;
};

Span columns_inside(const ConvShape& shape, int64_t shift) {
  const auto round_up = [&](int64_t x) { return (x + shape.stride_w - 1) / shape.stride_w; };
  return {shift < 0 ? round_up(-shift) : 0,
          shift < shape.W ? std::min<int64_t>(shape.Q(), round_up(shape.W - shift)) : 0};
}

// The channels of image n that filter k sees: those of its group.
const float* channels_of(const HostProblem& problem, int64_t n, int64_t k) {
  const ConvShape& shape = problem.shape;
  return problem.input + n * shape.input_pitch() + k / shape.K * shape.CHW();
}

// One row of outputs, [n,k,p,0..Q): value and magnitude, both without bias and ReLU. The innermost
// loop runs along q, so that the compiler can compute several outputs per instruction.
void convolve_row(const HostProblem& problem, int64_t n, int64_t k, int64_t p, double* value,
                  double* magnitude) {
  const ConvShape& shape = problem.shape;
  const float* image = channels_of(problem, n, k);
  const float* filter = problem.filters + k * shape.CRS();
  for (int64_t c = 0; c < shape.C; ++c) {
    for (int64_t r = 0; r < shape.R; ++r) {
      const int64_t h = p * shape.stride_h - shape.pad_h + r * shape.dil_h;
      if (h < 0 || h >= shape.H) continue;
      const float* row = image + (c * shape.H + h) * shape.W;
      for (int64_t s = 0; s < shape.S; ++s) {
        const double tap = filter[(c * shape.R + r) * shape.S + s];
        const int64_t shift = s * shape.dil_w - shape.pad_w;
        const Span inside = columns_inside(shape, shift);
        const int64_t stride = shape.stride_w;
        for (int64_t q = inside.begin; q < inside.end; ++q) {
          const double product = tap * row[q * stride + shift];
          value[q] += product;
          magnitude[q] += std::abs(product);
        }
      }
    }
  }
}

struct Output {
  double value, magnitude;
};

// The output at one flat index, without bias and ReLU.
Output convolve_one(const HostProblem& problem, int64_t index) {
  const ConvShape& shape = problem.shape;
  const int64_t q = index % shape.Q();
  const int64_t p = index / shape.Q() % shape.P();
  const int64_t k = index / shape.PQ() % shape.total_K();
  const float* image = channels_of(problem, index / shape.output_pitch(), k);
  const float* filter = problem.filters + k * shape.CRS();
  Output output = {0, 0};
  for (int64_t c = 0; c < shape.C; ++c) {
    for (int64_t r = 0; r < shape.R; ++r) {
      const int64_t h = p * shape.stride_h - shape.pad_h + r * shape.dil_h;
      if (h < 0 || h >= shape.H) continue;
      for (int64_t s = 0; s < shape.S; ++s) {
        const int64_t w = q * shape.stride_w - shape.pad_w + s * shape.dil_w;
        if (w < 0 || w >= shape.W) continue;
        const double tap = filter[(c * shape.R + r) * shape.S + s];
        const double product = tap * image[(c * shape.H + h) * shape.W + w];
        output.value += product;
        output.magnitude += std::abs(product);
      }
    }
  }
  return output;
}

void add_bias_and_relu(const HostProblem& problem, int64_t k, double& value, double& magnitude) {
  if (problem.bias) {
    value += problem.bias[k];
    magnitude += std::abs(static_cast<double>(problem.bias[k]));
  }
  if (problem.relu && value < 0) value = 0;  // so that NaN stays NaN
}

}  // namespace

Reference compute_reference(const HostProblem& problem) {
  const ConvShape& shape = problem.shape;
  validate(shape);
  const int64_t count = shape.output_count();
  const int64_t Q = shape.Q();
  Reference reference;
  reference.value.resize(count);
  reference.magnitude.resize(count);
  parallel_for(count / Q, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {  // row = (n*K + k)*P + p
      const int64_t p = row % shape.P();
      const int64_t k = row / shape.P() % shape.total_K();
      const int64_t n = row / shape.P() / shape.total_K();
      double* value = &reference.value[row * Q];
      double* magnitude = &reference.magnitude[row * Q];
      convolve_row(problem, n, k, p, value, magnitude);
      for (int64_t q = 0; q < Q; ++q) add_bias_and_relu(problem, k, value[q], magnitude[q]);
    }
  });
  return reference;
}

Reference compute_reference(const HostProblem& problem, std::vector<int64_t> index) {
  const ConvShape& shape = problem.shape;
  validate(shape);
  for (int64_t i : index) {
    if (i < 0 || i >= shape.output_count()) {
      throw InvalidArgument("index = " + std::to_string(i) + ": must be in [0, " +
                            std::to_string(shape.output_count()) + ")");
    }
  }
  if (index.empty()) return compute_reference(problem);
  Reference reference;
  reference.value.resize(index.size());
  reference.magnitude.resize(index.size());
  parallel_for(static_cast<int64_t>(index.size()), 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Output output = convolve_one(problem, index[i]);
      const int64_t k = index[i] / shape.PQ() % shape.total_K();
      add_bias_and_relu(problem, k, output.value, output.magnitude);
      reference.value[i] = output.value;
      reference.magnitude[i] = output.magnitude;
    }
  });
  reference.index = std::move(index);
  return reference;
}

std::vector<int64_t> sample_outputs(const ConvShape& shape, int64_t count, uint64_t seed) {
  validate(shape);
  const int64_t N = shape.N, K = shape.total_K(), P = shape.P(), Q = shape.Q();
  const int64_t total = shape.output_count();
  if (count > total / 2) {  // drawing without repetition would take long
    std::vector<int64_t> all(total);
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  uint64_t draws = 0;
  const auto draw = [&](int64_t bound) {
    return static_cast<int64_t>(random_bits(seed, 0, draws++) % static_cast<uint64_t>(bound));
  };
  std::set<int64_t> chosen;
  for (int64_t i = 0; i < 16 + count / 4; ++i) {
    // An end of every axis; i < 16 gives all corners. Beyond them one of p and q runs along an
    // edge.
    int64_t n = i & 1 ? N - 1 : 0, k = i & 2 ? K - 1 : 0;
    int64_t p = i & 4 ? P - 1 : 0, q = i & 8 ? Q - 1 : 0;
    if (i >= 16 && i & 16) p = draw(P);
    if (i >= 16 && !(i & 16)) q = draw(Q);
    chosen.insert(((n * K + k) * P + p) * Q + q);
  }
  while (static_cast<int64_t>(chosen.size()) < count) chosen.insert(draw(total));
  return {chosen.begin(), chosen.end()};
}

}  // namespace convladder
