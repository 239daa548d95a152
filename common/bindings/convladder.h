/* ConvLadder's stages for C, and for whatever can call C: libconvladder.so.
 *
 * A library runs either on a GPU or in the simulator (convladder_backend() says which). "Device
 * pointers" are CUDA device pointers in the first case, host pointers in the second.
 *
 * Every function may be called from any thread at any time. Where a function returns a status other
 * than CONVLADDER_SUCCESS, nothing was written to what the arguments point to, and
 * convladder_last_error() says why. No C++ exception leaves the library.
 */
#ifndef CONVLADDER_H
#define CONVLADDER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CONVLADDER_API __attribute__((visibility("default")))

/* Counts up when a declaration below changes its meaning. */
#define CONVLADDER_ABI_VERSION 2

typedef enum convladder_status {
  CONVLADDER_SUCCESS = 0,
  CONVLADDER_INVALID_ARGUMENT = 1, /* the message names the argument and its value */
  CONVLADDER_CUDA_ERROR = 2,       /* the message names the call and the runtime's reason */
  CONVLADDER_INTERNAL_ERROR = 3    /* anything else, host memory that is short, say */
} convladder_status;

/* Input NCHW, filters [K, C/groups, R, S], output NKPQ, all float32 and dense. All fields are
 * checked; groups must divide c and k. common/core/conv_shape.h has the limits. */
typedef struct convladder_problem {
  int64_t n, c, h, w, k, r, s;
  int64_t stride_h, stride_w, pad_h, pad_w, dil_h, dil_w;
  int64_t groups;
} convladder_problem;

/* As workspace_bytes of a convladder_convolution, with a null workspace: the library allocates, and
 * frees when the work is done, both in the order of the stream (cudaMallocAsync). */
#define CONVLADDER_ALLOCATE_WORKSPACE SIZE_MAX

/* output = conv(input, filters) + bias, then ReLU if asked. What is written lies apart from what is read. The
 * four tensors are device pointers that need the 4-byte alignment of a float and no more; the counts say how many
 * elements lie behind each. */
typedef struct convladder_convolution {
  convladder_problem problem;
  const float* input;   /* [N,C,H,W], or channels last, as the stage's name says */
  const float* filters; /* [K,C/groups,R,S], or [K,R,S,C/groups] */
  const float* bias;    /* [K], or null for none: bias_count is not looked at then */
  float* output;        /* [N,K,P,Q], or channels last */
  int64_t input_count, filter_count, bias_count, output_count;
  int32_t relu; /* 0, or 1 where the stage applies ReLU: max(x, 0), but NaN stays NaN */
  /* Scratch memory on the device, 256-byte aligned, of a size that convladder_workspace_bytes()
   * gives for some limit, or more. Two streams must not use the same at a time. */
  void* workspace;
  size_t workspace_bytes;
} convladder_convolution;

CONVLADDER_API int convladder_abi_version(void);

/* "gpu" or "sim". */
CONVLADDER_API const char* convladder_backend(void);

/* The stages in order, ended by a null pointer: "01_naive", ... Valid for ever. Where a name ends with "_nhwc",
 * input, filters and output lie channels last, [N,H,W,C], [K,R,S,C/groups] and [N,P,Q,K]; such a stage has no
 * gradients. Wherever one is named, "auto" is the stage that suits the problem. A stage may not be for a problem:
 * CONVLADDER_INVALID_ARGUMENT, and a message that begins "not for this shape". */
CONVLADDER_API const char* const* convladder_stage_names(void);

/* size = {N, K, P, Q}: the extents of the output. Fails where the problem is invalid. */
CONVLADDER_API convladder_status convladder_output_size(const convladder_problem* problem,
                                                        int64_t size[4]);

/* bytes = the workspace that the stage wants for the problem, at most `limit`: 0 bytes, for some.
 * Fails where the problem is invalid, and where the stage cannot work within `limit`; the message
 * then says with how much it could. */
CONVLADDER_API convladder_status convladder_workspace_bytes(const char* stage,
                                                            const convladder_problem* problem,
                                                            size_t limit, size_t* bytes);

/* Enqueues the convolution on `stream`, a cudaStream_t of the current device (null: the default
 * stream), and returns. Errors of the kernel itself come out of a later CUDA call, as always; in
 * the simulator the work is done when this returns, and the errors come out of it. */
CONVLADDER_API convladder_status convladder_run(const char* stage,
                                                const convladder_convolution* convolution,
                                                void* stream);

/* stage = the one that "auto" is for the problem, and why, in a line of at most why_bytes with its ending
 * null (longer ones are cut). The stage's name is valid for ever; why
 * may be null. */
CONVLADDER_API convladder_status convladder_choose(const convladder_problem* problem,
                                                   const char** stage, char* why, size_t why_bytes);

/* Times the stages on the current device, on tensors of its own, and keeps the fastest for "auto", as long
 * as the process lasts. Waits for the device. */
CONVLADDER_API convladder_status convladder_tune(const convladder_problem* problem, void* stream);

/* What comes back through output = conv(input, filters) + bias. A gradient that is null isn't wanted; the
 * input is looked at for the filters' gradient alone, the filters for the input's. A count is of a tensor and
 * of its gradient. ReLU is not in it: where the output was not positive, set its gradient to 0 before. */
typedef struct convladder_gradients {
  convladder_problem problem;
  const float* input;           /* [N,C,H,W] */
  const float* filters;         /* [K,C/groups,R,S] */
  const float* output_gradient; /* [N,K,P,Q] */
  float* input_gradient;
  float* filter_gradient;
  float* bias_gradient; /* [K] */
  int64_t input_count, filter_count, bias_count, output_count;
  void* workspace; /* as in convladder_convolution */
  size_t workspace_bytes;
} convladder_gradients;

/* bytes = the workspace for the gradients that are not null; of the struct nothing else but the problem is
 * looked at. Within `limit` where that is possible, by fewer images at a time. */
CONVLADDER_API convladder_status convladder_gradient_workspace_bytes(
    const char* stage, const convladder_gradients* gradients, size_t limit, size_t* bytes);

/* As convladder_run(). All by the stage's forward kernels: where it isn't for one of the convolutions that
 * this takes, by the stage that suits it. */
CONVLADDER_API convladder_status convladder_run_gradients(const char* stage,
                                                          const convladder_gradients* gradients,
                                                          void* stream);

/* Why this thread's last call that returns a status failed; "" if it succeeded, or there was none.
 * Valid until the next such call of this thread. */
CONVLADDER_API const char* convladder_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
