// The C interface of libconvladder.so: what it computes, and every kind of bad input, each held
// against what the C++ interface says of the same input. This program holds the stages twice: in
// the library, and linked in for the C++ interface.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "common/bindings/convladder.h"
#include "common/check/backend.h"
#include "common/core/extents.h"
#include "common/tests/device_test.h"
#include "common/tests/on_device.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

// No two extents agree, nor do the two axes' strides, pads and dilations.
constexpr convladder_problem PROBLEM = {2, 3, 9, 8, 5, 4, 2, 2, 1, 1, 0, 1, 3, 1};
// Three groups, of 2 channels and 5 filters each.
constexpr convladder_problem GROUPED = {2, 6, 9, 8, 15, 4, 2, 2, 1, 1, 0, 1, 3, 3};

static_assert(sizeof(convladder_problem) == sizeof(ConvArguments));

ConvArguments arguments_of(const convladder_problem& problem) {
  ConvArguments arguments;
  std::memcpy(&arguments.n, &problem, sizeof arguments);  // the same fields in the same order
  return arguments;
}

ConvShape shape_of(const convladder_problem& p) { return make_conv_shape(arguments_of(p)); }

// The same call in C++: make_conv_shape(), then run().
void run_cpp(const Stage& stage, const convladder_convolution& c) {
  Convolution conv;
  conv.shape = shape_of(c.problem);
  conv.input = c.input, conv.input_count = c.input_count;
  conv.filters = c.filters, conv.filter_count = c.filter_count;
  conv.bias = c.bias, conv.bias_count = c.bias_count;
  conv.output = c.output, conv.output_count = c.output_count;
  conv.relu = c.relu != 0;
  conv.workspace = c.workspace, conv.workspace_bytes = c.workspace_bytes;
  run(stage, conv, nullptr);
}

// A problem on the device, with data that float32 computes exactly.
class Caller {
 public:
  explicit Caller(const Stage& stage, const convladder_problem& problem = PROBLEM)
      : stage_(stage),
        problem_(problem),
        sample_(arguments_of(problem)),
        trial_(stage, sample_.host()) {}

  convladder_convolution call() const {
    const Convolution arguments = trial_.arguments();
    convladder_convolution c = {};
    c.problem = problem_;
    c.input = arguments.input, c.input_count = arguments.input_count;
    c.filters = arguments.filters, c.filter_count = arguments.filter_count;
    c.bias = arguments.bias, c.bias_count = arguments.bias_count;
    c.output = arguments.output, c.output_count = arguments.output_count;
    c.workspace = arguments.workspace, c.workspace_bytes = arguments.workspace_bytes;
    return c;
  }

  void clear() { trial_.fill_nan(); }

  void expect_untouched() const {
    check_cuda(cudaDeviceSynchronize(), "after a rejected call");
    for (const float y : trial_.output()) ASSERT_TRUE(std::isnan(y)) << "the output was written";
    EXPECT_EQ(trial_.damage(), "");
  }

  void expect_refused(const convladder_convolution& c, const std::string& message) {
    clear();
    EXPECT_EQ(convladder_run(stage_.name, &c, nullptr), CONVLADDER_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(convladder_last_error()).rfind(message, 0), 0u)
        << convladder_last_error();
    expect_untouched();
  }

  void expect_right() const {
    trial_.wait();
    sample_.expect_right(trial_.output());
    EXPECT_EQ(trial_.damage(), "");
  }

  void expect_call_works(const convladder_convolution& c) {
    clear();
    EXPECT_EQ(convladder_run(stage_.name, &c, nullptr), CONVLADDER_SUCCESS)
        << convladder_last_error();
    EXPECT_STREQ(convladder_last_error(), "");
    expect_right();
  }

 private:
  const Stage& stage_;
  convladder_problem problem_;
  Sample sample_;
  Trial trial_;
};

