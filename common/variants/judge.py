"""Judges one kernel: compiles it as a stage of its own, against the libraries that are built, and runs
it in a process with limits. What comes back is a Verdict, whatever the kernel did. What is refused before
it runs, since the counts would not see it: handin.py. On a GPU Nsight Compute counts.
"""
import dataclasses
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import time

from common.measure import ncu
from common.show import files, support
from common.show.files import ROOT
from common.variants import handin, task
from common.variants.build import EXEMPLAR, OUTPUT_KB, BuildError, Failed, run_limited

COMPILE_SECONDS = 10
GPU_SECONDS = 30  # of nvcc, and of the program with its runs for a time
MOST_BYTES = 64 << 10  # of a kernel's text: the largest stage has a quarter
ROOM = 64 << 20  # with less, a compiler that finds no space may be right
MEMORY = 4 << 30  # address space of the compiler and of the program
NO_END = "has come to no end, or is many times too slow"
CRASHES = {signal.SIGSEGV: "touches memory that isn't its own (SIGSEGV), or recurses without end",
           signal.SIGBUS: "touches memory that isn't there (SIGBUS)",
           signal.SIGFPE: "divides an integer by zero (SIGFPE)",
           signal.SIGILL: "ran into what is no instruction (SIGILL)",
           signal.SIGABRT: "aborted",
           signal.SIGALRM: NO_END, signal.SIGUSR1: NO_END, signal.SIGXCPU: NO_END,
           signal.SIGXFSZ: f"prints more than {OUTPUT_KB >> 10} MB by printf()",
           0: f"asks for more than {MEMORY >> 30} GB of memory"}

# What can be wrong, in the order in which it is looked for.
UNREADABLE, COMPILE, REFUSED, CRASH, UNLAUNCHED, WRONG, RACE, STRAY, UNWRITTEN, BARRIER, ENDLESS, COUNTERS = \
    task.FAILURES
# Which of the simulator's messages and the GPU's means what.
FINDINGS = ((RACE, r"data race|nothing orders that and mbarrier"), (RACE, r"asynchronous copy is under way"),
            (RACE, r"before wgmma\.wait_group|wgmma\.fence is missing|barrier has not been waited for"),
            (RACE, r"fence\.proxy\.async"), (STRAY, r"leads out of shared memory"),
            (STRAY, r"out of bounds|not aligned"), (UNWRITTEN, r"nobody has written|is undefined"),
            (BARRIER, r"waits (for ever )?at __sync|waits for ever|arrivals? at the barrier"),
            (BARRIER, r"no barrier has been made|, but thread .* is at |come to different products"),
            (ENDLESS, r"come to no end|asks for ever"),
            (CRASH, r"\bout of host memory|divides an integer|that is nobody's|overflows its stack"),
            (CRASH, r"its enqueue|assertion `|__trap\(\)|printf\(\) with"),
            (UNLAUNCHED, r"kernel launch: invalid [^(]*\(kernel [^,]*: "),
            (STRAY, r"illegal memory access|misaligned|^around the"))
LACKS = re.compile(r"needs compute capability \S+( or more)?$")  # said of a GPU, not of the kernel
MEMORY_KINDS = (RACE, STRAY, UNWRITTEN)


@dataclasses.dataclass
class Line:
    """A line of the kernel's source, and what its instructions cost."""
    where: str
    shared: bool
    requests: int = 0
    cost: int = 0


@dataclasses.dataclass
class Verdict:
    kind: str = ""  # "" when right and sound; else one of the above
    message: str = ""
    problem: str = ""  # on which that was
    checked: int = 0  # problems that were right
    counted: dict = dataclasses.field(default_factory=dict)  # problem: [kernel's record]
    lines: dict = dataclasses.field(default_factory=dict)  # problem: [Line]
    timed: dict = dataclasses.field(default_factory=dict)  # problem: record
    on_gpu: bool = False
    note: str = ""  # why nothing was counted, or run, there
    results: list = dataclasses.field(default_factory=list)  # task.Result, of one that is right
    gpu: object = None  # the GPU's Verdict, where the simulator has judged as well
    printed: list = dataclasses.field(default_factory=list)  # lines of the kernel's
    rows: dict = dataclasses.field(default_factory=dict)  # what was to be counted: {name: problem}

    def fail(self, kind, message):
        if not self.kind:  # a terminal would obey some of what a kernel says
            self.kind, self.message = kind, support.printable(message)


