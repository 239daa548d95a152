#!/usr/bin/env python3
"""./ladder on made-up machines: a PATH of stubs that stand for compilers, CMake and apt-get.

A machine has what apt-get has installed, which is what its judge, the stub of CMake, finds.
"""
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ("awk basename bash cat chmod cp cut date df dirname env find flock grep head id ls mkdir mktemp "
         "mv nproc paste printf readlink realpath rm sed seq sleep sort stat stty tail tee touch tr "
         "true wc")
CMAKE = r'''#!/bin/bash
# A machine's CMake, in $MACHINE. Its judge finds what has been installed.
echo "cmake $*" >>"$MACHINE/calls"
case "$*" in
  --version) echo "cmake version 3.25.1"; exit ;;
  *Gpus.cmake*) cat "$MACHINE/gpus" >&2; exit ;;
esac
while [[ $# -gt 0 ]]; do
  case $1 in
    -S) source=$2 ;;
    --preset) build=$source/build/$2 mode=configure ;;
    --build) build=$2 source=${2%/build/*} mode=build ;;
  esac
  shift
done
mkdir -p "$build/bin"
if [[ $mode == build ]]; then
  echo "[1/2] Building one"
  for ((i = 0; i < 200; ++i)); do [[ ! -e $MACHINE/slow ]] && break; sleep 0.05; done
  echo "[2/2] Building two"
  [[ ! -e $MACHINE/broken ]] || { echo "no such thing"; exit 1; }
  printf '#!/bin/bash\necho "convladder of %s: $*"\n' "$source" >"$build/bin/convladder"
  chmod +x "$build/bin/convladder"
  exit
fi
echo "-- Looking"
[[ ! -e $MACHINE/unable ]] || { echo "CMake Error: a flag is wrong"; exit 1; }
printf 'CMAKE_HOME_DIRECTORY:INTERNAL=%s\nCMAKE_MAKE_PROGRAM:FILEPATH=%s\n' \
  "$source" "$(type -P make)" >"$build/CMakeCache.txt"
touch "$build/Makefile"
status=0
while IFS=$'\t' read -r necessity name for package; do
  verdict=missing path=-
  [[ ! -e $MACHINE/installed/$package ]] || verdict=found path=$MACHINE/installed/$package
  [[ $verdict == found || $necessity == optional ]] || status=1
  printf '%s\t%s\t%s\t%s\tapt-get install %s\tpurpose\t%s\tnone\n' \
    "$verdict" "$necessity" "$name" "$for" "$package" "$path"
done <"$MACHINE/needs" >"$build/needs.tsv"
exit $status
'''
APT = r'''#!/bin/bash
echo "apt-get $*" >>"$MACHINE/calls"
if [[ -e $MACHINE/locked ]]; then
  left=$(<"$MACHINE/locked")
  if [[ $left -gt 0 ]]; then
    echo $((left - 1)) >"$MACHINE/locked"
    echo "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7 (apt-get)"
    exit 100
  fi
fi
if [[ -e $MACHINE/offline ]]; then
  echo "W: Failed to fetch http://deb/ Temporary failure resolving 'deb'"
  [[ " $* " == *" update "* ]] || echo "E: Unable to locate package x"
  [[ " $* " == *" update "* ]]
  exit
fi
[[ " $* " != *" --download-only "* ]] || exit 0
for word; do
  [[ ! -e $MACHINE/store/$word ]] || {
    printf '#!/bin/bash\necho "$*"\n' >"$MACHINE/installed/$word"
    chmod +x "$MACHINE/installed/$word"
    cp "$MACHINE/store/$word"/[a-z]* "$MACHINE/bin/" 2>/dev/null
  }
done
exit 0
'''
RUNS = "#!/bin/bash\n[[ ${1-} == *python* || ${0##*/} != python3* ]] || exit 0\ncat >/dev/null\n"
NEEDS = """required\tBoost.Context\t,*,\tlibboost-context-dev
required\tCBLAS\t,*,\tlibopenblas-dev
optional\tlibpng\t,run,\tlibpng-dev
required\tPython 3\t,*,\tpython3
optional\tmatplotlib\t,report,\tpython3-matplotlib
"""


