#include "common/check/image.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "common/check/files.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#include <stb/stb_image.h>
#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb/stb_image_write.h>
#pragma GCC diagnostic pop

namespace convladder {
namespace {

// Whether a PPM has less than its header says; stb leaves the rest as it was in memory. stb itself refuses
// what is cut short of other kinds.
bool is_cut_short(const std::string& path, std::size_t bytes) {
  std::ifstream file(path, std::ios::binary);
  std::string magic, width, height, most;
  file >> magic >> width >> height >> most;
  return magic == "P6" && file.ignore(1 + static_cast<std::streamsize>(bytes)).eof();
}

}  // namespace

Image read_image(const std::string& path) {
  size_to_read(path);
  if (!std::ifstream(path)) {
    throw std::runtime_error(path + ": can't be read: " + std::strerror(errno));
  }
  Image image;
  int channels = 0;
  uint8_t* const pixels = stbi_load(path.c_str(), &image.width, &image.height, &channels, 3);
  if (!pixels) throw std::runtime_error(path + ": is no picture: " + stbi_failure_reason());
  image.pixels.assign(pixels, pixels + std::size_t{3} * image.width * image.height);
  stbi_image_free(pixels);
  if (is_cut_short(path, image.pixels.size())) throw std::runtime_error(path + ": is cut short");
  return image;
}

void write_image(const std::string& path, const Image& image) {
  std::string png;
  stbi_write_png_to_func(
      [](void* text, void* data, int size) {
        static_cast<std::string*>(text)->append(static_cast<const char*>(data), size);
      },
      &png, image.width, image.height, 3, image.pixels.data(), 3 * image.width);
  write_file(path, {std::string_view(png)});
}

}  // namespace convladder
