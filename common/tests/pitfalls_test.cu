// The mistakes of docs/pitfalls.md, each made on purpose: the checks must see them. On both backends.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "common/check/compare.h"
#include "common/check/device_buffer.h"
#include "common/check/problems.h"
#include "common/check/reference.h"
#include "common/check/test_data.h"
#include "common/core/cublas.h"
#include "common/core/launch.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

constexpr int THREADS = 256;

// A problem, its data on both sides, and what the output should be.
struct Sample {
  explicit Sample(const ConvArguments& arguments)
      : shape(make_conv_shape(arguments)),
        data(make_test_data(shape, DataKind::kUniform, 1)),
        reference(compute_reference({shape, data.input.data(), data.filters.data()})),
        input(shape.input_count()),
        filters(shape.filter_count()),
        output(shape.output_count()) {
    input.upload(data.input.data());
    filters.upload(data.filters.data());
  }

  // Of the output on the device, as it is now.
  Comparison judge() const {
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    std::vector<float> values(output.count());
    output.download(values.data());
    return compare(values.data(), shape, reference, Rule::kBounded);
  }

  ConvShape shape;
  TestData data;
  Reference reference;  // without a bias
  DeviceBuffer input, filters, output;
};

// No two extents alike; rows and columns are left over at the far end; padding on all sides.
ConvArguments odd_problem() {
  ConvArguments a;
  a.n = 2, a.c = 3, a.h = 12, a.w = 17, a.k = 5, a.r = 3, a.s = 2;
  a.stride_h = 4, a.stride_w = 3, a.pad_h = 1, a.pad_w = 2;
  return a;
}

// ---- The size of the output ----

// Stage 01's loop, for an output of P x Q that the caller has worked out.
__global__ void conv2d_of_size(ConvShape shape, int P, int Q, const float* input,
                               const float* filters, float* output) {
  const int nkpq = blockIdx.x * blockDim.x + threadIdx.x;
  if (nkpq >= shape.N * shape.K * P * Q) return;
  const int q = nkpq % Q, p = nkpq / Q % P, k = nkpq / (P * Q) % shape.K;
  const int n = nkpq / (P * Q) / shape.K;
  float sum = 0.0f;
  for (int crs = 0; crs < shape.CRS(); ++crs) {
    const int c = crs / (shape.R * shape.S), r = crs / shape.S % shape.R, s = crs % shape.S;
    const int h = p * shape.stride_h - shape.pad_h + r, w = q * shape.stride_w - shape.pad_w + s;
    if (h < 0 || h >= shape.H || w < 0 || w >= shape.W) continue;
    sum += input[((n * shape.C + c) * shape.H + h) * shape.W + w] * filters[k * shape.CRS() + crs];
  }
  output[nkpq] = sum;
}

void run_of_size(const Sample& sample, int P, int Q) {
  const int outputs = sample.shape.N * sample.shape.K * P * Q;
  launch(conv2d_of_size, grid_x(ceil_div(outputs, THREADS)), THREADS, nullptr, sample.shape, P, Q,
         sample.input.data(), sample.filters.data(), sample.output.data());
}

int rounded_up(int input, int filter, int stride, int pad) {
  const double exact = (input + 2.0 * pad - filter) / stride + 1;
  return static_cast<int>(std::ceil(exact));
}

TEST(Pitfalls, OutputSizeRoundedUpIsWrongAndWritesPastTheEnd) {
  const Sample sample(odd_problem());
  const ConvShape& s = sample.shape;
  run_of_size(sample, s.P(), s.Q());
  EXPECT_TRUE(sample.judge().pass) << sample.judge().message;
  EXPECT_EQ(sample.output.guard_damage(), "");

  const int P = rounded_up(s.H, s.R, s.stride_h, s.pad_h);
  const int Q = rounded_up(s.W, s.S, s.stride_w, s.pad_w);
  ASSERT_EQ(P, s.P() + 1);
  ASSERT_EQ(Q, s.Q() + 1);
  run_of_size(sample, P, Q);
  EXPECT_FALSE(sample.judge().pass);
  expect_contains(sample.output.guard_damage(), "past the end");
}

// ---- The size of a grid ----

__global__ void mark_block(float* visited) {
  if (threadIdx.x == 0) visited[blockIdx.x + int64_t{blockIdx.y} * gridDim.x] = 1.0f;
}

// AlexNet's layer, batch 256: 74,342,400 outputs, one thread each.
TEST(Pitfalls, SeventyFourMillionThreadsFitAGridAlongX) {
  const int64_t blocks = ceil_div(74342400, THREADS);
  const DeviceBuffer visited(blocks);
  launch(mark_block, grid_x(blocks), THREADS, nullptr, visited.data());
  std::vector<float> values(blocks);
  visited.download(values.data());
  EXPECT_EQ(std::count(values.begin(), values.end(), 1.0f), blocks);
}

