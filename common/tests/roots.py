#!/usr/bin/env python3
"""roots.py [--ccache] [MACHINE...]: types the README's commands on bare Debian 12 machines, made by
debootstrap in $ROOTS (default /var/tmp/convladder_roots), and prints what came of each as a table.

Needs root, a network and debootstrap. What it types is the last commit's. With --ccache the host's ccache
spares compiling the same again; without, every machine compiles all that it is asked for. Status 1 if
something ended otherwise than it should.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from common.show.files import ROOT

FOLDER = pathlib.Path(os.environ.get("ROOTS", "/var/tmp/convladder_roots"))
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PASS = "01_naive .* pass$"
DOCTOR, RUN, TEST = "./ladder doctor", "./ladder run", "./ladder test --stage 01"
ALL_THREE = ((0, r"^\./ladder run will install: ", DOCTOR), (0, PASS, RUN),
             (0, "^[1-9][0-9]* passed, 0 failed, [0-9]+ skipped$", TEST))
CCACHE = ("CMAKE_CXX_COMPILER_LAUNCHER=/opt/ccache/ccache CCACHE_DIR=/opt/ccache/files "
          "CCACHE_COMPILERCHECK=content CCACHE_UMASK=000")
# A machine's changes of the base lie in upper/. Packages are fetched once for all.
MOUNTS = """
mount -t overlay overlay root -o lowerdir=../base,upperdir=upper,workdir=work
mount --bind /proc root/proc; mount --bind /dev root/dev
[ -z "$FETCHED" ] || mount --bind ../archives root/var/cache/apt/archives
mkdir -p root/opt/ccache; mount --bind ../ccache root/opt/ccache
"""
# apt's locks are those of fcntl(), which flock(1) does not take.
LOCKED = """perl -e 'use Fcntl; foreach (@ARGV) { open(my $f, ">", $_) or die; push @kept, $f;
my $lock = pack("s s x4 q q l x4", F_WRLCK, 0, 0, 0, 0); fcntl($f, F_SETLK, $lock) or die; } sleep 60;' \
/var/lib/dpkg/lock-frontend /var/lib/dpkg/lock /var/lib/apt/lists/lock & sleep 1; ./ladder run"""
READ_ONLY = "c=root/home/learner/ConvLadder; mount --bind $c $c; mount -o remount,ro,bind $c\n"
NO_PYTHON = r"printf 'Package: python3*\nPin: release *\nPin-Priority: -1\n' >/etc/apt/preferences.d/none"
FOREIGN = """mkdir /opt/foreign; cd /opt/foreign
printf '#!/bin/sh\\nexec /usr/bin/python3 -I -S "$@"\\n' >python3; chmod +x python3"""
NEEDS = "grep '^found.%s' build/%s/needs.tsv"


