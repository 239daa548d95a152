#!/usr/bin/env python3
"""CUDA's additions to C++, for the host compiler. Runs a compiler's command, as ccache does:

  translate.py [--kernels-alone] [LAUNCHER] COMPILER OPTION... -o FILE.o -c FILE.cu

With --kernels-alone nothing that only the host calls is watched in a build that counts: it is faster.
Without a .cu file the command runs as it is. Else the source is preprocessed, translated and compiled.
After the preprocessor there are neither comments nor macros left, and what headers bring is there. Lines
stay where they are, so that the compiler's errors and the simulator's findings name those of the source.

  kernel<<<grid, block, bytes, stream>>>(x)    a call: simulator/launch.h
  __shared__ float x[8];                       static thread_local: a worker thread runs one block at a time
  extern __shared__ float x[];                 another name of the bytes that a launch asks for
  __device__, __constant__, __managed__ int x  in sections, by which the simulator knows device memory
  #pragma unroll                               the host compiler's

What the simulator can't run is refused, with file and line.
"""
import bisect
import contextlib
import os
import re
import subprocess
import sys

import ptx

MARKER = re.compile(r'^# (\d+) "((?:[^"\\\n]|\\.)*)"((?: \d)*)$', re.MULTILINE)
TOKEN = re.compile(r"""
    (?P<marker>^\#\ \d+\ "[^\n]*)
  | (?P<pragma>^[ \t]*\#[^\n]*)
  | (?P<text>(?:u8|[uUL])?R"(?P<delimiter>[^\s()\\]{0,16})\((?s:.*?)\)(?P=delimiter)"
           | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)+')
  | (?P<word>[A-Za-z_]\w*)
  | (?P<number>\.?\d(?:[eEpP][+-]|['\w.])*)
  | (?P<sign>::|->|[^\s\w])""", re.MULTILINE | re.VERBOSE)
OPENING, CLOSING = {"(": ")", "[": "]", "{": "}"}, {")": "(", "]": "[", "}": "{"}

FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
SIMULATOR = " ::convladder::simulator::"  # the space: what stands before may be a colon
SHARED = "static thread_local __attribute__((used, aligned(128){}))"
TAG = ', abi_tag("device")'  # in the name of what any kernel may use, for core/program.cpp
ATOMIC = re.compile(r"atomic(Add|Sub|Exch|Min|Max|And|Or|Xor|Inc|Dec|CAS)(_block|_system)?")
ALTERNATIVES = {"and", "and_eq", "bitand", "bitor", "compl", "not", "not_eq", "or", "or_eq", "xor", "xor_eq"}
VECTOR = re.compile(r"(u?(char|short|int|long|longlong)|float|double)[1-4]")
TYPES = {"auto", "bool", "char", "class", "double", "float", "int", "long", "short", "typename", "unsigned"}
REFUSED = [
    (r"cudaTextureObject_t|cudaCreateTextureObject|cudaBindTexture\w*|tex[123]D\w*|texCubemap\w*|"
     r"textureReference|cudaChannelFormatDesc|cudaCreateChannelDesc", "textures are not simulated"),
    (r"cudaSurfaceObject_t|cudaCreateSurfaceObject|surf[123]D\w+", "surfaces are not simulated"),
    (r"cudaMalloc(?:3D|Mipmapped)?Array|cuda(?:Mipmapped)?Array_t", "CUDA arrays are not simulated"),
    (r"__cluster_dims__|cluster_group|this_cluster", "clusters are not simulated"),
    (r"block_tile_memory", "tiles of several warps are not simulated"),
    (r"cudaGraph\w*|cudaStreamBeginCapture", "CUDA graphs are not simulated"),
    (r"cublasLt(?!Handle_t|Create|Destroy)\w+", "products of cuBLASLt are not simulated"),
    (r"cudaIpc\w+", "memory shared between processes is not simulated"),
    (r"cu(?:Init|Ctx[A-Z]\w*|Module[A-Z]\w*|LaunchKernel|DeviceGet\w*)|"
     r"cuMem(?:Alloc|cpy|Create|Map|Address)\w*|CU(?:device|deviceptr|context|module|function)",
     "the driver API is not simulated"),
    (r"__shfl(?:_up|_down|_xor)?|__ballot|__any|__all",
     "functions of a warp without _sync, which GPUs since compute capability 7.0 lack, are not simulated")]
ENDS = {"exit", "_exit", "_Exit", "quick_exit", "abort"}  # what the host's headers have to end a program
OVERLOADED = {  # what a kernel may call though the program has a function of the host with that name
    "abs", "acos", "asin", "atan", "atan2", "cbrt", "ceil", "cos", "cosh", "erf", "erfc", "exp", "exp2",
    "fabs", "floor", "fma", "fmax", "fmin", "fmod", "hypot", "isfinite", "isinf", "isnan", "log", "log10",
    "log2", "max", "min", "norm", "pow", "round", "rsqrt", "sin", "sinh", "sqrt", "swap", "tan", "tanh"}
HOSTS = "{}: a kernel can't call a function of the host (without __device__)"
# Names of what CUDA's other headers bring.
LIBRARIES = re.compile(
    r"(?:^|/)(?:(?:thrust|cub|cute|cutlass|nv|npp\w*)/|(?:curand|cudnn|cufft|cusparse|cusolver|nvrtc|nvml|npp"
    r"|cublasXt|nccl|cuda_(?:fp\d|awbarrier|pipeline_|occupancy|\w+_interop)|sm_\d\d_|nvToolsExt|nvtx)\w*\.h)"
    r"|(?:^|(?<=/include)/)cuda/\w+")
# Which argument is the kernel.
LAUNCHES = {"cudaLaunchKernel": 0, "cudaLaunchCooperativeKernel": 0, "cudaLaunchKernelExC": 1}
INDICES = {"threadIdx", "blockIdx", "blockDim", "gridDim"}
WRITTEN = re.compile(r"(?:\s*\.\s*[xyz])?\s*(?:=(?!=)|[-+*/%&|^]=|<<=|>>=|\+\+|--)")
OURS = "/common/simulator/"

MISSING = re.compile(r"^(.+?:\d+):\d+: fatal error: (.+?)(?:: No such file| file not found)", re.MULTILINE)


class Refused(Exception):
    """(position in the text, what is wrong)"""


