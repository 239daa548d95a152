// The bugs that the counting simulator finds in a stage: each in every order of the threads, with its
// place; and kernels without a bug are clean. More kinds of them: the programs of programs_test.py.
#include <cuda_pipeline.h>

#include <functional>

#include "common/tests/launch.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

constexpr int THREADS = 64;

// "common/tests/bug_finding_test.cu:42", where line 42 ends with the comment `mark`.
std::string line_of(const std::string& mark) {
  const std::string path = "common/tests/bug_finding_test.cu";
  std::ifstream file(CONVLADDER_SOURCE_DIR "/" + path);
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::size_t at = line.find("  // " + mark);
    if (at != std::string::npos && at + 5 + mark.size() == line.size()) {
      return path + ":" + std::to_string(number);
    }
  }
  return "no line with the comment " + mark;
}

// ---- Out of bounds ----

__global__ void stray(const float* x, float* y, int from, int to) {
  const int t = threadIdx.x, i = blockIdx.x * THREADS + t;
  const float value = x[t == 37 ? from : t];      // reads beyond
  y[blockIdx.x == 3 && t == 5 ? to : i] = value;  // writes beyond
}

__global__ void stray_in_shared(float* y, int from, int to) {
  __shared__ float tile[THREADS];
  const int t = threadIdx.x;
  tile[t] = 1.0f;
  __syncthreads();
  if (t == 1) tile[to] = 2.0f;  // writes beyond the tile
  __syncthreads();
  y[t] = tile[t == 2 ? from : t];  // reads beyond the tile
}

[[maybe_unused]] __global__ void misaligned_quad(const float* x, float* y) {
  const float4 quad = *reinterpret_cast<const float4*>(x + 2 + threadIdx.x * 4);
  y[threadIdx.x] = quad.x + quad.y + quad.z + quad.w;
}

// ---- Memory that nobody has written ----

__global__ void read_output(float* y, int last) {
  if (static_cast<int>(threadIdx.x) < last) y[threadIdx.x] = 0.0f;
  y[threadIdx.x] += 1.0f;  // reads the output
}

__global__ void read_shared_unwritten(float* y) {
  __shared__ float tile[THREADS];
  if (threadIdx.x != 9) tile[threadIdx.x] = 1.0f;
  __syncthreads();
  y[blockIdx.x * THREADS + threadIdx.x] = tile[threadIdx.x];  // reads the hole
}

// ---- Races ----

__global__ void reuse_too_early(const float* x, float* y, int rounds) {
  __shared__ float tile[THREADS];
  float sum = 0.0f;
  for (int round = 0; round < rounds; ++round) {
    tile[threadIdx.x] = x[round * THREADS + threadIdx.x];  // writes the next round's
    __syncthreads();
    sum += tile[(threadIdx.x + 1) % THREADS];  // reads this round's
  }
  y[threadIdx.x] = sum;
}

__global__ void write_twice(float* y) {
  __shared__ float tile[THREADS];
  tile[threadIdx.x / 2] = 1.0f;  // both write
  __syncthreads();
  y[threadIdx.x] = tile[threadIdx.x / 2];
}

__global__ void exchange(float* y, bool barrier) {
  y[threadIdx.x] = 1.0f;  // gives
  if (barrier) __syncthreads();
  y[threadIdx.x + THREADS] = y[(threadIdx.x + 1) % THREADS];  // takes
}

__global__ void accumulate(float* y) {
  if (threadIdx.x == 0) y[0] += 1.0f;  // adds up
}

__global__ void write_in_every_block(float* y) { y[threadIdx.x] = 1.0f; }  // all write

__global__ void read_and_one_writes(float* x, float* y) {
  y[blockIdx.x * blockDim.x + threadIdx.x] = x[0];
  if (blockIdx.x == 7 && threadIdx.x == 0) x[0] = 2.0f;
}

// Each warp adds up 32 values with its lanes in step: __syncwarp() is enough.
__global__ void reduce_in_warp(float* y) {
  __shared__ float tile[THREADS];
  const unsigned lane = threadIdx.x % 32;
  tile[threadIdx.x] = 1.0f;
  __syncwarp();
  for (unsigned step = 16; step > 0; step /= 2) {
    const float other = lane < step ? tile[threadIdx.x + step] : 0.0f;
    __syncwarp();
    if (lane < step) tile[threadIdx.x] += other;
    __syncwarp();
  }
  if (lane == 0) y[blockIdx.x * 2 + threadIdx.x / 32] = tile[threadIdx.x];
}

// ---- Asynchronous copies ----

