#include <cblas.h>
#include <cublas_v2.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "common/core/program.h"
#include "common/simulator/counting/shadow.h"
#include "common/simulator/errors.h"
#include "common/simulator/fault.h"
#include "common/simulator/launch.h"
#include "common/simulator/observer.h"
#include "common/simulator/report.h"
#include "common/simulator/tensor_core.h"

struct cublasContext {
  cudaStream_t stream = nullptr;
  cublasMath_t math_mode = CUBLAS_DEFAULT_MATH;
};

using convladder::calling_line;
using namespace convladder::simulator;

namespace {

CBLAS_TRANSPOSE transpose(cublasOperation_t op) {
  return op == CUBLAS_OP_T ? CblasTrans : CblasNoTrans;
}

thread_local std::string failure;  // the reason for the last CUBLAS_STATUS_EXECUTION_FAILED

bool is_operation(cublasOperation_t op) { return op == CUBLAS_OP_N || op == CUBLAS_OP_T; }

// Batched products may be laid out along a grid's z extent, which ends here: a stage must not ask for
// more, whether or not a version of cuBLAS takes it.
constexpr int MOST_PRODUCTS = 65535;

// The matrix in TF32, without gaps between its columns.
std::vector<float> rounded(const float* from, int rows, int columns, int ld) {
  std::vector<float> matrix;
  for (int column = 0; column < columns; ++column) {
    const float* first = from + int64_t{column} * ld;
    for (int row = 0; row < rows; ++row) matrix.push_back(nearest_tf32(first[row]));
  }
  return matrix;
}

// What a call reads or writes: a matrix; or a vector, whose elements are columns.
struct Operand {
  std::string name;  // "A"
  int product;       // of a batch, which has it; else -1
  MatrixView matrix;
  bool is_vector = false;

