// The reader of PPM pictures.
#include "common/io/image.h"
#include "common/tests/fuzz/fuzzing.h"

using namespace convladder;

int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const MemoryFile file(data, size);
  read_or_complain(file.path(), [&] {
    const Image image = read_ppm(file.path());
    require(image.width > 0 && image.height > 0, "a picture has pixels");
    const auto pixels = static_cast<uint64_t>(image.width) * static_cast<uint64_t>(image.height);
    require(image.pixels.size() == 3 * pixels, "three bytes for every pixel");
    require(image.pixels.size() < size, "no more bytes than the file holds");
  });
  return 0;
}
