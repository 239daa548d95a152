#include "common/simulator/counting/source_line.h"

#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <sstream>

namespace convladder::simulator {
namespace {

// Where the program was loaded: 0 unless it is position-independent.
const uintptr_t load_address = _r_debug.r_map->l_addr;

// "01_naive/naive.cu:41" of what addr2line prints, without its newline; empty for an unknown place.
std::string tidy(std::string text) {
  if (text[0] == '?') return "";
  text = text.substr(0, std::min(text.find('\n'), text.find(" (discriminator")));
  const std::string root = CONVLADDER_SOURCE_DIR "/";
  // A compiler cache may have made the path relative to the build's folder.
  text = std::filesystem::path(text).lexically_normal().string();
  if (text.rfind(root, 0) == 0) text.erase(0, root.size());
  return text;
}

}  // namespace

uint32_t code_offset(const void* return_address) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(return_address) - load_address);
}

std::string source_line(uint32_t code_offset) { return source_lines({code_offset})[0][0]; }

std::vector<std::vector<std::string>> source_lines(const std::vector<uint32_t>& code_offsets) {
  std::ostringstream command;
  command << "addr2line -a -i -e /proc/" << getpid() << "/exe" << std::hex;
  // The call ends one byte before the address that it returns to.
  for (const uint32_t offset : code_offsets) command << " 0x" << offset - 1;
  command << " 2>/dev/null";
  std::vector<std::vector<std::string>> all;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.str().c_str(), "r"), pclose);
  char line[1024];
  while (pipe && std::fgets(line, sizeof(line), pipe.get())) {
    const bool begins = line[0] == '0' && line[1] == 'x';  // -a: the address, then its lines
    if (begins) all.emplace_back();
    const std::string place = begins ? "" : tidy(line);
    if (!all.empty() && !place.empty()) all.back().push_back(place);
  }
  all.resize(code_offsets.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].empty()) continue;
    std::snprintf(line, sizeof(line), "code at 0x%x", code_offsets[i]);
    all[i] = {line};
  }
  return all;
}

}  // namespace convladder::simulator