class Door(unittest.TestCase):
    def setUp(self):
        folder = tempfile.mkdtemp(prefix="door_")
        self.addCleanup(shutil.rmtree, folder)
        self.machine = pathlib.Path(folder)
        self.machine.chmod(0o755)
        self.bin, self.repo = self.machine / "bin", self.machine / "repo"
        for name in ("bin", "installed", "store"):
            (self.machine / name).mkdir()
        for tool in TOOLS.split():
            found = shutil.which(tool, path="/usr/bin:/bin")
            if found:
                (self.bin / tool).symlink_to(found)
        self.write("bin/apt-get", APT)
        self.write("bin/sudo", '#!/bin/bash\n[[ $1 != -n ]] || shift\nexec "$@"\n')
        self.write("gpus", "")
        self.write("needs", NEEDS)
        self.write("calls", "")
        for package, tool, text in (("cmake", "cmake", CMAKE), ("g++", "c++", RUNS),
                                    ("make", "make", RUNS)):
            self.write(f"store/{package}/{tool}", text)
        for line in NEEDS.splitlines():
            self.write(f"store/{line.split(chr(9))[-1]}/.none", "")
        self.checkout(self.repo)

    def checkout(self, folder):
        shutil.copytree(ROOT / "common/command", folder / "common/command")
        for name in ("ladder", "common/tests/run.sh", "common/command/cmake/Needs.cmake"):
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
        (folder / "01_naive").mkdir()
        (folder / "01_naive/CMakeLists.txt").touch()

    def write(self, name, text):
        path = self.machine / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def have(self, *packages):
        """As if they had been installed before."""
        for package in packages:
            self.write(f"installed/{package}", '#!/bin/bash\necho "$*"\n')
            for file in (self.machine / "store" / package).iterdir():
                shutil.copy(file, self.bin)

    def have_all(self):
        self.have(*(path.name for path in (self.machine / "store").iterdir()))

    def environment(self, **more):
        return {"PATH": str(self.bin), "MACHINE": str(self.machine), **more}

    def start(self, *words, door=None, **keywords):
        environment = self.environment(**keywords.pop("env", {}))
        return subprocess.Popen([str(door or self.repo / "ladder"), *words], env=environment, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **keywords)

    def ladder(self, *words, **keywords):
        """(status, stdout, stderr)"""
        with self.start(*words, **keywords) as process:
            out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def calls(self, program):
        lines = (self.machine / "calls").read_text().splitlines()
        return [line for line in lines if line.startswith(program)]

    def expect_error(self, done, status, pattern):
        """One line that says what is wrong, whatever was said of the steps before."""
        errors = [line for line in done[2].splitlines() if line.startswith("ladder: error: ")]
        self.assertEqual((done[0], len(errors)), (status, 1), done)
        self.assertRegex(errors[0], pattern)
        self.assertEqual(done[2].splitlines()[-1], errors[0])

    def wait_for(self, condition):
        for _ in range(400):
            if condition():
                return
            time.sleep(0.02)
        self.fail("in vain")


