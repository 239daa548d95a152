"""`./ladder test`: builds the tests, chooses them by CTest's labels and names, and adds up what they
found."""
import collections
import contextlib
import csv
import glob
import os
import re
import shutil
import subprocess
import time
import xml.etree.ElementTree as xml

from common.command import building, machine
from common.command.building import Lacking, folder
from common.command.machine import say
from common.show.files import ROOT
from common.show.support import fail

NOISE = re.compile(r"^ +Start +\d+: |^Label Time Summary|sec\*proc|^Test project|^$")
THOROUGH = "^thorough$"
SIMULATORS = ("sim", "sim-count", "sim-asan")
LEFT_OUT = ("left out, and in ./ladder test --all: every layout of the tensors, large layers, limits "
            "beyond 16 bits, the host's code under sanitizers, the other planted bugs, the other exercises, "
            "fuzzers")


def cases_of(path):
    """The <testcase>s of a report; none where there is no whole one."""
    try:
        return list(xml.parse(path).iter("testcase"))
    except (OSError, xml.ParseError):
        return []


class Results:
    """The sum of what all suites found."""

    def __init__(self):
        self.passed, self.failed, self.skipped = 0, 0, collections.Counter()  # skipped: by reason

    def add(self, preset):
        """Counts the cases in the reports that suites have left, and the CTest entries that leave none:
        a script is one test, and so is a program that did not get as far as its report."""
        for entry in cases_of(folder(preset, "tests.xml")):
            name, failed = entry.get("name"), self.failed
            report = folder(preset, "test-results", name + ".xml")
            cases = cases_of(report)
            if not cases and os.path.exists(report) and entry.get("status") == "run":
                fail(f"build/{preset}: the suite {name} has found no test")
            for case in cases or [entry]:
                self.count(case)
            if entry.get("status") == "fail" and self.failed == failed:
                self.failed += 1  # outside of its cases

    def count(self, case):
        skipped = case.find("skipped")
        said = "" if skipped is None else f"{skipped.get('message')}\n{case.findtext('system-out', '')}"
        if case.find("failure") is not None or said.startswith("Unable to find executable"):
            self.failed += 1
        elif skipped is not None or case.get("status") in ("notrun", "disabled"):
            self.skipped[(said.strip().splitlines() or ["disabled"])[-1]] += 1
        else:
            self.passed += 1

    def sum_up(self):
        for reason, count in self.skipped.items():
            print(f"skipped, {count}: {reason}")
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped.total()} skipped")
        return 0 if self.passed and not self.failed else 1


