#include "common/simulator/counting/source_line.h"

#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>

namespace convladder::simulator {
namespace {

// Where the program was loaded: 0 unless it is position-independent.
uintptr_t load_address() {
  static const uintptr_t address = [] {
    uintptr_t found = 0;
    dl_iterate_phdr(
        [](dl_phdr_info* program, std::size_t, void* result) {
          *static_cast<uintptr_t*>(result) = program->dlpi_addr;
          return 1;  // the program itself comes first
        },
        &found);
    return found;
  }();
  return address;
}

}  // namespace

uint32_t code_offset(const void* return_address) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(return_address) - load_address());
}

std::string source_line(uint32_t code_offset) {
  char command[128], line[1024] = "";
  // The call ends one byte before the address that it returns to.
  std::snprintf(command, sizeof(command), "addr2line -e /proc/%d/exe 0x%x 2>/dev/null", getpid(),
                code_offset - 1);
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command, "r"), pclose);
  if (!pipe || !std::fgets(line, sizeof(line), pipe.get()) || line[0] == '?') {
    std::snprintf(line, sizeof(line), "code at 0x%x", code_offset);
  }
  std::string text = line;
  const std::string root = CONVLADDER_SOURCE_DIR "/";
  if (text.rfind(root, 0) == 0) text.erase(0, root.size());
  return text.substr(0, std::min(text.find('\n'), text.find(" (discriminator")));
}

}  // namespace convladder::simulator
