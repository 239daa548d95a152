"""What a kernel that is handed in may not hold: whatever the counts would not see, or could forge them.
And what a stage may not ask of others:

  python3 -m common.variants.handin OBJECT    of a stage, as it was compiled

The compiler says what it has made of the kernel: its last dump names every call, with its line, and every
attribute of a function. The object names what it asks of others. What neither can show is in
docs/reliability.md.
"""
import ctypes
import functools
import glob
import itertools
import os
import re
import subprocess
import sys

from common.show import files
from common.show.files import ROOT
from common.variants.build import HOPPER_HEADER

SHARED_BYTES = 48 << 10  # of a block: what nvcc takes for static __shared__ variables
# A thread's own memory: it has 255 registers at most, and more would go to global memory. Unrolled loops and
# the hooks add theirs in the build that counts.
OWN_BYTES = 4 * 255 * 4

BEHIND = ("add_bias_kernel", "add_parts_kernel")  # kernels of common/core, which run behind a stage's own

# A function with this attribute is a kernel: all that it calls and has a body has become part of it.
KERNEL = "flatten"
ATTRIBUTES = {KERNEL, "always_inline"}
HOOKS = (r"(__builtin_)?_*(tsan_(init|vptr_\w+|(unaligned_|volatile_)*(read|write)(_range|\d+))"
         r"|sanitizer_cov_trace_pc)")
MATHS = (r"(__builtin_)?(f?abs|sqrt|cbrt|r?sqrt|exp2?|expm1|log(2|10|1p|b)?|pow|fma|fmin|fmax|fmod|fdim|hypot"
         r"|cexpi|a?(sin|cos|tan)h?|atan2|erfc?|[lt]gamma|floor|ceil|l?l?round|trunc|l?l?rint|nearbyint|remainder"
         r"|nextafter|signbit|copysign|ldexp|scalbln?|isnan|clz|ctz|ffs|popcount)(f|l|ll)?|__popcount[sdt]i2")
DEVICE = (r"__pipeline_(memcpy_async|commit|wait_prior|arrive_on)"
          r"|(convladder::simulator::)?(sync_(threads|warp)|multiply_tf32|meet|lane_id"
          r"|note_undefined|fail_(kernel|assertion)|rounded(_product|_fma)?|uncounted_product|narrow_(float|double)|inverse_erf"
          r"|fence|spin|clock_ns)|clock")
OTHERS = (r"(__builtin_)?(printf|puts|putchar|unreachable|trap|expect|eh_pointer|unwind_resume"
          r"|stack_(save|restore))|__printf_chk|__assert_fail|abort")
IN_KERNELS = rf"{HOOKS}|{MATHS}|{DEVICE}|{OTHERS}|\.(?!.*(LOAD|STORE|ASM))[A-Z_]+"
# What kernels may ask for besides, where the start has this word: elsewhere goals would not count it.
IF_SPOKEN_OF = {HOPPER_HEADER: r"convladder::simulator::(shared_(offset|pointer)|ptx::\w+)",
                "atomicAdd()": r"convladder::simulator::((begin|end|host)_atomic|ignore_result)"}

OF_C = ctypes.CDLL(None)  # this process has C's library, too
# What host code may ask of others.
ELSEWHERE = re.compile(
    rf"({HOOKS}|{MATHS}|{DEVICE}|{OTHERS}|{'|'.join(IF_SPOKEN_OF.values())}|mem(cpy|move|set|cmp)|strlen"
    r"|sincosf?"  # which cexpi becomes
    r"|__gxx_personality_v0|_Unwind_Resume|_GLOBAL_OFFSET_TABLE_|__dso_handle|__stack_chk_fail|__tls_get_addr"
    r"|__cxa_(throw|allocate_exception|free_exception|begin_catch|end_catch|rethrow|throw_\w+)"
    r"|(vtable|typeinfo) for (__cxxabiv1|std)::.*|operator (new|delete).*|std::__throw_\w+|std::terminate"
    r"|std::(__cxx11::basic_string<.*|(runtime|logic|range|overflow|domain)_error::.*"
    r"|(length_error|invalid_argument|out_of_range|exception|bad_alloc)::.*)"
    r"|std::ios_base::Init::~?Init|__cxa_atexit"  # of <iostream>, which nobody need use
    r"|cuda((GetLast|PeekAtLast)Error|GetErrorString|GetDevice|DeviceGetAttribute|FuncSetAttribute|MemsetAsync)"
    r"|convladder_dynamic_shared"
    r"|convladder::(StageRegistration::StageRegistration|add_bias|add_parts|window_map|simulator::run_grid)"
    r")(\(.*)?")
