#!/usr/bin/env python3
"""Tests of common/measure/sanitize.py, with a compute-sanitizer that only prints like one."""
import os
import unittest
from unittest import mock

from common.tests.fake_program import FakeProgramTest, called

from common.measure import sanitize
from common.show import support

CLEAN = """
words = sys.argv[1:]
tool, stage = words[words.index("--tool") + 1], words[words.index("--stage") + 1]
status, errors = REPORTS.get((tool, stage), (0, 0))
print("========= COMPUTE-SANITIZER")
records = [{"stage": stage, "problem": name, "status": "pass", "message": note}
           for name, note in (("small", ""), ("large", "cut down to n1 c1"))]
json.dump(records, open(words[words.index("--json") + 1], "w"))
print("2 passed, 0 failed, 0 rejected, 0 skipped (backend: gpu)")
if tool == "racecheck":
    print("========= RACECHECK SUMMARY: %d hazard%s displayed (%d errors, 0 warnings)"
          % (errors, "" if errors == 1 else "s", errors))
else:
    print("========= ERROR SUMMARY: %d error%s" % (errors, "" if errors == 1 else "s"))
    if errors > 100:
        print("========= ERROR SUMMARY: %d errors were not printed. Use --print-limit option to "
              "adjust the number of printed errors" % (errors - 100))
sys.exit(status)
"""


class SanitizeTest(FakeProgramTest):
    def setUp(self):
        super().setUp()
        self.sanitizer()

    def sanitizer(self, source=CLEAN, reports=()):
        self.program("compute-sanitizer", f"REPORTS = {dict(reports)!r}\n" + source)

    def run_it(self, *words):
        with mock.patch.object(sanitize, "REPORT", self.folder):
            return called(sanitize.main, list(words))

    def rows(self, out):
        """[[tool, stage, checks, reports, seconds, result]] of the table."""
        return [line.split() for line in out.split("\n\n")[0].splitlines()[2:]]

    def test_clean_stages_under_all_tools(self):
        status, out, err = self.run_it()
        self.assertEqual((status, err), (0, ""))
        stages = support.stage_names()
        self.assertGreaterEqual(len(stages), 5)
        rows = self.rows(out)
        self.assertEqual([row[:2] for row in rows],
                         [[tool, stage] for tool in sanitize.TOOLS for stage in stages])
        self.assertTrue(all((row[2], row[3], row[5]) == ("2", "0", "pass") for row in rows))
        self.assertIn("1 of the 2 problems were cut down", out)
        self.assertIn(f"\n{4 * len(stages)} runs, 0 reports, 0 failed\n", out)

    def test_tools_and_stages_are_chosen(self):
        _, out, _ = self.run_it("--tool", "synccheck", "--tool", "memcheck", "--stage",
                                "03_shared_tiling")
        self.assertEqual([row[:2] for row in self.rows(out)],
                         [["memcheck", "03_shared_tiling"], ["synccheck", "03_shared_tiling"]])
        with open(self.path("sanitizer/memcheck-03_shared_tiling.log"), encoding="utf-8") as log:
            command = log.readline()
        for words in ("--tool memcheck", "--error-exitcode 86", "check --no-guards",
                      "--stage 03_shared_tiling", "--max-gmac 0.001"):
            self.assertIn(words, command)

    def test_several_runs_at_a_time_are_reported_in_order(self):
        expected = [row[:4] for row in self.rows(self.run_it()[1])]
        status, out, _ = self.run_it("--jobs", "7")
        self.assertEqual((status, [row[:4] for row in self.rows(out)]), (0, expected))
        self.sanitizer(reports={("initcheck", "02_im2col_gemm"): (86, 5)})
        self.assertEqual(self.run_it("--jobs", "7")[0], 1)
        self.assertEqual(self.run_it("--jobs", "0")[0], 2)

    def expect(self, counts, message, source=CLEAN, **reports):
        """The reports of the tools that fail, and why. reports: {tool: (status, errors)}."""
        self.sanitizer(source, {(tool, "01_naive"): found for tool, found in reports.items()})
        status, out, _ = self.run_it("--tool", "memcheck", "--tool", "racecheck", "--stage",
                                     "01_naive")
        self.assertEqual(status, 1)
        failed = [row for row in self.rows(out) if row[-1] != "pass"]
        self.assertEqual([row[3] for row in failed], counts)
        self.assertRegex(out, message)

    def test_reports_are_counted(self):
        self.expect(["1"], "memcheck 01_naive: 1 reports; see memcheck-01_naive.log",
                    memcheck=(86, 1))
        self.expect(["769"], "769 reports", memcheck=(86, 769))
        self.expect(["3"], "racecheck 01_naive: 3 reports", racecheck=(86, 3))
        self.expect(["2"], "2 reports", memcheck=(0, 2))  # whatever the status says

    def test_what_is_no_pass(self):
        self.expect(["0"], "status 1 without a report", racecheck=(1, 0))
        self.expect(["?", "?"], "no summary.*process was terminated",
                    "print('========= Error: process was terminated')\nsys.exit(0)")
        self.expect(["?"], "racecheck 01_naive: no summary",
                    CLEAN.replace("RACECHECK SUMMARY", "ERROR SUMMARY"))  # another tool's is none
        self.expect(["0", "0"], "small: fail: NaN",
                    CLEAN.replace('"status": "pass", "message": note',
                                  '"status": "fail", "message": "NaN"'))
        self.sanitizer()
        self.run_it("--stage", "01_naive")  # what that has checked does not count
        self.expect(["0", "0"], "no problem was checked",
                    CLEAN.replace("json.dump", "0 and json.dump"))

    def test_usage_errors(self):
        for words, pattern in ((("--tool", "leakcheck"), "leakcheck"),
                               (("--stage", "00_none"), "stage '00_none' is unknown; .*01_naive"),
                               (("--max-gmac", "much"), "--max-gmac = 'much'"),
                               (("--max-gmac", "nan"), "--max-gmac = 'nan'"),
                               (("--max-gmac", "0"), "--max-gmac = '0'"), (("--fast",), "--fast")):
            status, _, err = self.run_it(*words)
            self.assertEqual(status, 2)
            self.assertRegex(err, "^ladder: error: .*" + pattern)

    def test_no_compute_sanitizer(self):
        os.remove(self.path("compute-sanitizer"))
        with mock.patch.dict(os.environ, PATH=self.folder):
            status, _, err = self.run_it()
        self.assertEqual(status, 1)
        self.assertIn("no compute-sanitizer in the PATH", err)


if __name__ == "__main__":
    unittest.main()
