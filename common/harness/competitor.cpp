#include "common/harness/competitor.h"

namespace convladder {

const char* to_string(Precision precision) {
  return precision == Precision::kFp32 ? "fp32" : "tf32";
}

std::string label(const CompetitorInfo& info) {
  const std::string name = info.competitor == "cudnn" ? "cuDNN" : "PyTorch";
  const std::string precision = info.precision == Precision::kFp32 ? " FP32" : " TF32";
  return name + precision + (info.layout == "nhwc" ? " NHWC" : "");
}

double Competitor::bytes(const ConvShape& shape, bool bias) const {
  return sizeof(float) * static_cast<double>(shape.input_count() + shape.filter_count() +
                                             shape.output_count() + (bias ? shape.K : 0));
}

double error_factor(const ConvShape& shape, Precision precision) {
  constexpr double TF32 = (2 * 0x1p-10 + 0x1p-20) / 0x1p-24;
  return error_factor(shape) + (precision == Precision::kTf32 ? TF32 : 0);
}

#ifndef HAVE_CUDNN
Competitors cudnn_competitors() { return {}; }
#endif

}  // namespace convladder
