"""Inline PTX as C++: for each instruction an expression, with functions of simulator/ptx.h (here: @name)."""
import re

TYPES = {"b8": "uint8_t", "u8": "uint8_t", "s8": "int8_t", "b16": "unsigned short", "u16": "unsigned short",
         "s16": "short", "b32": "unsigned", "u32": "unsigned", "s32": "int", "b64": "uint64_t",
         "u64": "uint64_t", "s64": "int64_t", "f32": "float", "f64": "double", "pred": "bool",
         "f16": "__half", "bf16": "__nv_bfloat16", "f16x2": "__half2", "bf16x2": "__nv_bfloat162",
         "tf32": "float"}
REGISTERS = {"laneid": "@lane_id()", "warpid": "(@thread_rank() / 32)", "smid": "(@block_rank() % 132)",
             "nsmid": "132", "clock": "clock64()", "clock64": "clock64()", "globaltimer": "@clock_ns()",
             "lanemask_eq": "(1u << @lane_id())", "lanemask_lt": "((1u << @lane_id()) - 1)",
             "lanemask_le": "((2u << @lane_id()) - 1)", "lanemask_gt": "~((2u << @lane_id()) - 1)",
             "lanemask_ge": "~((1u << @lane_id()) - 1)",
             **{f"{name}.{axis}": f"::{variable}.{axis}" for axis in "xyz" for name, variable in (
                 ("tid", "threadIdx"), ("ntid", "blockDim"), ("ctaid", "blockIdx"), ("nctaid", "gridDim"))}}
COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=",
               "hi": ">", "hs": ">="}
ROUNDINGS = {"rni": "FE_TONEAREST", "rn": "FE_TONEAREST", "rmi": "FE_DOWNWARD", "rpi": "FE_UPWARD"}
NEAREST = r"(?:\.rn)?(?:\.ftz)?"
APPROXIMATE = r"\.(?:approx|rn)(?:\.ftz)?"

# What makes a value: the instruction before its type, and C++ in its operands a, b, c, e of that type.
VALUES = {
    r"mov": "a", "add" + NEAREST: "@add(a, b)", "sub" + NEAREST: "@subtract(a, b)", "mul" + NEAREST: "a * b",
    r"mul\.lo": "@product(a, b)", r"mul\.hi": "@high_product(a, b)", r"mad\.lo": "@add(@product(a, b), c)",
    r"mad\.hi": "@add(@high_product(a, b), c)", r"(?:fma|mad)\.rn(?:\.ftz)?": "@fused(a, b, c)",
    r"div(?:\.rn|\.full|\.approx)?(?:\.ftz)?": "a / b", r"rem": "a % b", r"neg(?:\.ftz)?": "-a",
    r"min(?:\.ftz)?": "::min(a, b)", r"max(?:\.ftz)?": "::max(a, b)", r"abs(?:\.ftz)?": "a < 0 ? -a : a",
    "rcp" + APPROXIMATE: "1 / a", "sqrt" + APPROXIMATE: "::sqrt(a)", "rsqrt" + APPROXIMATE: "::rsqrt(a)",
    "sin" + APPROXIMATE: "::sinf(a)", "cos" + APPROXIMATE: "::cosf(a)", "lg2" + APPROXIMATE: "::log2f(a)",
    "ex2" + APPROXIMATE: "::exp2f(a)", r"tanh\.approx": "::tanhf(a)",
    r"not": "~a", r"and": "a & b", r"or": "a | b", r"xor": "a ^ b",
    r"shl": "@shifted_left(a, b)", r"shr": "@shifted_right(a, b)",
    r"popc": "__popcll(a)", r"brev": "__brev(a)", r"clz": "__clz(a)", r"bfind": "31 - __clz(a)",
    r"bfe": "@bits_from(a, b, c)", r"bfi": "@bits_into(a, b, c, e)", r"prmt": "__byte_perm(a, b, c)",
    r"lop3": "@by_table(a, b, c, e)", r"sad": "c + (a < b ? b - a : a - b)",
    r"shf\.([lr])\.wrap": "__funnelshift_{0}(a, b, c)", r"shf\.([lr])\.clamp": "__funnelshift_{0}c(a, b, c)",
    r"dp4a\.[us]32": "__dp4a(a, b, c)", r"redux\.sync\.(add|min|max|and|or|xor)": "__reduce_{0}_sync(b, a)",
    r"activemask": "__activemask()", r"match\.any\.sync": "__match_any_sync(b, a)"}
