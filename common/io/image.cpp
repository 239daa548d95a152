#include "common/io/image.h"

#include <cctype>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "common/io/atomic_file.h"
#ifdef HAVE_PNG
#include <png.h>
#endif

namespace convladder {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
  throw std::runtime_error(path + ": " + reason);
}

// The next number of a PPM header, after white space and comments ("# ..." to the end of a line).
// Takes the one character behind the number, too, as the format wants it before the pixels.
int read_header_number(std::istream& file, const std::string& path, const std::string& name) {
  while ((file >> std::ws).peek() == '#') {
    for (int c = 0; c != '\n' && c != '\r' && c != EOF;) c = file.get();
  }
  int number = 0;
  if (std::isdigit(file.peek()) == 0) fail(path, "no " + name + " in the PPM header");
  if (!(file >> number)) fail(path, name + " is larger than 2147483647");
  if (std::isspace(file.get()) == 0) fail(path, "no white space behind " + name);
  return number;
}

#ifdef HAVE_PNG
void write_png(const std::string& path, const Image& image) {
  png_image png = {};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = PNG_FORMAT_RGB;
  AtomicFile file(path);
  if (!png_image_write_to_stdio(&png, file.stream(), 0, image.pixels.data(), 0, nullptr)) {
    fail(path, std::string("can't be written: ") + png.message);
  }
  file.commit();
}
#else
void write_ppm(const std::string& path, const Image& image) {
  AtomicFile file(path);
  const std::string header =
      "P6\n" + std::to_string(image.width) + " " + std::to_string(image.height) + "\n255\n";
  file.write(header.data(), header.size());
  file.write(image.pixels.data(), image.pixels.size());
  file.commit();
}
#endif

}  // namespace

Image read_ppm(const std::string& path) {
  std::error_code error;
  const auto file_size =
      std::filesystem::file_size(path, error);  // an error for folders and pipes, too
  if (error) fail(path, "can't be read: " + error.message());
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(path, "can't be read");
  if (file.get() != 'P' || file.get() != '6') fail(path, "is no binary PPM (P6)");

  Image image;
  image.width = read_header_number(file, path, "width");
  image.height = read_header_number(file, path, "height");
  const int maxval = read_header_number(file, path, "maxval");
  if (image.width == 0 || image.height == 0) fail(path, "has no pixels");
  if (maxval != 255) fail(path, "maxval is " + std::to_string(maxval) + ", must be 255");

  const auto left = file_size - static_cast<uint64_t>(file.tellg());
  const uint64_t pixels = static_cast<uint64_t>(image.width) * static_cast<uint64_t>(image.height);
  if (pixels > left / 3) {  // before the allocation: a header may claim anything
    fail(path, "is truncated: " + std::to_string(left) + " bytes of pixels, the header promises " +
                   std::to_string(pixels) + " pixels of 3");
  }
  image.pixels.resize(pixels * 3);
  file.read(reinterpret_cast<char*>(image.pixels.data()),
            static_cast<std::streamsize>(image.pixels.size()));
  if (!file) fail(path, "can't be read");
  return image;
}

std::string write_image(const std::string& path, const Image& image) {
  const auto pixels = static_cast<uint64_t>(image.width) * static_cast<uint64_t>(image.height);
  if (image.width < 1 || image.height < 1 || image.pixels.size() % 3 != 0 ||
      image.pixels.size() / 3 != pixels) {
    fail(path, "a picture of " + std::to_string(image.width) + "x" + std::to_string(image.height) +
                   " with " + std::to_string(image.pixels.size()) + " bytes can't be written");
  }
#ifdef HAVE_PNG
  write_png(path, image);
  return path;
#else
  const std::string ppm = std::filesystem::path(path).replace_extension(".ppm").string();
  write_ppm(ppm, image);
  return ppm;
#endif
}

}  // namespace convladder
