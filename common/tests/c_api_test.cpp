// The C interface of libconvladder.so: what it computes, and every kind of bad input, in the words of
// the C++ interface that it calls. This program holds the stages twice: in the library, and linked in,
// to ask them for workspace.
#include <sys/wait.h>

#include <cstring>
#include <functional>
#include <thread>

#include "common/bindings/convladder.h"
#include "common/core/choice.h"
#include "common/core/gradients.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

// No two extents agree, nor do the two axes' strides, pads and dilations.
constexpr const char* PROBLEM = "n=2 c=3 h=9 w=8 k=5 r=4 s=2 stride_h=2 pad_h=1 dil_w=3";
// Three groups, of 2 channels and 5 filters each.
constexpr const char* GROUPED = "n=2 c=6 h=9 w=8 k=15 r=4 s=2 stride_h=2 pad_h=1 dil_w=3 groups=3";

convladder_problem problem_of(const ConvArguments& arguments) {
  static_assert(sizeof(convladder_problem) == sizeof(ConvArguments));
  convladder_problem problem;
  std::memcpy(&problem, &arguments.n, sizeof problem);  // the same fields in the same order
  return problem;
}

// A problem on the device, with data that float32 computes exactly.
class Caller : Sample, public Trial {
 public:
  explicit Caller(const Stage& stage, const char* problem = PROBLEM)
      : Sample(suited(shape_of(problem), stage)), Trial(stage, host()) {}

  convladder_convolution call() const {
    const Convolution c = arguments();
    return {problem_of(to_arguments(c.shape)),
            c.input,
            c.filters,
            c.bias,
            c.output,
            c.input_count,
            c.filter_count,
            c.bias_count,
            c.output_count,
            c.relu,
            c.workspace,
            c.workspace_bytes};
  }

  void expect_refused(const convladder_convolution& c, const std::string& message) {
    fill_nan();
    EXPECT_EQ(convladder_run(stage().name, &c, nullptr), CONVLADDER_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(convladder_last_error()).rfind(message, 0), 0u)
        << convladder_last_error();
    check_cuda(cudaDeviceSynchronize(), "after a rejected call");
    for (const float y : output()) ASSERT_TRUE(std::isnan(y)) << "the output was written";
    EXPECT_EQ(damage(), "");
  }

  void expect_works(const convladder_convolution& c) {
    fill_nan();
    EXPECT_EQ(convladder_run(stage().name, &c, nullptr), CONVLADDER_SUCCESS);
    EXPECT_STREQ(convladder_last_error(), "");
    wait();
    expect_right(output());
    EXPECT_EQ(damage(), "");
  }
};

using Call = convladder_convolution;

// How the message of the rejection begins, and what is wrong.
struct BadInput {
  std::string message;
  std::function<void(Call&)> spoil;
};

template <typename T>
void shift(T*& pointer, int bytes) {
  pointer = reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(pointer) + bytes);
}

// "input holds 431 elements, the problem needs 432"
std::string too_few(const char* tensor, int64_t held, int64_t needed) {
  return tensor + (" holds " + std::to_string(held)) + " elements, the problem needs " +
         std::to_string(needed);
}

