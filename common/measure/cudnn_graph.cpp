#include "common/measure/cudnn_graph.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/core/launch.h"

namespace convladder {

void check_cudnn(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  cudaGetLastError();  // it would otherwise be reported by the next launch
  throw CudaError(std::string(what) + ": " + cudnnGetErrorString(status));
}

namespace {

enum Id : int64_t { kInput = 1, kFilters, kBias, kSum, kOutput };  // of tensors in the graph

constexpr int64_t ALIGNMENT = 16;  // bytes; what cudaMalloc gives is aligned to 256

// What an engine says of its numbers, and how a reader calls it.
constexpr std::array<std::pair<cudnnBackendNumericalNote_t, const char*>, 8> NOTES = {{
    {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, "tensor cores"},
    {CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, "inputs rounded"},
    {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, "sums rounded"},
    {CUDNN_NUMERICAL_NOTE_FFT, "FFT"},
    {CUDNN_NUMERICAL_NOTE_WINOGRAD, "Winograd"},
    {CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4, "Winograd 4x4"},
    {CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6, "Winograd 6x6"},
    {CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13, "Winograd 13x13"},
}};
constexpr int FP32_EXCLUDES = 3;  // the first of them

}  // namespace

class CudnnDescriptor {
 public:
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type) {
    check_cudnn(cudnnBackendCreateDescriptor(type, &object_), "cudnnBackendCreateDescriptor");
  }
  ~CudnnDescriptor() { cudnnBackendDestroyDescriptor(object_); }
  CudnnDescriptor(const CudnnDescriptor&) = delete;

  template <typename T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
           const std::vector<T>& values) {
    check_cudnn(cudnnBackendSetAttribute(object_, name, type, static_cast<int64_t>(values.size()),
                                         values.data()),
                "cudnnBackendSetAttribute");
  }
  void set(cudnnBackendAttributeName_t name, const std::vector<int64_t>& values) {
    set(name, CUDNN_TYPE_INT64, values);
  }
  void refer(cudnnBackendAttributeName_t name,
             const std::vector<std::shared_ptr<CudnnDescriptor>>& others) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, objects(others));
  }
  void finalize() { check_cudnn(cudnnBackendFinalize(object_), "cudnnBackendFinalize"); }

  // Up to `most` values of an attribute.
  template <typename T>
  std::vector<T> get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                     int64_t most) const {
    std::vector<T> values(static_cast<std::size_t>(most));
    int64_t count = 0;
    check_cudnn(cudnnBackendGetAttribute(object_, name, type, most, &count, values.data()),
                "cudnnBackendGetAttribute");
    values.resize(static_cast<std::size_t>(std::min(count, most)));
    return values;
  }
  // Fills descriptors that have been created for it. How many there are.
  int64_t get(cudnnBackendAttributeName_t name,
              const std::vector<std::shared_ptr<CudnnDescriptor>>& others) const {
    std::vector<cudnnBackendDescriptor_t> filled = objects(others);
    int64_t count = 0;
    check_cudnn(cudnnBackendGetAttribute(object_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                         static_cast<int64_t>(filled.size()), &count,
                                         filled.empty() ? nullptr : filled.data()),
                "cudnnBackendGetAttribute");
    return count;
  }
  void execute(cudnnHandle_t handle, const CudnnDescriptor& variant_pack) const {
    check_cudnn(cudnnBackendExecute(handle, object_, variant_pack.object_), "cudnnBackendExecute");
  }

 private:
  static std::vector<cudnnBackendDescriptor_t> objects(
      const std::vector<std::shared_ptr<CudnnDescriptor>>& descriptors) {
    std::vector<cudnnBackendDescriptor_t> result;
    for (const auto& descriptor : descriptors) result.push_back(descriptor->object_);
    return result;
  }

  cudnnBackendDescriptor_t object_ = nullptr;
};

namespace {

using Descriptor = std::shared_ptr<CudnnDescriptor>;

Descriptor make(cudnnBackendDescriptorType_t type) {
  return std::make_shared<CudnnDescriptor>(type);
}

// A tensor of these extents (batch, channels, rows, columns). A virtual one stays inside of a kernel.
Descriptor tensor(Id id, const std::array<int64_t, 4>& extents, bool nhwc,
                  bool is_virtual = false) {
  const auto [n, c, h, w] = extents;
  const Descriptor result = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  result->set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, std::vector{CUDNN_DATA_FLOAT});
  result->set(CUDNN_ATTR_TENSOR_DIMENSIONS, {n, c, h, w});
  result->set(CUDNN_ATTR_TENSOR_STRIDES, nhwc ? std::vector<int64_t>{c * h * w, 1, w * c, c}
                                              : std::vector<int64_t>{c * h * w, h * w, w, 1});
  result->set(CUDNN_ATTR_TENSOR_UNIQUE_ID, {id});
  result->set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, {ALIGNMENT});
  if (is_virtual) {
    result->set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, std::vector<char>{1});
  }
  result->finalize();
  return result;
}

