// A library of CUDA's that is not simulated, whether it is installed or not.
// seen: {library}: error: thrust/device_vector.h: this part of CUDA is not simulated
// status: 1
#include <thrust/device_vector.h>  // library

int main() {}
