// Several threads of the host launch the same kernels with the same arguments, each waits for its own stream.
#include <cstdio>
#include <thread>
#include <vector>

__global__ void add(int* sum) { atomicAdd(sum, 1); }
__global__ void set(int* x) { x[threadIdx.x] = threadIdx.x; }

int main() {
  constexpr int THREADS = 4, LAUNCHES = 50;
  int *sum = nullptr, *x = nullptr;
  cudaMalloc(&sum, sizeof(int));
  cudaMalloc(&x, 32 * sizeof(int));
  cudaMemset(sum, 0, sizeof(int));
  std::vector<std::thread> threads;
  for (int i = 0; i < THREADS; ++i) {
    threads.emplace_back([=] {
      cudaStream_t stream;
      cudaStreamCreate(&stream);
      for (int j = 0; j < LAUNCHES; ++j) {
        add<<<1, 32, 0, stream>>>(sum);
        set<<<1, 32, 0, stream>>>(x);
      }
      cudaStreamSynchronize(stream);
      cudaStreamDestroy(stream);
    });
  }
  for (std::thread& thread : threads) thread.join();
  int found = 0;
  cudaMemcpy(&found, sum, sizeof(int), cudaMemcpyDeviceToHost);
  const bool right = found == THREADS * LAUNCHES * 32 && cudaGetLastError() == cudaSuccess;
  std::printf(right ? "all right\n" : "wrong\n");
  return right ? 0 : 1;
}
