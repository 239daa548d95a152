// The simulator's <cuComplex.h>: complex numbers in CUDA's vectors. Products and quotients are the plain ones
// of the definition, on scaled numbers where squares might not be numbers any more.
#pragma once

#include "common/simulator/include/names_begin.h"

#include <cmath>

#include "vector_types.h"

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

#define CONVLADDER_COMPLEX(Complex, type, f, make)                                         \
  inline type cuCreal##f(Complex z) { return z.x; }                                        \
  inline type cuCimag##f(Complex z) { return z.y; }                                        \
  inline Complex make(type real, type imaginary) { return {real, imaginary}; }             \
  inline Complex cuConj##f(Complex z) { return {z.x, -z.y}; }                              \
  inline Complex cuCadd##f(Complex a, Complex b) { return {a.x + b.x, a.y + b.y}; }        \
  inline Complex cuCsub##f(Complex a, Complex b) { return {a.x - b.x, a.y - b.y}; }        \
  inline Complex cuCmul##f(Complex a, Complex b) {                                         \
    return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};                                 \
  }                                                                                        \
  inline Complex cuCdiv##f(Complex a, Complex b) {                                         \
    const type scale = 1 / (std::fabs(b.x) + std::fabs(b.y));                              \
    const Complex by = {b.x * scale, b.y * scale}, of = {a.x * scale, a.y * scale};        \
    const type inverse = 1 / (by.x * by.x + by.y * by.y);                                  \
    return {(of.x * by.x + of.y * by.y) * inverse, (of.y * by.x - of.x * by.y) * inverse}; \
  }                                                                                        \
  inline type cuCabs##f(Complex z) { return std::hypot(z.x, z.y); }                        \
  inline Complex cuCfma##f(Complex a, Complex b, Complex c) {                              \
    return {std::fma(a.x, b.x, c.x) - a.y * b.y, std::fma(a.x, b.y, c.y) + a.y * b.x};     \
  }

CONVLADDER_COMPLEX(cuFloatComplex, float, f, make_cuFloatComplex)
CONVLADDER_COMPLEX(cuDoubleComplex, double, , make_cuDoubleComplex)
#undef CONVLADDER_COMPLEX

inline cuComplex make_cuComplex(float real, float imaginary) { return {real, imaginary}; }
inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex z) { return {z.x, z.y}; }
inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex z) {
  return {static_cast<float>(z.x), static_cast<float>(z.y)};
}

#include "common/simulator/include/names_end.h"
