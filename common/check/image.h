// Pictures in and out, by stb's libraries.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace convladder {

struct Image {  // 8-bit RGB, rows top to bottom
  int width = 0, height = 0;
  std::vector<uint8_t> pixels;  // [height][width][3]
};

// A PPM, PNG or JPEG file. Throws std::runtime_error naming the file and what is wrong.
Image read_image(const std::string& path);

// Writes a PNG; never a half-written file: see files.h.
void write_image(const std::string& path, const Image& image);

}  // namespace convladder
