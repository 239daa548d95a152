"""Configuring and building build/PRESET: one ./ladder at a time in each, shown as it goes, and only
what has to be done again."""
import contextlib
import fcntl
import glob
import json
import os
import re
import shutil
import subprocess
import sys

from common.command import machine
from common.command.machine import say
from common.show import files
from common.show.files import ROOT
from common.show.support import fail

BUILD = os.path.join(ROOT, "build")
STAMP, DATES = "configured.json", "dates.json"
SOURCES = (".cpp", ".cu", ".cuh", ".h", ".hpp", ".inc", ".inl", ".py", ".txt", ".cmake")
# What CMake and the compilers take from the environment.
ENVIRONMENT = re.compile(r"CMAKE_\w+|CUDA(CXX|ARCHS|FLAGS|HOSTCXX|_PATH)|CXX|(CXX|LD)FLAGS|CPATH|"
                         r"CPLUS_INCLUDE_PATH|LIBRARY_PATH")


class Lacking(Exception):
    """A preset can't be configured: this machine lacks something, which the message names."""


def folder(preset, *names):
    return os.path.join(BUILD, preset, *names)


# ---- Steps -----------------------------------------------------------------------------------------


def own_folder(preset):
    """Makes build/PRESET. What a run with sudo has left there, a user can't write to."""
    if os.path.lexists(BUILD) and not os.path.isdir(BUILD):
        fail(f"{BUILD} is a file, or a link to what is gone: move it away")
    with contextlib.suppress(OSError):
        os.makedirs(folder(preset), exist_ok=True)
    for path in (BUILD, folder(preset), *glob.glob(glob.escape(folder(preset)) + "/*")):
        if not os.access(path, os.W_OK) and not os.path.islink(path):
            sudo = os.path.exists(path) and os.access(ROOT, os.W_OK)
            fail(f"{path} can't be written to" + (
                f", from an earlier run with sudo? Then: sudo chown -R $(id -un) '{BUILD}'" if sudo else
                ": copy the repository to a folder of your own"))


@contextlib.contextmanager
def in_turn(preset, step):
    """One ./ladder at a time works in build/PRESET. Gives the lock, which what works there for it holds as
    well: a build that goes on when its ./ladder was killed."""
    own_folder(preset)
    with open(folder(preset, ".lock"), "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another ./ladder works in build/{preset}: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield lock
        except OSError as error:
            error.filename = error.filename or folder(preset)  # a write that fails names none
            raise
        except KeyboardInterrupt:
            print(file=sys.stderr)
            say(f"interrupted while {step} build/{preset}; the next call goes on from there")
            sys.exit(130)
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)  # for all: a server that the compiler has started would keep it


def logged(lock, log, step, *command, **options):
    """Output to the log, and to a terminal as a line that changes. Gives the command's status."""
    watched = sys.stderr.isatty()
    with open(log, "w", buffering=1, encoding="utf-8") as file, \
            machine.child(*command, whole=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, errors="replace", pass_fds=[lock.fileno()],
                          **options) as process:
        for line in process.stdout:
            file.write(line)
            if watched:
                width = shutil.get_terminal_size().columns - 1
                print("\r\033[K" + f"{step}: {line.rstrip()}"[:width], end="", file=sys.stderr,
                      flush=True)
    if watched:
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    return machine.status_of(process)


def need_room(preset):
    """Raises OSError where the disk is full: CMake then finds that a library doesn't work."""
    path = folder(preset, ".room")
    try:
        with open(path, "wb") as file:
            file.write(bytes(1 << 20))
    except OSError as error:
        error.filename = folder(preset)
        raise
    finally:
        with contextlib.suppress(OSError):
            os.remove(path)


def failed(preset, name, what):
    """Shows why."""
    need_room(preset)
    log, said = folder(preset, name), text_of(preset, name)
    if ours := re.search(r"^CMake Error at \S*(?:CMakeLists\.txt|common/command/cmake/\S+):\d+ \(message\):\n"
                         r"((?:  .*\n|\n(?=  ))+)", said, re.MULTILINE):
        fail(" ".join(ours[1].split()))  # says all, in our words
    sys.stderr.writelines(said.splitlines(keepends=True)[-40:])
    fail(f"{what} failed, the whole log is in {log}")


# ---- Configuring -----------------------------------------------------------------------------------


def text_of(preset, name):
    """A file of build/PRESET; nothing where it can't be read. What a full disk or a power cut has left of one
    is as good as none: it is made anew."""
    try:
        return files.read(folder(preset, name), "replace")
    except OSError:
        return ""


