// make_conv_shape() on any fourteen integers: it rejects them, naming what is wrong, or it gives a
// shape whose sizes and offsets fit the integers that the kernels compute them in. Everything is
// computed here in 128 bits. Input: the fields of ConvArguments in their order, each one length byte
// L (0 to 8, modulo 9) and L bytes, little-endian, sign-extended; fields that are missing keep their
// defaults.
#include "common/core/conv_shape.h"

#include <algorithm>
#include <limits>

#include "common/tests/fuzz/fuzzing.h"

using namespace convladder;

namespace {

using Wide = __int128;
constexpr Wide INT_LIMIT = std::numeric_limits<int>::max();

// The next field; 0 bytes are left where it is not there.
void take(const uint8_t*& data, std::size_t& size, int64_t& value) {
  if (size == 0) return;
  const std::size_t length = std::min<std::size_t>(*data % 9, size - 1);
  ++data, --size;
  if (length == 0) return;
  uint64_t bits = data[length - 1] >= 0x80 ? UINT64_MAX : 0;
  for (std::size_t i = length; i-- > 0;) bits = bits << 8 | data[i];
  value = static_cast<int64_t>(bits);
  data += length, size -= length;
}

Wide output_extent(int64_t input, int64_t filter, int64_t stride, int64_t pad, int64_t dilation) {
  return (Wide{input} + 2 * Wide{pad} - Wide{dilation} * (filter - 1) - 1) / stride + 1;
}

void check_legal(const ConvArguments& a, const ConvShape& s) {
  const Wide P = output_extent(a.h, a.r, a.stride_h, a.pad_h, a.dil_h);
  const Wide Q = output_extent(a.w, a.s, a.stride_w, a.pad_w, a.dil_w);
  require(P >= 1 && Q >= 1, "there is an output");
  require(s.P() == P && s.Q() == Q, "P and Q");
  require(a.groups >= 1 && a.c % a.groups == 0 && a.k % a.groups == 0, "whole groups");
  const Wide group_c = a.c / a.groups, group_k = a.k / a.groups;
  require(s.CHW() == group_c * a.h * a.w, "a group's C*H*W");
  require(s.CRS() == group_c * a.r * a.s, "a group's C*R*S");
  require(s.KPQ() == group_k * P * Q, "a group's K*P*Q");
  require(s.input_pitch() == Wide{a.c} * a.h * a.w, "the input's pitch");
  require(s.output_pitch() == a.k * P * Q, "the output's pitch");
  require(s.PQ() == P * Q, "P*Q");
  require(s.input_count() == Wide{a.n} * a.c * a.h * a.w, "the input's elements");
  require(s.filter_count() == a.k * group_c * a.r * a.s, "the filters' elements");
  require(s.output_count() == a.n * a.k * P * Q, "the output's elements");
  // The farthest taps of all windows, as offsets within an image.
  const Wide first_h = -Wide{a.pad_h},
             last_h = (P - 1) * a.stride_h - a.pad_h + Wide{a.dil_h} * (a.r - 1);
  const Wide first_w = -Wide{a.pad_w},
             last_w = (Q - 1) * a.stride_w - a.pad_w + Wide{a.dil_w} * (a.s - 1);
  require(first_h * a.w + first_w >= -INT_LIMIT, "the first tap's offset");
  require(((a.c - 1) * Wide{a.h} + last_h) * a.w + last_w <= INT_LIMIT, "the last tap's offset");
  validate(s);
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  ConvArguments a;
  for (int64_t* field : {&a.n, &a.c, &a.h, &a.w, &a.k, &a.r, &a.s, &a.stride_h, &a.stride_w,
                         &a.pad_h, &a.pad_w, &a.dil_h, &a.dil_w, &a.groups}) {
    take(data, size, *field);
  }
  try {
    check_legal(a, make_conv_shape(a));
  } catch (const InvalidArgument& error) {
    const std::string message = error.what();
    require(message.find(':') != std::string::npos, "what, then why: " + message);
  }
  return 0;
}
