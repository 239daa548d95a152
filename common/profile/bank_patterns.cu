#include "common/profile/bank_patterns.h"

#include <cuda_pipeline.h>

#include <set>

#include "common/core/launch.h"

namespace convladder {
namespace {

constexpr int LANES = 32, WORDS = 1024;

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

// The same numbers everywhere (a linear congruential generator's high bits).
class Numbers {
 public:
  int below(int limit) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((state_ >> 33) % limit);
  }

 private:
  unsigned long long state_ = 1;
};

bool has_word_twice(const LanePattern& pattern) {
  std::set<int> words;
  for (const int word : pattern.word) {
    if (word >= 0 && !words.insert(word).second) return true;
  }
  return false;
}

// ---- The kernels ----

// Of all parts, so that the compiler must load them all.
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

class DeviceArray {
 public:
  explicit DeviceArray(std::size_t bytes) {
    check_cuda(cudaMalloc(&data_, bytes), "cudaMalloc");
    check_cuda(cudaMemset(data_, 0, bytes), "cudaMemset");
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

// One pattern on the device, and where its kernels read from and write to.
struct Arrays {
  explicit Arrays(const LanePattern& pattern)
      : words(sizeof(pattern.word)), from(WORDS * sizeof(float4)), sink(LANES * sizeof(float)) {
    check_cuda(cudaMemcpy(words.as<int>(), pattern.word.data(), sizeof(pattern.word),
                          cudaMemcpyHostToDevice),
               "cudaMemcpy");
  }
  DeviceArray words, from, sink;
};

template <typename T>
void launch_width(const LanePattern& pattern, const Launched& launched) {
  const Arrays arrays(pattern);
  const int* word_of_lane = arrays.words.as<int>();
  const T* from = arrays.from.as<T>();
  float* sink = arrays.sink.as<float>();
  const int bytes = sizeof(T);
  launch(read_shared_pattern<T>, 1, LANES, nullptr, word_of_lane, sink);
  launched("shared_read", bytes, pattern);
  if (!has_word_twice(pattern)) {
    launch(write_shared_pattern<T>, 1, LANES, nullptr, word_of_lane, from, sink);
    launched("shared_write", bytes, pattern);
  }
  launch(read_global_pattern<T>, 1, LANES, nullptr, word_of_lane, from, sink);
  launched("global_read", bytes, pattern);
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

template <typename T>
void launch_global_width(const LanePattern& pattern, const Launched& launched) {
  const Arrays arrays(pattern);
  const DeviceArray to(WORDS * sizeof(T));
  const int* word_of_lane = arrays.words.as<int>();
  launch(read_global_pattern<T>, 1, LANES, nullptr, word_of_lane, arrays.from.as<T>(),
         arrays.sink.as<float>());
  launched("global_read", sizeof(T), pattern);
  if (!has_word_twice(pattern)) {
    launch(write_global_pattern<T>, 1, LANES, nullptr, word_of_lane, arrays.from.as<T>(),
           to.as<T>());
    launched("global_write", sizeof(T), pattern);
  }
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

template <typename T>
void launch_copy_width(const LanePattern& pattern, const Launched& launched) {
  const Arrays arrays(pattern);
  const int* word_of_lane = arrays.words.as<int>();
  const T* from = arrays.from.as<T>();
  float* sink = arrays.sink.as<float>();
  const int bytes = sizeof(T);
  if (!has_word_twice(pattern)) {
    launch(copy_to_shared_pattern<T>, 1, LANES, nullptr, word_of_lane, from, sink);
    launched("copy_to_shared", bytes, pattern);
  }
  launch(copy_global_pattern<T>, 1, LANES, nullptr, word_of_lane, from, sink);
  launched("copy_global", bytes, pattern);
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

}  // namespace

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
  // Stage 05: lane bits 0 and 4 choose the filters, 1 to 3 the strip of inputs.
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

void launch_global_patterns(const Launched& launched) {
  for (const auto& patterns : {lane_patterns(), line_patterns()}) {
    for (const LanePattern& pattern : patterns) {
      launch_global_width<float>(pattern, launched);
      launch_global_width<float2>(pattern, launched);
      launch_global_width<float4>(pattern, launched);
    }
  }
}

void launch_lane_patterns(const Launched& launched) {
  for (const LanePattern& pattern : lane_patterns()) {
    launch_width<float>(pattern, launched);
    launch_width<float2>(pattern, launched);
    launch_width<float4>(pattern, launched);
  }
}

void launch_copy_patterns(const Launched& launched) {
  for (const LanePattern& pattern : lane_patterns()) {
    launch_copy_width<float>(pattern, launched);
    launch_copy_width<float2>(pattern, launched);
    launch_copy_width<float4>(pattern, launched);
  }
}

}  // namespace convladder
