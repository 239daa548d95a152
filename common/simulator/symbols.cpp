#include "common/simulator/symbols.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

namespace convladder::simulator {
namespace {

template <typename T>
T read(const std::vector<char>& file, std::size_t offset) {
  T value{};
  if (offset <= file.size() && file.size() - offset >= sizeof(T)) {
    std::memcpy(&value, file.data() + offset, sizeof(T));
  }
  return value;
}

// The mangled name, from the ELF file's own symbol table: kernels have internal linkage, which the
// table for the dynamic linker leaves out.
std::string find_symbol(const std::vector<char>& file, uintptr_t base, uintptr_t address) {
  const auto header = read<ElfW(Ehdr)>(file, 0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return "";
  const uintptr_t value = header.e_type == ET_EXEC ? address : address - base;
  for (int i = 0; i < header.e_shnum; ++i) {
    const auto table = read<ElfW(Shdr)>(file, header.e_shoff + i * sizeof(ElfW(Shdr)));
    if (table.sh_type != SHT_SYMTAB) continue;
    const auto names = read<ElfW(Shdr)>(file, header.e_shoff + table.sh_link * sizeof(ElfW(Shdr)));
    for (std::size_t at = 0; at < table.sh_size; at += sizeof(ElfW(Sym))) {
      const auto symbol = read<ElfW(Sym)>(file, table.sh_offset + at);
      const std::size_t name = names.sh_offset + symbol.st_name;
      if (symbol.st_value == value && (symbol.st_info & 0xf) == STT_FUNC && name < file.size()) {
        return file.data() + name;
      }
    }
  }
  return "";
}

// "void a::(anonymous namespace)::kernel<b<3> >(float*)" -> "kernel"
std::string plain_name(const std::string& name) {
  const std::string anonymous = "(anonymous namespace)";
  std::size_t begin = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name.compare(i, anonymous.size(), anonymous) == 0) {
      i += anonymous.size() - 1;
    } else if (name[i] == '(' || name[i] == '<') {
      return name.substr(begin, i - begin);
    } else if (name[i] == ':' || name[i] == ' ') {
      begin = i + 1;
    }
  }
  return name;
}

}  // namespace

std::string symbol_name(const void* address) {
  Dl_info module;
  if (dladdr(address, &module) == 0) return "?";
  std::ifstream stream(module.dli_fname, std::ios::binary);
  if (!stream) stream.open("/proc/self/exe", std::ios::binary);  // the program, found by PATH
  std::vector<char> file(std::istreambuf_iterator<char>(stream), {});
  file.push_back('\0');  // ends a name that a damaged file does not
  const std::string mangled = find_symbol(file, reinterpret_cast<uintptr_t>(module.dli_fbase),
                                          reinterpret_cast<uintptr_t>(address));
  if (mangled.empty()) return "?";
  char* demangled = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, nullptr);
  const std::string name = demangled ? demangled : mangled;
  std::free(demangled);
  return plain_name(name);
}

}  // namespace convladder::simulator
