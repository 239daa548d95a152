"""Running a GoogleTest program that is expected to fail, test by test, through crashes."""
import re
import signal
import subprocess
import threading

TIME_LIMIT = 60  # [s] of one start of the program; the longest takes 7


class ProgramFailed(Exception):
    """The program ended in a way that says nothing about its tests."""


RESULT = re.compile(r"\[ +(OK|FAILED|SKIPPED) +\] ([^ ,]+)")

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
    enough(results) holds. The program is started anew after a crash. Skipped tests are left out.
    Throws ProgramFailed."""
    results, left = {}, list(tests)
    while left and not enough(results):
        ended_in = start(program, left, results, enough)
        left = left[left.index(ended_in) + 1:] if ended_in else []
    return results


def start(program, tests, results, enough):
    """One start of the program. Gives the test that it died in, or None where it came to an end."""
    process = subprocess.Popen([program, "--gtest_color=no", "--gtest_filter=" + ":".join(tests)],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace")
    timer = threading.Timer(TIME_LIMIT, process.kill)
    timer.start()
    current, output = None, []
    for line in process.stdout:
        result = RESULT.match(line)
        if line.startswith("[ RUN "):
            current, output = line.split("]")[1].strip(), []
        elif result and result[2] == current:
            if result[1] != "SKIPPED":
                results[current] = report_of("".join(output)) if result[1] == "FAILED" else ""
            current = None
            if enough(results):
                process.kill()
                break
        else:
            output.append(line)
    process.stdout.close()
    status, timed_out = process.wait(), not timer.is_alive()
    timer.cancel()
    if current is not None:
        results[current] = "no end" if timed_out else crash(status)
    elif status not in (0, 1) and not enough(results):
        raise ProgramFailed(f"{program}: {crash(status)}, in none of its tests")
    return current


def crash(status):
    return f"crash ({signal.Signals(-status).name})" if status < 0 else f"exit status {status}"