WHY = {"convladder::simulator::shared_": "an address in shared memory as a number, for assembly or a"
                                         " cuda::barrier; copy_async() of copy_async.h is counted",
       "alloca_with_align": "an array whose size is no constant",
       "convladder::simulator::begin_atomic": "an atomic operation, which is not counted",
       "__tsan_atomic8_load": "a static variable that is initialised when the function runs",
       "__cxa_guard": "a static variable that is initialised when the function runs",
       "__tsan_atomic": "an atomic operation, which is not counted",
       "convladder::simulator::ignore_result": "an atomic operation, which is not counted",
       "operator new": "operator new is called: memory that a kernel allocates isn't counted",
       "fprintf": "host code prints by printf()",
       "std::": "host code may have vectors, strings and functions of <algorithm>, and prints by printf(): ",
       "cuda": "a call of the runtime: a stage may launch kernels here, and no more",
       "typeinfo for": "what is thrown is no std::exception"}

# The function that calls a kernel for each thread, as launch() of common/core/launch.h makes it, and <<<>>>;
# and the function that these are given.
LAUNCHER = re.compile(r"convladder::simulator::launch<(convladder::launch<[^()]*>\(void \(\*\)"
                      r"|KernelPointer<[^()]*>::on)\(")
# A place in the dump; its path may have brackets.
WHERE = r"(?:\[(?P<where>(?=[/<])(?:(?!:\d+:\d+[^]:]*\] )[^\n])*:\d+:\d+[^]:]*)\] )?"
LAUNCHED = re.compile(r"^ +.*(?:\.(?:__kernel|pointer|__pointer) = |> \()" + WHERE + r"(?P<kernel>[^,;)]+)")
LAUNCHES = re.compile(r"\.(?:__kernel|pointer|__pointer) = |\b(?:(?<!simulator::)launch|simulator::kernel)<")
# Moves of bytes, which become loads and stores once their size is known: after the hooks were set.
MOVES = re.compile(r"(__builtin_)?_*(w?mem|w?c?s(tr|tp)|b(copy|zero|cmp))\w*")
# A dump's line, and all of it, at most: what the patterns here look through in a second.
LONGEST_LINE, LONGEST_DUMP = 10_000, 16 << 20
MOST_EXTERNS = 50  # each is compared with what follows
MOST_PLACES = 1 << 28  # characters, each as often as something like a place stands in its line
HANDS_ON = ("convladder::launch<", "convladder::simulator::")
# What a stage does that calls it.
OF_NO_STAGE = {
    "prints": r"v?[fd]?printf|puts|putchar|f?putc|fputs|fwrite|write|__v?[fd]?printf_chk|perror"
              r"|std::(cout|cerr|clog)|psignal|psiginfo|freopen(64)?|v?syslog|v?warnx?|"
              r"std::(basic_)?(ofstream|filebuf).*",  # others write to a text
    "ends the process": r"_?exit|_Exit|abort|quick_exit|std::terminate|raise|kill|tgkill|sigqueue|execv?\w*|"
                        r"pthread_(kill|exit|cancel)|u?alarm|setitimer|timer_create|v?errx?|__longjmp_chk|longjmp",
    "changes the environment": r"setenv|putenv|unsetenv|clearenv",
    "hands over to another stage": r"convladder::(find_stage|stages|run|in_tf32|simulator::plan_launches)",
    "waits": r"u?sleep|(clock_)?nanosleep|p?poll|p?select|pause|sig(suspend|wait\w*)|pthread_join|"
             r"pthread_cond_\w*wait|std::this_thread::.*|std::thread::join|std::condition_variable::wait.*",
    "begins threads or processes": r"fork|vfork|clone|system|popen|pthread_create|std::thread::.*|syscall",
    "reads what is no argument": r"f?getc(har)?|getline|fgets|fread|read|v?f?scanf|__isoc\w+scanf|std::cin|"
                                 r"getenv|secure_getenv|f?open(64)?|fopen64|mmap(64)?|dlopen|dlsym|time|rand|"
                                 r"clock\w*|gettimeofday|std::chrono::.*::now|std::random_device.*"}

# What hides nothing.
PLAIN = (r'(include\s*(<(?!common/)\w+(/\w+)*(\.h)?>|[<"]common/core/\w+\.h[">]|'
         r'"(cuda\w*|mma|cooperative_groups)\.h")'
         r'|pragma\s+(once|unroll\b[\w\s()+*/%<>-]*)'
         r"|if\s+[01])\s*(//|$)|define|undef|else|endif")
# What a directive can't stand in, as the compiler reads it; a word or number may hold what begins a text. Raw
# texts, which may hold anything, are refused.
TOKEN = re.compile(r"""
    (?P<left_out>//[^\n]*|/\*.*?(?:\*/|\Z)) | (?P<raw>(?:u8|[uUL])?R")
  | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' | [A-Za-z_]\w* | \.?\d(?:[eEpP][+-]|'?\w|\.)*""", re.S | re.X)
# Names of the simulator, and what is otherwise when it is worked out beforehand.
STRANGE = "simulator|tsan|constant_evaluated|__builtin_(LINE|FUNCTION|FILE|constant_p)|^puts$|^putchar$" \
          "|^thread_local$|^__thread$|^__dso_handle$|^_GLOBAL_OFFSET_TABLE_$|^convladder_dynamic_shared$|^cudaLaunchKernel$"
