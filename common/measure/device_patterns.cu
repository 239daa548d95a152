// What atomic operations, constants, hints and matrices of one warp cost: one kernel launch each,
// so that what Nsight Compute reads of a launch is what one operation costs. As bank_patterns.cu does for loads
// and stores; it stands alone, in plain CUDA, and prints "launched KIND,TYPE,PATTERN" for each.
//
//   device_patterns atomics|constants|hints|matrices
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#ifdef COUNTS_LAUNCHES
#include "common/simulator/counts.h"
#endif

namespace {

constexpr int LANES = 32, WORDS = 2048;

struct Pattern {
  std::string name;
  int word[LANES];  // -1: the lane takes no part
};

std::vector<Pattern> patterns() {
  std::vector<Pattern> all;
  const auto add = [&](const std::string& name, auto word) {
    all.push_back({name, {}});
    for (int lane = 0; lane < LANES; ++lane) all.back().word[lane] = word(lane);
  };
  for (const int stride : {0, 1, 2, 3, 8, 32, 33}) {
    add("stride_" + std::to_string(stride), [=](int lane) { return lane * stride; });
  }
  for (const int same : {2, 8}) {  // so many lanes with one word
    add("same_" + std::to_string(same), [=](int lane) { return lane / same; });
    add("every_" + std::to_string(same), [=](int lane) { return lane % same; });
    add("same_far_" + std::to_string(same), [=](int lane) { return lane / same * 32; });
  }
  for (const int count : {1, 7, 16}) {
    add("first_" + std::to_string(count), [=](int lane) { return lane < count ? lane : -1; });
    add("first_same_" + std::to_string(count), [=](int lane) { return lane < count ? 0 : -1; });
  }
  add("odd", [](int lane) { return lane % 2 ? lane : -1; });
  add("reversed", [](int lane) { return 31 - lane; });
  add("mixed", [](int lane) { return lane * lane % 23 * 5; });
  return all;
}

// ---- Atomic operations ----

template <typename T>
__device__ T one() {
  return T(1);
}
template <>
__device__ __half2 one<__half2>() {
  return __floats2half2_rn(1, 1);
}
template <>
__device__ float4 one<float4>() {
  return make_float4(1, 1, 1, 1);
}

struct Add {
  template <typename T>
  __device__ static void apply(T* at, float*) {
    atomicAdd(at, one<T>());
  }
};
struct AddUsed {
  template <typename T>
  __device__ static void apply(T* at, float* sink) {
    *sink = float(atomicAdd(at, one<T>()));
  }
};
struct Max {
  template <typename T>
  __device__ static void apply(T* at, float*) {
    atomicMax(at, one<T>());
  }
};
struct ExchangeUsed {
  template <typename T>
  __device__ static void apply(T* at, float* sink) {
    *sink = float(atomicExch(at, one<T>()));
  }
};
struct SwapUsed {
  template <typename T>
  __device__ static void apply(T* at, float* sink) {
    *sink = float(atomicCAS(at, T(0), one<T>()));
  }
};

template <typename T, typename Operation>
__global__ void change_global(const int* word_of_lane, void* memory, float* sink) {
  const int word = word_of_lane[threadIdx.x];
  if (word >= 0) Operation::apply(static_cast<T*>(memory) + word, sink + threadIdx.x);
}
template <typename T, typename Operation>
__global__ void change_shared(const int* word_of_lane, void* memory, float* sink) {
  __shared__ T own[WORDS / 2];
  for (int i = threadIdx.x; i < WORDS / 2; i += LANES) own[i] = static_cast<T*>(memory)[i];
  __syncthreads();
  const int word = word_of_lane[threadIdx.x];
  if (word >= 0) Operation::apply(own + word, sink + threadIdx.x);
}
// All lanes add to one word, as the compiler knows.
__global__ void count_global(const int* word_of_lane, void* memory, float*) {
  if (word_of_lane[threadIdx.x] >= 0) atomicAdd(static_cast<int*>(memory), 1);
}
__global__ void count_shared(const int* word_of_lane, void*, float*) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  if (word_of_lane[threadIdx.x] >= 0) atomicAdd(&count, 1);
}