def shown(path):
    """The path as seen from the repository, or else from here."""
    path = os.path.abspath(path)
    for base in (ROOT, os.getcwd()):
        relative = os.path.relpath(path, base)
        if not relative.startswith(".."):
            path = relative
            break
    return support.printable(path)


def unreadable(source):
    """Why the file can't be judged; a class hands in all sorts of things. Empty: it can."""
    if os.path.islink(source) or not os.path.isfile(source):
        return "is no regular file"
    if os.path.getsize(source) > MOST_BYTES:
        return f"has more than {MOST_BYTES:,} bytes"
    try:
        with open(source, "rb") as file:
            if re.search(rb"\r(?!\n)", file.read()):
                return "has a line that ends with CR alone"
        files.read(source)
        path = os.path.abspath(source).encode()  # as a compiler prints it
    except UnicodeDecodeError:
        return "is no text in UTF-8"
    except UnicodeEncodeError:
        return "lies in a folder whose name is not in UTF-8: rename it"
    except (OSError, ValueError) as error:
        return f"can't be read: {error}"
    if re.search(rb":\d+:\d+.*\]", path):  # as a place in a dump of the compiler
        return "has ':', numbers and ']' in its path"
    if b'"' in path:  # as a text there
        return "has '\"' in its path"
    if len(os.fsdecode(path).splitlines()) > 1 or b"\t" in path:
        return "has a line's end or a tab in its path"
    return ""


def keep_names_to_itself(compiled):
    """Nobody else takes a function that the object defines for his own: of others' templates and inline
    functions it may have made another. Inline variables, as threadIdx is, stay everybody's."""
    whole, lists = compiled + ".r", {kind: f"{compiled}.{kind}" for kind in ("localize", "weaken")}
    _printed("ld", "-r", "--force-group-allocation", "-o", whole, compiled)
    names = re.findall(r"^\w+ (\w) (.+)$", _printed("nm", "--defined-only", whole), re.M)
    for what, kinds in (("localize", "[^Vu]"), ("weaken", "u")):
        files.write(lists[what], "\n".join(["#", *(name for kind, name in names if re.match(kinds, kind))]))
    _printed("objcopy", *(f"--{kind}-symbols={path}" for kind, path in lists.items()), whole, compiled)


def _printed(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"{words[0]} ended with {done.returncode}: {done.stdout}{done.stderr}".strip())
    return done.stdout


def compile_kernel(build, source, folder, target="exercise_judge", start="", kept=()):
    """folder/`target`: that program of the build with the kernel `source` in stage 01's place. Raises
    Failed where the kernel is at fault, BuildError where the machine is."""
    source, compiled = os.path.abspath(source), os.path.join(folder, "kernel.o")
    program, text = os.path.join(folder, target), files.read(source).removeprefix("\ufeff")

    def refuse(wrong):
        if wrong:
            raise Failed(f"{shown(source)}{f':{wrong[0]}' if wrong[0] else ''}: {wrong[1]}", REFUSED)

    if not build.on_gpu:  # first: a compiler's message shows what it has read
        refuse(handin.directive(text, start, source))
    if kept:
        refuse(handin.outside(text, *kept))
    if build.on_gpu:
        done = build.compile(source, compiled, seconds=GPU_SECONDS)
    else:
        done = build.compile(source, compiled, seconds=COMPILE_SECONDS, memory=MEMORY, after=[
            "-w", "-fdiagnostics-plain-output", "-fmax-errors=3", "-fstack-usage",
            "-fdump-tree-tsan-lineno=" + os.path.join(folder, "kernel.hooked"),
            "-fdump-tree-optimized-lineno=" + os.path.join(folder, "kernel.dump")])
    if done.returncode != 0 and (lacks := machine_lacks(done.stdout, folder)):
        raise BuildError(lacks)
    if done.returncode != 0:
        raise Failed(compiler_message(done, source), COMPILE)
    if not build.on_gpu:
        refuse(handin.refused(source, folder, start))
        keep_names_to_itself(compiled)
    done = build.link(target, [compiled], os.path.basename(EXEMPLAR), program, first=False)
    if done.returncode != 0:
        if lacks := machine_lacks(done.stdout, folder):
            raise BuildError(f"linking failed: {lacks}")
        reason = re.search(r"(multiple definition of|undefined reference to) .*?'|relocation truncated|$",
                           done.stdout)
        raise Failed(f"{shown(source)}: can't be linked: " + {
            "relocation truncated": "its variables of the host take more memory than a program may have",
            "": done.stdout.strip()[-200:]}.get(reason[0], reason[0]), COMPILE)
    return program


