// Times every linked stage on every layer, with its own plan and with forced ones. -DOLD: the tree before.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>
#include <fstream>
#include <map>
#include <sstream>

#include "common/core/launch.h"
#include "common/core/stage.h"

using namespace convladder;

struct Problem {
  std::string name;
  ConvArguments arguments;
  bool bias;
};
static std::vector<Problem> read_problems(const char* path) {
  std::ifstream file(path);
  std::vector<std::string> head;
  std::vector<Problem> all;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string> cells;
    std::stringstream words(line);
    for (std::string word; std::getline(words, word, ',');) cells.push_back(word);
    if (head.empty()) { head = cells; continue; }
    std::map<std::string, long> v;
    for (std::size_t i = 1; i < cells.size() && i < head.size(); ++i) v[head[i]] = atol(cells[i].c_str());
    Problem p;
    p.name = cells[0];
    ConvArguments& a = p.arguments;
    a.n = v["n"], a.c = v["c"], a.h = v["h"], a.w = v["w"], a.k = v["k"], a.r = v["r"], a.s = v["s"];
    a.stride_h = v["stride_h"], a.stride_w = v["stride_w"], a.pad_h = v["pad_h"], a.pad_w = v["pad_w"];
    a.dil_h = v["dil_h"], a.dil_w = v["dil_w"], a.groups = v["groups"], p.bias = v["bias"];
    all.push_back(p);
  }
  return all;
}

static __global__ void fill(float* p, int64_t n, unsigned seed) {
  for (int64_t i = blockIdx.x * int64_t{256} + threadIdx.x; i < n; i += int64_t{gridDim.x} * 256) {
    unsigned h = static_cast<unsigned>(i) * 2654435761u ^ seed;
    h ^= h >> 15, h *= 2246822519u, h ^= h >> 13, h *= 3266489917u, h ^= h >> 16;
    p[i] = (h >> 8) * (2.0f / 16777216) - 1.0f;
  }
}
static __global__ void worst(const float* a, const float* b, int64_t n, float* out) {
  float most = 0, size = 0;
  for (int64_t i = blockIdx.x * int64_t{256} + threadIdx.x; i < n; i += int64_t{gridDim.x} * 256) {
    float e = fabsf(a[i] - b[i]);
    if (!(e <= 3e38f)) e = 3e38f;
    most = fmaxf(most, e), size = fmaxf(size, fabsf(b[i]));
  }
  atomicMax(reinterpret_cast<int*>(out), __float_as_int(most));
  atomicMax(reinterpret_cast<int*>(out + 1), __float_as_int(size));
}
static void ok(cudaError_t e, const char* what) {
  if (e != cudaSuccess) printf("CUDA %s: %s\n", what, cudaGetErrorString(e)), fflush(stdout), exit(3);
}

