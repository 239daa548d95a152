// What atomic operations, constants, local arrays and shuffles of one warp cost: a launch each, for Nsight
// Compute to read, so that the simulator can be given rules. Stands alone:
//
//   nvcc -arch=native -O3 -o device_patterns common/measure/device_patterns.cu
//   ncu --csv --page raw --metrics $(./device_patterns --metrics) ./device_patterns >readings.csv
//   ./device_patterns --names >names.csv        # one line per launch, in the same order
//   ./device_patterns --values                  # what a GPU makes of undefined shuffles
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

constexpr int LANES = 32, WORDS = 4096;

const char* const METRICS =
    "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum,l1tex__t_sectors_pipe_lsu_mem_global_op_"
    "atom.sum,"
    "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum,l1tex__t_sectors_pipe_lsu_mem_global_op_red."
    "sum,"
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum,l1tex__t_sectors_pipe_lsu_mem_global_op_ld."
    "sum,"
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum,l1tex__t_sectors_pipe_lsu_mem_global_op_st."
    "sum,"
    "l1tex__t_requests_pipe_lsu_mem_local_op_ld.sum,l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum,"
    "l1tex__t_requests_pipe_lsu_mem_local_op_st.sum,l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum,"
    "l1tex__data_pipe_lsu_wavefronts.sum,l1tex__data_pipe_lsu_wavefronts_mem_shared.sum,"
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum,"
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum,"
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum,"
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum,"
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum,"
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_atom.sum,"
    "lts__t_sectors_op_atom.sum,lts__t_sectors_op_red.sum,lts__t_requests_srcunit_tex_op_red.sum,"
    "lts__t_requests_srcunit_tex_op_atom.sum,"
    "smsp__inst_executed_op_global_red.sum,smsp__inst_executed_op_shared_atom.sum,"
    "smsp__inst_executed_op_generic_atom_dot_alu.sum,smsp__inst_executed_op_generic_atom_dot_cas."
    "sum,"
    "smsp__inst_executed_op_shared_atom_dot_alu.sum,smsp__inst_executed_op_shared_atom_dot_cas.sum,"
    "smsp__inst_executed_op_shfl.sum,smsp__inst_executed_pipe_uniform.sum,"
    "smsp__inst_executed_op_ldc.sum,idc__requests.sum,idc__requests_lookup_hit.sum,"
    "idc__requests_lookup_miss.sum,smsp__inst_executed.sum";

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
  for (const int stride : {0, 1, 2, 3, 4, 8, 16, 32, 33, 64}) {
    add("stride_" + std::to_string(stride), [=](int lane) { return lane * stride; });
  }
  for (const int same : {2, 4, 8, 16}) {  // so many lanes with one word
    add("same_" + std::to_string(same), [=](int lane) { return lane / same; });
    add("every_" + std::to_string(same), [=](int lane) { return lane % same; });
    add("same_far_" + std::to_string(same), [=](int lane) { return lane / same * 32; });
  }
  for (const int count : {1, 2, 8, 16, 31}) {
    add("first_" + std::to_string(count), [=](int lane) { return lane < count ? lane : -1; });
    add("first_same_" + std::to_string(count), [=](int lane) { return lane < count ? 0 : -1; });
  }
  add("odd", [](int lane) { return lane % 2 ? lane : -1; });
  add("reversed", [](int lane) { return 31 - lane; });
  add("off_by_one", [](int lane) { return lane + 1; });
  return all;
}

template <typename T>
struct AddUnused {
  static constexpr const char* NAME = "add";
  static __device__ void apply(T* at, float*, int) { atomicAdd(at, T(1)); }
};
template <typename T>
struct AddUsed {
  static constexpr const char* NAME = "add_used";
  static __device__ void apply(T* at, float* sink, int lane) {
    sink[lane] = float(atomicAdd(at, T(1)));
  }
};
template <typename T>
struct Max {
  static constexpr const char* NAME = "max";
  static __device__ void apply(T* at, float*, int) { atomicMax(at, T(1)); }
};
template <typename T>
struct Exchange {
  static constexpr const char* NAME = "exch_used";
  static __device__ void apply(T* at, float* sink, int lane) {
    sink[lane] = float(atomicExch(at, T(1)));
  }
};
template <typename T>
struct Swap {
  static constexpr const char* NAME = "cas_used";
  static __device__ void apply(T* at, float* sink, int lane) {
    sink[lane] = float(atomicCAS(at, T(0), T(1)));
  }
};

template <typename T, typename Operation>
__global__ void on_global(const int* word_of_lane, T* memory, float* sink) {
  const int word = word_of_lane[threadIdx.x];
  if (word >= 0) Operation::apply(memory + word, sink, threadIdx.x);
}