__global__ void copy_tile(const float* x, float* y, bool wait, bool barrier) {
  __shared__ float tile[THREADS];
  __pipeline_memcpy_async(&tile[threadIdx.x], &x[threadIdx.x], 4);  // copies
  __pipeline_commit();
  if (wait) __pipeline_wait_prior(0);
  if (barrier) __syncthreads();
  y[threadIdx.x] = tile[wait ? threadIdx.x / 2 : threadIdx.x];  // reads the copy
  __pipeline_wait_prior(0);
}

__global__ void copy_over_readers(const float* x, float* y) {
  __shared__ float tile[THREADS];
  tile[threadIdx.x] = 0.0f;
  __syncthreads();
  y[threadIdx.x] = tile[(threadIdx.x + 1) % THREADS];  // still reads
  __pipeline_memcpy_async(&tile[threadIdx.x], &x[threadIdx.x], 4);
  __pipeline_commit();
  __syncthreads();
  __pipeline_wait_prior(0);
}

// ---- Kernels without an end ----

__global__ void loop_forever(float* y, float step, bool barriers) {
  for (float sum = 0.0f; sum < 1.0f; sum += step) {
    if (barriers) __syncthreads();
    y[threadIdx.x] = sum;
  }
}

struct Alive {
  float* y;
  ~Alive() { *y = 0.0f; }
};

__global__ void wait_at_two_places(float* y) {
  y[threadIdx.x] = 1.0f;
  const Alive alive = {y + threadIdx.x};
  if (threadIdx.x % 32 == 5) __syncthreads();
  if (threadIdx.x % 32 != 5) __shfl_sync(~0u, 1, 0);
}

template <typename... Params, typename... Args>
std::function<void()> launching(void (*kernel)(Params...), dim3 grid, Args... args) {
  return [=] { launch(kernel, grid, THREADS, nullptr, args...); };
}

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const CudaError& error) {
    return error.what();
  }
  return "";
}

