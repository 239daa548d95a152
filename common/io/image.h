// Pictures in and out: PPM (P6) in, PNG out (libpng).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace convladder {

struct Image {  // 8-bit RGB, rows top to bottom
  int width = 0, height = 0;
  std::vector<uint8_t> pixels;  // [height][width][3]
};

// Throws std::runtime_error naming the file and what is wrong.
Image read_ppm(const std::string& path);

// Through libpng where the build has it (HAVE_PNG), else as PPM under the same name with the ending
// .ppm. Written to a temporary file and renamed. Returns the path written.
std::string write_image(const std::string& path, const Image& image);

}  // namespace convladder
