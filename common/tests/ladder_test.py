"""Tests of ./ladder itself, in a copy of the repository: the real commands, as they are typed."""
import fcntl
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
import unittest.mock

from common.command import building, doctor, machine, testing
from common.command.__main__ import USAGE, program_with
from common.show import files
from common.tests.folder_test import ROOT, FolderTest, called

ERROR = "^ladder: error: "
BARE = ("bash", "dirname", "env", "readlink", "sed", "sort", "mktemp", "rm")


class Stages(unittest.TestCase):
    """Which GPU runs which stage."""

    def test_what_a_stage_registers_is_what_its_instructions_need(self):
        for stage in files.stage_names():
            kernel = files.read(files.kernel_file(stage))
            need = "9.0" if "core/hopper.h" in kernel else "8.0" if "core/mma.h" in kernel else ""
            self.assertEqual(files.capability_of(stage), need, stage)

    def test_doctor_says_it(self):
        needs = {"01_a": "", "02_b": "", "03_c": "", "04_d": "8.0", "05_e": "9.0", "06_f": "9.0", "07_g": ""}
        with unittest.mock.patch.object(files, "stage_names", lambda: list(needs)), \
                unittest.mock.patch.object(files, "capability_of", needs.get):
            without_9 = ("this GPU runs 01 to 04 and 07; compute capability 9.0 alone is for 05 and 06; "
                         "the simulator runs all")
            unknown = ("any GPU runs 01 to 03 and 07; compute capability 8.0 or more 04 as well; "
                       "compute capability 9.0 alone 05 and 06 as well; the simulator runs all")
            for gpu, said in (
                    (None, unknown), ("[N/A]", unknown), ("[Not Supported]", unknown),
                    ("7.5", "this GPU runs 01 to 03 and 07; compute capability 8.0 or more is for 04; "
                            "compute capability 9.0 alone is for 05 and 06; the simulator runs all"),
                    ("8.6", without_9), ("12.0", without_9),
                    ("9.0", "this GPU runs all, and so does the simulator")):
                gpus = [f"NVIDIA GPU, driver 580.1, compute {gpu}"] if gpu else []
                self.assertEqual(doctor.of_the_stages(gpus), said)


class Programs(unittest.TestCase):
    def test_a_command_for_one_stage_takes_that_stages_own(self):
        for words, name in (("", "convladder"), ("--stage auto", "convladder"),
                            ("--stage 01_naive", "01_naive"),
                            ("--json a --stage 15_copy_engine_nhwc --seed 1", "15_copy_engine"),
                            ("--stage 01_naive --stage 04_register_blocking", "convladder"),
                            ("--stage 14_warpgroups --stage 14_warpgroups_tf32", "convladder"),
                            ("--stage 01_naive --stage auto", "convladder")):
            self.assertEqual(program_with(words.split()), name, words)


class FullDisks(FolderTest):
    """CMake finds then that a library doesn't work, and a build that its rules are gone."""

    def test_are_what_is_named(self):
        os.mkdir(self.path("sim"))
        pathlib.Path(self.path("sim", "build.log")).write_text("it has gone wrong\n", encoding="utf-8")
        most = resource.getrlimit(resource.RLIMIT_FSIZE)
        with unittest.mock.patch.object(building, "BUILD", self.folder):
            self.assertRaises(SystemExit, building.failed, "sim", "build.log", "building")
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, most[1]))
            try:
                with self.assertRaises(OSError) as full:
                    building.failed("sim", "build.log", "building")
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, most)
        self.assertEqual(full.exception.filename, self.path("sim"))
        self.assertEqual(os.listdir(self.path("sim")), ["build.log"])


class OddStages(FolderTest):
    """A reader's own."""

    def test_a_folder_without_its_one_kernel_is_named(self):
        with unittest.mock.patch.object(files, "ROOT", self.folder):
            os.mkdir(self.path("98_odd"))
            with self.assertRaisesRegex(OSError, "one .cu file, and this folder has 0: '.*98_odd'"):
                files.kernel("98_odd")
            pathlib.Path(self.path("98_odd", "a.cu")).write_bytes(b"// \xff")
            self.assertEqual(files.kernel("98_odd"), "// \ufffd")
            self.save("98_odd/b.cu", "")
            with self.assertRaisesRegex(OSError, "this folder has 2"):
                files.kernel("98_odd")


