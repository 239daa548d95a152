#include "common/measure/competitor.h"

namespace convladder {

std::string label(const CompetitorInfo& info) {
  const std::string name = info.competitor == "cudnn" ? "cuDNN" : "PyTorch";
  const std::string precision = info.precision == Precision::kFp32 ? " FP32" : " TF32";
  return name + precision + (info.layout == "nhwc" ? " NHWC" : "");
}

double Competitor::bytes(const ConvShape& shape, bool bias) const {
  return sizeof(float) * static_cast<double>(shape.input_count() + shape.filter_count() +
                                             shape.output_count() + (bias ? shape.total_K() : 0));
}

#ifndef HAVE_CUDNN
Competitors cudnn_competitors() { return {}; }
#endif

}  // namespace convladder
