// competitor.h where this program is built without cuDNN.
#include "common/measure/competitor.h"

namespace convladder {

std::string cudnn_version() { return ""; }

CudnnPlan make_cudnn_plan(const Convolution&, Precision, CudnnLayout, CudnnRule, Stopwatch&,
                          const std::function<Comparison(const std::function<void()>&)>&) {
  throw Skipped("built without cuDNN");
}

}  // namespace convladder