class Ladder(unittest.TestCase):
    """In a path that holds what shells and make could take for something else."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.root = pathlib.Path(folder.name) / "a reader's own [földer]"
        shutil.copytree(ROOT, cls.root, ignore=shutil.ignore_patterns(".git", "build", "__pycache__"))
        cls.bare = pathlib.Path(folder.name) / "bin"  # a PATH without compiler, CMake, make and apt-get
        cls.bare.mkdir()
        for name in BARE:
            (cls.bare / name).symlink_to(os.path.realpath(shutil.which(name)))
        (cls.bare / "python3").symlink_to(os.path.realpath(sys.executable))

    def setUp(self):
        self.environment = {name: value for name, value in os.environ.items()
                            if name not in ("CXX", "PYTHONPATH")}

    def typed(self, line, **environment):
        """(status, output) of a line of bash."""
        done = subprocess.run(["bash", "-c", line], cwd=self.root, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                              env={**self.environment, **environment}, timeout=300)
        return done.returncode, done.stdout

    def check(self, line, status, *patterns, **environment):
        got, output = self.typed(line, **environment)
        self.assertEqual(got, status, f"{line}: {output}")
        for pattern in patterns:
            self.assertRegex(output, re.compile(pattern, re.MULTILINE), line)
        return output

    def test_1_what_needs_nothing_makes_nothing(self):
        """Neither help nor an error of usage configures, or installs."""
        for command in re.findall(r"^  (\w+) ", USAGE, re.MULTILINE):
            with self.subTest(command):
                self.check(f"./ladder {command} --help", 0, rf"\./ladder {command}")
        gpu = shutil.which("nvidia-smi")
        for line, message in (
            ("nosuch", "unknown command 'nosuch'"), ("''", "unknown command ''"), ("_x", "unknown command"),
            ("'run '", "unknown command"), ("$'a\\e[31m'", "unknown command 'a\\?.31m'"),
            ("test --all --minutes -1", "not below 0"),
            ("run --backend", "--backend needs a value"), ("--backend=x run", "must be gpu or sim"),
            ("check --stage 0", "stage '0' can be 01_naive or"),
            ("check --stage 77", "stage '77' is unknown"), ("diff auto", "stage 'auto' is unknown"),
            ("diff 04_register_blocking/ --show", "--show is for profile"),
            ("test --stage", "--stage needs a value"), ("test --stage auto", "no stage's folder"),
            ("test --stage 15_copy_engine_nhwc", "no stage's folder"),
            ("test --fast", "test: unrecognized arguments: --fast"),
            ("test --minutes 3", "--minutes is for --all"), ("test --all --minutes x", "invalid int value"),
            *((f"build sim {word}", f"'{word}' is no program")
              for word in ("-t", "clean", "test", "build.ninja")),
            ("build sim ''", "sim needs a value"),
            ("exercise --all --json=", "--json needs a value"), ("report --out ''", "--out needs a value"),
            ("build", "the presets are gpu, sim"), ("build sim", "build sim: name a program"),
            ("doctor x", "doctor takes no argument 'x'"), ("exercise nosuch", "exercise 'nosuch' is unknown"),
            ("exercise tail --start", "unrecognized arguments: --start"),
            ("variant --kind bug --stage ''", "--stage needs a value"),
            ("new", "new needs a name"), ("new 99_" + 41 * "x", "40 letters at most"),
            *((f"diff{words}", "diff needs a stage, before its options") for words in ("", " --c 1 04")),
            ("diff 77", "'77' is unknown"), ("bugs --kind experiment", "bugs takes no --kind"),
            ("diff 15_copy_engine_tf32", "no stage's folder"), ("diff 04 --json x", "--json is for profile"),
            ("diff 04 --trace x", "--trace is for profile"),
            ("diff 04 --machine t4", "--machine is for profile"),
            ("run --machine nosuch", f"{ERROR}--machine nosuch: no such file"),
            ("run --machine", "run: argument --machine: expected one"),
            *((line, f"{ERROR}--{name} is given twice") for line, name in (
                ("run --machine t4 --machine h100", "machine"), ("report --run a --run b", "run"),
                ("--backend=sim run --backend gpu", "backend"), ("check --relu --relu", "relu"),
                ("variant --stage 03 --stage=04", "stage"), ("exercise tail --json=x --json y", "json"))),
            ("report --fast", "--fast"),
            ("run --n 1 --machine README.md --json README.md", "are the same file, README.md"),
            ("check --n 1 --json 01_naive/naive.cu", "naive.cu: a source would be overwritten"),
            ("check --n 1 --json LICENSE", "LICENSE: a file of this repository"),
            *((f"run --n 1 {name}", "a file of this repository") for name in (
                "--output docs/results/layers_h200.json", "--json common/machines/h200.json")),
            *([] if gpu else [("bench", "bench needs a GPU"), ("sanitize", "sanitize needs a GPU"),
                              ("exercise --measure", "needs a GPU")]),
        ):
            with self.subTest(line):
                self.check(f"./ladder {line}", 2, message)
        self.check('mkdir gone; cd gone; rmdir ../gone; "$OLDPWD/ladder" help', 2, "current folder is gone")
        self.assertFalse((self.root / "build").exists())

    def test_1_no_file_of_the_repository_is_overwritten(self):
        deep = "01_naive/exercises/tail/goal.json"
        self.check(f"git init -q && git add -f README.md docs/results common/machines {deep}", 0)
        for line in ("exercise first_kernel --json README.md", "run --output=docs/../README.md",
                     "sim docs/cuda/add.cu --keep README.md -- x", "bench --machine docs/results/index.html",
                     "exercise --all --grade README.md", "profile --trace README.md",
                     "report --out=docs/results", f"check --n 1 --json {deep}",
                     "profile --json common/machines/h200.json",
                     "bench --json docs/results/profile_sim.json",
                     "exercise tail --json docs/results/bench_h200.json"):
            with self.subTest(line):
                self.check(f"./ladder {line}", 2, f"{ERROR}--\\w+ .*: a file of this repository would be")
        self.check("./ladder check --n 1 --json .git/HEAD", 2, "a file of this repository would be")
        shutil.rmtree(self.root / ".git")
        self.check(f"./ladder check --n 1 --json {deep}", 2, "a file of this repository would be")

    def test_1_a_copy_of_a_stage_renamed_by_half(self):
        copy = ("cp -r 01_naive 90_mine; trap 'rm -r 90_mine' EXIT; "
                "sed -i s/01_naive/90_mine/ 90_mine/CMakeLists.txt")
        self.check(f"{copy}; ./ladder build sim x", 1,
                   f"{ERROR}90_mine/naive.cu registers the stage 01_naive, not")
        self.check(f"{copy}; python3 -c 'from common.command import building; "
                   """building.need_whole_stages("sim")'""", 0)
        self.check(f"{copy}; mv 90_mine/naive.cu 90_mine/mine.cu; ./ladder check --n 1", 1,
                   f"{ERROR}90_mine/CMakeLists.txt names naive.cu, which isn't in that folder")
        self.check(f"{copy}; sed -i /REGISTER_STAGE/d 90_mine/naive.cu; ./ladder check --n 1", 1,
                   f"{ERROR}90_mine registers no stage")

    def test_1_build_is_no_folder(self):
        for make in ("touch build", "ln -s gone build"):
            self.check(f"{make}; trap 'rm build' EXIT; ./ladder build sim x", 1, "build is a file, or a link")

    def test_2_without_tools_one_line_names_all_packages(self):
        path = str(self.bare)
        run = self.check("./ladder run", 1, rf"{ERROR}missing here: cmake g\+\+ make; there is no apt-get\.",
                         PATH=path)
        doctor = self.check("./ladder doctor", 1, "^missing: cmake g\\+\\+ make", PATH=path)
        (self.bare / "python3").unlink()
        (self.bare / "python3").write_text("#!/bin/sh\n")  # no Python, whatever it is asked
        (self.bare / "python3").chmod(0o755)
        python = self.check("./ladder run", 1, f"{ERROR}missing here: Python 3.10 or later", PATH=path)
        needed = (self.root / "common/command/cmake/Needs.cmake").read_text(encoding="utf-8")
        needed = sorted(set(re.findall(r"PACKAGE (\S+) REQUIRED", needed)))
        for output in (run, doctor, python):
            self.assertEqual(output.strip().split("apt-get install ")[-1].split(), needed)
            self.assertEqual(output.count("ladder: error"), output is not doctor)

    def test_3_output_that_is_lost(self):
        for command in ("", "exercise ", "variant ", "sanitize "):
            self.check(f"./ladder {command}--help >/dev/full", 1, f"{ERROR}standard output: No space left")
        self.check("./ladder help >&-", 1, f"{ERROR}standard output is closed")
        self.check("set -o pipefail; ./ladder help | true", 1)
        self.check("PYTHONHOME=/none PYTHONINSPECT=1 ./ladder help | head -1", 0, "^usage[^\n]*\n$")
        self.check("PYTHONIOENCODING=none PYTHONOPTIMIZE=2 PYTHONSAFEPATH=1 ./ladder new --help", 0,
                   "^A stage of your own")
        self.check("CUDACXX=true ./ladder build gpu x", 1, f"{ERROR}\\S*true is no nvcc: .*architectures\n$")
        self.check("./ladder nosuch 2>&-", 2, f"{ERROR}unknown command")
        (self.root / "exercises.mine").mkdir(exist_ok=True)
        (self.root / "exercises.mine/notes.json").write_text("{")  # which is said
        self.check("./ladder exercise 2>/dev/full", 0, "^  next ")
        self.check("ulimit -f 0; ./ladder new 99_x", 1, f"{ERROR}.*/x.cu: File too large")
        self.assertFalse((self.root / "99_x").exists())
        self.check("mkdir -p build/sim; ln -s /dev/full build/sim/configure.log; ./ladder build sim x", 1,
                   f"{ERROR}.*/build/sim: No space left")
        (self.root / "build/sim/configure.log").unlink()

    def test_3_a_readers_file_takes_no_place_of_pythons(self):
        for name in ("copy.py", "json.py"):
            (self.root / name).write_text("raise SystemExit(9)")
            self.addCleanup((self.root / name).unlink)
        self.check("./ladder exercise", 0, "^  next ")

    def test_3_a_gpu_that_nvcc_does_not_compile_for(self):
        for name, said in (("nvcc", "compute_75\\ncompute_90"), ("nvidia-smi", "12.0")):
            (self.bare / name).write_text(f"#!/bin/sh\nprintf '{said}\\n'\n")
            (self.bare / name).chmod(0o755)
            self.addCleanup((self.bare / name).unlink)
        for asked, named in (("", "120"), ("90-real;61", "61")):
            output = self.check("./ladder build gpu x", 1,
                                f"{ERROR}architecture {named} .*nvcc compiles for 75, 90: use another ",
                                PATH=f"{self.bare}:{os.environ['PATH']}", CUDAARCHS=asked,
                                CUDACXX=str(self.bare / "nvcc"))
            self.assertEqual(output.count("\n"), 2, output)

    def test_3_a_program_that_hangs(self):
        (self.bare / "nvidia-smi").write_text("#!/bin/sh\nexec sleep 60\n")
        (self.bare / "nvidia-smi").chmod(0o755)
        self.addCleanup((self.bare / "nvidia-smi").unlink)
        self.check("./ladder exercise --measure", 2, "^ladder: warning: nvidia-smi gave no answer within 10 ",
                   PATH=f"{self.bare}:{os.environ['PATH']}")

    def test_3_names_that_are_no_text_are_printed_as_they_were(self):
        code = ("from common.command import machine\nfrom common.show.support import run_main\n"
                "def main(_):\n with machine.child('printf', r'l\\344 ', stdout=-1) as process:\n"
                "  print(process.stdout.read() + '\\ud800')\nrun_main(main)")
        done = subprocess.run([sys.executable, "-c", code], cwd=self.root, capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"l\xe4 \\ud800\n", b""))

    def test_3_what_runs_ends_as_ladder_does(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number), subprocess.Popen(
                    [sys.executable, "-c", "import sys; from common.command import machine\n"
                     "machine.foreground('sh', '-c', 'echo $$; exec sleep 60')"],
                    cwd=self.root, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
                own = int(running.stdout.readline())
                running.send_signal(number)
                self.assertEqual(running.stderr.read(), "")
            self.assertEqual(running.returncode, 128 + number)
            self.assertRaises(ProcessLookupError, os.kill, own, 0)
        self.assertEqual(called(machine.foreground, "sh", "-c", "kill -SEGV $$"),
                         (128 + signal.SIGSEGV, "", "ladder: sh was ended by SIGSEGV\n"))

    def test_3_narrow_terminals(self):
        for line in ("help", "exercise", "exercise tail --hint"):
            for row in self.check(f"./ladder {line}", 0, COLUMNS="40").splitlines():
                self.assertTrue(len(row) <= 40 or " " not in row.strip(), row)

    def test_4_doctor_and_what_changes(self):
        self.check("./ladder doctor", 1, f"{ERROR}CXX is '/none', which makes no program", CXX="/none")
        output = self.check("./ladder doctor", 0, r"^CBLAS  +found", r"^\./ladder run works here; backend: ",
                            r"^stages +(any|this) GPU runs .*the simulator")
        self.assertNotRegex(output, "found .*missing|Traceback")
        for _ in range(2):  # configured by doctor: not again
            output = self.check("./ladder build sim nosuch", 2, f"{ERROR}build/sim has no program 'nosuch'")
            self.assertNotIn("configuring", output)
        if shutil.which("clang++"):
            self.check("./ladder build sim nosuch", 2, "configuring build/sim, since .*CXX.* changed",
                       CXX="clang++")
            needs = (self.root / "build/sim/needs.tsv").read_text(encoding="utf-8")
            self.assertRegex(needs, "C\\+\\+ compiler.*Clang")
            self.check("./ladder build sim nosuch", 2, "configuring build/sim, since .*CXX.* changed")
        self.check("./ladder check --n 1 --json build/sim/needs.tsv", 2, "a file of this repository would be")
        for name in ("build.ninja", "Makefile"):  # as a full disk or a power cut leaves them
            (self.root / "build/sim" / name).write_text("")
        self.check("./ladder build sim nosuch", 2, "configuring build/sim$", "has no program 'nosuch'$")
        (self.root / (long := "97_" + 245 * "x")).mkdir()
        (self.root / long / "CMakeLists.txt").write_text(f"convladder_add_stage({long} x.cu)\n")
        (self.root / long / "x.cu").write_text(f'CONVLADDER_REGISTER_STAGE({{"{long}"}});\n')
        self.check("./ladder build sim nosuch", 1, f"{ERROR}{long}: a stage's name has 100 letters at most$")
        shutil.rmtree(self.root / long)
        (self.root / "build/sim/needs.tsv").write_text("verdict\tfound\tcommands\nfound\t/gone\t*\n")
        self.check("./ladder build sim nosuch", 2, "configuring build/sim$")

    def test_5_a_call_waits_for_another(self):
        (self.root / "build/sim").mkdir(parents=True, exist_ok=True)
        with open(self.root / "build/sim/.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with subprocess.Popen(["./ladder", "build", "sim", "nosuch"], cwd=self.root, text=True,
                                  stderr=subprocess.PIPE, env=self.environment) as waiting:
                while "waiting for it" not in (said := waiting.stderr.readline()):
                    self.assertTrue(said, "it did not wait")
                self.assertIsNone(waiting.poll())
                fcntl.flock(lock, fcntl.LOCK_UN)
                self.assertIn("has no program 'nosuch'", waiting.stderr.read())
        self.assertEqual(waiting.returncode, 2)

    def test_5_a_call_waits_for_the_build_of_one_that_was_killed(self):
        for left, status in (("kill -9 $PPID; sleep 2", -signal.SIGKILL), ("sleep 9 >/dev/null 2>&1 &", 0)):
            done = subprocess.run([sys.executable, "-c", "from common.command import building\n"
                                   "with building.in_turn('sim', 'x') as lock:\n"
                                   f"  building.logged(lock, '/dev/null', 'x', 'sh', '-c', '{left}')"],
                                  cwd=self.root, check=False)
            self.assertEqual(done.returncode, status)
            with open(self.root / "build/sim/.lock", "w") as lock:
                if status:
                    self.assertRaises(BlockingIOError, fcntl.flock, lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    fcntl.flock(lock, fcntl.LOCK_EX)
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # a server that was started keeps nothing

    def test_6_a_build_that_is_cut_off_goes_on(self):
        with subprocess.Popen(["./ladder", "build", "sim", "convladder_check"], cwd=self.root, text=True,
                              stderr=subprocess.PIPE, start_new_session=True, env=self.environment) as cut:
            said = ""
            while "building" not in (line := cut.stderr.readline()):
                said += line
                self.assertTrue(line, f"it has ended: {said}")
            time.sleep(1)
            os.killpg(cut.pid, signal.SIGINT)
            self.assertIn("interrupted while building build/sim; the next call goes on", cut.stderr.read())
        self.assertEqual(cut.returncode, 130)
        self.check("./ladder build sim convladder_program", 0)

    def test_7_a_place_that_no_build_can_work_in(self):
        (self.root.parent / "a;b").symlink_to(self.root)
        self.check("../a\\;b/ladder run --help", 0)  # a link's own name does not matter
        for name in ("a#b", "a:b"):
            bad = self.root.parent / name
            shutil.copytree(self.root / "common", bad / "common")
            shutil.copy(self.root / "ladder", bad)
            self.check(f"../{name}/ladder doctor", 2, f"{ERROR}a build can't work in ")


class Broken(FolderTest):
    def test_what_cant_be_read_is_made_anew(self):
        os.mkdir(self.path("p"))
        with unittest.mock.patch.object(building, "BUILD", self.folder):
            for text in ("", "null", "[]", "[" * 100000, "\x00"):
                self.save("p/configured.json", text)
                self.assertIsNone(building.changes("p"))
            for name in ("needs.tsv", "CMakeCache.txt", "build.ninja"):
                pathlib.Path(self.path("p", name)).write_bytes(b"found\tverdict\tcommands\n\xff\r\x00")
            self.assertEqual(building.needs("p"), [])
            self.assertFalse(building.is_whole("p"))
            self.assertTrue(building.is_broken("p", ""))

    def test_a_source_that_was_put_back_is_newer_than_the_build(self):
        os.makedirs(self.path("90_own"))
        os.makedirs(self.path("build", "p"))
        for kernel in map(self.save, ("90_own/own.cu", "90_own/own.cuh"), ("good", "good")):
            shutil.rmtree(self.path("build", "p"))
            os.makedirs(self.path("build", "p"))
            self.put_back(kernel)

    def put_back(self, kernel):
        with (unittest.mock.patch.object(building, "BUILD", self.path("build")),
              unittest.mock.patch.object(building, "ROOT", self.folder)):
            def build(*dates):
                """Whether the kernel was given another date than dates[0]; dates[1] is the last build's."""
                os.utime(kernel, (dates[0], dates[0]))
                found = building.date_anew("p")
                os.utime(self.save("build/p/dates.json", found), (dates[1], dates[1]))
                return os.stat(kernel).st_mtime != dates[0]
            self.assertEqual([build(100, 200), build(100, 300), build(50, 300)], [False, False, True])
            self.save("build/p/dates.json", "[")
            self.assertEqual([build(50, 300), build(250, 400), build(450, 500)], [False, True, False])


class Counting(FolderTest):
    """The sum of what CTest says, by CTest itself."""

    TESTS = {"passes": "true", "fails": "false", "is_skipped": 'sh -c "echo no device; exit 77"',
             "is_gone": "/no/such/program", "crashes": 'sh -c "kill -9 $$"',
             "ends_early": "true"}

    def test_what_never_ran_has_not_passed(self):
        tests = "".join(f"add_test(NAME {name} COMMAND {command})\n"
                        f"set_tests_properties({name} PROPERTIES SKIP_RETURN_CODE 77)\n"
                        for name, command in self.TESTS.items())
        self.save("CMakeLists.txt",
                  f"cmake_minimum_required(VERSION 3.25)\nproject(x NONE)\nenable_testing()\n{tests}")
        build = self.path("build", "p")
        subprocess.run(["cmake", "-S", self.folder, "-B", build], check=True, capture_output=True)
        subprocess.run(["ctest", "--test-dir", build, "--output-junit", os.path.join(build, "tests.xml")],
                       check=False, capture_output=True)
        os.mkdir(os.path.join(build, "test-results"))
        self.save("build/p/suites.txt", "passes\nends_early\n")
        with open(os.path.join(build, "test-results", "passes.xml"), "w", encoding="utf-8") as report:
            report.write(textwrap.dedent("""\
                <testsuites><testsuite><testcase name="a" status="run"/><testcase name="b" status="notrun"/>
                <testcase name="c" status="run"><skipped message="x.cpp:1&#x0A;no room"/></testcase>
                </testsuite></testsuites>"""))
        results = testing.Results()
        with unittest.mock.patch.object(building, "BUILD", self.path("build")):
            results.add("p")
        status, output, _ = called(results.sum_up)
        self.assertEqual(status, 1)
        self.assertEqual(output, "skipped, 1: disabled\nskipped, 1: no room\nskipped, 1: no device\n"
                                 "1 passed, 4 failed, 3 skipped\n")


if __name__ == "__main__":
    unittest.main()
