"""The program's command line as a user meets it: exit status, what it says, what it leaves behind.

CONVLADDER_PROGRAM names the program. What needs a device is skipped where there is none.
"""

import os
import pathlib
import re
import resource
import shlex
import struct
import subprocess
import tempfile
import unittest

from common.variants import variant, variants
from common.variants.build import Build

PROGRAM = os.path.realpath(os.environ["CONVLADDER_PROGRAM"])
PLAIN = "--n 2 --h 9 --w 8 --s 2 --stride_w 2 --pad_h 1"
SMALL = f"{PLAIN} --c 3 --k 5 --r 3"
GROUPED = f"{PLAIN} --c 6 --k 15 --r 3 --groups 3"
DEPTHWISE = "--n 2 --c 15 --h 9 --w 4 --k 10 --groups 5"
BIG = "99999999999999999999"

# Exit status, a pattern, arguments. The pattern is looked for in stdout; where the status is not 0, in
# the one line of stderr.
ARGUMENTS = [
    (0, "^usage: ", "--help"), (0, "^usage: convladder run", "run -h"),
    (0, "--max-gmac", "check --help"), (0, "--once", "run --help"),
    (0, "--repeats", "bench --help"), (0, "--batch", "profile --help"),
    (2, "unknown command 'climb'", "climb"), (2, r"unknown command 'a\?\[31m'", "'a\x1b[31m'"),
    (2, "--speed", "run --speed 3"), (2, "--seed needs a value", "check --seed"),
    *((2, "--n needs a value", f"check --n{rest}") for rest in ("", " --c 2")),
    *((2, "--h needs a value", f"check --h {help}") for help in ("-h", "--help")),
    (2, "error: --stride-h was not expected", "check --n 1 --stride-h 2"),
    (2, "--shape is given twice", "run --shape a --shape b"),
    (2, "--json needs a value: --json FILE", "check --json ''"),
    (2, "--json can't be given with --once", "run --once --json x.json"),
    *((2, f"{first} and {second} are the same file, .*: it would be overwritten",
       f"run {first} w.npy {second} {path}") for first, second, path in (
           ("--input", "--output", "w.npy"), ("--filters", "--output", "./w.npy"),
           ("--input", "--json", "w.npy"), ("--input", "--output", "link.npy"),
           ("--output", "--json", "w.npy"))),
    (2, "--json and the report's input.png are the same file", "run --report new --json new/input.png"),
    *((2, "--shapes is where --shape is found", f"{command} --shapes two.csv")
      for command in ("run", "run --n 2", "check --n 2")),
    (2, "--output and the report's run.json are the same file, .*: it would be overwritten",
     "run --report report --output ./report/run.json"),
    (2, "own/run.json: no run has made it, and it would be overwritten", "run --report own"),
    (2, "relu was given a disallowed flag", "check --n 1 --relu=0"),
    (2, "--report is for the photograph or given arrays, without --shape, --stride",
     "run --input y.npy --filters w.npy --stride 1 --report x"),
    (2, f"--n = {BIG}: does not fit 64 bits", f"check --n {BIG}"),
    (2, "--seed = '1.5': must be a whole number", "run --seed 1.5"),
    (2, "--seed = -1: must be at least 0", "check --seed=-1"),
    (2, "--bias = 2: must be at most 1", "check --bias 2"),
    *((2, f"--max-gmac = '{value}': must be a number, at least", f"{command} --max-gmac {value}")
      for command in ("check", "run", "check --n 2") for value in ("0", "-1", "nan", "inf", "2,5")),
    (2, "--offset = '4': must be 0 to 3", "check --offset 4"),
    (2, "--shape can't be given with --fuzz", "check --fuzz 3 --shape alexnet_conv1"),
    (2, "--fuzz = 0: must be at least 1", "check --fuzz 0"),
    (2, "--seconds is for --fuzz", "check --seconds 3"),
    (2, "--seconds = '-1': must be a number", "check --fuzz 3 --seconds -1"),
    (2, "stage '00_none' is unknown; there are: 01_naive, ", "check --stage 00_none"),
    (2, "--precision = 'fp16': must be fp32, tf32 or both", "check --precision fp16"),
    (2, "--precision = 'tf32': no stage of --stage has it", "check --precision tf32 --stage 01_naive"),
    (2, "--competitors = 'mine': must be all, none, cudnn, pytorch",
     "bench --stage 01_naive --stage 02_im2col_gemm --competitors mine"),
    (1, "/nowhere/b.json: can't be written: No such file or directory",
     "bench --json /nowhere/b.json"),
    (2, "--repeats = 0: must be at least 1", "bench --repeats 0"),
]