class Unit:
    """A preprocessed source, and what is to be changed in it."""

    def __init__(self, text, counting):
        self.text, self.kernel = text, "__attribute__((flatten))" if counting else ""
        markers = list(MARKER.finditer(text))
        self.begins = [marker.end() + 1 for marker in markers]
        self.places = [(marker[2], int(marker[1])) for marker in markers]
        self.libraries = [(marker.start(), found[0].strip("/")) for marker in markers
                          if marker[3] == " 1 3" and OURS not in marker[2] and
                          (found := LIBRARIES.search(marker[2]))]
        self.kinds, self.words, self.starts, self.ends = [], [], [], []
        own = {marker[2] for marker in markers if "3" not in marker[3].split()}
        for number, marker in enumerate(markers):
            if marker[2] not in own or FOLDER in marker[2]:  # a system's header, or the simulator's
                continue
            end = markers[number + 1].start() if number + 1 < len(markers) else len(text)
            for token in TOKEN.finditer(text, marker.end(), end):
                kind = "sign" if token[0] in ALTERNATIVES else token.lastgroup
                self.kinds.append(kind if kind != "delimiter" else "text")
                self.words.append(token[0])
                self.starts.append(token.start())
                self.ends.append(token.end())
        for _ in range(4):  # behind the last, where somebody may look
            self.words.append("")
            self.kinds.append("end")
            self.starts.append(len(text))
            self.ends.append(len(text))
        self.left_out = set()  # tokens: concepts of parameters, which a template's have instead
        self.edits = []
        self.bodies = []      # of kernels: (first token, last token)
        self.device_bodies = []  # of functions of the device that are no templates, and not inline
        self.device_only = []  # of functions of the device that aren't the host's as well
        self.types = {}       # of kernels' parameters
        self.finders = []     # (kernel, position, what finds out which is meant)
        self.spaces = set()   # (namespace, kernel in it)
        self.uses_ptx = False
        self.own_atomics = set()  # functions of the program
        self.own_moves = set()    # the same of memcpy() and the like
        self.deduced = set()  # kernels whose launch must find out which of that name is meant
        self.kernel_names = set()  # tokens: each where its kernel is declared
        self.device_functions = set()  # names
        self.symbols = set()  # names of variables in device memory that aren't the host's as well
        self.defaults = set()  # kernels with default arguments
        self.overloaded = set()  # kernels of several types

    def line(self, position):
        """"FILE:LINE"."""
        number = bisect.bisect_right(self.begins, position) - 1
        file, line = self.places[number]
        return f"{file}:{line + self.text.count(chr(10), self.begins[number], position)}"

    def replace(self, token, text, last=None):
        self.edits.append((self.starts[token], self.ends[token if last is None else last], text))

    def insert(self, token, text):
        """In front of the token."""
        self.edits.append((self.starts[token], self.starts[token], text))

    def flat(self, first, end):
        """The text of tokens, in one line."""
        return "".join(self.words[i] + " " * (self.ends[i] < self.starts[i + 1]) for i in range(first, end)
                       if self.kinds[i] not in ("marker", "pragma") and i not in self.left_out)

    def refuse(self, token, what):
        raise Refused(self.starts[token], what)

    # --- looking around ---------------------------------------------------------------------------

    def check_brackets(self):
        """Else what stands behind one that is missing would be taken for something else."""
        opened = []
        for i, (kind, word) in enumerate(zip(self.kinds, self.words)):
            if kind == "sign" and word in ("(", "[", "{"):
                opened.append(i)
            elif kind == "sign" and word in (")", "]", "}"):
                if not opened:
                    self.refuse(i, f"nothing is open that this '{word}' closes")
                if self.words[opened[-1]] + word not in ("()", "[]", "{}"):
                    self.refuse(opened[-1], f"'{self.words[opened[-1]]}' is not closed")
                opened.pop()
        if opened:
            self.refuse(len(self.starts) - 1, f"at the end a '{self.words[opened[-1]]}' is still open")

    def closing(self, i):
        """The token that closes the bracket at i."""
        depth = 0
        for j in range(i, len(self.words)):
            if self.kinds[j] == "sign":
                depth += (self.words[j] in OPENING) - (self.words[j] in CLOSING)
                if depth == 0:
                    return j
        return self.refuse(i, f"'{self.words[i]}' is not closed")

    def angle(self, i):
        """1 for '<', -1 for '>', else 0, as for '<=' and '>='."""
        is_relation = self.words[i + 1] == "=" and self.starts[i + 1] == self.ends[i]
        word = self.words[i] if self.kinds[i] == "sign" and not is_relation else ""
        return (word == "<") - (word == ">")

    def opening(self, i):
        """The token that opens what the token at i closes: ')', ']', '}' or '>'."""
        depth = angles = 0
        for j in range(i, -1, -1):
            if self.kinds[j] != "sign":
                continue
            word = self.words[j]
            depth += (word in CLOSING) - (word in OPENING)
            if depth == 0:
                angles -= self.angle(j)
                if angles == 0:
                    return j
        return self.refuse(i, f"'{self.words[i]}' closes nothing")

    def after_angles(self, i):
        """The token behind the template arguments (or parameters) that begin at i."""
        angles = 0
        while self.kinds[i] != "end":
            word = self.words[i] if self.kinds[i] == "sign" else ""
            angles += self.angle(i)
            i = (self.closing(i) if word in OPENING else i) + 1
            if angles == 0:
                break
        return i

    def split(self, first, end):
        """The parts between commas, as pairs (first, end)."""
        parts, begin, i, angles = [], first, first, 0
        while i < end:
            word = self.words[i] if self.kinds[i] == "sign" else ""
            angles += self.angle(i)
            if word == "," and angles == 0:
                parts.append((begin, i))
                begin = i + 1
            i = (self.closing(i) if word in OPENING else i) + 1
        return parts + [(begin, end)] if end > first else []

    def adjacent(self, i, signs):
        """Whether these signs stand at i, without anything between."""
        return all(self.words[i + k] == sign and self.starts[i + k] == self.starts[i] + k
                   for k, sign in enumerate(signs) if i + k < len(self.words))

    def statement(self, i):
        """The first token of the statement or declaration that i is in."""
        while i > 0 and not (self.words[i - 1] in (";", "{", "}") and self.kinds[i - 1] == "sign" or
                             self.kinds[i - 1] == "pragma"):
            i -= 1
        while self.kinds[i] == "marker":
            i += 1
        return i

    def around(self, i):
        """What stands before the bracket {...} that i is in; None outside of all."""
        depth = 0
        while i >= 0 and depth <= 0:
            i -= 1
            depth += self.kinds[i] == "sign" and (self.words[i] == "{") - (self.words[i] == "}")
        return self.words[self.statement(i):i] if i >= 0 else None

    def in_function(self, i):
        """Not in a namespace: the bracket around i is no namespace's."""
        around = self.around(i)
        return around is not None and not {"namespace", "extern"} & set(around)

    # --- declarations -----------------------------------------------------------------------------

    def declare_kernel(self, i):
        """__global__: the attribute in its place; and for behind the declaration a function, never
        defined, from whose result a launch learns which kernel of that name its arguments mean."""
        self.replace(i, self.kernel)
        name = i + 1
        while self.words[name + 1] != "(" or self.words[name] in ("__attribute__", "alignas"):
            if self.words[name + 1] == "(":
                name = self.closing(name + 1)
            name += 1
            if self.words[name] in (";", "{", ""):
                self.refuse(i, "what __global__ stands before is no function")
        if self.kinds[name] == "word" and self.words[name - 1] in TYPES - {"auto", "class", "typename"}:
            self.refuse(name, f"{self.words[name]}: a kernel returns void")
        self.kernel_names.add(name)
        end = self.closing(name + 1)
        packs = ["auto", *re.findall(r"\.\.\.\s*(\w+)", self.flat(self.statement(i), i))]  # of the template
        is_pack = self.words[end - 4] in packs
        if self.words[end - 1] == "." and self.words[end - 2] in (",", ".") and not is_pack:
            self.refuse(name, f"{self.words[name]}: a kernel can't take what '...' stands for")
        after = end + 1
        while self.words[after] not in (";", "{"):
            if self.kinds[after] == "end":
                self.refuse(name, f"{self.words[name]}: neither a body nor a ';' stands behind it")
            after += 1
        is_body = self.words[after] == "{"
        last = self.closing(after) if is_body else after
        if is_body:
            self.bodies.append((after, last))
        begin = self.statement(i)
        if "friend" in self.words[begin:i]:
            return  # declared elsewhere
        if self.in_function(i):
            self.refuse(i, f"{self.words[name]}: a member of a class can't be a kernel")
        while self.words[begin] == "extern":
            begin += 1 + (self.kinds[begin + 1] == "text")
        is_template = self.words[begin] == "template"
        if is_template and self.words[begin + 1] != "<" or self.words[name - 1] in ("::", ">"):
            return  # an instantiation, or declared elsewhere
        if is_template and self.words[begin + 2] == ">":
            return  # a specialization: its template is the kernel
        if self.words[name] == "operator" or self.kinds[name] != "word":
            self.refuse(i, "a kernel needs a name")
        header = arguments = ""
        inside = begin + 2, self.after_angles(begin + 1) - 1
        parts = [self.parameter(*part) for part in self.split(*inside)] if is_template else []
        for each in range(name + 2, end):
            if self.words[each] == "auto":  # C++20's: a parameter of the template
                first = self.concept_before(each)
                concept = self.flat(first, each) or "typename"
                self.left_out.update(range(first, each))
                self.words[each], dots = f"Auto{each}", "..." * (self.words[each + 1] == ".")
                parts.append((f"{concept}{dots} {self.words[each]}", self.words[each] + dots))
        if parts:
            header = f"template <{', '.join(declared for declared, _ in parts)}> "
            arguments = "<" + ", ".join(name for _, name in parts) + ">"
        types = ", ".join(self.flat(first, self.without_default(first, behind))
                          for first, behind in self.split(name + 2, end))
        of_names = [self.place_of_name(*part) for part in self.split(name + 2, end)]
        unnamed = [word for each in range(name + 2, end) if each not in of_names and (
            word := self.words[each]) and not self.is_in_default(each, name + 2, end)]
        kernel = self.words[name]
        self.spaces.add((*(self.around(i) or ["", ""])[-1:], kernel))
        if "=" in self.words[name + 2:end]:
            self.declare_defaults(kernel, header, name + 2, end, self.ends[last])
        self.finders.append((kernel, self.ends[last],
                             f" {header}__attribute__((unused)){SIMULATOR}Kernel<"
                             f"static_cast<void (*)({types})>(&{kernel}{arguments})> "
                             f"{kernel}__kernel({self.flat(name + 2, end)});"))
        if self.types.setdefault(kernel, unnamed) != unnamed:
            self.overloaded.add(kernel)
        if parts or kernel in self.overloaded:
            self.deduced.add(kernel)

    def concept_before(self, i):
        """Where the concept begins, std::convertible_to<int>, in front of the `auto` at i; i if none."""
        first = self.opening(i - 1) - 1 if self.words[i - 1] == ">" else i - 1
        def is_name(j):
            return self.kinds[j] == "word" and self.words[j] not in ("const", "volatile")
        if not is_name(first):
            return i
        while self.words[first - 1] == "::":
            first -= 1 + is_name(first - 2)
        return first

    def find_overloads(self):
        """Functions of the host that have a kernel's name: a word stands before what is declared. By `using
        namespace` any may come, std::reduce() and so on."""
        for i, word in enumerate(self.words):
            if word == "using" and self.words[i + 1] == "namespace":
                self.deduced |= self.types.keys()
            if word in self.types and i not in self.kernel_names and self.words[i + 1] == "(" and (
                    self.kinds[i - 1] == "word" and self.words[i - 1] not in ("return", "else", "do")):
                self.deduced.add(word)

    def use_kernels(self):
        """using inner::kernel: so with what a launch of it needs."""
        for i, word in enumerate(self.words):
            if word != "using" or self.kinds[i] != "word":
                continue
            end = next((j for j in range(i, len(self.words)) if self.words[j] == ";"), i)
            for first, behind in self.split(i + 1, end):
                name = self.words[behind - 1]
                if self.words[behind - 2] != "::" or (self.words[behind - 3], name) not in self.spaces:
                    continue
                for known, suffix in (self.deduced, "kernel"), (self.defaults, "arguments"):
                    if name in known:
                        self.insert(end, f", {self.flat(first, behind)}__{suffix}")

    def declare_defaults(self, kernel, header, first, end, behind):
        """Behind a kernel whose parameters have defaults: a function that puts them in."""
        parts = [self.parameter(*part) for part in self.split(first, end)]
        declared, names = map(", ".join, zip(*parts))
        self.defaults.add(kernel)
        self.edits.append((behind, behind, f" {header}__attribute__((unused)) static auto "
                           f"{kernel}__arguments({declared}) {{ return ::std::make_tuple({names}); }}"))

    def without_default(self, first, end):
        return next((i for i in range(first, end) if self.assigns(i)), end)

    def assigns(self, i):
        """Whether an '=' stands there that is no part of ==, <= and the like."""
        return self.words[i] == "=" and not self.adjacent(i, "==") and not (
            self.words[i - 1] in ("=", "<", ">", "!") and self.ends[i - 1] == self.starts[i])

    def is_in_default(self, i, first, end):
        return any(self.without_default(begin, behind) <= i < behind
                   for begin, behind in self.split(first, end))

    def before_arrays(self, i):
        """Where the brackets [...] begin that end in front of i."""
        while self.words[i - 1] == "]":
            i = self.opening(i - 1)
        return i

    def parameter(self, first, end):
        """A parameter, of a template or a kernel, with a name if it has none; and the argument that stands
        for it."""
        at = self.behind_name(first, end)
        if self.place_of_name(first, end) is None:
            last = f"unnamed{first}"
            declared = f"{self.flat(first, at)} {last} {self.flat(at, end)}"
        else:
            last, declared = self.words[at - 1], self.flat(first, end)
        before = self.words[at - 1 if last.startswith("unnamed") else at - 2]
        return declared, last + ("..." if before == "." else "")

    def place_of_name(self, first, end):
        """Where a parameter's name stands; None if it has none."""
        at = self.behind_name(first, end)
        last, before = self.words[at - 1], self.words[at - 2]
        return None if (self.kinds[at - 1] != "word" or at - first < 2 or before == "::" or
                        last in TYPES or re.fullmatch(r"Auto\d+", last)) else at - 1

    def behind_name(self, first, end):
        """Behind a parameter's name, or where it would be."""
        at = self.before_arrays(self.without_default(first, end))
        if self.words[at - 1] == ")" and self.words[self.opening(at - 1) - 1] != "decltype":
            inner = self.opening(at - 1)
            is_nested = self.words[inner + 1] in ("*", "&")  # float (*x)[4], but not float f(float)
            if self.words[inner - 1] == ")":  # float (*f)(float)
                at, is_nested = inner, True
            at = self.before_arrays(at - 1) if is_nested else inner
        return at

    def declare_shared(self, i):
        begin, end = self.statement(i), i
        while self.words[end] not in (";", ""):
            if self.assigns(end) or self.words[end - 1:end + 1] == ["]", "{"]:
                self.refuse(i, "CUDA takes no initializer of a __shared__ variable")
            end = (self.closing(end) if self.words[end] in OPENING else end) + 1
        around = {self.words[j]: j for j in range(begin, end)}
        if "alignas" in around:  # which C++ wants before the rest; dynamic memory has more
            first, last = around["alignas"], self.closing(around["alignas"] + 1)
            if first > begin and "extern" not in around:
                self.insert(begin, self.flat(first, last + 1) + " ")
            if first > begin or "extern" in around:
                for j in range(first, last + 1):
                    self.replace(j, "")
        if "extern" in around:
            return self.declare_dynamic(i, around, end)
        for word in {"static", "const"} & set(around):  # no hook sees what is const
            self.replace(around[word], "")
        in_kernel = self.bodies and self.bodies[-1][0] < i < self.bodies[-1][1]
        self.replace(i, SHARED.format("" if in_kernel else TAG))

    def declare_dynamic(self, i, around, end):
        if self.in_function(i):  # where g++ forgets a name that is given to a template's
            name = next((j for j in range(i, end) if self.words[j] == "["), 0) - 1
            if name < 0:
                self.refuse(i, "an extern __shared__ variable is an array, without a size: float x[]")
            self.replace(around["extern"], "")
            self.replace(i, "")
            self.replace(name, f"(&{self.words[name]})")
            self.insert(end, f" ={SIMULATOR}DynamicShared()")
        else:
            self.replace(i, "__thread")
            self.insert(end, ' asm("convladder_dynamic_shared")')

    def declare_device(self, i):
        """__device__ and the like: of a function nothing; a variable's section."""
        begin, end, section = self.statement(i), i + 1, "convladder_device"
        while self.words[end] not in (";", "=", "(", "[", "{", "", "operator", ")", ","):
            if self.words[end + 1] == "(" and self.words[end] in ("__attribute__", "alignas", "decltype"):
                end = self.closing(end + 1)
            end = self.after_angles(end) if self.words[end] == "<" else end + 1
        around = self.words[begin:end]
        is_list = self.words[end] == "," and self.is_list(end)  # int x, y;
        attribute = i - 1
        while self.words[attribute] in ("__host__", "__device__"):
            attribute -= 1
        is_lambda = self.words[attribute] == "]" and self.words[attribute - 1] != "]"  # not [[nodiscard]]
        signs = "-", "+", "true", "false", "nullptr"
        is_value = self.words[end] == "(" and self.words[self.closing(end) + 1] == ";" and (
            self.kinds[end + 1] in ("number", "text") or self.words[end + 1] in signs)  # int x(5);
        is_function = is_lambda or (self.words[end] in ("(", "operator", ")", ",", "") and not is_list and
                                    not is_value)
        is_constant = "constexpr" in around or "const" in around and "*" not in around
        if self.words[end:end + 2] == ["(", "*"]:  # float (*f)(float), but not float (*f())(float)
            close = self.closing(end)
            is_function = self.words[close - 1] == ")" or self.words[close + 1] not in ("(", "[")
            is_constant = "constexpr" in around or "const" in self.words[end:close]
        if is_constant and "constexpr" not in around and self.words[end] == "[":  # no hook sees what is const
            is_named = {"static", "extern"} & set(around)
            self.replace(begin + around.index("const"), "" if is_named else "static")
            is_constant = False
        if "__constant__" in around:
            section = "convladder_constant"
        own = [word for word in around if word in ("__device__", "__constant__", "__managed__")]
        is_elsewhere = "extern" in around or {"inline", "static"} <= set(around) or own[0] != self.words[i]
        if not (is_function or is_constant or is_elsewhere):
            while self.words[end] == "[":
                end = self.closing(end) + 1
            if "template" in around and self.words[end] in ("=", "{"):  # for which g++ knows no sections
                self.refuse(i, "a template of variables with a value in device memory is not simulated")
            if "inline" in around:  # which g++ wouldn't put in one section with others
                self.replace(begin + around.index("inline"), "__attribute__((weak))")
        if is_function and self.words[end] == "(":
            self.device_functions.add(self.words[end - 1])
            body = self.closing(end) + 1
            if self.words[body] == "{" and not {"template", "inline", "__forceinline__"} & set(around):
                self.device_bodies.append((body, self.closing(body)))
            if self.words[body] == "{" and "__host__" not in around:
                self.device_only.append((body, self.closing(body)))
        if is_function or is_constant or is_elsewhere:
            self.replace(i, "")
        else:
            if "__managed__" not in around:
                self.symbols.add(self.words[self.before_arrays(end) - 1])
            constant = "__constinit " if is_value or self.is_initialized(end) else ""
            self.replace(i, f'{constant}__attribute__((section("{section}")))')

    def is_initialized(self, end):
        """Whether the variable whose declarator ends there has a value, or a constructor that gives one: CUDA
        takes only those that do nothing or are constexpr."""
        name = end - 1
        while self.words[name] == "]":
            name = self.opening(name) - 1
        type_ = self.words[name - 1]
        return self.words[end] in ("=", "{") or any(
            word == type_ and self.words[i + 1:i + 3] == ["(", ")"] and self.words[i - 1] != "?" and
            (self.words[i + 3] == ":" or self.words[i + 3] == "{" and self.words[i + 4] != "}")
            for i, word in enumerate(self.words))

    def is_list(self, i):
        """Whether a comma stands between two variables: up to the semicolon no bracket is closed."""
        while self.words[i] not in (";", ")", "]", "}", ">", ""):
            i = (self.closing(i) if self.words[i] in OPENING else i) + 1
        return self.words[i] == ";"

    # --- statements -------------------------------------------------------------------------------

    def find_functions(self):
        """Of functions with a body in a namespace that are no kernels: where each begins, and whether each of
        that name is the host's alone."""
        functions, owners = {}, {}
        for i, word in enumerate(self.words):
            if self.kinds[i] != "word" or self.words[i + 1] != "(" or i in self.kernel_names:
                continue
            before = self.words[i - 1]
            if self.kinds[i - 1] != "word" and before not in ("*", "&", ">"):
                continue
            end = self.closing(i + 1) + 1
            while self.words[end] in ("noexcept", "const"):
                end += 1
            if self.words[end] != "{" or self.in_function(i):
                continue
            around = self.words[self.statement(i):i]
            functions[word] = i
            is_host = not {"__device__", "__global__", "constexpr", "consteval", "operator"} & set(around)
            owners[word] = owners.get(word, True) and is_host
        return functions, {word for word, is_host in owners.items()
                           if is_host and word not in self.device_functions}

    def check_functions(self, launches):
        """Launches of what is no kernel, and what the device's code has that is the host's."""
        functions, of_host = self.find_functions()
        ends = ENDS - self.device_functions - set(functions)
        of_host = of_host - OVERLOADED | ends
        kernels = {self.words[i] for i in self.kernel_names}
        for i in launches:
            name = self.words[i - 1]
            if name in functions and name not in kernels and not self.is_variable(name):
                self.refuse(i - 1, f"{name}: a function without __global__ can't be launched")
        called = []
        for i, word in enumerate(self.words):
            if word in kernels and self.kinds[i] == "word" and i not in self.kernel_names:
                if self.follows_a_type(i) or self.words[i - 1] in ("*", "&", ">") and self.words[i + 1] in (
                        "(", ")", ";", "=", "{"):
                    kernels.remove(word)  # something else has that name as well
                elif self.words[i - 1] in ("return", "else", "do", ";", "{", "}"):
                    behind = self.after_angles(i + 1) if self.adjacent(i + 1, "<") and not self.adjacent(
                        i + 1, "<<") else i + 1
                    called += [i] * (self.words[behind] == "(")
        for i in called:
            if self.words[i] in kernels:
                self.refuse(i, f"{self.words[i]}: a kernel can't be called, but by <<<...>>>")
        for first, last in self.bodies + self.device_only:
            own = set()  # what the function declares
            for i in range(self.statement(first), last):
                if self.words[i] in ("throw", "try") and self.kinds[i] == "word" and i > first:
                    self.refuse(i, f"{self.words[i]}: the device's code has no exceptions")
                if self.words[i] in ends and self.words[i - 2:i] == ["std", "::"]:
                    self.refuse(i, HOSTS.format(self.words[i]))
                if self.kinds[i] == "word" and self.words[i] in of_host:
                    if i < first or self.follows_a_type(i) or self.words[i - 1] in (">", "&", "*") and \
                            self.words[i + 1] in (";", "=", "{", ","):
                        own.add(self.words[i])
                    elif (self.words[i + 1] == "(" and self.words[i] not in own
                          and self.words[i - 1] not in (".", "->", "::", "&", "*", ">")):
                        self.refuse(i, HOSTS.format(self.words[i]))

    def follows_a_type(self, i):
        return self.kinds[i - 1] == "word" and self.words[i - 1] not in ("return", "else", "do")

    def is_variable(self, name):
        """Whether something of that name is declared that may point to a kernel: it may be launched."""
        return any(word == name and self.words[i + 1] in (")", ",", "=", ";", "{") and
                   (self.words[i - 1] in ("*", ">", "&") or self.follows_a_type(i))
                   for i, word in enumerate(self.words))

    def launch(self, i):
        """kernel<<<grid, block, bytes, stream>>>(arguments), where i is the first '<' of '<<<'."""
        if any(first < i < last for first, last in self.bodies):
            self.refuse(i, "a kernel that launches kernels (dynamic parallelism) is not simulated")
        first, name = i, None
        while True:
            first -= 1
            if self.words[first] == ">":
                first = self.opening(first) - 1
            while self.words[first] in (")", "]"):
                first = self.opening(first)
                first -= self.kinds[first - 1] == "word"
            name = name or self.words[first]
            if self.words[first - 1] not in ("::", ".", "->"):
                break
            first -= 1
            if self.words[first] == "::" and self.kinds[first - 1] != "word" and self.words[first - 1] != ">":
                break
        depth, end = 0, i + 3
        while depth or self.words[end:end + 4] != [">", ">", ">", "("]:
            if self.kinds[end] == "end":
                self.refuse(i, "'<<<' is not closed")
            depth += (self.words[end] in OPENING) - (self.words[end] in CLOSING)
            end += 1
        for j in range(end + 4, self.closing(end + 3)):
            if self.words[j] == "__null":
                self.replace(j, "nullptr")
        self.mark_symbols(end + 3)
        at = i - 1 if self.words[i - 1] != ">" else self.opening(i - 1) - 1  # its name
        has_defaults = name in self.defaults and name not in self.overloaded
        filled = f"{self.flat(first, at + 1).rstrip()}__arguments{self.flat(at + 1, i)}"
        if has_defaults:
            self.insert(first, " ::std::apply(")
        given = self.split(end + 4, self.closing(end + 3))
        if name in self.deduced and any(self.words[begin] == "{" for begin, _ in given):
            # What stands in braces has no type of its own, which `auto&&` would need.
            self.insert(first, SIMULATOR + "kernel(decltype(")
            self.edits.append((self.ends[at], self.ends[at], "__kernel"))
            before = f"({self.flat(end + 4, self.closing(end + 3))}))::pointer)"
        elif name in self.deduced:
            self.insert(first, SIMULATOR + "deduced([&](auto&&... a) -> decltype(")
            self.edits.append((self.ends[at], self.ends[at], "__kernel"))
            before = "(static_cast<decltype(a)>(a)...)) { return {}; })"
        else:
            self.insert(first, SIMULATOR + "kernel(")
            before = ")"
        self.replace(i, before + ".on(", i + 2)
        self.replace(end, f"), {filled}" if has_defaults else ")", end + 2)
        if has_defaults:
            self.insert(self.closing(end + 3), ")")

    def mark_symbols(self, i):
        """The brackets at i hold a launch's or a copy's arguments. There a symbol's name, or its address, is
        other memory on a GPU."""
        for first, end in self.split(i + 1, self.closing(i)):
            found = re.match(r"(?:\([\w *]+\) *)?&?(?:\w*::)*(\w+)[^()]*$", self.flat(first, end))
            if self.kernel and found and found[1] in self.symbols:
                self.insert(first, SIMULATOR + "seen_by_host(")
                self.insert(end, ")")

    def place_static(self, i):
        """A static variable of a kernel, or of a function of the device, lies in device memory. (Not what
        templates and inline functions have: g++ puts that in sections of its own.)"""
        end = i
        while self.words[end] not in (";", "=", "(", "{", ""):
            end += 1
        is_template = any(self.words[self.statement(first)] == "template" and first < i < last
                          for first, last in self.bodies)
        if (any(first < i < last for first, last in self.bodies + self.device_bodies) and not is_template and
                not {"__shared__", "const", "constexpr"} & set(self.words[i:end]) and
                "__shared__" not in self.words[self.statement(i):i]):
            self.replace(i, 'static __attribute__((section("convladder_device")))')

    def ignore_result(self, i):
        """A statement that is an atomic operation alone: nobody uses its result, for which a GPU has another
        instruction. Not of a function that the program has under this name."""
        scope = self.words[i - 2] if self.kinds[i - 2] == "word" else ""
        first = i - (self.words[i - 1] == "::" and scope in ("", "else", "do"))
        first -= 3 * (self.words[first - 3:first] == ["(", "void", ")"])
        before = first - 1
        if self.kinds[before] == "word" and self.words[before] not in ("else", "do", "return"):
            self.own_atomics.add(self.words[i])
        is_call = self.words[i] not in self.own_atomics and self.words[i + 1] == "("
        if is_call and self.begin_of(first) == first and self.words[self.closing(i + 1) + 1] == ";":
            self.insert(first, SIMULATOR + "ignore_result(), ")

    def remember_casts(self):
        """(const void*)kernel, or reinterpret_cast<const void*>(kernel): the cast hides what the kernel
        takes, and a launch must learn it again. So of whatever is cast for a launch."""
        kernels = {self.words[i] for i in self.kernel_names}
        for i, word in enumerate(self.words):
            if word not in kernels or i in self.kernel_names:
                continue
            first = i
            while self.words[first - 1] == "::":
                first -= 1 + (self.kinds[first - 2] == "word")
            first -= self.words[first - 1] == "&"
            end, around = first - 1, []
            if self.words[end] == ")":
                around = self.words[self.opening(end) + 1:end]
            elif self.words[end] == "(" and self.words[end - 1] == ">":
                around = self.words[self.opening(end - 1) + 1:end - 1]
            if self.is_address(around):
                behind = self.after_angles(i + 1) if self.words[i + 1] == "<" else i + 1
                self.insert(first, SIMULATOR + "known(")
                self.insert(behind, ")")
        for i, word in enumerate(self.words):
            if word not in LAUNCHES or self.words[i + 1] != "(":
                continue
            parts = self.split(i + 2, self.closing(i + 1))
            if len(parts) <= LAUNCHES[word]:
                continue
            first, end = parts[LAUNCHES[word]]
            behind = self.closing(first) + 1 if self.words[first] == "(" else first
            around = self.words[first + 1:behind - 1]
            if self.words[first + 1] == "<" and self.words[end - 1] == ")":  # reinterpret_cast<...>(...)
                behind, end = self.after_angles(first + 1) + 1, end - 1
                around = self.words[first + 2:behind - 2]
            if self.is_address(around):
                self.insert(behind, SIMULATOR + "known(")
                self.insert(end, ")")

    @staticmethod
    def is_address(type_):
        """void*, or const void*"""
        return [word for word in type_ if word != "const"] == ["void", "*"]

    def assembly(self, i):
        """asm("..." : outputs : inputs): a call of the function that does the same."""
        first = i + 1
        while self.words[first] in ("volatile", "__volatile__", "goto"):
            first += 1
        if self.words[first] != "(" or self.kinds[first + 1] != "text":
            return
        behind, last = first + 1, self.closing(first)
        while self.kinds[behind] == "text":
            behind += 1
        text = "".join(re.sub(r'^R?"(?:\(?)|\)?"$', "", self.words[j]) for j in range(first + 1, behind))
        operands = [self.asm_operand(j + 1) for j in range(behind, last)
                    if self.kinds[j] == "text" and self.words[j + 1] == "("]
        try:
            code = ptx.Assembly(text).translated()
        except ptx.Unknown as unknown:
            self.refuse(i, f'inline PTX "{unknown}" is not simulated')
        for number in re.findall(r"(?<!%)%(\d+)", text):
            if int(number) >= len(operands):
                self.refuse(i, f"asm() has no operand %{number}")
        if code or operands:  # without both it is a barrier of the compiler alone
            named = "".join(f"auto&& o{number} = {operand}; " for number, operand in enumerate(operands))
            lines = "\n" * self.text.count("\n", self.starts[i], self.starts[last])
            self.uses_ptx = True
            self.replace(i, f"do {{ {named}{code} }} while (false){lines}", last)

    def asm_operand(self, i):
        """Of "r"(__float_as_uint(x)) it is x, whose bits count anyway."""
        end = self.closing(i)
        if self.words[i + 1] in ("__float_as_uint", "__float_as_int") and self.closing(i + 2) == end - 1:
            i, end = i + 2, end - 1
        return self.flat(i, end + 1)

    def check_index(self, i):
        """A thread's indices can't be written to. (`auto` learns it from their type.)"""
        statement = self.text[self.starts[self.statement(i)]:self.starts[i]]
        if re.search(r"\bauto\s*(?:&&?|\*)\s*(?:const\s+)?\w+\s*=\s*&?\s*$", statement):
            self.replace(i, f"::std::as_const({self.words[i]})")
            return
        taken = re.search(r"(?:^|[=(,{;]\s*)&\s*$", statement) or (
            re.search(r"&\s*\w+\s*=\s*$", statement) and not re.search(r"\bconst\b", statement))
        if (any(first < i < last for first, last in self.bodies + self.device_bodies) and
                self.words[i - 1] not in (".", "->") and self.kinds[i - 1] != "word" and
                (taken or WRITTEN.match(self.text, self.ends[i]) or re.search(r"(\+\+|--)\s*$", statement))):
            self.refuse(i, f"{self.words[i]} can't be written to")

    def move(self, i):
        """memcpy() and the like: the compiler would make moves of them that no hook sees."""
        if self.follows_a_type(i) and self.words[i + 1] == "(":
            self.own_moves.add(self.words[i])
        is_of_other = self.words[i - 1] == "::" and self.kinds[i - 2] == "word" and self.words[i - 2] != "std"
        if self.words[i + 1] == "(" and self.words[i - 1] not in (".", "->", "*") and not is_of_other and \
                self.words[i] not in self.own_moves:
            first = i - (self.words[i - 1] == "::") - (self.words[i - 2:i] == ["std", "::"])
            self.replace(first, SIMULATOR + self.words[i].removeprefix("__builtin_"), i)

    def is_declared(self, first, end):
        """Whether the tokens up to `end` declare a variable, and are no expression."""
        if self.words[first] in ("*", "(") or self.words[first].endswith("_cast"):
            return False
        last = end - 1
        while self.words[last] == "]":
            last = self.opening(last) - 1
        if self.words[last] == ")":
            bracket = self.opening(last)
            if self.words[bracket - 1] == ")":  # float (*f[2])(float), but not (*f)(x)
                return self.opening(bracket - 1) != first
            return bracket != first and self.words[bracket + 1] in ("*", "&")
        return not (last == first or self.words[last - 1] in (".", "->", "::"))

    def ends_a_type(self, i):
        """Whether the brace at i ends a structure: what follows is declared."""
        begin = self.statement(self.opening(i))
        return bool({"struct", "class", "union", "enum"} & set(self.words[begin:self.opening(i)]))

    def behind_head(self, first, end):
        """Behind what stands in front of a statement: if (x), case 1:, a label, [[likely]]."""
        if self.words[first] in ("if", "for", "while", "else", "do"):
            first += 1 + (self.words[first + 1] == "constexpr")
            return self.closing(first) + 1 if self.words[first] == "(" else first
        if self.words[first:first + 2] == ["[", "["]:
            return self.closing(first) + 1
        if self.words[first] == "case":
            return next((j + 1 for j in range(first, end) if self.words[j] == ":"), first)
        return first + 2 * (self.kinds[first] == "word" and self.words[first + 1] == ":")

    def begin_of(self, i):
        """Where the statement that i is in begins, behind its head."""
        first = self.statement(i)
        while first < i and (after := self.behind_head(first, i)) != first:
            first = after
        return first

    def assign_list(self, i):
        """`to = {...};`, or `to = float4{...};`, in a kernel is one store; g++ would make several."""
        end = self.closing(i + 1 if self.words[i + 1] == "{" else i + 2)
        if self.words[end + 1] != ";" or not any(
                first < i < last for first, last in self.bodies + self.device_bodies):
            return
        first = self.statement(i)
        if self.words[first - 1] == "}" and self.ends_a_type(first - 1):
            return
        first = self.begin_of(i)
        for begin, behind in self.split(first, i):  # of several assignments the last has the list
            if begin > first and self.is_declared(first, begin - 1):
                return  # int x = 1, y = {2};
            if behind == i:
                first = begin
        if "?" in self.words[first:i]:
            return
        chained = next((j + 1 for j in range(i - 1, first, -1) if self.assigns(j)), None)  # x = y = {...}
        if chained:
            self.insert(chained, SIMULATOR + "assigned(")
            self.replace(i, ",")
            return self.replace(end, "})")
        if first < i and not self.is_declared(first, i):
            self.insert(first, SIMULATOR + "assign(")
            self.replace(i, ",")
            self.replace(end, "})")

    # --- all of it --------------------------------------------------------------------------------

    def translate(self):
        self.check_brackets()
        handle = {"__global__": self.declare_kernel, "__shared__": self.declare_shared,
                  "__device__": self.declare_device, "__constant__": self.declare_device,
                  "__managed__": self.declare_device, "__host__": lambda i: self.replace(i, ""),
                  "static": self.place_static, "asm": self.assembly, "__asm__": self.assembly,
                  "__asm": self.assembly}
        if self.kernel:  # in a build that counts
            handle |= {prefix + word: self.move for prefix in ("", "__builtin_")
                       for word in ("memcpy", "memmove", "memset")}
        refused = re.compile("|".join(f"({words})" for words, _ in REFUSED))
        for position, library in self.libraries:
            raise Refused(position, f"{library}: this part of CUDA is not simulated")
        launches, copies = [], []
        for i, (kind, word) in enumerate(zip(self.kinds, self.words)):
            if kind == "word":
                if word in handle:
                    handle[word](i)
                elif word == "__noinline__" and self.words[i - 1] != "(":
                    self.replace(i, "")  # no hook sees structures that a call is given, or gives
                elif word.startswith(("cudaMemcpy", "cudaMemset")) and "Symbol" not in word:
                    copies += [i + 1] * (self.words[i + 1] == "(")
                elif word in INDICES:
                    self.check_index(i)
                elif word.startswith("atomic") and ATOMIC.fullmatch(word):
                    self.ignore_result(i)
                elif found := refused.fullmatch(word):
                    self.refuse(i, f"{word}: {REFUSED[found.lastindex - 1][1]}")
            elif kind == "pragma" and (found := re.match(r"\s*#\s*pragma\s+unroll\s*\(?\s*(\d*)", word)):
                loop = self.words[i + 1] in ("for", "while", "do")
                self.replace(i, f"#pragma GCC unroll {found[1] or 16}" if loop else "")
            elif word == "=" and self.kernel and (self.words[i + 1] == "{" or self.words[i + 2] == "{" and
                                                  VECTOR.fullmatch(self.words[i + 1])):
                self.assign_list(i)
            elif (word == "<" and self.words[i + 1:i + 3] == ["<", "<"] and self.adjacent(i, "<<") and
                  self.words[i - 1] not in ("operator", "<")):  # "<< <" is one as well
                launches.append(i)
        self.find_overloads()
        self.use_kernels()
        self.remember_casts()
        self.check_functions(launches)
        for i in launches:  # when all kernels are known
            self.launch(i)
        for i in copies:
            self.mark_symbols(i)
        self.edits += [(at, at, text) for kernel, at, text in self.finders if kernel in self.deduced]
        parts, at = [], 0
        for start, end, text in sorted(self.edits, key=lambda edit: edit[:2]):
            parts += [self.text[at:start], text]
            at = end
        return "".join(parts + [self.text[at:]])


