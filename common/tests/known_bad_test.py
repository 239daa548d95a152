#!/usr/bin/env python3
"""Tests of common/tests/known_bad: planting bugs, and running a suite through crashes."""
import itertools
import os
import sys
import unittest
from unittest import mock

from common.tests.fake_program import FakeProgramTest

from common.tests.known_bad import bugs, known_bad, suite
from common.show import support, files

SOURCE = "int one = 1;\nint two = one +\n          one;\n"


class Bugs(FakeProgramTest):
    """In a checkout of one stage, 01_stage, with one source."""

    def setUp(self):
        super().setUp()
        os.makedirs(self.path("01_stage"))
        self.write("01_stage/stage.cu", SOURCE)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def read(self, text):
        return bugs.read(self.write("01_stage.bugs", text))

    def planted(self, text):
        bug, = self.read(text)
        bugs.plant(bug, self.path("out"), self.folder)
        with open(self.path("out/01_stage/stage.cu"), encoding="utf-8") as file:
            return file.read()

    def expect_bad(self, text, pattern):
        with self.assertRaisesRegex(bugs.BadBug, pattern):
            self.planted(text)

    def test_a_bug(self):
        self.write("other.h", "x\n")
        bug, = self.read("# comment\n\nbug wrong: what is wrong\n"
                         "detector data race\n- one;\n+ 2;\nin other.h\n- x\n+ y\n")
        self.assertEqual((bug.title, bug.about, bug.detector, bug.test),
                         ("01_stage.wrong", "what is wrong", "data race", None))
        self.assertEqual(bug.files(self.folder), ["01_stage/stage.cu", "other.h"])

    def test_whatever_the_line_breaks(self):
        self.assertEqual(self.planted("bug b: b\n- two = one + one;\n+ two = 3;\n+ // \\1\n"),
                         "int one = 1;\nint two = 3;\n// \\1\n")

    def test_several_replacements(self):
        self.assertEqual(self.planted("bug b: b\n- one = 1;\n+\n- one + one\n+ 2\n"),
                         "int \nint two = 2;\n")

    def test_a_source_that_has_changed(self):
        self.expect_bad("bug b: b\n- three\n+ 3\n", "01_stage.bugs:1: b: 'three' stands 0 times")
        self.expect_bad("bug b: b\n- one\n+ 1\n", "'one' stands 3 times")

    def test_bugs_taken_over(self):
        self.write("01_stage.bugs", "bug a: a\n- 1\n+ 2\nbug b: b\nin x.h\n- x\n+ y\nbug c: c\n- 1\n+ 3\n")
        os.makedirs(self.path("02_stage"))
        self.write("02_stage/other.cu", "x = 1")
        path = self.write("02_stage.bugs", "like 01_stage\nwithout c\n\nbug a: anew\n- 1\n+ 4\n")
        anew, taken = bugs.read(path)
        self.assertEqual([(bug.title, bug.about, bug.place) for bug in (anew, taken)],
                         [("02_stage.a", "anew", "02_stage.bugs:4"),
                          ("02_stage.b", "b", "01_stage.bugs:4")])
        self.assertEqual(taken.files(self.folder), ["02_stage/other.cu", "x.h"])
        self.write("02_stage.bugs",
                   "like 01_stage\nwithout b c\nlike 01_stage: c\nbug d: d\n- 1\n+ 2\n")
        self.assertEqual([bug.name for bug in bugs.read(path)], ["d", "a", "c"])
        for wrong in ("without d", "like 01_stage: d"):
            self.write("02_stage.bugs", f"like 01_stage\n{wrong}\n")
            with self.assertRaisesRegex(bugs.BadBug, "02_stage.bugs:2: there is no bug 'd' to be"):
                bugs.read(path)

    def test_malformed_files(self):
        for text, pattern in [("", "no bugs"), ("- x\n+ y\n", ":1: a file has"),
                              ("bug no about\n- x\n+ y\n", ":1: a file has"),
                              ("bug b: b\n", ":1: b: a replacement needs"),
                              ("bug b: b\n- x\n", ":1: b: a replacement needs"),
                              ("bug b: b\n+ y\n", ":2: a file has"),
                              ("bug b: b\nfile x\n", ":2: a file has"),
                              ("bug b: b\n- x\n+ y\nbug b: c\n- x\n+ y\n", "b is there twice")]:
            self.expect_bad(text, pattern)

    def test_every_bug_fits_the_stages(self):
        for bug in bugs.read_all():
            bugs.plant(bug, self.path("planted"))

    def test_every_barrier_goes_missing_once(self):
        barrier = "__syncthreads()"
        for stage, of_stage in itertools.groupby(bugs.read_all(), lambda bug: bug.stage):
            with open(os.path.join(bugs.ROOT, bugs.source_of(bugs.ROOT, stage)),
                      encoding="utf-8") as source:
                there = source.read().count(barrier)
            missing = [edit for bug in of_stage for edit in bug.edits
                       if barrier in "".join(edit.old) and barrier not in "".join(edit.new)]
            self.assertEqual(len(missing), there, stage)


