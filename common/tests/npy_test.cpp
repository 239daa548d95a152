// .npy files: round trips, and every way in which a file can be wrong.
#include "common/io/npy.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "common/tests/support.h"

namespace convladder {
namespace {

// A .npy file of version 1 or 2 with this header text and these elements.
std::string npy_bytes(const std::string& header, const std::vector<float>& data, char version = 1) {
  std::string bytes = std::string("\x93NUMPY") + version + '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
    bytes += static_cast<char>(header.size() >> (8 * i) & 255);
  }
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(data.data()), data.size() * sizeof(float));
  return bytes;
}

const std::string GOOD = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
const std::vector<float> SIX = {1, 2, 3, 4, 5, 6};

Array read_bytes(const std::string& bytes) {
  const TempFolder folder;
  return read_npy(folder.write("x.npy", bytes));
}

std::string complaint(const std::string& bytes) {
  const TempFolder folder;
  const std::string path = folder.write("x.npy", bytes);
  const std::string message = message_of<std::runtime_error>([&] { read_npy(path); });
  EXPECT_EQ(message.compare(0, path.size() + 2, path + ": "), 0) << message;
  return message.substr(std::min(path.size() + 2, message.size()));
}

TEST(Npy, RoundTrip) {
  const TempFolder folder;
  const std::vector<std::vector<int64_t>> shapes = {{}, {1}, {24}, {2, 3, 4}, {0, 5}, {1, 24, 1}};
  for (const auto& shape : shapes) {
    int64_t count = 1;
    for (int64_t extent : shape) count *= extent;
    std::vector<float> data(count);
    for (int64_t i = 0; i < count; ++i) data[i] = 1.0f / (i + 1) - 0.5f;
    write_npy(folder.path("x.npy"), shape, data.data());
    const Array array = read_npy(folder.path("x.npy"));
    EXPECT_EQ(array.shape, shape);
    EXPECT_EQ(array.data, data);
    EXPECT_EQ((folder.read("x.npy").size() - data.size() * 4) % 64, 0u);
    EXPECT_EQ(folder.entries(), 1);
  }
}

TEST(Npy, WritesWhatNumpyWrites) {
  const TempFolder folder;
  write_npy(folder.path("x.npy"), {2, 3}, SIX.data());
  const std::string start = npy_bytes(GOOD, {}).substr(10, GOOD.size() - 1);
  EXPECT_EQ(folder.read("x.npy").substr(10, start.size()), start);
  write_npy(folder.path("x.npy"), {6}, SIX.data());
  EXPECT_NE(folder.read("x.npy").find("'shape': (6,), }"), std::string::npos);
}

TEST(Npy, ReadsBothVersionsAndAnyOrderOfKeys) {
  for (const char version : {1, 2}) {
    const Array array = read_bytes(npy_bytes(GOOD, SIX, version));
    EXPECT_EQ(array.shape, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(array.data, SIX);
  }
  EXPECT_EQ(read_bytes(npy_bytes("{\"shape\":(6,),\"fortran_order\":False,\"descr\":\"<f4\"}", SIX))
                .shape,
            (std::vector<int64_t>{6}));
}

TEST(Npy, WrongDtypeOrOrder) {
  EXPECT_EQ(complaint(npy_bytes("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }", SIX)),
            "dtype is '<f8', must be float32 ('<f4')");
  EXPECT_EQ(complaint(npy_bytes("{'descr': '>f4', 'fortran_order': False, 'shape': (6,), }", SIX)),
            "dtype is '>f4', must be float32 ('<f4')");
  EXPECT_EQ(complaint(npy_bytes("{'descr': [('x', '<f4')], 'fortran_order': False, "
                                "'shape': (6,), }",
                                SIX)),
            "dtype is a record, must be float32 ('<f4')");
  EXPECT_EQ(complaint(npy_bytes("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", SIX)),
            "is in Fortran order, must be in C order");
}

TEST(Npy, NotANpyFile) {
  EXPECT_EQ(complaint(""), "is no .npy file");
  EXPECT_EQ(complaint("PK\3\4 an archive"), "is no .npy file");
  EXPECT_EQ(complaint(npy_bytes(GOOD, SIX, 9)), ".npy version 9 is unknown, must be 1 or 2");
  EXPECT_EQ(message_of<std::runtime_error>([] { read_npy("/nonexistent/x.npy"); }),
            "/nonexistent/x.npy: can't be read: No such file or directory");
  EXPECT_EQ(message_of<std::runtime_error>([] { read_npy("/"); }),
            "/: can't be read: Is a directory");
}

// Cut anywhere, the file is refused; so is one with a byte too many.
TEST(Npy, TruncatedAnywhere) {
  const std::string bytes = npy_bytes(GOOD, SIX);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_NE(complaint(bytes.substr(0, length)), "") << length;
  }
  EXPECT_EQ(complaint(bytes.substr(0, bytes.size() - 1)),
            "is truncated: 23 bytes of elements, its shape needs 24");
  EXPECT_EQ(complaint(bytes.substr(0, 40)), "is truncated within its header");
  EXPECT_EQ(complaint(bytes + '\0'), "has a tail: 25 bytes of elements, its shape needs 24");
}

TEST(Npy, HugeClaimsAreRefusedBeforeMemoryIsTaken) {
  const auto with_shape = [](const std::string& shape) {
    return npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }", SIX);
  };
  EXPECT_EQ(complaint(with_shape("(1000000000000,)")),
            "is truncated: 24 bytes of elements, its shape needs 4000000000000");
  const std::string overflow = "the extents in its header multiply to more than 64 bits hold";
  EXPECT_EQ(complaint(with_shape("(4294967296, 4294967296)")), overflow);
  EXPECT_EQ(complaint(with_shape("(9223372036854775807, 2, 0)")), overflow);
  expect_contains(complaint(with_shape("(9223372036854775808,)")), "an extent passes 64 bits");
  std::string header = npy_bytes(GOOD, SIX, 2);
  header.replace(8, 4, "\xFF\xFF\xFF\xFF");
  EXPECT_EQ(complaint(header), "is truncated within its header");
}

TEST(Npy, MalformedHeaders) {
  for (const char* header :
       {"", "{", "}", "{}", "{'descr'", "{'descr': }", "{'descr': '<f4", "{'descr': '<f4'",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2, 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, -3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 6}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'order': 'C'}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}"}) {
    const std::string message = complaint(npy_bytes(header, SIX));
    EXPECT_EQ(message.compare(0, 28, "bad .npy header at character"), 0) << header << "\n"
                                                                         << message;
  }
}

TEST(Npy, APipeIsNotWaitedFor) {
  const TempFolder folder;
  const std::string pipe = folder.path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::string message = message_of<std::runtime_error>([&] { read_npy(pipe); });
  EXPECT_EQ(message.find(pipe + ": can't be read: "), 0u) << message;
}

}  // namespace
}  // namespace convladder