LONGEST_SAID = 4000  # of a line: a type's name may have megabytes


def run(command, explained=lambda said: said):
    """Ends with the command's status if that is an error; explained() makes of what it says what is shown."""
    done = subprocess.run(command, check=False, stderr=subprocess.PIPE, text=True, errors="surrogateescape")
    short = (line if len(line) <= LONGEST_SAID else line[:LONGEST_SAID] + "..."
             for line in done.stderr.split("\n"))
    # as it was asked to
    said = re.sub(r"^.*: note: disable pass .*\n", "", "\n".join(short), flags=re.MULTILINE)
    sys.stderr.write(explained(said))
    if done.returncode:
        sys.exit(done.returncode)


# What g++ says of wrong launches and variables: (pattern, the same in CUDA's words).
CUDA_ERRORS = [(re.compile(rf"^(.+?:\d+):\d+:{pattern}", re.MULTILINE), r"\1: error: " + words)
                 for pattern, words in (
    (r" error: no match for call to .*?KernelPointer<(.*)>::on\(.*\) \((.*)\)\W*$",
     r"the launch's arguments (\3) don't fit the kernel's parameters (\2)"),
    (r" error: no matching function for call to .*KernelPointer<.*>::on\(.*$",
     "a launch is <<<grid, block>>> or <<<grid, block, bytes, stream>>>"),
    (r" error: .constinit. variable .(\S+). does not have a constant initializer$"
     r"(?:\n(?:.*\n)*?\1:\d+: error: .*$)?",
     r"\2: a variable of the device can't begin with what must be computed first: no function and no "
     "constructor that isn't constexpr"),
    (r" error: no matching function for call to .(\w+)__kernel\((.*)\)\W*$",
     r"the launch's arguments (\3) don't fit the kernel \2"),
    (r" error: invalid conversion from .cudaStream_t.*to .std::size_t.*$",
     "a launch is <<<grid, block>>> or <<<grid, block, bytes, stream>>>"),
    (r" error: cannot convert .(.*). to .(.*).$(?=(?:\n.*)*?initializing argument .*__kernel\()",
     r"the launch's arguments don't fit the kernel: \2 isn't converted to \3"),
    (r" error: cannot convert .* to .*LaunchKind.*$",
     "a launch is <<<grid, block>>> or <<<grid, block, bytes, stream>>>"),
    (r" error: section attribute cannot be specified for local variables$",
     "a __constant__ or __device__ variable can't be local"),
    (r"\s+required from here\n.*?common/simulator/\S+: error: static assertion failed: (.*)$", r"\2"))]