class Machine:
    """A root over the base, and what was typed there."""

    checkout = "/home/learner/ConvLadder"

    def __init__(self, name, what, user=None, path=PATH, network=True, mounts=""):
        self.folder = FOLDER / name
        self.user, self.path, self.mounts = user, path, mounts
        self.unshare = ["unshare", "--mount", *([] if network else ["--net"])]
        self.environment = {**os.environ, "FETCHED": "yes" if network else ""}
        self.typed = self.wrong = 0
        shutil.rmtree(self.folder, ignore_errors=True)
        for part in ("upper" + self.checkout, "work", "root"):
            (self.folder / part).mkdir(parents=True)
        shutil.copy("/etc/resolv.conf", FOLDER / "base/etc/resolv.conf")
        subprocess.run(f"git archive HEAD | tar -x -C '{self.folder}/upper{self.checkout}'", shell=True,
                       cwd=ROOT, check=True)
        print(f"| **{name}** | {what} | | |", flush=True)

    def inside(self, command, *prefix):
        """(status, output) of a command as root."""
        script = MOUNTS + self.mounts + 'exec chroot root "$@"'
        done = subprocess.run([*self.unshare, "bash", "-ec", script, "-", *prefix, "bash", "-c", command],
                              cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace", check=False)
        return done.returncode, done.stdout

    def packages(self, names):
        status, output = self.inside("apt-get update -q && "
                                     f"apt-get install -qy --no-install-recommends {names}")
        assert status == 0, output

    def type(self, status, pattern, command):
        """It must end with that status and print that pattern; with status 1 one line of error, no more."""
        words = ["/usr/bin/env", "-i", "HOME=/root", f"PATH={self.path}", *(CCACHE.split() if ccache else [])]
        words += ["setpriv", "--reuid", self.user, "--regid", self.user, "--init-groups"] if self.user else []
        got, output = self.inside(f"cd '{self.checkout}' && {command}", *words)
        self.typed += 1
        (self.folder / f"{self.typed:02}.log").write_text(output, encoding="utf-8")
        right = (got == status and re.search(pattern, output, re.MULTILINE) and
                 (status != 1 or output.count("ladder: error: ") == 1))
        if not right:
            self.wrong += 1
            print("\n".join(output.splitlines()[-20:]), file=sys.stderr)
        shown = (command if "\n" not in command else RUN).replace("|", "\\|")
        verdict = "as it should" if right else "**not as it should**"
        print(f"| | `{shown}` | {got} | {verdict} |", flush=True)
        return output


# Of most machines: (what, options, preparation, packages, what is typed).
MACHINES = {
    "nothing": ("nothing installed", {}, "", "", (
        (0, "^  run +the stages", "./ladder run --help"), *ALL_THREE,
        (0, r"^\./ladder run works here; backend: sim", DOCTOR),
        (0, "12 passed, 0 failed", "./ladder check --shape alexnet_conv1 --n 1"),
        (0, "Build files", "cmake --preset sim"),
        (0, "", "cmake --build --preset sim --target 01_naive test_01_naive"),
        (0, "100% tests passed", "ctest --preset sim -L 01_naive"), (0, PASS, "build/sim/bin/01_naive run"),
        (0, "wrote", "./ladder report"),
        (0, PASS, "ln -s $PWD/ladder /usr/local/bin/ && cd / && CDPATH=/home ladder run"),
        (0, PASS, "env -i ./ladder run"))),
    "only_blas": ("`libblas-dev`, the reference BLAS", {}, "", "libblas-dev",
                  (*ALL_THREE, (0, "libblas", NEEDS % ("CBLAS", "sim")))),
    "no_python": ("no Python to be had: apt-get may not install it", {}, NO_PYTHON, "", (
        (1, "missing here: Python 3.10 or later; apt-get says: .*apt-get install cmake ", RUN),)),
    "apt_locked": ("another program holds apt's locks for a minute", {}, "", "",
                   ((0, "apt is busy", LOCKED), ALL_THREE[2])),
    "foreign_python": ("a Python without modules first in PATH", {"path": "/opt/foreign:" + PATH}, FOREIGN,
                       "python3", (*ALL_THREE, (0, "index.html", "./ladder report"))),
    "only_clang": ("clang as the only compiler", {}, "", "clang", (
        *ALL_THREE, (0, "Clang", NEEDS % ("C++", "sim")), (0, "GNU", NEEDS % ("C++", "sim-count")))),
    "read_only": ("a checkout that can't be written to", {"mounts": READ_ONLY}, "", "python3", (
        (1, "error: .*build can't be written to: copy", RUN),)),
}


def no_sudo():
    machine = Machine("no_sudo", "a user who is neither root nor has sudo", user="learner")
    machine.inside("useradd --create-home learner; chown -R learner /home/learner")
    said = machine.type(1, "missing here: Python 3.10 or later; installing needs root or sudo", RUN)
    machine.packages("python3")
    names = re.search("apt-get install (.*)", said)[1]
    machine.type(1, re.escape(f"apt-get install {names}"), RUN)
    machine.packages(names)
    machine.type(0, r"^\./ladder run works here", DOCTOR)
    machine.type(0, PASS, RUN)
    machine.type(1, "missing here: GoogleTest; installing needs root or sudo.*libgtest-dev$", TEST)
    return machine


def no_network():
    machine = Machine("no_network", "no network", network=False)
    machine.type(1, "no network.*apt-get install cmake g.. libboost-context-dev .* python3$", RUN)
    machine.unshare, machine.environment["FETCHED"] = ["unshare", "--mount"], "yes"
    machine.packages("python3 cmake g++ make nlohmann-json3-dev libcli11-dev libfmt-dev libstb-dev")
    machine.unshare, machine.environment["FETCHED"] = ["unshare", "--mount", "--net"], ""
    machine.type(1, "no network.*apt-get install libboost-context-dev libopenblas-dev$", RUN)
    return machine


def bare(name):
    what, options, preparation, packages, lines = MACHINES[name]
    machine = Machine(name, what, **options)
    machine.inside(preparation)
    if packages:
        machine.packages(packages)
    for line in lines:
        machine.type(*line)
    return machine


def make_base():
    if not (FOLDER / "base/made").exists():
        shutil.rmtree(FOLDER / "base", ignore_errors=True)
        subprocess.run(["debootstrap", "--variant=minbase", "bookworm", FOLDER / "base"], stdout=2,
                       check=True)
        (FOLDER / "base/etc/dpkg/dpkg.cfg.d/fast").write_text("force-unsafe-io\n")  # it is thrown away
        (FOLDER / "base/made").touch()
    for folder in ("archives/partial", "ccache/files"):
        (FOLDER / folder).mkdir(parents=True, exist_ok=True)
    if ccache:  # with its libraries, which the machines lack
        (FOLDER / "ccache/files").chmod(0o777)
        program = shutil.which("ccache")
        libraries = re.findall(r"/\S+", subprocess.run(["ldd", program], capture_output=True, text=True,
                                                       check=True).stdout)
        for path in (program, *libraries):
            shutil.copy(path, FOLDER / "ccache" / ("program" if path == program else os.path.basename(path)))
        (FOLDER / "ccache/ccache").write_text(
            "#!/bin/sh\nexec /opt/ccache/ld-linux-x86-64.so.2 --argv0 ccache --library-path /opt/ccache "
            '/opt/ccache/program "$@"\n')
        (FOLDER / "ccache/ccache").chmod(0o755)


ccache = "--ccache" in sys.argv
chosen = [word for word in sys.argv[1:] if word != "--ccache"] or [*MACHINES, "no_sudo", "no_network"]
for each in chosen:
    if each not in (*MACHINES, "no_sudo", "no_network"):
        sys.exit(f"roots.py: there is no '{each}', but {', '.join(MACHINES)}, no_sudo, no_network")
if os.geteuid() != 0:
    sys.exit("roots.py: needs root")
make_base()
print("| machine | typed | status | |\n| --- | --- | --: | --- |")
wrong = sum((globals().get(each) or (lambda each=each: bare(each)))().wrong for each in chosen)
print(f"{wrong} not as they should be", file=sys.stderr)
sys.exit(1 if wrong else 0)