def cached(preset, name):
    found = re.search(rf"^{name}:\w+=(.*)$", text_of(preset, "CMakeCache.txt"), re.MULTILINE)
    return found[1] if found else ""


def needs(preset):
    """The lines of needs.tsv, as far as configuring got."""
    columns, *rows = (line.split("\t") for line in text_of(preset, "needs.tsv").split("\n"))
    whole = {"verdict", "found", "commands"} <= {*columns}  # an older version's have others
    return [dict(zip(columns, row)) for row in rows if whole and len(row) == len(columns)]


def missing(preset, command):
    """What the command uses and this machine lacks."""
    return [need for need in needs(preset) if need["verdict"] == "missing" and
            {"*", command} & set(need["commands"].split(";"))]


def packages(some_needs):
    return sorted({need["package"] for need in some_needs if need["package"]})


def surroundings():
    """What a configuration depends on besides its sources, which the build itself watches."""
    found = {name: value for name, value in os.environ.items() if ENVIRONMENT.fullmatch(name)}
    for name in os.environ.get("CXX", "").split()[:1] or machine.CXX_NAMES:
        path = shutil.which(name)
        found[name] = path and [os.path.realpath(path), os.stat(path).st_mtime]
    return {**found, "nvcc": machine.nvcc(), "python3": sys.executable}


def changes(preset):
    """What has changed since the last configuration that worked: names; None where there was none."""
    try:
        before = json.loads(text_of(preset, STAMP))
    except (RecursionError, ValueError):
        return None
    now = surroundings()
    return sorted(name for name in {*before, *now} if before.get(name) != now.get(name)) \
        if isinstance(before, dict) else None


def is_whole(preset):
    """Whether the configuration is of this folder, and all that it has found is still there."""
    found = [need["found"] for need in needs(preset)]
    return (found and cached(preset, "CMAKE_HOME_DIRECTORY") == ROOT and
            os.access(cached(preset, "CMAKE_MAKE_PROGRAM"), os.X_OK) and
            all(os.path.exists(path) for path in found if path.startswith("/")))


def is_current(preset, command):
    return changes(preset) == [] and is_whole(preset) and not missing(preset, command)


def configure_once(lock, preset, command):
    """The exit status."""
    machine.need_tools(command)
    changed, log = changes(preset), folder(preset, "configure.log")
    words = ["-S", ROOT, "--preset", preset, f"-DPython3_EXECUTABLE={sys.executable}"]
    # What a configuration that failed has found must not decide this one.
    if changed or changed is None and os.path.exists(log) or not is_whole(preset):
        # By the generator of before: another would take objects whose headers it does not know.
        there = os.access(cached(preset, "CMAKE_MAKE_PROGRAM"), os.X_OK)
        words += ["--fresh", "-G", there and cached(preset, "CMAKE_GENERATOR") or (
            "Ninja" if shutil.which("ninja") else "Unix Makefiles")]
    since = f", since {', '.join(changed)} changed" if changed else ""
    say(f"configuring build/{preset}{since}")
    for path in (folder(preset, STAMP), folder(preset, "needs.tsv")):
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)
    status = logged(lock, log, f"configuring build/{preset}", machine.cmake(), *words,
                    env={**os.environ, "CXX": machine.find_compiler()})
    if status == 0:
        with open(folder(preset, STAMP), "w", encoding="utf-8") as file:
            json.dump(surroundings(), file)
    else:
        need_room(preset)
    return status


def need_whole_stages(command):
    """A copy of a stage that was renamed by half would count as the original; a kernel that is gone gives
    CMake's own errors. `sim` builds no stage."""
    for stage in files.stage_names():
        lists = re.sub("#.*", "", files.read_existing(os.path.join(ROOT, stage, "CMakeLists.txt"), "replace"))
        for name in re.findall(r"(?<![\w./-])[\w.-]+\.cu\b", lists):
            if not os.path.exists(os.path.join(ROOT, stage, name)):
                fail(f"{stage}/CMakeLists.txt names {name}, which isn't in that folder")
        if command == "sim":
            continue
        sources = sorted(glob.glob(os.path.join(glob.escape(os.path.join(ROOT, stage)), "*.cu")))
        codes = {path: re.sub("//.*", "", files.read(path, "replace")) for path in sources}
        if sources and not any("REGISTER_STAGE" in code for code in codes.values()):
            fail(f"{stage} registers no stage: its kernel needs CONVLADDER_REGISTER_STAGE")
        for path, code in codes.items():
            for name in re.findall(r'REGISTER_STAGE\(\s*\{\s*"([^"]*)"', code):
                if name != stage and not name.startswith(f"{stage}_"):
                    fail(f"{os.path.relpath(path, ROOT)} registers the stage {name}, not {stage}: a copy of "
                         "a stage needs its own name in CONVLADDER_REGISTER_STAGE")


