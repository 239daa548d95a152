#include "common/measure/work.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace convladder {
namespace {

// Along one axis of the image: pairs (output, filter element) that meet an element of it rather
// than padding, and the elements met at least once.
struct Overlap {
  double pairs = 0, elements = 0;
};

Overlap overlap(int extent, int outputs, int filter, int stride, int pad, int dilation) {
  Overlap result;
  std::vector<bool> met(static_cast<std::size_t>(extent));
  for (int64_t output = 0; output < outputs; ++output) {
    for (int64_t tap = 0; tap < filter; ++tap) {
      const int64_t i = output * stride - pad + tap * dilation;
      if (i < 0 || i >= extent) continue;
      ++result.pairs;
      met[static_cast<std::size_t>(i)] = true;
    }
  }
  result.elements = static_cast<double>(std::count(met.begin(), met.end(), true));
  return result;
}

}  // namespace

Work work_of(const ConvShape& shape, bool bias) {
  const ConvShape& s = shape;
  const Overlap h = overlap(s.H, s.P(), s.R, s.stride_h, s.pad_h, s.dil_h);
  const Overlap w = overlap(s.W, s.Q(), s.S, s.stride_w, s.pad_w, s.dil_w);
  const double planes = static_cast<double>(s.N) * s.total_C();
  Work work;
  work.flops = s.flops();
  work.needed_flops = 2 * planes * s.K * h.pairs * w.pairs;
  work.bytes = sizeof(float) * (planes * h.elements * w.elements +
                                static_cast<double>(s.filter_count() + s.output_count()) +
                                (bias ? s.total_K() : 0));
  return work;
}

}  // namespace convladder
