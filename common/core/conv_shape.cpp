#include "common/core/conv_shape.h"

#include <initializer_list>
#include <limits>

#include "common/core/extents.h"

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
  for (const Extent& e : EXTENTS) require_extent(e.name, a.*e.given, e.least);
  require(a.c % a.groups == 0, "groups", a.groups, "must divide c = " + std::to_string(a.c));
  require(a.k % a.groups == 0, "groups", a.groups, "must divide k = " + std::to_string(a.k));
  const int64_t group_c = a.c / a.groups, group_k = a.k / a.groups;

  const int64_t p = output_extent("h", "r", a.h, a.r, a.stride_h, a.pad_h, a.dil_h);
  const int64_t q = output_extent("w", "s", a.w, a.s, a.stride_w, a.pad_w, a.dil_w);

  const int64_t image = product("one input image, c*h*w", {a.c, a.h, a.w}, INDEX_LIMIT);
  product("one padded input image, c*(h + 2*pad_h)*(w + 2*pad_w)",
          {a.c, a.h + 2 * a.pad_h, a.w + 2 * a.pad_w}, INDEX_LIMIT);
  product("the filters, k*(c/groups)*r*s", {a.k, group_c, a.r, a.s}, INDEX_LIMIT);
  const int64_t output_image = product("one output image, k*p*q", {a.k, p, q}, INDEX_LIMIT);
  const int64_t tensor_limit = std::numeric_limits<int64_t>::max() / int64_t{sizeof(float)};
  product("the input, n*c*h*w", {a.n, image}, tensor_limit);
  product("the output, n*k*p*q", {a.n, output_image}, tensor_limit);

  ConvShape shape;
  for (const Extent& e : EXTENTS) shape.*e.taken = static_cast<int>(a.*e.given);
  shape.C = static_cast<int>(group_c);
  shape.K = static_cast<int>(group_k);
  return shape;
}

ConvArguments to_arguments(const ConvShape& shape) {
  ConvArguments args;
  for (const Extent& e : EXTENTS) args.*e.given = shape.*e.taken;
  args.c = int64_t{shape.groups} * shape.C;
  args.k = int64_t{shape.groups} * shape.K;
  return args;
}

void validate(const ConvShape& shape) {
  require_extent("groups", shape.groups, 1);
  make_conv_shape(to_arguments(shape));
}

std::string to_string(const ConvShape& shape) {
  const auto pair = [](int a, int b) { return std::to_string(a) + "x" + std::to_string(b); };
  return "n" + std::to_string(shape.N) + " c" + std::to_string(shape.total_C()) + " " +
         pair(shape.H, shape.W) + " k" + std::to_string(shape.total_K()) + " " +
         pair(shape.R, shape.S) + " stride " + pair(shape.stride_h, shape.stride_w) + " pad " +
         pair(shape.pad_h, shape.pad_w) + " dil " + pair(shape.dil_h, shape.dil_w) +
         (shape.groups > 1 ? " groups " + std::to_string(shape.groups) : "");
}

}  // namespace convladder
