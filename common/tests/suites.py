#!/usr/bin/env python3
"""The suites of all stages on one backend, and how much each of their tests has tried.

`./ladder suites --json FILE [--filter PATTERN] [--stage NAME]... [--jobs N]` builds the programs
and calls this. PATTERN is GoogleTest's: '-*BeyondThirtyOneBits*' leaves out what takes a GPU's
memory and minutes. With --jobs the problems of N stages are tried at once: mostly one core per
stage, at the reference. What --stage and --filter leave out keeps its counts in FILE, if that is of
the same kernels and device. Status 1 if a test fails, or none has run.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(FOLDER, "known_bad"), os.path.join(FOLDER, "..", "profile")]
import suite
import support

FORMAT = {"format": "convladder suites", "version": 1}
TEST = re.compile(r"(?:\w+/)?(\w+\.\w+)(?:/(\w+))?")  # INSTANCE/SUITE.TEST/PARAMETER
PROBLEM = re.compile(r"(?:\w+/)?StageOnProblem\.")  # small beside a GPU's memory
C_INTERFACE = "c_api_test"  # whose tests have the stage as their parameter
MESSAGE_LENGTH = 200
LEFT_OUT = "left out by"  # begins the reason for what a filter skips


class Tally:
    """What has become of the tests, by stage."""

    def __init__(self, stages):
        self.stages = {name: {} for name in stages}
        self.machine = {}  # backend and device, as the programs name them

    def record(self, program, name):
        """(record, parameter) of the program's test; None for one that is of none of the stages."""
        test, parameter = TEST.fullmatch(name).groups()
        stage = program.removeprefix("test_")
        if program == C_INTERFACE:
            stage, parameter = parameter, None
        if stage not in self.stages:
            return None
        record = self.stages[stage].setdefault(
            test, {"passed": 0, "failed": {}, "skipped": {}, "counts": {}})
        return record, parameter or ""

    def skip(self, program, name, reason):
        record, parameter = self.record(program, name)
        record["skipped"].setdefault(reason, []).append(parameter)

    def add(self, program, case):
        """Takes a <testcase> of GoogleTest's report."""
        name = f"{case.get('classname')}.{case.get('name')}"
        record, parameter = self.record(program, name)
        skipped, failure = case.find("skipped"), case.find("failure")
        if case.get("status") != "run":
            self.skip(program, name, "disabled")
        elif failure is not None:
            record["failed"][parameter] = said(failure)
        elif skipped is not None:
            self.skip(program, name, said(skipped))
        else:
            record["passed"] += 1
        for counted in case.iter("property"):
            counts, what = record["counts"], counted.get("name")
            counts[what] = counts.get(what, 0) + int(counted.get("value"))

    def total(self):
        """Tests that passed, failed and were skipped."""
        records = [record for tests in self.stages.values() for record in tests.values()]
        return (sum(record["passed"] for record in records),
                sum(len(record["failed"]) for record in records),
                sum(len(names) for record in records for names in record["skipped"].values()))


def said(element):
    """The message in one line, without the first, which is the place in the source."""
    lines = element.get("message").splitlines()
    return " ".join(line.strip() for line in lines[1:] or lines)[:MESSAGE_LENGTH]


def run_program(path, tests, folder, part=""):
    """GoogleTest's report, parsed: empty without tests. Throws suite.ProgramFailed where a test ends
    the program. `part` is for the names of the files in the folder."""
    if not tests:
        return xml.etree.ElementTree.Element("testsuites")
    name = os.path.basename(path)
    report, log_path = (os.path.join(folder, name + part + kind) for kind in (".xml", ".log"))
    if os.path.exists(report):
        os.remove(report)  # of an earlier run
    command = [path, "--gtest_color=no", f"--gtest_output=xml:{report}",
               "--gtest_filter=" + ":".join(tests)]
    with open(log_path, "w", encoding="utf-8") as log:
        log.write(shlex.join(command) + "\n")
        log.flush()
        status = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT,
                                check=False).returncode
    if status not in (0, 1) or not os.path.exists(report):
        with open(log_path, encoding="utf-8", errors="replace") as log:
            begun = re.findall(r"^\[ RUN +\] (\S+)", log.read(), re.MULTILINE)
        raise suite.ProgramFailed(f"{name}: {suite.crash(status)} in {(begun or ['no test'])[-1]}; "
                                  f"see {support.shortened(log_path)}")
    return xml.etree.ElementTree.parse(report).getroot()


