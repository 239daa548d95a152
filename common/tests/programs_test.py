#!/usr/bin/env python3
"""Programs in plain CUDA, in programs/, through `./ladder sim`. Some say in their heads what is then shown:

  // options: --count               of sim
  // seen: text                     in what is printed; {mark}: FILE:LINE of the line that ends with "// mark"
  // status: 1                      the exit status

The others check themselves against what CUDA promises, in several orders of threads; and *mistakes.cu name
what must be found of each of their mistakes (in one of the orders, where tests take turns).
"""
import glob
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from common.command import sim
from common.show import files
from common.show.files import ROOT
from common.tests.folder_test import called
from common.variants.build import TRANSLATE

FOLDER = os.path.join(ROOT, "common", "tests", "programs")
SEEDS = ["0", "1", "2"]


def directives(text, name):
    return re.findall(rf"^// {name}: (.*)$", text, re.MULTILINE)


def line_of(text, file, mark):
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(rf"  // {re.escape(mark)}( .*)?$", line):
            return f"{file}:{number}"
    raise AssertionError(f"{file} has no line with // {mark}")


def compiled(file, folder):
    program = os.path.join(folder, "kept")
    sim.compile_program(sim.parse([os.path.join(FOLDER, file), "--keep", program]), folder)
    return program


def run(program, seed, *arguments):
    """(the process, what was found)"""
    report = program + ".json"
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=100, check=False,
                          env={**os.environ, "CONVLADDER_SIM_REPORT": report, "CONVLADDER_SIM_SEED": seed})
    return done, [finding["what"] for finding in json.loads(files.read(report))["findings"]]


