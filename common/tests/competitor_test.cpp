// Competitors in `bench`: that they take their turns, are checked, and can't do harm whatever they
// do; by fakes in this process, and by programs that answer in PyTorch's place.
#include "common/measure/competitor.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "common/core/launch.h"
#include "common/measure/bench_problem.h"
#include "common/measure/competitor_pytorch.h"
#include "common/measure/interrupt.h"
#include "common/measure/line_process.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

TEST(CompetitorBound, OfTf32) {
  const ConvShape shape;
  EXPECT_EQ(error_factor(shape, Precision::kFp32), 8);
  EXPECT_EQ(error_factor(shape, Precision::kTf32), 8 + 32768 + 16);
  // The worst that cutting 13 bits off both factors can do is within it, and little more is.
  const float factor = 2 - 0x1p-23f, cut = 2 - 0x1p-10f;
  const double error = double(factor) * factor - double(cut) * cut;
  const double allowed = 0x1p-24 * error_factor(shape, Precision::kTf32) * factor * factor;
  EXPECT_LT(error, allowed);
  EXPECT_GT(2.1 * error, allowed);
}

// ---- In this process ----

// Computes nothing: its check is what the test says.
class FakeCompetitor : public Competitor {
 public:
  FakeCompetitor() : Competitor({"cudnn", Precision::kFp32, "nchw", "1.2.3", "Fake 1.2.3"}) {}

  double bytes(const ConvShape& shape, bool) const override { return bytes_per_image * shape.N; }
  Choice prepare(const HostProblem&, const Reference&, Stopwatch&) override {
    ++prepared;
    if (on_prepare) on_prepare();
    return {"ALGORITHM", "remark"};
  }
  void time(Stopwatch&, Samples& samples) override {
    if (on_time) on_time();
    samples.cold.push_back(++timed);
    samples.warm.push_back(0.5);
  }
  Comparison check(const HostProblem&, const Reference&) override {
    Comparison result;
    result.pass = true;
    result.max_error_ratio = 0.25;
    return result;
  }
  void release() noexcept override { ++released; }

  double bytes_per_image = 1;
  int prepared = 0, timed = 0, released = 0;
  std::function<void()> on_prepare, on_time;
};

class CompetitorBenchTest : public DeviceTest {
 protected:
  CompetitorBenchTest() {
    machine_.l2_bytes = 1e6;
    machine_.peak_flops = machine_.fma_flops = machine_.copy_bytes = 1e30;
    problem_.name = "small";
    problem_.arguments.n = 2;
  }

  // Without stages: what becomes of the competitors is their own affair.
  BenchResult measure(const Competitors& competitors) {
    return ProblemBench({{}, 4, 1, competitors}, machine_, [](const std::string&) {}).run(problem_);
  }

  CompetitorRecord measured() { return measure({fake_}).competitors.at(0); }

  Machine machine_;
  Problem problem_;
  std::shared_ptr<FakeCompetitor> fake_ = std::make_shared<FakeCompetitor>();
};

TEST_F(CompetitorBenchTest, ARightOneIsTimedInEveryRound) {
  const CompetitorRecord record = measured();
  EXPECT_EQ(record.bench.record.status, "pass");
  EXPECT_EQ(record.bench.record.stage, "cuDNN FP32");
  EXPECT_EQ(record.bench.record.max_error_ratio, 0.25);
  EXPECT_EQ(record.bench.record.message, "remark");
  EXPECT_EQ(record.algorithm, "ALGORITHM");
  ASSERT_TRUE(record.bench.cold && record.bench.warm);
  EXPECT_EQ(record.bench.cold->count, 4);
  EXPECT_EQ(record.bench.cold->least, 3) << "the two warm-ups count";
  EXPECT_EQ(record.bench.warm->median, 0.5);
  EXPECT_GE(fake_->released, 1);
}

