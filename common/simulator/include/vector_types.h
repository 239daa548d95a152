// CUDA's vectors, of 1 to 4 elements of one type, and how far each is aligned. A float4 is one access of 16
// bytes. They have no operators.
#pragma once

#include "common/simulator/include/names_begin.h"

// 2 and 4 elements are aligned as one piece, of at most 16 bytes; 1 and 3 as their elements.
#define CONVLADDER_VECTORS(name, type)                                        \
  struct name##1 {                                                            \
    type x;                                                                   \
  };                                                                          \
  struct alignas(sizeof(type) * 2) name##2 {                                  \
    type x, y;                                                                \
  };                                                                          \
  struct name##3 {                                                            \
    type x, y, z;                                                             \
  };                                                                          \
  struct alignas(sizeof(type) * 4 > 16 ? 16 : sizeof(type) * 4) name##4 {     \
    type x, y, z, w;                                                          \
  };                                                                          \
  inline name##1 make_##name##1(type x) { return {x}; }                       \
  inline name##2 make_##name##2(type x, type y) { return {x, y}; }            \
  inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; } \
  inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }

CONVLADDER_VECTORS(char, signed char)
CONVLADDER_VECTORS(uchar, unsigned char)
CONVLADDER_VECTORS(short, short)
CONVLADDER_VECTORS(ushort, unsigned short)
CONVLADDER_VECTORS(int, int)
CONVLADDER_VECTORS(uint, unsigned)
CONVLADDER_VECTORS(long, long)
CONVLADDER_VECTORS(ulong, unsigned long)
CONVLADDER_VECTORS(longlong, long long)
CONVLADDER_VECTORS(ulonglong, unsigned long long)
CONVLADDER_VECTORS(float, float)
CONVLADDER_VECTORS(double, double)
#undef CONVLADDER_VECTORS

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};

#include "common/simulator/include/names_end.h"