std::vector<BadInput> bad_inputs(const Stage& stage) {
  const ConvShape s = suited(shape_of(PROBLEM), stage);
  const int64_t inputs = s.input_count(), filters = s.filter_count(), outputs = s.output_count();
  std::vector<BadInput> bad = {
      {"groups = 4:", [](Call& c) { c.problem.groups = 4; }},
      {"s = 2: the dilated filter spans 9", [](Call& c) { c.problem.dil_w = 8; }},
      {"input is null", [](Call& c) { c.input = nullptr; }},
      {"filters is null", [](Call& c) { c.filters = nullptr; }},
      {"output is null", [](Call& c) { c.output = nullptr; }},
      {too_few("input", inputs - 1, inputs), [](Call& c) { c.input_count -= 1; }},
      {too_few("filters", 0, filters), [](Call& c) { c.filter_count = 0; }},
      {too_few("bias", s.total_K() - 1, s.total_K()), [](Call& c) { c.bias_count -= 1; }},
      {too_few("output", -1, outputs), [](Call& c) { c.output_count = -1; }},
      // The extents grew, the tensors did not.
      {too_few("input", inputs, inputs / 2 * 3), [](Call& c) { c.problem.n = 3; }},
      {too_few("filters", filters, filters / s.K * (s.K + 1)),
       [](Call& c) { c.problem.k += c.problem.groups; }},
      {"workspace is not aligned to 256 bytes", [](Call& c) { shift(c.workspace, 128); }},
  };
  // Each field too small, negative, and too large for 32 bits, which would make 1 of it. (What else is
  // wrong with extents: conv_shape_test.cpp.)
  for (const Extent& extent : EXTENTS) {
    for (const int64_t value : {extent.least - 1, INT64_MIN, (int64_t{1} << 32) + 1}) {
      ConvArguments arguments = to_arguments(s);
      arguments.*extent.given = value;
      bad.push_back({extent.name + (" = " + std::to_string(value)) + ":",
                     [=](Call& c) { c.problem = problem_of(arguments); }});
    }
  }
  for (const int bytes : {1, 2, 3}) {
    const std::string unaligned = " is not aligned to 4 bytes";
    bad.push_back({"input" + unaligned, [=](Call& c) { shift(c.input, bytes); }});
    bad.push_back({"filters" + unaligned, [=](Call& c) { shift(c.filters, bytes); }});
    bad.push_back({"bias" + unaligned, [=](Call& c) { shift(c.bias, bytes); }});
    bad.push_back({"output" + unaligned, [=](Call& c) { shift(c.output, bytes); }});
  }
  for (const int32_t relu : {-1, 2, 256}) {
    bad.push_back(
        {"relu = " + std::to_string(relu) + ": must be 0 or 1", [=](Call& c) { c.relu = relu; }});
  }
  if (!stage.fuses_relu) {
    bad.push_back({std::string("relu = 1: ") + stage.name + " does not apply ReLU",
                   [](Call& c) { c.relu = 1; }});
  }
  const std::size_t least = least_workspace_bytes(stage, s);
  if (least == 0) return bad;
  bad.push_back({"workspace holds 0 bytes", [](Call& c) { c.workspace = nullptr; }});
  bad.push_back({"workspace holds 0 bytes", [](Call& c) { c.workspace_bytes = 0; }});
  bad.push_back({"workspace holds " + std::to_string(least - 1) + " bytes, " + stage.name +
                     " needs at least " + std::to_string(least),
                 [=](Call& c) { c.workspace_bytes = least - 1; }});
  return bad;
}

