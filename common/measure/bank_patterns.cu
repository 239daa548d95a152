// Ways in which the lanes of a warp can address memory: one kernel launch each, so that what Nsight
// Compute reads of a launch is what one instruction costs. The simulator's rules are held against
// these readings.
//
// bank_patterns shared|copies|global launches each pattern once for words of 4, 8 and 16 bytes, the same list
// every time, and prints their names in that order: "launched shared_read,16,bits_6"; in a build that counts,
// each counter of the launch behind it: " NAME=VALUE".
//   shared   shared_read, and shared_write of patterns with no word twice
//   copies   asynchronous ones: copy_to_shared with the pattern in shared memory (none with a word twice),
//            copy_global with the pattern in global memory
//   global   global_read and global_write, also of patterns that cross 128-byte lines
#include <cuda_pipeline.h>

#include <array>
#include <cstdio>
#include <exception>
#include <set>
#include <string>
#include <vector>

#include "common/check/device_buffer.h"
#include "common/core/launch.h"
#ifdef COUNTS_LAUNCHES
#include "common/simulator/counts.h"
#endif

namespace convladder {
namespace {

constexpr int LANES = 32, WORDS = 1024;

struct LanePattern {
  std::string name;
  std::array<int, LANES> word;  // of each lane, 0 to 1023; -1: the lane takes no part
};

// ---- The patterns ----

template <typename Word>
LanePattern make_pattern(const std::string& name, Word word) {
  LanePattern pattern{name, {}};
  for (int lane = 0; lane < LANES; ++lane) pattern.word[lane] = word(lane);
  return pattern;
}

// The bits of `lane` that are set in `mask`, moved together.
int compress(int lane, int mask) {
  int result = 0, to = 0;
  for (int bit = 0; bit < 5; ++bit) {
    if (mask >> bit & 1) result |= (lane >> bit & 1) << to++;
  }
  return result;
}

int reverse_bits(int lane) {
  int result = 0;
  for (int bit = 0; bit < 5; ++bit) result |= (lane >> bit & 1) << (4 - bit);
  return result;
}

// A linear congruential generator's high bits: the numbers are the same on every machine.
class Numbers {
 public:
  int below(int limit) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((state_ >> 33) % limit);
  }