SPACE = r"(\.global|\.shared(?:::cta)?|\.const|\.local)?"
ORDER = r"(?:\.(volatile|weak|relaxed|acquire|release|acq_rel))?(?:\.gpu|\.sys|\.cta)?"
KIND = r"\.(\w+)"
BARRIER = r"(?:\.release|\.acquire|\.relaxed)?(?:\.cta|\.cluster)?(?:\.shared(?:::c(?:ta|luster))?)?\.b64"
COMPLETES = r"\.mbarrier::complete_tx::bytes(?:\.L2::cache_hint)?"


class Unknown(Exception):
    """An instruction that is not simulated."""


class Assembly:
    """The text of an asm(), whose operands are o0, o1, ..."""

    def __init__(self, text):
        self.registers, self.labels = set(), []
        text = re.sub(r"\\[rt]", " ", text.replace("%%", "%")).replace("\\n", "\n")
        text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
        text = re.sub(r"\{([^{};]*)\}", r"<\1>", text)  # a vector; braces that are left are a block's
        self.statements = [" ".join(part.split()) for part in re.sub("[{}]", " ", text).split(";")]

    def translated(self):
        """C++, in one line. Raises Unknown, with the statement."""
        parts = []
        for statement in filter(None, self.statements):
            try:
                parts.append(self.statement(statement))
            except (Unknown, AttributeError, KeyError, IndexError, ValueError):  # no match
                raise Unknown(statement + ";") from None
        if self.labels:
            parts = [f"{{ __label__ {', '.join(self.labels)};", *parts, "}"]
        return " ".join(parts).replace("@", "::convladder::simulator::ptx::")

    def statement(self, text):
        if found := re.fullmatch(r"\.reg \.(\w+) (.*)", text):
            names = []
            for name in found[2].split(","):
                several = re.fullmatch(r"([^<]+)<(\d+)>", name.strip())
                names += [several[1] + str(i) for i in range(int(several[2]))] if several else [name.strip()]
            self.registers.update(names)
            return f"{TYPES[found[1]]} {', '.join(self.operand(name) + '{}' for name in names)};"
        if found := re.fullmatch(r"([\w%$=]+) ?:(?!:) ?(.*)", text):
            self.labels.append(self.label(found[1]))
            return f"{self.labels[-1]}: {self.statement(found[2]) if found[2] else ';'}"
        if found := re.fullmatch(r"bra(?:\.uni)? ([\w%$=]+)", text):
            return f"goto {self.label(found[1])};"
        if found := re.fullmatch(r"@(!?)([\w%$]+) (.*)", text):
            return f"if ({found[1]}{self.operand(found[2])}) {{ {self.statement(found[3])} }}"
        name, _, rest = text.partition(" ")
        # ptxas takes an order behind the space, too.
        name = re.sub(r"^(ld|st)(\.global|\.shared(?:::cta)?)(\.(?:volatile|relaxed|acquire|release)"
                      r"(?:\.gpu|\.sys|\.cta)?)(?=\.)", r"\1\3\2", name)
        return self.instruction(name, rest) + ";"

    def operand(self, word):
        if word in self.registers:
            return "r_" + re.sub(r"\W", "_", word)
        if found := re.fullmatch(r"%(\d+)", word):
            return "o" + found[1]
        if found := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})", word):
            return f"__uint_as_float(0x{found[1]}u)"
        if re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)U?|-?\d+\.\d+", word):
            return word
        return REGISTERS[word.removeprefix("%")]

    @staticmethod
    def label(word):
        return "l_" + re.sub(r"\W", "_", word)

    def operands(self, text):
        """Also those of vectors, one by one; of [map, {0, 1}] first [map]. Without _, which nobody uses."""
        text = re.sub(r"\[([^],]+),([^]]+)\]", r"[\1],\2", text)
        words = [word.strip() for word in re.split(r"[,|<>]", text)]
        return [word if "[" in word else self.operand(word) for word in words if word not in ("", "_")]

    def pointer(self, word, space):
        register, offset = re.fullmatch(r"\[ ?([^\s+\]]+)(?: ?\+ ?(-?\w+))? ?\]", word).groups()
        kind = "@shared_at" if (space or "").startswith(".shared") else "@at"
        return f"{kind}({self.operand(register)}, {offset or 0})"

    def move_vector(self, bits, rest):
        """A vector's registers, the lowest first, become one, or one becomes them."""
        words = [word.strip() for word in re.search(r"<(.*)>", rest)[1].split(",")]
        whole, width = f"b{bits}", bits // len(words)
        part = f"b{width}"
        if not rest.startswith("<"):
            parts = (f"static_cast<uint64_t>({get(part, self.operand(word))}) << {width * i}"
                     for i, word in enumerate(words))
            return put(whole, self.operand(rest.partition(",")[0].strip()), " | ".join(parts))
        source = self.operand(rest.rpartition(",")[2].strip())
        parts = [put(part, self.operand(word), f"static_cast<{TYPES[part]}>(whole >> {width * i})")
                 for i, word in enumerate(words) if word != "_"]
        return f"{{ const auto whole = {get(whole, source)}; {'; '.join(parts)}; }}"

    def instruction(self, name, rest):
        if "<" in rest and (found := re.fullmatch(r"mov\.b(\d+)", name)):
            return self.move_vector(int(found[1]), rest)
        for pattern, make in FORMS:
            if found := re.fullmatch(pattern, name):
                return make(self, self.operands(rest), *found.groups()) if make else ""
        front, _, kind = name.rpartition(".")
        for pattern, value in VALUES.items():
            if found := re.fullmatch(pattern, front):
                result, *sources = self.operands(rest)
                typed = {letter: get(kind, source) for letter, source in zip("abce", sources)}
                return put(kind, result, re.sub(r"\b[abce]\b", lambda letter, typed=typed: typed[letter[0]],
                                                value.format(*found.groups())))
        raise Unknown


