// A bank of 96 filters like the one that AlexNet's first layer learned, made from a formula.
#pragma once

#include "common/check/test_data.h"

namespace convladder {

constexpr int BANK_COLUMNS = 12, BANK_ROWS = 8;  // one picture's arrangement of the 96 filters
constexpr int BANK_FILTERS = BANK_COLUMNS * BANK_ROWS;
constexpr int BANK_CHANNELS = 3;  // red, green, blue
constexpr int BANK_SIZE = 11;     // height and width of a filter

// Gabor filters: a wave under a Gaussian. Filter k stands in row k / 12, column k % 12. Rows 0-3
// are grey, their wavelength falling; rows 4-5 are red against green, rows 6-7 blue against yellow.
// Columns 0-5 turn through six orientations with a wave symmetric about the centre (bars), columns
// 6-11 with an antisymmetric one (edges). Each filter has zero mean and unit norm. Angles and
// wavelengths are shaken a little, so that no filter is another one's transpose: a stage that swaps
// r and s can't pass. No bias is zero. The input is left empty.
TestData make_filter_bank();

}  // namespace convladder
