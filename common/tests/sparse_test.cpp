// Offsets beyond 2^31 in the simulator, for every stage: device memory is the host's there, and
// what nobody touches of a tensor takes none. Few elements are touched, the last ones above all. On
// a GPU limits_test.cpp has such tensors in full.
#include <sys/mman.h>

#include <numeric>

#include "common/check/launches.h"
#include "common/check/random.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

const Stage& stage() { return tested_stage(); }

class SparseTest : public testing::Test {
 protected:
  void TearDown() override { simulator::run_last_blocks_only(0); }
};

bool is_im2col_gemm() { return stage().name == std::string("02_im2col_gemm"); }

// Address space for floats that are all zero; a page takes memory only once it is written. Null where the
// system does not give it.
std::shared_ptr<float> sparse_floats(int64_t count) {
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return {memory == MAP_FAILED ? nullptr : static_cast<float*>(memory),
          [bytes](float* floats) { munmap(floats, bytes); }};
}

// An integer from -64 to 64.
float small_integer(int64_t index) {
  return static_cast<float>(random_bits(1, 2, index) % 129) - 64;
}

void fill_end(float* floats, int64_t count, int64_t last) {
  for (int64_t i = std::max<int64_t>(0, count - last); i < count; ++i) floats[i] = small_integer(i);
}

// Small integers for the filters and the bias of a problem whose input is too large for them.
TestData filters_and_bias(const ConvShape& shape) {
  ConvArguments a = to_arguments(shape);
  a.n = 1, a.h = a.r, a.w = a.s;
  a.stride_h = a.stride_w = a.dil_h = a.dil_w = 1, a.pad_h = a.pad_w = 0;
  return make_test_data(make_conv_shape(a), DataKind::kSmallInteger, 1);
}

int64_t floats_for(std::size_t bytes) {
  return ceil_div(static_cast<int64_t>(bytes), sizeof(float));
}

Convolution arguments_of(const HostProblem& problem, float* output, void* workspace,
                         std::size_t bytes) {
  const auto& [shape, input, filters, bias, relu] = problem;
  return {shape,
          input,
          filters,
          bias,
          output,
          shape.input_count(),
          shape.filter_count(),
          bias ? shape.total_K() : 0,
          shape.output_count(),
          relu,
          workspace,
          bytes};
}

// The stage on tensors that lie where they are; without a workspace, it gets one of its own.
void run_stage(const HostProblem& problem, float* output, std::size_t bytes,
               void* workspace = nullptr) {
  const DeviceBuffer own(workspace ? 0 : floats_for(bytes));
  run(stage(), arguments_of(problem, output, workspace ? workspace : own.data(), bytes), nullptr);
  EXPECT_EQ(own.guard_damage(), "");
}

void expect_equal(const DeviceBuffer& output, const ConvShape& shape, const Reference& reference) {
  const Comparison result = compare(values_of(output).data(), shape, reference, Rule::kExact);
  EXPECT_TRUE(result.pass) << result.message;
  EXPECT_EQ(output.guard_damage(), "");
}

// ---- Input ----

// Calls visit(i) for the flat index i of every input that a window covers.
template <typename Visit>
void for_each_input(const ConvShape& s, const Visit& visit) {
  for (int64_t nc = 0; nc < int64_t{s.N} * s.total_C(); ++nc) {
    for (int64_t pr = 0; pr < int64_t{s.P()} * s.R; ++pr) {
      const int64_t h = pr / s.R * s.stride_h - s.pad_h + pr % s.R * s.dil_h;
      for (int64_t qs = 0; qs < int64_t{s.Q()} * s.S; ++qs) {
        const int64_t w = qs / s.S * s.stride_w - s.pad_w + qs % s.S * s.dil_w;
        if (h >= 0 && h < s.H && w >= 0 && w < s.W) visit((nc * s.H + h) * s.W + w);
      }
    }
  }
}

// Images of almost 2^31 elements, the last of them behind 2^32: strides so large that few inputs
// are read.
TEST_F(SparseTest, InputBeyondThirtyTwoBits) {
  if (stage().layout != NCHW) GTEST_SKIP() << "the data are [N,C,H,W]";
  const auto found = find_suited(
      shape_of("n=3 c=2 h=32767 w=32760 k=5 r=2 s=3 stride_h=16001 stride_w=15000 pad_h=1 pad_w=2 "
               "dil_h=700 dil_w=900"),
      stage());
  if (!found) GTEST_SKIP() << "no problem of this size suits it";
  const ConvShape shape = *found;
  ASSERT_GT(shape.input_count(), INT64_C(1) << 32);
  const auto input = sparse_floats(shape.input_count());
  if (!input) GTEST_SKIP() << "no address space for " << shape.input_count() << " floats";
  for_each_input(shape, [&](int64_t i) { input.get()[i] = small_integer(i); });
  const TestData data = filters_and_bias(shape);
  const HostProblem problem = {shape, input.get(), data.filters.data(), data.bias.data()};
  DeviceBuffer output(shape.output_count());
  const Reference reference = compute_reference(problem);
  // All images at a time, and one after the other: then the host computes their offsets.
  for (const std::size_t bytes :
       {workspace_bytes(stage(), shape), least_workspace_bytes(stage(), shape)}) {
    SCOPED_TRACE(std::to_string(bytes) + " bytes of workspace");
    output.fill_nan();
    run_stage(problem, output.data(), bytes);
    expect_equal(output, shape, reference);
  }
}