def get(kind, word):
    return f"@get<{TYPES[kind]}>({word})"


def put(kind, result, value):
    return f"@put<{TYPES[kind]}>({result}, {value})"


def joined(words):
    return ", ".join(words)


def convert(_, words, rounding, to, source):
    if to == "tf32":
        how = {"rn": "even", "rz": "truncated"}.get(rounding, "nearest")
        return put("f32", words[0], f"@{how}_tf32({get('f32', words[1])})")
    if "x2" in to:
        return put(to, words[0], f"{TYPES[to]}({joined(get('f32', word) for word in words[:0:-1])})")
    mode = ROUNDINGS.get(rounding, "FE_TOWARDZERO")
    return put(to, words[0], f"@converted<{TYPES[to]}>({get(source, words[1])}, {mode})")


def compare(_, words, comparison, kind):
    return put("pred", words[0], f"{get(kind, words[1])} {COMPARISONS[comparison]} {get(kind, words[2])}")


def select(_, words, kind):
    return put(kind, words[0], f"{words[3]} ? {get(kind, words[1])} : {get(kind, words[2])}")


def multiply_wide(_, words, operation, sign, bits):
    wide = f"{sign}{2 * int(bits)}"
    addend = f" + {get(wide, words[3])}" if operation == "mad" else ""
    factors = f"{TYPES[wide]}({get(sign + bits, words[1])}) * {get(sign + bits, words[2])}"
    return put(wide, words[0], factors + addend)


def fenced(order, call):
    """The call, with the fences that its order asks for."""
    before = "__threadfence(), " if order in ("release", "acq_rel") else ""
    return before + call + (", __threadfence()" if order in ("acquire", "acq_rel") else "")


def load(self, words, order, space, kind):
    return fenced(order, f"{atomic(order)}@load<{TYPES[kind]}, {strength(order)}>("
                         f"{joined([self.pointer(words[-1], space)] + words[:-1])})")