class Programs(unittest.TestCase):
    def check_shown(self, file, text):
        options = [word for line in directives(text, "options") for word in line.split()]
        done = subprocess.run([sys.executable, "-B", "-m", "common.command.sim", file, *options], check=False,
                              cwd=FOLDER, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, "PYTHONPATH": ROOT})
        printed = done.stdout.replace("common/tests/programs/", "")
        for seen in directives(text, "seen"):
            wanted = re.sub(r"\{([\w ]+)\}", lambda mark: line_of(text, file, mark[1]), seen)
            self.assertIn(wanted, printed, file)
        self.assertEqual([done.returncode], [int(status) for status in directives(text, "status")], printed)

    def check_itself(self, file):
        with tempfile.TemporaryDirectory() as folder:
            program = compiled(file, folder)
            for seed in SEEDS:
                with self.subTest(program=file, seed=seed):
                    done, found = run(program, seed)
                    self.assertIn("all right", done.stdout + done.stderr)
                    self.assertEqual((done.returncode, found), (0, []))

    def check_mistakes(self, file, text):
        expected = re.findall(r"^// (\w+): (.*)$", text, re.MULTILINE)
        with tempfile.TemporaryDirectory() as folder:
            program = compiled(file, folder)
            for number, (name, pattern) in enumerate(expected):
                for seed in SEEDS[number % 3:][:1] if "CONVLADDER_IN_TURNS" in os.environ else SEEDS:
                    with self.subTest(mistake=name, seed=seed):
                        done, found = run(program, seed, name)
                        self.assertEqual(done.returncode, 0, done.stderr)
                        wanted = re.sub(r"\{(\w+)\}", lambda mark: line_of(text, file, mark[1]), pattern)
                        self.assertRegex("\n".join(found), wanted)

    def test_whoever_ends_it_while_it_compiles_finds_nothing_left(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            with self.subTest(number), tempfile.TemporaryDirectory() as folder, subprocess.Popen(
                    [sys.executable, "-B", "-m", "common.command.sim", os.path.join(FOLDER, "long.cu")],
                    cwd=ROOT, env={**os.environ, "TMPDIR": folder}, start_new_session=True, text=True,
                    stderr=subprocess.PIPE) as running:
                while not glob.glob(f"{folder}/*/0.o.*") and running.poll() is None:
                    time.sleep(0.01)
                os.killpg(running.pid, number)
                self.assertEqual((running.stderr.read(), running.wait()), ("", 128 + number))
                self.assertEqual(os.listdir(folder), [])

    def test_a_limit_that_was_not_reached_is_not_named(self):
        with tempfile.TemporaryDirectory() as folder, subprocess.Popen(
                [sys.executable, "-B", "-m", "common.command.sim", os.path.join(FOLDER, "long.cu"),
                 "--seconds", "500", "--keep", f"{folder}/kept"], cwd=ROOT, text=True, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE) as running:
            while not os.path.exists(f"{folder}/kept") and running.poll() is None:
                time.sleep(0.01)
            time.sleep(2)  # the program runs
            running.terminate()
            _, said = running.communicate()
            self.assertEqual(running.returncode, 128 + signal.SIGTERM, said)
            self.assertIn("the program was ended in count_for_long at ", said)

    def test_what_was_found_before_a_signal(self):
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "race.cu")
            files.write(source, """#include <csignal>
                __global__ void race(int* p) { p[0] = threadIdx.x; }
                int main(int, char** words) {
                  int* p;
                  cudaMalloc(&p, 4);
                  race<<<1, 64>>>(p);
                  raise(atoi(words[1]));
                }""")
            program = compiled(source, folder)
            for number in (signal.SIGPIPE, signal.SIGALRM, signal.SIGUSR1, signal.SIGQUIT, signal.SIGTERM):
                done, found = run(program, "1", str(int(number)))
                self.assertEqual(done.returncode, 128 + number, done.stderr)
                self.assertRegex("\n".join(found), "data race: writes 4 bytes", number)

    def test_one_line_on_what_leaves_no_report(self):
        for body, status, wanted in (
                ("", 1, "error: .*/a.cpp: no main\\(\\)"), ("int main() { raise(SIGPIPE); }", 141, ""),
                ("int main() { raise(SIGKILL); }", 137, "the program was ended by SIGKILL"),
                ("int main() { void* volatile p = malloc(60000); void* volatile q = malloc(60000); free(p); "
                 "free(p); free(q); }", 134,
                 "the program was ended by SIGABRT"),
                ("int main() { _exit(2); }", 2, ""),  # as where CONVLADDER_SIM_SEED is no number
                ("int main() { FILE* f = fopen(getenv(\"CONVLADDER_SIM_REPORT\"), \"w\"); fputs(\"[]\", f); "
                 "fflush(f); _exit(0); }", 1, "error: the program has written a report of its own .*"),
                ("int main() { _exit(0); }", 1, "the program has left no report: .*")):
            with self.subTest(body), tempfile.TemporaryDirectory() as folder:
                files.write(f"{folder}/a.cpp", "#include <csignal>\n#include <cstdio>\n#include <cstdlib>\n"
                            f"#include <cstring>\n#include <unistd.h>\n{body}\n")
                done = subprocess.run([sys.executable, "-B", "-m", "common.command.sim", f"{folder}/a.cpp",
                                       "--seconds", str(1 << 62), "--", "-h"],  # more than there can be
                                      cwd=ROOT, capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stdout), (status, ""))
                heap = r"double free.*\nconvladder: error: the host's heap is broken: .*\n" * (status == 134)
                self.assertRegex(done.stderr, f"^{heap}ladder: {wanted}\n$" if wanted else "^$")

    def test_what_is_kept_is_whole(self):
        with tempfile.TemporaryDirectory() as folder:
            source, kept, link = (os.path.join(folder, name) for name in ("a.cpp", "k" * 255, "link"))
            files.write(kept, "of before")
            os.chmod(kept, 0o400)
            os.symlink(kept, link)
            files.write(source, "int f() { return 0; }")
            options = sim.parse([source, "--keep", link])
            status, _, said = called(sim.compile_program, options, folder)
            self.assertEqual((status, files.read(kept)), (1, "of before"), said)
            files.write(link, "mode")
            self.assertEqual(os.stat(kept).st_mode & 0o777, 0o400)
            files.write(source, "int main() { return 7; }")
            self.assertEqual(called(sim.compile_program, options, folder)[0], link)
            self.assertEqual(subprocess.run([kept], check=False).returncode, 7)
            self.assertTrue(os.path.islink(link))

    def test_a_header_of_the_device_in_a_file_of_the_host(self):
        texts = {
            "a.h": "#include <cuda_runtime.h>\nextern __constant__ float scale[4];\n"
                   "extern __device__ int count;\nextern __managed__ int both;\n"
                   "__host__ __device__ float twice(float x);\n"
                   "template <class T> __global__ void add(T* x) { __shared__ T room[4]; *x += *room; }\n"
                   "void launch();\n",
            "a.cu": '#include "a.h"\n__constant__ float scale[4] = {1, 2, 3, 4};\n__device__ int count;\n'
                    "__managed__ int both;\n__global__ void kernel() { count = both = int(scale[2]); }\n"
                    "void launch() { kernel<<<1, 1>>>(); cudaDeviceSynchronize(); }\n",
            "b.cpp": '#include "a.h"\nextern "C" int three(int this_is_c);\n'
                     "int main() { launch(); return both == three(0) ? 0 : 1; }\n",
            "c.c": "int three(int class) { return class + 3; }\n"}
        with tempfile.TemporaryDirectory() as folder:
            for name, text in texts.items():
                files.write(os.path.join(folder, name), text)
            done = subprocess.run([sys.executable, "-B", "-m", "common.command.sim", f"{folder}/a.cu",
                                   f"{folder}/b.cpp", f"{folder}/c.c"], cwd=ROOT, capture_output=True,
                                  text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("kernel: 1 launch, nothing found", done.stdout)

    def test_texts_that_break_off(self):
        for text, said in (("__global__ void k(int x)", ":1: error: k: neither a body nor a ';' stands"),
                           ("__global__", ":1: error: what __global__ stands before is no function"),
                           ("int x =", ":1:.* error: expected"),
                           ('void f() { asm("ld.shared.u32 %0, %1;"', "still open"),
                           ('__device__ void f(int x) { asm("ld.shared.u32 %0, %1;" : "=r"(x) : "r"(x)); }',
                            ':1: error: inline PTX "ld.shared.u32 %0, %1;" is not simulated'),
                           ("__global__ void k() { extern __shared__ float x; }",
                            ":1: error: an extern __shared__ variable is an array, without a size")):
            with self.subTest(text), tempfile.TemporaryDirectory() as folder:
                files.write(f"{folder}/a.cu", text)
                done = subprocess.run([sys.executable, "-B", "-m", "common.command.sim", f"{folder}/a.cu"],
                                      cwd=ROOT, capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, said)
                self.assertNotIn("Traceback", done.stderr)

    def test_cudas_headers_in_a_file_of_c(self):
        for text, said in (('#include "cuda_runtime.h"\n', "compiled as C[+]{2}, since it includes CUDA's"),
                           ('#include "a.h"\n', "compiled as C, and CUDA's headers, .*: name it .cpp$"),
                           ("#include <curses_of_nobody.h>\n", "a.c:1:.*No such file")):
            with self.subTest(text), tempfile.TemporaryDirectory() as folder:
                files.write(f"{folder}/a.h", "#include <cuda_runtime.h>\n")
                files.write(f"{folder}/a.c", f"{text}int main(void) {{ int* p = malloc(4); return !p; }}\n")
                done = subprocess.run([sys.executable, "-B", "-m", "common.command.sim", f"{folder}/a.c"],
                                      cwd=ROOT, capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, re.compile(said, re.MULTILINE))
                self.assertEqual("compiled as" in done.stderr, "compiled as" in said)

    def test_a_kernel_in_a_header_and_a_text_that_is_no_utf8(self):
        with tempfile.TemporaryDirectory() as folder:
            files.write(f"{folder}/k.h",
                        "__global__ void k(int* a) {\n  int i = threadIdx.x;\n  a[i] = 1;\n}\n")
            pathlib.Path(folder, "a.cu").write_bytes(
                b'#include <cassert>\n#include "k.h"\n'
                b'__global__ void check(int* a) { assert(a == nullptr && "gr\xf6\xdfer"); }\n'
                b"int main() {\n  int* a;\n  cudaMalloc(&a, 40);\n  k<<<1, 32>>>(a);\n"
                b"  cudaDeviceSynchronize();\n  cudaDeviceReset();\n  check<<<1, 1>>>(a);\n"
                b"  cudaDeviceSynchronize();\n}\n")
            done = subprocess.run([sys.executable, "-B", "-m", "common.command.sim", f"{folder}/a.cu"],
                                  cwd=ROOT, capture_output=True, check=False)
            said = done.stdout.decode("utf-8", "replace")
            self.assertRegex(said, r"out of bounds, [^\n]*/k\.h:3\n")
            self.assertRegex(said, r"assertion `a == nullptr && .*failed at [^\n]*/a\.cu:3")

    def test_at_a_terminal_it_says_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            files.write(f"{folder}/a.cu", "__global__ void k(float* x, int n) { x[n] = 1; }\n"
                                          "int main() {\n  float* x = nullptr;\n  k<<<1, 1>>>(x);\n}\n")
            ours, theirs = pty.openpty()
            done = subprocess.run([sys.executable, "-B", "-m", "common.command.sim", f"{folder}/a.cu"],
                                  cwd=ROOT, stderr=theirs, check=False)
            said = os.read(ours, 10000).decode()
            self.assertEqual(done.returncode, 1)
            self.assertRegex(said, r"^\S*a.cu:4: error: the launch's arguments [^\n]*\n$")
            os.close(ours), os.close(theirs)

    def test_counters_and_a_status_that_looks_like_a_signal(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(f"{folder}/tmp")
            files.write(f"{folder}/a.cu",
                        "__device__ int x[32];\n__global__ void k() { x[threadIdx.x] = 1; }\n"
                        "struct Late { bool is = false; ~Late() { if (is) k<<<1, 32>>>(); } } late;\n"
                        "int main(int words, char**) {\n  late.is = words > 1;\n  k<<<1, 32>>>();\n"
                        "  cudaDeviceSynchronize();\n  return 130;\n}\n")
            done = subprocess.run([sys.executable, "-B", "-m", "common.command.sim", "a.cu", "--count",
                                   "--seed", "0", "--json", "out.json", "--keep", "kept"],
                                  check=False, cwd=folder, capture_output=True, text=True,
                                  env={**os.environ, "PYTHONPATH": ROOT, "TMPDIR": "tmp"})
            self.assertEqual((done.returncode, done.stderr), (130, ""))
            self.assertIn("k: 1 launch, nothing found", done.stdout)
            report = json.loads(files.read(f"{folder}/out.json"))
            kernel, = report["kernels"]
            self.assertEqual((report["status"], kernel["launches"]), (130, 1))
            self.assertEqual(kernel["l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"], 1)
            self.assertEqual(os.listdir(f"{folder}/tmp"), [])
            done = subprocess.run([f"{folder}/kept", "late"], check=False, capture_output=True, text=True,
                                  env={**os.environ, "CONVLADDER_SIM_REPORT": f"{folder}/late.json"})
            self.assertEqual((done.returncode, done.stderr), (
                1, "convladder: error: a launch after main() has ended is not simulated\n"))

    def test_what_another_build_has_removed(self):
        with tempfile.TemporaryDirectory() as folder:
            files.write(f"{folder}/cc", '#!/bin/sh\ncase "$*" in *-E*) echo >x.ii;; *) rm x.ii;; esac\n')
            os.chmod(f"{folder}/cc", 0o755)
            done = subprocess.run([*TRANSLATE, "./cc", "-o", "x", "-c", "a.cu"], cwd=folder, check=False)
            self.assertEqual(done.returncode, 0)

    def test_settings_that_are_no_numbers(self):
        with tempfile.TemporaryDirectory() as folder:
            program = compiled("votes.cu", folder)
            report = {"CONVLADDER_SIM_REPORT": program + ".json"}
            for name in ("CONVLADDER_SIM_SEED", "CONVLADDER_SIM_THREADS"):
                done = subprocess.run([program], capture_output=True, text=True, check=False,
                                      env={**os.environ, **report, name: "x"})
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertRegex(done.stderr,
                                 f"^ladder: error: {name} is 'x'; it must be a number from [^\n]*\n$")

    def test_usage(self):
        source = os.path.join(FOLDER, "ended.cu")
        for words, message in (
                ([source, "--seed", "x"], "invalid int value: 'x'"),
                ([source, "--seed", "-1"], "must be from 0"),
                ([source, "--seed", "9" * 20], "must be from 0"), ([ROOT + "/README.md"], "is neither a .cu"),
                ([source, "--keep", source], "would be overwritten"), ([source + "x"], "no such file"),
                ([FOLDER], "is no regular file"), ([source, os.path.relpath(source)], "is given twice"),
                ([source, "--std", "c++11"], "invalid choice"),
                ([source, "--machine", "t4"], "is for --count"),
                ([source, "--machine", "nosuch", "--count"], "no GPU that is known"),
                ([source, "--json", "/dev/full"], "can't be written: it is no regular file"),
                ([source, "--json", "y" * 256], "can't be written: its name is too long"),
                ([source, "--keep", "/none/x"], "can't be written: there is no folder /none"),
                ([source, "--json", os.path.relpath(source)], "would be overwritten"),
                ([source, "--json", "new", "--keep", "./new"], "are the same file")):
            with self.subTest(words):
                status, _, said = called(sim.parse, words)
                self.assertEqual(status, 1 if "can't" in message else 2)
                self.assertIn(message, said)


def case(file):
    text = files.read(os.path.join(FOLDER, file))
    if directives(text, "status"):
        return lambda self: self.check_shown(file, text)
    if file.endswith("mistakes.cu"):
        return lambda self: self.check_mistakes(file, text)
    return lambda self: self.check_itself(file)


for each in sorted(os.listdir(FOLDER)):
    if each.endswith(".cu"):
        setattr(Programs, "test_" + each.removesuffix(".cu"), case(each))

if __name__ == "__main__":
    unittest.main()