# A name of CUDA's that g++ doesn't know.
UNDECLARED = re.compile(
    r"^(\S+:\d+):\d+: error: .(?:struct cudaDeviceProp\W+has no member named .(?P<member>\w+)|"
    r"(?P<name>(?:cu[a-z]*[A-Z_]|cuda::|cg::|__)\w+|\w+f|texture|surface)\W+"
    r"(?:(?:was not|has not been) declared|does not name a type)|"
    r"(?P<part>\w+)\W+is not a member of .(?:cg|cooperative_groups|cuda))", re.MULTILINE)


def explained(said):
    """Where they alone are wrong, the compiler's words are left out."""
    matches = [(match, words) for pattern, words in CUDA_ERRORS for match in pattern.finditer(said)]
    error = re.compile(r"^(?!\S*common/simulator/)\S+: error: ", re.MULTILINE)  # ours follow
    others = len(error.findall(said)) > sum(len(error.findall(match[0])) for match, _ in matches)
    lines = dict.fromkeys(match.expand(words) for match, words in matches)
    notes = dict.fromkeys(f"{found[1]}: note: {found['name'] or found['member'] or found['part']} isn't "
                          "simulated, or is misspelt"
                          for found in UNDECLARED.finditer(said))
    return "\n".join([*lines, said if others or not lines else ""]) + "".join(f"{note}\n" for note in notes)


