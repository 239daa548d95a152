// NumPy .npy files (format 1.0 and 2.0): float32, little-endian, C order.
// Format: numpy.lib.format, "A Simple File Format for NumPy Arrays".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace convladder {

struct Array {
  std::vector<int64_t> shape;
  std::vector<float> data;  // as many elements as the product of shape
};

// Throws std::runtime_error, naming the file and what is wrong: it can't be read, is no .npy, has
// another dtype, is in Fortran order, is truncated.
Array read_npy(const std::string& path);

// Never writes half a file: see files.h.
void write_npy(const std::string& path, const std::vector<int64_t>& shape, const float* data);

}  // namespace convladder