# A variable that is defined elsewhere: loads from one that is constant have no hooks.
EXTERN = re.compile(r'\bextern\b(?!\s*(?:"C(?:\+\+)?"\s*)?(?:\{|template\b))(?=[^;{(=]*\bconst)'
                    r"(?:(?!\b__shared__\b)[^;{(=\[])*(?:[;=\[]|\(\s*(?:[*&]+\s*)?\w+\s*\)\s*\[)")
# By these attributes, and by `asm` behind a declaration, another function is called than the source names.
RENAMES = "_*(weakref|alias|ifunc|symver|target_clones|copy|section)_*"
BUILT_IN = {"bool", "char", "short", "int", "long", "signed", "unsigned", "float", "double", "size_t"}
NO_FUNCTION = BUILT_IN | {  # though a bracket follows
    "for", "if", "while", "switch", "return", "static_assert", "sizeof", "alignof", "alignas", "decltype",
    "noexcept", "requires", "__launch_bounds__", "__align__"}
NO_PART_OF_A_TYPE = {"inline", "__inline__", "__forceinline__", "__restrict__", "__restrict"}
CALL = re.compile(r"(?!if |switch |return )(OBJ_TYPE_REF(?=\()|[^\s(*&][^;]*?(?= \((?!\*[<)]).*\);))")


def refused(source, folder, start):
    """(line, what is wrong), or None, of kernel.o, and of what the compiler has said of it in kernel.hooked,
    kernel.dump and kernel.su; `start` is the exercise's own text."""
    compiled, hooked, dump, usage = (os.path.join(folder, "kernel." + suffix)
                                     for suffix in ("o", "hooked", "dump", "su"))
    text, hooked, dump = files.read(source), files.read(hooked, "replace"), files.read(dump, "replace")
    if max(len(hooked), len(dump)) > LONGEST_DUMP or any(
            len(line) > LONGEST_LINE for each in (hooked, dump) for line in each.split("\n")):
        return 0, "so much code, or a type with so long a name, can't be looked through"
    if sum(len(line) * len(re.findall(r"\[[/<]", line)) for line in dump.split("\n")) > MOST_PLACES:
        return 0, "a text with so many brackets can't be looked through"
    calls = "|".join([IN_KERNELS, *(names for word, names in IF_SPOKEN_OF.items() if word in start)])
    return (not_its_own(text, compiled) or moves(text, hooked, source) or
            in_functions(text, dump, source, calls, [*tables_in(compiled)]) or
            unknown_symbol(text, dump, compiled, source) or
            device_variable_of_the_host(text, dump, compiled) or too_much_shared(text, compiled) or
            too_much_of_its_own(files.read_existing(usage, "replace"), dump, source))


def printed_by(*command):
    """What binutils print, of names that may be of any encoding."""
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=True).stdout


def plain(symbol):
    """a::b<8>(int) -> b"""
    bare = symbol
    while bare != (bare := re.sub(r"<[^<>]*>", "", bare)):
        continue
    return re.sub(r"\([^()]*\)$", "", bare).split("::")[-1]


def line_with(text, symbol):
    """Where the last name in `symbol` stands first in the source; 0 if nowhere."""
    name = plain(symbol)
    place = next((place for place, token in tokens(text) if token == name), None)
    return 0 if place is None else text.count("\n", 0, place) + 1


def why(symbol, otherwise):
    words = next((words for beginning, words in WHY.items() if symbol.startswith(beginning)), otherwise)
    return words + otherwise if words.endswith(": ") else words


def spliced(text):
    """Lines that go on in the next become one, as for the compiler; empty ones take their place."""
    lines, parts, whole = text.split("\n"), [], []
    for number, line in enumerate(lines, 1):
        bare = line.rstrip(" \t\f\v")
        if bare.endswith("\\") and number < len(lines):
            parts.append(bare[:-1])
        else:
            whole += ["".join([*parts, line]), *[""] * len(parts)]
            parts = []
    return "\n".join(whole)


def bare(text):
    """The text without comments, and with empty strings."""
    return TOKEN.sub(
        lambda token: " " if token["left_out"] else '""' if token[0][0] == '"' else token[0], text)


def launched(text):
    """The names of the kernels that it launches."""
    words, found = [token for _, token in tokens(text)], set()
    for end in (i for i in range(1, len(words) - 2) if words[i:i + 3] == ["<", "<", "<"]):
        name, depth = end - 1, 0
        while name > 0 and (words[name] == ">" or depth):  # back over template arguments
            depth += (words[name] in (">", ")")) - (words[name] in ("<", "("))
            name -= 1
            if depth == 0 and words[name + 1] == "<":
                break
        found.add(words[name])
    return found


def tokens(text):
    """(its place, token) of each, without comments."""
    for token in re.finditer(rf"{TOKEN.pattern} | \S", text, TOKEN.flags):
        if not token["left_out"]:
            yield token.start(), token[0]


