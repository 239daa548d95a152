// Arithmetic that rounds otherwise than to nearest. Operands and results are volatile, so that the
// compiler neither computes in advance nor moves anything past the change of mode.
#include <cuda_runtime.h>

#include <cfenv>
#include <cmath>

#include "common/simulator/half.h"

namespace convladder::simulator {
namespace {

class Rounding {
 public:
  explicit Rounding(int mode) : before_(std::fegetround()) { std::fesetround(mode); }
  ~Rounding() { std::fesetround(before_); }
  Rounding(const Rounding&) = delete;

 private:
  int before_;
};

template <typename T>
T compute(Arithmetic what, int mode, volatile T a, volatile T b, volatile T c) {
  const Rounding rounding(mode);
  volatile T result = 0;
  switch (what) {
    case Arithmetic::kAdd:
      result = a + b;
      break;
    case Arithmetic::kSubtract:
      result = a - b;
      break;
    case Arithmetic::kMultiply:
      result = a * b;
      break;
    case Arithmetic::kDivide:
      result = a / b;
      break;
    case Arithmetic::kFma:
      result = std::fma(a, b, c);
      break;
    case Arithmetic::kSquareRoot:
      result = std::sqrt(a);
      break;
  }
  return result;
}

template <typename T>
T narrow(volatile long double value, int mode) {
  const Rounding rounding(mode);
  volatile T result = static_cast<T>(value);
  return result;
}

}  // namespace

float uncounted_product(float a, float b) { return a * b; }

float rounded(Arithmetic what, int mode, float a, float b, float c) {
  return compute<float>(what, mode, a, b, c);
}
double rounded(Arithmetic what, int mode, double a, double b, double c) {
  return compute<double>(what, mode, a, b, c);
}
float rounded_product(int mode, float a, float b) {
  return rounded(Arithmetic::kMultiply, mode, a, b);
}
double rounded_product(int mode, double a, double b) {
  return rounded(Arithmetic::kMultiply, mode, a, b);
}
float rounded_fma(int mode, float a, float b, float c) {
  return rounded(Arithmetic::kFma, mode, a, b, c);
}
double rounded_fma(int mode, double a, double b, double c) {
  return rounded(Arithmetic::kFma, mode, a, b, c);
}
float narrow_float(long double value, int mode) { return narrow<float>(value, mode); }
double narrow_double(long double value, int mode) { return narrow<double>(value, mode); }

// Newton's method on erf, from Winitzki's approximation.
double inverse_erf(double x) {
  if (std::fabs(x) >= 1) return std::fabs(x) == 1 ? x * INFINITY : NAN;
  const double log = std::log1p(-x * x), half = 2 / (PI * 0.147) + log / 2;
  double y = std::copysign(std::sqrt(std::sqrt(half * half - log / 0.147) - half), x);
  for (int i = 0; i < 4; ++i) {
    const double error = x < 0.5 ? std::erf(y) - x : (1 - x) - std::erfc(y);
    y -= error / (2 / std::sqrt(PI) * std::exp(-y * y));
  }
  return y;
}

}  // namespace convladder::simulator
