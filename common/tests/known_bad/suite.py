"""Running a GoogleTest program that is expected to fail: each test by itself, since some crash."""
import re
import signal
import subprocess

TIME_LIMIT = 60  # [s] of one test


class ProgramFailed(Exception):
    """The program ended in a way that says nothing about its tests."""


# How a failing test's output shows what gave the bug away; the first that fits.
REPORTS = {
    "data race": r"data race",
    "out of bounds": r"memory out of bounds",
    "never written": r"that nobody has written",
    "copy under way": r"asynchronous copy is under way",
    "not aligned": r"not aligned to as many|misaligned",
    "barrier not reached": r"waits for ever at __sync",
    "launch refused": r"invalid configuration argument",
    "library refused": r"cublas\w+: ",
    "NaN left in the output": r"is NaN \(never written\?\)",
    "NaN out of place": r"std::isnan",
    "small integers": r"checked outputs are wrong[\s\S]*small integers",
    "wide integers": r"checked outputs are wrong[\s\S]*wide integers",
    "real numbers": r"checked outputs are wrong",
    "guard zone": r"around the (input|filters|bias|output|workspace)",
    "second run differs": r"a second run gave other bits",
}


def report_of(output):
    for report, pattern in REPORTS.items():
        if re.search(pattern, output):
            return report
    return "other"


def list_tests(program, chosen):
    """The names of the tests that match the filter `chosen`, in order; there must be one."""
    lines = subprocess.run([program, "--gtest_list_tests", f"--gtest_filter={chosen}"], check=True,
                           text=True, stdout=subprocess.PIPE).stdout.splitlines()
    names, suite = [], ""
    for line in lines:
        name = line.split("  #")[0].strip()  # behind it: a parameter's value
        if line.startswith("  "):
            names.append(suite + name)
        elif name.endswith("."):
            suite = name
    if not names:
        raise ProgramFailed(f"{program}: no test matches {chosen}")
    return names


def run(program, tests, enough=lambda results: False):
    """{test: what gave the bug away, or "" where the test passed}, until every test has run or
    enough(results) holds. Skipped tests are left out. Raises ProgramFailed."""
    results = {}
    for test in tests:
        result = run_one(program, test)
        if result is not None:
            results[test] = result
        if enough(results):
            break
    return results


def run_one(program, test):
    """What gave the bug away, "" where the test passed, None where it was skipped."""
    try:
        done = subprocess.run([program, "--gtest_color=no", f"--gtest_filter={test}"], check=False,
                              timeout=TIME_LIMIT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace")
    except subprocess.TimeoutExpired:
        return "no end"
    ended = re.search(r"^\[ +(OK|FAILED|SKIPPED) +\] ", done.stdout, re.MULTILINE)
    status = f"exit status {done.returncode}"
    if done.returncode < 0:
        status = f"crash ({signal.Signals(-done.returncode).name})"
    if "[ RUN " not in done.stdout or ended and done.returncode not in (0, 1):
        raise ProgramFailed(f"{program}: {status}, in none of its tests")
    if not ended:
        return status
    return {"OK": "", "SKIPPED": None, "FAILED": report_of(done.stdout)}[ended[1]]
