// Holds an output against the reference, by one of two rules.
#pragma once

#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "-ffast-math and -ffinite-math-only make NaN pass every check: compile without them"
#endif

#include <cstdint>
#include <string>

#include "common/check/reference.h"
#include "common/core/stage.h"

namespace convladder {

enum class Rule {
  kExact,   // integer data, A <= 2^24: float32 must give the reference bit for bit
  kBounded  // real data: |error| <= factor * 2^-24 * A, A = sum |x*w| + |bias|
};

// The rule for results of `precision`: integers are exact, but what is too wide for TF32 is not in it.
Rule rule_for(DataKind kind, Precision precision = Precision::kFp32);

struct Comparison {
  bool pass = false;
  double max_error_ratio = 0;  // largest |error| / allowed error; exact rule: |error| / 2^-24*A;
                               // infinity for NaN or an infinite output
  int64_t checked = 0;         // outputs compared by value
  int64_t failures = 0;        // outputs outside the rule, NaNs of the whole tensor included
  std::string message;  // empty when it passed; else the first failure: [n,k,p,q], got, expected
};

// The factor of the bounded rule for a whole problem: 8, but 16 from 2^24 outputs on, because the
// largest of so many random errors lies further out. A TF32 number is within 2^-10 of the float32
// number that it was cut from (2^-11 where it was rounded), so each product is within
// 2·2^-10 + 2^-20 of its value, and the sum within that of A; adding up in float32 comes on top. Too
// coarse to find one wrong tap: for that there are small integers, which are exact in TF32 as well.
double error_factor(const ConvShape& shape, Precision precision = Precision::kFp32);

// `output` is the whole [N,K,P,Q] tensor. Values are compared where the reference has them; *every*
// element is looked at for NaN (an output nobody wrote still holds the NaN it began with).
// Written so that NaN fails. kExact throws std::logic_error when some A passes 2^24: the data would
// not prove anything.
Comparison compare(const float* output, const ConvShape& shape, const Reference& reference,
                   Rule rule, double factor = 8.0);

}  // namespace convladder
