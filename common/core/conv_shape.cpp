#include "common/core/conv_shape.h"

#include <initializer_list>
#include <limits>

namespace convladder {
namespace {

constexpr int64_t INT_LIMIT = std::numeric_limits<int>::max();
// A tile may hang over the end of an image by up to its own size before the bounds check cuts it
// off; this much room keeps that index inside an int.
constexpr int64_t INDEX_LIMIT = INT_LIMIT - 65535;
// Two rows or columns, each inside the padded image or OUTSIDE (see indexing.h), add up in an int.
constexpr int64_t PADDED_LIMIT = (int64_t{1} << 30) - 1;

void require(bool ok, const char* name, int64_t value, const std::string& rule) {
  if (!ok) throw InvalidArgument(std::string(name) + " = " + std::to_string(value) + ": " + rule);
}

void require_extent(const char* name, int64_t value, int64_t least) {
  require(value >= least, name, value, "must be at least " + std::to_string(least));
  require(value <= INT_LIMIT, name, value, "must be at most " + std::to_string(INT_LIMIT));
}

// The product of extents that are each >= 1 and <= 2^31-1; throws when it passes `limit`.
int64_t product(const char* what, std::initializer_list<int64_t> factors, int64_t limit) {
  int64_t result = 1;
  for (int64_t factor : factors) {
    if (result > limit / factor) {
      throw InvalidArgument(std::string(what) + ": more than " + std::to_string(limit) +
                            " elements, the most that is supported");
    }
    result *= factor;
  }
  return result;
}

// Output extent along one axis, in 64 bits: nothing here can overflow.
int64_t output_extent(const char* input_name, const char* filter_name, int64_t input,
                      int64_t filter, int64_t stride, int64_t pad, int64_t dilation) {
  const int64_t padded = input + 2 * pad;
  const int64_t dilated = dilation * (filter - 1) + 1;
  const std::string axis = std::string("(") + input_name + " + 2*pad)";
  require(
      padded <= PADDED_LIMIT, input_name, input,
      axis + " = " + std::to_string(padded) + " must be at most " + std::to_string(PADDED_LIMIT));
  // Compared, not divided: a negative numerator would truncate toward zero and look like size 1.
  require(dilated <= padded, filter_name, filter,
          "the dilated filter spans " + std::to_string(dilated) + ", more than " + axis + " = " +
              std::to_string(padded));
  return (padded - dilated) / stride + 1;
}

}  // namespace

ConvShape make_conv_shape(const ConvArguments& a) {
  require_extent("n", a.n, 1);
  require_extent("c", a.c, 1);
  require_extent("h", a.h, 1);
  require_extent("w", a.w, 1);
  require_extent("k", a.k, 1);
  require_extent("r", a.r, 1);
  require_extent("s", a.s, 1);
  require_extent("stride_h", a.stride_h, 1);
  require_extent("stride_w", a.stride_w, 1);
  require_extent("pad_h", a.pad_h, 0);
  require_extent("pad_w", a.pad_w, 0);
  require_extent("dil_h", a.dil_h, 1);
  require_extent("dil_w", a.dil_w, 1);
  require(a.groups == 1, "groups", a.groups, "grouped convolution is not supported, must be 1");

  const int64_t p = output_extent("h", "r", a.h, a.r, a.stride_h, a.pad_h, a.dil_h);
  const int64_t q = output_extent("w", "s", a.w, a.s, a.stride_w, a.pad_w, a.dil_w);

  const int64_t image = product("one input image, c*h*w", {a.c, a.h, a.w}, INDEX_LIMIT);
  product("one padded input image, c*(h + 2*pad_h)*(w + 2*pad_w)",
          {a.c, a.h + 2 * a.pad_h, a.w + 2 * a.pad_w}, INDEX_LIMIT);
  product("the filters, k*c*r*s", {a.k, a.c, a.r, a.s}, INDEX_LIMIT);
  const int64_t output_image = product("one output image, k*p*q", {a.k, p, q}, INDEX_LIMIT);
  const int64_t tensor_limit = std::numeric_limits<int64_t>::max() / int64_t{sizeof(float)};
  product("the input, n*c*h*w", {a.n, image}, tensor_limit);
  product("the output, n*k*p*q", {a.n, output_image}, tensor_limit);

  const auto narrow = [](int64_t value) { return static_cast<int>(value); };
  ConvShape shape;
  shape.N = narrow(a.n);
  shape.C = narrow(a.c);
  shape.H = narrow(a.h);
  shape.W = narrow(a.w);
  shape.K = narrow(a.k);
  shape.R = narrow(a.r);
  shape.S = narrow(a.s);
  shape.stride_h = narrow(a.stride_h);
  shape.stride_w = narrow(a.stride_w);
  shape.pad_h = narrow(a.pad_h);
  shape.pad_w = narrow(a.pad_w);
  shape.dil_h = narrow(a.dil_h);
  shape.dil_w = narrow(a.dil_w);
  return shape;
}

void validate(const ConvShape& shape) {
  ConvArguments args;
  args.n = shape.N;
  args.c = shape.C;
  args.h = shape.H;
  args.w = shape.W;
  args.k = shape.K;
  args.r = shape.R;
  args.s = shape.S;
  args.stride_h = shape.stride_h;
  args.stride_w = shape.stride_w;
  args.pad_h = shape.pad_h;
  args.pad_w = shape.pad_w;
  args.dil_h = shape.dil_h;
  args.dil_w = shape.dil_w;
  make_conv_shape(args);
}

std::string to_string(const ConvShape& shape) {
  const auto pair = [](int a, int b) { return std::to_string(a) + "x" + std::to_string(b); };
  return "n" + std::to_string(shape.N) + " c" + std::to_string(shape.C) + " " +
         pair(shape.H, shape.W) + " k" + std::to_string(shape.K) + " " + pair(shape.R, shape.S) +
         " stride " + pair(shape.stride_h, shape.stride_w) + " pad " +
         pair(shape.pad_h, shape.pad_w) + " dil " + pair(shape.dil_h, shape.dil_w);
}

}  // namespace convladder