def explained_library(said):
    """Of a library that isn't simulated, the same whether it is installed or not."""
    missing = MISSING.search(said)
    if not missing or not LIBRARIES.search(missing[2]):
        return said
    return f"{missing[1]}: error: {missing[2]}: this part of CUDA is not simulated\n"


FUNCTION = re.compile(r"^\s*\.type\s+([\w.$]+),\s*[@%]function$", re.MULTILINE)
SYMBOL = re.compile(r"[A-Za-z_$][\w.$]*")
HOOK = re.compile(r"^\s*(?:call|bl)\s+(?:__tsan_(?:volatile_|unaligned_)?(?:read|write)(?:\d+|_range)"
                  r"|__sanitizer_cov_trace_pc)(?:@PLT)?$")


def without_hooks_of_the_host(assembly, names):
    """The assembly, in which only what a kernel may come to calls the hooks: functions of the device by name,
    what they refer to, and what data refers to, such as tables of virtual functions."""
    functions = set(FUNCTION.findall(assembly))
    # As it is mangled, or as C has it. A digit may stand before the length: _GLOBAL__N_1 does. (So other
    # functions may keep their hooks, which count nothing outside of kernels.)
    named = re.compile("|".join(rf"{len(name)}{name}|^{name}\b" for name in names) or "$^")
    lines, of_lines, refers = assembly.split("\n"), [], {}
    function, section = None, ""
    reached = {name for name in functions if named.search(name)}
    for line in lines:
        word, _, rest = line.strip().partition("\t")
        if word.endswith(":") and word[:-1] in functions:
            function = word[:-1]
        elif word == ".size" and function:
            function = None if rest.split(",")[0] == function else function
        elif word in (".section", ".text", ".data", ".bss"):
            section = rest or word
        of_lines.append(function)
        if function and not word.startswith((".loc", ".cfi")):
            refers.setdefault(function, set()).update(functions.intersection(SYMBOL.findall(rest)))
        elif word in (".quad", ".xword", ".8byte") and not section.startswith(
                (".debug", ".init_array", ".fini_array", ".eh_frame", ".ctors", ".dtors")):
            reached.update(functions.intersection(SYMBOL.findall(rest)))
    left = list(reached)
    while left:
        new = refers.get(left.pop(), set()) - reached
        reached |= new
        left += new
    return "\n".join(line for line, of in zip(lines, of_lines)
                     if of is None or of in reached or not HOOK.match(line))