// ---- Constants, hints ----

__constant__ float constants[WORDS];

__global__ void read_constant(const int* word_of_lane, void*, float* sink) {
  const int word = word_of_lane[threadIdx.x];
  if (word >= 0) sink[threadIdx.x] = constants[word];
}
__global__ void read_same_constant(const int* word_of_lane, void*, float* sink) {
  if (word_of_lane[threadIdx.x] >= 0) sink[threadIdx.x] = constants[7];
}

__global__ void shuffle(const int* word_of_lane, void*, float* sink) {
  sink[threadIdx.x] = __shfl_sync(~0u, float(threadIdx.x), word_of_lane[threadIdx.x]);
}

#define HINT(name, load, store)                                              \
  __global__ void name(const int* word_of_lane, void* memory, float* sink) { \
    const int word = word_of_lane[threadIdx.x];                              \
    const float* from = static_cast<const float*>(memory);                   \
    if (word >= 0) store(sink + word, load(from + word) + 1.0f);             \
  }
__device__ void plain_store(float* to, float value) { *to = value; }
HINT(ldg, __ldg, plain_store)
HINT(ldca_stwb, __ldca, __stwb)
HINT(ldcg_stcg, __ldcg, __stcg)
HINT(ldcs_stcs, __ldcs, __stcs)
HINT(ldcv_stwt, __ldcv, __stwt)
HINT(ldlu, __ldlu, plain_store)
#undef HINT
__global__ void is_volatile(const int* word_of_lane, void* memory, float* sink) {
  const int word = word_of_lane[threadIdx.x];
  if (word < 0) return;
  volatile float* const to = sink;
  to[word] = static_cast<volatile float*>(memory)[word];
}

// ---- Matrices ----

namespace wmma = nvcuda::wmma;

template <typename Fragment>
__device__ float sum_of(const __half* from, int stride) {
  Fragment fragment;
  wmma::load_matrix_sync(fragment, from, stride);
  float sum = 0;
  for (int i = 0; i < fragment.num_elements; ++i) sum += float(fragment.x[i]);
  return sum;
}
template <typename Fragment>
__global__ void load_fragment(const __half* memory, float* sink, int stride) {
  sink[threadIdx.x] = sum_of<Fragment>(memory, stride);
}
template <typename Fragment>
__global__ void load_fragment_shared(const __half* memory, float* sink, int stride) {
  __shared__ __half own[WORDS];
  for (int i = threadIdx.x; i < WORDS; i += LANES) own[i] = memory[i];
  __syncthreads();
  sink[threadIdx.x] = sum_of<Fragment>(own, stride);
}
__global__ void accumulate(const float* memory, float* sink, int stride, bool by_rows) {
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  const wmma::layout_t layout = by_rows ? wmma::mem_row_major : wmma::mem_col_major;
  wmma::load_matrix_sync(sum, memory, stride, layout);
  wmma::store_matrix_sync(sink, sum, stride, layout);
}

// ---- Launching them ----

int* words;
void* memory;
float* sink;

void print_launched(const char* kind, const char* type, const std::string& pattern) {
  const cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess) {
    std::fprintf(stderr, "%s,%s,%s: %s\n", kind, type, pattern.c_str(), cudaGetErrorString(error));
    std::exit(1);
  }
  std::printf("launched %s,%s,%s", kind, type, pattern.c_str());
#ifdef COUNTS_LAUNCHES
  using namespace convladder::simulator;
  for (const auto& [name, value] : metrics(take_kernel_counts().at(0))) {
    std::printf(" %s=%.17g", name.c_str(), value);
  }
#endif
  std::printf("\n");
}

