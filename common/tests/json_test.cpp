// JSON text, and files that are whole or not there.
#include "common/io/json.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <limits>

#include "common/io/atomic_file.h"
#include "common/tests/support.h"

namespace convladder {
namespace {

TEST(Json, Strings) {
  EXPECT_EQ(Json("").text(), R"("")");
  EXPECT_EQ(Json("a \"b\" \\ /").text(), R"("a \"b\" \\ /")");
  EXPECT_EQ(Json("\n\r\t\b\x01\x1f").text(), R"("\n\r\t\u0008\u0001\u001f")");
  EXPECT_EQ(Json(std::string("a\0b", 3)).text(), R"("a\u0000b")");
  EXPECT_EQ(Json("Ünï \xE2\x82\xAC \xF0\x9F\xA6\x9D").text(),
            "\"Ünï \xE2\x82\xAC \xF0\x9F\xA6\x9D\"");
}

// Bytes that are no UTF-8 become U+FFFD each, so that the file stays JSON.
TEST(Json, BytesThatAreNoText) {
  const std::string replacement = "\xEF\xBF\xBD";
  EXPECT_EQ(Json("a\xFFz").text(), "\"a" + replacement + "z\"");
  EXPECT_EQ(Json("\xC3").text(), "\"" + replacement + "\"");    // cut off
  EXPECT_EQ(Json("\xC3(").text(), "\"" + replacement + "(\"");  // no continuation
  EXPECT_EQ(Json("\xE2\x82").text(), "\"" + replacement + replacement + "\"");
  for (const char* bytes : {"\xC0\xAF", "\xED\xA0\x80", "\xE0\x80\x80", "\xF4\x90\x80\x80"}) {
    EXPECT_EQ(Json(bytes).text().find(bytes), std::string::npos);  // overlong, surrogate, too large
  }
}

TEST(Json, Numbers) {
  EXPECT_EQ(Json(0).text(), "0");
  EXPECT_EQ(Json(-7).text(), "-7");
  EXPECT_EQ(Json(std::numeric_limits<int64_t>::min()).text(), "-9223372036854775808");
  EXPECT_EQ(Json(0.1).text(), "0.1");
  EXPECT_EQ(Json(1e300).text(), "1e+300");
  EXPECT_EQ(Json(-2.5).text(), "-2.5");
  for (const double x : {1.0 / 3, 0x1p-1074, 1.7976931348623157e308}) {
    EXPECT_EQ(std::strtod(Json(x).text().c_str(), nullptr), x);
  }
}

TEST(Json, WhatJsonCannotSayBecomesNull) {
  EXPECT_EQ(Json(std::nan("")).text(), "null");
  EXPECT_EQ(Json(std::numeric_limits<double>::infinity()).text(), "null");
  EXPECT_EQ(Json(-std::numeric_limits<double>::infinity()).text(), "null");
}

TEST(Json, Nesting) {
  EXPECT_EQ(Json(true).text(), "true");
  EXPECT_EQ(Json::object({}).text(), "{}");
  EXPECT_EQ(Json::array({}).text(), "[]");
  EXPECT_EQ(Json::array({1, "two", false}).text(), R"([1, "two", false])");
  const Json record = Json::object({{"b", 1}, {"a\"", Json::array({2.5})}});
  EXPECT_EQ(record.text(), R"({"b": 1, "a\"": [2.5]})");
  EXPECT_EQ(Json::array({record, record}).text(),
            "[\n{\"b\": 1, \"a\\\"\": [2.5]},\n{\"b\": 1, \"a\\\"\": [2.5]}\n]");
}

// ---- Reading ----

JsonValue parse(const std::string& text) {
  const TempFolder folder;
  folder.write("x.json", text);
  return read_json(folder.path("x.json"));
}

TEST(ReadJson, WhatIsWritten) {
  const std::string text = "a \"b\" \\ / \n\t Ünï";
  const Json written =
      Json::object({{"text", text},
                    {"numbers", Json::array({Json::object({{"x", -0.1}}), Json::object({})})},
                    {"true", true},
                    {"none", std::nan("")},
                    {"", 1e300}});
  const JsonValue read = parse(written.text());
  EXPECT_EQ(read.text("text"), text);
  EXPECT_EQ(read.number(""), 1e300);
  ASSERT_EQ(read.items("numbers").size(), 2u);
  EXPECT_EQ(read.items("numbers")[0].number("x"), -0.1);
}

TEST(ReadJson, SaysWhichMemberIsNotAsItShould) {
  const JsonValue read = parse(R"( { "a" : [ ] , "b" : null } )");
  const auto reason = [](const auto& get) { return message_of<std::runtime_error>(get); };
  EXPECT_EQ(reason([&] { read.number("a"); }), "'a' is a list, not a number");
  EXPECT_EQ(reason([&] { read.text("b"); }), "'b' is null, not text");
  EXPECT_EQ(reason([&] { read.items("c"); }), "'c' is missing");
}

TEST(ReadJson, RefusesWhatIsNone) {
  for (const char* text : {"", "{", "[1", "[1,]", "[1 2]", "{\"a\"}", "{\"a\":}", "{a: 1}", "\"a",
                           "\"\\", "\"\\x\"", "1 2", "nan", "inf", "-", "1e999", "tru", "'a'"}) {
    EXPECT_THROW(parse(text), std::runtime_error) << text;
  }
  EXPECT_THROW(parse(std::string(1000, '[')), std::runtime_error);
  EXPECT_THROW(parse(std::string("[]\0", 3)), std::runtime_error);
  EXPECT_THROW(read_json("/nowhere/x.json"), std::runtime_error);
}

TEST(AtomicFile, WithoutCommitTheOldFileStays) {
  const TempFolder folder;
  folder.write("x", "old");
  {
    AtomicFile file(folder.path("x"));
    file.write("half", 4);
    EXPECT_EQ(folder.entries(), 2);
  }
  EXPECT_EQ(folder.read("x"), "old");
  EXPECT_EQ(folder.entries(), 1);
}

TEST(AtomicFile, ALinkStaysALink) {
  const TempFolder folder;
  std::filesystem::create_symlink("next", folder.path("link"));
  std::filesystem::create_symlink("target", folder.path("next"));
  for (const char* text : {"longer, and not there yet", "replaced"}) {
    write_json(folder.path("link"), text);
    EXPECT_TRUE(std::filesystem::is_symlink(folder.path("link")));
    EXPECT_EQ(folder.read("target"), "\"" + std::string(text) + "\"\n");
    EXPECT_EQ(folder.entries(), 3);
  }
}

TEST(AtomicFile, LinksInACircleAreReported) {
  const TempFolder folder;
  std::filesystem::create_symlink("b", folder.path("a"));
  std::filesystem::create_symlink("a", folder.path("b"));
  EXPECT_EQ(message_of<std::runtime_error>([&] { AtomicFile file(folder.path("a")); }),
            folder.path("a") + ": too many links");
}

TEST(AtomicFile, ASignalLeavesNothingHalfWritten) {
  const TempFolder folder;
  folder.write("x", "old");
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      AtomicFile file(folder.path("x"));
      file.write("half", 4);
      raise(signal);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
    EXPECT_EQ(folder.read("x"), "old");
    EXPECT_EQ(folder.entries(), 1);
  }
}

