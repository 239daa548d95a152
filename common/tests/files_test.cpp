// Everything that reads a file or writes one: round trips, and one table of bad input for all readers.
#include <sys/stat.h>

#include "common/check/files.h"
#include "common/check/image.h"
#include "common/check/npy.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

// A .npy file of version 1 or 2 with this header text and six floats.
std::string npy(const std::string& header, char version = 1) {
  std::string bytes = std::string("\x93NUMPY") + version + '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
    bytes += static_cast<char>(header.size() >> (8 * i) & 255);
  }
  const std::vector<float> six = {1, 2, 3, 4, 5, 6};
  return bytes + header + std::string(reinterpret_cast<const char*>(six.data()), 24);
}

std::string shaped(const std::string& shape) {
  return npy("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }\n");
}

const std::string HEADER = "n,c,h,w,k,r,s\n";
const std::string GOOD = shaped("(2, 3)");

struct BadInput {
  const char* kind;
  std::string bytes, complaint;  // the complaint has the file's name before it
};

const BadInput TABLE[] = {
    {"npy", "", "is no .npy file"},
    {"npy", "PK\3\4 an archive", "is no .npy file"},
    {"npy", npy("{}", 9), ".npy version 9 is unknown, must be 1 or 2"},
    {"npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }"), "dtype is '<f8'"},
    {"npy", npy("{'descr': '>f4', 'fortran_order': False, 'shape': (6,), }"), "dtype is '>f4'"},
    {"npy", npy("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (6,)}"),
     "dtype is '[("},
    {"npy", npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }"), "Fortran order"},
    {"npy", npy("{'descr': '<f4', 'fortran_order': False}"), "its header has no shape"},
    {"npy", shaped("(-6,)"), "its header's shape is not as NumPy writes it"},
    {"npy", shaped("(1, 3, 2, 1.0)"), "its header's shape is not as NumPy writes it"},
    {"npy", shaped("(6,), 'shape': (2, 3)"), "its header has more than one shape"},
    {"npy", npy("{"), "its header has no descr"},
    {"npy", GOOD.substr(0, GOOD.size() - 1),
     "is truncated: 23 bytes of elements, its shape needs 24"},
    {"npy", GOOD.substr(0, 40), "is truncated within its header"},
    {"npy", npy(std::string(60000, 'x')), "its header has 60000 bytes, more than 4096"},
    {"npy", GOOD + '\0', "has a tail: 25 bytes of elements, its shape needs 24"},
    {"npy", shaped("(1000000000000,)"), "is truncated: 24 bytes of elements"},
    {"npy", shaped("(4294967296, 4294967296)"), "multiply to more than 64 bits hold"},
    {"npy", shaped("(9223372036854775808,)"), "does not fit 64 bits"},
    {"image", "", "is no picture"},
    {"image", "P3\n1 1\n255\n1 2 3", "is no picture"},
    {"image", "P6\n1 2\n255\n12345", "is cut short"},
    {"problems", "", "has no header line"},
    {"problems", "\n# only a comment\n", "has no header line"},
    {"problems", HEADER, "has a header, but no problem"},
    {"problems", "c,h,w,k,r,s\n", "1:1: the header has no column 'n'"},
    {"problems", "1,8,8,8,8,3,3\n", "1:1: the header has no column 'n'"},
    {"problems", "n,n,c,h,w,k,r,s\n", "1:3: column 'n' stands here a second time"},
    {"problems", HEADER + "1,1,1,1,1,1\n", "2:1: 6 fields, the header has 7"},
    {"problems", HEADER + "1,1,1,1,1,1,1,1\n", "2:1: 8 fields, the header has 7"},
    {"problems", HEADER + "1,1,x,1,1,1,1\n", "2:5: h = 'x' is not an integer"},
    {"problems", HEADER + "1,1,,1,1,1,1\n", "2:5: h = '' is not an integer"},
    {"problems", HEADER + "1,1, 1.5,1,1,1,1\n", "2:6: h = '1.5' is not an integer"},
    {"problems", HEADER + "1,1,99999999999999999999,1,1,1,1\n", "does not fit 64 bits"},
    {"problems", "bias," + HEADER + "2,1,1,1,1,1,1,1\n", "2:1: bias = '2' must be 0 or 1"},
    {"problems", "name," + HEADER + "a\tb,1,1,1,1,1,1,1\n", "name = 'a?b' has a control character"},
    {"problems", "name," + HEADER + "a,1,1,1,1,1,1,1\na,1,1,1,1,1,1,1\n",
     "3:1: name 'a' is that of line 2"},
    {"problems", HEADER + "\"1,1,1,1,1,1,1\n", "2:1: the quoted field does not end in this line"},
    {"problems", HEADER + "\"1\" 2,1,1,1,1,1,1\n", "2:5: ',' expected behind the quotes"},
};