// How the message of the rejection begins, and what is wrong.
struct BadInput {
  std::string message;
  std::function<void(convladder_convolution&)> spoil;
};

template <typename T>
void shift(T*& pointer, int bytes) {
  pointer = reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(pointer) + bytes);
}

// Each field too small, negative, too large for an int, and as large as it gets. (What does not go
// together: conv_shape_test.cpp.)
std::vector<BadInput> bad_fields() {
  std::vector<BadInput> bad;
  for (const Extent& extent : EXTENTS) {
    constexpr int64_t LARGEST = std::numeric_limits<int64_t>::max();
    for (const int64_t value : {extent.least - 1, -LARGEST - 1, int64_t{1} << 31, LARGEST}) {
      bad.push_back({std::string(extent.name) + " = " + std::to_string(value) + ":",
                     [=](convladder_convolution& c) {
                       ConvArguments arguments = arguments_of(c.problem);
                       arguments.*extent.given = value;
                       std::memcpy(&c.problem, &arguments, sizeof arguments);
                     }});
    }
  }
  return bad;
}

std::vector<BadInput> bad_inputs(const Stage& stage) {
  using C = convladder_convolution;
  std::vector<BadInput> bad = bad_fields();
  const auto add = [&](const std::string& message, const std::function<void(C&)>& spoil) {
    bad.push_back({message, spoil});
  };
  add("groups = 3:", [](C& c) { c.problem.groups = 3; });
  add("s = 2: the dilated filter spans 9", [](C& c) { c.problem.dil_w = 8; });
  add("input is null", [](C& c) { c.input = nullptr; });
  add("filters is null", [](C& c) { c.filters = nullptr; });
  add("output is null", [](C& c) { c.output = nullptr; });
  add("input holds 431 elements, the problem needs 432", [](C& c) { c.input_count -= 1; });
  add("filters holds 0 elements, the problem needs 120", [](C& c) { c.filter_count = 0; });
  add("bias holds 4 elements, the problem needs 5", [](C& c) { c.bias_count -= 1; });
  add("output holds -1 elements, the problem needs 200", [](C& c) { c.output_count = -1; });
  // The extents grew, the tensors did not.
  add("input holds 432 elements, the problem needs 648", [](C& c) { c.problem.n = 3; });
  add("filters holds 120 elements, the problem needs 144", [](C& c) { c.problem.k = 6; });
  for (const int bytes : {1, 2, 3}) {
    add("input is not aligned to 4 bytes", [=](C& c) { shift(c.input, bytes); });
    add("filters is not aligned to 4 bytes", [=](C& c) { shift(c.filters, bytes); });
    add("bias is not aligned to 4 bytes", [=](C& c) { shift(c.bias, bytes); });
    add("output is not aligned to 4 bytes", [=](C& c) { shift(c.output, bytes); });
  }
  if (!stage.fuses_relu) add("relu = 1: ", [](C& c) { c.relu = 1; });
  const std::size_t least = least_workspace_bytes(stage, shape_of(PROBLEM));
  add("workspace is not aligned to 256 bytes", [](C& c) { shift(c.workspace, 128); });
  if (least == 0) return bad;
  add("workspace holds 0 bytes", [](C& c) { c.workspace = nullptr; });
  add("workspace holds 0 bytes", [](C& c) { c.workspace_bytes = 0; });
  add("workspace holds", [=](C& c) { c.workspace_bytes = least - 1; });
  return bad;
}

