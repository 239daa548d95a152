"""What must be known of this machine before CMake looks: its compiler, CMake, make and GPUs."""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys

from common.show.files import ROOT
from common.show.support import fail

FOLDER = os.path.join(ROOT, "common", "command")
LEAST_CMAKE = (3, 25)
SECONDS = 10  # for what another program is asked
CXX_NAMES = ("c++", "g++", "clang++")


def say(text):
    print(f"ladder: {text}", file=sys.stderr, flush=True)


def printed(*command):
    """What a command prints; nothing where it fails, hangs, or is not there."""
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                                   stderr=subprocess.DEVNULL, errors="replace")
        said, _ = process.communicate(timeout=SECONDS)
    except OSError:
        return ""
    except subprocess.TimeoutExpired:
        process.kill()  # and it is not waited for: what hangs in a driver does not end
        say(f"warning: {command[0]} gave no answer within {SECONDS} seconds: going on without it")
        return ""
    return said if process.returncode == 0 else ""


def python(name, *words):
    """The command that runs a module of common/: no installed package is needed, and no checkout's but
    ours."""
    return [sys.executable, "-SBE", os.path.join(FOLDER, "start.py"), name, *words]


@contextlib.contextmanager
def child(*command, whole=False, **options):
    """A process, whose output is text; a byte in it that is none, as in a file's name, is printed as it was.
    Whoever ends this one ends that one first, `whole` with all that it has started, which Ctrl-C alone would
    not reach then."""
    process, numbers = None, []

    def pass_on(number, _=None):
        numbers.append(number)
        with contextlib.suppress(ProcessLookupError):
            if process and process.returncode is None:
                (os.killpg if whole else os.kill)(process.pid, number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGHUP, signal.SIGTERM)
              if signal.getsignal(number) != signal.SIG_IGN}
    try:
        with subprocess.Popen(command, start_new_session=whole,
                              **{"errors": "surrogateescape", **options}) as process:
            for number in numbers[:1]:  # it came before there was a process
                pass_on(number)
            try:
                yield process
            except KeyboardInterrupt:
                if whole:
                    pass_on(signal.SIGINT)
                raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if numbers:
        sys.exit(128 + numbers[0])


def status_of(process):
    """What a shell has as the status of one that has ended; says which signal has ended it."""
    number = -process.returncode
    if number <= 0:
        return process.returncode
    if number not in (signal.SIGINT, signal.SIGPIPE):
        name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
        say(f"{os.path.basename(process.args[0])} was ended by {name}")
    return 128 + number


def foreground(*command, **options):
    """Runs a command that has the terminal; its status, or with a pipe what it printed. Ctrl-C is
    that command's to answer."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with child(*command, **options) as process:
            said, _ = process.communicate()
    finally:
        signal.signal(signal.SIGINT, before)
    status = status_of(process)
    if status == 128 + signal.SIGINT:
        raise KeyboardInterrupt
    return status if said is None else said


def install(*packages):
    """Whatever of them there is; the reason if that is not all. Without packages: why none can be."""
    return foreground(os.path.join(FOLDER, "install.sh"), *packages, stdout=subprocess.PIPE).strip()


def packages_used_by(command):
    """What Needs.cmake asks for on behalf of a command: before a CMake can find out what is missing."""
    with open(os.path.join(FOLDER, "cmake", "Needs.cmake"), encoding="utf-8") as file:
        needs = re.findall(r" PACKAGE (\S+) (?:REQUIRED|USED_BY ([a-z ]+))", file.read())
    return sorted({name for name, users in needs if not users or command in users.split()})


# ---- Tools -----------------------------------------------------------------------------------------


def cmake():
    """The first in PATH that is new enough: an old one may stand before it."""
    for folder in os.get_exec_path():
        path = os.path.join(folder, "cmake")
        version = re.search(r"(\d+)\.(\d+)", printed(path, "--version"))
        if version and tuple(map(int, version.groups())) >= LEAST_CMAKE:
            return path
    return None


def makes_programs(compiler):
    """A clang without the library of any g++ does not."""
    code = "int main() { try { throw 1; } catch (int) {} }"
    command = f"{compiler} -x c++ - -o /dev/null"  # CXX may hold options
    return subprocess.run(command, shell=True, input=code.encode(), capture_output=True,
                          check=False).returncode == 0


def find_compiler():
    given = os.environ.get("CXX")
    if given and not makes_programs(given):
        fail(f"CXX is '{given}', which makes no program: set it to a C++ compiler")
    return given or next(filter(makes_programs, CXX_NAMES), None)


def lacking_tools():
    """The packages of the tools that configuring itself needs, and are not here."""
    there = {"cmake": cmake(), "g++": find_compiler(),
             "make": shutil.which("ninja") or shutil.which("make")}
    return [package for package, found in there.items() if not found]


def need_tools(command):
    lacking = lacking_tools()
    if lacking:
        reason = install(*lacking)
        lacking = lacking_tools()
        if lacking:  # all at once: nobody should have to type a second line
            fail(f"missing here: {' '.join(lacking)}{reason and '; ' + reason}. Get all that {command} "
                 f"needs: apt-get install {' '.join(packages_used_by(command))}")


# ---- GPUs ------------------------------------------------------------------------------------------


def gpus():
    """'NAME, driver VERSION, compute CAPABILITY' for each; none where CUDA programs see no GPU:
    nvidia-smi lists them all, whatever CUDA_VISIBLE_DEVICES hides."""
    listed = printed("nvidia-smi", "-L")
    if "GPU 0:" not in listed:
        return []
    rows = printed("nvidia-smi", "--query-gpu=name,driver_version,compute_cap", "--format=csv,noheader")
    found = re.sub(r", (\S+), (\S+)$", r", driver \1, compute \2", rows, flags=re.MULTILINE).splitlines()
    # Indices, or beginnings of a UUID; CUDA stops at the first that names no GPU.
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
    visible = (int(first) < len(found) if first.isdecimal() else
               re.match("(GPU|MIG)-", first) and f"UUID: {first}" in listed)
    return found if visible else []


def nvcc():
    """CUDACXX names the program itself; otherwise it is looked for in PATH and in the CUDA Toolkit's
    usual folder."""
    if os.environ.get("CUDACXX"):
        return shutil.which(os.environ["CUDACXX"])
    toolkit = os.path.join(os.environ.get("CUDA_PATH", "/usr/local/cuda"), "bin")
    return shutil.which("nvcc") or shutil.which("nvcc", path=toolkit + ":/usr/local/cuda/bin")


def counter_access():
    """Who may read a GPU's counters here: the driver opens them to everybody, or to those with
    CAP_SYS_ADMIN (bit 21)."""
    try:
        with open("/proc/driver/nvidia/params", encoding="utf-8") as file:
            if "RmProfilingAdminOnly: 0" in file.read():
                return "everybody"
    except OSError:
        return None
    with open("/proc/self/status", encoding="utf-8") as file:
        rights = int(re.search(r"^CapEff:\s*(\w+)", file.read(), re.MULTILINE)[1], 16)
    return "the administrator" if rights >> 21 & 1 else None