// ---- Output ----

// The last blocks of each launch run: enough of them for all filters to be put in order, and for
// the last outputs to be computed and get their bias.
constexpr uint64_t BLOCKS = 256;
constexpr int64_t OUTPUTS = 1000;  // that are checked, at most
constexpr int64_t INPUTS = 10000;  // that are not zero: more than those outputs see

// A smaller problem of a kind, on tensors of its own.
class SmallerProblem {
 public:
  SmallerProblem(ConvArguments arguments, int64_t outputs)
      : shape_(suited(make_conv_shape(smaller(arguments, outputs)), stage())),
        data_(filters_and_bias(shape_)),
        input_(shape_.input_count()),
        output_(shape_.output_count()),
        workspace_(floats_for(workspace_bytes(stage(), shape_))) {
    std::fill_n(input_.data(), input_.count(), 0.0f);  // a NaN would look like no output
    output_.fill_nan();
  }

  Convolution conv() const {
    return arguments_of({shape_, input_.data(), data_.filters.data()}, output_.data(),
                        workspace_.data(), workspace_bytes(stage(), shape_));
  }
  // How many outputs the last blocks compute; 0 where the last outputs aren't all among them.
  int64_t computed_by_the_last_blocks() const {
    simulator::run_last_blocks_only(BLOCKS);
    run(stage(), conv(), nullptr);
    const auto is_computed = [](float value) { return !std::isnan(value); };
    const float *const begin = output_.data(), *const end = begin + output_.count();
    return std::all_of(end - OUTPUTS, end, is_computed) ? std::count_if(begin, end, is_computed)
                                                        : 0;
  }

 private:
  static ConvArguments smaller(ConvArguments arguments, int64_t outputs) {
    const int64_t times = make_conv_shape(arguments).output_count() / outputs;
    (arguments.n > 1 ? arguments.n : arguments.h) /= times;
    return arguments;
  }

  ConvShape shape_;
  TestData data_;
  DeviceBuffer input_, output_, workspace_;
};

// Whether these blocks compute the last outputs of a problem, and no others. In a grid of fixed size they go round,
// and one such kernel is enough to touch as much more as there is. In one that ends somewhere, or has its blocks in
// another order, the last outputs are other blocks'.
bool computes_only_the_last(const ConvArguments& arguments, const HostProblem& problem,
                            float* output, std::size_t bytes) {
  constexpr int64_t FEW = int64_t{1} << 23;
  const SmallerProblem few(arguments, FEW), more(arguments, 2 * FEW);
  if (launches_of(stage(), few.conv()).size() > 100) return false;  // one for each image, say
  HostProblem without_bias = problem;                               // whose pass has blocks enough
  without_bias.bias = nullptr;
  const DeviceBuffer workspace(floats_for(bytes));
  const std::vector<KernelLaunch> launches =
      launches_of(stage(), arguments_of(without_bias, output, workspace.data(), bytes));
  const auto has_blocks = [&](double outputs_of_one) {
    const double needed = static_cast<double>(problem.shape.output_count()) / outputs_of_one;
    return std::any_of(launches.begin(), launches.end(), [&](const KernelLaunch& launch) {
      return static_cast<double>(launch.blocks) > needed;
    });
  };
  if (!has_blocks(1 << 18)) return false;  // nor does one that runs at a time, and waits for all
  const auto computed = static_cast<double>(few.computed_by_the_last_blocks());
  return computed > 0 && static_cast<double>(more.computed_by_the_last_blocks()) < 1.5 * computed &&
         has_blocks(2 * computed / BLOCKS);
}

class SparseOutput : public SparseTest, public testing::WithParamInterface<Problem> {};