def declaration(statement):
    """(its name, what stands before, parameters), without what makes no other function of it."""
    words = [token for token in statement if token not in NO_PART_OF_A_TYPE]
    opening = parameters_of(words)
    parameters, depth = [[]], 0
    for token in words[opening + 1:-1]:
        depth += (token in ("(", "<", "[")) - (token in (")", ">", "]"))
        if depth == 0 and token == ",":
            parameters.append([])
        else:
            parameters[-1].append(token)
    for parameter in parameters:
        # behind the type; or behind & and * in brackets
        name = next((i for i, token in enumerate(parameter[1:], 1) if re.match(r"[A-Za-z_]", token) and (
            i + 1 == len(parameter) or parameter[i + 1] in ("[", ")"))), None)
        if name and parameter[name] not in BUILT_IN and parameter[name - 1] not in ("const", "::"):
            del parameter[name]
        if not {"*", "&", "("} & set(parameter):
            parameter[:] = [token for token in parameter if token != "const"]
    return words[opening - 1], sorted(words[:opening - 1]), parameters


def parameters_of(statement):
    """Where the brackets of a function's parameters open; 0 if it declares none."""
    before = itertools.takewhile(lambda pair: pair[0] != "=", itertools.pairwise(statement))
    return next((i for i, (name, token) in enumerate(before, 1) if token == "(" and
                 re.match(r"[A-Za-z_]", name) and name not in NO_FUNCTION), 0)


def depths(part):
    """(place, token, how many braces are open behind it), without braces whose names can be seen outside of
    them: those of namespaces, enumerations and extern "C"."""
    opened, depth, statement = [], 0, []
    for place, token in part:
        if token == "{":
            opened.append(not {"namespace", "enum"} & {*statement[:2]} and statement[-1:] != ['"C"'])
            depth += opened[-1]
        elif token == "}" and opened:
            depth -= opened.pop()
        if token in ("{", "}", ";"):
            statement = []
        else:
            statement.append(token)
        yield place, token, depth


def declared(part, names):
    """{declaration() as a text: (name, where it begins, where it ends)} of functions of these names."""
    found, statement, begin, before = {}, [], 0, 0
    for place, token, depth in depths(part):
        if before == 0:
            begin = begin if statement else place
            statement.append(token)
        if before == 0 and token == "{" or depth == 0 and token in (";", "}"):
            if (opening := parameters_of(statement)) and statement[opening - 1] in names:
                found[str(declaration(statement[:-1]))] = statement[opening - 1], begin, place
            statement = []
        before = depth
    return found


@functools.cache
def macros_of_headers():
    """{name: what it consists of} of the macros in the project's headers."""
    found = {}
    for folder in ("core", "simulator/include"):
        for path in glob.glob(os.path.join(glob.escape(ROOT), "common", folder, "*.h")):
            for name, body in re.findall(r"^#define (\w+)(.*)$", spliced(files.read(path)), re.M):
                parameters = re.match(r"\([^)]*\)", body)
                found.setdefault(name, set()).update({token for _, token in tokens(body)} - {
                    *re.findall(r"\w+", parameters[0] if parameters else "")})
    return found


def with_macros(names):
    """The names, and all that is expanded where they stand."""
    found, new = set(), set(names)
    while new:
        found |= new
        new = set().union(*(macros_of_headers().get(name, set()) for name in new)) - found
    return found


DECLARES = {"struct", "class", "enum", "union", "using", "typedef", "namespace", "extern", "const",
            "constexpr", "static", "auto", "template", "__global__", "__device__"}
WHOLE = "your part must have whole blocks, and no macros that change what is outside of it"
TAKEN = "{} is a name outside of your part as well: choose another"


def outside(text, before, gap, after):
    """As refused(). The text must begin with `before`, and end with `after`, but for lines and comments. What
    is between, as `gap` is in the start, may not declare what has a meaning there."""
    text = spliced(text)
    given = gap
    before, gap, after, own = (list(tokens(part)) for part in (before, gap, after, text))
    rest = [token for _, token in before + after]
    taken = {token for token, behind in itertools.pairwise(rest) if token[0].isupper() or behind in "(<"
             } - NO_FUNCTION  # types, constants and functions
    for kept, shown in ((before, own), (after[::-1], own[::-1])):
        pairs = itertools.zip_longest(kept, shown[:len(kept)], fillvalue=(len(text), ""))
        place = next((place for (_, token), (place, other) in pairs if token != other), None)
        if place is not None:
            return text.count("\n", 0, place) + 1, "outside of your part all must be as it was"
    words = [token for _, token in before]
    in_kernel = words.count("{") - words.count("}") > words.count("namespace")
    own = own[len(before):len(own) - len(after)]
    own, macros = without_directives(own, text)
    expanded = with_macros(rest) if macros else set()
    for place, name, body in macros:
        if name in expanded or DECLARES & {*body} and taken & {*body}:
            return text.count("\n", 0, place) + 1, WHOLE
    if not in_kernel:
        for place, token, depth in depths(own):
            if depth == 0 and token in ("extern", "namespace"):
                return text.count("\n", 0, place) + 1, f"{token}: your part is inside of a namespace already"
        then = {name for _, name in declared_names(gap)}
        for place, name in declared_names(own):
            if name in taken - then:
                return text.count("\n", 0, place) + 1, TAKEN.format(name)
    nested = 0
    for place, token in own:
        nested += (token == "{") - (token == "}")
        if nested < 0:
            return text.count("\n", 0, place) + 1, WHOLE
    now, then = declared(own, rest), declared(gap, rest)
    if not in_kernel and now.keys() != then.keys():
        odd, lacking = ([each for key, each in one.items() if key not in other]
                        for one, other in ((now, then), (then, now)))
        name, place, _ = (odd or lacking)[0]
        line = text.count("\n", 0, place if odd else own[0][0] if own else 0) + 1
        spans = [given[begin:end] for each, begin, end in lacking + [*then.values()] if each == name]
        if not spans:
            return line, TAKEN.format(name)
        return line, (f"{name} must be declared as it was, wherever your part does so (in #if 0 as well): "
                      + " ".join(spans[0].split()))
    return None


