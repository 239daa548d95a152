#include "common/check/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <sstream>
#include <stdexcept>

#include "common/check/parallel.h"

namespace convladder {
namespace {

constexpr double EPSILON = 0x1p-24;         // rounding error of float32, relative
constexpr double EXACT_MAGNITUDE = 0x1p24;  // up to here float32 holds every integer
constexpr double TF32_LOSS = (2 * 0x1p-10 + 0x1p-20) / EPSILON;
constexpr int64_t NONE = std::numeric_limits<int64_t>::max();

std::string position(const ConvShape& shape, int64_t index) {
  std::ostringstream text;
  text << "output[n=" << index / shape.output_pitch()
       << ",k=" << index / shape.PQ() % shape.total_K() << ",p=" << index / shape.Q() % shape.P()
       << ",q=" << index % shape.Q() << "]";
  return text.str();
}

struct NanScan {
  int64_t count = 0;
  int64_t first = NONE;
};

// Looks at every element of the tensor, which may hold billions.
NanScan scan_for_nan(const float* output, int64_t count) {
  NanScan scan;
  std::mutex mutex;
  parallel_for(count, int64_t{1} << 20, [&](int64_t begin, int64_t end) {
    int64_t found = 0;  // counted first, in a loop without branches: as a rule there are none
    for (int64_t i = begin; i < end; ++i) found += output[i] != output[i];
    if (found == 0) return;
    const auto is_nan = [](float value) { return value != value; };
    const int64_t first = std::find_if(output + begin, output + end, is_nan) - output;
    const std::lock_guard<std::mutex> lock(mutex);
    scan.count += found;
    scan.first = std::min(scan.first, first);
  });
  return scan;
}

void require_fitting(const ConvShape& shape, const Reference& reference) {
  const auto entries = static_cast<int64_t>(reference.value.size());
  const auto expected =
      reference.index.empty() ? shape.output_count() : static_cast<int64_t>(reference.index.size());
  if (entries != expected || reference.magnitude.size() != reference.value.size()) {
    throw std::logic_error("the reference has " + std::to_string(entries) + " values, " +
                           std::to_string(expected) + " are to be compared");
  }
}

// |error| as a multiple of what is allowed; not finite when `got` or `expected` is not.
double error_ratio(double error, double allowed) {
  return error == 0 ? 0 : error / allowed;  // 0 of 0 allowed is no error; NaN is not 0
}

}  // namespace

Rule rule_for(DataKind kind, Precision precision) {
  const bool wide = kind == DataKind::kWideInteger && precision == Precision::kTf32;
  return kind == DataKind::kUniform || wide ? Rule::kBounded : Rule::kExact;
}

double error_factor(const ConvShape& shape, Precision precision) {
  constexpr int64_t LARGE = int64_t{1} << 24;
  const double factor = shape.output_count() >= LARGE ? 16.0 : 8.0;
  return factor + (precision == Precision::kTf32 ? TF32_LOSS : 0);
}

Comparison compare(const float* output, const ConvShape& shape, const Reference& reference,
                   Rule rule, double factor) {
  require_fitting(shape, reference);
  const double limit = rule == Rule::kExact ? 1.0 : factor;
  Comparison result;
  int64_t first = NONE, first_entry = 0;
  result.checked = static_cast<int64_t>(reference.value.size());
  for (int64_t i = 0; i < result.checked; ++i) {
    const int64_t index = reference.index.empty() ? i : reference.index[i];
    const double expected = reference.value[i], magnitude = reference.magnitude[i];
    if (rule == Rule::kExact && !(magnitude <= EXACT_MAGNITUDE)) {
      throw std::logic_error(position(shape, index) + ": A = " + std::to_string(magnitude) +
                             " is beyond 2^24, float32 need not be exact there");
    }
    const double got = output[index];
    const double ratio = error_ratio(std::abs(got - expected), limit * EPSILON * magnitude);
    const bool ok = rule == Rule::kExact ? got == expected : ratio <= 1;
    result.max_error_ratio =
        std::max(result.max_error_ratio,
                 std::isfinite(ratio) ? ratio : std::numeric_limits<double>::infinity());
    if (ok) continue;
    if (got == got) ++result.failures;  // NaNs are counted below, wherever they are
    if (first == NONE) {
      first = index;
      first_entry = i;
    }
  }

  const NanScan nans = scan_for_nan(output, shape.output_count());
  result.failures += nans.count;
  result.pass = first == NONE && nans.count == 0;
  if (result.pass) return result;

  std::ostringstream message;
  message.precision(9);
  if (nans.count > 0) {
    result.max_error_ratio = std::numeric_limits<double>::infinity();
    message << position(shape, nans.first) << " is NaN (never written?), " << nans.count << " of "
            << shape.output_count() << " outputs are";
  } else {
    const double expected = reference.value[first_entry];
    message << position(shape, first) << " = " << output[first] << ", expected " << expected
            << ", error " << std::abs(output[first] - expected) << ", allowed "
            << (rule == Rule::kExact ? 0 : factor * EPSILON * reference.magnitude[first_entry])
            << "; " << result.failures << " of " << result.checked << " checked outputs are wrong";
  }
  result.message = message.str();
  return result;
}

}  // namespace convladder