def store(self, words, order, space, kind):
    return fenced(order, f"{atomic(order)}@store<{TYPES[kind]}, {strength(order)}>("
                         f"{joined([self.pointer(words[0], space)] + words[1:])})")


def atomic(order):
    is_atomic = order in ("relaxed", "acquire", "release", "acq_rel")
    return "::convladder::simulator::atomic_next(), " if is_atomic else ""


def strength(order):
    return "true" if order not in (None, "weak") else "false"


def change(self, words, what, order, space, operation, kind):
    result = words[:what == "atom"]
    address, *values = words[len(result):]
    if operation in ("add", "exch", "cas") and kind in ("s64", "b64"):
        kind = "u64"
    name = {"exch": "Exch", "cas": "CAS"}.get(operation, operation.capitalize())
    type_ = {"uint64_t": "unsigned long long", "int64_t": "long long"}.get(TYPES[kind], TYPES[kind])
    call = (f"atomic{name}(static_cast<{type_}*>({self.pointer(address, space)}), "
            f"{joined(get(kind, value) for value in values)})")
    return fenced(order, put(kind, result[0], call) if result else
                  "::convladder::simulator::ignore_result(), " + call)


def copy(self, words):
    zeros = [f"{words[2]} - {get('u32', words[3])}"] if len(words) > 3 else []
    ends = [self.pointer(words[0], ".shared"), self.pointer(words[1], ".global")]
    return f"__pipeline_memcpy_async({joined(ends + words[2:3] + zeros)})"


def shuffle(_, words, how):
    return f"@shuffle(\"{how}\", {joined(words[-4:] + words[:-4])})"


def vote(_, words, how):
    result, predicate, mask = words
    return put("b32" if how == "ballot" else "pred", result, f"__{how}_sync({mask}, {predicate})")


def matrices(self, words, count, transposed, call):
    address, *rows = words if call == "store" else words[-1:] + words[:-1]
    arguments = joined([self.pointer(address, ".shared")] + rows)
    return f"@{call}_matrices<{count}, {'true' if transposed else 'false'}>({arguments})"


def multiply(_, words, m, n, k, *kinds):
    m, n, k = int(m), int(n), int(k)
    bits = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "s32": 32, "s8": 8, "u8": 8}
    parts = []
    for elements, kind in zip((m * n, m * k, k * n, m * n), kinds):
        count = elements * bits[kind] // 1024
        parts.append(f"std::tie({joined(words[:count])})")
        words = words[count:]
    if words:
        raise Unknown
    types = joined("@Tf32" if kind == "tf32" else TYPES[kind] for kind in kinds)
    return f"@multiply<{m}, {n}, {k}, {types}>({joined(parts)})"


def mbarrier(self, words, what, parity):
    at = next(number for number, word in enumerate(words) if "[" in word)
    result, barrier, rest = words[:at], self.pointer(words[at], ".shared"), words[at + 1:]
    if what.endswith("wait"):
        phase, is_parity = get("u32" if parity else "u64", rest[0]), "true" if parity else "false"
        sleeps = "true" if what == "try_wait" else "false"
        return put("pred", result[0], f"@mbarrier_wait({barrier}, {phase}, {is_parity}, {sleeps})")
    if what in ("expect_tx", "complete_tx"):
        return f"@mbarrier_expect({barrier}, {'-' * (what == 'complete_tx')}{get('s32', rest[0])})"
    if not what.startswith("arrive"):
        return f"@mbarrier_{what}({joined([barrier] + rest)})"
    arrivals, count = ("1", rest[0]) if "tx" in what else (rest[0] if rest else "1", "0")
    call = f"@mbarrier_arrive({barrier}, {arrivals}, {count}, {'true' if 'drop' in what else 'false'})"
    return put("u64", result[0], call) if result else call


def bulk_copy(self, words):
    ends = [self.pointer(words[0], ".shared"), self.pointer(words[1], ".global")]
    return f"@bulk_copy({joined(ends + [words[2], self.pointer(words[3], '.shared')])})"


