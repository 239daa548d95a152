// What every stage does when something goes wrong around it: an error of the runtime is reported
// with its reason, nothing leaks, and the next call works. And what must hold when many calls are
// made, from one place or from several at once.
#include <atomic>
#include <cstring>
#include <future>
#include <thread>

#include "common/tests/support.h"
#ifndef CUDART_VERSION
#include "common/simulator/fault.h"
#endif

namespace convladder {
namespace {

const Stage& stage() { return tested_stage(); }

constexpr const char* SMALL = "n=2 c=3 h=9 w=8 k=5 r=3 s=2";
constexpr const char* MEDIUM = "n=2 c=7 h=19 w=37 k=70 r=3 s=5 pad_h=1 stride_w=2";
constexpr const char* LONG_SUMS = "n=2 c=70 h=9 w=8 k=5 r=3 s=2";  // stage 11 cuts them in parts

class FaultsTest : public DeviceTest {};

Sample sample_of(const char* extents, DataKind kind = DataKind::kSmallInteger) {
  return Sample(suited(shape_of(extents), stage()), kind);
}

// ---- Memory that is short, on a GPU ----

// Takes device memory until about `leave` bytes are free.
class MemoryHog {
 public:
  explicit MemoryHog(double leave) {
    for (double size = free_device_memory() - leave; size >= 1 << 21; size /= 2) {
      if (free_device_memory() - size < leave) continue;
      void* block = nullptr;
      if (cudaMalloc(&block, static_cast<std::size_t>(size)) == cudaSuccess) {
        blocks_.push_back(block);
      } else {
        cudaGetLastError();
      }
    }
  }
  ~MemoryHog() {
    for (void* block : blocks_) cudaFree(block);
  }
  MemoryHog(const MemoryHog&) = delete;

