"""The commands of ./ladder: each sees to what it needs here, builds that, and calls the program, CTest
or a module of common/."""
import argparse
import contextlib
import glob
import importlib
import itertools
import json
import os
import re
import shutil
import signal
import subprocess

from common.command import doctor, testing
from common.command.building import Lacking, build, configure, folder
from common.command.machine import child, foreground, gpus, nvcc, python, say, status_of
from common.show import files, floors
from common.show.files import ROOT
from common.show.support import REPORT, fail, run_main, stage_called, tell

USAGE = """usage: ./ladder COMMAND [--backend gpu|sim] [OPTION...]

  run      the stages on a photograph through AlexNet's first layer: table and pictures; --machine GPU: with
           the least time that they take on it (h200, t4, rtx4090 ...)
  test     every stage on every problem, races, planted bugs, the host's code: minutes; --all: all that
           there is; --minutes N: no part of it begins later; --stage NAME, as often as you
           like: that stage's tests alone
  check    the stages against the reference on any problem: --shape NAME, --n 2 --c 3 ...,
           --shapes FILE.csv
  bench    timing on a GPU, cold and warm, beside cuDNN and PyTorch: --shape NAME,
           --shapes FILE.csv, --stage NAME, --competitors all|none|cudnn,pytorch; --machine FILE
           writes the GPU's rates
  profile  memory traffic per stage, and the least time that it takes on a GPU (--machine GPU):
           Nsight Compute on one, counted in the simulator without; options as for check; --show: a
           page with every warp's addresses, line by line; --trace FILE: the same as JSON
  sim      any CUDA program without a GPU: sim FILE.cu [--count] [-- ARGUMENT...] runs it, and finds races and
           bad accesses with their lines
  diff     a stage and the one before it, the code that differs and the counters of both: diff 04;
           options as for profile
  exercise kernels to write, judged by the checks and by exact counters; --help says more
  new      a stage of your own, right from the start: new 99_my_idea
  variant  small changes of the kernels, tried: the lessons' experiments, before and after; --kind bug:
           planted bugs, and what catches them
  bugs     as variant --kind bug: all of them, or those of --stage NAME
  sanitize the stages under compute-sanitizer's four tools, on a GPU
  report   one page to look at, tables and plots in build/report/, from the JSON files of run, bench
           and profile; --open shows the page
  site     these pages with navigation and search, in build/site/, for a browser without a server; --open
           shows them
  build    a program by name: ./ladder build PRESET TARGET... makes build/PRESET/bin/TARGET;
           the presets are gpu, sim, sim-count and sim-asan
  doctor   what this machine has, what it lacks, and how to get it

The backend is the GPU where there is one (and nvcc), else the simulator. A stage's name may be cut
short: --stage 04. ./ladder COMMAND --help says more of one.
"""
PRESETS = ("gpu", "sim", "sim-count", "sim-asan")
REPEATED = re.compile(r"(run|check|bench|profile|diff|test|sanitize) --(stage|shape)|report --profile|"
                      r"sanitize --tool|exercise --predict")
WRITTEN = re.compile(r"\w+ --(json|output|grade|keep)|profile --trace|bench --machine|report --out")
MEASURED = {"bench": "(bench|layers|steps)_", "profile": "profile_", "variant": "experiments_",
            "exercise": "exercises_"}  # in docs/results: whose place new --json of the command may take
OWN_PLACES = r"(?!build/|exercises\.mine/)\S+/|[A-Z]\S*$|ladder$|pyproject\.toml$"
CMAKES_OWN = "clean|codegen|depend|edit_cache|help|install|list_install_components|rebuild_cache|test"
OF_THE_PROGRAM = ("run", "check", "bench", "profile")
MODULES = {"diff": "common.show.diff", "exercise": "common.variants.exercise",
           "new": "common.command.new_stage", "variant": "common.variants.variant",
           "bugs": "common.variants.variant", "sanitize": "common.measure.sanitize",
           "report": "common.show.report", "site": "common.command.site",
           "sim": "common.command.sim"}


def module(name, *words):
    """Runs a module of common/. NVIDIA's other tools lie beside nvcc, whether its folder is in PATH."""
    path = os.pathsep.join([os.environ["PATH"], os.path.dirname(nvcc() or "/usr/bin/nvcc")])
    return foreground(*python(name, *words), env={**os.environ, "PATH": path})


def need_folder(command, stage):
    if stage not in files.stage_names():
        fail(f"{command} {stage}: no stage's folder; there are {', '.join(files.stage_names())}", 2)


def paragraph(command):
    """What USAGE says of a command."""
    lines = re.search(rf"^  {command} .*\n(   .*\n)*", USAGE, re.MULTILINE)[0]
    return f"usage: ./ladder {command} [OPTION...]\n\n{lines}"