TEST_F(CompetitorBenchTest, FailuresStayWithTheOneThatFails) {
  const auto other = std::make_shared<FakeCompetitor>();
  fake_->on_time = [&] {
    if (fake_->timed == 3) throw std::runtime_error("died");
  };
  BenchResult result = measure({fake_, other});
  EXPECT_EQ(result.competitors[0].bench.record.status, "fail");
  EXPECT_EQ(result.competitors[0].bench.record.message, "died");
  EXPECT_EQ(fake_->timed, 3) << "had another turn";
  EXPECT_EQ(result.competitors[1].bench.record.status, "pass");
  EXPECT_EQ(result.error, "");

  fake_->on_prepare = [] { throw Skipped("not supported"); };
  result = measure({fake_, other});
  EXPECT_EQ(result.competitors[0].bench.record.status, "skipped");
  EXPECT_EQ(result.competitors[0].bench.record.message, "not supported");
  EXPECT_EQ(result.competitors[1].bench.record.status, "pass");

  fake_->on_prepare = [] { throw std::bad_alloc(); };
  EXPECT_EQ(measured().bench.record.message, "out of host memory");
}

TEST_F(CompetitorBenchTest, WhereMemoryIsShortTheBatchThatFitsIsNamed) {
  std::size_t free = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  problem_.arguments.n = 100;
  fake_->bytes_per_image = static_cast<double>(free) / 50;  // as other programs leave it, or less
  const CompetitorRecord record = measured();
  EXPECT_EQ(record.bench.record.status, "skipped");
  const std::string& message = record.bench.record.message;
  EXPECT_EQ(message.find("out of device memory: "), 0u) << message;
  expect_contains(message, " bytes needed for cuDNN FP32 beside the stages, ");
  const std::string lead = " free; --batch ";
  ASSERT_NE(message.find(lead), std::string::npos) << message;
  EXPECT_LT(std::stoi(message.substr(message.find(lead) + lead.size())), 100) << message;
  EXPECT_EQ(fake_->prepared, 0);
}

TEST_F(CompetitorBenchTest, LessThanTheBytesNeedIsImpossible) {
  machine_.l2_bytes = 0;
  machine_.copy_bytes = 1;
  machine_.peak_flops = 1e-30;  // the FLOP say nothing: TF32 and Winograd are not bound by them
  const CompetitorRecord record = measured();
  EXPECT_EQ(record.bench.record.status, "impossible");
  machine_.copy_bytes = 1e30;
  EXPECT_EQ(measured().bench.record.status, "pass");
}

TEST_F(CompetitorBenchTest, AnInterruptEndsTheProblem) {
  const InterruptScope scope;
  fake_->on_time = [] {
    raise(SIGINT);
    throw_if_interrupted();
  };
  EXPECT_THROW(measured(), Interrupted);
  EXPECT_GE(fake_->released, 1);
}

// ---- In another process ----

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<std::string> shell(const std::string& script) { return {"sh", "-c", script}; }

template <typename Action>
std::string failure(const Action& action) {
  return message_of<std::runtime_error>(action);
}

TEST(LineProcess, OneThatEndsSaysHow) {
  EXPECT_EQ(failure([] { LineProcess(shell("echo why >&2; exit 3")).read_line(10); }),
            "the process ended: exit status 3: why");
  EXPECT_EQ(failure([] { LineProcess(shell("kill -SEGV $$")).ask("go", 10); }),
            "the process ended: signal Segmentation fault");
  EXPECT_EQ(failure([] { LineProcess({"no_such_program"}).read_line(10); }),
            "the process ended: the program was not found");
}

TEST(LineProcess, OneThatNeverEndsItsLineIsEnded) {
  EXPECT_EQ(failure([] { LineProcess(shell("tr '\\0' x </dev/zero")).read_line(60); }),
            "an answer without an end");
}