def declared_names(part):
    """(place, name) of what a part of a file may declare outside of braces."""
    before_last, last, depth_before, brackets, is_value = "", (0, ""), 0, 0, False
    behind = [token for _, token in part[1:]] + [";", ""]
    for (place, token, depth), following in zip(depths(part + [(0, ";")]), behind):
        is_value = (is_value or token == "=") and not (brackets == 0 and token in (";", ",", "{"))
        if depth_before == 0:
            in_brackets = (before_last, token) == ("(", ")") and following in ("(", ";", "=", "{")
            if last[1] in ("struct", "class", "enum", "union"):
                yield place, token
            elif re.match(r"[A-Za-z_]\w*$", last[1]) and (in_brackets or brackets == 0 and token in (
                    "(", "{", "=", "[", ";", ":", ",", "}") and (not is_value or token == "=")):
                yield last
        brackets += (token in ("(", "[")) - (token in (")", "]"))
        before_last, last, depth_before = last[1], (place, token), depth


def without_directives(part, text):
    """(the tokens that are no preprocessor's, [(place, name, body)] of its macros)."""
    kept, macros, number = [], [], 0
    while number < len(part):
        place, token = part[number]
        number += 1
        begins = not text[text.rfind("\n", 0, place) + 1:place].strip()
        if begins and (token == "#" or text.startswith("%:", place)):
            end, line = text.find("\n", place) % (len(text) + 1), []  # -1: the text's
            while number < len(part) and part[number][0] < end:
                line.append(part[number][1])
                number += 1
            line = line[token == "%":]  # %: are two
            if line[:1] in (["define"], ["undef"]):
                macros.append((place, line[1] if line[1:] else "", line[2:]))
        else:
            kept.append((place, token))
    return kept, macros


def directive(text, start, source):
    """As refused(). Nothing may be compiled here that is not compiled there, and nothing of somebody else's:
    conditions and pragmas are those of the text `start`, headers those of C++ and of common/core. What the
    simulator does by itself has no names here."""
    if "\0" in text:
        return text.count("\n", 0, text.index("\0")) + 1, "a NUL byte, which could hide something"
    known = set(map(str.strip, start.splitlines()))
    text, before = spliced(text), ""
    has_attributes = re.search(r"\b__attribute|\b_*gnu_*\b", text)
    for place, token in tokens(text):
        before, behind = token, before
        if token in ("$", "\\") or token[0] not in "'\"" and not token.isascii():
            return (text.count("\n", 0, place) + 1,
                    f"{token}: names here are of ASCII letters, digits and underscores")
        if token.startswith("CONVLADDER_") and token not in start:
            return text.count("\n", 0, place) + 1, f"{token}: a name of the project's own"
        if token in ("_Pragma", "__pragma") and not re.match(r'\s*\(\s*"\s*unroll\b[\w\s()]*"\s*\)',
                                                             text[place + len(token):]):
            return text.count("\n", 0, place) + 1, f"{token}: no pragmas but unroll"
        if re.fullmatch('(u8|[uUL])?R"', token):
            return text.count("\n", 0, place) + 1, "a raw string, which could hide what is compiled"
        if token in ("'", '"'):
            return text.count("\n", 0, place) + 1, "a quote has no end, and could hide something"
        strange = token[0] != '"' and re.search(STRANGE, token)
        if strange and token not in start or text.startswith(("##", "%:%:"), place):
            return text.count("\n", 0, place) + 1, f"{token}: no name of CUDA, or a way to hide one"
        if re.fullmatch(RENAMES, token) and has_attributes or token.startswith("_Z") or \
                re.fullmatch("(__)?asm(__)?", token) and re.search(r"[\w)]\Z", behind) and not re.match(
                    r"\s*(__)?volatile(__)?\b", text[place + len(token):]):
            return text.count("\n", 0, place) + 1, f"{token}: could give something another's name"
    # A line's end in a comment ends no line: \v in its place.
    bare = TOKEN.sub(lambda token: token[0].count("\n") * "\v" if token["left_out"] else token[0], text)
    if bare.count("extern") > MOST_EXTERNS:
        return 0, f"a text with more than {MOST_EXTERNS} times extern can't be looked through"
    if (found := EXTERN.search(bare)) and found[0] not in start:
        return (len(re.findall("[\n\v]", bare[:found.start()])) + 1,
                f"{found[0]}: a variable that is defined elsewhere")
    number = 0
    for line in bare.split("\n"):
        number += 1 + line.count("\v")
        header = re.match(r'\s*(?:#|%:|\?\?=)\s*include\s*"((?:common/|cuda|mma|coop).*?)"', line)
        beside = os.path.dirname(source)
        if header and beside != ROOT and os.path.exists(os.path.join(beside, header[1])):
            return number, f"'{line.strip()}': there is such a file beside yours, which hides the project's"
        if re.match(rf"\s*(#|%:|\?\?=)\s*(?!{PLAIN})\w", line) and \
                line.strip() not in known:
            return number, (f"'{line.strip()}': no conditions, pragmas but unroll, and other files than the "
                            "start's")
    return None