ON_DEVICE = [
    (0, "\n[1-9][0-9]* passed, 0 failed, 0 rejected, 0 skipped",
     f"check {SMALL} --json records.json"),
    (0, " passed, 0 failed", f"check {SMALL} --offset 3 --bias 0 --seed 7"),
    (0, "^01_naive +command line +pass.*\n1 passed", f"check {SMALL} --stage 01_naive"),
    (0, "alexnet_conv1.*resnet50_3x3_64_b64.*\n2 passed",
     "check --shape alexnet_conv1 --shape resnet50_3x3_64_b64 --stage 01_naive --max-gmac 0.0005"),
    (0, "\\(changed\\).*\\(changed\\)",
     "check --shape alexnet_conv1 --shape vgg16_conv3_2_b32 --h 20 --stage 01_naive --max-gmac 0.0005"),
    (1, "nowhere/records.json.*: No such file", f"check {SMALL} --json nowhere/records.json"),
    (1, "/dev/stdout: is not a regular file; what is written replaces one",
     f"check {SMALL} --json /dev/stdout"),
    (1, "taken: can't be made: ", "run --report taken"),
    (2, "problem 'alexnet_conv9' is unknown", "check --shape alexnet_conv9"),
    (2, "stride_h = 0: ", f"check {SMALL} --stride_h 0"), (2, "n = -1: ", "run --n -1"),
    (2, "groups = 3: must divide k = 5", f"check {SMALL} --groups 3"),
    (0, " passed, 0 failed", f"check {GROUPED} --offset 1"),
    *((0, " passed, 0 failed", f"check {SMALL} --stage 01_naive --json {name}")
      for name in ("link.json", 255 * "x")),
    (1, "xxx: can't be written: File name too long", f"check {SMALL} --json {256 * 'x'}"),
    (0, "1 passed", "check --shapes latin.csv --stage 01_naive --json latin.json"),
    (1, "none.csv: can't be read", "check --shapes none.csv"),
    (1, "pipe: can't be read: it is no regular file", "check --shapes pipe"),
    (1, "sparse.csv: is too large", "check --shapes sparse.csv"),
    (1, "pipe: can't be read: it is no regular file", f"run {SMALL} --input pipe"),
    (0, "1 random problem, 0 failed", "check --fuzz 3 --seconds 1e-12 --stage 01_naive"),
    (0, "right +pass.*wrong +rejected .*groups = 2", "check --shapes two.csv"),
    (2, "groups = 2: ", "check --shapes two.csv --shape wrong"),
    (2, "none in two.csv has a name like it", "check --shapes two.csv --shape nasty_all_ones"),
    (0, "large +pass", "check --shapes large.csv --max-gmac 0.01 --stage 01_naive"),
    # As Nsight Compute does.
    (0, "launched once", "run --once --shapes two.csv --shape right --stage 01_naive"),
    (0, "NOT checked", f"run {SMALL} --once"),
    # One row a stage, none for its forms; with what ./ladder prints below it these are 45 lines.
    (0, r"^((?!\n\d\d_\w+_(tf32|nhwc) )[^\n]*\n){10,26}$", f"run {SMALL} --json run.json --output y.npy"),
    (1, "y.npy: shape is \\[2,5,9,4\\], the input must be \\[2,3,9,8\\] \\(without --shape",
     f"run {SMALL} --input y.npy"),
    (1, "b.npy: shape is \\[5\\], --input takes 4 dimensions", "run --input b.npy"),
    (1, "none.npy: shape is \\[0,3,3,2\\], .* takes 4 dimensions, none of them 0", "run --input none.npy"),
    (1, "products add up to .*e.*, and float32 is exact from 9.86e-32 to 3.4e\\+38",
     "run --filters large.npy --report report"),
    (1, "products add up to .*e-4", "run --filters least.npy --report report"),
    (0, "cut down to n1 c1 1x1 k1 1x1 .* pad 11x11", "check --pad 3000 --stage 01_naive --max-gmac 1e-6"),
    *((0, f"wrote z.npy: the output of {stage}\n$", f"run {SMALL} --output z.npy --stage {others}")
      for stage, others in (("12_tensor_cores", "12_tensor_cores"),
                            ("01_naive", "12_tensor_cores --stage 01_naive"))),
    # The output of one run is an input of the next, in which a filter has a third of its channels.
    (0, "k15 3x2 .* groups 3, bias", f"run {GROUPED} --output y.npy"),
    (1, "y.npy: shape is \\[2,15,9,4\\], the filters must be \\[10,3,9,4\\]",
     f"run {DEPTHWISE} --input y.npy --filters y.npy"),
    (0, "data: y.npy, random numbers.*  pass\n", f"run {DEPTHWISE} --input y.npy --stage 01_naive"),
    (0, "n2 c15 9x4 k1 1x1 .*, bias\n", "run --k 1 --input y.npy --stage 01_naive"),
    (0, "n2 c15 9x4 k5 3x2 stride 1x1 pad 0x0 dil 1x1 groups 5, bias\n.*data: y.npy, w.npy, b.npy;"
     ".*  pass\n", "run --input y.npy --filters w.npy --bias b.npy --stage 01_naive --report report"),
    (0, "n[0-9]+ c3 224x224 k5 3x2 stride 4x4 pad 2x2 dil 1x1\n.*data: w.npy, common/data/",
     "run --filters w.npy --report report --stage 01_naive"),
    (2, "01_naive does not apply ReLU", "profile --stage 01_naive --relu"),
    (0, "  pass\n", "run --batch 1 --report report"),
    (0, "  pass\n", "run --batch 1 --report new --json new/records.json --stage 01_naive"),
    (1, "y.npy: its filters have 15 channels, and the photograph has 3: give --input",
     "run --filters y.npy --report report"),
    (2, "--batch and --n both say how many images", f"run {SMALL} --batch 3"),
    *((2, "--max-gmac cuts down problems of random numbers", f"run --max-gmac 0.1 {options}")
      for options in ("--report report", f"{SMALL} --input y.npy")),
]