class Setup(Door):
    def test_nothing_installed(self):
        status, out, err = self.ladder("check")
        self.assertEqual((status, out), (0, f"convladder of {self.repo}: check\n"), err)
        self.assertEqual(len([call for call in self.calls("cmake") if "--preset" in call]), 2)
        self.assertIn("installing with apt-get: cmake g++ make", err)
        self.assertIn("installing with apt-get: libboost-context-dev libopenblas-dev", err)

    def test_what_the_judge_says_is_missing_is_installed_and_nothing_else(self):
        self.have("cmake", "g++", "make", "libopenblas-dev")
        # Headers alone, say: what there is of it is for the judge to find out.
        self.assertEqual(self.ladder("run")[0], 0)
        packages = self.calls("apt-get")[-1].split("install ")[1]
        self.assertRegex(packages, "libboost-context-dev libpng-dev python3$")

    def test_apt_is_busy(self):
        self.have("cmake", "g++", "make")
        self.write("locked", "3")
        (self.bin / "sleep").unlink()
        self.write("bin/sleep", "#!/bin/bash\n")
        status, _, err = self.ladder("check")
        self.assertEqual(status, 0, err)
        self.assertEqual(err.count("apt is busy"), 1)
        self.assertIn("DPkg::Lock::Timeout", self.calls("apt-get")[0])

    def test_no_network(self):
        self.write("offline", "")
        self.expect_error(self.ladder("run"), 1, r"missing here: cmake g\+\+ make; .*no network.*"
                          r"apt-get install cmake g\+\+ libboost-context-dev libopenblas-dev make$")
        self.have("cmake", "g++", "make")
        self.expect_error(self.ladder("run"), 1, r"missing here: Boost.Context,CBLAS,Python 3; .*no network.*"
                          r"apt-get install libboost-context-dev libopenblas-dev python3$")
        self.assertRegex((self.repo / "build/sim/needs.tsv").read_text(), "missing\toptional\tlibpng")
        self.have("libboost-context-dev", "libopenblas-dev", "libpng-dev", "python3")  # by hand
        self.assertEqual(self.ladder("run")[0], 0)
        self.assertRegex((self.repo / "build/sim/needs.tsv").read_text(), "found\toptional\tlibpng")

    def test_no_sudo(self):
        (self.bin / "sudo").unlink()
        user = {}
        if os.geteuid() == 0:
            shutil.chown(self.repo, "nobody")
            user = {"user": "nobody"}
        self.expect_error(self.ladder("run", **user), 1,
                          r"needs root or sudo\. Get all: apt-get install cmake g\+\+ ")
        self.assertEqual(self.calls("apt-get"), [])

    def test_optional_ones_are_gone_without(self):
        self.have("cmake", "g++", "make", "libboost-context-dev", "libopenblas-dev", "python3")
        self.write("offline", "")
        status, _, err = self.ladder("run")
        self.assertEqual(status, 0, err)
        self.assertIn("going on without libpng-dev: apt-get reaches no package server", err)
        asked = len(self.calls("apt-get"))
        self.assertEqual(self.ladder("run")[0], 0)
        self.assertEqual(len(self.calls("apt-get")), asked)  # quick the second time

        # Another is asked for all the same; so is the same after a day.
        self.write("needs", NEEDS.replace("libpng", "libother"))
        self.write("store/libother-dev/.none", "")
        self.assertIn("without libother-dev", self.ladder("run")[2])
        for file in self.repo.glob("build/.*installed"):
            os.utime(file, (0, 0))
        self.assertIn("without libother-dev", self.ladder("run")[2])

    def test_doctor_installs_nothing(self):
        self.write("offline", "")
        status, out, _ = self.ladder("doctor")
        self.assertIn("missing: cmake g++ make", out)
        self.assertEqual((status, self.calls("apt-get")), (0, []))
        self.have("cmake", "g++", "make", "libopenblas-dev")
        status, out, _ = self.ladder("doctor")
        self.assertRegex(out, "Boost.Context +missing")
        self.assertRegex(out, "CBLAS +found")
        self.assertRegex(out, "will install: libboost-context-dev libpng-dev python3; backend: sim")
        self.assertEqual((status, self.calls("apt-get")), (0, []))

    def test_report_has_the_python_that_can_plot(self):
        self.have_all()
        self.write("installed/python3", "#!/bin/bash\necho plain $*\n")
        self.write("installed/python3-matplotlib", "#!/bin/bash\necho plots $*\n")
        self.assertRegex(self.ladder("report")[1], "^plots .*common.show.report")
        (self.machine / "installed/python3-matplotlib").unlink()
        self.write("offline", "")
        self.assertRegex(self.ladder("report")[1], "^plain .*common.show.report")
        (self.machine / "installed/python3").unlink()
        self.expect_error(self.ladder("report"), 1, "needs Python 3.*install python3$")


class Tools(Door):
    def setUp(self):
        super().setUp()
        self.have_all()

    def test_an_old_cmake_before_the_right_one(self):
        self.write("old/cmake", "#!/bin/bash\necho cmake version 3.10.2\n")
        path = f"{self.machine}/old:{self.bin}"
        self.assertEqual(self.ladder("check", env={"PATH": path})[0], 0)
        self.assertEqual(self.calls("apt-get"), [])

    def test_a_compiler_that_makes_no_program(self):
        self.write("bin/c++", "#!/bin/bash\ncat >/dev/null\nexit 1\n")
        self.write("bin/g++", RUNS)
        self.assertEqual(self.ladder("check")[0], 0)
        self.assertEqual(self.calls("apt-get"), [])
        self.expect_error(self.ladder("check", env={"CXX": "c++"}), 1, r"CXX is 'c\+\+', which makes no")

    def test_the_generator_is_the_doors(self):
        self.assertEqual(self.ladder("check", env={"CMAKE_GENERATOR": "Ninja Multi-Config"})[0], 0)
        self.assertRegex(self.calls("cmake -S")[0], "--fresh -G Unix Makefiles$")
        self.ladder("check")  # keeps what is there
        self.assertRegex(self.calls("cmake -S")[1], "--preset sim$")
        for call in self.calls("cmake -S"):  # nothing that a later call by hand would miss
            self.assertNotIn("-D", call)

    def test_make_has_gone(self):
        self.ladder("check")
        cache = self.repo / "build/sim/CMakeCache.txt"
        cache.write_text(cache.read_text().replace(str(self.bin), "/gone"))
        self.assertEqual(self.ladder("check")[0], 0)
        self.assertIn("--fresh", self.calls("cmake -S")[1])

    def test_backends(self):
        self.write("gpus", "gpu NVIDIA H200\nnvcc /usr/local/cuda/bin/nvcc\n")
        self.ladder("check")
        self.assertIn("--preset gpu", self.calls("cmake -S")[-1])
        self.write("gpus", "nvcc /usr/local/cuda/bin/nvcc\n")
        self.ladder("check")
        self.assertIn("--preset sim", self.calls("cmake -S")[-1])
        self.expect_error(self.ladder("check", "--backend", "gpu"), 1, "no GPU here")
        self.expect_error(self.ladder("bench"), 2, "bench needs a GPU")
        self.write("gpus", "gpu NVIDIA H200\n")
        self.assertIn("there is a GPU but no nvcc", self.ladder("check")[2])


