#!/usr/bin/env python3
"""Tests of common/tests/suites.py, with programs that only print and write like GoogleTest's."""
import contextlib
import io
import json
import os
import shutil
import subprocess
import unittest
from unittest import mock

from fake_program import FakeProgramTest  # first: it makes the next ones importable

import suites
import support

STAGES = ["01_one", "02_two"]
# TESTS is {full name: what stands inside its <testcase>; None for a crash}.
PROGRAM = """
from xml.sax.saxutils import quoteattr
if sys.argv[1] == "--gtest_list_tests":
    chosen = sys.argv[2].split("=")[1]
    for name in TESTS:
        if chosen == "*" or "-*" + name.split("/")[-1] != chosen:
            print(name.rpartition(".")[0] + ".", "  " + name.rpartition(".")[2], sep="\\n")
    sys.exit()
words = dict(word.split("=", 1) for word in sys.argv[1:])
cases = ""
for name in words["--gtest_filter"].split(":"):
    print("[ RUN      ]", name, flush=True)
    if TESTS[name] is None:
        os.abort()
    suite, _, test = name.rpartition(".")
    cases += f'<testcase name="{test}" status="run" classname="{suite}">{TESTS[name]}</testcase>'
with open(words["--gtest_output"].removeprefix("xml:"), "w") as file:
    file.write('<testsuites><testsuite backend="sim" device="a simulator">' + cases
               + "</testsuite></testsuites>")
sys.exit("<failure" in cases)
"""
COUNTED = '<properties><property name="cases" value="{}"/></properties>'
SKIPPED = '<skipped message="a.cpp:7&#x0A;needs a GPU"/>'
FAILED = '<failure message="a.cpp:8&#x0A;1 is not&#x0A;  2"/>'
PROBLEMS = {"Csv/StageOnProblem.IsRight/tiny": "", "Csv/StageOnProblem.IsRight/bad": FAILED}
LIMITS = {"LimitsTest.Most": COUNTED.format(30), "Count/Beyond.IsRight/large": SKIPPED,
          "Count/Beyond.IsRight/small": ""}
C_TESTS = {"Alone.Lists": "", "Stage/CApi.Bad/01_one": COUNTED.format(90),
           "Stage/CApi.Bad/02_two": COUNTED.format(94)}


def record(passed, counts=(), skipped=(), failed=()):
    return {"passed": passed, "failed": dict(failed), "skipped": dict(skipped),
            "counts": dict(counts)}