def help_of(command):
    """Configures nothing, and installs nothing."""
    if command in ("bugs", *OF_THE_PROGRAM) or command not in MODULES:
        tell(paragraph(command))
    if command in MODULES:
        if command == "diff":
            return module(MODULES[command], "", "--help")
        return module(MODULES[command], "--help")
    if command in OF_THE_PROGRAM:
        for preset in PRESETS:
            for name in ("convladder", *files.stage_names()):
                program = folder(preset, "bin", name)
                if os.path.exists(program) and foreground(program, command, "--help") == 0:
                    return 0
        print("Nothing is built here yet: after the first ./ladder run this lists every option.")
    return 0


def program_with(words):
    """The program that has the stages which the words name. One stage's own takes a third less to compile
    than that which has them all."""
    asked = {name for word, name in itertools.pairwise(words) if word == "--stage"}
    own = [stage for stage in files.stage_names() for name in asked if f"{name}_".startswith(f"{stage}_")]
    return own[0] if len(own) == len(asked) == 1 else "convladder"


class Commands:
    """The commands, on the backend that was asked for or else is best here."""

    def __init__(self, backend):
        self.backend, self.nvcc = backend, nvcc()
        there = [] if backend == "sim" else gpus()
        self.chosen = backend or ("gpu" if there and self.nvcc else "sim")
        self.on_any_gpu = self.chosen == "gpu" and not backend
        if backend == "gpu" and not there:
            fail("--backend gpu: no GPU here (nvidia-smi lists none, or CUDA_VISIBLE_DEVICES hides it)")
        if backend == "gpu" and not self.nvcc:
            fail("--backend gpu: nvcc not found (CUDA Toolkit, or set CUDACXX)")
        if not backend and there and not self.nvcc:
            say("there is a GPU but no nvcc: using the simulator")

    def program(self, command, *words):
        program = program_with(words)
        build(self.chosen, command, program)
        damaged = f"if it is damaged: rm -r build/{self.chosen}"
        end, ends = os.pipe()  # where the program says that it has come to its end
        try:
            status = foreground(folder(self.chosen, "bin", program), command, *words, pass_fds=[ends],
                                env={**os.environ, "CONVLADDER_ENDS": str(ends)})
        except OSError as error:
            fail(f"{error.filename}: {error.strerror}; {damaged}")
        os.close(ends)
        if status == 0 and not os.read(end, 1):
            fail("the program has ended before it was done: a stage has ended the process")
        if status == 128 + signal.SIGSEGV:
            say(damaged)
        return status

    def counting_program(self, *words):
        """The program that profiles: of the GPU, or of the simulator that counts."""
        preset, program = "gpu" if self.chosen == "gpu" else "sim-count", program_with(words)
        build(preset, "profile", program)
        return folder(preset, "bin", program)

    def need_gpu(self, command, instead=""):
        if self.chosen != "gpu":
            fail(f"{command} needs a GPU, and nvcc{instead}", 2)

    def run(self, *words):
        own, runs = (argparse.ArgumentParser(add_help=False, allow_abbrev=False) for _ in range(2))
        own.error = lambda message: fail(f"run: {message}", 2)
        own.add_argument("--machine")
        machine, words = own.parse_known_args(words)
        if machine.machine:
            floors.read_machine(machine.machine)  # a bad file is said before anything is measured
        status = self.program("run", *words)
        if machine.machine and not status:
            for name in ("--json", "--output", "--report"):
                runs.add_argument(name)
            runs.add_argument("--once", action="store_true")
            print(flush=True)
            return self.profile("--brief", "--machine", machine.machine, *runs.parse_known_args(words)[1])
        if status or words or self.chosen == "gpu":
            return status
        print(flush=True)
        return self.show_traffic()  # the main job shows that as well

    def show_traffic(self):
        """Counts are the program's, the same every time: made again when one of these is newer."""
        program = self.counting_program()
        table, trace, records = (os.path.join(REPORT, name)
                                 for name in ("traffic.json", "trace.json", "profile.json"))
        made_of = [program, os.path.join(ROOT, "common", "machines", "h200.json"), trace, records]
        with contextlib.suppress(OSError, ValueError, TypeError):  # what a power cut has left is counted anew
            if os.stat(table).st_mtime >= max(os.stat(path).st_mtime for path in made_of):
                lines = "".join(json.loads(files.read(table)))
                say("counted before by the same program (build/report/traffic.json):")
                print(lines, end="")
                return 0
        os.makedirs(REPORT, exist_ok=True)
        lines = []  # shown as they come, and kept if all went well
        with child(*python("common.measure.profile", "--program", program, "--brief", "--trace", trace),
                   stdout=subprocess.PIPE) as process:
            for line in process.stdout:
                print(line, end="", flush=True)
                lines.append(line)
        status = status_of(process)
        if status == 0:
            files.write(table, json.dumps(lines))
        return status

    def check(self, *words):
        return self.program("check", *words)

    def bench(self, *words):
        self.need_gpu("bench", " (profile counts memory traffic without one)")
        status = self.program("bench", *words)
        own = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
        own.add_argument("--json", default=os.path.join(REPORT, "bench.json"))
        own.add_argument("--machine")
        options, _ = own.parse_known_args(words)
        if options.machine is None and os.path.exists(options.json):
            module("common.show.time_tables", options.json)
        return status

    def profile(self, *words):
        if "--show" in words or any(word.split("=")[0] == "--trace" for word in words):
            if self.backend == "gpu":
                fail("--show and --trace are for the simulator: --backend sim", 2)
            self.chosen = "sim"  # addresses are the simulator's, whatever else there is
        return module("common.measure.profile", "--program", self.counting_program(*words), *words)

    def diff(self, *words):
        if not words or words[0].startswith("-"):
            fail("diff needs a stage, before its options: ./ladder diff 04", 2)
        stage = stage_called(words[0])
        need_folder("diff", stage)
        for word in words:
            if (name := word.split("=")[0]) in ("--json", "--trace", "--show", "--machine", "--brief"):
                fail(f"diff prints counts, and {name} is for profile", 2)
        return module(MODULES["diff"], self.counting_program(), stage, *words[1:])

    def exercise(self, *words):
        """Judged by the simulator and by a GPU, as far as they are there."""
        importlib.import_module(MODULES["exercise"]).parse(words)  # its errors come before a build's minutes
        known = map(os.path.basename, glob.glob(glob.escape(ROOT) + "/[0-9][0-9]_*/exercises/*"))
        judged = {"--all", "--measure", "golf", *known} & set(words) or "--tasks" in " ".join(words)
        if not judged or {"--hint", "--reset", "--solution"} & set(words):
            return module(MODULES["exercise"], *words)
        builds, show = [], "--show" in words  # a page is the simulator's, and made by a stage's program
        if "--measure" in words:
            self.need_gpu("exercise --measure")
        elif self.backend != "gpu" or show:
            try:
                build("sim-count", "exercise", "exercise_judge", *["convladder"] * show,
                      optional=self.on_any_gpu and not show)
                builds.append("sim-count")
            except Lacking as lacking:
                say(f"races, unwritten reads and some counters need the simulator; {lacking}")
        if self.chosen == "gpu" and not show:
            build("gpu", "exercise", "exercise_judge")
            builds.append("gpu")
        return module(MODULES["exercise"], *words, "--builds", ",".join(builds))

    def variant(self, *words):
        """Its module builds what it links changed kernels into."""
        backend = self.backend or "sim"  # a GPU only if it is asked for: counts are the simulator's
        if words:
            for preset in ["gpu"] if backend == "gpu" else ["sim", "sim-count"]:
                configure(preset, "bugs")
        return module(MODULES["variant"], "--backend", backend, *words)

    def bugs(self, *words):
        if any(word.startswith("--k") for word in words):
            fail("bugs takes no --kind; ./ladder variant does", 2)
        return self.variant("--kind", "bug", *words)

    def sim(self, *words):
        build("sim-count", "sim", "add")
        return module(MODULES["sim"], *words)

    def sanitize(self, *words):
        self.need_gpu("sanitize", "; without one the counting simulator finds races, stray accesses and "
                      "reads of unwritten memory: ./ladder profile")
        build("gpu", "sanitize", "convladder")
        return module(MODULES["sanitize"], *words)

    def build(self, *words):
        preset = words[0] if words else ""
        if preset not in PRESETS:
            fail(f"build '{preset}': the presets are gpu, sim, sim-count and sim-asan", 2)
        if len(words) < 2:
            fail(f"build {preset}: name a program, or 'all'", 2)
        for word in words[1:]:
            if not re.fullmatch(rf"(?!({CMAKES_OWN})$)\w[\w-]*", word):
                fail(f"build {preset}: '{word}' is no program", 2)
        if preset == "gpu" and not self.nvcc:
            fail("build gpu: nvcc not found (CUDA Toolkit, or set CUDACXX)")
        build(preset, "build", *words[1:])
        return 0

    def test(self, *words):
        parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
        parser.error = lambda message: fail(f"test: {message}; ./ladder test --help", 2)
        parser.add_argument("--all", action="store_true")
        parser.add_argument("--minutes", type=int)
        parser.add_argument("--stage", action="append", default=[])
        options = parser.parse_args(words)
        if options.minutes is not None and (not options.all or options.stage or options.minutes < 0):
            fail("--minutes is for --all without --stage, and not below 0", 2)
        for stage in options.stage:
            need_folder("test --stage", stage)
        return testing.test(options, self.backend, self.chosen)

    def doctor(self, *words):
        if words:
            fail(f"doctor takes no argument '{words[0]}'", 2)
        return doctor.doctor(self.chosen, self.nvcc)