def attributes_of(function):
    return {word for attributes in re.findall(r"^__attribute__\(\((.*)\)\)$", function, re.M)
            for word in re.findall(r"[a-z_]+", re.sub(r" \(.*?\)", "", attributes))}  # without arguments


def tables_in(compiled):
    """Its variables that are constants, and those of the host that may be volatile ones, which are not known
    as such: g++ gives no hook for either."""
    symbols = [printed_by("objdump", how, compiled)
               for how in ("-t", "-tC")]
    for sections in (r"rodata|data\.rel\.ro", r"data|bss"):
        variable = rf"^[0-9a-f]+ .{{7}} \.(?:{sections})\S*\t[0-9a-f]+ +(?:\.hidden )?(.*)$"
        names = [re.findall(variable, text, re.M) for text in symbols]
        yield [mangled if mangled.startswith("_ZGR") else plain(shown) for mangled, shown in zip(*names)
               if not re.match(r"(typeinfo|vtable|guard|\.|$)", shown)]


def name_of(function):
    """A function's name at the beginning of its dump; extern "C" it is the linker's as well."""
    return re.match(r"(.*?)(?: \([\w.$]+, funcdef_no=|\n|$)", function)[1]


def calls_in(function):
    """(its place, name) of each call in a function of the dump."""
    for line in function.split("\n"):
        if line.startswith("  ") and " (" in line or "OBJ_TYPE_REF" in line:
            bare = re.sub(WHERE, "", re.sub(r'"(?:[^"\\]|\\.)*"', '""', line)).strip()
            left, _, right = bare.partition(" = ")
            if call := CALL.match(right or left):
                yield re.match(r"\s+(?:\S+ = )?" + WHERE, line)["where"] or "", call[0]


def moves(text, dump, source):
    """As refused(), of the dump that shows what is called when hooks are set."""
    for function in re.split(r"^;; Function ", dump, flags=re.M)[1:]:
        for where, called in calls_in(function) if KERNEL in attributes_of(function) else ():
            if MOVES.fullmatch(called):
                path, _, place = where.partition(":")
                name = called.replace("__builtin_", "")
                line = int(place.split(":")[0]) if path == source else line_with(text, name) or \
                    line_with(text, name_of(function))  # the kernel's, where a library calls it
                return line, f"{name} is called, and what it does with memory would not be counted"
    return None


