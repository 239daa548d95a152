"""Judges one kernel: compiles it as a stage of its own, against the libraries that are built, and runs
it in a process with limits. What comes back is a Verdict, whatever the kernel did.
"""
import contextlib
import dataclasses
import json
import os
import re
import signal
import subprocess
import tempfile
import time

from common.show import files
from common.show.support import ROOT
from common.variants.build import EXEMPLAR

COMPILE_SECONDS, RUN_SECONDS = 10, 9  # in all, less than 20
MEMORY = 4 << 30  # address space of the compiler and of the program
SHARED_BYTES = 48 << 10  # of a block: what nvcc takes for static __shared__ variables
COLUMNS = ("n", "c", "h", "w", "k", "r", "s", "stride_h", "stride_w", "pad_h", "pad_w", "dil_h",
           "dil_w", "groups", "bias")
SIGNALS = {signal.SIGSEGV: "touches memory that isn't its own (SIGSEGV), or recurses without end",
           signal.SIGBUS: "touches memory that isn't there (SIGBUS)",
           signal.SIGFPE: "divides an integer by zero (SIGFPE)",
           signal.SIGILL: "ran into what is no instruction (SIGILL)",
           signal.SIGABRT: "aborted",
           signal.SIGALRM: "has come to no end", signal.SIGUSR1: "has come to no end",
           0: f"asks for more than {MEMORY >> 30} GB of memory"}

# What can be wrong, in the order in which it is looked for.
COMPILE, CRASH, WRONG, RACE, STRAY, UNWRITTEN, BARRIER, ENDLESS, COUNTERS = (
    "does not compile", "crash", "wrong result", "data race", "stray access", "unwritten read",
    "barrier", "no end", "counters")
# Of the simulator's messages, which is which.
FINDINGS = ((RACE, r"data race"), (RACE, r"asynchronous copy is under way"),
            (STRAY, r"out of bounds|not aligned"), (UNWRITTEN, r"nobody has written"),
            (BARRIER, r"waits for ever"), (ENDLESS, r"come to no end"))
MEMORY_KINDS = (RACE, STRAY, UNWRITTEN)


@dataclasses.dataclass
class Line:
    """A line of the kernel's source, and what its instructions cost."""
    where: str
    shared: bool
    requests: int
    cost: int


@dataclasses.dataclass
class Verdict:
    kind: str = ""  # "" when right and sound; else one of the above
    message: str = ""
    problem: str = ""  # on which that was
    checked: int = 0  # problems that were right
    counted: dict = dataclasses.field(default_factory=dict)  # problem: [kernel's record]
    lines: dict = dataclasses.field(default_factory=dict)  # problem: [Line]
    timed: dict = dataclasses.field(default_factory=dict)  # problem: record
    values: dict = dataclasses.field(default_factory=dict)  # goal's name: what ncu counted
    note: str = ""  # why there are no such counters
    frames: dict = dataclasses.field(default_factory=dict)  # function: bytes of its own memory


def shown(path):
    """The path as seen from the repository, or else from here."""
    path = os.path.abspath(path)
    for base in (ROOT, os.getcwd()):
        relative = os.path.relpath(path, base)
        if not relative.startswith(".."):
            return relative
    return path


def problems():
    """common/problems.csv: {name: {column: text}}."""
    return {row["name"]: {column: row[column] for column in COLUMNS}
            for row in files.read_rows(os.path.join(ROOT, "common/problems.csv"))}


def write_problems(path, rows):
    """rows: {name: {column: value}}."""
    with open(path, "w", encoding="utf-8") as file:
        file.write("name," + ",".join(COLUMNS) + "\n")
        for name, row in rows.items():
            file.write(",".join([name] + [str(row[column]) for column in COLUMNS]) + "\n")


def compile_kernel(build, source, folder, target="exercise_judge"):
    """folder/`target`: that program of the build with the kernel `source` in stage 01's place. Raises
    Failed where the kernel is at fault, BuildError where the machine is."""
    source, object_file = os.path.abspath(source), os.path.join(folder, "kernel.o")
    program = os.path.join(folder, target)
    compile_folder, words = build.compile_words()
    words += ["-o", object_file, "-c", source]
    if not build.on_gpu:
        words += ["-w", "-fdiagnostics-plain-output", "-fmax-errors=3", "-fstack-usage"]
    done = limited(words, compile_folder, None if build.on_gpu else COMPILE_SECONDS)
    if done.returncode != 0:
        raise Failed(COMPILE, compiler_message(done, source))
    if not build.on_gpu:
        require_shared_memory(object_file, source)
    link_folder, words = build.link_words(target, [object_file], os.path.basename(EXEMPLAR), program)
    done = limited(words, link_folder, None)
    if done.returncode != 0:
        raise Failed(COMPILE, linker_message(done, source))
    return program