def read(words):
    """(backend, command's words) with stages' whole names. What stands behind -- is another program's."""
    rest, backend, given, seen = [], "", iter(words), set()
    for word in given:
        if word == "--":
            rest += [word, *given]
            break
        name, equals, value = word.partition("=")
        if name in seen and not REPEATED.fullmatch(f"{rest[0] if rest else ''} {name}"):
            fail(f"{name} is given twice", 2)
        seen |= {name} if name.startswith("--") else set()
        if rest and not word or name.startswith("--") and equals and not value:
            fail(f"{name or rest[-1]} needs a value", 2)
        if name not in ("--backend", "--stage"):
            rest.append(word)
            continue
        if not equals:
            value = next(given, None)
            if value is None:
                fail(f"{name} needs a value" + (": gpu or sim" if name == "--backend" else ""), 2)
        if not value:
            fail(f"{name} needs a value", 2)
        if name == "--stage":
            # variant's may be an exercise
            rest += [name, value if value == "auto" or rest[:1] == ["variant"] else stage_called(value)]
        elif value not in ("gpu", "sim"):
            fail(f"--backend = '{value}': must be gpu or sim", 2)
        else:
            backend = value
    return backend, rest


def is_own(path, but):
    """Whether the file is this repository's: git's, a build's, or tracked; where git doesn't say, by its
    place."""
    here = os.path.relpath(path, ROOT)
    if here.startswith("../"):
        return False
    if re.match(r"\.git\b|build/(gpu|sim)", here):
        return True
    if but and re.fullmatch(but, here):
        return False
    asked = ["git", "-c", "safe.directory=*", "-C", ROOT, "ls-files", "--", f":(literal){here}"]
    own = {name: value for name, value in os.environ.items() if name[:4] != "GIT_"}
    done = subprocess.run(asked, env=own, capture_output=True, check=False) if \
        shutil.which("git") else None
    if done is None or done.returncode:
        return bool(re.match(OWN_PLACES, here))
    return bool(done.stdout)