TEST_P(SparseOutput, EndIsRight) try {
  if (stage().layout != NCHW) GTEST_SKIP() << "the data are [N,C,H,W]";
  if (is_im2col_gemm()) GTEST_SKIP() << "computes all outputs: the product is one call";
  const auto found = find_suited(make_conv_shape(GetParam().arguments), stage());
  if (!found) GTEST_SKIP() << "no problem of this size suits it";
  const ConvShape shape = *found;
  if (least_workspace_bytes(stage(), shape) > DEFAULT_WORKSPACE_LIMIT) {
    GTEST_SKIP() << "needs a workspace for as much as nobody has";
  }
  const auto input = sparse_floats(shape.input_count());
  const auto output = sparse_floats(shape.output_count());
  if (!input || !output) GTEST_SKIP() << "no address space for " << to_string(shape);
  fill_end(input.get(), shape.input_count(), INPUTS);
  const TestData data = filters_and_bias(shape);
  const HostProblem problem = {shape, input.get(), data.filters.data(), data.bias.data()};
  const std::size_t bytes = workspace_bytes(stage(), shape);
  if (!computes_only_the_last(GetParam().arguments, problem, output.get(), bytes)) {
    GTEST_SKIP() << "a grid of fixed size computes all outputs";
  }
  const int64_t outputs =
      std::min<int64_t>(OUTPUTS, BLOCKS * shape.PQ());  // a block adds a plane's bias
  std::vector<int64_t> last(outputs);
  std::iota(last.begin(), last.end(), shape.output_count() - outputs);
  Reference reference = compute_reference(problem, last);
  reference.index.clear();
  ConvShape row;  // the last outputs, for compare(), as a tensor of their own
  row.W = static_cast<int>(outputs);
  float* const end = output.get() + last.front();

  simulator::run_last_blocks_only(BLOCKS);
  std::fill_n(end, outputs, NAN);
  run_stage(problem, output.get(), bytes);
  const Comparison result = compare(end, row, reference, Rule::kExact);
  EXPECT_TRUE(result.pass) << "of the last outputs: " << result.message;
} catch (const InvalidArgument& rejected) {
  GTEST_SKIP() << "rejected: " << rejected.what();
}

// On each path of stage 10. Small images, but more than 2^31 planes and 2^32 pixels; and one image
// that has fewer than 2^31 pixels, but not if its rows were rounded up to whole strips.
INSTANTIATE_TEST_SUITE_P(
    Path, SparseOutput,
    testing::ValuesIn(problems_of({
        {"rows_of_eight", "n=536870915 c=2 k=5 r=2 pad_h=1 stride_h=2 w=8"},
        {"any_pixels", "n=536870915 c=2 k=5 r=2 pad_h=1 stride_h=2 h=5 w=3"},
        {"strips_under_3_taps", "n=536870915 c=2 k=5 r=2 pad_h=1 stride_h=2 w=8 s=3 pad_w=1"},
        {"strips_under_7_taps",
         "n=536870915 c=2 k=5 r=2 pad_h=1 stride_h=2 w=16 s=7 stride_w=2 pad_w=3"},
        {"strips_under_11_taps",
         "n=536870915 c=2 k=5 r=2 pad_h=1 stride_h=2 w=32 s=11 stride_w=4 pad_w=5"},
        {"rows_of_strips", "h=36396900 w=57 s=3 pad_w=1"},
    })),
    name_of);

// ---- Stage 02's matrix ----

// Only the last channels are not zero, in input and filters; only their rows of the matrix are
// written. (The product reads all 8 GiB, but of one page of zeros.)
TEST_F(SparseTest, MatrixBeyondThirtyOneBits) {
  if (!is_im2col_gemm()) GTEST_SKIP() << "has no such matrix";
  const ConvShape shape = shape_of("c=134217828 w=9 s=2");
  const ConvShape part = shape_of("c=256 w=9 s=2");  // the last channels: of as many blocks
  const std::size_t bytes = workspace_bytes(stage(), shape, SIZE_MAX);
  ASSERT_GT(bytes / sizeof(float), std::size_t{1} << 31);
  const auto input = sparse_floats(shape.input_count());
  const auto filters = sparse_floats(shape.filter_count());
  const auto matrix = sparse_floats(floats_for(bytes));
  if (!input || !filters || !matrix) GTEST_SKIP() << "no address space for " << to_string(shape);
  fill_end(input.get(), shape.input_count(), part.input_count());
  fill_end(filters.get(), shape.filter_count(), part.filter_count());
  DeviceBuffer output(shape.output_count());
  simulator::run_last_blocks_only(BLOCKS);
  run_stage({shape, input.get(), filters.get()}, output.data(), bytes, matrix.get());
  expect_equal(output, shape,
               compute_reference({part, input.get() + shape.input_count() - part.input_count(),
                                  filters.get() + shape.filter_count() - part.filter_count()}));
}

}  // namespace
}  // namespace convladder
