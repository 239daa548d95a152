// The mistakes of docs/pitfalls.md, each made on purpose: the checks must see them. On both backends.
#include <cublas_v2.h>

#include <chrono>
#include <functional>
#include <numeric>

#include "common/core/cublas.h"
#ifdef CONVLADDER_COUNTING
#include "common/simulator/counts.h"
#endif
#include "common/tests/launch.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

constexpr int THREADS = 256;
constexpr Stage MISTAKE = {"a mistake", "", nullptr, nullptr, false};

bool is_untouched(const DeviceBuffer& buffer) {
  const std::vector<float> values = values_of(buffer);
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isnan(v); });
}

// A problem without bias, on both sides; no stage runs on it, but what the tests enqueue.
struct Layer : Sample, Trial {
  explicit Layer(const std::string& extents)
      : Sample(extents, DataKind::kUniform, false), Trial(MISTAKE, host()), conv(arguments()) {}

  // Compares the output on the device, as it is now.
  Comparison compared() const {
    wait();
    return compare(output().data(), conv.shape, reference(), Rule::kBounded);
  }

  const Convolution conv;
};

// No two extents alike; rows and columns are left over at the far end; padding on all sides.
const std::string ODD = "c=3 h=12 w=17 k=5 r=3 s=2 stride_h=4 stride_w=3 pad_h=1 pad_w=2 ";

// Stage 01's loop. PADDED: the input has its zeros around it, and no tap is outside.
template <bool PADDED, typename Sizes>
__global__ void conv2d(Sizes size, int blocks_per_image,
                       const float* __restrict__ input,    // [N,C,H,W]
                       const float* __restrict__ filters,  // [K,C,R,S]
                       float* __restrict__ output) {       // [N,K,P,Q]
  const int n = blockIdx.x / blocks_per_image;
  const int kpq = blockIdx.x % blocks_per_image * THREADS + threadIdx.x;
  if (kpq >= size.K * size.P() * size.Q()) return;
  const int q = kpq % size.Q();
  const int p = kpq / size.Q() % size.P();
  const int k = kpq / (size.P() * size.Q());
  const float* image = input + n * int64_t{size.C * size.H * size.W};
  const float* filter = filters + k * size.C * size.R * size.S;
  float sum = 0.0f;
  for (int c = 0; c < size.C; ++c) {
    for (int r = 0; r < size.R; ++r) {
      const int h = p * size.stride_h - size.pad_h + r * size.dil_h;
      if (!PADDED && (h < 0 || h >= size.H)) continue;
      for (int s = 0; s < size.S; ++s) {
        const int w = q * size.stride_w - size.pad_w + s * size.dil_w;
        if (!PADDED && (w < 0 || w >= size.W)) continue;
        sum += image[(c * size.H + h) * size.W + w] * filter[(c * size.R + r) * size.S + s];
      }
    }
  }
  output[n * int64_t{size.K * size.P() * size.Q()} + kpq] = sum;
}

template <bool PADDED = false, typename Sizes>
void run_naive(const Layer& layer, Sizes sizes, const float* input) {
  const int64_t blocks = ceil_div(sizes.K * sizes.P() * sizes.Q(), THREADS);
  launch(conv2d<PADDED, Sizes>, grid_x(blocks * layer.conv.shape.N), THREADS, nullptr, sizes,
         static_cast<int>(blocks), input, layer.conv.filters, layer.conv.output);
}

// ---- The size of the output ----

// An output of another size than the shape's.
struct OfSize : ConvShape {
  OfSize(const ConvShape& shape, int rows, int columns)
      : ConvShape(shape), rows(rows), columns(columns) {}
  __host__ __device__ int P() const { return rows; }
  __host__ __device__ int Q() const { return columns; }
  int rows, columns;
};

int rounded_up(int input, int filter, int stride, int pad) {
  return static_cast<int>(std::ceil((input + 2.0 * pad - filter) / stride + 1));
}