def keep_own_files(command, words):
    """No file of this repository is written to, and none that the command reads."""
    named = []
    for word, following in zip(words, [*words[1:], ""]):
        name, equals, value = word.partition("=")
        value = value if equals else following
        path = os.path.realpath(value + "/index.html" * (name == "--out"))
        if name.startswith("--") and os.path.isfile(path):
            named.append((name, value, path, bool(WRITTEN.fullmatch(f"{command} {name}"))))
    for name, value, path, written in named:
        if not written:
            continue
        for other, _, read_path, also_written in named:
            if not also_written and path == read_path:
                fail(f"{name} and {other} are the same file, {value}: it would be overwritten", 2)
        if path.endswith((".c", ".cc", ".cpp", ".cu", ".cuh", ".cxx", ".h", ".hpp")):
            fail(f"{name} {value}: a source would be overwritten", 2)
        may_renew = ""
        if (command, name) == ("bench", "--machine"):
            may_renew = r"common/machines/[^/]*\.json"
        elif name == "--json" and command in MEASURED:
            may_renew = rf"docs/results/{MEASURED[command]}\w*\.json"
        if is_own(path, may_renew):
            fail(f"{name} {path}: a file of this repository would be overwritten", 2)


def main(words):
    # What make, CMake or a compiler's options give a meaning of their own, quoted or not.
    if re.search(r'[#;:,$"\\%\x00-\x1f\x7f]', ROOT):
        fail(f"a build can't work in '{ROOT}': make and CMake stumble over these characters", 2)
    try:
        os.getcwd()
    except FileNotFoundError:
        fail("the current folder is gone: cd to another", 2)
    backend, words = read(words)
    command, *words = words or ["help"]
    if command in ("help", "--help", "-h"):
        tell(USAGE.rstrip())
        return 0
    if command not in re.findall(r"^  (\w+) ", USAGE, re.MULTILINE):
        fail(f"unknown command '{command}' (./ladder alone lists them)", 2)
    own = words[:words.index("--")] if "--" in words else words
    if {"--help", "-h"} & set(own):
        return help_of(command)
    keep_own_files(command, own)
    if command in ("new", "report", "site"):  # nothing is built for them
        return module(MODULES[command], *words)
    return getattr(Commands(backend), command)(*words)


if __name__ == "__main__":
    run_main(main)