// True once `pid` has ended, for which it has ten seconds.
bool ends(pid_t pid) {
  for (int i = 0; i < 1000; ++i) {
    if (kill(pid, 0) != 0) return true;
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string id, name, state;
    file >> id >> name >> state;
    if (state == "Z") return true;  // nobody has asked for its exit status yet
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST(LineProcess, ItsOwnChildrenEndWithIt) {
  pid_t grandchild = 0;
  {
    LineProcess process(shell("sleep 60 & echo $!; wait"));
    grandchild = std::stoi(process.read_line(10));
  }
  EXPECT_TRUE(ends(grandchild));
}

TEST(LineProcess, AnInterruptIsNotMistakenForItsEnd) {
  const InterruptScope scope;
  LineProcess process(shell("kill -INT $PPID; sleep 60"));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW(process.read_line(60), Interrupted);
  EXPECT_FALSE(process.running());
  EXPECT_LT(seconds_since(start), 20);
}

TEST(LineProcess, ItEndsWithAParentThatIsKilled) {
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    LineProcess process(shell("echo $$; sleep 60"));
    const pid_t child = std::stoi(process.read_line(10));
    if (write(pipes[1], &child, sizeof child) != sizeof child) _exit(1);
    raise(SIGKILL);
  }
  pid_t child = 0;
  ASSERT_EQ(read(pipes[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  waitpid(parent, nullptr, 0);
  EXPECT_TRUE(ends(child));
  close(pipes[0]);
  close(pipes[1]);
}

// ---- In PyTorch's place ----

// Answers as time_pytorch.py does; `faults` come before what is right. Each request is in the file
// `log` before it is answered.
std::string speaker(const std::string& faults, const std::string& log = "/dev/null") {
  return "echo ready 2.0 9.1.0\n"
         "while read -r command id rest; do\n"
         "  echo \"$command $id${rest:+ $rest}\" >> " +
         log +
         "\n"
         "  case $command-$id in\n" +
         faults +
         "    prepare-*|release-*) echo ok ;;\n"
         "    time-*) echo ok 1.5 0.5 0 ;;\n"
         "    check-*) echo ok 0.125 ;;\n"
         "  esac\n"
         "done\n";
}

class PyTorchTest : public CompetitorBenchTest {
 protected:
  // The three records, of a process that runs `script`.
  std::vector<CompetitorRecord> raced(const std::string& script, double seconds = 10) {
    return measure(pytorch_competitors({shell(script), 1e6, seconds})).competitors;
  }

  static std::string outcome(const CompetitorRecord& record) {
    return record.bench.record.status + ": " + record.bench.record.message;
  }
};

TEST_F(PyTorchTest, ThreeWaysInOneProcess) {
  const std::vector<CompetitorRecord> records = raced(speaker(""));
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].bench.record.stage, "PyTorch FP32");
  EXPECT_EQ(records[1].bench.record.stage, "PyTorch TF32");
  EXPECT_EQ(records[2].bench.record.stage, "PyTorch TF32 NHWC");
  for (const CompetitorRecord& record : records) {
    EXPECT_EQ(outcome(record), "pass: ");
    EXPECT_EQ(record.bench.record.max_error_ratio, 0.125);
    EXPECT_EQ(record.info.library, "PyTorch 2.0, cuDNN 9.1.0");
    EXPECT_EQ(record.info.version, "2.0");
    ASSERT_TRUE(record.bench.cold && record.bench.warm);
    EXPECT_EQ(record.bench.cold->median, 1.5);
    EXPECT_EQ(record.bench.warm->median, 0.5);
    EXPECT_EQ(record.bench.cold->count, 4);
    EXPECT_EQ(record.bench.host_late, 0);
  }
}

TEST_F(PyTorchTest, IsToldTheProblem) {
  const TempFolder folder;
  raced(speaker("", folder.path("requests")));
  const std::string requests = folder.read("requests");
  // 8 · 2^-24, and (8 + 32784) · 2^-24
  EXPECT_EQ(requests.find("prepare fp32_nchw fp32 nchw 1 4.76837158203125e-07 "
                          "2 1 1 1 1 1 1 1 1 0 0 1 1 1 1\n"),
            0u)
      << requests;
  expect_parts(requests, {"\nprepare tf32_nhwc tf32 nhwc 1 0.00195455551147",
                          "\ntime fp32_nchw\ntime tf32_nchw\ntime tf32_nhwc\ntime fp32_nchw\n",
                          "\ncheck tf32_nhwc\n", "\nrelease tf32_nhwc\n"});
}

// Of 2 MB; `$0` is the first argument behind `sh -c SCRIPT`.
TEST_F(PyTorchTest, IsToldTheFlushes) {
  const std::string told = "[ \"$0 $*\" = '2000000 16 1024' ] || exit 7\n";
  EXPECT_EQ(outcome(raced(told + speaker(""))[0]), "pass: ");
}

TEST_F(PyTorchTest, ALateHostIsInTheRecord) {
  const auto records = raced(speaker("time-tf32_nchw) echo ok 1.5 0.5 1 ;;\n"));
  EXPECT_EQ(records[0].bench.host_late, 0);
  EXPECT_EQ(records[1].bench.host_late, 4) << "rounds that count";
  EXPECT_EQ(outcome(records[1]), "pass: ");
}

TEST_F(PyTorchTest, WhatItReportsIsInTheRecord) {
  const auto records =
      raced(speaker("prepare-fp32_nchw) echo memory 8 GiB missing ;;\n"
                    "time-tf32_nchw) echo error lost ;;\n"
                    "check-tf32_nhwc) echo ok nan ;;\n"));
  EXPECT_EQ(outcome(records[0]), "skipped: 8 GiB missing");
  EXPECT_EQ(outcome(records[1]), "fail: lost");
  EXPECT_EQ(outcome(records[2]), "fail: an error beyond the bound, or NaN");
  EXPECT_FALSE(records[2].bench.cold);

  const auto beyond = raced(speaker("check-fp32_nchw) echo ok 1.01 ;;\n"));
  EXPECT_EQ(outcome(beyond[0]), "fail: an error beyond the bound, or NaN");
  EXPECT_EQ(beyond[0].bench.record.max_error_ratio, 1.01);
  EXPECT_EQ(outcome(beyond[1]), "pass: ");
}

TEST_F(PyTorchTest, AProcessThatDiesIsStartedAnewForTheNext) {
  const auto records = raced(speaker("prepare-fp32_nchw) echo bang >&2; exit 5 ;;\n"));
  EXPECT_EQ(outcome(records[0]), "fail: the process ended: exit status 5: bang");
  EXPECT_EQ(outcome(records[1]), "pass: ");
  EXPECT_EQ(outcome(records[2]), "pass: ");
}

TEST_F(PyTorchTest, AProcessThatDiesAmongTheRoundsTakesAllThreeAlong) {
  const auto records = raced(speaker("time-tf32_nchw) exit 5 ;;\n"));
  EXPECT_EQ(outcome(records[0]), "fail: the process is gone");
  EXPECT_EQ(outcome(records[1]), "fail: the process ended: exit status 5");
  EXPECT_EQ(outcome(records[2]), "fail: the process is gone");
}

TEST_F(PyTorchTest, AProcessThatAlwaysHangsIsGivenUp) {
  const auto start = std::chrono::steady_clock::now();
  const Competitors competitors =
      pytorch_competitors({shell(speaker("prepare-*) sleep 60 ;;\n")), 1e6, 2});
  for (int problem = 0; problem < 2; ++problem) {
    const auto records = measure(competitors).competitors;
    EXPECT_EQ(outcome(records[0]),
              problem == 0 ? "fail: no answer within 2 s" : "fail: given up after 3 starts");
  }
  EXPECT_LT(seconds_since(start), 30);
}

TEST_F(PyTorchTest, GarbageIsNoAnswer) {
  for (const char* garbage : {"ok", "ok 1 2", "ok 1 2 0 0", "ok 1 fast 0", "ok 0 1 0", "ok -1 1 0",
                              "ok nan 1 0", "ok 1 inf 0", "ok 1 2 3", "ok 1 2 nan", "1.5 0.5 0",
                              "Traceback (most recent call last):"}) {
    const auto records = raced(speaker("time-fp32_nchw) echo '" + std::string(garbage) + "' ;;\n"));
    EXPECT_EQ(records[0].bench.record.status, "fail") << garbage;
    EXPECT_EQ(records[0].bench.record.message.find("to 'time' it answered '"), 0u) << garbage;
    EXPECT_FALSE(records[0].bench.cold) << garbage;
  }
}

std::string refusal(const std::string& script) {
  return failure([&] { pytorch_competitors({shell(script), 1e6, 3}); });
}

TEST(PyTorchStart, WithoutPyTorchThereIsAReason) {
  EXPECT_EQ(refusal("echo error no module named torch"), "no module named torch");
  EXPECT_EQ(refusal("echo Segfault >&2; exit 1"), "the process ended: exit status 1: Segfault");
  EXPECT_EQ(refusal("echo ready 2.0"), "to 'start' it answered 'ready 2.0'");
  EXPECT_EQ(refusal("echo hello; sleep 60"), "to 'start' it answered 'hello'");
  EXPECT_EQ(refusal("sleep 60"), "no answer within 3 s");
}

}  // namespace
}  // namespace convladder
