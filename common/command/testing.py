"""`./ladder test`: builds the tests, chooses them by CTest's labels and names, and adds up what they
found."""
import collections
import contextlib
import glob
import os
import re
import shutil
import subprocess
import time
import xml.etree.ElementTree as xml

from common.command import building
from common.command.building import Lacking, folder
from common.command.machine import child, say
from common.show import files
from common.show.files import ROOT
from common.show.support import fail

NOISE = re.compile(r"^ +Start +\d+: |^Label Time Summary|sec\*proc|^Test project|^$")
THOROUGH = "^thorough$"
SIMULATORS = ("sim", "sim-count", "sim-asan")
# In this order: name, preset, targets, CTest's options.
THOROUGH_PARTS = [
    *((f"planted bugs of {stage}, for {preset}", preset, [],
       ["--tests-regex", rf"^variants\.{stage}\.thorough$"])
      for stage in files.lessons() for preset in ("sim", "sim-count")),
    ("races in layers", "sim-count", [], ["--tests-regex", r"^count\..*\.thorough$"]),
    ("all exercises, and programs in more orders", "sim-count", [],
     ["--tests-regex", r"^(exercises|exercises_judged|programs)\.thorough$"]),
    ("sanitized code", "sim-asan", ["tests"], ["--label-exclude", THOROUGH]),
    ("the thorough tests of the simulator", "sim", ["all"],
     ["--label-regex", THOROUGH, "--exclude-regex", "^variants"]),
    ("the thorough tests of the GPU", "gpu", ["all"], ["--label-regex", THOROUGH])]
LEFT_OUT = ("left out, and in ./ladder test --all: every kind of data in every layout of the tensors, large "
            "layers, limits beyond 31 bits, the host's code under sanitizers, the other planted bugs, "
            "exercises and cheats, fuzzers")


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
        suites = building.text_of(preset, "suites.txt").split()
        for entry in cases_of(folder(preset, "tests.xml")):
            name, failed = entry.get("name"), self.failed
            report = folder(preset, "test-results", name + ".xml")
            cases = cases_of(report)
            if not cases and os.path.exists(report) and entry.get("status") == "run":
                fail(f"build/{preset}: the suite {name} has found no test")
            for case in cases or [entry]:
                self.count(case)
            # A stage may have ended the process as if all were well.
            if not cases and name in suites and entry.get("status") == "run":
                say(f"{name}: has ended without its report")
                self.passed, self.failed = self.passed - 1, self.failed + 1
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


def run(preset, options, results, in_turns=False):
    """A failure is shown at once, a suite's end with one line. in_turns: kinds of data take turns."""
    say(f"testing build/{preset}")
    report, failed = folder(preset, "tests.xml"), results.failed
    with contextlib.suppress(FileNotFoundError):
        os.remove(report)
    command = [building.cached(preset, "CMAKE_CTEST_COMMAND"), "--preset", preset, "--parallel",
               str(os.cpu_count()), "--output-junit", report, *options]
    env = os.environ | ({"CONVLADDER_IN_TURNS": "1"} if in_turns else {})
    with child(*command, whole=True, cwd=ROOT, env=env, stdout=subprocess.PIPE, errors="replace") as ctest:
        for line in ctest.stdout:
            if not NOISE.search(line):
                print(line, end="", flush=True)
    if not os.path.exists(report):
        fail(f"ctest --preset {preset} gave no results")
    results.add(preset)
    if ctest.returncode and results.failed == failed:
        fail(f"ctest --preset {preset} ended with status {ctest.returncode}")


def warn_of_old_records():
    """Names the results of long runs that are of other kernels than those here."""
    digest = files.kernels_digest()
    rows = files.read_rows(os.path.join(ROOT, "docs", "results", "campaigns.csv"))
    if old := [f"{row['campaign']} ({row['device']})" for row in rows if row["kernels"] not in ("-", digest)]:
        say("warning: docs/results/campaigns.csv: of other kernels than those here "
            f"({digest}): {', '.join(old)}")


def test(options, backend, chosen):
    """options: all, minutes, stage. The exit status."""
    begun, results = time.monotonic(), Results()
    for preset in ("gpu", *SIMULATORS):
        shutil.rmtree(folder(preset, "test-results"), ignore_errors=True)
    targets, counting, chosen_tests = ["tests"], ["counting"], ["--label-exclude", THOROUGH]
    if options.stage:
        targets = [*options.stage, *(f"test_{stage}" for stage in options.stage)]
        counting = ["stage_counts_tests", "convladder"]
        more = r"(\.readings)?(\.thorough|\.fuzz)?" if options.all else ""
        chosen_tests = ["--tests-regex", rf"^(count\.|asks\.)?({'|'.join(options.stage)})(_tf32)?{more}$"]
    parts = [("the simulator", "sim", targets, chosen_tests),
             ("what the simulator counts", "sim-count", counting,
              ["--label-regex", "^(counting|bugs)$", *chosen_tests]),
             ("the GPU", "gpu", targets, chosen_tests)]
    thorough = options.all and not options.stage
    for part in parts + (THOROUGH_PARTS if thorough else []):
        name, preset, targets, choice = part
        if backend == "gpu" and preset in SIMULATORS or chosen != "gpu" and preset == "gpu":
            continue
        if options.minutes is not None and part not in parts and \
                time.monotonic() - begun >= 60 * options.minutes:
            say(f"left out after {options.minutes} minutes: {name}")
            continue
        try:
            # A GPU is tested without the simulator as well.
            building.build(preset, "test", *targets, demanded="GoogleTest",
                           optional=chosen == "gpu" and not backend and preset in SIMULATORS)
            in_turns = preset in SIMULATORS and not options.stage and part in parts
            run(preset, choice, results, in_turns)
        except Lacking as lacking:
            results.skipped[f"all of {name}: {lacking}"] += 1
    if chosen != "gpu" and not backend:  # as many as ran in the simulator
        reports = glob.glob(glob.escape(folder("sim", "test-results")) + "/[0-9][0-9]_*.xml")
        results.skipped["on a GPU: there is none here with nvcc"] += sum(map(len, map(cases_of, reports)))
    if thorough:
        warn_of_old_records()
    elif not options.stage:
        say(LEFT_OUT)
    return results.sum_up()