int main(int argc, char** argv) {
  // sweep LAYERS.csv OUT.csv SECONDS [forced]
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  const double limit = atof(argv[3]);
  const bool forced = argc > 4;
  FILE* out = fopen(argv[2], "w");
  fprintf(out, "layer,stage,TM,parts,ms,error\n");
  const std::size_t FLUSH = 160u << 20, WORKSPACE = 1u << 30;
  float *flush, *workspace, *result;
  ok(cudaMalloc(&flush, FLUSH), "malloc");
  ok(cudaMalloc(&workspace, WORKSPACE), "malloc");
  ok(cudaMalloc(&result, 8), "malloc");
  cudaEvent_t a, b;
  cudaEventCreate(&a), cudaEventCreate(&b);
  auto problems = read_problems(argv[1]);
  // The layers in an order that mixes networks, so that a run cut short is a sample.
  std::vector<std::size_t> order(problems.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i * 37 % problems.size();
  for (const std::size_t at : order) {
    if (seconds() > limit) { printf("time is over\n"); break; }
    const Problem& problem = problems[at];
    const ConvShape shape = make_conv_shape(problem.arguments);
    float *x, *w, *bias, *y, *y0;
    ok(cudaMalloc(&x, shape.input_count() * 4), "x");
    ok(cudaMalloc(&w, shape.filter_count() * 4), "w");
    ok(cudaMalloc(&bias, shape.total_K() * 4), "bias");
    ok(cudaMalloc(&y, shape.output_count() * 4), "y");
    ok(cudaMalloc(&y0, shape.output_count() * 4), "y0");
    fill<<<1024, 256>>>(x, shape.input_count(), 1);
    fill<<<1024, 256>>>(w, shape.filter_count(), 2);
    fill<<<16, 256>>>(bias, shape.total_K(), 3);
    bool first = true;
    for (const Stage& stage : stages()) {
      if (std::string(stage.name) < "05" ) continue;
      struct Way { int TM, parts; bool tf32; };
      std::vector<Way> ways = {{0, 0, false}};
#ifdef OLD
      if (stage.tf32_name) ways.push_back({0, 0, true});
#else
      const std::string name = stage.name;
      const bool variant = name[2] == 'v';
      const bool tiles = !variant && (name.substr(0, 2) == "09" || name.substr(0, 2) == "10");
      const bool parts = !variant && name.substr(0, 2) >= "11";
      if (forced && (tiles || parts)) {
        for (int TM = tiles ? 8 : 4; TM <= 16; TM += 4) {
          if (TM >= 8 && TM * 8 >= 2 * ((shape.K + 31) / 32 * 32)) continue;
          int last = 0;
          for (const int p : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48}) {
            if (tiles && p > 1) break;
            const int64_t blocks = shape.groups * ceil_div(shape.K, 8 * TM) * ceil_div(int64_t{shape.N} * shape.PQ(), 128);
            if (p > 1 && (shape.CRS() / p < 24 || blocks * last > 132 * 4)) break;
            ways.push_back({TM, p, false});
            last = p;
          }
        }
      }
#endif
      for (const Way& way : ways) {
        char plan[32];
        snprintf(plan, sizeof plan, "%d,%d", way.TM, way.parts);
        if (way.TM) setenv("CONVLADDER_PLAN", plan, 1);
        else unsetenv("CONVLADDER_PLAN");
        Convolution conv;
        conv.shape = shape;
        conv.input = x, conv.input_count = shape.input_count();
        conv.filters = w, conv.filter_count = shape.filter_count();
        conv.bias = problem.bias && stage.fuses_relu ? bias : nullptr, conv.bias_count = shape.total_K();
        conv.output = y, conv.output_count = shape.output_count();
        conv.workspace = workspace;
#ifdef OLD
        conv.precision = way.tf32 ? Precision::kTf32 : Precision::kFp32;
#endif
        try {
          conv.workspace_bytes = workspace_bytes(stage, shape, WORKSPACE);
          ok(cudaMemsetAsync(y, 0xff, shape.output_count() * 4), "memset");
          run(stage, conv, nullptr);
        } catch (const std::exception& e) {
          fprintf(out, "%s,%s,%d,%d,-1,%s\n", problem.name.c_str(), stage.name, way.TM, way.parts, "refused");
          cudaGetLastError();
          continue;
        }
        ok(cudaDeviceSynchronize(), stage.name);
        float error[2] = {};
        if (first) {
          ok(cudaMemcpy(y0, y, shape.output_count() * 4, cudaMemcpyDeviceToDevice), "copy"), first = false;
        } else {
          cudaMemset(result, 0, 8);
          worst<<<512, 256>>>(y, y0, shape.output_count(), result);
          ok(cudaMemcpy(error, result, 8, cudaMemcpyDeviceToHost), "copy");
        }
        std::vector<float> times;
        const int repeats = way.TM == 0 ? 7 : 3;
        for (int i = 0; i < repeats; ++i) {
          cudaMemsetAsync(flush, i, FLUSH);
          cudaEventRecord(a);
          run(stage, conv, nullptr);
          cudaEventRecord(b);
          cudaEventSynchronize(b);
          float ms;
          cudaEventElapsedTime(&ms, a, b);
          times.push_back(ms);
        }
        std::sort(times.begin(), times.end());
        fprintf(out, "%s,%s%s,%d,%d,%.5f,%.2e\n", problem.name.c_str(), stage.name, way.tf32 ? "_tf32" : "", way.TM,
                way.parts, times[times.size() / 2], error[1] > 0 ? error[0] / error[1] : 0.0f);
      }
    }
    fflush(out);
    cudaFree(x), cudaFree(w), cudaFree(bias), cudaFree(y), cudaFree(y0);
  }
  printf("sweep: %.0f s\n", seconds());
}
