#include "common/check/filter_bank.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

namespace convladder {
namespace {

constexpr uint32_t SEED = 2012;
constexpr double PI = 3.14159265358979323846;
constexpr int ORIENTATIONS = BANK_COLUMNS / 2;
constexpr int TAPS = BANK_SIZE * BANK_SIZE;

using Plane = std::array<double, TAPS>;            // one channel of one filter
using Colour = std::array<double, BANK_CHANNELS>;  // how the channels share a plane

struct Row {
  Colour colour;
  double wavelength;  // pixels per period
};

constexpr Colour GREY = {1, 1, 1}, RED_GREEN = {1, -1, 0}, BLUE_YELLOW = {-0.5, -0.5, 1};
constexpr std::array<Row, BANK_ROWS> ROWS = {{{GREY, 15.0},
                                              {GREY, 10.0},
                                              {GREY, 7.0},
                                              {GREY, 5.0},
                                              {RED_GREEN, 14.0},
                                              {RED_GREEN, 9.0},
                                              {BLUE_YELLOW, 14.0},
                                              {BLUE_YELLOW, 9.0}}};

// Uniform in [low, high). The standard's distributions differ from library to library; its
// generators don't.
double uniform(std::mt19937& generator, double low, double high) {
  return low + (high - low) * (generator() / 4294967296.0);
}

// The wave runs along `angle` (0: along s) and is a cosine (phase 0) or a sine (phase pi/2).
Plane gabor(double angle, double wavelength, double phase, bool zero_mean) {
  const double sigma = std::min(0.36 * wavelength, 2.6);
  const double centre = (BANK_SIZE - 1) / 2.0;
  Plane plane;
  double sum = 0, envelope_sum = 0;
  Plane envelope;
  for (int tap = 0; tap < TAPS; ++tap) {
    const int row = tap / BANK_SIZE, column = tap % BANK_SIZE;
    const double y = row - centre, x = column - centre;
    const double along = x * std::cos(angle) + y * std::sin(angle);
    envelope[tap] = std::exp(-(x * x + y * y) / (2 * sigma * sigma));
    plane[tap] = envelope[tap] * std::cos(2 * PI * along / wavelength - phase);
    sum += plane[tap];
    envelope_sum += envelope[tap];
  }
  if (!zero_mean) return plane;
  // Taken off where the filter already has its weight, so that its edges stay at zero.
  for (int tap = 0; tap < TAPS; ++tap) plane[tap] -= envelope[tap] * sum / envelope_sum;
  return plane;
}

void append(std::vector<float>& filters, const Plane& plane, const Colour& colour) {
  double squares = 0;
  for (double share : colour) {
    for (double tap : plane) squares += share * tap * share * tap;
  }
  const double scale = 1 / std::sqrt(squares);
  for (double share : colour) {
    for (double tap : plane) filters.push_back(static_cast<float>(scale * share * tap));
  }
}

}  // namespace

TestData make_filter_bank() {
  std::mt19937 generator(SEED);
  TestData bank;
  for (const Row& row : ROWS) {
    for (int column = 0; column < BANK_COLUMNS; ++column) {
      const double turn = column % ORIENTATIONS + uniform(generator, -0.15, 0.15);
      const double wavelength = row.wavelength * uniform(generator, 0.95, 1.05);
      const double phase = column < ORIENTATIONS ? 0 : PI / 2;
      append(bank.filters, gabor(turn * PI / ORIENTATIONS, wavelength, phase, row.colour == GREY),
             row.colour);
      const double sign = generator() % 2 == 0 ? 1 : -1;
      bank.bias.push_back(static_cast<float>(sign * uniform(generator, 0.05, 0.5)));
    }
  }
  return bank;
}

}  // namespace convladder