def write_npy(path, shape, count, value=0.0):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    start = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little")
    pathlib.Path(path).write_bytes(start + header + struct.pack("<f", value) * count)


def call(arguments, limit=None, **options):
    words = arguments if isinstance(arguments, list) else [PROGRAM, *shlex.split(arguments)]
    preexec = limit and (lambda: resource.setrlimit(limit[0], (limit[1], limit[1])))
    return subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=300, check=False,
                          preexec_fn=preexec, **options)


HELP = call("--help").stdout
DEVICE = "no GPU" not in call("check --n 1 --stage 01_naive").stderr


class Program(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.addClassCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        columns = "name,n,c,h,w,k,r,s"
        for name, text in {
            "two.csv": f"{columns},groups,x\nright,1,2,5,6,4,2,2,2,\nwrong,1,2,5,6,3,2,2,2,\n",
            "stride.csv": "n,c,h,w,k,r,s,stride\n1,1,4,4,1,1,1,2\n",
            "large.csv": f"{columns}\nlarge,1,64,56,56,64,3,3\n", "taken": "",
        }.items():
            pathlib.Path(name).write_text(text)
        pathlib.Path("latin.csv").write_bytes(f"{columns}\n".encode() + b"\xe9\xff,1,2,5,6,4,2,2\n")
        os.mkfifo("pipe")
        os.mkdir("own")
        pathlib.Path("own/run.json").write_text("{}")
        os.symlink("taken", "link")
        os.symlink("target.json", "link.json")
        os.symlink("w.npy", "link.npy")
        with open("sparse.csv", "wb") as file:
            file.truncate(1 << 40)
        write_npy("w.npy", (5, 3, 3, 2), 90)
        write_npy("b.npy", (5,), 5)
        write_npy("none.npy", (0, 3, 3, 2), 0)
        write_npy("large.npy", (1, 3, 3, 2), 18, 3e38)
        write_npy("least.npy", (1, 3, 3, 2), 18, 1e-42)

    def check_rows(self, rows):
        for status, pattern, arguments in rows:
            with self.subTest(arguments):
                result = call(arguments)
                output = result.stdout + result.stderr
                self.assertEqual(result.returncode, status, output)
                self.assertRegex(result.stderr if status else result.stdout,
                                 re.compile(pattern, re.S))
                self.assertRegex(result.stderr, "^convladder: error: .*\n$" if status else "^$")
                if status and arguments.startswith("run"):
                    self.assertEqual(result.stdout, "", "something was done first")

    def test_arguments(self):
        self.check_rows(ARGUMENTS)

    def test_output_that_is_lost(self):
        result = call(["sh", "-c", '"$0" --help >/dev/full', PROGRAM])
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, "error: standard output can't be written: .")

    @unittest.skipUnless(DEVICE, "needs a GPU")
    def test_on_a_device(self):
        self.check_rows(ON_DEVICE)
        self.assertRegex(pathlib.Path("records.json").read_text(), '"version":1,.*"status":"pass"')
        self.assertIn('"version": 1', pathlib.Path("run.json").read_text())
        self.assertTrue(os.path.islink("link.json") and os.path.getsize("target.json"))
        maps = pathlib.Path("report/feature_maps.png")
        self.assertEqual({*pathlib.Path("report").glob("*.png")},  # which the page shows
                         {maps.with_name("input.png"), maps.with_name("filters.png"), maps})
        call("run --batch 1 --stage 16_depthwise --report report")  # which takes no such layer
        self.assertFalse(maps.exists(), "an earlier run's")

    @unittest.skipUnless(DEVICE, "needs a GPU")
    def test_warnings(self):
        result = call("check --shapes stride.csv --stage 01_naive")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stderr,
                         "^convladder: warning: stride.csv:1:15: column 'stride'.*\n$")

    @unittest.skipUnless(DEVICE, "needs a GPU")
    def test_a_full_disk(self):
        result = call(f"run {SMALL} --output huge.npy --stage 01_naive", (resource.RLIMIT_FSIZE, 1024))
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr,
                         "^convladder: error: huge.npy: can't be written: File too large\n$")
        self.assertEqual(list(pathlib.Path().glob("huge*")), [])

    @unittest.skipUnless("backend: sim" in HELP, "for the simulator")
    def test_the_simulator(self):
        self.check_rows([
            (0, "cut down to .* \\(--max-gmac 0.03\\).*\n1 of 1 problems were cut down, ",
             "check --shapes large.csv --stage 01_naive"),
            (2, "bench needs a GPU: the time that simulating takes says nothing about one", "bench")])


