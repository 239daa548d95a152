// The gradients of every stage, against sums in float64 that follow the definition: which input met which
// filter in which output. Nothing of how the gradients are found is in them.
#include "common/core/gradients.h"

#include "common/check/random.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

constexpr double MACS = 2e5, EXACT = 1 << 24;

const Stage& stage() { return tested_stage(); }

const std::vector<Problem>& problems() {
  static const std::vector<Problem> all = [] {
    std::vector<Problem> nasty;
    for (const Problem& problem : read_problems(CONVLADDER_PROBLEMS)) {
      if (problem.name.rfind("nasty", 0) == 0) nasty.push_back(problem);
    }
    return nasty;
  }();
  return all;
}

struct Sums {
  explicit Sums(int64_t count) : value(count), magnitude(count) {}
  void add(int64_t i, double product) { value[i] += product, magnitude[i] += std::fabs(product); }
  std::vector<double> value, magnitude;
};

struct Expected {
  Sums input, filters, bias;
};

Expected expect(const ConvShape& s, const TestData& data, const std::vector<float>& gradient) {
  Expected found = {Sums(s.input_count()), Sums(s.filter_count()), Sums(s.total_K())};
  const int64_t P = s.P(), Q = s.Q(), K = s.total_K();
  for (int64_t i = 0; i < s.output_count(); ++i) {
    const int64_t q = i % Q, p = i / Q % P, k = i / Q / P % K, n = i / Q / P / K;
    found.bias.add(k, gradient[i]);
    for (int64_t crs = 0; crs < s.CRS(); ++crs) {
      const int64_t c = k / s.K * s.C + crs / s.S / s.R;
      const int64_t h = p * s.stride_h - s.pad_h + crs / s.S % s.R * s.dil_h;
      const int64_t w = q * s.stride_w - s.pad_w + crs % s.S * s.dil_w;
      if (h < 0 || h >= s.H || w < 0 || w >= s.W) continue;
      const int64_t x = ((n * s.total_C() + c) * s.H + h) * s.W + w, f = k * s.CRS() + crs;
      found.input.add(x, double{gradient[i]} * data.filters[f]);
      found.filters.add(f, double{gradient[i]} * data.input[x]);
    }
  }
  return found;
}

// Integers must be exact where float32 holds them all.
void expect_near(const char* what, const DeviceBuffer& buffer, const Sums& sums, bool integers,
                 double factor) {
  SCOPED_TRACE(what);
  EXPECT_EQ(buffer.guard_damage(), "");
  const std::vector<float> got = values_of(buffer);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const bool exact = integers && sums.magnitude[i] <= EXACT;
    const double allowed = exact ? 0 : factor * 0x1p-24 * sums.magnitude[i];
    ASSERT_LE(std::fabs(got[i] - sums.value[i]), allowed)  // false for NaN
        << "element " << i << ": " << got[i] << ", not " << sums.value[i];
  }
}

class StageGradients : public DeviceTest, public testing::WithParamInterface<std::size_t> {
 protected:
  // The filters' and the bias' gradient, and the input's, in one call or in two.
  static void check(const ConvShape& shape, DataKind kind, std::size_t turn) {
    SCOPED_TRACE(to_string(shape) + ": " + to_string(kind));
    const TestData data = make_test_data(shape, kind, 1);
    const bool integers = kind != DataKind::kUniform, wide = kind == DataKind::kWideInteger;
    std::vector<float> units(shape.output_count()), others(units.size());
    for (std::size_t i = 0; i < units.size(); ++i) {
      const auto bits = static_cast<float>(random_bits(7, 0, i) >> 40) * 0x1p-24f;  // [0, 1)
      units[i] = integers ? std::floor(3 * bits) - 1 : 2 * bits - 1;
      others[i] = wide ? 2049 + 2 * std::floor(1000 * bits) : units[i];
    }
    const bool together = !wide && turn % 2 == 0;
    run_one(shape, data, units, turn, together, true, integers, wide);
    if (!together) run_one(shape, data, others, turn, true, false, integers, wide);
  }

