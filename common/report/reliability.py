"""The blocks of docs/reliability.md: what the checks have been tried on, in numbers."""
import os

import formats
from results import BadInput, read_json, shortened

RANDOM_PROBLEMS = ("fuzz_sim.json", "fuzz_h200.json")  # of docs/results, as all of these
RANDOM_FILES = "fuzz_readers.json"
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


def block(folder, name, kind, make):
    """What `make` makes of the file's object, as a block; without the file, a line that says so."""
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return f"\nNo run of it stands in [results](results/README.md) (`{name}`).\n\n"
    try:
        return "\n" + make(read(path, kind)) + "\n"
    except (KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"{path}: {error!r} where a record was expected") from error


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


# --- random problems, random files ---------------------------------------------------------------

def random_problems(folder):
    def rows(value):
        return formats.markdown(
            [value["device"], "problems", "of which off their alignment", "failed"],
            [[stage, str(counts["problems"]), str(counts["misaligned"]), str(counts["failed"])]
             for stage, counts in value["stages"].items()])
    return "".join(block(folder, name, "convladder fuzz", rows) for name in RANDOM_PROBLEMS)


def random_files(folder):
    def rows(value):
        return f"{value['fuzzer']}:\n\n" + formats.markdown(
            ["reader", "runs", "seconds", "edges reached", "crashes"],
            [[name, *(str(counts[key]) for key in ("runs", "seconds", "edges", "crashes"))]
             for name, counts in value["targets"].items()])
    return block(folder, RANDOM_FILES, "convladder reader fuzz", rows)


# --- compute-sanitizer ---------------------------------------------------------------------------

def sanitizer(folder):
    return block(folder, SANITIZER, "convladder sanitizer", sanitizer_table)


def sanitizer_table(value):
    intro = (f"`./ladder sanitize --max-gmac {value['max_gmac']:g}` on an {value['gpu']}; "
             f"compute-sanitizer {value['compute_sanitizer']}; {len(value['problems'])} problems, "
             f"of which {len(value['cut_down'])} cut down to that many billion multiply-adds:\n\n")
    return intro + formats.markdown(
        ["tool", "stage", "checks", "reports", "result"],
        [[record["tool"], record["stage"], str(record.get("checks", record["problems"])),
          "?" if record["reports"] is None else str(record["reports"]),
          " ".join(filter(None, [record["status"], record["message"]]))]
         for record in value["records"]])


BLOCKS = {"known_bad": known_bad, "random_problems": random_problems, "random_files": random_files,
          "sanitizer": sanitizer}
