#include "common/core/tensor_map.h"

#include "common/core/launch.h"

namespace convladder {
namespace {

// The driver's, without linking with it.
auto* encode_im2col() {
  static const auto found = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult result;
    check_cuda(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeIm2col", &function, 12000,
                                                cudaEnableDefault, &result),
               "cudaGetDriverEntryPointByVersion");
    if (!function) throw CudaError("this driver has no cuTensorMapEncodeIm2col");
    return reinterpret_cast<decltype(&cuTensorMapEncodeIm2col)>(function);
  }();
  return found;
}

}  // namespace

CUtensorMap window_map(const float* input, const ConvShape& shape, int64_t images, int64_t channels,
                       int64_t pixel, int64_t row, int pixels, int box, bool rounded) {
  const auto u = [](int64_t value) { return static_cast<cuuint64_t>(value); };
  const cuuint64_t extents[] = {u(channels), u(shape.W), u(shape.H), u(images)};
  const cuuint64_t w = u(pixel) * sizeof(float), h = u(row) * sizeof(float), n = h * u(shape.H);
  const cuuint64_t pitches[] = {w, h, n};
  const int first[] = {-shape.pad_w, -shape.pad_h};
  const int last[] = {shape.pad_w - shape.dil_w * (shape.S - 1),
                      shape.pad_h - shape.dil_h * (shape.R - 1)};
  const cuuint32_t steps[] = {1, static_cast<cuuint32_t>(shape.stride_w),
                              static_cast<cuuint32_t>(shape.stride_h), 1};
  CUtensorMap map;
  const CUresult result = encode_im2col()(
      &map, rounded ? CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 : CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4,
      const_cast<float*>(input), extents, pitches, first, last, box, pixels, steps,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  check_cuda(static_cast<cudaError_t>(result),
             "cuTensorMapEncodeIm2col");  // both number them alike
  return map;
}

}  // namespace convladder
