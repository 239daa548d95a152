#include "common/check/random_problem.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>

#include "common/check/random.h"

namespace convladder {
namespace {

constexpr int64_t MOST_ELEMENTS = int64_t{1} << 22;

// Random numbers one after another, the same on every machine (std::uniform_int_distribution
// differs between libraries).
class Dice {
 public:
  Dice(uint64_t seed, uint64_t index) : seed_(seed), index_(index) {}

  int64_t between(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(bits() % static_cast<uint64_t>(most - least + 1));
  }
  bool chance(int percent) { return between(0, 99) < percent; }
  int64_t one_of(std::initializer_list<int64_t> values) {
    return values.begin()[between(0, static_cast<int64_t>(values.size()) - 1)];
  }
  // One less, exactly or one more than one of them.
  int64_t near(std::initializer_list<int64_t> borders) {
    const int64_t border = one_of(borders);  // drawn first: in a sum the order would be anybody's
    return border + between(-1, 1);
  }

 private:
  uint64_t bits() { return random_bits(seed_, index_, drawn_++) >> 16; }

  uint64_t seed_, index_, drawn_ = 0;
};

// Rows or columns.
struct Axis {
  int64_t filter = 1, stride = 1, dilation = 1, pad = 0, output = 1, input = 1;

  int64_t span() const { return dilation * (filter - 1) + 1; }
};

// Chooses an input for the outputs that are wanted, with a few rows left over at its far end. Where
// the padding alone gives more outputs than that, the input is tiny, and all of them are taken.
void choose_input(Dice& dice, Axis& axis) {
  const int64_t left_over = dice.between(0, axis.stride - 1);
  axis.input = (axis.output - 1) * axis.stride + axis.span() + left_over - 2 * axis.pad;
  if (axis.input >= 1) return;
  axis.input = dice.between(1, 3);
  axis.output = (axis.input + 2 * axis.pad - axis.span()) / axis.stride + 1;
}

Axis any_axis(Dice& dice) {
  Axis axis;
  axis.filter = dice.one_of({1, 1, 2, 3, 3, 3, 4, 5, 6, 7, 11, 13});
  axis.stride = dice.chance(50)   ? 1
                : dice.chance(70) ? dice.between(2, 4)
                                  : axis.filter + dice.between(1, 5);
  axis.dilation = dice.chance(60) ? 1 : dice.between(2, 5);
  axis.pad = dice.chance(35)   ? 0
             : dice.chance(40) ? axis.span() / 2
             : dice.chance(60) ? dice.between(1, axis.filter)
                               : axis.span() + dice.between(0, 3);
  axis.output = dice.chance(15)   ? 1
                : dice.chance(30) ? dice.near({8, 16, 32, 64, 128})
                                  : dice.between(2, 20);
  choose_input(dice, axis);
  return axis;
}

// The widths that stage 10 has kernels for, with rows of about a whole number of its strips.
Axis special_axis(Dice& dice) {
  Axis axis;
  axis.filter = dice.one_of({3, 7, 11});
  axis.stride = axis.filter == 3 ? 1 : axis.filter == 7 ? 2 : 4;
  axis.pad = dice.one_of({0, axis.filter / 2, dice.between(0, axis.filter + 1)});
  const int64_t strips = dice.between(1, 16);
  axis.output = dice.near({8 * strips});
  choose_input(dice, axis);
  return axis;
}

// What `draw` gives, drawn again if it passes `most`, else something small. 0 if nothing fits.
int64_t at_most(Dice& dice, double most, const std::function<int64_t()>& draw) {
  if (most < 1) return 0;
  for (int attempt = 0; attempt < 8; ++attempt) {
    const int64_t value = std::max<int64_t>(draw(), 1);
    if (static_cast<double>(value) <= most) return value;
  }
  return dice.between(1, static_cast<int64_t>(std::min(most, 4.0)));
}

// Mostly one; a few, or many.
int64_t draw_groups(Dice& dice, double most) {
  return at_most(dice, most, [&] {
    return dice.chance(70) ? 1 : dice.chance(60) ? dice.between(2, 4) : dice.between(5, 40);
  });
}

// The filters of a group.
int64_t draw_filters(Dice& dice, double most) {
  return at_most(dice, most, [&] {
    return dice.chance(45) ? dice.near({8, 32, 64, 96, 128, 192}) : dice.between(1, 20);
  });
}

// The channels of a group: C*R*S is about what the tiles take at a time, where R*S lets it.
int64_t draw_channels(Dice& dice, int64_t RS, double most) {
  return at_most(dice, most, [&] {
    return dice.chance(45) ? (dice.near({8, 32, 64, 128}) + RS / 2) / RS : dice.between(1, 12);
  });
}

// The images: N*P*Q is about what the tiles take, where P*Q lets it.
int64_t draw_images(Dice& dice, int64_t PQ, double most) {
  return at_most(dice, most, [&] {
    if (dice.chance(35)) return int64_t{1};
    return dice.chance(45) ? (dice.near({32, 64, 96, 128, 256}) + PQ / 2) / PQ : dice.between(2, 9);
  });
}

// None where the extents that were drawn pass the limits.
std::optional<ConvShape> draw_shape(Dice& dice, double max_macs) {
  const Axis h = any_axis(dice), w = dice.chance(35) ? special_axis(dice) : any_axis(dice);
  const int64_t RS = h.filter * w.filter, PQ = h.output * w.output;
  double left = max_macs / (static_cast<double>(RS) * static_cast<double>(PQ));
  ConvArguments a;
  a.groups = draw_groups(dice, left);
  if (a.groups == 0) return std::nullopt;
  // A small group leaves most of a tile idle, which takes the simulator's time all the same.
  left /= a.groups > 1 ? 8.0 * static_cast<double>(a.groups) : 1;
  const bool depthwise = a.groups > 1 && dice.chance(25);
  // Whichever comes first has the most to choose from.
  const int64_t first = dice.between(0, 2);
  for (int64_t turn = first; turn < first + 3; ++turn) {
    int64_t& extent = turn % 3 == 0 ? a.k : turn % 3 == 1 ? a.c : a.n;
    extent = turn % 3 == 0   ? draw_filters(dice, left)
             : turn % 3 == 1 ? depthwise ? 1 : draw_channels(dice, RS, left)
                             : draw_images(dice, PQ, left);
    if (extent == 0) return std::nullopt;
    left /= static_cast<double>(extent);
  }
  if (depthwise && dice.chance(50)) a.k = 1;
  a.c *= a.groups, a.k *= a.groups;
  a.h = h.input, a.r = h.filter, a.stride_h = h.stride, a.pad_h = h.pad, a.dil_h = h.dilation;
  a.w = w.input, a.s = w.filter, a.stride_w = w.stride, a.pad_w = w.pad, a.dil_w = w.dilation;
  const ConvShape shape = make_conv_shape(a);
  if (shape.input_count() + shape.output_count() > MOST_ELEMENTS) return std::nullopt;
  return shape;
}

std::array<int, 4> draw_offsets(Dice& dice) {
  const auto offset = [&](int least) { return static_cast<int>(dice.between(least, 3)); };
  std::array<int, 4> offsets;
  if (dice.chance(40)) {
    offsets.fill(offset(1));
  } else {
    for (int& o : offsets) o = offset(0);
    if (offsets == std::array<int, 4>()) offsets[dice.between(0, 3)] = offset(1);
  }
  return offsets;
}

}  // namespace

RandomProblem random_problem(uint64_t seed, uint64_t index, double max_macs) {
  if (max_macs < 1e4) {
    throw InvalidArgument("max_macs = " + std::to_string(max_macs) + ": must be at least 10000");
  }
  Dice dice(seed, index);
  std::optional<ConvShape> shape;
  while (!shape) shape = draw_shape(dice, max_macs);
  RandomProblem problem;
  problem.name = "problem " + std::to_string(index);
  problem.shape = *shape;
  problem.bias = dice.chance(65);
  problem.relu = dice.chance(35);
  if (index % 2 == 1) problem.placement.offsets = draw_offsets(dice);
  problem.placement.least_workspace = dice.chance(30);
  problem.seed = static_cast<uint64_t>(dice.between(0, INT32_MAX));
  problem.order_seed = static_cast<uint64_t>(dice.between(0, INT32_MAX));
  return problem;
}

}  // namespace convladder
