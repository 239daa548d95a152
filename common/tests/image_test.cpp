// Pictures in and out.
#include "common/io/image.h"

#include <gtest/gtest.h>

#include "common/tests/support.h"
#ifdef HAVE_PNG
#include <png.h>
#endif

namespace convladder {
namespace {

Image gradient(int width, int height) {
  Image image;
  image.width = width, image.height = height;
  for (int i = 0; i < width * height * 3; ++i) image.pixels.push_back(i * 7 % 256);
  return image;
}

std::string complaint(const std::string& bytes) {
  const TempFolder folder;
  const std::string path = folder.write("x.ppm", bytes);
  const std::string message = message_of<std::runtime_error>([&] { read_ppm(path); });
  EXPECT_EQ(message.compare(0, path.size() + 2, path + ": "), 0) << message;
  return message.substr(std::min(path.size() + 2, message.size()));
}

TEST(Ppm, ReadsPixelsRowByRow) {
  const TempFolder folder;
  const Image image = read_ppm(folder.write("x.ppm", "P6\n2 1\n255\nabcdef"));
  EXPECT_EQ(image.width, 2);
  EXPECT_EQ(image.height, 1);
  EXPECT_EQ(image.pixels, (std::vector<uint8_t>{'a', 'b', 'c', 'd', 'e', 'f'}));
}

// The first pixel may look like white space or a comment: one character ends the header.
TEST(Ppm, UnderstandsCommentsAndAnyWhiteSpace) {
  const TempFolder folder;
  const Image image = read_ppm(
      folder.write("x.ppm", "P6 # made by hand\n#\n\t 1\r\n# 7 8\n  2 # rows\n255\n# \n#x."));
  EXPECT_EQ(image.width, 1);
  EXPECT_EQ(image.height, 2);
  EXPECT_EQ(image.pixels, (std::vector<uint8_t>{'#', ' ', '\n', '#', 'x', '.'}));
}

TEST(Ppm, ReadsTheShippedPhoto) {
  const Image image = read_ppm(CONVLADDER_PHOTO);
  EXPECT_EQ(image.width, 224);
  EXPECT_EQ(image.height, 224);
  EXPECT_EQ(image.pixels.size(), 224u * 224 * 3);
}

TEST(Ppm, MalformedFiles) {
  EXPECT_EQ(complaint(""), "is no binary PPM (P6)");
  EXPECT_EQ(complaint("P3\n1 1\n255\n1 2 3"), "is no binary PPM (P6)");
  EXPECT_EQ(complaint("P6\n"), "no width in the PPM header");
  EXPECT_EQ(complaint("P6\n# never ends"), "no width in the PPM header");
  EXPECT_EQ(complaint("P6\n-1 1\n255\nabc"), "no width in the PPM header");
  EXPECT_EQ(complaint("P6\n1\n"), "no height in the PPM header");
  EXPECT_EQ(complaint("P6\n1 1 x"), "no maxval in the PPM header");
  EXPECT_EQ(complaint("P6\n1 1x255\nabc"), "no white space behind height");
  EXPECT_EQ(complaint("P6\n1 1\n255"), "no white space behind maxval");
  EXPECT_EQ(complaint("P6\n0 1\n255\n"), "has no pixels");
  EXPECT_EQ(complaint("P6\n1 1\n65535\nabcdef"), "maxval is 65535, must be 255");
  EXPECT_EQ(complaint("P6\n2 1\n255\nabcde"),
            "is truncated: 5 bytes of pixels, the header promises 2 pixels of 3");
}

TEST(Ppm, HugeClaimsAreRefusedBeforeMemoryIsTaken) {
  EXPECT_EQ(complaint("P6\n99999999999999999999 1\n255\nabc"), "width is larger than 2147483647");
  EXPECT_EQ(complaint("P6\n2147483647 2147483647\n255\nabc"),
            "is truncated: 3 bytes of pixels, the header promises 4611686014132420609 pixels of 3");
}

TEST(Ppm, MissingFiles) {
  EXPECT_EQ(message_of<std::runtime_error>([] { read_ppm("/nonexistent/x.ppm"); }),
            "/nonexistent/x.ppm: can't be read: No such file or directory");
  EXPECT_EQ(message_of<std::runtime_error>([] { read_ppm("/"); }),
            "/: can't be read: Is a directory");
}

#ifdef HAVE_PNG
TEST(WriteImage, PngHoldsThePixels) {
  const TempFolder folder;
  const Image image = gradient(13, 7);
  EXPECT_EQ(write_image(folder.path("x.png"), image), folder.path("x.png"));
  EXPECT_EQ(folder.entries(), 1);

  png_image png = {};
  png.version = PNG_IMAGE_VERSION;
  ASSERT_TRUE(png_image_begin_read_from_file(&png, folder.path("x.png").c_str())) << png.message;
  EXPECT_EQ(png.width, 13u);
  EXPECT_EQ(png.height, 7u);
  EXPECT_EQ(png.format, unsigned{PNG_FORMAT_RGB});
  std::vector<uint8_t> pixels(PNG_IMAGE_SIZE(png));
  ASSERT_TRUE(png_image_finish_read(&png, nullptr, pixels.data(), 0, nullptr)) << png.message;
  EXPECT_EQ(pixels, image.pixels);
}
#else
TEST(WriteImage, PpmTakesThePlaceOfPng) {
  const TempFolder folder;
  const Image image = gradient(13, 7);
  EXPECT_EQ(write_image(folder.path("x.png"), image), folder.path("x.ppm"));
  EXPECT_EQ(folder.entries(), 1);
  EXPECT_EQ(read_ppm(folder.path("x.ppm")).pixels, image.pixels);
}
#endif

TEST(WriteImage, RefusesPicturesThatDoNotFitTheirSize) {
  const TempFolder folder;
  Image image = gradient(3, 2);
  image.pixels.pop_back();
  EXPECT_THROW(write_image(folder.path("x.png"), image), std::runtime_error);
  EXPECT_THROW(write_image(folder.path("x.png"), Image()), std::runtime_error);
  EXPECT_EQ(folder.entries(), 0);
}

}  // namespace
}  // namespace convladder