TEST(BugFinding, NamesTheBugAndItsPlaceAndNothingElse) {
  DeviceBuffer input(1024), output(1024);
  const std::vector<float> ones(1024, 1.0f);
  float* const x = input.data();
  float* const y = output.data();
  float* freed = nullptr;
  check_cuda(cudaMalloc(&freed, 1 << 20), "cudaMalloc");
  check_cuda(cudaMemset(freed, 0, 1 << 20), "cudaMemset");
  check_cuda(cudaFree(freed), "cudaFree");
  struct Case {
    std::string what;
    std::function<void()> work;
    std::vector<std::string> parts;  // of the message; none: there is no bug
    std::vector<uint64_t> seeds = {0, 1, 2};
  };
  const std::string shared = "4 bytes of shared memory", global = "4 bytes of global memory";
  std::vector<Case> cases = {
      {"nothing", launching(stray, 4, x, y, 1023, 1023), {}},
      {"writes past the end",
       launching(stray, 4, x, y, 0, 1024),
       {"block (3,0,0), thread (5,0,0): writes " + global +
        " out of bounds, 0 bytes past the end, at " + line_of("writes beyond")}},
      {"writes before the begin",
       launching(stray, 4, x, y, 0, -1),
       {"writes " + global + " out of bounds, 4 bytes before the begin"}},
      {"copies from past the end",
       launching(copy_tile, 1, x + 1024 - 16, y, true, true),
       {"thread (16,0,0): copies " + global + " out of bounds, 0 bytes past the end, at " +
        line_of("copies")},
       {0}},
      {"reads what was freed",
       launching(stray, 1, freed, y, 0, 0),
       {"reads " + global + " out of bounds: it has been freed"}},
#ifndef __clang__  // for which a float4 is four accesses
      {"misaligned",
       launching(misaligned_quad, 1, x, y),
       {"reads 16 bytes of global memory, not aligned to as many"}},
#endif
      {"writes its output",
       launching(read_output, 1, y, THREADS),
       {}},  // which then counts no more
      {"reads its output",
       launching(read_output, 1, y, 40),
       {"reads " + global + " that nobody has written, at " + line_of("reads the output")}},
      // In every block anew: what the block before left there is not defined.
      {"reads shared memory that is not written",
       launching(read_shared_unwritten, 2, y),
       {"thread (9,0,0): reads " + shared + " (tile + 36 bytes) that nobody has written, at " +
        line_of("reads the hole")}},
      {"one round", launching(reuse_too_early, 1, x, y, 1), {}},
      {"second barrier is missing",
       launching(reuse_too_early, 1, x, y, 3),
       {"data race", "of shared memory (tile + ", line_of("writes the next round's"),
        line_of("reads this round's"), "both come after 1 barrier)"}},
      {"two write one word",
       launching(write_twice, 1, y),
       {"thread (1,0,0): data race: writes " + shared + " (tile + 0 bytes) at " +
        line_of("both write") + "; block (0,0,0), thread (0,0,0) touched it at " +
        line_of("both write")},
       {0}},
      {"exchange with a barrier", launching(exchange, 1, x, true), {}},
      {"exchange without one",
       launching(exchange, 1, x, false),
       {"data race", "of global memory", line_of("gives"), line_of("takes")}},
      {"blocks add to one word",
       launching(accumulate, 5, x),
       {"data race", line_of("adds up"), "nothing orders the blocks of a grid"}},
      {"blocks write one word",
       launching(write_in_every_block, 2, y),
       {"data race: writes " + global, line_of("all write"),
        "nothing orders the blocks of a grid"}},
      {"a block writes what others read", launching(read_and_one_writes, 9, x, y), {"data race"}},
      {"one block adds", launching(accumulate, 1, x), {}},  // launches are ordered
      {"launches are ordered", launching(accumulate, 1, x), {}},
      {"lanes of a warp in step", launching(reduce_in_warp, 2, y), {}},
      {"copy, waited for", launching(copy_tile, 1, x, y, true, true), {}},
      {"copy without a barrier", launching(copy_tile, 1, x, y, true, false), {"data race"}, {0}},
      {"copy not waited for",
       launching(copy_tile, 1, x, y, false, false),
       {"reads " + shared + " (tile + 0 bytes), into which an asynchronous copy is under way",
        line_of("reads the copy")},
       {0}},
      {"copy over readers",
       launching(copy_over_readers, 1, x, y),
       {"of shared memory (tile + ", line_of("still reads")}},
      {"a long loop", launching(loop_forever, 1, y, 0.001f, true), {}},
      {"a loop without end",
       launching(loop_forever, 1, y, 0.0f, false),
       {"block (0,0,0), thread (0,0,0): has come to no end after 16777216 steps, at "
        "common/tests/bug_finding_test.cu:"},
       {0}},
      {"barriers without end",
       launching(loop_forever, 1, y, 0.0f, true),
       {"has come to no end after 65536 barriers, at "},
       {0}}};
  // One past the end, one before the begin (both in a guard zone of the buffer), and far away.
  for (const int at : {1024, -1, 1 << 26}) {
    cases.push_back(
        {"reads at " + std::to_string(at),
         launching(stray, 1, x, y, at, 0),
         {"kernel stray, block (0,0,0), thread (37,0,0): reads " + global + " out of bounds",
          line_of("reads beyond")}});
  }
  for (const int at : {THREADS, THREADS + 100, -1}) {
    cases.push_back({"writes at " + std::to_string(at),
                     launching(stray_in_shared, 1, y, 0, at),
                     {"thread (1,0,0): writes " + shared + " out of bounds, at " +
                      line_of("writes beyond the tile")}});
    cases.push_back({"reads at " + std::to_string(at),
                     launching(stray_in_shared, 1, y, at, 0),
                     {"thread (2,0,0): reads " + shared + " out of bounds, at " +
                      line_of("reads beyond the tile")}});
  }
  for (const auto& [what, work, parts, seeds] : cases) {
    for (const uint64_t seed : seeds) {
      SCOPED_TRACE(what + ", seed " + std::to_string(seed));
      input.upload(ones.data());
      output.fill_nan();
      simulator::set_thread_order_seed(seed);
      const std::string error = error_of(work);
      EXPECT_EQ(error.empty(), parts.empty()) << error;
      expect_parts(error, parts);
      EXPECT_EQ(error_of(launching(stray, 1, x, y, 0, 0)), "") << "the device is none the worse";
    }
  }
  simulator::set_thread_order_seed(0);
}

// Also the one whose wait came last, and made the block fail: else its fibre would go on when the worker ends.
TEST(BugFinding, AllThreadsOfABlockThatFailsUnwind) {
  DeviceBuffer output(THREADS);
  for (const uint64_t seed : {0, 1, 2}) {
    simulator::set_thread_order_seed(seed);
    expect_parts(error_of(launching(wait_at_two_places, 1, output.data())),
                 {"waits for ever at __shfl_sync()"});
    std::vector<float> alive(THREADS, 1.0f);
    output.download(alive.data());
    EXPECT_EQ(alive, std::vector<float>(THREADS, 0.0f));
  }
  simulator::set_thread_order_seed(0);
}

}  // namespace
}  // namespace convladder