class CApi : public DeviceTest, public testing::WithParamInterface<std::size_t> {
 protected:
  static const Stage& stage() { return stages().at(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Stage, CApi, testing::Range(std::size_t{0}, stages().size()),
                         [](const auto& info) { return std::string(stages()[info.param].name); });

TEST_P(CApi, BadInputIsRejectedAsInCpp) {
  Caller device(stage());
  for (const BadInput& bad : bad_inputs(stage())) {
    SCOPED_TRACE(bad.message);
    convladder_convolution call = device.call();
    bad.spoil(call);
    device.expect_refused(call, bad.message);
    const std::string message = convladder_last_error();
    EXPECT_EQ(message_of<InvalidArgument>([&] { run_cpp(stage(), call); }), message);
    device.expect_untouched();
    device.expect_call_works(device.call());
  }
}

TEST_P(CApi, TakesGroups) {
  Caller device(stage(), GROUPED);
  convladder_convolution call = device.call();
  device.expect_call_works(call);
  call.problem.groups = 1;
  device.expect_refused(call, "filters holds 240 elements, the problem needs 720");
}

// A flag that is neither 0 nor 1 is refused in C alone.
TEST_P(CApi, ReluMustBeAFlag) {
  Caller device(stage());
  for (const int32_t relu : {-1, 2, 256}) {
    convladder_convolution call = device.call();
    call.relu = relu;
    device.expect_refused(call, "relu = " + std::to_string(relu) + ": must be 0 or 1");
  }
}

TEST_P(CApi, AllocatesTheWorkspace) {
  Caller device(stage());
  convladder_convolution call = device.call();
  call.workspace = nullptr;
  call.workspace_bytes = CONVLADDER_ALLOCATE_WORKSPACE;
  for (int i = 0; i < 3; ++i) device.expect_call_works(call);
  call.input = nullptr;
  device.expect_refused(call, "input is null");
}

TEST_P(CApi, WorkspaceIsWhatCppSays) {
  const ConvShape shape = shape_of(PROBLEM);
  std::size_t bytes = 1;
  ASSERT_EQ(convladder_workspace_bytes(stage().name, &PROBLEM, DEFAULT_WORKSPACE_LIMIT, &bytes),
            CONVLADDER_SUCCESS)
      << convladder_last_error();
  EXPECT_EQ(bytes, workspace_bytes(stage(), shape));
  const std::size_t least = least_workspace_bytes(stage(), shape);
  EXPECT_EQ(convladder_workspace_bytes(stage().name, &PROBLEM, least, &bytes), CONVLADDER_SUCCESS);
  EXPECT_EQ(bytes, least);
  if (least == 0) return;
  EXPECT_EQ(convladder_workspace_bytes(stage().name, &PROBLEM, least - 1, &bytes),
            CONVLADDER_INVALID_ARGUMENT);
  EXPECT_EQ(bytes, least) << "written in spite of the error";
  EXPECT_EQ(message_of<InvalidArgument>([&] { workspace_bytes(stage(), shape, least - 1); }),
            convladder_last_error());
}

// Each with its own stream and tensors; one of them makes every other call a bad one.
TEST_P(CApi, ServesThreadsAtOnce) {
  const auto work = [this](bool also_badly) {
    Caller device(stage());
    cudaStream_t stream = nullptr;
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    for (int i = 0; i < 20; ++i) {
      device.clear();
      check_cuda(cudaDeviceSynchronize(), "before the stage");
      convladder_convolution call = device.call();
      if (also_badly && i % 2 == 1) {
        call.problem.groups = 7;
        EXPECT_EQ(convladder_run(stage().name, &call, stream), CONVLADDER_INVALID_ARGUMENT);
        EXPECT_EQ(std::string(convladder_last_error()).rfind("groups = 7:", 0), 0u);
      } else {
        EXPECT_EQ(convladder_run(stage().name, &call, stream), CONVLADDER_SUCCESS);
        EXPECT_STREQ(convladder_last_error(), "");
        device.expect_right();
      }
    }
    cudaStreamDestroy(stream);
  };
  std::thread other(work, true);
  work(false);
  other.join();
}

#ifndef CUDART_VERSION  // CUDA doesn't work in a child of a process that has used it
TEST_P(CApi, WorksInAForkedProcess) {
  Caller device(stage());
  device.expect_call_works(device.call());  // its threads are the parent's
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);  // rather than hang
    device.expect_call_works(device.call());
#ifdef __SANITIZE_ADDRESS__
    _exit(HasFailure());  // what the parent has left in memory would be taken for a leak
#endif
    std::exit(HasFailure());
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  device.expect_call_works(device.call());
}
#endif

TEST(CApiAlone, ListsStagesAndBackend) {
  EXPECT_EQ(convladder_abi_version(), CONVLADDER_ABI_VERSION);
  EXPECT_STREQ(convladder_backend(), backend_name());
  const char* const* names = convladder_stage_names();
  for (const Stage& stage : stages()) EXPECT_STREQ(*names++, stage.name);
  EXPECT_EQ(*names, nullptr);
}

TEST(CApiAlone, OutputSize) {
  int64_t size[4] = {};
  ASSERT_EQ(convladder_output_size(&PROBLEM, size), CONVLADDER_SUCCESS) << convladder_last_error();
  const ConvShape shape = shape_of(PROBLEM);
  const int64_t expected[4] = {2, 5, shape.P(), shape.Q()};
  EXPECT_EQ(std::memcmp(size, expected, sizeof size), 0);
  ASSERT_EQ(convladder_output_size(&GROUPED, size), CONVLADDER_SUCCESS);
  EXPECT_EQ(size[1], 15);

  int64_t untouched[4] = {-1, -2, -3, -4};
  convladder_problem bad = PROBLEM;
  bad.stride_w = 0;
  EXPECT_EQ(convladder_output_size(&bad, untouched), CONVLADDER_INVALID_ARGUMENT);
  EXPECT_STREQ(convladder_last_error(), "stride_w = 0: must be at least 1");
  EXPECT_EQ(untouched[0], -1);
  EXPECT_EQ(untouched[3], -4);
}

TEST(CApiAlone, NullArguments) {
  const auto expect_null = [](const char* name, convladder_status status) {
    EXPECT_EQ(status, CONVLADDER_INVALID_ARGUMENT);
    EXPECT_EQ(convladder_last_error(), std::string(name) + " is null");
  };
  int64_t size[4];
  std::size_t bytes;
  const convladder_convolution call = {};
  expect_null("problem", convladder_output_size(nullptr, size));
  expect_null("size", convladder_output_size(&PROBLEM, nullptr));
  expect_null("stage", convladder_workspace_bytes(nullptr, &PROBLEM, 0, &bytes));
  expect_null("problem", convladder_workspace_bytes("01_naive", nullptr, 0, &bytes));
  expect_null("bytes", convladder_workspace_bytes("01_naive", &PROBLEM, 0, nullptr));
  expect_null("stage", convladder_run(nullptr, &call, nullptr));
  expect_null("convolution", convladder_run("01_naive", nullptr, nullptr));
}

TEST(CApiAlone, UnknownStage) {
  const convladder_convolution call = {};
  EXPECT_EQ(convladder_run("naive", &call, nullptr), CONVLADDER_INVALID_ARGUMENT);
  EXPECT_EQ(message_of<InvalidArgument>([] { find_stage("naive"); }), convladder_last_error());
  // A message that is too long is cut, not written past its end.
  EXPECT_EQ(convladder_run(std::string(100000, 'x').c_str(), &call, nullptr),
            CONVLADDER_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(convladder_last_error()).rfind("stage 'xxx", 0), 0u);
}

TEST(CApiAlone, EachThreadHasItsOwnLastError) {
  ASSERT_EQ(convladder_output_size(nullptr, nullptr), CONVLADDER_INVALID_ARGUMENT);
  std::thread([] {
    EXPECT_STREQ(convladder_last_error(), "");
    convladder_run(nullptr, nullptr, nullptr);
    EXPECT_STREQ(convladder_last_error(), "stage is null");
  }).join();
  EXPECT_STREQ(convladder_last_error(), "problem is null");
}

}  // namespace
}  // namespace convladder
