// Launches whose arguments don't fit.
// seen: {few}: error: the launch's arguments (int*&) don't fit the kernel's parameters (int*, float)
// seen: {no block}: error: a launch is <<<grid, block>>> or <<<grid, block, bytes, stream>>>
// status: 1
__global__ void kernel(int* x, float y) { *x = y; }

int main() {
  int* x = nullptr;
  kernel<<<1, 1>>>(x);    // few
  kernel<<<1>>>(x, 1.0);  // no block
}