  bool is_empty() const { return matrix.rows <= 0 || matrix.columns <= 0; }
  std::size_t bytes() const {
    const std::size_t last = std::size_t(matrix.columns - 1) * matrix.pitch;
    return sizeof(float) * std::min<std::size_t>(last + matrix.rows, SIZE_MAX / 8);
  }
  std::string full_name() const {
    return name + (product < 0 ? "" : " of product " + std::to_string(product));
  }
};
using Operands = std::vector<Operand>;

std::vector<MatrixView> matrices_of(const Operands& operands) {
  std::vector<MatrixView> matrices;
  for (const Operand& operand : operands) matrices.push_back(operand.matrix);
  return matrices;
}

// The operand's first float in that state, in words; empty if none is.
std::string find_state(const Allocations& memory, const Operand& operand, MemoryState state) {
  const auto& [data, rows, columns, pitch] = operand.matrix;
  const auto address = reinterpret_cast<uintptr_t>(data);
  const Allocation* const allocation = find(memory, address);
  if (!allocation) return "";  // constant memory
  const std::size_t begin = (address - allocation->begin()) / sizeof(float);
  for (int64_t column = 0; column < columns; ++column) {
    for (int64_t row = 0; row < rows; ++row) {
      const std::size_t word = begin + column * pitch + row;
      const bool is_inside = word < allocation->words();  // else beyond all variables
      if ((is_inside ? allocation->state(word) : MemoryState::kForbidden) != state) continue;
      return (operand.is_vector ? "element " : "row " + std::to_string(row) + " of column ") +
             std::to_string(column) + " of " + operand.full_name();
    }
  }
  return "";
}

// Notes what is wrong with the operands of a program's call. False: it can't run.
bool check_operands(const std::string& call, const Operands& reads, const Operands& writes) {
  if (failed_before()) return false;
  const Allocations memory = device_memory();
  bool can_run = true;
  std::string noted;  // of a batch the first will do
  for (const Operands* operands : {&reads, &writes}) {
    for (const Operand& operand : *operands) {
      if (operand.is_empty()) continue;
      std::string wrong = wrong_operand(operand.matrix.data, operand.bytes(), operand.full_name());
      if (wrong.empty()) {
        const std::string place = find_state(memory, operand, MemoryState::kForbidden);
        if (!place.empty()) wrong = "its variable ends before " + place;
      }
      can_run &= wrong.empty();
      if (wrong.empty() && operands == &reads) {
        const std::string place = find_state(memory, operand, MemoryState::kUndefined);
        if (!place.empty()) wrong = "reads global memory that nobody has written: " + place;
      }
      if (wrong.empty() || noted.find(operand.name) != std::string::npos) continue;
      noted += operand.name;
      add_finding(call, 0, 0, [&] { return wrong + ", at " + calling_line(); });
    }
  }
  if (!can_run) set_last_error(cudaErrorIllegalAddress, "of " + call);
  return can_run;
}

// Counts the call, and says whether it can run; where not, `failure` may say why.
bool note_call(const char* call, const LaunchWork& work, const Operands& reads,
               const Operands& writes) {
  if constexpr (COUNTING) {
    if (is_program()) {
      return check_operands(call, reads, writes) &&
             library_call(call, work, {}, matrices_of(writes)).empty();
    }
    failure = library_call(call, work, matrices_of(reads), matrices_of(writes));
    return failure.empty();
  }
  return true;
}

// The 32-byte sectors of a matrix at the least: as if it had no gaps.
int64_t sectors_of(const MatrixView& matrix) {
  return (matrix.rows * matrix.columns * int64_t{sizeof(float)} + 31) / 32;
}

// OpenBLAS maps a buffer for each of its threads when they have their first work, and tries for ever
// where the system refuses. So the system is asked first.
bool has_room_for_blas() {
  constexpr std::size_t BUFFER = std::size_t{128} << 20;
  const std::size_t bytes = BUFFER * std::max(1u, std::thread::hardware_concurrency());
  void* room = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return room != MAP_FAILED && munmap(room, bytes) == 0;
}

// n elements, each `step` behind the one before (before it where that is negative, as BLAS has it).
template <typename T>
struct Vector {
  const T* data;
  int step;
};
template <typename T>
MatrixView view_of(const Vector<T>& vector, int n) {
  constexpr int64_t WORDS = sizeof(T) / sizeof(float);
  return {reinterpret_cast<const float*>(vector.data), WORDS, n,
          WORDS * std::abs(int64_t{vector.step})};
}

// *result = compute() of vectors; 0 where there are no elements.
template <typename T, typename Result, typename Compute>
cublasStatus_t reduce(const char* name, cublasHandle_t handle, int n,
                      const std::vector<Vector<T>>& vectors, bool multiplies, Result* result,
                      const Compute& compute) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (fault_due(Call::kCublas)) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (!result) return CUBLAS_STATUS_INVALID_VALUE;
  LaunchWork work;
  work.library_products = multiplies ? n : 0;
  Operands reads;
  for (const Vector<T>& vector : vectors) {
    if (n > 0 && !vector.data) return CUBLAS_STATUS_INVALID_VALUE;
    reads.push_back({reads.empty() ? "x" : "y", -1, view_of(vector, n), true});
    work.sectors_read += sectors_of(reads.back().matrix);
  }
  Result value{};
  if (n > 0) {
    if (is_planned(work)) return CUBLAS_STATUS_SUCCESS;
    note_work(handle->stream);
    if (!note_call(name, work, reads, {})) return CUBLAS_STATUS_EXECUTION_FAILED;
    if (!has_room_for_blas()) return CUBLAS_STATUS_ALLOC_FAILED;
    const DeviceMemoryInReach in_reach;
    value = static_cast<Result>(compute());
  }
  *result = value;
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

const char* cublasGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "success";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "the handle is null";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "out of memory";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "an argument has an invalid value";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return failure.empty() ? "the operation failed" : failure.c_str();
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "not supported";
  }
  return "unknown cublasStatus_t";
}

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
  if (fault_due(Call::kCublas)) return CUBLAS_STATUS_ALLOC_FAILED;
  *handle = new (std::nothrow) cublasContext;
  return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->math_mode = mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                           int m, int n, int k, const float* alpha, const float* A, int lda,
                           const float* B, int ldb, const float* beta, float* C, int ldc) {
  return cublasSgemmStridedBatched(handle, op_a, op_b, m, n, k, alpha, A, lda, 0, B, ldb, 0, beta,
                                   C, ldc, 0, 1);
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t op_a,
                                         cublasOperation_t op_b, int m, int n, int k,
                                         const float* alpha, const float* A, int lda,
                                         long long stride_a, const float* B, int ldb,
                                         long long stride_b, const float* beta, float* C, int ldc,
                                         long long stride_c, int batch) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (fault_due(Call::kCublas)) return CUBLAS_STATUS_EXECUTION_FAILED;
  const int rows_a = op_a == CUBLAS_OP_N ? m : k;
  const int rows_b = op_b == CUBLAS_OP_N ? k : n;
  if (!is_operation(op_a) || !is_operation(op_b) || m < 0 || n < 0 || k < 0 || batch < 0 ||
      lda < std::max(1, rows_a) || ldb < std::max(1, rows_b) || ldc < std::max(1, m) || !alpha ||
      !beta || !A || !B || !C) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (batch > MOST_PRODUCTS) return CUBLAS_STATUS_NOT_SUPPORTED;
  LaunchWork work;
  work.library_products = static_cast<double>(m) * n * k * batch;
  const bool multiplies = m > 0 && n > 0 && k > 0 && *alpha != 0;  // else nobody needs A and B
  Operands reads, writes;
  for (int i = 0; i < batch; ++i) {
    const bool first = i == 0;  // with stride 0 it is the same matrix every time
    const int product = batch > 1 ? i : -1;
    if (multiplies && (first || stride_a)) {
      reads.push_back({"A", product, {A + i * stride_a, rows_a, op_a ? m : k, lda}});
    }
    if (multiplies && (first || stride_b)) {
      reads.push_back({"B", product, {B + i * stride_b, rows_b, op_b ? k : n, ldb}});
    }
    writes.push_back({"C", product, {C + i * stride_c, m, n, ldc}});
    if (*beta != 0) reads.push_back(writes.back());
  }
  for (const Operand& operand : reads) work.sectors_read += sectors_of(operand.matrix);
  for (const Operand& operand : writes) work.sectors_written += sectors_of(operand.matrix);
  if (is_planned(work)) return CUBLAS_STATUS_SUCCESS;
  note_work(handle->stream);
  if (!note_call("cublasSgemm", work, reads, writes)) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (!has_room_for_blas()) return CUBLAS_STATUS_ALLOC_FAILED;
  const DeviceMemoryInReach in_reach;
  for (int i = 0; i < batch; ++i) {
    const float *a = A + i * stride_a, *b = B + i * stride_b;
    int pitch_a = lda, pitch_b = ldb;
    std::vector<float> rounded_a, rounded_b;
    if (handle->math_mode == CUBLAS_TF32_TENSOR_OP_MATH && multiplies) {
      rounded_a = rounded(a, rows_a, op_a == CUBLAS_OP_N ? k : m, lda);
      rounded_b = rounded(b, rows_b, op_b == CUBLAS_OP_N ? n : k, ldb);
      a = rounded_a.data(), pitch_a = std::max(1, rows_a);
      b = rounded_b.data(), pitch_b = std::max(1, rows_b);
    }
    cblas_sgemm(CblasColMajor, transpose(op_a), transpose(op_b), m, n, multiplies ? k : 0, *alpha,
                a, pitch_a, b, pitch_b, *beta, C + i * stride_c, ldc);
  }
  return CUBLAS_STATUS_SUCCESS;
}