def configure(preset, command, demanded="", optional=False):
    """Configures where something has changed since the last time; installs what is missing for the
    command, and configures anew. Fails where something required, or demanded by the command, stays
    missing; raises Lacking instead if the preset is optional."""
    need_whole_stages(command)
    own_folder(preset)
    if is_current(preset, command):
        return
    with in_turn(preset, "configuring") as lock:
        if is_current(preset, command):  # another ./ladder has done it
            return
        status = configure_once(lock, preset, command)
        reason, wanted = "", packages(missing(preset, command))
        if wanted:
            reason = machine.install(*wanted)
            status = configure_once(lock, preset, command)
            wanted = packages(missing(preset, command))
    lacks = [need for need in missing(preset, command)
             if need["commands"] == "*" or need["name"] == demanded]
    if lacks:
        names = ", ".join(need["name"] for need in lacks)
        text = f"missing here: {names}{reason and '; ' + reason}"
        if optional:
            raise Lacking(text)
        remedies = [f"apt-get install {' '.join(wanted)}"] if wanted else []
        fail(f"{text}. Get all that {command} needs: " + "; ".join(
            remedies + [need["remedy"] for need in lacks if not need["package"]]))
    if status:
        failed(preset, "configure.log", "configuring")
    if wanted:
        say(f"going on without {' '.join(wanted)}{reason and ': ' + reason}")


def is_broken(preset, said):
    """Whether the build itself is no good: a full disk or a power cut has left half of it."""
    text = text_of(preset, "build.ninja") or text_of(preset, "Makefile")
    return (re.search("^ninja: error: (loading|build.ninja|CMakeFiles/)", said, re.MULTILINE) or
            not re.search(r"^default all$|^\.PHONY : cmake_check_build_system$", text, re.MULTILINE))


def date_anew(preset):
    """Gives sources whose date has changed, but lies before the last build, today's: a backup that was put
    back keeps its own, and builds make anew only what is newer. Returns the dates now."""
    try:
        before, built = json.loads(text_of(preset, DATES)), os.stat(folder(preset, DATES)).st_mtime_ns
        before = before if isinstance(before, dict) else {}
    except (OSError, RecursionError, ValueError):
        before, built = {}, 0
    dates = {}
    for top in glob.glob("[0-9][0-9]_*/", root_dir=ROOT) + ["common"]:
        for path in (os.path.join(where, name) for where, _, names in os.walk(os.path.join(ROOT, top))
                     for name in names if name.endswith(SOURCES) or "." not in name):
            with contextlib.suppress(OSError):  # a link to nothing, or what is another's
                date = os.stat(path).st_mtime_ns
                if before.get(path, date) != date <= built:
                    os.utime(path)
                dates[path] = os.stat(path).st_mtime_ns
    return dates


def build(preset, command, *targets, **options):
    """Builds the targets, if any, after configure(**options); what is broken is configured anew, once."""
    for repairs in (True, False):
        configure(preset, command, **options)
        if not targets:
            return
        say(f"building build/{preset}")
        with in_turn(preset, "building") as lock:
            dates = date_anew(preset)
            if not logged(lock, folder(preset, "build.log"), f"building build/{preset}",
                          cached(preset, "CMAKE_COMMAND"), "--build", folder(preset),
                          "--parallel", str(os.cpu_count()), "--target", *targets):
                files.write(folder(preset, DATES), json.dumps(dates))
                for warning in re.findall(rf"^{re.escape(ROOT)}/(\d\d_\S+: warning: .*uninitialized\])",
                                          text_of(preset, "build.log"), re.MULTILINE):
                    say(warning)
                return
            said = text_of(preset, "build.log")
            if not repairs or not is_broken(preset, said):
                break
            os.remove(folder(preset, STAMP))
    unknown = re.search(r"(?:No rule to make target|unknown target) '([^']+)'", said)
    if unknown and unknown[1] in targets:
        fail(f"build/{preset} has no program '{unknown[1]}'", 2)
    failed(preset, "build.log", f"building build/{preset}")