# A GoogleTest program of the suite S. TESTS is {name: its output; None for a crash}.
PROGRAM = """
if sys.argv[1] == "--gtest_list_tests":
    print("S.", *TESTS, sep="\\n  ")
    sys.exit()
name = sys.argv[-1].split("=")[1]
print("[ RUN      ]", name, flush=True)
output = TESTS[name.removeprefix("S.")]
if output is None:
    os.abort()
print(output)
result = {"": "[       OK ]", "skipped": "[  SKIPPED ]"}.get(output, "[  FAILED  ]")
print(result, name + ", where x = 1 (2 ms)", flush=True)
sys.exit(result == "[  FAILED  ]")
"""


class Suite(FakeProgramTest):
    def run_tests(self, tests, *enough):
        self.program("suite", f"TESTS = {tests!r}\n" + PROGRAM)
        return suite.run(self.path("suite"), list(tests), *enough)

    def test_goes_on_after_a_crash(self):
        wrong = "output[n=0] = 1, expected 2; 3 of 4 checked outputs are wrong\nwide integers, bias"
        tests = {"a": "", "b": None, "c": wrong, "d": None, "e": "skipped"}
        self.assertEqual(self.run_tests(tests), {"a": "", "b": "crash (SIGABRT)",
                                                 "c": "wide integers", "d": "crash (SIGABRT)"})

    def test_stops_when_it_is_enough(self):
        results = self.run_tests({"a": "x", "b": "", "c": None, "d": "x"},
                                 lambda results: len(known_bad.failed(results)) == 2)
        self.assertEqual(results, {"a": "other", "b": "", "c": "crash (SIGABRT)"})

    def test_no_end(self):
        self.program("suite", "time.sleep(9)")
        with mock.patch.object(suite, "TIME_LIMIT", 0.1):
            self.assertEqual(suite.run(self.path("suite"), ["a"]), {"a": "no end"})

    def test_a_program_that_does_not_start(self):
        self.program("suite", "sys.exit(7)")
        with self.assertRaisesRegex(suite.ProgramFailed, "exit status 7, in none of its tests"):
            suite.run(self.path("suite"), ["a"])
        self.program("suite", "print()")
        with self.assertRaisesRegex(suite.ProgramFailed, "no test matches a"):
            suite.list_tests(self.path("suite"), "a")


class Verdict(FakeProgramTest):
    def bug(self, **members):
        return bugs.Bug("", "01_stage", "b", "b", **members)

    def test_what_catches_a_bug(self):
        failing = {f"Csv/S.GivesTheReference/{i}": "small integers" for i in range(3)}
        either = {"detector": "data race or never written"}
        for members, results, caught in (
                ({}, failing, True), ({}, {**failing, list(failing)[0]: ""}, False),
                ({"test": "Nan"}, {"StageTest.Nan": "NaN out of place"}, True),
                ({"test": "Nan"}, {"StageTest.Nan": ""}, False),
                (either, {"a": "other", "b": "never written"}, True),
                (either, {"a": "out of bounds", "b": ""}, False)):
            self.assertEqual(known_bad.is_caught(self.bug(**members), results), caught, results)

    def test_what_becomes_of_a_program(self):
        bug, sound = self.bug(test="Nan", edits=[1]), self.bug()
        for bug_or_sound, output, verdict, text in (
                (bug, "data race", "passed", "caught: data race"), (bug, "", "failed", "SURVIVES"),
                (bug, "skipped", "skipped", "is skipped here"),
                (sound, "", "passed", "passes"), (sound, "data race", "failed", "FAILS")):
            self.program("suite", f"TESTS = {{'Nan': {output!r}}}\n" + PROGRAM)
            result = known_bad.catch(bug_or_sound, self.path("suite"))
            self.assertEqual(result[0], verdict)
            self.assertIn(text, result[1])
        self.assertEqual(known_bad.catch(bug, self.path("none")),
                         ("failed", "01_stage.b: was not built"))


class Choice(FakeProgramTest):
    def test_two_canaries_of_each_stage(self):
        canaries = [bug for kind in known_bad.KINDS for bug, role in known_bad.programs(kind)
                    if role == "canary"]
        for stage in files.rungs():
            self.assertEqual([bug.stage for bug in canaries].count(stage), 2,
                             f"common/tests/known_bad/{stage}.bugs: see docs/adding-a-stage.md, Once it is "
                             "a rung")

    def test_each_bug_is_caught_once(self):
        caught = [bug.title for kind in known_bad.KINDS for bug, _ in known_bad.programs(kind)
                  if bug.edits]
        self.assertEqual(sorted(caught), sorted(bug.title for bug in bugs.read_all() if bug.edits))

    def test_a_report_for_counting(self):
        names = ["passes", "survives", "waits"]
        chosen = [bugs.Bug("", "01_stage", name, name) for name in names]
        verdicts = [("passed", "good"), ("failed", "bad"), ("skipped", "no GPU")]
        known_bad.write_xml(self.path("new/report.xml"), chosen, verdicts)
        with open(self.path("new/report.xml"), encoding="utf-8") as report:
            lines = report.read()
        self.assertEqual([lines.count(tag) for tag in ("<testcase ", "<failure ", "<skipped ")],
                         [3, 1, 1])


if __name__ == "__main__":
    unittest.main()