 private:
  std::vector<void*> blocks_;
};

// Runs the stage on the default stream, whose cuBLAS handle is made once.
void expect_trial_right(const Sample& sample) {
  const Trial trial(stage(), sample.host());
  trial.enqueue();
  trial.wait();
  sample.expect_right(trial.output(), stage().precision);
}

// Tensors of 64 MiB, and stage 02's workspace: the memory gives out at each of them in turn.
TEST_F(FaultsTest, MemoryThatIsShortIsReported) {
  if (!on_gpu()) GTEST_SKIP() << "needs a GPU: this machine's own memory is not used up";
  const Sample large = sample_of("n=16 c=16 h=w=256 k=16 r=s=3 pad_h=pad_w=1");
  const Sample after = sample_of(SMALL);
  for (const Sample* sample : {&large, &after}) expect_trial_right(*sample);  // loads the kernels
  const double free = free_device_memory();
  int shortages = 0;
  for (const int mebibytes : {16, 32, 80, 112, 140, 300, 500, 700, 3000}) {
    SCOPED_TRACE(std::to_string(mebibytes) + " MiB left");
    {
      const MemoryHog hog(double(mebibytes) * (1 << 20));
      try {
        expect_trial_right(large);
      } catch (const CudaError& error) {
        ++shortages;
        EXPECT_EQ(error.code, cudaErrorMemoryAllocation);
        expect_contains(error.what(), " bytes needed, ");
      }
    }
    expect_trial_right(after);
  }
  EXPECT_GE(shortages, 3);
  EXPECT_LT(shortages, 9) << "not even the most was enough";
  EXPECT_GE(free_device_memory(), free) << "memory was lost";  // more: the driver let go of some
}

// ---- Errors around a call ----

// Leaves an error for whoever asks next.
void leave_an_error() {
  void* pointer = nullptr;
  ASSERT_EQ(cudaMalloc(&pointer, std::size_t{1} << 60), cudaErrorMemoryAllocation);
}

TEST_F(FaultsTest, AnEarlierErrorIsReportedOnceAndAsEarlier) {
  const Sample sample = sample_of(SMALL);
  OnDevice device(stage(), sample.host());
  leave_an_error();
  const std::string message =
      message_of<CudaError>([&] { run(stage(), device.arguments(), device.stream()); });
  EXPECT_EQ(message,
            std::string("an earlier CUDA call: ") + cudaGetErrorString(cudaErrorMemoryAllocation));
  check_cuda(cudaDeviceSynchronize(), "after the call");
  device.expect_output_untouched();
  sample.expect_right(device.run_stage(), stage().precision);
}

#ifndef CUDART_VERSION  // a GPU refuses no launch on demand
TEST_F(FaultsTest, ALaunchThatIsRefusedIsReported) {
  for (const char* extents : {SMALL, LONG_SUMS}) {
    const Sample sample = sample_of(extents);
    OnDevice device(stage(), sample.host());
    int bad_launch = 0;
    for (;; ++bad_launch) {
      simulator::inject_fault(simulator::Call::kLaunch, bad_launch);
      std::string message;
      try {
        run(stage(), device.arguments(), device.stream());
      } catch (const CudaError& error) {
        message = error.what();
      }
      if (!simulator::clear_fault()) break;  // it makes fewer launches
      EXPECT_EQ(message.rfind("kernel launch: ", 0), 0u) << message;
      sample.expect_right(device.run_stage(), stage().precision);
    }
    EXPECT_GE(bad_launch, 1) << "no launch was seen";
  }
}
#endif

// On the device, but for the input, which is in the page of null.
Convolution with_a_wild_pointer(const OnDevice& device) {
  Convolution conv = device.arguments();
  conv.input = reinterpret_cast<const float*>(std::uintptr_t{256});
  return conv;
}

// A kernel that reads what is not there leaves the GPU unusable, for this process: so it is done in
// another. Exits with 0 where every call after it says why it can't be done.
[[noreturn]] void use_a_broken_context() {
  const Sample sample = sample_of(SMALL);
  OnDevice device(stage(), sample.host());
  const std::string first = message_of<CudaError>([&] {
    run(stage(), with_a_wild_pointer(device), device.stream());
    check_cuda(cudaStreamSynchronize(device.stream()), "the stage");
  });
  const std::string second =
      message_of<CudaError>([&] { run(stage(), device.arguments(), device.stream()); });
  std::fprintf(stderr, "first: %s\nsecond: %s\n", first.c_str(), second.c_str());
  const char* const reason = "illegal memory access";
  const bool said =
      first.find(reason) != std::string::npos && second.find(reason) != std::string::npos;
  std::_Exit(said ? 0 : 1);  // no destructor could free anything any more
}

TEST_F(FaultsTest, AContextThatIsBrokenStaysSo) {
  if (!on_gpu()) GTEST_SKIP() << "the simulator has none that breaks";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(use_a_broken_context(), testing::ExitedWithCode(0),
              "second: .*illegal memory access");
}

#if !defined(CUDART_VERSION) && !defined(__SANITIZE_ADDRESS__)
TEST_F(FaultsTest, AWildPointerFailsItsKernelAlone) {
  const Sample sample = sample_of(SMALL);
  OnDevice device(stage(), sample.host());
  const std::string message =
      message_of<CudaError>([&] { run(stage(), with_a_wild_pointer(device), device.stream()); });
  if (message.find("invalid argument") == std::string::npos) {  // a copy of it is refused
    expect_parts(message, {"illegal memory access", "touches memory that is nobody's (0x"});
  }
  sample.expect_right(device.run_stage());
}
#endif

// ---- Many calls ----

// Device memory in use, in whatever unit shows a leak.
double memory_in_use() {
#ifdef CUDART_VERSION
  return -free_device_memory();
#else
  return static_cast<double>(simulator::allocation_count());
#endif
}

TEST_F(FaultsTest, ManyCallsTakeNoMemory) {
  const int calls = on_gpu() ? 1000 : 100;
  const Sample sample = sample_of(SMALL);
  OnDevice device(stage(), sample.host());
  device.run_stage();  // makes cuBLAS's handle
  double taken = 0;
  for (int round = 0; round < 3; ++round) {  // others may use the GPU, too
    const double before = memory_in_use();
    for (int i = 0; i < calls; ++i) run(stage(), device.arguments(), device.stream());
    check_cuda(cudaStreamSynchronize(device.stream()), stage().name);
    taken = memory_in_use() - before;
    if (taken <= 0) break;
  }
  EXPECT_LE(taken, 0);
  sample.expect_right(device.output(), stage().precision);
}

// Real numbers, so that another order of additions shows; of two shapes, which a stage must not mix up.
TEST_F(FaultsTest, TwoHostThreadsAtOnceGetTheSameBitsInEveryRun) {
  const Sample samples[] = {sample_of(MEDIUM, DataKind::kUniform),
                            sample_of(SMALL, DataKind::kUniform)};
  const auto work = [](const Sample& sample, int runs) {
    OnDevice device(stage(), sample.host());
    const std::vector<float> first = device.run_stage();
    sample.expect_right(first, stage().precision);
    for (int i = 1; i < runs; ++i) {
      const std::vector<float> again = device.run_stage();
      ASSERT_EQ(std::memcmp(again.data(), first.data(), first.size() * sizeof(float)), 0)
          << "run " << i << " gave other bits";
    }
    device.expect_no_damage();
  };
  const int runs = on_gpu() ? 100 : 8;  // a small problem's take less time each
  std::future<void> other = std::async(std::launch::async, [&] { work(samples[1], 8 * runs); });
  work(samples[0], runs);
  other.get();
}

#ifdef CUDART_VERSION
// Holds a stream up until the flag is set.
void wait_for_flag(void* flag) {
  while (!*static_cast<std::atomic<bool>*>(flag)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Each stream's input comes from a copy that waits until both stages are enqueued: a stage that
// waited for its work would never come back, one on another stream would read NaN.
TEST_F(FaultsTest, TwoStreamsWithDelayedProducers) {
  const Sample samples[] = {sample_of(MEDIUM), sample_of(SMALL)};
  std::unique_ptr<OnDevice> devices[2];
  std::vector<DeviceBuffer> inputs;
  for (int i = 0; i < 2; ++i) {
    devices[i] = std::make_unique<OnDevice>(stage(), samples[i].host());
    devices[i]->run_stage();  // makes cuBLAS's handle for its stream
    devices[i]->clear();
    inputs.emplace_back(samples[i].shape().input_count());
    inputs[i].upload(samples[i].host().input);
    const Convolution conv = devices[i]->arguments();
    check_cuda(cudaMemset(const_cast<float*>(conv.input), 0xFF, conv.input_count * sizeof(float)),
               "cudaMemset");
  }
  check_cuda(cudaDeviceSynchronize(), "before the stages");
  std::atomic<bool> go{false};
  for (int i = 0; i < 2; ++i) {
    const Convolution conv = devices[i]->arguments();
    cudaStream_t const stream = devices[i]->stream();
    check_cuda(cudaLaunchHostFunc(stream, wait_for_flag, &go), "cudaLaunchHostFunc");
    check_cuda(cudaMemcpyAsync(const_cast<float*>(conv.input), inputs[i].data(),
                               conv.input_count * sizeof(float), cudaMemcpyDeviceToDevice, stream),
               "cudaMemcpyAsync");
    run(stage(), conv, stream);
  }
  for (const auto& device : devices) {
    EXPECT_EQ(cudaStreamQuery(device->stream()), cudaErrorNotReady) << "not held up";
  }
  cudaGetLastError();
  go = true;
  for (int i = 0; i < 2; ++i) {
    check_cuda(cudaStreamSynchronize(devices[i]->stream()), stage().name);
    samples[i].expect_right(devices[i]->output(), stage().precision);
  }
}
#else
// What can be seen of streams in the simulator: everything goes to the one that was given.
TEST_F(FaultsTest, WorkGoesToTheStreamThatIsGiven) {
  using simulator::work_on;
  const Sample samples[] = {sample_of(MEDIUM), sample_of(SMALL)};
  OnDevice first(stage(), samples[0].host()), second(stage(), samples[1].host());
  const int64_t elsewhere = work_on(nullptr);
  first.run_stage();
  const int64_t on_first = work_on(first.stream());
  EXPECT_GT(on_first, 0);
  second.run_stage();
  EXPECT_GT(work_on(second.stream()), 0);
  EXPECT_EQ(work_on(first.stream()), on_first);
  EXPECT_EQ(work_on(nullptr), elsewhere);
}
#endif

}  // namespace
}  // namespace convladder
