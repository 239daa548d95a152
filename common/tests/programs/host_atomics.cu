// The host uses atomics of libcu++ in managed memory, before kernels and after them.
#include <cstdio>

#include <cuda/atomic>

__global__ void count(cuda::atomic<int>* sum, int* last) {
  sum->fetch_add(1);
  cuda::atomic_ref<int, cuda::thread_scope_device>(*last).fetch_max(threadIdx.x);
}

int main() {
  cuda::atomic<int>* sum = nullptr;
  int* last = nullptr;
  cudaMallocManaged(&sum, sizeof(*sum));
  cudaMallocManaged(&last, sizeof(*last));
  sum->store(5);
  ++*sum;
  cuda::atomic_ref<int> ref(*last);
  int expected = 0;
  const bool exchanged = ref.compare_exchange_strong(expected, 7);
  count<<<2, 32>>>(sum, last);
  cudaDeviceSynchronize();
  sum->fetch_sub(2);
  const bool right = exchanged && sum->load() == 68 && ref.load() == 31;
  std::printf(right ? "all right\n" : "wrong\n");
  cudaFree(sum);
  cudaFree(last);
  return right ? 0 : 1;
}