def machine_lacks(said, folder):
    """What a compiler or linker says of the machine, "" where the kernel is at fault, whose text it shows."""
    places = [folder, *filter(os.path.isdir, [os.environ.get("TMPDIR", "/tmp")])]
    is_full = any(shutil.disk_usage(place).free < ROOM for place in places)
    def lacks(line):
        return "No space left on device" in line if is_full else \
            "atal error: " in line and line.endswith(": Too many open files")

    return next(filter(lacks, said.split("\n")), "")


def compiler_message(done, source):
    if done.returncode == -signal.SIGALRM:
        return f"{shown(source)}: the compiler has come to no end, and was stopped"
    lines = done.stdout.replace(ROOT + "/", "").splitlines()
    errors = [line for line in lines if re.search(r"\berror: ", line)]
    said = "\n".join(errors[:3]) or (lines or ["the compiler failed"])[-1]
    return said if re.match(r"\S+:\d+:", said) else f"{shown(source)}: {said}"


def source_lines(program, codes, source):
    """{offset in the code: its lines of the source}, innermost call first; return addresses."""
    codes = sorted(set(codes))
    done = subprocess.run(["addr2line", "-a", "-i", "-e", program] + [hex(code - 1) for code in codes],
                          capture_output=True, text=True, check=False)
    lines, places = {code: [] for code in codes}, []
    for line in done.stdout.splitlines():
        if re.fullmatch(r"0x[0-9a-f]+", line):
            places = lines[int(line, 16) + 1]
        elif line[0] == "/":
            path, _, number = line.split(" (disc")[0].rpartition(":")
            places += [f"{shown(source)}:{number}"] if shown(path) == shown(source) else []
    return lines


def before_empty_loop(program, code):
    """As common/core/program.h's: of an empty loop, the jump that leads to it, which has the right line."""
    loop, around = code - 1, 1 << 14
    done = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program, f"--stop-address={loop + around}",
                           f"--start-address={max(0, loop - around)}"],
                          capture_output=True, text=True, check=False)
    jumps = [int(at, 16) for at, to in re.findall(r"^ *([0-9a-f]+):\t\w+ +([0-9a-f]+) <", done.stdout,
                                                  re.MULTILINE) if int(to, 16) == loop]
    return next((at + 1 for at in jumps if at != loop), code) if loop in jumps else code


def plainer(message):
    """A kernel's failure as the simulator has it, where and what alone."""
    found = re.fullmatch(r"(.*?: )?kernel launch: [^(]*\(kernel (.*?\)): (.*)\)", message)
    if not found:
        return message
    _, thread, what = found.groups()
    what = re.sub(r"^data race: ", "", what)
    if "common/core/add_bias" in what:
        return f"an output of yours that was never written: {thread}, which adds the bias, {what}"
    return f"{thread} {what}"


def kind_of(message):
    return next((kind for kind, pattern in FINDINGS if re.search(pattern, message)), WRONG)


