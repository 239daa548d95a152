// The extents of one 2-D convolution, and their validation.
//
// Layouts: input NCHW, filters KCRS, output NKPQ, all float32 and dense. With G groups, the input's
// channels and the filters are cut into G equal runs, and the filters of a run see its channels
// alone: filters are [K, C/G, R, S].
// Seen as a matrix product, one for each group: GEMM_M = K, GEMM_N = N·P·Q, GEMM_K = C·R·S.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace convladder {

// A problem that no stage may be asked to compute; the message names the argument and its value.
struct InvalidArgument : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

// Extents as a user gives them: any 64-bit integer, nothing checked yet. c and k count all groups.
struct ConvArguments {
  int64_t n = 1, c = 1, h = 1, w = 1, k = 1, r = 1, s = 1;
  int64_t stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, dil_h = 1, dil_w = 1;
  int64_t groups = 1;
};

// Passed by value to every kernel. It describes one group: C channels, K filters [K,C,R,S]. The
// other groups show in the pitch alone, from one image of the batch to the next.
struct ConvShape {
  int N = 1, C = 1, H = 1, W = 1, K = 1, R = 1, S = 1;
  int stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, dil_h = 1, dil_w = 1;
  int groups = 1;

  // Output height and width. The division floors: AlexNet's (224 + 4 - 11) / 4 = 54.25 gives 55.
  __host__ __device__ int P() const { return (H + 2 * pad_h - dil_h * (R - 1) - 1) / stride_h + 1; }
  __host__ __device__ int Q() const { return (W + 2 * pad_w - dil_w * (S - 1) - 1) / stride_w + 1; }

  // A group's elements in one image of the input, in one filter, in one image of the output. Each
  // fits an int (validate() sees to it), and so does a padded input image: offsets *within* an image
  // are 32-bit, also from a corner in the padding; across images they aren't.
  __host__ __device__ int CHW() const { return C * H * W; }
  __host__ __device__ int CRS() const { return C * R * S; }
  __host__ __device__ int PQ() const { return P() * Q(); }
  __host__ __device__ int KPQ() const { return K * P() * Q(); }

  // Elements from one image to the next, all groups between them.
  __host__ __device__ int64_t input_pitch() const { return int64_t{groups} * CHW(); }
  __host__ __device__ int64_t output_pitch() const { return int64_t{groups} * KPQ(); }

  // Channels and filters of all groups.
  int total_C() const { return groups * C; }
  int total_K() const { return groups * K; }

  // Elements of the whole tensors.
  __host__ __device__ int64_t input_count() const { return N * input_pitch(); }
  __host__ __device__ int64_t filter_count() const { return int64_t{groups} * K * CRS(); }
  __host__ __device__ int64_t output_count() const { return N * output_pitch(); }

  // Multiply and add count as two; taps that fall on padding are counted too, as is customary.
  double flops() const { return 2.0 * static_cast<double>(output_count()) * CRS(); }
};

// The shape that `args` describe. Throws InvalidArgument, naming the argument and its value, when
// an extent, stride, dilation or groups is < 1, a pad is < 0, groups does not divide c and k, the
// dilated filter does not fit the padded input, or a size passes what the kernels' arithmetic holds:
// 2^31-1 for every extent; 2^30-1 for a padded extent; 2^31-2^16 for the elements of one padded input
// image, of one output image and of the filters, of all groups together; 2^63-1 for the bytes of a
// whole tensor.
ConvShape make_conv_shape(const ConvArguments& args);

// Checks a ConvShape that was filled in by hand, by the same rules.
void validate(const ConvShape& shape);

// "n256 c3 224x224 k96 11x11 stride 4x4 pad 2x2 dil 1x1"; c and k of all groups, and " groups 2"
// behind it where there are more than one.
std::string to_string(const ConvShape& shape);

}  // namespace convladder
