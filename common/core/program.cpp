#include "common/core/program.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <locale>
#include <map>
#include <memory>
#include <mutex>
#include <regex>
#include <sstream>

#include "common/core/platform.h"

namespace convladder {
namespace {

// What a command prints, line by line.
std::vector<std::string> lines_of(const std::string& command) {
  std::vector<std::string> lines;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen((command + " 2>/dev/null").c_str(), "r"),
                                                   pclose);
  char* line = nullptr;
  std::size_t room = 0;
  while (pipe && getline(&line, &room, pipe.get()) > 0) {
    lines.emplace_back(line);
    lines.back().pop_back();
  }
  std::free(line);
  return lines;
}

// Numbers as binutils read them, whatever std::locale::global() a program has set.
struct PlainText : std::ostringstream {
  PlainText() { imbue(std::locale::classic()); }
};

// A function or a variable.
struct Symbol {
  std::string name;  // mangled; not the only one of that name, where stages have kernels alike
  uintptr_t value;
  std::size_t bytes;
  char type;  // readelf's: FUNC, OBJECT, or TLS, which is in thread-local storage
  int file;   // by number: the object that alone knows it; 0: all do
};
using SymbolTable = std::vector<Symbol>;

// Kernels have internal linkage: the dynamic linker, which dladdr() asks, doesn't know them.
const SymbolTable& symbols_of(const std::string& file) {
  static std::mutex mutex;
  static std::map<std::string, SymbolTable> known;
  const std::lock_guard lock(mutex);
  const auto [table, is_new] = known.try_emplace(file);
  if (!is_new) return table->second;
  int files = 0;
  for (const std::string& line : lines_of("readelf --wide --syms '" + file + "'")) {
    std::istringstream words(line);
    std::string number, bytes, type, binding, visibility, section, name;
    uintptr_t value = 0;
    words >> number >> std::hex >> value >> bytes >> type >> binding >> visibility >> section >>
        name;
    files += type == "FILE";
    if (type != "FUNC" && type != "OBJECT" && type != "TLS") continue;
    // The size is decimal, or 0x...
    table->second.push_back({name, value, std::strtoull(bytes.c_str(), nullptr, 0), type[0],
                             binding == "LOCAL" ? files : 0});
  }
  return table->second;
}

std::string demangle(const std::string& mangled) {
  if (mangled.rfind("_Z", 0) != 0) return mangled;  // C's: "c" would be a char
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

// "01_naive/naive.cu:41" of what addr2line prints; empty for an unknown place.
std::string tidy(const std::string& text) {
  if (text[0] == '?') return "";
  return shown_path(text.substr(0, text.find(" (discriminator")));
}

// Products of floats in one line of objdump's: "  401136:\tmulss  %xmm1,%xmm0". Of x86 and of ARM, as
// compilers write them that are told not to fuse; calls where the source says fmaf, or names a rounding.
unsigned products_in(const std::string& instruction) {
  const auto has = [&](const char* part) { return instruction.find(part) != std::string::npos; };
  if (has("\tmulss") || has("\tvmulss") || has("\tvfmadd") || has("<fmaf") ||
      has("15rounded_productEif") || has("11rounded_fmaEif")) {
    return 1;
  }
  if (has("\tmulps")) return 4;
  return has("\tfmul\ts") || has("\tfmadd\ts") ? 1 : 0;
}

}  // namespace

std::string shown_path(const std::string& path) {
  static const std::string here = std::filesystem::current_path().string() + "/";
  // A compiler cache may have made the path relative to the build's folder.
  std::string text = (here / std::filesystem::path(path)).lexically_normal().string();
  for (const std::string& folder : {std::string(CONVLADDER_SOURCE_DIR "/"), here}) {
    if (text.rfind(folder, 0) == 0) text.erase(0, folder.size());
  }
  return text;
}

std::string kernel_name(const std::string& mangled) { return plain_name(demangle(mangled)); }

Symbols read_symbols(const void* address) {
  Symbols result;
  const Module module = module_of(address);
  if (module.file.empty()) return result;
  const SymbolTable& all = symbols_of(module.file);
  const uintptr_t value = reinterpret_cast<uintptr_t>(address) - module.load_address;
  const auto found = std::find_if(all.begin(), all.end(), [&](const Symbol& symbol) {
    return symbol.type == 'F' && symbol.value == value;
  });
  if (found == all.end()) return result;
  const std::string& mangled = found->name;
  result.bytes = found->bytes;
  result.name = kernel_name(mangled);
  // The static variable x of a function _Zf is _ZZfE1x, of an extern "C" one _ZZ1fE1x, in a lambda there
  // _ZZZfENK...E1x. What is not in a kernel may be any kernel's, in whose code there may be no more than
  // its address of the function around it: translate.py has tagged it.
  const bool is_c = mangled.rfind("_Z", 0) != 0;
  const std::string prefix =
      (is_c ? std::to_string(mangled.size()) + mangled : mangled.substr(2)) + "E";
  for (const Symbol& symbol : all) {
    if (symbol.type != 'T') continue;
    if (symbol.name.rfind("_ZGVZ", 0) == 0) {
      result.guards.push_back({"guard", symbol.value, symbol.bytes});
      continue;
    }
    const std::size_t inner = symbol.name.find_first_not_of('Z', 1);
    const bool is_own = inner > 2 && symbol.name.compare(inner, prefix.size(), prefix) == 0 &&
                        (found->file == 0 || symbol.file == found->file);
    if (!is_own && symbol.name.find("B6device") == std::string::npos) continue;
    std::string name = demangle(symbol.name);
    name = name.substr(0, name.rfind("[abi:"));
    result.shared.push_back({name.substr(name.rfind(':') + 1), symbol.value, symbol.bytes, is_own});
  }
  return result;
}

std::vector<Variable> variables_between(const char* begin, const char* end) {
  std::vector<Variable> variables;
  const Module module = module_of(begin);
  for (const Symbol& symbol : symbols_of(module.file)) {
    const char* const at = reinterpret_cast<const char*>(module.load_address + symbol.value);
    if (symbol.type != 'O' || at < begin || at >= end) continue;
    const std::string full = demangle(symbol.name);
    variables.push_back({full.substr(full.rfind(':') + 1), at, symbol.bytes});
  }
  return variables;
}

uint32_t code_offset(const void* return_address) {
  static const uintptr_t begin = load_address();
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(return_address) - begin);
}