template <typename Kernel>
void launch_all(const char* kind, const char* type, Kernel kernel, const char* only = "") {
  for (const Pattern& pattern : patterns()) {
    if (pattern.name.compare(0, std::strlen(only), only) != 0) continue;
    if (only == std::string("stride") && pattern.name == "stride_0")
      continue;  // all store to one word
    cudaMemcpy(words, pattern.word, sizeof(pattern.word), cudaMemcpyHostToDevice);
    kernel<<<1, LANES>>>(words, memory, sink);
    print_launched(kind, type, pattern.name);
  }
}
template <typename T, typename Operation>
void launch_both(const char* operation, const char* type) {
  launch_all((std::string("global_") + operation).c_str(), type, change_global<T, Operation>);
  launch_all((std::string("shared_") + operation).c_str(), type, change_shared<T, Operation>);
}

template <typename Use, typename Layout>
void launch_fragment(const char* name) {
  using Fragment = wmma::fragment<Use, 16, 16, 16, __half, Layout>;
  const __half* const from = static_cast<const __half*>(memory);
  for (const int stride : {16, 24, 64}) {
    load_fragment<Fragment><<<1, LANES>>>(from, sink, stride);
    print_launched("load_global", name, "stride_" + std::to_string(stride));
    load_fragment_shared<Fragment><<<1, LANES>>>(from, sink, stride);
    print_launched("load_shared", name, "stride_" + std::to_string(stride));
  }
}

void launch_group(const std::string& group) {
  if (group == "atomics") {
    launch_both<int, Add>("add", "int");
    launch_both<int, AddUsed>("add_used", "int");
    launch_both<int, Max>("max", "int");
    launch_both<int, ExchangeUsed>("exchange_used", "int");
    launch_both<int, SwapUsed>("swap_used", "int");
    launch_both<float, Add>("add", "float");
    launch_both<double, Add>("add", "double");
    launch_both<unsigned long long, Add>("add", "long");
    launch_all("global_add_used", "double", change_global<double, AddUsed>);
    launch_all("global_add", "half2", change_global<__half2, Add>);
    launch_all("global_add", "float4", change_global<float4, Add>);
    launch_all("global_count", "int", count_global, "first");
    launch_all("shared_count", "int", count_shared, "first");
  } else if (group == "constants") {
    launch_all("constant", "float", read_constant);
    launch_all("same_constant", "float", read_same_constant, "first");
    launch_all("shuffle", "float", shuffle, "stride_1");
  } else if (group == "hints") {
    launch_all("ldg", "float", ldg, "stride");
    launch_all("ldca_stwb", "float", ldca_stwb, "stride");
    launch_all("ldcg_stcg", "float", ldcg_stcg, "stride");
    launch_all("ldcs_stcs", "float", ldcs_stcs, "stride");
    launch_all("ldcv_stwt", "float", ldcv_stwt, "stride");
    launch_all("ldlu", "float", ldlu, "stride");
    launch_all("volatile", "float", is_volatile, "stride");
  } else {
    launch_fragment<wmma::matrix_a, wmma::row_major>("a_by_rows");
    launch_fragment<wmma::matrix_a, wmma::col_major>("a_by_columns");
    launch_fragment<wmma::matrix_b, wmma::row_major>("b_by_rows");
    launch_fragment<wmma::matrix_b, wmma::col_major>("b_by_columns");
    for (const int stride : {16, 24, 64}) {
      for (const bool by_rows : {true, false}) {
        accumulate<<<1, LANES>>>(static_cast<const float*>(memory), sink, stride, by_rows);
        print_launched("sum_global", by_rows ? "by_rows" : "by_columns",
                       "stride_" + std::to_string(stride));
      }
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  const std::string group = count == 2 ? arguments[1] : "";
  bool known = false;
  for (const char* each : {"atomics", "constants", "hints", "matrices"}) known |= group == each;
  if (!known) {
    std::fprintf(stderr, "usage: device_patterns atomics|constants|hints|matrices\n");
    return 2;
  }
  const std::vector<float> numbers(WORDS, 0.0f);
  cudaMalloc(&words, LANES * sizeof(int));
  cudaMalloc(&memory, WORDS * sizeof(float4));
  cudaMalloc(&sink, WORDS * sizeof(float));
  cudaMemset(memory, 0, WORDS * sizeof(float4));
  cudaMemcpyToSymbol(constants, numbers.data(), sizeof(constants));
  launch_group(group);
  return 0;
}
