// Complex numbers of <cuComplex.h>, on the host and in a kernel.
#include <cuComplex.h>

#include "check.h"

__device__ bool is_near(cuDoubleComplex z, double real, double imaginary) {
  return cuCabs(cuCsub(z, make_cuDoubleComplex(real, imaginary))) <= 1e-14 * (1 + cuCabs(z));
}

__global__ void calculate(cuFloatComplex single, cuDoubleComplex* result) {
  const cuDoubleComplex a = make_cuDoubleComplex(3, -4), b = make_cuDoubleComplex(-1, 2);
  CHECK(cuCreal(a) == 3 && cuCimag(a) == -4 && cuCabs(a) == 5);
  CHECK(is_near(cuCadd(a, b), 2, -2) && is_near(cuCsub(a, b), 4, -6));
  CHECK(is_near(cuCmul(a, b), 5, 10) && is_near(cuCmul(a, cuConj(a)), 25, 0));
  CHECK(is_near(cuCdiv(a, b), -2.2, -0.4) && is_near(cuCmul(cuCdiv(a, b), b), 3, -4));
  CHECK(is_near(cuCfma(a, b, a), 8, 6));
  const cuFloatComplex large = make_cuFloatComplex(3e30f, 4e30f);  // whose square is no float
  CHECK(cuCabsf(large) > 4.99e30f && cuCabsf(large) < 5.01e30f);
  CHECK(cuCabsf(cuCdivf(large, large)) > 0.999f && cuCabsf(cuCdivf(large, large)) < 1.001f);
  CHECK(cuCrealf(single) == 1.5f && cuCimagf(single) == -0.5f);
  *result = cuComplexFloatToDouble(cuCmulf(single, make_cuComplex(2, 0)));
}

int main() {
  cuDoubleComplex* device;
  cuDoubleComplex host;
  cudaMalloc(&device, sizeof(host));
  calculate<<<1, 1>>>(make_cuFloatComplex(1.5f, -0.5f), device);
  cudaMemcpy(&host, device, sizeof(host), cudaMemcpyDeviceToHost);
  cudaFree(device);
  const cuFloatComplex single = cuComplexDoubleToFloat(host);
  if (single.x != 3 || single.y != -1) return 1;
  return finish();
}