class CApi : public DeviceTest, public testing::WithParamInterface<std::size_t> {
 protected:
  static const Stage& stage() { return stages().at(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Stage, CApi, testing::Range(std::size_t{0}, stages().size()),
                         [](const auto& info) { return std::string(stages()[info.param].name); });

TEST_P(CApi, BadInputIsRejectedAndTheNextCallWorks) {
  Caller caller(stage());
  for (const BadInput& bad : bad_inputs(stage())) {
    SCOPED_TRACE(bad.message);
    Call call = caller.call();
    bad.spoil(call);
    caller.expect_refused(call, bad.message);
    caller.expect_works(caller.call());
  }
}

TEST_P(CApi, TakesGroupsAndAllocatesTheWorkspace) {
  Caller caller(stage(), GROUPED);
  Call call = caller.call();
  caller.expect_works(call);
  call.workspace = nullptr;
  call.workspace_bytes = CONVLADDER_ALLOCATE_WORKSPACE;
  for (int i = 0; i < 3; ++i) caller.expect_works(call);
  call.problem.groups = 1;
  const ConvShape apart = suited(shape_of(GROUPED), stage());
  ConvShape together = apart;
  together.C *= together.groups, together.K *= together.groups, together.groups = 1;
  const bool takes = !stage().wants || !stage().wants(together);
  caller.expect_refused(call,
                        takes ? too_few("filters", apart.filter_count(), together.filter_count())
                              : "not for this shape: " + std::string(stage().name) + " wants ");
}

TEST_P(CApi, WorkspaceIsWhatCppSays) {
  const ConvShape shape = suited(shape_of(PROBLEM), stage());
  const convladder_problem problem = problem_of(to_arguments(shape));
  const std::size_t least = least_workspace_bytes(stage(), shape);
  std::size_t bytes = 1;
  const auto ask = [&](std::size_t limit) {
    return convladder_workspace_bytes(stage().name, &problem, limit, &bytes);
  };
  for (const std::size_t limit : {DEFAULT_WORKSPACE_LIMIT, least}) {
    EXPECT_EQ(ask(limit), CONVLADDER_SUCCESS);
    EXPECT_EQ(bytes, workspace_bytes(stage(), shape, limit));
  }
  if (least == 0) return;
  EXPECT_EQ(ask(least - 1), CONVLADDER_INVALID_ARGUMENT);
  EXPECT_EQ(bytes, least) << "written in spite of the error";
  EXPECT_EQ(message_of<InvalidArgument>([&] { workspace_bytes(stage(), shape, least - 1); }),
            convladder_last_error());
}

TEST_P(CApi, GradientsAreThoseOfCpp) {
  const Sample sample(suited(shape_of(PROBLEM), stage()));
  const ConvShape& s = sample.shape();
  const HostProblem host = sample.host();
  DeviceBuffer x(s.input_count()), w(s.filter_count()), dy(s.output_count());
  x.upload(host.input), w.upload(host.filters);
  dy.upload(std::vector<float>(s.output_count(), 0.25f).data());
  std::vector<float> results[2];
  for (const bool by_c : {false, true}) {
    DeviceBuffer dx(s.input_count()), dw(s.filter_count()), db(s.total_K());
    convladder_gradients g = {problem_of(to_arguments(s)),
                              x.data(),
                              w.data(),
                              dy.data(),
                              dx.data(),
                              dw.data(),
                              db.data(),
                              x.count(),
                              w.count(),
                              db.count(),
                              dy.count(),
                              nullptr,
                              CONVLADDER_ALLOCATE_WORKSPACE};
    if (stage().layout != NCHW) {
      EXPECT_EQ(convladder_run_gradients(stage().name, &g, nullptr), CONVLADDER_INVALID_ARGUMENT);
      EXPECT_EQ(convladder_last_error(),
                std::string(stage().name) + " has no gradients: they are [N,C,H,W]");
      return;
    }
    if (by_c) {
      EXPECT_EQ(convladder_run_gradients(stage().name, &g, nullptr), CONVLADDER_SUCCESS)
          << convladder_last_error();
    } else {
      Gradients own = {s,         x.data(),  w.data(),  dy.data(),  dx.data(), dw.data(),
                       db.data(), x.count(), w.count(), db.count(), dy.count()};
      const DeviceBuffer workspace(
          static_cast<int64_t>(gradient_workspace_bytes(stage(), own) / sizeof(float)));
      own.workspace = workspace.data();
      own.workspace_bytes = static_cast<std::size_t>(workspace.count()) * sizeof(float);
      run_gradients(stage(), own, nullptr);
      check_cuda(cudaDeviceSynchronize(), "the gradients");
    }
    for (const DeviceBuffer* each : {&dx, &dw, &db}) {
      EXPECT_EQ(each->guard_damage(), "");
      const std::vector<float> values = values_of(*each);
      results[by_c].insert(results[by_c].end(), values.begin(), values.end());
    }
    if (!by_c) continue;
    const auto expect_refused = [&](const convladder_gradients& bad, const std::string& message) {
      EXPECT_EQ(convladder_run_gradients(stage().name, &bad, nullptr), CONVLADDER_INVALID_ARGUMENT);
      EXPECT_EQ(convladder_last_error(), message);
    };
    convladder_gradients bad = g;
    bad.output_gradient = nullptr;
    expect_refused(bad, "output_gradient is null");
    bad = g, bad.input_count -= 1;
    expect_refused(bad, too_few("input", s.input_count() - 1, s.input_count()));
    bad = g, bad.input_gradient = nullptr, bad.filters = nullptr;  // not looked at then
    EXPECT_EQ(convladder_run_gradients(stage().name, &bad, nullptr), CONVLADDER_SUCCESS);
  }
  EXPECT_EQ(results[0], results[1]);
}

#ifndef CUDART_VERSION  // CUDA doesn't work in a child of a process that has used it
TEST_P(CApi, WorksInAForkedProcess) {
  Caller caller(stage());
  caller.expect_works(caller.call());  // its threads are the parent's
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);  // rather than hang
    caller.expect_works(caller.call());
#ifdef __SANITIZE_ADDRESS__
    _exit(HasFailure());  // what the parent has left in memory would be taken for a leak
#endif
    std::exit(HasFailure());
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  caller.expect_works(caller.call());
}
#endif

TEST(CApiAlone, ListsStagesAndBackend) {
  EXPECT_EQ(convladder_abi_version(), CONVLADDER_ABI_VERSION);
  EXPECT_STREQ(convladder_backend(), backend_name());
  const char* const* names = convladder_stage_names();
  for (const Stage& stage : stages()) EXPECT_STREQ(*names++, stage.name);
  EXPECT_EQ(*names, nullptr);
}

TEST(CApiAlone, AutoIsWhatCppChooses) {
  const convladder_problem problem = problem_of(arguments_of(PROBLEM));
  const char* stage = nullptr;
  char why[20] = "";
  for (const bool tuned : {false, true}) {
    if (tuned) EXPECT_EQ(convladder_tune(&problem, nullptr), CONVLADDER_SUCCESS);
    EXPECT_EQ(convladder_choose(&problem, &stage, why, sizeof why), CONVLADDER_SUCCESS);
    EXPECT_EQ(std::string(why).rfind("the fastest ", 0), 0u) << why;
    if (!tuned) {
      EXPECT_STREQ(stage, choose(shape_of(PROBLEM)).stage->name);
    }
  }
  Caller caller(auto_stage());
  caller.expect_works(caller.call());
  EXPECT_EQ(convladder_choose(nullptr, &stage, nullptr, 0), CONVLADDER_INVALID_ARGUMENT);
}

TEST(CApiAlone, OutputSizeIsUntouchedByAnError) {
  convladder_problem problem = problem_of(arguments_of(GROUPED));
  const ConvShape shape = shape_of(GROUPED);
  const std::vector<int64_t> expected = {2, 15, shape.P(), shape.Q()};
  std::vector<int64_t> size(4);
  EXPECT_EQ(convladder_output_size(&problem, size.data()), CONVLADDER_SUCCESS);
  EXPECT_EQ(size, expected);
  problem.stride_w = 0;
  EXPECT_EQ(convladder_output_size(&problem, size.data()), CONVLADDER_INVALID_ARGUMENT);
  EXPECT_STREQ(convladder_last_error(), "stride_w = 0: must be at least 1");
  EXPECT_EQ(size, expected);
}

TEST(CApiAlone, WhatIsNullOrUnknownIsNamedToItsThread) {
  const convladder_problem problem = problem_of(arguments_of(PROBLEM));
  const Call call = {};
  int64_t size[4];
  std::size_t bytes;
  const auto expect_refused = [](const std::string& message, convladder_status status) {
    EXPECT_EQ(status, CONVLADDER_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(convladder_last_error()).rfind(message, 0), 0u) << message;
  };
  expect_refused("problem is null", convladder_output_size(nullptr, size));
  expect_refused("size is null", convladder_output_size(&problem, nullptr));
  expect_refused("stage is null", convladder_workspace_bytes(nullptr, &problem, 0, &bytes));
  expect_refused("problem is null", convladder_workspace_bytes("01_naive", nullptr, 0, &bytes));
  expect_refused("bytes is null", convladder_workspace_bytes("01_naive", &problem, 0, nullptr));
  expect_refused("stage is null", convladder_run(nullptr, &call, nullptr));
  expect_refused("convolution is null", convladder_run("01_naive", nullptr, nullptr));
  std::thread([] { EXPECT_STREQ(convladder_last_error(), ""); }).join();
  EXPECT_STREQ(convladder_last_error(), "convolution is null");
  expect_refused(message_of<InvalidArgument>([] { find_stage("naive"); }),
                 convladder_run("naive", &call, nullptr));
  // A message that is too long is cut, not written past its end.
  expect_refused("stage 'xxx", convladder_run(std::string(100000, 'x').c_str(), &call, nullptr));
}

}  // namespace
}  // namespace convladder