template <typename T, typename Operation>
__global__ void on_shared(const int* word_of_lane, T*, float* sink) {
  __shared__ T memory[WORDS * 4 / sizeof(T)];
  const int word = word_of_lane[threadIdx.x];
  if (word >= 0) Operation::apply(memory + word, sink, threadIdx.x);
}

__constant__ float constants[WORDS];
__global__ void read_constant(const int* word_of_lane, float*, float* sink) {
  const int word = word_of_lane[threadIdx.x];
  if (word >= 0) sink[threadIdx.x] = constants[word];
}
__global__ void read_constant_uniform(const int* word_of_lane, float*, float* sink) {
  if (word_of_lane[threadIdx.x] >= 0) sink[threadIdx.x] = constants[7];
}

// An array that is indexed by what nobody knows beforehand lies in local memory.
template <typename T>
__global__ void local_array(const int* word_of_lane, T*, float* sink) {
  const int word = word_of_lane[threadIdx.x];
  if (word < 0) return;
  T own[64];
  own[word % 64] = T(word);
  sink[threadIdx.x] = float(own[(word + 1) % 64]);
}

__global__ void shuffle(const int* word_of_lane, float*, float* sink) {
  sink[threadIdx.x] = __shfl_sync(~0u, float(threadIdx.x), word_of_lane[threadIdx.x]);
}

// ---- Launching them ----

bool names_only = false;
int* words;
void* memory;
float* sink;

template <typename T, typename Kernel>
void run(const char* space, const char* operation, const char* type, Kernel kernel) {
  for (const Pattern& pattern : patterns()) {
    if (names_only) {
      std::printf("%s,%s,%s,%s\n", space, operation, type, pattern.name.c_str());
      continue;
    }
    cudaMemcpy(words, pattern.word, sizeof(pattern.word), cudaMemcpyHostToDevice);
    kernel<<<1, LANES>>>(words, static_cast<T*>(memory), sink);
    const cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess)
      std::fprintf(stderr, "%s %s: %s\n", operation, type, cudaGetErrorString(error));
  }
}

template <typename T, template <typename> class Operation>
void run_both(const char* type) {
  run<T>("global", Operation<T>::NAME, type, on_global<T, Operation<T>>);
  run<T>("shared", Operation<T>::NAME, type, on_shared<T, Operation<T>>);
}

__global__ void undefined_shuffles() {
  const int lane = threadIdx.x;
  const unsigned mask = __ballot_sync(~0u, lane < 8);
  int from_inactive = -1, from_outside = -1;
  if (lane < 8) {
    from_inactive = __shfl_down_sync(mask, lane + 100, 16);
    from_outside = __shfl_sync(mask, lane + 100, 20);
  }
  __syncwarp();
  if (lane < 8)
    printf("lane %d: down by 16 into lanes that are not there: %d; from lane 20: %d\n", lane,
           from_inactive, from_outside);
  if (lane >= 16) return;
  const int from_left = __shfl_down_sync(~0u, lane + 200, 16);
  if (lane < 2) printf("lane %d: from a lane that has left: %d\n", lane, from_left);
}
__global__ void undefined_in_short_block() {
  const int got = __shfl_down_sync(~0u, int(threadIdx.x) + 300, 16);
  if (threadIdx.x < 2)
    printf("lane %d: from a lane that a block of 16 has not: %d\n", int(threadIdx.x), got);
}

int main(int count, char** arguments) {
  const std::string option = count > 1 ? arguments[1] : "";
  if (option == "--metrics") return std::puts(METRICS), 0;
  names_only = option == "--names";
  if (option == "--values") {
    undefined_shuffles<<<1, 32>>>();
    undefined_in_short_block<<<1, 16>>>();
    return cudaDeviceSynchronize() != cudaSuccess;
  }
  if (!names_only) {
    cudaMalloc(&words, LANES * sizeof(int));
    cudaMalloc(&memory, WORDS * 8);
    cudaMalloc(&sink, LANES * sizeof(float));
    cudaMemset(memory, 0, WORDS * 8);
  }
  run_both<int, AddUnused>("int");
  run_both<int, AddUsed>("int");
  run_both<float, AddUnused>("float");
  run_both<float, AddUsed>("float");
  run_both<double, AddUnused>("double");
  run_both<double, AddUsed>("double");
  run_both<unsigned long long, AddUnused>("ull");
  run_both<int, Max>("int");
  run_both<int, Exchange>("int");
  run_both<int, Swap>("int");
  run<float>("constant", "read", "float", read_constant);
  run<float>("constant", "read_uniform", "float", read_constant_uniform);
  run<float>("local", "array", "float", local_array<float>);
  run<double>("local", "array", "double", local_array<double>);
  run<float>("none", "shuffle", "float", shuffle);
  return 0;
}