def in_functions(text, dump, source, calls, tables):
    """As refused(); `calls`: the names that kernels may call; `tables`: as tables_in()."""
    functions = re.split(r"^;; Function ", dump, flags=re.M)[1:]
    kernels = {plain(name_of(function)) for function in functions
               if KERNEL in attributes_of(function)}
    bodies = {name_of(function) for function in functions
              if f"[{source}:" in function and KERNEL not in attributes_of(function)}
    by_word = [{}, {}]  # of the tables: by the last word in their names
    for found, names in zip(by_word, tables):
        for place, each in enumerate(names):
            found.setdefault(re.findall(r"\w+|$", each)[-2:][0], []).append((place, each))
    for function in functions:
        name, words = name_of(function), attributes_of(function)
        launched = [] if name.startswith(HANDS_ON) else [
            (plain(found["kernel"]), found["where"] or "") for line in function.split("\n")
            if LAUNCHES.search(line) and (found := LAUNCHED.match(line))]
        for plain_one, where in launched:
            if plain_one in kernels:
                continue
            if re.search(r"_\d+(\(D\)?)?$|[*&[]|^D\.", plain_one):  # a variable
                path, _, place = where.partition(":")
                return int(place.split(":")[0]) if path == source else line_with(text, "<<<"), (
                    "a kernel is launched by a pointer: its name must stand before the <<<>>>, so that "
                    "everybody sees which one it is")
            return line_with(text, plain_one), f"{plain_one} is launched, and is no __global__ function"
        own = re.search(rf"\[{re.escape(source)}:(\d+):", function)
        launches = name.startswith("convladder::simulator::launch<")
        if name.endswith("::_FUN") and not (LAUNCHER.match(name) if launches else not own):
            return int(own[1]) if own else 0, ("a function by its address, or a grid that is not launch()'s: "
                                               "what it does with memory would not be counted")
        if not own and name.startswith("convladder::simulator::KernelPointer<"):
            words -= {"no_sanitize"}  # <<<>>>'s own lambda, which holds the arguments
        if words - ATTRIBUTES:
            return line_with(text, name), f"{name} has the attribute {min(words - ATTRIBUTES)}"
        if "__asm__" in function:
            return line_with(text, "asm"), "assembly, which nobody counts"
        bare = re.sub(WHERE, "", function) if KERNEL in words else ""
        volatile = "\n".join(line for line in bare.split("\n") if " ={v} " in line)
        if table := next((each for found, where in zip(by_word, (bare, volatile)) for _, each in sorted(
                itertools.chain(*(found.get(word, ()) for word in {*re.findall(r"\w+", where)})))
                          if re.search(rf"\b{re.escape(each)}\b", where)), None):
            table = re.sub(r"_ZGR.*?\d(\D\w*?)_\d*", r"\1", table)  # what a reference is bound to
            return line_with(text, table), (
                f"{table} is a table of constants, whose loads nobody counts: make it __device__, and not "
                "const, or write a function in its place")
        for line, shown in zip(function.split("\n"), bare.split("\n")):
            if read := re.match(r' +\S+ = (?:MEM[^"]*)?("(?:[^"\\]|\\.)*")(?:\[|.*\])', shown):
                path, _, place = (re.match(r"\s+" + WHERE, line)["where"] or "").partition(":")
                return (int(place.split(":")[0]) if path == source else line_with(text, name),
                        f"{read[1]} is a text, whose loads nobody counts")
        if re.search(r"printf \([^;\n]*, (?:\*|MEM|D\.|(?!\w*_\d)[a-z]\w*[,)])", re.sub(TOKEN, lambda token: (
                "" if token[0][0] == '"' else token[0]), bare)):
            return line_with(text, "printf"), "printf() gets an argument that is no number"
        for where, called in calls_in(function):
            path, _, place = where.partition(":")
            if called.endswith("run_grid") and not path.endswith("common/simulator/launch.h"):
                return line_with(text, called), f"{called} is called: kernels are launched by launch()"
            if KERNEL in words and (not re.fullmatch(calls, called) or called in bodies):
                by_asm = re.search(r"\b(?:atom|red)\.\w", text) if "_atomic" in called else None
                names = ("__cvta_generic_to_shared", "asm", "cuda")
                line = place.split(":")[0] if path == source else next(filter(None, (
                    line_with(text, called), by_asm and text.count("\n", 0, by_asm.start()) + 1,
                    *(line_with(text, name) for name in names))), 0)
                if re.search(r"_\d+(\(D\))?$", called):
                    called = "a function by its address"
                called = called.replace("OBJ_TYPE_REF", "a virtual function").replace("__builtin_", "")
                nowhere = "{anonymous}" in called and f";; Function {called} (" not in dump
                called = "a lambda" if "<lambda" in called else re.sub(r"\w+::\{anonymous\}::", "", called)
                return line, why(called, f"{called} is called, " + (
                    "which has no body here" if nowhere else
                    "and what it does with memory would not be counted"))
    return None


C_KERNEL = r'extern\s*"C"\s*__global__\s+void\s+(__launch_bounds__\([^()]*\)\s*)?'


def not_its_own(text, compiled):
    """A name that the judge or a library would take for its own: C's, one of namespace std, or of BEHIND."""
    done = printed_by("nm", "--defined-only", compiled)
    for kind, name in re.findall(r"^\w+ (\w) (.*)$", done, re.M):
        seen = kind in "TWDBRGSCi" and (
            kind != "W" and re.match("_ZN?K?St", name) or
            name[:2] != "_Z" and (kind in "TWi" or hasattr(OF_C, name) or name.startswith("convladder")))
        if seen and kind == "T" and re.search(C_KERNEL + name + r"\b", text):
            seen = hasattr(OF_C, name) or name.startswith(("convladder", "cu"))
        if seen or any(other in name for other in BEHIND):
            return line_with(text, name), f"{name} is defined, which is the name of something else"
    return None


def unknown_symbol(text, dump, compiled, source):
    """A symbol that the object asks others for, and may not."""
    done = printed_by("nm", "-uC", compiled)
    for symbol in (line.split(maxsplit=1)[1] for line in done.splitlines()):
        if ELSEWHERE.fullmatch(symbol):
            continue
        name = re.escape(re.sub(r"\([^()]*\)$", "", symbol).split("::")[-1])
        found = re.search(rf"\[{re.escape(source)}:(\d+):\d+\] (?:[\w:]+::)?(?:__builtin_)?{name} \(", dump)
        return (int(found[1]) if found else line_with(text, symbol),
                why(symbol, f"{symbol} is called, but nowhere defined, or not for kernels"))
    return None


