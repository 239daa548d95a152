"""The blocks of docs/reliability.md: what the checks have been tried on, in numbers."""
import collections
import os
import re
import sys

import formats
from results import BadInput, read_json, shortened

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "profile"))
from support import kernels_digest  # noqa: E402

RANDOM_PROBLEMS = ("fuzz_sim.json", "fuzz_h200.json")  # of docs/results, as all of these
RANDOM_FILES = "fuzz_readers.json"
SUITES = ("suite_sim.json", "suite_h200.json")
KNOWN_BAD = "known_bad.json"
SANITIZER = "sanitizer_h200.json"


def read(path, kind):
    """The object in the file, which must be of that format."""
    value = read_json(path)
    if not isinstance(value, dict) or value.get("format") != kind:
        found = shortened(value.get("format")) if isinstance(value, dict) else "not an object"
        raise BadInput(f"{path}: \"{kind}\" was expected as its format, found {found}")
    if value.get("version") != 1:
        raise BadInput(f"{path}: version {shortened(value.get('version'))}; this report reads "
                       "version 1")
    return value


def block(folder, name, kind, make, of_kernels=True):
    """What `make` makes of the file's object, as a block, and which kernels that is of; without the
    file, a line that says so."""
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return f"\nNo run of it stands in [results](results/README.md) (`{name}`).\n\n"
    try:
        value = read(path, kind)
        return "\n" + make(value) + "\n" + (kernels_line(value) if of_kernels else "")
    except (KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"{path}: {error!r} where a record was expected") from error


# --- which kernels a file is of ------------------------------------------------------------------

HERE = "those here when this page was made"
ELSEWHERE = "others than " + HERE
KERNELS_LINE = re.compile(rf"(Kernels: `\w+`), ({HERE}|{ELSEWHERE})\.")


def kernels_line(value):
    if "kernels" not in value:
        return "Kernels: the file doesn't say which.\n\n"
    where = HERE if value["kernels"] == kernels_digest() else ELSEWHERE
    return f"Kernels: `{value['kernels']}`, {where}.\n\n"


def without_here(page):
    """The page without what a changed kernel changes in it: no text is wrong for that alone."""
    return KERNELS_LINE.sub(r"\1.", page)


def of_other_kernels(folder):
    """A line for each file that names other kernels than those here."""
    paths = [os.path.join(folder, name)
             for name in (KNOWN_BAD, *SUITES, *RANDOM_PROBLEMS, SANITIZER)]
    named = {path: read_json(path).get("kernels") for path in paths if os.path.exists(path)}
    return [f"{path}: of the kernels {shortened(kernels)}, those here are {kernels_digest()}"
            for path, kernels in named.items() if kernels not in (None, kernels_digest())]


# --- known-bad kernels ---------------------------------------------------------------------------

def known_bad(folder):
    return block(folder, KNOWN_BAD, "convladder known bad kernels", lambda value: "\n".join(
        [totals(value), *map(stage_table, by_stage(value["bugs"]))]))


def totals(value):
    bugs, sound, enough = value["bugs"], value["sound"], value["enough"]
    caught = [bug for bug in bugs if bug["caught"]]
    ways = [[bug for bug in caught if bug["problems"]["failed"] >= enough],
            [bug for bug in caught if bug["counting"]],
            [bug for bug in caught if bug["test"]]]
    by_problems, by_detector, by_test = map(len, ways)
    passed = [stage for stage in sound if stage["passed"]]
    return (f"{len(bugs)} bugs, {len(caught)} caught: {by_problems} by {enough} or more of the small "
            f"problems, {by_detector} by the counting simulator, {by_test} by the test named here "
            f"(some by two of these). {len(passed)} of {len(sound)} stages without a bug, built and "
            "run in the same way, pass everything.\n")


def by_stage(bugs):
    stages = {}
    for bug in bugs:
        stages.setdefault(bug["stage"], []).append(bug)
    return stages.items()


def stage_table(item):
    stage, bugs = item
    header = ["bug", "what is wrong", "problems that see it", "by", "counting simulator",
              "own test", "caught"]
    rows = [[f"`{bug['bug']}`", bug["about"],
             f"{bug['problems']['failed']} of {bug['problems']['ran']}",
             reports(bug["problems"]), reports(bug["counting"]),
             f"`{bug['test']}`" if bug["test"] else "",
             "" if bug["caught"] else "**no**"] for bug in bugs]
    return f"### {stage}\n\n" + formats.markdown(header, rows)


def reports(summary):
    """'small integers 71, crash (SIGSEGV) 2', the most frequent first."""
    if not summary:
        return ""
    most_first = sorted(summary["reports"].items(), key=lambda item: -item[1])
    return ", ".join(f"{report} {count}" for report, count in most_first)


# --- the suites of the stages --------------------------------------------------------------------