def with_gaps(assembly):
    """The assembly, in which bytes that are nobody's lie around every variable of the device, and in shared
    memory: beyond one does not begin the next."""
    lines, header, used, align = [], "", set(), []
    for line in assembly.split("\n"):
        word, rest = (line.split(None, 1) + ["", ""])[:2]
        if word in (".section", ".text", ".data", ".bss"):
            header = line if rest.startswith(("convladder_", ".tbss")) else ""
        elif header and word == ".align":
            align = [line]
        elif header and word == ".type":
            lines += ["\t.zero\t256", *align]
            align = []
            used.add(header)
        lines.append(line)
    return "\n".join([*lines, *(f"{header}\n\t.zero\t256" for header in sorted(used)), ""])


def translate(preprocess, between):
    run(preprocess, explained_library)
    with open(between, encoding="utf-8", errors="surrogateescape") as file:
        unit = Unit(file.read(), "-DCONVLADDER_COUNTING" in preprocess)
    try:
        return unit, unit.translate()
    except Refused as refused:
        position, what = refused.args
        print(f"{unit.line(position)}: error: {what}", file=sys.stderr)
        sys.exit(1)


def compile_kernels_alone(command, output, names):
    assembly = output + ".s"
    run([*("-S" if word == "-c" else assembly if word == output else word for word in command),
         "-fno-section-anchors"], explained)  # which would have variables where no gap is yet
    with open(assembly, encoding="utf-8", errors="surrogateescape") as file:
        text = file.read()
    with open(assembly, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(with_gaps(without_hooks_of_the_host(text, names)))
    compiler = next(word for word in command if os.path.basename(word) != "ccache")
    run([compiler, "-c", assembly, "-o", output])
    os.remove(assembly)


def main(command):
    kernels_alone = command[0] == "--kernels-alone"
    command = command[kernels_alone:]
    sources = [i for i, word in enumerate(command)
               if word.endswith(".cu") and command[i - 1] not in ("-o", "-MT")]
    if len(sources) != 1 or "-c" not in command:
        os.execvp(command[0], command)
    source, output = sources[0], command[command.index("-o") + 1]
    between = output + ".ii"
    preprocess, compile_, i = [], [], 0
    for i, word in enumerate(command):
        before = command[i - 1] if i else ""
        if word == "ccache" or os.path.basename(word) == "ccache":
            compile_.append(word)
        elif word in ("-MF", "-MT", "-MD", "-MMD", "-MQ") or before in ("-MF", "-MT", "-MQ"):
            preprocess.append(word)
        elif before == "-x":
            preprocess.append(word)
            compile_.append("c++-cpp-output")
        elif word == "-c":
            preprocess.append("-E")
            compile_.append(word)
        elif before == "-o":
            preprocess.append(between)
            compile_.append(word)
        else:
            preprocess.append(word)
            compile_.append(between if i == source else word)
    preprocess.append("-DCONVLADDER_TRANSLATED")
    if any(os.path.exists(word + ".gch") for word in command):
        preprocess.append("-fpch-preprocess")
    unit, translated = translate(preprocess, between)
    if unit.uses_ptx:
        _, translated = translate([*preprocess, "-include", FOLDER + "ptx.h"], between)
    with open(between, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(translated)
    if unit.kernel and kernels_alone:
        compile_kernels_alone(compile_, output,
                              unit.device_functions | {unit.words[name] for name in unit.kernel_names})
    else:
        run(compile_, explained)
    with contextlib.suppress(FileNotFoundError):  # by another build, of the same file at the same time
        os.remove(between)


if __name__ == "__main__":
    main(sys.argv[1:])