Descriptor convolution(const ConvShape& s) {
  const Descriptor result = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  result->set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, {2});
  result->set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
              std::vector{CUDNN_DATA_FLOAT});
  result->set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
              std::vector{CUDNN_CROSS_CORRELATION});
  result->set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {s.pad_h, s.pad_w});
  result->set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, {s.pad_h, s.pad_w});
  result->set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {s.stride_h, s.stride_w});
  result->set(CUDNN_ATTR_CONVOLUTION_DILATIONS, {s.dil_h, s.dil_w});
  result->finalize();
  return result;
}

// The graph: a convolution, and with `bias` its sum.
Descriptor graph(cudnnHandle_t handle, const ConvShape& s, bool nhwc, bool bias) {
  const std::array<int64_t, 4> outputs = {s.N, s.total_K(), s.P(), s.Q()};
  const Descriptor output = tensor(kOutput, outputs, nhwc);
  const Descriptor sums = bias ? tensor(kSum, outputs, nhwc, true) : output;
  const Descriptor conv = make(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  conv->refer(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              {tensor(kInput, {s.N, s.total_C(), s.H, s.W}, nhwc)});
  conv->refer(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              {tensor(kFilters, {s.total_K(), s.C, s.R, s.S}, nhwc)});
  conv->refer(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, {sums});
  conv->refer(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, {convolution(s)});
  conv->set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, std::vector{1.0f});
  conv->set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, std::vector{0.0f});
  conv->finalize();
  const Descriptor result = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  result->set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, std::vector{handle});
  if (!bias) {
    result->refer(CUDNN_ATTR_OPERATIONGRAPH_OPS, {conv});
    result->finalize();
    return result;
  }
  const Descriptor sum = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  sum->set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, std::vector{CUDNN_POINTWISE_ADD});
  sum->set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, std::vector{CUDNN_DATA_FLOAT});
  sum->finalize();
  const Descriptor add = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  add->refer(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, {sum});
  add->refer(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, {sums});
  add->refer(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, {tensor(kBias, {1, s.total_K(), 1, 1}, nhwc)});
  add->refer(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, {output});
  add->finalize();
  result->refer(CUDNN_ATTR_OPERATIONGRAPH_OPS, {conv, add});
  result->finalize();
  return result;
}

std::vector<Descriptor> engine_configs(const Descriptor& graph, cudnnBackendHeurMode_t mode) {
  const Descriptor heuristics = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics->refer(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, {graph});
  heuristics->set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, std::vector{mode});
  heuristics->finalize();
  std::vector<Descriptor> configs(
      static_cast<std::size_t>(heuristics->get(CUDNN_ATTR_ENGINEHEUR_RESULTS, {})));
  for (Descriptor& config : configs) config = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  const int64_t filled = heuristics->get(CUDNN_ATTR_ENGINEHEUR_RESULTS, configs);
  configs.resize(static_cast<std::size_t>(filled));
  return configs;
}

}  // namespace

std::vector<CudnnEngine> cudnn_engines(cudnnHandle_t handle, const ConvShape& shape,
                                       Precision precision, bool nhwc, bool bias) {
  std::vector<CudnnEngine> engines;
  const Descriptor operations = graph(handle, shape, nhwc, bias);
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const Descriptor& config : engine_configs(operations, mode)) {
      const Descriptor engine = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
      config->get(CUDNN_ATTR_ENGINECFG_ENGINE, {engine});
      std::string name = "engine " + std::to_string(engine->get<int64_t>(
                                         CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1)[0]);
      const auto notes = engine->get<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                                                  CUDNN_TYPE_NUMERICAL_NOTE,
                                                                  CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
      bool fp32 = true;
      for (std::size_t i = 0; i < NOTES.size(); ++i) {
        if (std::count(notes.begin(), notes.end(), NOTES[i].first) == 0) continue;
        name += std::string(", ") + NOTES[i].second;
        fp32 = fp32 && i >= FP32_EXCLUDES;
      }
      if (fp32 || precision == Precision::kTf32) engines.push_back({name, config});
    }
  }
  return engines;
}

CudnnGraphPlan::CudnnGraphPlan(cudnnHandle_t handle, std::shared_ptr<CudnnDescriptor> engine_config)
    : plan_(make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)) {
  plan_->set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, std::vector{handle});
  plan_->refer(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, {engine_config});
  plan_->finalize();
  workspace_bytes_ =
      plan_->get<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1)[0];
}

void CudnnGraphPlan::enqueue(cudnnHandle_t handle, const CudnnTensors& tensors) const {
  CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  std::vector<int64_t> ids = {kInput, kFilters, kOutput};
  std::vector<const void*> pointers = {tensors.input, tensors.filters, tensors.output};
  if (tensors.bias != nullptr) {
    ids.push_back(kBias);
    pointers.push_back(tensors.bias);
  }
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers);
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, std::vector{tensors.workspace});
  pack.finalize();
  plan_->execute(handle, pack);
}

}  // namespace convladder
