#include "common/simulator/counting/arithmetic.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>

#include "common/simulator/counting/source_line.h"

namespace convladder::simulator {
namespace {

// Products of floats in one line of objdump's: "  401136:\tmulss  %xmm1,%xmm0". Of x86 and of ARM, as
// compilers write them that are told not to fuse; the fused ones where the source says fmaf.
unsigned products_in(const std::string& instruction) {
  const auto has = [&](const char* part) { return instruction.find(part) != std::string::npos; };
  if (has("\tmulss") || has("\tvmulss") || has("\tvfmadd") || has("<fmaf")) return 1;
  if (has("\tmulps")) return 4;
  return has("\tfmul\ts") || has("\tfmadd\ts") ? 1 : 0;
}

}  // namespace

BlockProducts read_products(const void* kernel, std::size_t bytes) {
  if (bytes == 0) return {};
  const uint64_t first = code_offset(kernel);
  std::ostringstream command;
  command << "objdump -d --no-show-raw-insn --start-address=" << first
          << " --stop-address=" << first + bytes << " /proc/" << getpid() << "/exe 2>/dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.str().c_str(), "r"), pclose);
  auto of_block = std::make_unique<uint16_t[]>(bytes);
  bool block_begins = false, any_block = false;  // begins: the line before was the hook's call
  std::size_t block = 0;
  char line[1024];
  while (pipe && std::fgets(line, sizeof(line), pipe.get())) {
    char* end = nullptr;
    const std::size_t offset = std::strtoull(line, &end, 16) - first;
    if (end == line || *end != ':' || offset >= bytes) continue;
    const std::string instruction = end;
    if (block_begins) block = offset;
    block_begins = instruction.find("<__sanitizer_cov_trace_pc") != std::string::npos;
    any_block |= block_begins;
    of_block[block] += static_cast<uint16_t>(products_in(instruction));
  }
  if (!any_block) return {};
  return {reinterpret_cast<uintptr_t>(kernel), bytes, of_block.release()};
}

}  // namespace convladder::simulator