def judge(build, source, asked, start="", seconds=24, kept=()):
    """The Verdict on the kernel in the file `source`. asked: {"check", "count" or "time": {name:
    problem}}; start: the exercise's own text; kept: with what a hand-in must begin and end."""
    verdict, name = Verdict(on_gpu=build.on_gpu, rows=asked.get("count", {})), shown(source)
    scratch = os.path.join(build.folder, "exercises")
    os.makedirs(scratch, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        try:
            program = compile_kernel(build, source, folder, start=start, kept=kept)
        except Failed as failure:
            verdict.fail(failure.kind, str(failure))
            return verdict
        # A GPU's process has an address space as large as it likes.
        limits = {"seconds": GPU_SECONDS} if build.on_gpu else {
            "seconds": seconds, "memory": MEMORY, "sealed": folder}
        begun, secret = time.monotonic(), secrets.token_hex(16)
        words, needs_newer = program_words(program, folder, asked), False
        if start:
            registered = re.search(r"\bCONVLADDER_REGISTER_STAGE\([^;]*|$", handin.bare(start))[0]
            words += ["--precision", "tf32" if "TF32" in registered else "fp32"]
            needs_newer = build.on_gpu and bool(re.search(r"\b\d\d\b", registered))
            if relu := re.search(r"enqueue[^,]*,[^,]*, (true|false)\b", registered):
                words += ["--relu", relu[1]]
        done = run_limited([*words, "--secret", "stdin"], said=secret + "\n", **limits)
        told = findings(done.stdout.split("\n"), secret)
        lacks = [each["message"] for each in told if LACKS.match(each.get("message", ""))]
        if needs_newer and lacks:  # else a hand-in may have thrown it
            verdict.note = lacks[0]
            return verdict
        take_findings(verdict, told, program, source)
        if done.returncode in (-signal.SIGALRM, -signal.SIGKILL, -signal.SIGXCPU) and \
                verdict.kind in ("", CRASH):
            verdict.kind, verdict.message = ENDLESS, (
                f"{name}: {NO_END} (no end after {time.monotonic() - begun:.0f} s)")
        elif done.returncode != 0:
            verdict.fail(CRASH, f"{name}: " + (CRASHES.get(-done.returncode) or ": ".join(
                [f"ended with status {done.returncode}"] + done.stdout.splitlines()[-1:])))
        elif {"end": True} not in told:
            verdict.fail(CRASH, f"{name}: ends the process before it is judged")
        verdict.printed = printed(done.stdout, secret, verdict.kind)
        if not verdict.kind and build.on_gpu and "count" in asked:
            try:
                verdict.counted = read_counters(
                    program_words(program, folder, {"count": asked["count"]}))
            except ncu.NcuError as error:
                verdict.note = f"no counters of the GPU: {error}"
    return verdict


def program_words(program, folder, asked):
    """What is counted has data that nobody can know beforehand: a kernel must read them."""
    words = [program, "--seed", str(secrets.randbits(64))]
    for option, rows in asked.items():
        path = os.path.join(folder, option + ".csv")
        files.write_rows(path, [("name", *task.COLUMNS)] + [
            (name, *(row[column] for column in task.COLUMNS)) for name, row in rows.items()])
        words += ["--" + option, path] if rows else []
    return words


TOLD_ONCE = ("checked", "counted", "timed", "end")  # what the judge says once, of a problem or at all


TOLD = re.compile(r'\{"(checked|code|counted|crash|end|error|message|refused|timed)"')
FORGED = "writes what only the judge writes"


def findings(lines, secret=""):
    """What the judge's program has told. Who writes such lines himself is told of as refused."""
    told = []
    for line in lines:
        try:
            if line.startswith(secret + "{") and line.endswith("}"):
                told.append(json.loads(line[len(secret):]))
                continue
        except (RecursionError, ValueError):
            told.append({"refused": FORGED})
        if secret and TOLD.search(line):
            told.append({"refused": FORGED})
    return told


def printed(output, secret, failed):
    """The lines that the kernel has printed: on the problem that failed, or the first that has some."""
    problems = re.split(rf'^{secret}.*"pass": ?true.*$', output, flags=re.M)
    others = rf"^({secret}.*|convladder: error: .*)?\n"  # the judge's lines, and the simulator's
    texts = (re.sub(others, "", text, flags=re.M) for text in problems[-1 if failed else 0:])
    return next(filter(str.strip, texts), "").splitlines()


# ---- Nsight Compute's counts -----------------------------------------------------------------------

LAUNCH = {"blocks": "launch__grid_size", "shared_bytes": "launch__shared_mem_per_block_static",
          "tensor_instructions": ncu.TENSOR[0]}  # what the simulator calls so


def read_counters(words):
    """{problem: [kernel's record]} of what the judge's program counts; one run of Nsight Compute."""
    goals = {metric for parts in task.COUNTERS.values() for metric in parts}
    wanted = [metric for metric in ncu.ALL if metric in goals] + list(LAUNCH.values())
    return counted_by(*ncu.run(list(dict.fromkeys(wanted)), words))


def counted_by(launches, lines):
    """Deals launches, (kernel, {metric: value}), out to the problems that the program's lines name."""
    counted, left = {}, list(launches)
    told = [finding for finding in findings(lines) if "counted" in finding]
    if sum(finding["launches"] for finding in told) != len(left):
        raise ncu.NcuError(f"ncu saw {len(left)} kernels; launch() was called "
                           f"{sum(finding['launches'] for finding in told)} times")
    for finding in told:
        own, left = left[:finding["launches"]], left[finding["launches"]:]
        counted[finding["counted"]] = kernels_of(own)
    return counted


def kernels_of(launches):
    """The launches of one problem as the simulator's records, one for each kernel."""
    records = []
    for kernel, every in ncu.by_kernel(launches).items():
        record = {"kernel": kernel, "launches": len(every), **ncu.merge(every)}
        record |= {name: record[metric] for name, metric in LAUNCH.items() if metric in record}
        if "blocks" in record:
            record["blocks"] = sum(values[LAUNCH["blocks"]] for values in every)
        records.append(record)
    return records


# ---- What the program has found --------------------------------------------------------------------


def take_findings(verdict, told, program, source):
    """All that the judge's program has told; of what it doesn't tell so, somebody else has."""
    about = [(key, str(finding[key])) for finding in told for key in TOLD_ONCE if key in finding]
    if len(set(about)) < len(about):
        verdict.fail(REFUSED, f"{shown(source)}: {FORGED}")
    for finding in told:
        try:
            take_finding(verdict, finding, program, source)
        except (AttributeError, LookupError, StopIteration, TypeError, ValueError):
            verdict.fail(REFUSED, f"{shown(source)}: {FORGED}")


def take_finding(verdict, finding, program, source):
    if not finding.get("pass", True):
        name = next(finding[key] for key in ("checked", "counted", "timed") if key in finding)
        verdict.fail(kind_of(finding["message"]), plainer(finding["message"]))
        verdict.problem = f"{name}: {finding['shape']}"
    elif "checked" in finding:
        verdict.checked += 1
    elif finding.get("counted", "") not in ["", *verdict.rows]:
        verdict.fail(REFUSED, f"{shown(source)}: {FORGED}")
    elif "counted" in finding:
        verdict.counted[finding["counted"]] = finding["kernels"]
        verdict.lines[finding["counted"]] = cost_by_line(finding["kernels"], program, source)
    elif "timed" in finding:
        verdict.timed[finding["timed"]] = finding
    elif "crash" in finding:
        kind = ENDLESS if "no end" in CRASHES[finding["crash"]] else CRASH
        codes = [before_empty_loop(program, code) if kind == ENDLESS else code for code in finding["code"]]
        own = [place for places in source_lines(program, codes, source).values() for place in places]
        message = f"{own[0] if own else shown(source)}: {CRASHES[finding['crash']]}"
        if own and verdict.kind == kind and verdict.message.startswith(shown(source) + ": "):
            verdict.message = message  # of several threads, one in the learner's code
        verdict.fail(kind, message)
    for key, kind in (("error", CRASH), ("refused", REFUSED)):
        if key in finding:
            verdict.fail(kind, f"{shown(source)}: {support.printable(str(finding[key]))}")


def cost_by_line(kernels, program, source):
    """[Line], the costliest first. Those of common/ (the bias pass) are left out."""
    places = [place for kernel in kernels for place in kernel["places"]]
    lines = source_lines(program, [place["code"] for place in places], source) if places else {}
    costs = {}
    for place in places:
        for where in lines[place["code"]][:1]:  # the innermost
            line = costs.setdefault((where, place["shared"]), Line(where, place["shared"]))
            line.requests += place["requests"]
            line.cost += place["cost"]
    return sorted(costs.values(), key=lambda line: -line.cost)