class Tests:
    """Some of the tests, on what backends there are."""

    def __init__(self, backend, chosen):
        self.backend, self.chosen, self.results = backend, chosen, Results()
        self.optional = chosen == "gpu" and not backend  # a GPU is tested without the simulator as well

    def build(self, preset, *targets):
        building.build(preset, "test", *targets, demanded="GoogleTest",
                       optional=self.optional and preset in SIMULATORS)

    def run(self, preset, *options):
        """A failure is shown at once, a suite's end with one line."""
        say(f"testing build/{preset}")
        report = folder(preset, "tests.xml")
        with contextlib.suppress(FileNotFoundError):
            os.remove(report)
        failed = self.results.failed
        command = [building.cached(preset, "CMAKE_CTEST_COMMAND"), "--preset", preset, "--parallel",
                   str(os.cpu_count()), "--output-junit", report, *options]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True,
                              errors="replace") as ctest:
            for line in ctest.stdout:
                if not NOISE.search(line):
                    print(line, end="", flush=True)
        if not os.path.exists(report):
            fail(f"ctest --preset {preset} gave no results")
        self.results.add(preset)
        if ctest.returncode and self.results.failed == failed:
            fail(f"ctest --preset {preset} ended with status {ctest.returncode}")

    def suites(self, targets, counting, options):
        """The tests that options choose: those of targets, and those of the target counting in the
        simulator that counts, which finds races and stray accesses."""
        if self.backend != "gpu":
            with self.of_the_simulator("what runs in the simulator"):
                self.build("sim", *targets)
                self.run("sim", *options)
                self.build("sim-count", *counting)
                self.run("sim-count", "--label-regex", "^(counting|bugs)$", *options)
        if self.chosen == "gpu":
            self.build("gpu", *targets)
            self.run("gpu", *options)
        elif not self.backend:  # as many as ran in the simulator
            reports = glob.glob(glob.escape(folder("sim", "test-results")) + "/[0-9][0-9]_*.xml")
            self.results.skipped["on a GPU: there is none here with nvcc"] += sum(
                len(cases_of(report)) for report in reports)

    @contextlib.contextmanager
    def of_the_simulator(self, what):
        """Skips what stands in it where the simulator can't be had."""
        try:
            yield
        except Lacking as lacking:
            self.results.skipped[f"all of {what}: {lacking}"] += 1

    # ---- What is thorough, in parts ----

    def planted_bugs(self):
        self.run("sim", "--tests-regex", "^variants.thorough$")
        self.run("sim-count", "--tests-regex", "^variants.thorough$")

    def races_in_layers(self):
        self.run("sim-count", "--tests-regex", r"^count\..*\.thorough$")

    def all_exercises(self):
        self.run("sim-count", "--tests-regex", r"^exercises_judged\.thorough$")

    def sanitized_code(self):
        self.build("sim-asan", "tests")
        self.run("sim-asan", "--label-exclude", THOROUGH)

    def thorough_simulator(self):
        self.build("sim", "all")
        self.run("sim", "--label-regex", THOROUGH, "--exclude-regex", "^variants")

    def thorough_gpu(self):
        self.build("gpu", "all")
        self.run("gpu", "--label-regex", THOROUGH)

    def thorough(self, minutes, begun):
        """Parts that would begin after so many minutes are left out; none if that is None."""
        parts = [] if self.backend == "gpu" else [
            self.planted_bugs, self.races_in_layers, self.all_exercises, self.sanitized_code,
            self.thorough_simulator]
        parts += [self.thorough_gpu] if self.chosen == "gpu" else []
        for part in parts:
            name = part.__name__.replace("_", " ")
            if minutes is not None and time.monotonic() - begun >= 60 * minutes:
                say(f"left out after {minutes} minutes: {name}")
            else:
                with self.of_the_simulator(name):
                    part()


def warn_of_old_records():
    """Names the results of long runs that are of other kernels than those here."""
    script = os.path.join(ROOT, "common", "command", "cmake", "KernelsDigest.cmake")
    digest = subprocess.run([machine.cmake(), "-D", f"ROOT={ROOT}", "-P", script], text=True, check=True,
                            stderr=subprocess.PIPE).stderr.strip()
    with open(os.path.join(ROOT, "docs", "results", "campaigns.csv"), encoding="utf-8") as file:
        old = [f"{row[0]} ({row[2]})" for row in list(csv.reader(file))[1:]
               if row[3] not in ("-", digest)]
    if old:
        say("warning: docs/results/campaigns.csv: of other kernels than those here "
            f"({digest}): {', '.join(old)}")


def test(options, backend, chosen):
    """options: all, minutes, stage. The exit status."""
    begun = time.monotonic()
    for preset in (*SIMULATORS, "gpu"):
        shutil.rmtree(folder(preset, "test-results"), ignore_errors=True)
    tests = Tests(backend, chosen)
    if options.stage:
        names = "|".join(options.stage)
        more = r"(\.readings)?(\.thorough|\.fuzz)?" if options.all else ""
        tests.suites([*options.stage, *(f"test_{stage}" for stage in options.stage)],
                     ["stage_counts_tests", "convladder"],
                     ["--tests-regex", rf"^(count\.)?({names}){more}$"])
        return tests.results.sum_up()
    tests.suites(["tests"], ["counting"], ["--label-exclude", THOROUGH])
    if options.all:
        tests.thorough(options.minutes, begun)
        warn_of_old_records()
    else:
        say(LEFT_OUT)
    return tests.results.sum_up()