class Suites(FakeProgramTest):
    def run_it(self, *words, one=None, two=None, c_tests=None):
        """Exit status, standard output and standard error of the command."""
        for program, tests in (("test_01_one", one or LIMITS), ("test_02_two", two or LIMITS),
                               ("c_api_test", c_tests or C_TESTS)):
            self.program(program, f"TESTS = {tests!r}\n" + PROGRAM)
        out, err = io.StringIO(), io.StringIO()
        with mock.patch.object(support, "REPORT", self.folder), \
                mock.patch.object(support, "stage_names", lambda: STAGES), \
                contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = suites.main([self.folder, "--json", self.path("suite.json"), *words])
            except SystemExit as end:
                status = end.code
        return status, out.getvalue(), err.getvalue()

    def result(self):
        with open(self.path("suite.json"), encoding="utf-8") as file:
            return json.load(file)

    def test_counts_and_skips_by_stage(self):
        status, out, err = self.run_it()
        self.assertEqual((status, err), (0, ""))
        self.assertIn("test_01_one: 2 passed, 0 failed, 1 skipped\n", out)
        self.assertIn("c_api_test: 2 passed, 0 failed, 0 skipped\n6 passed, 0 failed, 2 skip", out)
        result = self.result()
        self.assertEqual((result["format"], result["version"], result["backend"], result["device"]),
                         ("convladder suites", 1, "sim", "a simulator"))
        self.assertEqual(result["kernels"], support.kernels_digest())
        self.assertEqual(list(result["stages"]), STAGES)
        self.assertEqual(result["stages"]["02_two"], {
            "LimitsTest.Most": record(1, {"cases": 30}),
            "Beyond.IsRight": record(1, skipped={"needs a GPU": ["large"]}),
            "CApi.Bad": record(1, {"cases": 94})})

    def test_a_filter_leaves_out_but_not_unsaid(self):
        status, _, _ = self.run_it("--filter=-*small")
        self.assertEqual(status, 0)
        self.assertEqual(self.result()["stages"]["01_one"]["Beyond.IsRight"], record(
            0, skipped={"needs a GPU": ["large"], "left out by `--filter '-*small'`": ["small"]}))

    def test_a_failure_is_named_and_counted(self):
        status, out, _ = self.run_it(two={**LIMITS, "Count/Beyond.IsRight/small": FAILED})
        self.assertEqual(status, 1)
        self.assertIn("02_two: Beyond.IsRight/small: 1 is not 2\n5 passed, 1 failed, 2 skip", out)
        self.assertEqual(self.result()["stages"]["02_two"]["Beyond.IsRight"]["failed"],
                         {"small": "1 is not 2"})

    def test_stage_by_stage(self):
        self.assertEqual(self.run_it("--stage", "02_two")[0], 0)
        self.assertEqual(list(self.result()["stages"]), ["02_two"])
        self.assertEqual(self.run_it("--stage", "01_one")[0], 0)
        parts = self.result()
        self.run_it()
        self.assertEqual(self.result(), parts)
        other = {**parts, "device": "another simulator"}
        with open(self.path("suite.json"), "w", encoding="utf-8") as file:
            json.dump(other, file)
        self.run_it("--stage", "01_one")  # not to be mixed
        self.assertEqual(list(self.result()["stages"]), ["01_one"])

    def test_what_a_filter_leaves_out_keeps_its_counts(self):
        self.run_it()
        whole = self.result()
        worse = {**LIMITS, "LimitsTest.Most": COUNTED.format(7)}
        self.assertEqual(self.run_it("--filter=-*LimitsTest.Most", one=worse, two=worse)[0], 0)
        self.assertEqual(self.result(), whole)
        self.run_it("--filter=-*small", one=worse)
        self.assertEqual(self.result()["stages"]["01_one"]["LimitsTest.Most"],
                         record(1, {"cases": 7}))
        self.assertEqual(self.result()["stages"]["01_one"]["Beyond.IsRight"]["passed"], 0)

    def test_problems_at_once(self):
        status, out, _ = self.run_it("--jobs", "3", one={**PROBLEMS, **LIMITS})
        self.assertEqual(status, 1)
        self.assertIn("test_01_one: 3 passed, 1 failed, 1 skipped\n", out)
        self.assertIn("01_one: StageOnProblem.IsRight/bad: 1 is not 2\n", out)
        self.assertEqual(self.result()["stages"]["01_one"]["StageOnProblem.IsRight"],
                         record(1, failed={"bad": "1 is not 2"}))
        status, _, err = self.run_it("--jobs=2", two={"Csv/StageOnProblem.IsRight/tiny": None})
        self.assertEqual(status, 1)
        self.assertIn("test_02_two: crash (SIGABRT) in Csv/StageOnProblem.IsRight/tiny; see", err)

    def test_a_crash_writes_nothing(self):
        status, _, err = self.run_it(two={**LIMITS, "LimitsTest.Most": None})
        self.assertEqual(status, 1)
        self.assertRegex(err, r"^ladder: error: test_02_two: crash \(SIGABRT\) in LimitsTest.Most; "
                              r"see .*test_02_two.log\n$")
        self.assertFalse(os.path.exists(self.path("suite.json")))

    def test_nothing_that_ran_is_a_failure(self):
        status, _, err = self.run_it(one={"A.b": SKIPPED}, two={"A.b": SKIPPED},
                                     c_tests={"S/C.x/01_one": SKIPPED})
        self.assertEqual((status, err), (1, "ladder: error: no test has run: nothing to write\n"))
        self.assertFalse(os.path.exists(self.path("suite.json")))

    def test_usage(self):
        for words in (["--stage"], ["--stage", "03_none"], ["--jobs", "0"], ["--frobnicate"]):
            self.assertEqual(self.run_it(*words)[0], 2, words)
        status, _, err = self.run_it("--json", self.path("none/suite.json"))
        self.assertEqual(status, 1)
        self.assertIn("none/suite.json: there is no folder", err)

    def test_programs_that_are_not_built(self):
        out, err = io.StringIO(), io.StringIO()
        with mock.patch.object(support, "REPORT", self.folder), contextlib.redirect_stdout(out), \
                contextlib.redirect_stderr(err), self.assertRaises(SystemExit) as end:
            suites.main([self.path("nowhere"), "--json", self.path("suite.json")])
        self.assertEqual(end.exception.code, 1)
        self.assertRegex(err.getvalue(), "^ladder: error: .*nowhere/test_01_naive'\n$")


class Digest(FakeProgramTest):
    def test_it_is_of_the_kernels_names_and_contents(self):
        def write(name, text):
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(text)

        def digest():
            return support.kernels_digest(self.folder)

        write("01_a/a.cu", "a\n")
        write("common/core/b.h", "b\n")
        first = digest()
        # sha256sum 0*/*.cu common/core/* | sha256sum
        self.assertEqual(first, "abb38bcc5387")
        write("01_a/README.md", "no kernel")
        self.assertEqual(digest(), first)
        write("01_a/a.cu", "a \n")
        self.assertNotEqual(digest(), first)
        write("01_a/a.cu", "a\n")
        os.rename(self.path("common/core/b.h"), self.path("common/core/c.h"))
        self.assertNotEqual(digest(), first)

    @unittest.skipUnless(shutil.which("cmake"), "there is no cmake")
    def test_programs_are_built_with_the_same(self):
        script = os.path.join(support.ROOT, "common/cmake/KernelsDigest.cmake")
        subprocess.run(["cmake", "-D", f"ROOT={support.ROOT}", "-D", f"HEADER={self.path('a.h')}",
                        "-P", script], check=True)
        with open(self.path("a.h"), encoding="utf-8") as header:
            self.assertIn(f'"{support.kernels_digest()}"', header.read())


if __name__ == "__main__":
    unittest.main()