CHAPTERS = (("problems", "StageOnProblem"), ("bad input", "StageTest.WrongArguments"),
            ("bad input", "CApi.BadInput"), ("limits", "LimitsTest"), ("limits", "Beyond"),
            ("limits", "MatrixBeyond"), ("limits", "Sparse"), ("faults, many calls", "FaultsTest"),
            ("C interface", "CApi"))  # and how their tests' names begin
OTHERS = "others"


def chapter_of(test):
    return next((chapter for chapter, start in CHAPTERS if test.startswith(start)), OTHERS)


def suites(folder):
    return "".join(block(folder, name, "convladder suites", suites_text) for name in SUITES)


def suites_text(value):
    stages = value["stages"]
    records = [record for tests in stages.values() for record in tests.values()]
    passed = sum(record["passed"] for record in records)
    failed = sum(len(record["failed"]) for record in records)
    skipped = sum(skips(record) for record in records)
    return (f"### {value['device']}\n\n{passed + failed + skipped} tests of {len(stages)} stages: "
            f"{passed} passed, {failed} failed, {skipped} skipped.\n\n"
            + tests_table(stages) + skips_table(stages))


def skips(record):
    return sum(map(len, record["skipped"].values()))


def tests_table(stages):
    tests = list(dict.fromkeys(test for of_stage in stages.values() for test in of_stage))
    order = [*dict(CHAPTERS), OTHERS]
    tests.sort(key=lambda test: order.index(chapter_of(test)))
    rows = [[chapter_of(test), f"`{test}`",
             *(test_cell(of_stage[test]) if test in of_stage else ""
               for of_stage in stages.values())]
            for test in tests]
    return formats.markdown(["", "test", *stages], rows)


def test_cell(record):
    """'10 of 10', or '1 of 1: 90 cases'; a failure stands out."""
    passed, failed = record["passed"], len(record["failed"])
    text = f"{passed} of {passed + failed + skips(record)}"
    if failed:
        text += f" (**{failed} failed**)"
    counts = ", ".join(f"{count} {what if count != 1 else what.removesuffix('s')}"
                       for what, count in record["counts"].items())
    return f"{text}: {counts}" if counts else text


def skips_table(stages):
    """How many of each test, and why. Reasons that differ in their numbers alone are one."""
    number, reasons, counts = re.compile(r"\d+(\.\d+)?"), {}, collections.Counter()
    for of_stage in stages.values():
        for test, record in of_stage.items():
            for reason, names in record["skipped"].items():
                key = test, number.sub("…", reason)
                reasons.setdefault(key, set()).add(reason)
                counts[key] += len(names)
    if not counts:
        return ""
    rows = [[f"`{test}`", str(count),
             alike if len(reasons[test, alike]) > 1 else reasons[test, alike].pop()]
            for (test, alike), count in counts.items()]
    return "\n" + formats.markdown(["skipped", "times", "why"], rows)


# --- random problems, random files ---------------------------------------------------------------

def random_problems(folder):
    def rows(value):
        return formats.markdown(
            [value["device"], "problems", "of which off their alignment", "failed"],
            [[stage, str(counts["problems"]), str(counts["misaligned"]), str(counts["failed"])]
             for stage, counts in value["stages"].items()])
    return "".join(block(folder, name, "convladder fuzz", rows) for name in RANDOM_PROBLEMS)


FUZZED = {"problems": "reader of problems (CSV)", "npy": "reader of tensors (.npy)",
          "ppm": "reader of pictures (PPM)", "json": "writer of JSON",
          "conv_shape": "check of a problem's extents"}


def random_files(folder):
    def rows(value):
        return f"{value['fuzzer']}:\n\n" + formats.markdown(
            ["what", "runs", "seconds", "edges reached", "crashes"],
            [[FUZZED.get(name, name),
              *(str(counts[key]) for key in ("runs", "seconds", "edges", "crashes"))]
             for name, counts in value["targets"].items()])
    return block(folder, RANDOM_FILES, "convladder reader fuzz", rows, of_kernels=False)


# --- compute-sanitizer ---------------------------------------------------------------------------

def sanitizer(folder):
    return block(folder, SANITIZER, "convladder sanitizer", sanitizer_table)


def sanitizer_table(value):
    intro = (f"`./ladder sanitize --max-gmac {value['max_gmac']:g}` on an {value['gpu']}; "
             f"compute-sanitizer {value['compute_sanitizer']}; {len(value['problems'])} problems, "
             f"of which {len(value['cut_down'])} cut down to that many billion multiply-adds:\n\n")
    return intro + formats.markdown(
        ["tool", "stage", "checks", "reports", "result"],
        [[record["tool"], record["stage"], str(record["checks"]),
          "?" if record["reports"] is None else str(record["reports"]),
          " ".join(filter(None, [record["status"], record["message"]]))]
         for record in value["records"]])


BLOCKS = {"known_bad": known_bad, "suites": suites, "random_problems": random_problems,
          "random_files": random_files, "sanitizer": sanitizer}
