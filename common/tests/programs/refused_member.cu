// A kernel that is a member; a friend it may be.
// seen: {member}: error: member: a member of a class can't be a kernel
// status: 1
struct Class {
  friend __global__ void kernel(int*);
  static __global__ void member(int* x) { *x = 1; }  // member
};
__global__ void kernel(int* x) { *x = 2; }

int main() {
  kernel<<<1, 1>>>(nullptr);
  Class::member<<<1, 1>>>(nullptr);
}
