// What a stage is: the interface between the kernels and everything that runs them.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "common/core/conv_shape.h"

namespace convladder {

// Memory for intermediate results that a stage may use, unless the caller says otherwise.
constexpr std::size_t DEFAULT_WORKSPACE_LIMIT = std::size_t{1} << 30;

// What a product is made of. FP32: 24 bits of each factor. TF32: 11 of them, by tensor cores; another
// result in another time, held to a rule of its own. The sum is FP32 either way.
enum class Precision { kFp32, kTf32 };
constexpr Precision FP32 = Precision::kFp32, TF32 = Precision::kTf32;

const char* to_string(Precision precision);  // "fp32" or "tf32"

// How input and output lie: [N,C,H,W], or channels last, [N,H,W,C]. Filters then are [K,R,S,C], too.
enum class Layout { kNchw, kNhwc };
constexpr Layout NCHW = Layout::kNchw, NHWC = Layout::kNhwc;
// A legal problem that one stage doesn't take, while others do: "not for this shape: ...".
struct NotForShape : InvalidArgument {
  using InvalidArgument::InvalidArgument;
};

// One convolution to compute: output = conv(input, filters) + bias, then ReLU if asked. All
// pointers are device pointers and need only the 4-byte alignment of a float; output and workspace
// overlap nothing. The counts say how many elements lie behind each pointer.
// A NaN in the input reaches the outputs whose windows see it, and no others. A filter that is not
// finite may make NaN at the padding: stage 01 leaves such taps out, the others multiply them by 0.
// Where a stage multiplies by tensor cores, infinity in input or filters may become NaN, too, and so
// may what is too large for TF32 (from 2^128 - 2^116 on).
struct Convolution {
  ConvShape shape;
  const float* input = nullptr;    // [N,C,H,W], or as the stage's layout says
  const float* filters = nullptr;  // [K,C/groups,R,S], or as the layout says

  const float* bias = nullptr;  // [K], or null for none
  float* output = nullptr;      // [N,K,P,Q]
  int64_t input_count = 0, filter_count = 0, bias_count = 0, output_count = 0;
  bool relu = false;  // max(x, 0), but NaN stays NaN; only stages with fuses_relu take it

  // Scratch memory, 256-byte aligned (as cudaMalloc gives it), contents undefined before and after.
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
};

// Registered by the stage's own source file; see CONVLADDER_REGISTER_STAGE below.
struct Stage {
  const char* name;     // the folder's name: "01_naive"
  const char* summary;  // the one idea, in a few words
  // Enqueues the work, that of all groups, on `stream` and returns; allocates nothing (but a library
  // handle, once). Arguments are valid already.
  void (*enqueue)(const Convolution& conv, cudaStream_t stream);
  // Bytes of workspace the stage wants for that work, at most `limit` (if it can work with that
  // little; else the least it can work with). Null: none.
  std::size_t (*workspace_bytes)(const ConvShape& shape, std::size_t limit);
  bool fuses_relu;
  Precision precision =
      Precision::kFp32;  // by whose rule it is judged, and beside whom it is timed
  // Tensor cores multiply, and not the FP32 units. In FP32 a factor is then cut in TF32 numbers, of which the
  // smallest is 2^-136: to the rule for errors a factor below 2^-113 counts as 2^-113.
  bool tensor_cores = precision == TF32;
  // The first that runs it, times ten. 90, for 9.0, is the only one: no later one has its wgmma. 0: any.
  int compute_capability = 0;
  Layout layout = NCHW;  // of input and output
  // Null: the stage takes every legal problem. Else what it wants instead of one that it doesn't take
  // ("one channel in each group"), and null for one that it takes.
  const char* (*wants)(const ConvShape& shape) = nullptr;
};

// "needs compute capability 9.0" (or "8.0 or more") where the current device doesn't run it; else empty.
std::string lack_of(const Stage& stage);

// All stages linked into this program, ordered by name.
const std::vector<Stage>& stages();

// The stage called `name`; "auto" is the one that suits the problem (choice.h). Throws InvalidArgument,
// listing the names there are.
const Stage& find_stage(const std::string& name);

// Throws InvalidArgument when the shape is invalid, NotForShape when the stage doesn't take it. So do the
// functions below.
void require_taken(const Stage& stage, const ConvShape& shape);

// Bytes of workspace that `stage` wants for `shape`. Throws InvalidArgument when the stage cannot work
// within `limit` bytes.
std::size_t workspace_bytes(const Stage& stage, const ConvShape& shape,
                            std::size_t limit = DEFAULT_WORKSPACE_LIMIT);

// Bytes of workspace with which `stage` just works for `shape`.
std::size_t least_workspace_bytes(const Stage& stage, const ConvShape& shape);

// Checks every argument (shape, null or misaligned pointers, buffers too small, workspace, ReLU where
// the stage has none), then enqueues. Throws InvalidArgument for the arguments, and CudaError for an
// error that an earlier call left behind, or a device that the stage lack_of()s: then the output is
// untouched. Throws CudaError where the runtime refuses the work. Asynchronous, ordered on `stream`.
void run(const Stage& stage, const Convolution& conv, cudaStream_t stream);

// What run() checks, for other calls as well; each throws as it does.
void require_buffer(const char* name, const void* pointer, int64_t count, int64_t needed);
void require_workspace(const void* workspace, std::size_t bytes, std::size_t least,
                       const std::string& whose);
void require_no_earlier_error();

struct StageRegistration {
  explicit StageRegistration(const Stage& stage);
};

// In a stage's source, at namespace scope: CONVLADDER_REGISTER_STAGE({"01_naive", ...}); in two precisions
// it is two of them.
#define CONVLADDER_REGISTER_STAGE(...) CONVLADDER_REGISTER_AT(__LINE__, __VA_ARGS__)
#define CONVLADDER_REGISTER_AT(line, ...) CONVLADDER_REGISTER_AS(line, __VA_ARGS__)
#define CONVLADDER_REGISTER_AS(line, ...)                            \
  static const ::convladder::StageRegistration registration_##line { \
    ::convladder::Stage __VA_ARGS__                                  \
  }

}  // namespace convladder
