#!/usr/bin/env python3
"""Kernels with a bug planted in them, before the suites that every stage must pass.

  known_bad.py list                 for CMake: a line each, "TITLE;problems|detector|both;FILE;..."
  known_bad.py plant TITLE FOLDER   writes the changed sources of one
  known_bad.py catch TITLE PROGRAM  runs its program until the bug is caught; status 1 if it is not,
                                    77 where this machine can't run the bug's own test
  known_bad.py measure SIM COUNT    all small problems, on all programs of the two folders
               [--json FILE]

TITLE is STAGE.BUG. STAGE.sound is the stage as it stands: it must pass what the bugs must not.
"""
import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(1, os.path.join(sys.path[0], "..", "..", "profile"))
import bugs
import suite
import support

SKIPPED = 77  # the exit status
ENOUGH = 3  # problems that must see a bug for which there is no test or detector of its own
FORMAT = {"format": "convladder known bad kernels", "version": 1}
PROBLEMS = "*.GivesTheReference/nasty*"  # the small ones
OBSERVED = "*StageCounts.*:*StagesOffAlignment.*"  # in the counting simulator
SMALL_OBSERVED = "*StageCounts.*/nasty*:*StagesOffAlignment.*"
FEW = "*/nasty_primes*-*NaiveCounts*"


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
    """Runs as few tests as will do. Gives the exit status."""
    if not bug.edits:
        return pass_sound(bug, program)
    chosen = named(bug) if bug.test else SMALL_OBSERVED if bug.detector else PROBLEMS
    tests = suite.list_tests(program, chosen)
    results = suite.run(program, tests, lambda results: is_caught(bug, results))
    if bug.test and not results:
        print(f"{bug.title}: {bug.test} is skipped here")
        return SKIPPED
    caught = is_caught(bug, results)
    print(f"{bug.title}: {bug.about}: {'caught' if caught else 'SURVIVES'}")
    return report(tests, results, caught)


def pass_sound(bug, program):
    tests = suite.list_tests(program, FEW)
    results = suite.run(program, tests)
    print(f"{bug.title}: {bug.about}")
    return report(tests, results, len(results) == len(tests) and not failed(results))


def report(tests, results, good):
    print(f"{len(results)} of {len(tests)} tests run, {len(failed(results))} failed")
    for test, what in results.items():
        if what:
            print(f"  {test.split('.')[-1]}: {what}")
    return 0 if good else 1


def run_all(program, chosen):
    return suite.run(program, suite.list_tests(program, chosen))


def summary(results):
    """For the JSON: how many tests have run and failed, and what the failing ones reported."""
    reports = failed(results)
    return {"ran": len(results), "failed": len(reports),
            "reports": {report: reports.count(report) for report in sorted(set(reports))}}


def measure_bug(bug, sim, count):
    """The bug's record in the JSON."""
    program = os.path.join(sim, bug.title)
    problems, test, counting = run_all(program, PROBLEMS), None, None
    if bug.test:
        test = run_all(program, named(bug))
    if bug.detector or not bug.edits:
        counting = run_all(os.path.join(count, bug.title), OBSERVED)
    record = {"stage": bug.stage, "bug": bug.name, "about": bug.about,
              "problems": summary(problems), "test": bug.test,
              "counting": summary(counting) if counting else None}
    if bug.edits:
        record["caught"] = is_caught(bug, counting or test or problems)
    else:
        record["passed"] = not failed({**problems, **counting})
    return record


def line_of(record):
    """What one bug has come to, for the terminal."""
    parts = [f"{record['problems']['failed']} of {record['problems']['ran']} problems"]
    parts += [record["test"]] if record["test"] else []
    if record["counting"]:
        parts.append(f"counting: {', '.join(record['counting']['reports']) or 'nothing'}")
    wrong = "" if record.get("caught", True) else "  SURVIVES"
    wrong += "" if record.get("passed", True) else "  FAILS"
    return f"{record['stage']}.{record['bug']}: {'; '.join(parts)}{wrong}"


def measure(sim, count, json_path):
    """The exit status: 1 if a bug survives, or a sound stage fails."""
    if json_path:
        support.require_folder(json_path)
    kernels = support.kernels_digest()
    planted, sound = [], []
    for bug in bugs.read_all():
        record = measure_bug(bug, sim, count)
        (planted if bug.edits else sound).append(record)
        print(line_of(record), flush=True)
    survivors = sum(not record["caught"] for record in planted)
    failures = sum(not record["passed"] for record in sound)
    print(f"{len(planted)} bugs, {survivors} not caught; "
          f"{len(sound)} sound stages, {failures} failed")
    if json_path:
        support.write_json(json_path, {**FORMAT, "kernels": kernels, "backend": "sim",
                                       "enough": ENOUGH, "bugs": planted, "sound": sound})
    return 1 if survivors or failures else 0


def list_for_cmake():
    for bug in bugs.read_all():
        suites = "detector" if bug.detector else "problems" if bug.edits else "both"
        print(";".join([bug.title, suites, *bug.files(bugs.ROOT)]))


def main(arguments):
    parser = argparse.ArgumentParser(prog="known_bad.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list")
    for name, second in (("plant", "folder"), ("catch", "program")):
        command = commands.add_parser(name)
        command.add_argument("title")
        command.add_argument(second)
    command = commands.add_parser("measure")
    command.add_argument("sim")
    command.add_argument("count")
    command.add_argument("--json")
    options = parser.parse_args(arguments)
    try:
        if options.command == "list":
            list_for_cmake()
        elif options.command == "plant":
            bugs.plant(bugs.find(options.title), options.folder)
        elif options.command == "catch":
            return catch(bugs.find(options.title), options.program)
        else:
            return measure(options.sim, options.count, options.json)
    except (bugs.BadBug, suite.ProgramFailed, OSError) as error:
        support.fail(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