TEST(AtomicFile, SignalsThatSomeoneElseHandlesStayTheirs) {
  const TempFolder folder;
  ASSERT_NE(std::signal(SIGHUP, SIG_IGN), SIG_ERR);  // as nohup does
  {
    AtomicFile file(folder.path("x"));
    raise(SIGHUP);
    file.commit();
  }
  EXPECT_EQ(std::signal(SIGHUP, SIG_DFL), SIG_IGN);
  EXPECT_EQ(std::signal(SIGINT, SIG_DFL), SIG_DFL);
  EXPECT_EQ(folder.entries(), 1);
}

TEST(AtomicFile, SaysWhatCannotBeWritten) {
  const TempFolder folder;
  const auto reason = [](const std::string& path) {
    const std::string message = message_of<std::runtime_error>([&] { require_writable(path); });
    EXPECT_EQ(message.rfind(path + ": ", 0), 0u) << message;
    return message.substr(path.size() + 2);
  };
  EXPECT_EQ(reason("/dev/null"), "is not a regular file, can't be replaced");
  EXPECT_EQ(reason(folder.path("")), "is not a regular file, can't be replaced");
  EXPECT_EQ(reason("/nonexistent/x"), "can't be written: No such file or directory");
}

TEST(AtomicFile, AFullDiskIsReported) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full on this system";
  const TempFolder folder;
  // The temporary file's name is known: let it be a link to a disk that is always full.
  const std::string path = folder.path("x");
  std::filesystem::create_symlink("/dev/full", path + ".partial" + std::to_string(getpid()));
  const std::string message = message_of<std::runtime_error>([&] { write_json(path, 1); });
  EXPECT_EQ(message, path + ": can't be written: No space left on device");
  EXPECT_EQ(folder.entries(), 0);
}

}  // namespace
}  // namespace convladder
