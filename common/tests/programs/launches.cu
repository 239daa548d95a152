// How kernels are launched: templates whose arguments are deduced, pointers, macros, streams, NULL for a pointer.
// seen: scaled 6, 8
// seen: set 7 7
// seen: applied 15
// seen: pointer 3
// seen: macro 4
// seen: overloaded 1 2
// seen: cudaLaunchKernel 9
// seen: of tables 7 6
// seen: using declarations 3 15
// seen: functions and arrays 9 84
// seen: nothing at null
// seen: behind colons 8 40
// seen: get 11
// seen: braces 7 12 3 20
// status: 0
#include <cstdio>
#include <vector>

template <typename T, int N = 2>
__global__ void scale(T* x, const T factor = T(1)) {
  if (threadIdx.x < N) x[threadIdx.x] *= factor;
}
namespace inner {
__global__ void set(float* x, int count, float value);  // declared first
}
__global__ void __launch_bounds__(64) inner::set(float* x, int count, float value) {
  if (static_cast<int>(threadIdx.x) < count) x[threadIdx.x] = value;
}
template <class F>
__global__ void apply(F f, float* x) {
  x[threadIdx.x] = f(threadIdx.x);
}
__global__ void overloaded(float* x) { *x = 1; }
__global__ void overloaded(int* x) { *x = 2; }
namespace used {
template <typename T>
__global__ void put(T* x) {
  *x = T(3);
}
__global__ void put_product(float* x, float a, float b = 5) { *x = a * b; }
}  // namespace used
using used::put, used::put_product;
__device__ float square(float x) { return x * x; }
template <float (*F)(float)>
__global__ void map(float* x) {
  *x = F(3);
}
template <float F(float), int (*)[2] = nullptr>
__global__ void take_array(float (*x)[4], const float y[], float (*)[4] = nullptr, float a = 3) {
  x[0][1] = F(y[0]) + a;
}
struct Apart {};  // the simulator has such names itself
__global__ void get(float* x) {
  auto [column, row, plane] = threadIdx;
  x[column] = 11 + row + plane;
}
__global__ void maybe(float* there, const float* from) {
  if (!from) *there = 5;
}

struct Line {
  float factor = 3, addend = 0;
  __device__ float operator()(float x) const { return factor * x + addend; }
};
__global__ void __maxnreg__(32) put_line(float* x, Line line) { *x = line(2); }
template <typename F, typename T>
__global__ void apply_to(T* x, F f, dim3 to, float more = 0) {
  x[to.x] = f(T(to.y)) + more;
}

template <typename Kernel>
void launch_it(Kernel kernel, float* x, float value) {
  kernel<<<1, 1>>>(x, 1, value);
}
#define LAUNCH(kernel, ...) kernel<<<dim3(1, 1), dim3(1, 1, 1), 0, stream>>>(__VA_ARGS__)

std::vector<float> values(const float* x, int count) {
  std::vector<float> all(count);
  cudaMemcpy(all.data(), x, count * sizeof(float), cudaMemcpyDeviceToHost);
  return all;
}

int main() {
  float* x = nullptr;
  cudaMalloc(&x, 1024);
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  const float start[] = {3, 4};
  cudaMemcpy(x, start, sizeof(start), cudaMemcpyHostToDevice);
  scale<<<1, 32, 0, stream>>>(x, 2.0f);
  printf("scaled %g, %g\n", values(x, 2)[0], values(x, 2)[1]);
  scale<float, 1><<<1, 32>>>(x, 1);  // an int for a float
  inner::set<<<1, 2>>>(x, 2, 7);
  printf("set %g %g\n", values(x, 2)[0], values(x, 2)[1]);
  const int factor = 5;
  apply<<<1, 4>>>([=] __device__(int i) { return 1.0f * i * factor; }, x);
  printf("applied %g\n", values(x, 4)[3]);
  launch_it(inner::set, x, 3);
  void (*chosen[])(float*, int, float) = {inner::set};
  chosen[0]<<<1, 1>>>(x + 1, 1, 3);
  printf("pointer %g\n", values(x, 2)[1]);
  LAUNCH(inner::set, x, 1, 4);
  printf("macro %g\n", values(x, 1)[0]);
  int* i = reinterpret_cast<int*>(x + 8);
  overloaded<<<1, 1>>>(x);
  overloaded<<<1, 1>>>(i);
  int two = 0;
  cudaMemcpy(&two, i, sizeof(two), cudaMemcpyDeviceToHost);
  printf("overloaded %g %d\n", values(x, 1)[0], two);
  int count = 1;
  float nine = 9;
  void* arguments[] = {&x, &count, &nine};
  cudaLaunchKernel((void*)inner::set, dim3(1), dim3(1), arguments, 0, stream);
  printf("cudaLaunchKernel %g\n", values(x, 1)[0]);
  void (*const table[])(float*, int, float) = {inner::set, nullptr};
  nine = 7;
  cudaLaunchKernel((const void*)table[0], dim3(1), dim3(1), arguments);
  const float seven = values(x, 1)[0];
  nine = 6;
  cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(*table), dim3(1), dim3(1), arguments);
  printf("of tables %g %g\n", seven, values(x, 1)[0]);
  put<float><<<1, 1>>>(x);
  put_product<<<1, 1>>>(x + 1, 3);
  printf("using declarations %g %g\n", values(x, 1)[0], values(x, 2)[1]);
  map<square><<<1, 1>>>(x);
  take_array<square><<<1, 1>>>(reinterpret_cast<float(*)[4]>(x), x);
  printf("functions and arrays %g %g\n", values(x, 1)[0], values(x, 2)[1]);
  maybe<<<1, 1>>>(x, NULL);
  printf(values(x, 1)[0] == 5 ? "nothing at null\n" : "something at null\n");
  // clang-format off
  switch (count) { case 1:maybe<<<1, 1>>>(x, NULL); memcpy(&nine, &count, 4); break; default:put<float><<<1, 1>>>(x); }
  count ?put_product<<<1, 1>>>(x, 4, 2):put<float><<<1, 1>>>(x);
  !count ? put<float><<<1, 1>>>(x + 1):put_product<<<1, 1>>>(x + 1, 8);
  // clang-format on
  printf("behind colons %g %g\n", values(x, 1)[0], values(x, 2)[1]);
  get<<<1, 2>>>(x);
  printf("get %g\n", values(x, 2)[1]);
  put_line<<<1, 1>>>(x, {3, 1});
  put_line<<<1, 1>>>(x + 1, {6});
  apply_to<Line><<<1, 1>>>(x, {}, {2, 1});
  apply_to<Line, float><<<1, 1, 0, stream>>>(x, {7, 6}, {3, 2, 1});
  const std::vector<float> four = values(x, 4);
  printf("braces %g %g %g %g\n", four[0], four[1], four[2], four[3]);
  printf("%s", "<<<a string>>>\n");  // <<<a comment>>>
  cudaStreamDestroy(stream);
  cudaFree(x);
  return cudaGetLastError();
}