  static void run_one(const ConvShape& shape, const TestData& data,
                      const std::vector<float>& gradient, std::size_t turn, bool by_input,
                      bool by_filters, bool integers, bool wide) {
    const int offset = static_cast<int>(turn % 4);
    DeviceBuffer x(shape.input_count(), offset), w(shape.filter_count(), offset);
    DeviceBuffer dy(shape.output_count(), 3 - offset),
        dx(by_input ? shape.input_count() : 0, offset);
    DeviceBuffer dw(by_filters ? shape.filter_count() : 0, offset);
    DeviceBuffer db(by_filters ? shape.total_K() : 0, offset);
    x.upload(data.input.data()), w.upload(data.filters.data()), dy.upload(gradient.data());
    Gradients g;
    g.shape = shape;
    g.input = x.data(), g.filters = w.data(), g.output_gradient = dy.data();
    g.input_count = x.count(), g.filter_count = w.count(), g.output_count = dy.count();
    g.bias_count = shape.total_K();
    if (by_input) g.input_gradient = dx.data();
    if (by_filters) g.filter_gradient = dw.data(), g.bias_gradient = db.data();
    std::size_t bytes = 0;
    try {  // all images at a time, or as few as it takes
      bytes = gradient_workspace_bytes(stage(), g, turn % 3 == 2 ? 0 : DEFAULT_WORKSPACE_LIMIT);
    } catch (const InvalidArgument& error) {
      if (std::string(error.what()).rfind("no stage here takes", 0) != 0) throw;
      GTEST_SKIP() << "needs another stage than " << stage().name;
    }
    DeviceBuffer workspace(static_cast<int64_t>(bytes / sizeof(float)), 0);
    g.workspace = workspace.data(), g.workspace_bytes = bytes;
    run_gradients(stage(), g, nullptr);
    check_cuda(cudaDeviceSynchronize(), stage().name);
    const Expected wanted = expect(shape, data, gradient);
    const double factor = error_factor(shape, stage().precision);
    const bool exact = integers && !(wide && stage().precision != FP32);
    if (by_input) expect_near("by the input", dx, wanted.input, exact, factor);
    if (by_filters) {
      expect_near("by the filters", dw, wanted.filters, exact, factor);
      expect_near("by the bias", db, wanted.bias, exact, 8);
    }
    EXPECT_EQ(workspace.guard_damage(), "");
    EXPECT_TRUE(x.holds(data.input.data()) && w.holds(data.filters.data()) &&
                dy.holds(gradient.data()))
        << "an input was changed";
  }
};

using StageGradientsOfEveryKind = StageGradients;

ConvShape shape_at(std::size_t place) {
  const ConvShape whole = make_conv_shape(problems()[place].arguments);
  const double cut = on_gpu() ? MACS * 50 : MACS / std::min(tile_waste(whole), 8.0);
  return suited(make_conv_shape(reduce(to_arguments(whole), cut)), stage());
}

// A kind of data for each problem, in turns.
TEST_P(StageGradients, AreTheDefinitions) {
  if (stage().layout != NCHW) GTEST_SKIP() << "gradients are [N,C,H,W]";
  const std::size_t place = GetParam() * 3 + GetParam() % 3;
  if (place >= problems().size()) return;
  with_memory_for(shape_at(place), [&](const ConvShape& shape) {
    check(shape, DATA_KINDS[GetParam() % std::size(DATA_KINDS)], GetParam());
  });
}

TEST_P(StageGradientsOfEveryKind, AreTheDefinitions) {
  if (stage().layout != NCHW) GTEST_SKIP() << "gradients are [N,C,H,W]";
  std::size_t turn = GetParam();
  for (const DataKind kind : DATA_KINDS) {
    with_memory_for(shape_at(GetParam()),
                    [&](const ConvShape& shape) { check(shape, kind, turn++); });
  }
}

std::string name_of(std::size_t place) { return problems()[place].name; }

INSTANTIATE_TEST_SUITE_P(Csv, StageGradients,
                         testing::ValuesIn(places_for(tested_stage(), true, problems().size() / 3)),
                         [](const auto& info) { return name_of(info.param * 3 + info.param % 3); });
INSTANTIATE_TEST_SUITE_P(Csv, StageGradientsOfEveryKind,
                         testing::Range(std::size_t{0}, problems().size()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace convladder