def device_variable_of_the_host(text, dump, compiled):
    """Where host code reads or writes a variable of the device. On a GPU it has another one of that name."""
    def printed(*options):
        done = printed_by("objdump", *options, compiled)
        return done

    def bare(name):
        name = name.replace("(anonymous namespace)", "{anonymous}")
        while name != (name := re.sub(r"<[^<>]*>", "", name)):
            continue
        return re.sub(r"^(static )?void |[(\[].*", "", name)

    held = set(re.findall(r"^[0-9a-f]+ .{7} (convladder_\w+)\t", printed("-t"), re.M))
    if not held:
        return None
    held |= set(re.findall(r"^[0-9a-f]+ .{7} convladder_\w+\t[0-9a-f]+ +(?:\.hidden )?(.*)$",
                           printed("-tC"), re.M))
    section = ""
    for line in printed("-rC").split("\n"):  # an address of it that the host's data hold
        if begin := re.match(r"RELOCATION RECORDS FOR \[(.*)\]", line):
            section = begin[1]
        elif re.match(r"\.(data|bss|rodata|tdata)", section) and (
                place := re.match(r"[0-9a-f]+ R_\w+\s+(.*?)([-+]0x[0-9a-f]+)?$", line)) and place[1] in held:
            return 0, "a variable of the host holds the address of one of the device"
    functions = re.split(r"^;; Function ", dump, flags=re.M)[1:]
    of_kernels = {bare(name_of(each)) for each in functions if KERNEL in attributes_of(each)} - {
        bare(name_of(each)) for each in functions if KERNEL not in attributes_of(each)}
    name = ""
    for line in printed("-drC", "--no-show-raw-insn").split("\n"):
        if begin := re.fullmatch(r"[0-9a-f]+ <(.*)>:", line):
            name = bare(begin[1])
        elif (place := re.search(r"\sR_\w+\s+(.*?)([-+]0x[0-9a-f]+)?$", line)) and place[1] in held and \
                name not in of_kernels:
            return (line_with(text, name),
                    f"{plain(name)} is the host's, and reads or writes a variable of the device")
    return None


def too_much_shared(text, compiled):
    """Where a kernel's __shared__ variables are more than nvcc would take."""
    done = printed_by("readelf", "-sWC", compiled)
    variables = {}  # of each kernel
    for size, name in re.findall(r"^\s*\d+: [0-9a-f]+ +(\S+) TLS +\w+ +\w+ +\d+ (.*)$", done, re.M):
        variables.setdefault(name.rpartition("::")[0], []).append((int(size, 0), name))
    for of_kernel in variables.values():
        total = sum(size for size, _ in of_kernel)
        if total > SHARED_BYTES:
            return (line_with(text, max(of_kernel)[1]),
                    f"__shared__ variables of {total:,} bytes; a block may have {SHARED_BYTES:,}")
    return None


def too_much_of_its_own(usage, dump, source):
    """Where a thread keeps more in memory than registers could hold."""
    kernels = {plain(name_of(function)) for function in re.split(r"^;; Function ", dump, flags=re.M)[1:]
               if KERNEL in attributes_of(function)}
    for line, function, size in re.findall(rf"^{re.escape(source)}:(\d+):\d+:(.*)\t(\d+)\t", usage, re.M):
        if int(size) > OWN_BYTES and plain(re.sub(r"[(\[].*", "", function)) in kernels:
            return int(line), (f"a thread of {plain(function)} keeps {int(size):,} bytes of its own; more "
                               f"than {OWN_BYTES:,} would not be in registers")
    return None


def asked_by_stage(compiled):
    """(place, what is wrong), one for each thing that an object of the stage's asks of others and may not."""
    def printed(*command):
        done = printed_by(*command, compiled)
        return done.splitlines()

    asked = {re.sub(r"\(.*", "", line.split(maxsplit=1)[1]) for line in printed("nm", "-uC")}
    if not any(re.fullmatch(names, name) for names in OF_NO_STAGE.values() for name in asked):
        return []
    source, found, section = re.search(r"([^/]*\.cu)\.o|$", compiled)[1] or ".cu", {}, ""
    for line in printed("objdump", "-drC", "--no-show-raw-insn"):  # slow
        if at := re.fullmatch(r"Disassembly of section (.*):", line):
            section = at[1]
        elif called := re.search(r"\s([0-9a-f]+): R_\w+\s+(.*?)(\(.*\).*)?([-+@]\S*)?$", line):
            what = next((what for what, names in OF_NO_STAGE.items() if re.fullmatch(names, called[2])), None)
            if what and found.get(what, ":")[0] == ":":  # no place yet
                # From the innermost function on, which may be a library's.
                places = printed("addr2line", "-i", "-j", section, called[1], "-e")
                place = next((place for place in places if f"{source}:" in place), "").split(" (")[0]
                found[what] = f"{place}: {called[2]}: a stage that {what}"
    return list(found.values())


if __name__ == "__main__":
    wrong = [each for compiled in sys.argv[1:] for each in asked_by_stage(compiled)]
    print(*wrong, sep="\n")
    sys.exit(1 if wrong else 0)