class Folders(Door):
    def setUp(self):
        super().setUp()
        self.have_all()

    def test_a_link_to_the_script_and_cdpath(self):
        link = self.machine / "bin/ladder"
        link.symlink_to(self.repo / "ladder")
        (self.machine / "elsewhere/repo").mkdir(parents=True)
        for door in (link, "repo/ladder"):
            status, out, _ = self.ladder("check", door=door, cwd=self.machine,
                                         env={"CDPATH": str(self.machine / "elsewhere")})
            self.assertEqual((status, out), (0, f"convladder of {self.repo}: check\n"))

    def test_characters_of_the_path(self):
        for name in ("a b", "a[x]b", "a'b", "(a) & é"):
            self.checkout(self.machine / name)
            status, out, err = self.ladder("check", door=self.machine / name / "ladder")
            self.assertEqual((status, out), (0, f"convladder of {self.machine / name}: check\n"), err)
        for name in ("a#b", "a:b", "a;b", "a$b", 'a"b', "a%b", "a,b", "a\\b"):
            self.checkout(self.machine / name)
            self.expect_error(self.ladder("check", door=self.machine / name / "ladder"), 2,
                              "a build can't work in .*" + re.escape(name))
            self.assertFalse((self.machine / name / "build").exists())

    def test_a_checkout_that_has_moved(self):
        self.ladder("check")
        moved = self.machine / "moved"
        self.repo.rename(moved)
        self.assertEqual(self.ladder("check", door=moved / "ladder")[1],
                         f"convladder of {moved}: check\n")
        self.assertIn("--fresh", self.calls("cmake -S")[-1])

    @unittest.skipIf(os.geteuid() != 0, "needs root, to be two users")
    def test_with_sudo_then_as_user(self):
        shutil.chown(self.repo, "nobody")
        (self.machine / "calls").chmod(0o666)
        self.ladder("check")
        self.expect_error(self.ladder("check", user="nobody"), 1,
                          "build.* belongs to root.*sudo chown -R nobody '.*/build'$")
        subprocess.run(["chown", "-R", "nobody", self.repo / "build"], check=True)
        self.assertEqual(self.ladder("check", user="nobody")[0], 0)

    @unittest.skipIf(os.geteuid() != 0, "needs root, to be another user")
    def test_a_checkout_that_can_not_be_written_to(self):
        self.expect_error(self.ladder("check", user="nobody"), 1, "can't be written to: copy")

    def test_the_reason_is_of_this_call(self):
        self.ladder("check")
        (self.repo / "build/sim/build.log").write_text("all went well\n")
        self.write("broken", "")
        status, _, err = self.ladder("check")
        self.assertEqual(status, 1)
        self.assertIn("no such thing", err)
        self.assertNotIn("all went well", err)

    def test_cmake_fails_before_its_judge_speaks(self):
        self.write("unable", "")
        for command in ("check", "report"):
            done = self.ladder(command)
            self.expect_error(done, 1, "configuring failed")
            self.assertIn("CMake Error: a flag is wrong", done[2])

    def test_a_full_disk(self):
        (self.bin / "df").unlink()
        self.write("bin/df", "#!/bin/bash\necho Avail\necho 0\n")
        self.write("broken", "")
        self.expect_error(self.ladder("check"), 1, "no space is left in .*/build$")