 private:
  unsigned long long state_ = 1;
};

// Every subset of the lane's bits as address, strides, permutations, partial warps, the reads of
// the stages, and random ones: the same list every time.
std::vector<LanePattern> lane_patterns() {
  std::vector<LanePattern> patterns;
  const auto add = [&](const std::string& name, auto word) {
    patterns.push_back(make_pattern(name, word));
  };
  for (int mask = 0; mask < 32; ++mask) {
    const std::string bits = std::to_string(mask);
    add("bits_" + bits, [=](int lane) { return compress(lane, mask); });
    add("bits_apart_" + bits, [=](int lane) { return lane & mask; });
  }
  for (const int stride : {2, 3, 4, 5, 7, 8, 16, 31}) {
    add("stride_" + std::to_string(stride), [=](int lane) { return lane * stride; });
  }
  for (const int lanes : {0, 1, 2, 3, 4, 8, 9, 16, 17, 24, 31}) {
    add("first_" + std::to_string(lanes), [=](int lane) { return lane < lanes ? lane : -1; });
  }
  add("even_lanes", [](int lane) { return lane % 2 == 0 ? lane : -1; });
  add("odd_lanes", [](int lane) { return lane % 2 == 1 ? lane : -1; });
  add("one_lane_of_four", [](int lane) { return lane % 4 == 0 ? lane : -1; });
  add("one_lane_of_eight", [](int lane) { return lane % 8 == 0 ? lane : -1; });
  add("reversed", [](int lane) { return 31 - lane; });
  add("bits_reversed", reverse_bits);
  for (const int bit : {1, 2, 4, 8, 16}) {
    add("swapped_" + std::to_string(bit), [=](int lane) { return lane ^ bit; });
  }
  // Stage 10: lane bits 0 and 4 choose the filters, 1 to 3 the strip of inputs.
  for (const int step : {2, 3, 4}) {
    add("filters_" + std::to_string(step),
        [=](int lane) { return ((lane & 1) | (lane >> 3 & 2)) * step; });
  }
  for (const int step : {3, 7, 13}) {
    add("strips_" + std::to_string(step), [=](int lane) { return (lane >> 1 & 7) * step; });
  }
  Numbers numbers;
  for (const int limit : {2, 4, 8, 16, 32, 128, WORDS}) {
    for (int i = 0; i < 6; ++i) {
      add("random_" + std::to_string(limit) + "_" + std::to_string(i),
          [&](int) { return numbers.below(limit); });
    }
  }
  return patterns;
}

// Crossings of 128-byte lines: runs and strides from every word of a line, and rows that end within
// the warp, as stage 01's outputs have them.
std::vector<LanePattern> line_patterns() {
  std::vector<LanePattern> patterns;
  const auto add = [&](const std::string& name, auto word) {
    patterns.push_back(make_pattern(name, word));
  };
  for (const int stride : {1, 2, 4, 8}) {
    for (const int first : {1, 2, 4, 8, 12, 16, 24, 31}) {
      add("stride_" + std::to_string(stride) + "_from_" + std::to_string(first),
          [=](int lane) { return first + lane * stride; });
    }
  }
  // 55 outputs in a row, 4 rows of 224 words down to the next.
  for (const int stride : {1, 2, 4}) {
    for (const int row_end : {1, 5, 16, 23, 31}) {
      add("row_end_" + std::to_string(row_end) + "_stride_" + std::to_string(stride),
          [=](int lane) {
            return lane < row_end ? (55 - row_end + lane) * stride
                                  : 224 * stride + (lane - row_end) * stride;
          });
    }
  }
  for (const int lines : {2, 3, 4, 5, 8, 16, 32}) {  // one bank, or as many as lines
    add("lines_" + std::to_string(lines), [=](int lane) { return lane % lines * 32; });
    add("lines_apart_" + std::to_string(lines), [=](int lane) { return lane % lines * 31; });
  }
  for (const int every : {2, 3, 8}) {
    add("stride_4_one_of_" + std::to_string(every),
        [=](int lane) { return lane % every == 0 ? lane * 4 : -1; });
  }
  return patterns;
}

bool has_word_twice(const LanePattern& pattern) {
  std::set<int> words;
  for (const int word : pattern.word) {
    if (word >= 0 && !words.insert(word).second) return true;
  }
  return false;
}

// ---- The kernels ----

// The sum needs all parts of the word, so that the compiler must load them all.
__device__ float sum_of(float word) { return word; }
__device__ float sum_of(float2 word) { return word.x + word.y; }
__device__ float sum_of(float4 word) { return word.x + word.y + word.z + word.w; }

template <typename T>
__global__ void read_shared_pattern(const int* word_of_lane, float* sink) {
  __shared__ __align__(16) float tile[WORDS * sizeof(T) / 4];
  for (int i = threadIdx.x; i < WORDS * static_cast<int>(sizeof(T)) / 4; i += LANES) tile[i] = 1.0f;
  const int word = word_of_lane[threadIdx.x];
  __syncthreads();  // the tile is written
  if (word < 0) return;
  const T value = *reinterpret_cast<const T*>(&tile[word * (sizeof(T) / 4)]);
  sink[threadIdx.x] = sum_of(value);
}

template <typename T>
__global__ void write_shared_pattern(const int* word_of_lane, const T* from, float* sink) {
  __shared__ __align__(16) float tile[WORDS * sizeof(T) / 4];
  const int word = word_of_lane[threadIdx.x];
  if (word < 0) return;
  *reinterpret_cast<T*>(&tile[word * (sizeof(T) / 4)]) = from[threadIdx.x];
  __syncwarp();
  sink[threadIdx.x] = *const_cast<volatile float*>(&tile[word * (sizeof(T) / 4)]);
}

template <typename T>
__global__ void read_global_pattern(const int* word_of_lane, const T* from, float* sink) {
  const int word = word_of_lane[threadIdx.x];
  if (word < 0) return;
  const T value = from[word];
  sink[threadIdx.x] = sum_of(value);
}

template <typename T>
__global__ void write_global_pattern(const int* word_of_lane, const T* from, T* to) {
  const int word = word_of_lane[threadIdx.x];
  if (word >= 0) to[word] = from[threadIdx.x];
}

// Asynchronously, from neighbours in global memory.
template <typename T>
__global__ void copy_to_shared_pattern(const int* word_of_lane, const T* from, float* sink) {
  __shared__ __align__(16) float tile[WORDS * sizeof(T) / 4];
  const int word = word_of_lane[threadIdx.x];
  if (word < 0) return;
  float* to = &tile[word * (sizeof(T) / 4)];
  __pipeline_memcpy_async(to, from + threadIdx.x, sizeof(T));
  __pipeline_commit();
  __pipeline_wait_prior(0);
  sink[threadIdx.x] = *to;
}

// The other way round: to neighbours in shared memory.
template <typename T>
__global__ void copy_global_pattern(const int* word_of_lane, const T* from, float* sink) {
  __shared__ __align__(16) float tile[LANES * sizeof(T) / 4];
  const int word = word_of_lane[threadIdx.x];
  if (word < 0) return;
  float* to = &tile[threadIdx.x * (sizeof(T) / 4)];
  __pipeline_memcpy_async(to, from + word, sizeof(T));
  __pipeline_commit();
  __pipeline_wait_prior(0);
  sink[threadIdx.x] = *to;
}

// ---- Launching them ----

void print_launched(const char* kind, std::size_t bytes, const LanePattern& pattern) {
  std::printf("launched %s,%zu,%s", kind, bytes, pattern.name.c_str());
#ifdef COUNTS_LAUNCHES
  for (const auto& [name, value] : simulator::metrics(simulator::take_kernel_counts().at(0))) {
    std::printf(" %s=%.17g", name.c_str(), value);
  }
#endif
  std::printf("\n");
}

template <typename T>
void launch_width(const std::string& accesses, const LanePattern& pattern) {
  DeviceBuffer words(LANES), memory(WORDS * sizeof(T) / 4);
  const DeviceBuffer rest(memory.count());
  words.upload(reinterpret_cast<const float*>(pattern.word.data()));
  memory.upload(std::vector<float>(memory.count()).data());
  const auto run = [&](const char* kind, auto kernel, auto... arguments) {
    kernel<<<1, LANES>>>(reinterpret_cast<const int*>(words.data()), arguments...);
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    print_launched(kind, sizeof(T), pattern);
  };
  const T* const from = reinterpret_cast<const T*>(memory.data());
  float* const sink = rest.data();
  const bool may_write = !has_word_twice(pattern);
  if (accesses == "copies") {
    if (may_write) run("copy_to_shared", copy_to_shared_pattern<T>, from, sink);
    run("copy_global", copy_global_pattern<T>, from, sink);
  } else if (accesses == "shared") {
    run("shared_read", read_shared_pattern<T>, sink);
    if (may_write) run("shared_write", write_shared_pattern<T>, from, sink);
  } else {
    run("global_read", read_global_pattern<T>, from, sink);
    if (may_write) run("global_write", write_global_pattern<T>, from, reinterpret_cast<T*>(sink));
  }
}

void launch_patterns(const std::string& accesses) {
  std::vector<LanePattern> patterns = lane_patterns();
  if (accesses == "global") {
    for (const LanePattern& pattern : line_patterns()) patterns.push_back(pattern);
  }
  for (const LanePattern& pattern : patterns) {
    launch_width<float>(accesses, pattern);
    launch_width<float2>(accesses, pattern);
    launch_width<float4>(accesses, pattern);
  }
}

}  // namespace
}  // namespace convladder

int main(int count, char** arguments) {
  const std::string accesses = count == 2 ? arguments[1] : "";
  if (accesses != "shared" && accesses != "copies" && accesses != "global") {
    std::fprintf(stderr, "usage: bank_patterns shared|copies|global\n");
    return 2;
  }
  try {
    convladder::launch_patterns(accesses);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bank_patterns: error: %s\n", error.what());
    return 1;
  }
}