def choose_tests(path, stages, chosen):
    """The program's tests of these stages: those that the filter leaves, and the others."""
    tally, wanted = Tally(stages), set(suite.find_tests(path, chosen))
    names = [name for name in suite.list_tests(path, "*")
             if tally.record(os.path.basename(path), name)]
    return ([name for name in names if name in wanted],
            [name for name in names if name not in wanted])


def measure(programs, stages, chosen, folder, jobs):
    """Runs the problems of `jobs` programs at once, then the other tests of one after the other:
    they take most of a GPU's memory, or look at what is free. Logs go to the folder."""
    tally, before, problems = Tally(stages), (0, 0, 0), {}
    paths = [os.path.join(programs, name)
             for name in [*(f"test_{stage}" for stage in stages), C_INTERFACE]]
    tests = {path: choose_tests(path, stages, chosen) for path in paths}
    support.progress("problems")
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for path, (names, _) in tests.items():
            of_problems = [name for name in names if PROBLEM.match(name)]
            problems[path] = pool.submit(run_program, path, of_problems, folder, "_problems")
    for path, (names, left_out) in tests.items():
        program = os.path.basename(path)
        for name in left_out:
            tally.skip(program, name, f"{LEFT_OUT} `--filter '{chosen}'`")
        support.progress(program)
        others = [name for name in names if not PROBLEM.match(name)]
        for report in (problems[path].result(), run_program(path, others, folder)):
            add_report(tally, program, report)
        support.progress("")
        now = tally.total()
        passed, failed, skipped = (after - earlier for after, earlier in zip(now, before))
        print(f"{program}: {passed} passed, {failed} failed, {skipped} skipped", flush=True)
        before = now
    return tally


def add_report(tally, program, report):
    for of_suite in report.iter("testsuite"):
        tally.machine.update({key: of_suite.get(key) for key in ("backend", "device")
                              if of_suite.get(key)})
        for case in of_suite.iter("testcase"):
            tally.add(program, case)


def stages_of(path, head):
    """The stages in the file, if it begins with that head; otherwise none."""
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except (OSError, ValueError):
        return {}
    same = isinstance(value, dict) and all(value.get(key) == head[key] for key in head)
    return value.get("stages", {}) if same else {}


def was_left_out(record):
    """Whether the filter has left nothing of the test."""
    reasons = list(record["skipped"])
    return (not record["passed"] and not record["failed"] and bool(reasons)
            and all(reason.startswith(LEFT_OUT) for reason in reasons))


def renewed(earlier, tests):
    """A stage's tests: what has run now, and from earlier what was left out."""
    return {test: earlier.get(test, record) if was_left_out(record) else record
            for test, record in tests.items()}


def parse(arguments):
    parser = argparse.ArgumentParser(prog="suites.py", description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", metavar="FOLDER", help="such as build/sim/bin")
    parser.add_argument("--json", required=True, metavar="FILE", help="where the counts go")
    parser.add_argument("--filter", default="*", metavar="PATTERN", help="GoogleTest's")
    parser.add_argument("--stage", action="append", choices=support.stage_names(),
                        help="only this one; may be repeated")
    parser.add_argument("--jobs", type=int, default=1, metavar="N",
                        help="stages whose problems are tried at once")
    parser.error = lambda message: support.fail(message, 2)
    options = parser.parse_args(arguments)
    if options.jobs < 1:
        parser.error(f"--jobs is {options.jobs}: at least 1")
    return options


def main(arguments):
    options = parse(arguments)
    logs = os.path.join(support.REPORT, "suites")
    os.makedirs(logs, exist_ok=True)
    support.require_folder(options.json)
    kernels = support.kernels_digest()
    every = support.stage_names()
    stages = [name for name in every if name in (options.stage or every)]
    try:
        tally = measure(options.programs, stages, options.filter, logs, options.jobs)
    except (suite.ProgramFailed, OSError) as error:
        support.fail(str(error))
    for stage, tests in tally.stages.items():
        for test, record in tests.items():
            for parameter, message in record["failed"].items():
                print(f"{stage}: {'/'.join(filter(None, [test, parameter]))}: {message}")
    passed, failed, skipped = tally.total()
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    if passed + failed == 0:
        support.fail("no test has run: nothing to write")
    head = {**FORMAT, "kernels": kernels, **tally.machine}
    found = stages_of(options.json, head)
    for name, tests in tally.stages.items():
        found[name] = renewed(found.get(name, {}), tests)
    support.write_json(options.json, {**head, "stages": {name: found[name] for name in every
                                                         if name in found}})
    return 1 if failed else 0


if __name__ == "__main__":
    support.run_main(main)