def bulk_store(self, words):
    return f"@bulk_store({self.pointer(words[0], '')}, {self.pointer(words[1], '.shared')}, {words[2]})"


def numbers(words):
    return f"{{{joined(get('s32', word) for word in words)}}}"


def tensor_copy(self, words, dimensions, way):
    dimensions = int(dimensions)
    barrier, offsets = 2 + dimensions, dimensions - 2 if way == ".im2col" else 0
    ends = [self.pointer(words[i], ".shared" if i != 1 else "") for i in (0, 1, barrier)]
    at = [numbers(words[2:barrier]), numbers(words[barrier + 1:barrier + 1 + offsets])]
    return f"@tensor_copy({joined(ends + at + ['true' if way == '.im2col' else 'false'])})"


def tensor_store(self, words, dimensions):
    return (f"@tensor_store({self.pointer(words[0], '')}, {self.pointer(words[-1], '.shared')}, "
            f"{numbers(words[1:1 + int(dimensions)])})")


def warpgroup_multiply(_, words, columns, depth, *kinds):
    sums = int(columns) // (4 if kinds[0] == "f16" else 2)
    if kinds[0] not in ("f32", "f16") or kinds[1:] not in (("tf32",) * 2, ("f16",) * 2, ("bf16",) * 2):
        raise Unknown
    of_a = 4 if len(words) - sums >= 8 else 1
    a, (b, *how) = words[sums:sums + of_a], words[sums + of_a:]
    transposed = ["0"] * (of_a == 4) + how[3:]
    types = joined("@Tf32" if kind == "tf32" else TYPES[kind] for kind in kinds[:2])
    forwarded = joined(f"static_cast<decltype({word})&&>({word})" for word in a)
    of = f"@fragment_of({forwarded})" if of_a == 4 else get("u64", a[0])
    registers = joined(f"&({word})" for word in words[:sums])
    return (f"@warpgroup_multiply<{columns}, {depth}, {types}>(&({words[0]}), {of}, {joined([b] + how[:3])}, "
            f"{{{joined((transposed + ['0', '0'])[:2])}}}, "
            f"[&] {{ @take_sums({{{registers}}}); }})")


def constant(text):
    return lambda *_: text


