// A reference would be one to the host's memory.
// seen: error: a kernel's parameter can't be a reference
// status: 1
__global__ void increment(int& x) { ++x; }

int main() {
  int x = 0;
  increment<<<1, 1>>>(x);
}
