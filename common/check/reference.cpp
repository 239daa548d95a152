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

// Outputs [begin, end) of a row.
struct Span {
  int64_t begin, end;
};

// For each s, the outputs q whose tap reads a column of the input, not padding:
// 0 <= q*stride_w + shift < W, with shift = s*dil_w - pad_w.
std::vector<Span> columns_inside(const ConvShape& shape) {
  const auto round_up = [&](int64_t x) { return (x + shape.stride_w - 1) / shape.stride_w; };
  std::vector<Span> spans;
  for (int64_t s = 0; s < shape.S; ++s) {
    const int64_t shift = s * shape.dil_w - shape.pad_w;
    spans.push_back(
        {shift < 0 ? round_up(-shift) : 0,
         shift < shape.W ? std::min<int64_t>(shape.Q(), round_up(shape.W - shift)) : 0});
  }
  return spans;
}

// The outputs `wanted` of row [n,k,p], to value[0] and magnitude[0] on, which begin as zeros. The
// innermost loop runs along q, so that the compiler can compute several outputs per instruction.
void convolve(const HostProblem& problem, const std::vector<Span>& inside, int64_t row, Span wanted,
              double* value, double* magnitude) {
  const ConvShape& shape = problem.shape;
  const int64_t p = row % shape.P();  // row = (n*K + k)*P + p
  const int64_t k = row / shape.P() % shape.total_K();
  const int64_t n = row / shape.P() / shape.total_K();
  // Filter k sees the channels of its group.
  const float* channels = problem.input + n * shape.input_pitch() + k / shape.K * shape.CHW();
  const float* filter = problem.filters + k * shape.CRS();
  for (int64_t c = 0; c < shape.C; ++c) {
    for (int64_t r = 0; r < shape.R; ++r) {
      const int64_t h = p * shape.stride_h - shape.pad_h + r * shape.dil_h;
      if (h < 0 || h >= shape.H) continue;
      const float* pixels = channels + (c * shape.H + h) * shape.W;
      for (int64_t s = 0; s < shape.S; ++s) {
        const double tap = filter[(c * shape.R + r) * shape.S + s];
        const int64_t shift = s * shape.dil_w - shape.pad_w, stride = shape.stride_w;
        const int64_t end = std::min(inside[s].end, wanted.end);
        for (int64_t q = std::max(inside[s].begin, wanted.begin); q < end; ++q) {
          const double product = tap * pixels[q * stride + shift];
          value[q - wanted.begin] += product;
          magnitude[q - wanted.begin] += std::abs(product);
        }
      }
    }
  }
  for (int64_t i = 0; i < wanted.end - wanted.begin; ++i) {
    if (problem.bias) {
      value[i] += problem.bias[k];
      magnitude[i] += std::abs(static_cast<double>(problem.bias[k]));
    }
    if (problem.relu && value[i] < 0) value[i] = 0;  // so that NaN stays NaN
  }
}

}  // namespace

Reference compute_reference(const HostProblem& problem, std::vector<int64_t> index) {
  const ConvShape& shape = problem.shape;
  validate(shape);
  for (int64_t i : index) {
    if (i < 0 || i >= shape.output_count()) {
      throw InvalidArgument("index = " + std::to_string(i) + ": must be in [0, " +
                            std::to_string(shape.output_count()) + ")");
    }
  }
  const bool all = index.empty();
  const int64_t Q = shape.Q(), width = all ? Q : 1, grain = all ? 1 : 16;  // of what is computed
  const int64_t count = all ? shape.output_count() : static_cast<int64_t>(index.size());
  const std::vector<Span> inside = columns_inside(shape);
  Reference reference;
  reference.value.resize(count);
  reference.magnitude.resize(count);
  parallel_for(count / width, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = all ? i * Q : index[i];
      convolve(problem, inside, first / Q, {first % Q, first % Q + width},
               &reference.value[i * width], &reference.magnitude[i * width]);
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