class Failed(Exception):
    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


def limited(words, folder, seconds):
    """A process with limits on memory and time, if `seconds`; none of its children outlives it. On a
    machine that others keep busy it gets more time."""
    if seconds:
        seconds *= max(1, os.getloadavg()[0] / os.cpu_count())
    limits = f"ulimit -c 0 {f'-v {MEMORY >> 10}' if seconds else ''}; exec \"$@\""
    with subprocess.Popen(["bash", "-c", limits, "bash"] + words, cwd=folder,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace",
                          start_new_session=True) as process:
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGALRM)  # the judge says where it stands
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=2)
            kill_group(process)
            output = process.communicate()[0] or ""
            return subprocess.CompletedProcess(words, -signal.SIGALRM, output)
        except BaseException:
            kill_group(process)
            raise
    return subprocess.CompletedProcess(words, process.returncode, output)


def kill_group(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def compiler_message(done, source):
    if done.returncode == -signal.SIGALRM:
        return f"{shown(source)}: the compiler has come to no end, and was stopped"
    lines = done.stdout.replace(ROOT + "/", "").splitlines()
    errors = [line for line in lines if re.search(r"\berror: ", line)]
    return "\n".join(errors[:3]) or f"{shown(source)}: {lines[-1] if lines else 'the compiler failed'}"


def linker_message(done, source):
    for said, means in (("undefined reference to", "is called, but nowhere defined"),
                        ("multiple definition of", "is defined twice")):
        found = re.search(rf"{said} [`'](.*?)'", done.stdout)
        if found:
            return f"{shown(source)}:{line_with(source, found[1])}: {found[1]} {means}"
    last = (done.stdout.splitlines() or ["no reason given"])[-1]
    return f"{shown(source)}: can't be linked: {last}"


def line_with(source, symbol):
    """Where the last name in `symbol` stands first in the source; 1 if nowhere."""
    name = re.sub(r"\([^()]*\)$", "", symbol).split("::")[-1]
    with open(source, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            if re.search(rf"\b{re.escape(name)}\b", line):
                return number
    return 1


def require_shared_memory(object_file, source):
    """Fails where a kernel's __shared__ variables are more than nvcc would take."""
    done = subprocess.run(["readelf", "-sWC", object_file], capture_output=True, text=True, check=False)
    variables = {}  # of each kernel
    for size, name in re.findall(r"^\s*\d+: [0-9a-f]+ +(\S+) TLS +\w+ +\w+ +\d+ (.*)$", done.stdout,
                                 re.MULTILINE):
        kernel = variables.setdefault(name.rpartition("::")[0], [])
        kernel.append((int(size, 0), name))
    for of_kernel in variables.values():
        total = sum(size for size, _ in of_kernel)
        if total > SHARED_BYTES:
            raise Failed(COMPILE, f"{shown(source)}:{line_with(source, max(of_kernel)[1])}: __shared__ "
                                  f"variables of {total:,} bytes; a block may have {SHARED_BYTES:,}")


def source_lines(program, codes):
    """{offset in the code: [file:line, innermost call first]}; return addresses."""
    codes = sorted(set(codes))
    done = subprocess.run(["addr2line", "-a", "-i", "-e", program] + [hex(code - 1) for code in codes],
                          capture_output=True, text=True, check=False)
    lines, places = {}, []
    for line in done.stdout.splitlines():
        if re.fullmatch(r"0x[0-9a-f]+", line):
            places = lines[int(line, 16) + 1] = []
        else:
            places.append(shown(line.split(" (disc")[0]) if line[0] == "/" else line)
    return lines


def own_places(places, source):
    """Those that are the learner's."""
    return [place for place in places if place.rsplit(":", 1)[0] == shown(source)]


def read_findings(path):
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        return []
    findings = []
    for line in text.splitlines():
        try:
            findings.append(json.loads(line))
        except ValueError:
            break  # the process ended in the middle of it
    return findings


def plainer(message):
    """A kernel's failure as the simulator has it, where and what alone."""
    found = re.fullmatch(r"(.*?: )?kernel launch: [^(]*\(kernel (.*?, thread \(.*?\)): (.*)\)", message)
    if not found:
        return message
    _, thread, what = found.groups()
    what = re.sub(r"^data race: ", "", what)
    if "common/core/add_bias" in what:
        return f"an output of yours that was never written: {thread}, which adds the bias, {what}"
    return f"{thread} {what}"


def kind_of(message):
    for kind, pattern in FINDINGS:
        if re.search(pattern, message):
            return kind
    return WRONG


def judge(build, source, check, count, timed=None, seconds=None, afterwards=None):
    """The Verdict on the kernel in the file `source`. check, count, timed: {name: problem}. The
    program of one that is right goes to afterwards(verdict, program, folder)."""
    verdict, name = Verdict(), shown(source)
    scratch = os.path.join(build.folder, "exercises")
    os.makedirs(scratch, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        try:
            program = compile_kernel(build, source, folder)
        except Failed as failure:
            verdict.kind, verdict.message = failure.kind, str(failure)
            return verdict
        words = run_words(program, folder, {"--check": check, "--count": count, "--time": timed or {}})
        begun = time.monotonic()
        done = limited(words, folder, None if build.on_gpu else seconds or RUN_SECONDS)
        ended = take_findings(verdict, read_findings(os.path.join(folder, "findings")), program, source)
        usage = os.path.join(folder, "kernel.su")
        if os.path.exists(usage):
            with open(usage, encoding="utf-8") as file:
                verdict.frames = {row[0].split(":", 3)[-1]: int(row[1])
                                  for row in (line.split("\t") for line in file)}
        if done.returncode == -signal.SIGALRM and verdict.kind != ENDLESS:
            verdict.kind = ENDLESS
            verdict.message = f"{name}: has come to no end after {time.monotonic() - begun:.0f} s"
        elif done.returncode != 0 and not verdict.kind:
            why = SIGNALS.get(-done.returncode) or ": ".join(
                [f"ended with status {done.returncode}"] + done.stdout.splitlines()[-1:])
            verdict.kind, verdict.message = CRASH, f"{name}: {why}"
        elif not ended and not verdict.kind:
            verdict.kind, verdict.message = CRASH, f"{name}: ends the process before it is judged"
        if afterwards and not verdict.kind:
            afterwards(verdict, program, folder)
    return verdict


def run_words(program, folder, asked):
    words = [program, "--findings", os.path.join(folder, "findings")]
    for option, rows in asked.items():
        if rows:
            path = os.path.join(folder, option.strip("-") + ".csv")
            write_problems(path, rows)
            words += [option, path]
    return words


def take_findings(verdict, findings, program, source):
    """Enters them in the verdict. Whether the program came to its end."""
    ended = placed = False
    for finding in findings:
        if "checked" in finding:
            if finding["pass"]:
                verdict.checked += 1
            else:
                verdict.kind = kind_of(finding["message"])
                verdict.message = plainer(finding["message"])
                verdict.problem = f"{finding['checked']}: {finding['shape']}"
        elif "counted" in finding:
            verdict.counted[finding["counted"]] = finding["kernels"]
            verdict.lines[finding["counted"]] = cost_by_line(finding["kernels"], program, source)
        elif "timed" in finding:
            verdict.timed[finding["timed"]] = finding
        elif "crash" in finding:
            places = source_lines(program, finding["code"])
            own = own_places([place for code in finding["code"] for place in places[code]], source)
            if not verdict.kind or own and not placed:  # of several threads, one in the learner's code
                placed = bool(own)
                endless = finding["crash"] in (signal.SIGALRM, signal.SIGUSR1)
                verdict.kind = ENDLESS if endless else CRASH
                verdict.message = f"{own[0] if own else shown(source)}: {SIGNALS[finding['crash']]}"
        elif "error" in finding:
            verdict.kind, verdict.message = CRASH, f"{shown(source)}: {finding['error']}"
        elif "end" in finding:
            ended = True
    return ended


def cost_by_line(kernels, program, source):
    """[Line], the costliest first. Those of common/ (the bias pass) are left out."""
    places = [place for kernel in kernels for place in kernel["places"]]
    lines = source_lines(program, [place["code"] for place in places]) if places else {}
    costs = {}
    for place in places:
        for where in own_places(lines.get(place["code"], []), source)[:1]:  # the innermost
            line = costs.setdefault((where, place["shared"]), Line(where, place["shared"], 0, 0))
            line.requests += place["requests"]
            line.cost += place["cost"]
    return sorted(costs.values(), key=lambda line: -line.cost)
