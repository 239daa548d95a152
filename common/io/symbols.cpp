#include "common/io/symbols.h"

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

namespace convladder {
namespace {

template <typename T>
T read(const std::vector<char>& file, std::size_t offset) {
  T value{};
  if (offset <= file.size() && file.size() - offset >= sizeof(T)) {
    std::memcpy(&value, file.data() + offset, sizeof(T));
  }
  return value;
}

std::vector<char> read_module(const Dl_info& module) {
  std::ifstream stream(module.dli_fname, std::ios::binary);
  if (!stream) stream.open("/proc/self/exe", std::ios::binary);  // the program, found by PATH
  std::vector<char> file(std::istreambuf_iterator<char>(stream), {});
  file.push_back('\0');  // ends a name that a damaged file does not
  return file;
}

// Calls visit(symbol, name) for all that the ELF file's own symbol table lists: kernels have
// internal linkage, which the table for the dynamic linker leaves out.
template <typename Visit>
void visit_symbols(const std::vector<char>& file, Visit visit) {
  const auto header = read<ElfW(Ehdr)>(file, 0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return;
  for (int i = 0; i < header.e_shnum; ++i) {
    const auto table = read<ElfW(Shdr)>(file, header.e_shoff + i * sizeof(ElfW(Shdr)));
    if (table.sh_type != SHT_SYMTAB) continue;
    const auto names = read<ElfW(Shdr)>(file, header.e_shoff + table.sh_link * sizeof(ElfW(Shdr)));
    for (std::size_t at = 0; at < table.sh_size; at += sizeof(ElfW(Sym))) {
      const auto symbol = read<ElfW(Sym)>(file, table.sh_offset + at);
      const std::size_t name = names.sh_offset + symbol.st_name;
      if (name < file.size()) visit(symbol, file.data() + name);
    }
  }
}

std::string demangle(const std::string& mangled) {
  char* demangled = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, nullptr);
  std::string name = demangled ? demangled : mangled;
  std::free(demangled);
  return name;
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

Symbols read_symbols(const void* address) {
  Symbols result;
  Dl_info module;
  if (dladdr(address, &module) == 0) return result;
  const std::vector<char> file = read_module(module);
  const bool fixed = read<ElfW(Ehdr)>(file, 0).e_type == ET_EXEC;
  const uintptr_t base = fixed ? 0 : reinterpret_cast<uintptr_t>(module.dli_fbase);
  const uintptr_t value = reinterpret_cast<uintptr_t>(address) - base;
  std::string mangled;
  visit_symbols(file, [&](const ElfW(Sym) & symbol, const char* name) {
    if (symbol.st_value != value || (symbol.st_info & 0xf) != STT_FUNC) return;
    mangled = name;
    result.bytes = symbol.st_size;
  });
  if (mangled.empty()) return result;
  result.name = plain_name(demangle(mangled));
  if (mangled.rfind("_Z", 0) != 0) return result;  // extern "C"
  // The static variable x of a function _Zf is _ZZfE1x.
  const std::string prefix = "_ZZ" + mangled.substr(2) + "E";
  visit_symbols(file, [&](const ElfW(Sym) & symbol, const char* name) {
    if ((symbol.st_info & 0xf) != STT_TLS) return;
    if (std::strncmp(name, prefix.c_str(), prefix.size()) != 0) return;
    const std::string full = demangle(name);
    result.shared.push_back({full.substr(full.rfind(':') + 1), symbol.st_value, symbol.st_size});
  });
  return result;
}

}  // namespace convladder
