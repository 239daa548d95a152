// A kernel that is called as a function is.
// seen: {call}: error: run: a kernel can't be called, but by <<<...>>>
// status: 1
struct Other {
  int scale;
  explicit Other(int scale) : scale(scale) {}
  void start() {}
  void go() { start(); }
};
__global__ void scale() {}  // a member has the name as well
__global__ void start() {}
template <int N>
__global__ void run() {}

int main() {
  scale<<<1, 1>>>();
  start<<<1, 1>>>();
  Other(3).go();
  run<3><<<1, 1>>>();
  run<3>();  // call
}
