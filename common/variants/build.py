"""A configured preset as a source of commands: how it compiles a kernel, and how it links a program. One
kernel's object then takes another's place. And how what comes of it is run: with limits.
"""
import contextlib
import functools
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile

from common.command.building import cached
from common.show import files
from common.show.files import ROOT

EXEMPLAR = "01_naive/naive.cu"  # every kernel is compiled as this one is
HOPPER, HOPPER_HEADER = "14_warpgroups/warpgroups.cu", "common/core/hopper.h"
# As the build has .cu files translated.
TRANSLATE = [sys.executable, "-B", os.path.join(ROOT, "common/simulator/translate.py")]
MOST_LOAD = 4  # times the seconds, on a machine that others keep busy
OUTPUT_KB = 64 << 10


class BuildError(Exception):
    """This machine's fault, or the build's: not that of the kernel that is compiled."""


class Failed(Exception):
    """What was compiled or run is at fault; the message has its last words."""

    def __init__(self, message, kind=""):
        super().__init__(message)
        self.kind = kind


@functools.cache
def sandbox():
    """The words before a command that is to see no network, no other process, no environment, and of the
    files only the system's programs and libraries: bubblewrap's. None where it isn't there, or may not."""
    words = ["bwrap", "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--clearenv",
             "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    for path in ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/alternatives"):
        words += ["--ro-bind-try", path, path]
    with contextlib.suppress(OSError):
        if subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0:
            return words
    return None


def innermost(process):
    """Follows a process that only waits for another, and so on, to the last one's number."""
    while True:
        children = files.read_existing(f"/proc/{process}/task/{process}/children").split()
        if not children:
            return process
        process = int(children[0])


def wait(process, seconds):
    """Its status. Time is up when it has had so many seconds of a processor: on a busy machine that takes
    longer, up to MOST_LOAD times. Raises TimeoutExpired."""
    for turn in range(1, MOST_LOAD + 1):
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            state = files.read_existing(f"/proc/{innermost(process.pid)}/stat")
            used = state.rpartition(")")[2].split()[11:13]  # of the program, and of the system for it
            if turn == MOST_LOAD or not used or sum(map(int, used)) >= seconds * os.sysconf("SC_CLK_TCK"):
                raise
    return None


def run_limited(words, folder=ROOT, said="", seconds=None, memory=None, sealed=None):
    """The CompletedProcess, with all that it printed; `said` is its standard input. With limits on time and
    memory (bytes) it gets SIGALRM when time is up, and its returncode is -SIGALRM; nothing in its session
    outlives it. `sealed`: it runs in the sandbox, if there is one, and sees this folder."""
    walls = sealed and sandbox()
    if walls:
        words = [*walls, "--ro-bind", sealed, sealed, "--chdir", sealed, *words]
    limits = ["ulimit -c 0"]
    if memory:
        limits.append(f"ulimit -v {memory >> 10} -f {OUTPUT_KB}")
    if seconds:
        limits.append(f"ulimit -t {int(seconds * os.cpu_count()) + 2}")
        words = ["setpriv", "--pdeathsig", "KILL"] + words  # it ends with us
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        with subprocess.Popen(["bash", "-c", "; ".join(limits) + '; exec "$@"', "bash"] + words, cwd=folder,
                              stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT,
                              start_new_session=True) as process:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(said.encode())
                process.stdin.close()
            try:
                status = wait(process, seconds)
            except subprocess.TimeoutExpired:
                status = -signal.SIGALRM
                with contextlib.suppress(ProcessLookupError):
                    os.kill(innermost(process.pid), signal.SIGALRM)  # the judge says where it stands
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(2)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        if walls and status > 128:  # bubblewrap's word for a signal
            status = 128 - status
        output.seek(0)
        return subprocess.CompletedProcess(words, status, output.read())


class Build:
    """build/PRESET, which must be configured."""

    def __init__(self, preset):
        self.preset = preset
        self.folder = os.path.join(ROOT, "build", preset)
        self.on_gpu = preset == "gpu"
        self._links = {}

    def path(self, program):
        return os.path.join(self.folder, "bin", program)

    def exemplar(self, kind):
        """Of the simulator: the source that is compiled as a "kernel" is, or a "program"."""
        return os.path.join(self.folder, "common", "simulator", kind + ".cpp")

    def make(self, *targets):
        """Builds the targets. Raises BuildError, with what the build printed."""
        done = run_limited([cached(self.preset, "CMAKE_COMMAND"), "--build", self.folder, "--parallel",
                    str(os.cpu_count()), "--target", *targets])
        if done.returncode:
            raise BuildError(f"{done.stdout}\nbuilding {' '.join(targets)} failed")

    def compile_words(self, exemplar):
        """(folder, words): where this build compiles a source, and how, without source and output."""
        path = os.path.join(self.folder, "compile_commands.json")
        for entry in json.loads(files.read(path)):
            if entry["file"] == exemplar:
                words = shlex.split(entry["command"])
                words[words.index("-o"):words.index("-o") + 2] = []
                return entry["directory"], [word for word in words if word not in ("-c", entry["file"])]
        raise BuildError(f"{path} has no {exemplar}")

    def compile(self, source, output, before=(), after=(), **limits):
        """Compiles a source, with the words `before` and `after` the build's own options: for Hopper alone if
        it includes that header."""
        hopper = HOPPER_HEADER in files.read(source)
        exemplar = os.path.join(ROOT, HOPPER if hopper else EXEMPLAR)
        folder, (compiler, *words) = self.compile_words(exemplar if self.on_gpu else self.exemplar("kernel"))
        translate = [] if self.on_gpu else TRANSLATE
        if not source.endswith(".cu"):  # a library's file, which isn't translated
            after = [*after, "-UCONVLADDER_TRANSLATED"]
        return run_limited([*translate, compiler, *before, *words, *after, "-o", output, "-c", source],
                           folder, **limits)

    def link_words(self, target, objects, replaced, program, first=True):
        """(folder, words): links bin/`target` as `program`, without the kernel `replaced` (the name of its
        source), and with `objects` first, so that their definitions win, or last, so that none does."""
        if target not in self._links:
            self._links[target] = self._read_link(target)
        folder, words = self._links[target]
        own = [word for word in words if word.endswith(f"/{replaced}.o")]
        if len(own) != 1:
            raise BuildError(f"{self.folder} links {replaced} {len(own)} times into {target}")
        place = next(i for i, word in enumerate(words) if word.endswith(".o"))
        words = [word for word in words if word != own[0]]
        if first:
            words[place:place] = objects
        else:
            words += objects + [word for word in words if word.endswith(".a")]
        words[words.index("-o") + 1] = program
        return folder, words

    def link(self, *what, **how):
        folder, words = self.link_words(*what, **how)
        return run_limited(words, folder)

    def _read_link(self, target):
        for folder, _, names in os.walk(self.folder):  # of make
            if folder.endswith(f"/CMakeFiles/{target}.dir") and "link.txt" in names:
                return (os.path.dirname(os.path.dirname(folder)),
                        shlex.split(files.read(os.path.join(folder, "link.txt"))))
        listed = run_limited([cached(self.preset, "CMAKE_MAKE_PROGRAM"), "-C", self.folder, "-t", "commands",
                              target])
        commands = [part for line in listed.stdout.splitlines() for part in line.split("&&")
                    if f" -o bin/{target} " in part]
        if len(commands) != 1:
            raise BuildError(f"how {self.folder} links {target} can't be told")
        return self.folder, shlex.split(commands[0])