std::string source_line(uint32_t code_offset) { return source_lines({code_offset})[0][0]; }

std::string called_line(uint32_t code_offset) {
  const std::vector<std::string> lines = source_lines({code_offset})[0];
  const bool is_called = lines.front() != lines.back();
  return lines.front() + (is_called ? " (called at " + lines.back() + ")" : "");
}

std::vector<std::vector<std::string>> source_lines(const std::vector<uint32_t>& code_offsets) {
  PlainText command;
  command << "addr2line -a -i -e " << own_file() << std::hex;
  // The call ends one byte before the address that it returns to.
  for (const uint32_t offset : code_offsets) command << " 0x" << offset - 1;
  std::vector<std::vector<std::string>> all;
  for (const std::string& line : lines_of(command.str())) {
    const bool begins = line.rfind("0x", 0) == 0;  // -a: the address, then its lines
    if (begins) all.emplace_back();
    const std::string place = begins ? "" : tidy(line);
    // What a kernel calls of CUDA's functions stands for the line that calls it.
    if (all.empty() || place.empty() || place.rfind("common/simulator/", 0) == 0) continue;
    all.back().push_back(place);
  }
  all.resize(code_offsets.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].empty()) continue;
    PlainText unknown;
    unknown << "code at 0x" << std::hex << code_offsets[i];
    all[i] = {unknown.str()};
  }
  return all;
}

