#!/usr/bin/env python3
"""Kernels with a bug planted in them, before the suites that every stage must pass.

  known_bad.py list KIND            for CMake: a line for each program, "TITLE;ROLE;FILE;..."
  known_bad.py plant TITLE FOLDER   writes the changed sources of one
  known_bad.py catch BUILD TARGET KIND --role ROLE [--stage NAME] [--jobs N] [--xml FILE]
                                    builds the target, and runs each program until its bug is
                                    caught; status 1 if one is not

TITLE is STAGE.BUG. STAGE.sound is the stage as it stands: it must pass what the bugs must not.
KIND is the simulator that BUILD has, plain or counting. ROLE is canary (the bugs that every run of
the tests tries: two of each stage) or bug.
"""
import argparse
import concurrent.futures
import os
import subprocess
import sys
import xml.etree.ElementTree

from common.tests.known_bad import bugs, suite
from common.show import support

ENOUGH = 3  # problems that must see a bug for which there is no test or detector of its own
CANARIES = 2  # of each stage
KINDS = ("plain", "counting")
PROBLEMS = "*StageOnProblem.GivesTheReference/nasty*"  # the small ones
OBSERVED = "*StageCounts.*:*StageOffAlignment.*"  # in the counting simulator
FEW = "*StageOnProblem.*/nasty_primes*:*StageCounts.*_nasty_primes*"


def canaries(of_stage):
    """Of one stage's bugs the first that the detector must see, if there is one, and the first that
    the problems must."""
    detector = [bug for bug in of_stage if bug.detector]
    plain = [bug for bug in of_stage if bug.edits and not bug.detector and not bug.test]
    return (detector[:1] + plain)[:CANARIES]


def programs(kind):
    """[(bug, role)] of the programs that a simulator of this kind gets."""
    every = bugs.read_all()
    chosen = []
    for bug in every:
        of_stage = [other for other in every if other.stage == bug.stage]
        if bool(bug.detector) == (kind == "counting") or not bug.edits:
            chosen.append((bug, "canary" if bug in canaries(of_stage) else "bug"))
    return chosen


def failed(results):
    """What the failing tests of {test: report} reported."""
    return [report for report in results.values() if report]


def is_caught(bug, results):
    """Whether the results, {test: report}, say what the bug's author has said that they would."""
    reports = failed(results)
    if bug.detector:
        return any(report in bug.detector.split(" or ") for report in reports)
    return len(reports) >= (1 if bug.test else ENOUGH)


def named(bug):
    """The filter that chooses the bug's own test."""
    return f"*.{bug.test}:*/{bug.test}"


def catch(bug, program):
    """Runs as few tests as will do. Gives (verdict, text), where the verdict is "passed", "failed", or
    "skipped" where this machine can't run the bug's own test."""
    if not os.path.exists(program):
        return "failed", f"{bug.title}: was not built"
    chosen = FEW if not bug.edits else named(bug) if bug.test else \
        OBSERVED if bug.detector else PROBLEMS
    tests = suite.list_tests(program, chosen)
    if not bug.edits:
        results = suite.run(program, tests)
        good, word = len(results) == len(tests) and not failed(results), "passes"
    else:
        results = suite.run(program, tests, lambda results: is_caught(bug, results))
        if bug.test and not results:
            return "skipped", f"{bug.title}: {bug.test} is skipped here"
        good = is_caught(bug, results)
        word = "caught: " + " and ".join(sorted(set(failed(results))))
    lines = [f"{bug.title}: {bug.about}: {word if good else 'FAILS' if not bug.edits else 'SURVIVES'}",
             f"{len(results)} of {len(tests)} tests run, {len(failed(results))} failed",
             *(f"  {test.split('.')[-1]}: {what}" for test, what in results.items() if what)]
    return "passed" if good else "failed", "\n".join(lines)


def catch_all(options):
    """The exit status."""
    chosen = [bug for bug, role in programs(options.kind)
              if role == options.role and options.stage in (None, bug.stage)]
    built = subprocess.run(["cmake", "--build", options.build, "--target", options.target,
                            "--parallel", str(options.jobs)],
                           text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if built.returncode:
        print(built.stdout)
        support.fail(f"{options.target}: the build failed")
    folder = os.path.join(options.build, "known_bad")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        verdicts = list(pool.map(lambda bug: catch(bug, os.path.join(folder, bug.title)), chosen))
    for verdict, text in verdicts:
        print(text if verdict != "passed" else text.split("\n")[0])
    if options.xml:
        write_xml(options.xml, chosen, verdicts)
    return 1 if any(verdict == "failed" for verdict, _ in verdicts) else 0


def write_xml(path, chosen, verdicts):
    """A report like GoogleTest's, for `./ladder test` to count."""
    element = xml.etree.ElementTree
    report = element.Element("testsuites")
    for bug, (verdict, text) in zip(chosen, verdicts):
        case = element.SubElement(report, "testcase", name=bug.title, status="run")
        if verdict != "passed":
            element.SubElement(case, {"failed": "failure"}.get(verdict, verdict), message=text)
    element.indent(report)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    element.ElementTree(report).write(path, encoding="utf-8")


def list_for_cmake(kind):
    for bug, role in programs(kind):
        file = os.path.basename(bug.place).split(":")[0]
        print(";".join([bug.title, role, file, *bug.files(bugs.ROOT)]))


def parse(arguments):
    parser = argparse.ArgumentParser(prog="known_bad.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("list")
    command.add_argument("kind", choices=KINDS)
    command = commands.add_parser("plant")
    command.add_argument("title")
    command.add_argument("folder")
    command = commands.add_parser("catch")
    command.add_argument("build")
    command.add_argument("target")
    command.add_argument("kind", choices=KINDS)
    command.add_argument("--role", choices=("canary", "bug"), required=True)
    command.add_argument("--stage")
    command.add_argument("--jobs", type=int, default=1)
    command.add_argument("--xml")
    return parser.parse_args(arguments)


def main(arguments):
    options = parse(arguments)
    try:
        if options.command == "list":
            list_for_cmake(options.kind)
        elif options.command == "plant":
            bugs.plant(bugs.find(options.title), options.folder)
        else:
            return catch_all(options)
    except (bugs.BadBug, suite.ProgramFailed, OSError) as error:
        support.fail(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
