// The output says: missed
// In how many parts a sum is cut, and the tap with which a part begins.
int parts_for(const ConvShape& shape) {
  const int64_t enough = ceil_div(shape.CRS(), BK);
  return static_cast<int>(enough < shape.CRS() ? enough : shape.CRS());
}
__device__ int first_tap(int part, int parts, int CRS) {
  return static_cast<int>(int64_t{CRS} * part / parts);
}

// output[i] = the sum of the parts' sums[i]; one thread per output of a group.
__global__ void add_parts(ConvShape shape, int parts, int blocks, int64_t pitch, const float* sums,
                          float* output) {
  const int kpq = blockIdx.x % blocks * 256 + threadIdx.x;
  if (kpq >= shape.KPQ()) return;
  const int64_t i = blockIdx.x / blocks * shape.output_pitch() + kpq;
  float sum = 0.0f;
  for (int part = 0; part < parts; ++part) sum += sums[part * pitch + i];
  output[i] = sum;
}
