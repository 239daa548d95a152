#include "common/check/launches.h"

#include <memory>

#include "common/core/launch.h"
#include "common/core/program.h"

#ifndef CUDART_VERSION
#include "common/simulator/launch.h"
#endif

namespace convladder {

#ifndef CUDART_VERSION
std::vector<KernelLaunch> launches_of(const Stage& stage, const Convolution& conv) {
  std::vector<KernelLaunch> launches;
  const simulator::DeviceMemoryOutOfReach out_of_reach;
  for (const simulator::LaunchWork& work :
       simulator::plan_launches([&] { run(stage, conv, nullptr); })) {
    if (work.code) launches.push_back({read_symbols(work.code).name, work.blocks, work.blocks_y});
  }
  return launches;
}
#else
// A stream that is captured runs nothing: its work becomes a graph, whose nodes can be asked.
std::vector<KernelLaunch> launches_of(const Stage& stage, const Convolution& conv) {
  cudaStream_t stream;
  check_cuda(cudaStreamCreate(&stream), "cudaStreamCreate");
  const std::shared_ptr<void> end_stream(nullptr, [&](void*) { cudaStreamDestroy(stream); });
  cudaGraph_t graph = nullptr;
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed),
             "cudaStreamBeginCapture");
  try {
    run(stage, conv, stream);
  } catch (...) {
    cudaStreamEndCapture(stream, &graph);
    if (graph) cudaGraphDestroy(graph);
    throw;
  }
  check_cuda(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  const std::shared_ptr<void> end_graph(nullptr, [&](void*) { cudaGraphDestroy(graph); });
  std::size_t count = 0;
  check_cuda(cudaGraphGetNodes(graph, nullptr, &count), "cudaGraphGetNodes");
  std::vector<cudaGraphNode_t> nodes(count);
  check_cuda(cudaGraphGetNodes(graph, nodes.data(), &count), "cudaGraphGetNodes");
  std::vector<KernelLaunch> launches;
  for (const cudaGraphNode_t node : nodes) {
    cudaKernelNodeParams params = {};
    const char* name = nullptr;
    if (cudaGraphKernelNodeGetParams(node, &params) != cudaSuccess ||
        cudaFuncGetName(&name, params.func) != cudaSuccess) {
      cudaGetLastError();  // no kernel, or a library's
      continue;
    }
    const dim3 grid = params.gridDim;
    launches.push_back({kernel_name(name), int64_t{grid.x} * grid.y * grid.z, grid.y});
  }
  return launches;
}
#endif

}  // namespace convladder