TEST(Pitfalls, TheSameBlocksAlongYAreRefusedAndNothingRuns) {
  const auto blocks = static_cast<unsigned>(ceil_div(74342400, THREADS));
  const DeviceBuffer visited(blocks);
  const std::string message = message_of<CudaError>(
      [&] { launch(mark_block, dim3(1, blocks), THREADS, nullptr, visited.data()); });
  // "invalid configuration argument", or, from some drivers, "invalid argument".
  EXPECT_EQ(message.find("kernel launch: invalid"), 0u) << message;
  std::vector<float> values(blocks);
  visited.download(values.data());
  EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](float v) { return std::isnan(v); }));
}

// One block along z per plane of the output serves 256 images of 96 channels, but not 683.
TEST(Pitfalls, PlanesAlongZPassUntilTheBatchGrows) {
  const DeviceBuffer visited(1);
  const auto launch_planes = [&](int N, int K) {
    launch(mark_block, dim3(1, 1, N * K), 1, nullptr, visited.data());
  };
  EXPECT_NO_THROW(launch_planes(256, 96));
  EXPECT_NO_THROW(launch_planes(682, 96));
  EXPECT_THROW(launch_planes(683, 96), CudaError);
}

// ---- im2col ----

// Matrix [C*R*S, ld] of images first, first + 1, ... side by side. Without `zeros`, what lies on
// padding isn't written: "it is zero anyway".
__global__ void im2col_batch(ConvShape shape, int images, bool zeros, const float* input,
                             float* columns) {
  const int PQ = shape.PQ(), ld = images * PQ;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= shape.CRS() * ld) return;
  const int npq = i % ld, crs = i / ld, q = npq % shape.Q(), p = npq / shape.Q() % shape.P();
  const int c = crs / (shape.R * shape.S), r = crs / shape.S % shape.R, s = crs % shape.S;
  const int h = p * shape.stride_h - shape.pad_h + r, w = q * shape.stride_w - shape.pad_w + s;
  const bool inside = h >= 0 && h < shape.H && w >= 0 && w < shape.W;
  if (inside) {
    columns[i] = input[((npq / PQ * shape.C + c) * shape.H + h) * shape.W + w];
  } else if (zeros) {
    columns[i] = 0.0f;
  }
}

// The im2col matrix of the whole batch, or of its first images.
DeviceBuffer im2col(const Sample& sample, int images, bool zeros = true) {
  const int elements = sample.shape.CRS() * images * sample.shape.PQ();
  DeviceBuffer columns(elements);
  launch(im2col_batch, grid_x(ceil_div(elements, THREADS)), THREADS, nullptr, sample.shape, images,
         zeros, sample.input.data(), columns.data());
  return columns;
}

// Row-major [rows, columns] = a [rows, inner] · b [inner, columns], the way stage 02 asks for it.
void multiply(int rows, int columns, int inner, const float* a, const float* b, float* product) {
  sgemm_strided_batched(nullptr, columns, rows, inner, b, columns, 0, a, inner, 0, product, columns,
                        0, 1);
}

Sample one_image() {
  ConvArguments a = odd_problem();
  a.n = 1;
  return Sample(a);
}

TEST(Pitfalls, Im2colWithoutTheZerosOfPaddingIsSeen) {
  const Sample sample = one_image();
  const ConvShape& s = sample.shape;
  for (const bool zeros : {true, false}) {
    const DeviceBuffer columns = im2col(sample, 1, zeros);
    multiply(s.K, s.PQ(), s.CRS(), sample.filters.data(), columns.data(), sample.output.data());
    EXPECT_EQ(sample.judge().pass, zeros) << sample.judge().message;
  }
  expect_contains(sample.judge().message, "never written?");
}

// Extents in the order of the formula, leading dimensions that satisfy cuBLAS: no error, and the
// wrong numbers.
TEST(Pitfalls, ProductAskedForAsIfMatricesWereColumnMajorIsWrong) {
  const Sample sample = one_image();
  const ConvShape& s = sample.shape;
  const DeviceBuffer columns = im2col(sample, 1);
  sgemm_strided_batched(nullptr, s.K, s.PQ(), s.CRS(), sample.filters.data(), s.K, 0,
                        columns.data(), s.CRS(), 0, sample.output.data(), s.K, 0, 1);
  EXPECT_FALSE(sample.judge().pass);
  multiply(s.K, s.PQ(), s.CRS(), sample.filters.data(), columns.data(), sample.output.data());
  EXPECT_TRUE(sample.judge().pass) << sample.judge().message;
}