// Of one vector, which BLAS goes through forwards alone.
#define CONVLADDER_REDUCTION(Name, T, Result, multiplies, value)                      \
  cublasStatus_t cublas##Name(cublasHandle_t handle, int n, const T* x, int inc_x,    \
                              Result* result) {                                       \
    const int count = inc_x > 0 ? n : 0;                                              \
    return reduce<T>("cublas" #Name, handle, count, {{x, inc_x}}, multiplies, result, \
                     [&] { return value; });                                          \
  }
#define CONVLADDER_REDUCTIONS(Letter, letter, T)                                                \
  cublasStatus_t cublas##Letter##dot(cublasHandle_t handle, int n, const T* x, int inc_x,       \
                                     const T* y, int inc_y, T* result) {                        \
    return reduce<T>("cublas" #Letter "dot", handle, n, {{x, inc_x}, {y, inc_y}}, true, result, \
                     [&] { return cblas_##letter##dot(n, x, inc_x, y, inc_y); });               \
  }                                                                                             \
  CONVLADDER_REDUCTION(Letter##nrm2, T, T, true, cblas_##letter##nrm2(n, x, inc_x))             \
  CONVLADDER_REDUCTION(Letter##asum, T, T, false, cblas_##letter##asum(n, x, inc_x))            \
  CONVLADDER_REDUCTION(I##letter##amax, T, int, false, cblas_i##letter##amax(n, x, inc_x) + 1)
CONVLADDER_REDUCTIONS(S, s, float)
CONVLADDER_REDUCTIONS(D, d, double)
#undef CONVLADDER_REDUCTIONS
#undef CONVLADDER_REDUCTION