std::string calling_line() {
  const void* frames[64];
  const std::size_t count = return_addresses(frames, 64);
  std::vector<uint32_t> codes;
  for (std::size_t i = 0; i < count; ++i) codes.push_back(code_offset(frames[i]));
  for (const std::vector<std::string>& lines : source_lines(codes)) {
    for (const std::string& line : lines) {
      const bool is_known = line.rfind("code at", 0) != 0 && line.back() != '?';
      if (is_known && line.rfind("/usr/", 0) != 0 && line.rfind("common/simulator/", 0) != 0) {
        return line;
      }
    }
  }
  return "an unknown place";
}

bool calls_only(const void* code, std::size_t bytes, const std::string& names) {
  const uint32_t first = code_offset(code);
  PlainText command;
  command << "objdump -d -C --no-show-raw-insn --start-address=" << first
          << " --stop-address=" << first + bytes << " " << own_file();
  const std::regex allowed("<(" + names + ")(@plt|\\(.*\\))?>");
  bool any = false;
  for (const std::string& line : lines_of(command.str())) {
    any |= line.find("\tret") != std::string::npos;
    const bool is_call = line.find("\tcall") != std::string::npos ||
                         line.find("\tbl") != std::string::npos;  // x86's, ARM's
    if (is_call && !std::regex_search(line, allowed)) return false;
  }
  return any;
}

uint32_t next_jump(uint32_t code_offset) {
  PlainText command;
  command << "objdump -d --no-show-raw-insn --start-address=" << code_offset
          << " --stop-address=" << code_offset + 4096 << " " << own_file();
  for (const std::string& line : lines_of(command.str())) {
    char* end = nullptr;
    const auto offset = static_cast<uint32_t>(std::strtoul(line.c_str(), &end, 16));
    const std::string instruction = end;
    if (instruction.rfind(":\tret", 0) == 0) break;  // the block ends without one
    // x86's j.., ARM's b... and cb...; source_line() takes places behind an instruction
    for (const char* jump : {":\tj", ":\tb.", ":\tb ", ":\tcb", ":\ttb"}) {
      if (instruction.rfind(jump, 0) == 0) return offset + 1;
    }
  }
  return code_offset;
}

uint32_t before_empty_loop(uint32_t code_offset) {
  constexpr uint32_t AROUND = 1 << 14;
  const uint32_t loop = code_offset - 1;
  PlainText command, to_loop;
  command << "objdump -d --no-show-raw-insn --start-address=" << loop - std::min(loop, AROUND)
          << " --stop-address=" << loop + AROUND << " " << own_file();
  to_loop << " " << std::hex << loop << " <";
  uint32_t before = 0, leads = 0;
  bool is_loop = false;
  for (const std::string& line : lines_of(command.str())) {
    char* end = nullptr;
    const auto offset = static_cast<uint32_t>(std::strtoul(line.c_str(), &end, 16));
    if (*end != ':') continue;
    if (line.find(to_loop.str()) != std::string::npos) {
      if (offset == loop) is_loop = true;
      if (offset != loop) leads = offset;
    }
    if (offset < loop) before = offset;
  }
  return is_loop ? (leads ? leads : before) + 1 : code_offset;
}

BlockProducts read_products(const void* kernel, std::size_t bytes) {
  if (bytes == 0) return {};
  const uint64_t first = code_offset(kernel);
  PlainText command;
  command << "objdump -d --no-show-raw-insn --start-address=" << first
          << " --stop-address=" << first + bytes << " " << own_file();
  auto of_block = std::make_unique<uint16_t[]>(bytes);
  bool block_begins = false, any_block = false;  // begins: the line before was the hook's call
  std::size_t block = 0;
  for (const std::string& line : lines_of(command.str())) {
    char* end = nullptr;
    const std::size_t offset = std::strtoull(line.c_str(), &end, 16) - first;
    if (end == line.c_str() || *end != ':' || offset >= bytes) continue;
    const std::string instruction = end;
    if (block_begins) block = offset;
    block_begins = instruction.find("<__sanitizer_cov_trace_pc") != std::string::npos;
    any_block |= block_begins;
    of_block[block] += static_cast<uint16_t>(products_in(instruction));
  }
  if (!any_block) return {};
  return {reinterpret_cast<uintptr_t>(kernel), bytes, of_block.release()};
}

}  // namespace convladder
