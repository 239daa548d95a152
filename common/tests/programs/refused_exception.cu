// Exceptions are the host's.
// seen: {throw}: error: throw: the device's code has no exceptions
// status: 1
__global__ void kernel(const int* x) {
  if (*x == 0) throw 1;  // throw
}

int main() {
  try {
    kernel<<<1, 1>>>(nullptr);
    throw 1;
  } catch (int) {
  }
}