void read(const std::string& kind, const std::string& path) {
  if (kind == "npy") read_npy(path);
  if (kind == "image") read_image(path);
  if (kind == "problems") read_problems(path);
}

TEST(BadFiles, AreRefusedInOneLineWithTheirName) {
  const TempFolder folder;
  for (const BadInput& bad : TABLE) {
    const std::string path = folder.write("file", bad.bytes);
    const std::string said = message_of<std::runtime_error>([&] { read(bad.kind, path); });
    EXPECT_EQ(said.rfind(path + ":", 0), 0u) << said;
    expect_contains(said, bad.complaint);
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  }
  for (const char* kind : {"npy", "image", "problems"}) {
    EXPECT_EQ(message_of<std::runtime_error>([&] { read(kind, "/nonexistent/x"); }),
              "/nonexistent/x: can't be read: No such file or directory");
    EXPECT_THROW(read(kind, "/"), std::runtime_error);
    const std::string pipe = folder.path(std::string(kind) + ".pipe");
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    for (const std::string& other : {pipe, std::string("/dev/zero")}) {
      EXPECT_EQ(message_of<std::runtime_error>([&] { read(kind, other); }),
                other + ": can't be read: it is no regular file");
    }
  }
  for (std::size_t length = 0; length < GOOD.size(); ++length) {  // cut anywhere
    const std::string path = folder.write("cut", GOOD.substr(0, length));
    EXPECT_THROW(read_npy(path), std::runtime_error) << length;
  }
}

TEST(Npy, RoundTrip) {
  const TempFolder folder;
  const std::vector<std::vector<int64_t>> shapes = {{}, {1}, {24}, {2, 3, 4}, {0, 5}, {1, 24, 1}};
  for (const auto& shape : shapes) {
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    std::vector<float> data(count);
    for (int64_t i = 0; i < count; ++i) data[i] = 1.0f / (i + 1) - 0.5f;
    write_npy(folder.path("x.npy"), shape, data.data());
    const Array array = read_npy(folder.path("x.npy"));
    EXPECT_EQ(array.shape, shape);
    EXPECT_EQ(array.data, data);
    EXPECT_EQ((folder.read("x.npy").size() - data.size() * 4) % 64, 0u);  // as NumPy aligns it
  }
  EXPECT_EQ(folder.entries(), 1);
}

TEST(Npy, WritesWhatNumpyWritesAndReadsBothVersions) {
  const TempFolder folder;
  const std::vector<float> six = {1, 2, 3, 4, 5, 6};
  write_npy(folder.path("x.npy"), {2, 3}, six.data());
  EXPECT_EQ(folder.read("x.npy").substr(10, 56),
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)");
  write_npy(folder.path("x.npy"), {6}, six.data());
  expect_contains(folder.read("x.npy"), "'shape': (6,), }");
  const std::string other = "{\"shape\":(6,),\"fortran_order\":False,\"descr\":\"<f4\"}";
  for (const char version : {1, 2}) {
    EXPECT_EQ(read_npy(folder.write("y.npy", npy(other, version))).data, six);
  }
}

TEST(Pictures, RoundTripAndThePhotograph) {
  const TempFolder folder;
  Image image{13, 7, {}};
  for (int i = 0; i < 13 * 7 * 3; ++i) image.pixels.push_back(i * 7 % 256);
  write_image(folder.path("x.png"), image);
  const Image again = read_image(folder.path("x.png"));
  EXPECT_EQ(again.width, 13);
  EXPECT_EQ(again.height, 7);
  EXPECT_EQ(again.pixels, image.pixels);
  EXPECT_EQ(read_image(CONVLADDER_SOURCE_DIR "/common/data/raccoon_224.ppm").pixels.size(),
            224u * 224 * 3);
}

TEST(WrittenFiles, AreWholeOrNotThere) {
  const TempFolder folder;
  const std::string old = folder.write("old", "old"), link = folder.path("link");
  std::filesystem::create_symlink("middle", link);
  std::filesystem::create_symlink("old", folder.path("middle"));
  require_writable(link);
  EXPECT_EQ(folder.read("old"), "old");
  chmod(old.c_str(), 0400);
  write_file(link, {"new"});
  EXPECT_EQ(std::filesystem::status(old).permissions(), std::filesystem::perms::owner_read);
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path("middle")));
  std::filesystem::create_symlink("loop", folder.path("loop"));
  EXPECT_EQ(folder.read("old"), "new");
  EXPECT_EQ(folder.entries(), 4);
  const std::string loop = folder.path("loop");
  for (const char* path : {loop.c_str(), "/nonexistent/x", "/dev/null", "/"}) {
    EXPECT_THROW(require_writable(path), std::runtime_error) << path;
  }
}

}  // namespace
}  // namespace convladder