// The lengths of the rows as leading dimensions, without the operands changing places: refused here,
// since a column of K = 40 floats does not fit a distance of C*R*S = 18.
TEST(Pitfalls, RowLengthsAsLeadingDimensionsCanBeRefused) {
  ConvArguments a = odd_problem();
  a.n = 1, a.k = 40;
  const Sample sample(a);
  const ConvShape& s = sample.shape;
  const DeviceBuffer columns = im2col(sample, 1);
  EXPECT_THROW(
      sgemm_strided_batched(nullptr, s.K, s.PQ(), s.CRS(), sample.filters.data(), s.CRS(), 0,
                            columns.data(), s.PQ(), 0, sample.output.data(), s.PQ(), 0, 1),
      CudaError);
}

TEST(Pitfalls, OneProductForTheBatchIsNotNkpq) {
  for (const int images : {1, 2}) {
    ConvArguments a = odd_problem();
    a.n = images;
    const Sample sample(a);
    const ConvShape& s = sample.shape;
    const DeviceBuffer columns = im2col(sample, images);
    multiply(s.K, images * s.PQ(), s.CRS(), sample.filters.data(), columns.data(),
             sample.output.data());
    EXPECT_EQ(sample.judge().pass, images == 1) << sample.judge().message;

    // It is [K,N,P,Q]: with its planes moved, not viewed otherwise, it is right.
    std::vector<float> knpq(sample.output.count()), nkpq(knpq.size());
    sample.output.download(knpq.data());
    for (int plane = 0; plane < s.N * s.K; ++plane) {
      const int n = plane / s.K, k = plane % s.K;
      std::copy_n(&knpq[(k * s.N + n) * s.PQ()], s.PQ(), &nkpq[plane * s.PQ()]);
    }
    EXPECT_TRUE(compare(nkpq.data(), s, sample.reference, Rule::kBounded).pass);
  }
}

// ---- 32-bit indices ----

int as_int(int64_t value) { return static_cast<int>(static_cast<uint32_t>(value)); }

TEST(Pitfalls, Im2colOfKernelbench63OverflowsAnInt) {
  const Problem problem = find_problem(read_problems(CONVLADDER_PROBLEMS), "kernelbench_63");
  const ConvShape s = make_conv_shape(problem.arguments);
  const int64_t elements = int64_t{s.CRS()} * s.N * s.PQ();
  EXPECT_EQ(elements, 2406491136);
  EXPECT_GT(elements, std::numeric_limits<int>::max());
  EXPECT_EQ(as_int(elements), -1888476160);  // what an int makes of it

  // A grid worked out from that has 4,287,590,437 blocks, and is refused.
  const int blocks = (as_int(elements) + THREADS - 1) / THREADS;
  const DeviceBuffer visited(1);
  EXPECT_THROW(
      launch(mark_block, dim3(static_cast<unsigned>(blocks)), THREADS, nullptr, visited.data()),
      CudaError);
}

__global__ void write_below(int count, float* output) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) output[i] = 1.0f;
}

// With the right grid, every thread finds itself beyond a negative count.
TEST(Pitfalls, AnOverflownCountWritesNothing) {
  const DeviceBuffer output(THREADS);
  launch(write_below, 1, THREADS, nullptr, as_int(2406491136), output.data());
  std::vector<float> values(THREADS);
  output.download(values.data());
  EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](float v) { return std::isnan(v); }));
}

// ---- What is compared with what ----

double root_mean_square(const std::vector<double>& values) {
  const double squares = std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
  return std::sqrt(squares / static_cast<double>(values.size()));
}

// Two models with weights of their own: outputs of the same shape and size, and nothing in common.
TEST(Pitfalls, TheSameLayerWithOtherRandomWeightsIsAnotherFunction) {
  ConvArguments a = odd_problem();
  a.h = 60, a.w = 77, a.c = 16;
  const ConvShape shape = make_conv_shape(a);
  const TestData ours = make_test_data(shape, DataKind::kUniform, 1);
  const TestData theirs = make_test_data(shape, DataKind::kUniform, 2);
  const Reference right = compute_reference({shape, ours.input.data(), ours.filters.data()});
  const Reference other = compute_reference({shape, ours.input.data(), theirs.filters.data()});
  EXPECT_NEAR(root_mean_square(other.value) / root_mean_square(right.value), 1.0, 0.2);
  const std::vector<float> output(other.value.begin(), other.value.end());
  const Comparison comparison = compare(output.data(), shape, right, Rule::kBounded);
  EXPECT_FALSE(comparison.pass);
  EXPECT_GT(comparison.failures, shape.output_count() * 9 / 10);
}

}  // namespace
}  // namespace convladder