TEST(Pitfalls, OutputSizeRoundedUpIsWrongAndWritesPastTheEnd) {
  const Layer layer(ODD + "n=2");
  const ConvShape& s = layer.conv.shape;
  run_naive(layer, s, layer.conv.input);
  EXPECT_TRUE(layer.compared().pass) << layer.compared().message;
  EXPECT_EQ(layer.damage(), "");

  const int P = rounded_up(s.H, s.R, s.stride_h, s.pad_h);
  const int Q = rounded_up(s.W, s.S, s.stride_w, s.pad_w);
  ASSERT_EQ(P, s.P() + 1);
  ASSERT_EQ(Q, s.Q() + 1);
  run_naive(layer, OfSize(s, P, Q), layer.conv.input);
  EXPECT_FALSE(layer.compared().pass);
  expect_contains(layer.damage(), "past the end");
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
  const std::vector<float> values = values_of(visited);
  EXPECT_EQ(std::count(values.begin(), values.end(), 1.0f), blocks);
}

TEST(Pitfalls, TheSameBlocksAlongYAreRefusedAndNothingRuns) {
  const auto blocks = static_cast<unsigned>(ceil_div(74342400, THREADS));
  const DeviceBuffer visited(blocks);
  const std::string message = message_of<CudaError>(
      [&] { launch(mark_block, dim3(1, blocks), THREADS, nullptr, visited.data()); });
  // "invalid configuration argument", or, from some drivers, "invalid argument".
  EXPECT_EQ(message.find("kernel launch: invalid"), 0u) << message;
  EXPECT_TRUE(is_untouched(visited));
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
DeviceBuffer im2col(const Layer& layer, int images, bool zeros = true) {
  const ConvShape& s = layer.conv.shape;
  DeviceBuffer columns(int64_t{s.CRS()} * images * s.PQ());
  launch(im2col_batch, grid_x(ceil_div(columns.count(), THREADS)), THREADS, nullptr, s, images,
         zeros, layer.conv.input, columns.data());
  return columns;
}

// Row-major output [K, columns] = filters [K, C*R*S] · matrix [C*R*S, columns], the way stage 02 asks for
// it.
void multiply(const Layer& layer, int columns, const DeviceBuffer& matrix) {
  const ConvShape& s = layer.conv.shape;
  sgemm_strided_batched(nullptr, columns, s.K, s.CRS(), matrix.data(), columns, 0,
                        layer.conv.filters, s.CRS(), 0, layer.conv.output, columns, 0, 1);
}

TEST(Pitfalls, Im2colWithoutTheZerosOfPaddingIsSeen) {
  const Layer layer(ODD);
  for (const bool zeros : {true, false}) {
    multiply(layer, layer.conv.shape.PQ(), im2col(layer, 1, zeros));
    EXPECT_EQ(layer.compared().pass, zeros) << layer.compared().message;
  }
  expect_contains(layer.compared().message, "never written?");
}

// Extents in the order of the formula, leading dimensions that satisfy cuBLAS: no error, and the
// wrong numbers.
TEST(Pitfalls, ProductAskedForAsIfMatricesWereColumnMajorIsWrong) {
  const Layer layer(ODD);
  const ConvShape& s = layer.conv.shape;
  const DeviceBuffer columns = im2col(layer, 1);
  sgemm_strided_batched(nullptr, s.K, s.PQ(), s.CRS(), layer.conv.filters, s.K, 0, columns.data(),
                        s.CRS(), 0, layer.conv.output, s.K, 0, 1);
  EXPECT_FALSE(layer.compared().pass);
  multiply(layer, s.PQ(), columns);
  EXPECT_TRUE(layer.compared().pass) << layer.compared().message;
}

// The lengths of the rows as leading dimensions, without the operands changing places: refused here,
// since a column of K = 40 floats does not fit a distance of C*R*S = 18.
TEST(Pitfalls, RowLengthsAsLeadingDimensionsCanBeRefused) {
  const Layer layer(ODD + "k=40");
  const ConvShape& s = layer.conv.shape;
  const DeviceBuffer columns = im2col(layer, 1);
  EXPECT_THROW(sgemm_strided_batched(nullptr, s.K, s.PQ(), s.CRS(), layer.conv.filters, s.CRS(), 0,
                                     columns.data(), s.PQ(), 0, layer.conv.output, s.PQ(), 0, 1),
               CudaError);
}

TEST(Pitfalls, OneProductForTheBatchIsNotNkpq) {
  for (const int images : {1, 2}) {
    const Layer layer(ODD + "n=" + std::to_string(images));
    const ConvShape& s = layer.conv.shape;
    multiply(layer, images * s.PQ(), im2col(layer, images));
    EXPECT_EQ(layer.compared().pass, images == 1) << layer.compared().message;

    // It is [K,N,P,Q]: with its planes moved, not viewed otherwise, it is right.
    std::vector<float> knpq = layer.output(), nkpq(knpq.size());
    for (int plane = 0; plane < s.N * s.K; ++plane) {
      const int n = plane / s.K, k = plane % s.K;
      std::copy_n(&knpq[(k * s.N + n) * s.PQ()], s.PQ(), &nkpq[plane * s.PQ()]);
    }
    EXPECT_TRUE(compare(nkpq.data(), s, layer.reference(), Rule::kBounded).pass);
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
  EXPECT_TRUE(is_untouched(output));
}

// ---- What is compared with what ----

double root_mean_square(const std::vector<double>& values) {
  const double squares = std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
  return std::sqrt(squares / static_cast<double>(values.size()));
}

// Two models with weights of their own: outputs of the same shape and size, and nothing in common.
TEST(Pitfalls, TheSameLayerWithOtherRandomWeightsIsAnotherFunction) {
  const ConvShape shape = shape_of(ODD + "n=2 h=60 w=77 c=16");
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

// ---- What only a GPU's clock can show; on the simulator the results are checked, and the times say nothing ----

int runs() { return on_gpu() ? 15 : 1; }

void print(const char* what, double milliseconds) {
  std::printf("  %-52s %9.4f ms\n", what, milliseconds);
}

double event_ms(const std::function<void()>& enqueue) {
  return time_on_backend(enqueue, runs()).milliseconds;
}

// Median over runs() calls of `body`, by the host's clock. Nothing is under way before or after.
double host_ms(const std::function<void()>& body) {
  std::vector<double> times;
  for (int run = 0; run <= runs(); ++run) {
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const auto begin = std::chrono::steady_clock::now();
    body();
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - begin;
    if (run > 0) times.push_back(elapsed.count());  // the first one warms up
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  std::nth_element(times.begin(), times.begin() + runs() / 2, times.end());
  return times[runs() / 2];
}

// AlexNet's first layer, known to the compiler. The members have ConvShape's names, so that one
// source serves both.
struct AlexNetConv1 {
  static constexpr int C = 3, H = 224, W = 224, K = 96, R = 11, S = 11;
  static constexpr int stride_h = 4, stride_w = 4, pad_h = 2, pad_w = 2, dil_h = 1, dil_w = 1;
  __host__ __device__ static constexpr int P() { return 55; }
  __host__ __device__ static constexpr int Q() { return 55; }
};

// That layer without padding, for an input that already has its zeros around it.
struct PaddedConv1 : AlexNetConv1 {
  static constexpr int H = 228, W = 228, pad_h = 0, pad_w = 0;
};

__global__ void copy_with_zeros(ConvShape shape, const float* __restrict__ input,
                                float* __restrict__ padded) {
  const int H = shape.H + 2 * shape.pad_h, W = shape.W + 2 * shape.pad_w;
  const int64_t i = int64_t{blockIdx.x} * THREADS + threadIdx.x;
  if (i >= int64_t{shape.N} * shape.C * H * W) return;
  const int h = static_cast<int>(i / W % H) - shape.pad_h;
  const int w = static_cast<int>(i % W) - shape.pad_w;
  const int64_t plane = i / (H * W);
  const bool inside = h >= 0 && h < shape.H && w >= 0 && w < shape.W;
  padded[i] = inside ? input[(plane * shape.H + h) * shape.W + w] : 0.0f;
}

void copy_padded(const ConvShape& shape, const float* input, const DeviceBuffer& padded) {
  launch(copy_with_zeros, grid_x(ceil_div(padded.count(), THREADS)), THREADS, nullptr, shape, input,
         padded.data());
}

class PitfallTimes : public testing::Test {
 protected:
  PitfallTimes() { std::printf("%s, %d image(s)\n", device_name().c_str(), IMAGES); }

  // The time of what is right.
  double checked_ms(const std::function<void()>& run) {
    layer_.fill_nan();
    run();
    EXPECT_TRUE(layer_.compared().pass) << layer_.compared().message;
    return event_ms(run);
  }

  static constexpr int IMAGES = on_gpu() ? 256 : 1;
  Layer layer_{"c=3 h=w=224 k=96 r=s=11 stride_h=stride_w=4 pad_h=pad_w=2 n=" +
               std::to_string(IMAGES)};
};

TEST_F(PitfallTimes, SizesAsConstants) {
  const float* input = layer_.conv.input;
  print("sizes as arguments", checked_ms([&] { run_naive(layer_, layer_.conv.shape, input); }));
  print("sizes as constants", checked_ms([&] { run_naive(layer_, AlexNetConv1(), input); }));
}

TEST_F(PitfallTimes, PaddingByCopying) {
  const ConvShape& s = layer_.conv.shape;
  const float* input = layer_.conv.input;
  const DeviceBuffer padded(int64_t{s.N} * s.C * PaddedConv1::H * PaddedConv1::W);
  print("taps tested, no copy", checked_ms([&] { run_naive(layer_, AlexNetConv1(), input); }));
  print("the padded copy alone", event_ms([&] { copy_padded(s, input, padded); }));
  print("taps not tested, after the copy",
        checked_ms([&] { run_naive<true>(layer_, PaddedConv1(), padded.data()); }));
}

TEST_F(PitfallTimes, NotWaiting) {
  const auto enqueue = [&] { run_naive(layer_, layer_.conv.shape, layer_.conv.input); };
  const double hasty = host_ms(enqueue),
               patient = host_ms([&] {
                 enqueue();
                 check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
               });
  print("host's clock, not waiting for the kernel", hasty);
  print("host's clock, waiting", patient);
  print("CUDA events", event_ms(enqueue));
  EXPECT_TRUE(hasty < patient || !on_gpu());
}

// One image's product of stage 02, [K, C*R*S] times [C*R*S, P*Q].
TEST_F(PitfallTimes, AHandleMadeInEveryCall) {
  const ConvShape& s = layer_.conv.shape;
  const DeviceBuffer columns(int64_t{s.CRS()} * s.PQ()), product(s.KPQ());
  const float one = 1.0f, zero = 0.0f;
  const auto multiply = [&](cublasHandle_t handle) {
    EXPECT_EQ(
        cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, s.PQ(), s.K, s.CRS(), &one, columns.data(),
                    s.PQ(), layer_.conv.filters, s.CRS(), &zero, product.data(), s.PQ()),
        CUBLAS_STATUS_SUCCESS);
    check_cuda(cudaDeviceSynchronize(), "cublasSgemm");
  };
  cublasHandle_t handle = nullptr;
  ASSERT_EQ(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS);
  print("handle made once", host_ms([&] { multiply(handle); }));
  EXPECT_EQ(cublasDestroy(handle), CUBLAS_STATUS_SUCCESS);
  print("handle made and destroyed in each call", host_ms([&] {
          ASSERT_EQ(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS);
          multiply(handle);
          EXPECT_EQ(cublasDestroy(handle), CUBLAS_STATUS_SUCCESS);
        }));
}

#ifdef CONVLADDER_COUNTING
// ---- What shows in counts, or in what the counting simulator reports ----

TEST(PitfallCounts, PaddingByCopyingMovesTheInputTwiceMore) {
  const ConvShape s = shape_of("c=3 h=w=224 k=96 r=s=11 stride_h=stride_w=4 pad_h=pad_w=2");
  DeviceBuffer input(s.input_count());
  const DeviceBuffer padded(3 * 228 * 228);
  input.upload(std::vector<float>(input.count()).data());
  simulator::take_kernel_counts();
  copy_padded(s, input.data(), padded);
  const simulator::KernelCounts counts = simulator::take_kernel_counts().at(0);
  EXPECT_EQ(counts.sectors_read * 32, 602112);     // 3·224·224 floats
  EXPECT_EQ(counts.sectors_written * 32, 623808);  // 3·228·228 floats
}

TEST(PitfallCounts, Im2colElementsThatNobodyWroteAreReported) {
  const Layer layer(ODD);
  const DeviceBuffer columns = im2col(layer, 1, false);
  const std::string message =
      message_of<CudaError>([&] { multiply(layer, layer.conv.shape.PQ(), columns); });
  expect_contains(message, "reads global memory that nobody has written, row 0 of column 0");
}
#endif

}  // namespace
}  // namespace convladder
