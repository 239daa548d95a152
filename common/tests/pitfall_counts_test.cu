// The mistakes of docs/pitfalls.md that show in counts, or in what the counting simulator reports.
#include <gtest/gtest.h>

#include <vector>

#include "common/check/device_buffer.h"
#include "common/core/conv_shape.h"
#include "common/core/cublas.h"
#include "common/core/launch.h"
#include "common/simulator/counts.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

constexpr int THREADS = 256;
constexpr int SECTOR_BYTES = 32;

ConvShape alexnet_conv1() {
  ConvArguments a;
  a.c = 3, a.h = 224, a.w = 224, a.k = 96, a.r = 11, a.s = 11;
  a.stride_h = 4, a.stride_w = 4, a.pad_h = 2, a.pad_w = 2;
  return make_conv_shape(a);
}

// The input with its zeros around it, so that no kernel has to ask whether a tap is outside.
__global__ void copy_padded(ConvShape shape, const float* input, float* padded) {
  const int H = shape.H + 2 * shape.pad_h, W = shape.W + 2 * shape.pad_w;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= shape.C * H * W) return;
  const int c = i / (H * W), h = i / W % H - shape.pad_h, w = i % W - shape.pad_w;
  const bool inside = h >= 0 && h < shape.H && w >= 0 && w < shape.W;
  padded[i] = inside ? input[(c * shape.H + h) * shape.W + w] : 0.0f;
}

TEST(PitfallCounts, PaddingByCopyingMovesTheInputTwiceMore) {
  const ConvShape s = alexnet_conv1();
  const int padded_count = s.C * (s.H + 2 * s.pad_h) * (s.W + 2 * s.pad_w);
  DeviceBuffer input(s.input_count());
  const DeviceBuffer padded(padded_count);
  input.upload(std::vector<float>(s.input_count(), 1.0f).data());
  simulator::take_kernel_counts();
  launch(copy_padded, grid_x(ceil_div(padded_count, THREADS)), THREADS, nullptr, s, input.data(),
         padded.data());
  const simulator::KernelCounts counts = simulator::take_kernel_counts().at(0);
  EXPECT_EQ(counts.sectors_read * SECTOR_BYTES, 602112);     // 3·224·224 floats
  EXPECT_EQ(counts.sectors_written * SECTOR_BYTES, 623808);  // 3·228·228 floats
}

// The taps of a 3 x 3 image with one row and column of padding, without the zeros.
__global__ void im2col_inside_only(const float* input, float* columns) {
  const int pixel = threadIdx.x, tap = threadIdx.y;
  const int h = pixel / 3 + tap / 3 - 1, w = pixel % 3 + tap % 3 - 1;
  if (h < 0 || h >= 3 || w < 0 || w >= 3) return;
  columns[tap * 9 + pixel] = input[h * 3 + w];
}

TEST(PitfallCounts, Im2colElementsThatNobodyWroteAreReported) {
  const std::vector<float> ones(9, 1.0f);
  DeviceBuffer input(9), filters(9);
  const DeviceBuffer columns(81), output(9);
  input.upload(ones.data());
  filters.upload(ones.data());
  launch(im2col_inside_only, 1, dim3(9, 9), nullptr, input.data(), columns.data());
  const std::string message = message_of<CudaError>([&] {
    sgemm_strided_batched(nullptr, 9, 1, 9, columns.data(), 9, 0, filters.data(), 9, 0,
                          output.data(), 9, 0, 1);
  });
  expect_contains(message, "reads global memory that nobody has written, row 0 of column 0");
}

}  // namespace
}  // namespace convladder