@unittest.skipUnless("backend: sim" in HELP and os.path.basename(os.path.dirname(os.path.dirname(PROGRAM))) ==
                     "sim", "for the simulator")
class StagesThatEndTheProcess(unittest.TestCase):
    """Not in `enqueue`, which is watched by itself."""

    def check(self, status, pattern, told=None, **edits):
        """edits: what stands in stage 01's kernel, and what shall. told: whether its end is told."""
        known = {"sum": "float sum = 0.0f;", "workspace": "enqueue, nullptr, ",
                 "begin": "constexpr int THREADS = 256;"}
        wrong = variants.Variant("", "bug", "01_naive", "ends", "", edits=[
            variants.Edit(None, [known[place]], [text]) for place, text in edits.items()])
        with variant.made(Build("sim"), wrong, "convladder") as program:
            end, ends = os.pipe()
            result = subprocess.run(
                [program, "check", "--stage", "01_naive", "--n", "1", "--c", "2", "--k", "5"],
                env={**os.environ, "CONVLADDER_ENDS": str(ends)}, pass_fds=[ends], capture_output=True,
                text=True, check=False)
            os.close(ends)
        self.assertIn(bool(os.read(end, 1)), (True, False) if told is None else (told,))
        os.close(end)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertRegex(result.stdout + result.stderr, pattern)

    def test_in_the_workspaces_function(self):
        for text, said in (("std::exit(0)", "ends the process"), ("std::quick_exit(0)", "ends the process"),
                           ("*(volatile int*)8 = 0", "is ended by SIGSEGV")):
            self.check(1, rf"error: a stage's host code {said}, at \S*naive.cu:\d+\n$",
                       begin="constexpr int THREADS = 256;\n#define ENDS [](const ConvShape&, std::size_t) "
                       f"-> std::size_t {{ {text}; return 0; }}", workspace="enqueue, ENDS, ")

    def test_by_a_system_call(self):
        self.check(0, "^$", told=False, workspace="enqueue, ENDS, ",
                   begin="constexpr int THREADS = 256;\nextern \"C\" long syscall(long, ...);\n#define ENDS "
                   "[](const ConvShape&, std::size_t) -> std::size_t { syscall(231, 0); return 0; }")

    def test_in_a_destructor(self):
        for wrong in (False, True):
            self.check(int(wrong), f"{int(not wrong)} passed, {int(wrong)} failed", told=True,
                       begin="constexpr int THREADS = 256;\nstruct Late { ~Late() { std::_Exit(0); } } late;",
                       **{"sum": "float sum = 1.0f;"} if wrong else {})


if __name__ == "__main__":
    unittest.main()