class LongWork(Door):
    def setUp(self):
        super().setUp()
        self.have_all()

    def test_two_at_once(self):
        self.write("slow", "")
        with self.start("check", "one") as first:
            self.wait_for(lambda: self.calls("cmake --build"))
            with self.start("check", "two") as second:
                said = second.stderr.readline()
                (self.machine / "slow").unlink()
                outputs = [process.communicate(timeout=60) for process in (first, second)]
                self.assertIn("another ./ladder works in build/sim: waiting", said + outputs[1][1])
                self.assertEqual((first.returncode, second.returncode), (0, 0))

    def test_a_program_that_has_counted_does_not_count_again(self):
        before = "counted before by the same program"
        traffic = self.repo / "build/report/traffic.txt"
        self.assertNotIn(before, self.ladder("run")[2])
        self.write("repo/common/machines/h200.json", "{}")
        for name in ("trace.json", "profile.json"):
            (traffic.parent / name).touch()
        for age, again in ((60, True), (-60, False)):  # of what was counted; the program is new
            os.utime(traffic, 2 * (time.time() - age,))
            status, out, err = self.ladder("run")
            self.assertEqual((status, before in err), (0, not again))
            self.assertRegex(out, "common.measure.profile .*--trace")

    def test_interrupted(self):
        self.write("slow", "")
        with self.start("check", start_new_session=True) as process:
            self.wait_for(lambda: self.calls("cmake --build"))
            os.killpg(process.pid, signal.SIGINT)
            _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertIn("interrupted while building build/sim; the next call goes on from there", err)
        (self.machine / "slow").unlink()
        self.assertEqual(self.ladder("check")[0], 0)

    def test_a_log_has_a_line_per_step(self):
        self.assertEqual(self.ladder("check")[2].splitlines(),
                         ["ladder: configuring build/sim", "ladder: building build/sim"])

    def test_a_terminal_has_a_moving_line(self):
        ours, theirs = pty.openpty()
        with subprocess.Popen([self.repo / "ladder", "check"], env=self.environment(), stdout=theirs,
                              stderr=theirs, stdin=theirs) as process:
            os.close(theirs)
            shown = b""
            while True:
                try:
                    part = os.read(ours, 4096)
                except OSError:  # nobody writes any more
                    break
                shown += part
        os.close(ours)
        self.assertEqual(process.returncode, 0)
        for line in ("configuring build/sim: -- Looking", "building build/sim: [1/2] Building one",
                     "building build/sim: [2/2] Building two"):
            self.assertIn("\r\033[K" + line, shown.decode())


class Words(Door):
    """Words that it can't use. Nothing is installed or built."""

    def test_each_is_named(self):
        self.have_all()
        for message, words in (
                ("unknown command 'climb'", "climb"),
                ("--backend needs a value", "run --backend"),
                ("--backend = 'tpu': must be gpu or sim", "run --backend tpu"),
                ("test takes no argument '01_naive'", "test 01_naive"),
                ("--stage needs a value", "test --stage"),
                ("--minutes = 'few': must be a number", "test --all --minutes few"),
                ("--minutes is for --all", "test --minutes 3"),
                ("stage 'naive' is unknown; there are 01_naive$", "test --stage naive"),
                ("stage '06_none' is unknown", "test --stage 01_naive --stage=06_none"),
                ("stage '01_naive/../common' is unknown", "test --stage 01_naive/../common"),
                ("build 'fast': the presets are gpu, sim, sim-count and sim-asan$", "build fast x"),
                ("build sim: name a program", "build sim"),
                ("--show and --trace are for the simulator", "profile --show --backend gpu"),
                ("bugs takes no argument '03'", "bugs 03"),
                ("doctor takes no argument 'quick'", "doctor quick")):
            with self.subTest(words):
                done = self.ladder(*words.split())
                self.expect_error(done, 2, message)
                self.assertEqual(len(done[2].splitlines()), 1)
        self.assertEqual(self.calls("cmake -S"), [])

    def test_help_names_every_command(self):
        text = "".join(path.read_text() for path in (
            ROOT / "ladder", ROOT / "common/tests/run.sh", *ROOT.glob("common/command/*.sh")))
        commands = re.findall(r"^cmd_([a-z]*)\(\) {", text, re.MULTILINE)
        self.assertGreater(len(commands), 12)
        for words in ((), ("help",), ("--help",)):
            status, out, _ = self.ladder(*words)
            self.assertEqual((status, out[:6]), (0, "usage:"))
            for command in commands:
                self.assertIn(f"\n  {command} ", out)


class Container(unittest.TestCase):
    def test_types_what_is_typed_on_bare_machines(self):
        container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
        typed = (ROOT / "common/tests/roots.sh").read_text()
        self.assertEqual(container["image"], "debian:12")
        for name, command in container.items():
            if name.endswith("Command"):
                self.assertRegex(typed, rf"type_it 0 \S+ '{re.escape(command)}'\n")


if __name__ == "__main__":
    unittest.main()