FORMS = [  # (the instruction, what makes C++ of its operands and of the pattern's groups)
    (r"cvt(?:\.(r\w+))?(?:\.ftz|\.satfinite)*" + KIND + KIND, convert),
    (r"setp\.(\w+?)(?:\.ftz)?" + KIND, compare),
    (r"selp" + KIND, select),
    (r"(mul|mad)\.wide\.([us])(16|32)", multiply_wide),
    (r"cvta\.to\.shared\.u(?:32|64)", lambda _, words: put("u64", words[0], f"@shared_address({words[1]})")),
    (r"cvta\.shared\.u64", lambda _, words: put("u64", words[0], f"@address_of(@shared_at({words[1]}, 0))")),
    (r"cvta(?:\.to)?(?:\.global|\.const|\.local)?\.u64",
     lambda _, words: put("u64", words[0], get("u64", words[1]))),
    ("ld" + ORDER + SPACE + r"(?:\.c[agsv]|\.lu|\.nc)*(?:\.L[12]::\w+)*(?:\.v[248])?" + KIND, load),
    ("st" + ORDER + SPACE + r"(?:\.wb|\.c[gs]|\.wt)?(?:\.L[12]::\w+)*(?:\.v[248])?" + KIND, store),
    ("(atom|red)" + ORDER + SPACE + r"\.(add|min|max|inc|dec|and|or|xor|exch|cas)(?:\.noftz)?" + KIND,
     change),
    (r"cp\.async\.c[ag]\.shared(?:::cta)?\.global(?:\.L2::\w+)*", copy),
    (r"mbarrier\.(init|inval|(?:arrive(?:_drop)?\.)?expect_tx|complete_tx|arrive(?:_drop)?|te?[sr][ty]_wait)"
     r"(\.parity)?(?:\.noComplete)?" + BARRIER, mbarrier),
    (r"cp\.async\.mbarrier\.arrive(\.noinc)?" + BARRIER, lambda self, words, noinc:
     f"@arrive_when_copied({self.pointer(words[0], '.shared')}, {'false' if noinc else 'true'})"),
    (r"cp\.async\.bulk\.shared::c(?:ta|luster)\.global" + COMPLETES, bulk_copy),
    (r"cp\.async\.bulk\.global\.shared::cta\.bulk_group(?:\.L2::cache_hint)?", bulk_store),
    (r"cp\.async\.bulk\.tensor\.([1-5])d\.shared::c(?:ta|luster)\.global(\.tile|\.im2col)?" + COMPLETES,
     tensor_copy),
    (r"cp\.async\.bulk\.tensor\.([1-5])d\.global\.shared::cta(?:\.tile)?\.bulk_group(?:\.L2::cache_hint)?",
     tensor_store),
    (r"cp\.async\.bulk\.commit_group", constant("@commit_stores()")),
    (r"cp\.async\.bulk\.wait_group(?:\.read)?", lambda _, words: f"@wait_for_stores({words[0]})"),
    (r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k(\d+)" + KIND * 3, warpgroup_multiply),
    (r"wgmma\.fence\.sync\.aligned", constant("@fence_registers()")),
    (r"wgmma\.commit_group\.sync\.aligned", constant("@commit_products()")),
    (r"wgmma\.wait_group\.sync\.aligned", lambda _, words: f"@wait_for_products({words[0]})"),
    (r"fence\.proxy\.async(?:\.global|\.shared::c(?:ta|luster))?", constant("@fence_proxies()")),
    (r"fence\.mbarrier_init\.release\.cluster", constant("@fence_barriers()")),
    (r"setmaxnreg\.(?:inc|dec)\.sync\.aligned\.u32", lambda _, words: f"@set_registers({words[0]})"),
    (r"elect\.sync", lambda _, words: f"@elect({joined(words)})"),
    (r"cp\.async\.commit_group", constant("__pipeline_commit()")),
    (r"cp\.async\.wait_group", lambda _, words: f"__pipeline_wait_prior({words[0]})"),
    (r"cp\.async\.wait_all", constant("__pipeline_commit(), __pipeline_wait_prior(0)")),
    (r"(?:ld)matrix\.sync\.aligned\.m8n8\.x([124])(\.trans)?\.shared(?:::cta)?\.b16",
     lambda self, words, *how: matrices(self, words, *how, "load")),
    (r"(?:st)matrix\.sync\.aligned\.m8n8\.x([124])(\.trans)?\.shared(?:::cta)?\.b16",
     lambda self, words, *how: matrices(self, words, *how, "store")),
    (r"mma\.sync\.aligned\.m(\d+)n(\d+)k(\d+)\.row\.col(?:\.satfinite)?" + KIND * 4, multiply),
    (r"shfl\.sync\.(idx|up|down|bfly)\.b32", shuffle),
    (r"vote\.sync\.(ballot|any|all)\.(?:b32|pred)", vote),
    (r"bar(?:rier)?\.sync(?:\.aligned)?", lambda _, words: f"@barrier({joined(words)})"),
    (r"bar(?:rier)?\.arrive(?:\.aligned)?", lambda _, words: f"@arrive({joined(words)})"),
    (r"bar\.warp\.sync", lambda _, words: f"__syncwarp({words[0]})"),
    (r"membar\.(?:gl|sys)|fence(?:\.acq_rel|\.sc)?\.(?:gpu|sys)", constant("__threadfence()")),
    (r"membar\.cta|fence(?:\.acq_rel|\.sc)?\.(?:cta|cluster)", constant("__threadfence_block()")),
    (r"nanosleep\.u32", lambda _, words: f"__nanosleep({words[0]})"),
    (r"trap", constant("__trap()")),
    (r"griddepcontrol\.wait", constant("convladder::simulator::wait_for_kernel_before()")),
    (r"prefetchu?\..*|griddepcontrol\.launch_dependents|barrier\.cluster\.(?:arrive|wait).*", None)]
