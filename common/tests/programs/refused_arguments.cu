// Launches whose arguments don't fit.
// seen: {few}: error: the launch's arguments (int*&) don't fit the kernel's parameters (int*, float)
// seen: {no block}: error: a launch is <<<grid, block>>> or <<<grid, block, bytes, stream>>>
// seen: {stream}: error: a launch is <<<grid, block>>> or <<<grid, block, bytes, stream>>>
// seen: {instance}: error: the launch's arguments don't fit the kernel: int* isn't converted to float*
// seen: {five values}: error: a launch is <<<grid, block>>> or <<<grid, block, bytes, stream>>>
// seen: {template}: error: the launch's arguments (int) don't fit the kernel of_any
// seen: {atomic}: error: CUDA has no atomicMax() for this type
// seen: {constant}: error: a __constant__ or __device__ variable can't be local
// status: 1
__global__ void kernel(int* x, float y) { *x = y; }
template <typename T>
__global__ void of_any(T* x) {
  *x = 1;
}
__global__ void no_atomic(float* x) {
  __constant__ float y;  // constant
  atomicMax(x, 1.0f);    // atomic
}

int main() {
  int* x = nullptr;
  kernel<<<1, 1>>>(x);                                  // few
  kernel<<<1>>>(x, 1.0);                                // no block
  kernel<<<1, 1, cudaStream_t()>>>(x, 1.0);             // stream
  of_any<<<1, 1>>>(0);                                  // template
  of_any<float><<<1, 1>>>(static_cast<int*>(nullptr));  // instance
  kernel<<<1, 1, 0, 0, 5>>>(x, 1.0);                    // five values
}
