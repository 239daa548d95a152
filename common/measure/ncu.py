"""Runs Nsight Compute (ncu) on a program and reads the counters it prints.

Nsight Compute runs every kernel several times, with other counters each time, and puts memory back
in between. It flushes the caches before each of these runs; clocks are left alone.
"""
import collections
import csv
import io
import math
import re
import subprocess
import sys

from common.show import metrics

ALL = metrics.read_by("profile")
TENSOR = ["sm__inst_executed_pipe_tensor_op_hmma.sum"]
LIBRARY = "02_im2col_gemm"  # it has kernels of a library, whose number nobody knows beforehand


class NcuError(Exception):
    """ncu or the program under it failed, or what it printed makes no sense."""


class CountersUnavailable(NcuError):
    """No counters on this machine: there is no ncu, or the driver refuses. The text has a remedy."""


def run(names, command):
    """Runs `command` (a list of words) under ncu.

    Returns its launches in order, as (kernel, {metric: value or None}), in ncu's base units (ns,
    bytes), and the lines that the program printed. Metrics that this GPU doesn't have are removed
    from the list `names`, with a note on stderr. Raises NcuError.
    """
    while True:
        try:
            done = subprocess.run(["ncu", "--csv", "--print-units", "base", "--clock-control", "none",
                                   "--metrics", ",".join(names), *command],
                                  capture_output=True, text=True, errors="replace", check=False)
        except FileNotFoundError:
            raise CountersUnavailable("there is no ncu in the PATH: it is Nsight Compute, part of the "
                                      "CUDA Toolkit") from None
        text = done.stdout + done.stderr
        # ==ERROR== Failed to find metric regex:^(NAME)(\.|$)
        lacking = {name.replace("\\", "") for line in text.splitlines() if "Failed to find metric" in line
                   for name in re.findall(r"[a-z]\w*__[\w.\\]+", line)}
        unknown = [name for name in names if name in lacking or name.split(".")[0] in lacking]
        if not unknown:
            break
        print(f"ncu has no {', '.join(unknown)} on this GPU: left out", file=sys.stderr)
        for name in unknown:
            names.remove(name)
        if not names:
            raise NcuError("ncu knows none of the metrics asked for")
    if "ERR_NVGPUCTRPERM" in text:
        raise CountersUnavailable(
            "the driver refuses its counters (ERR_NVGPUCTRPERM): be root, or have the driver "
            "loaded with NVreg_RestrictProfilingToAdminUsers=0 (docs/profiling.md)")
    if done.returncode != 0:
        raise NcuError(f"ncu {command[0]}: {reason(text)} (status {done.returncode})")
    lines = done.stdout.splitlines()
    if not any(line.startswith('"ID",') for line in lines):
        raise NcuError("ncu read no counters: the program launched no kernel, or another profiler "
                       f"holds the GPU; ncu said: {reason(text)}")
    return launches_in(lines), [line for line in lines if not line.startswith(('"', "=="))]


def reason(text):
    """The line that says most about a failure."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for pattern in (r"\w+: error: ", "==ERROR==")
               for line in lines if re.match(pattern, line)]
    return (telling or lines[-1:] or ["no output"])[0]


def launches_in(lines):
    """Reads ncu's table, whose header is the first line that begins with a quote."""
    launches = {}
    try:
        for row in csv.DictReader(io.StringIO("\n".join(line for line in lines if line[:1] == '"')),
                                  strict=True):
            _, values = launches.setdefault(int(row["ID"]), (plain_name(row["Kernel Name"]), {}))
            values[row["Metric Name"]] = number(row["Metric Value"])
    except (KeyError, ValueError, AttributeError, IndexError, csv.Error) as error:
        raise NcuError(f"ncu's table can't be read: {type(error).__name__} {error}") from None
    if not launches:
        raise NcuError("ncu's table has no rows")
    return [launches[key] for key in sorted(launches)]


def number(text):
    """'1,234.5' -> 1234.5, '1,234' -> 1234; None for 'n/a' and other things that are no number."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() else value


def plain_name(name):
    """'void a::<unnamed>::kernel<8, 8>(float *)' -> 'kernel'; of a mangled name likewise the last part
    of the function's."""
    if name.startswith("_ZN"):
        rest = name[3:]
        while length := re.match(r"\d+", rest):
            rest = rest[length.end():]
            name, rest = rest[:int(length[0])], rest[int(length[0]):]
        return name
    name = name.replace("<unnamed>::", "").replace("(anonymous namespace)::", "")
    return re.split(r"[<(]", name)[0].split()[-1].split("::")[-1]


def launches_of(program, stages, options, names):
    """{stage: (its launches, as run() has them, {kernel of its own: how often it is launched})}. Starting ncu
    takes longer than small kernels: it sees all stages at once, one after the other."""
    named = [word for stage in stages for word in ("--stage", stage)]
    seen, said = run(names, [program, "run", "--once", *named, *options])
    own = {}
    for line in said:
        stage, found, kernels = line.partition(": launched once, ")
        if found:
            own[stage] = collections.Counter()
            for kernel, count in re.findall(r"(\w+)\*(\d+)", kernels):
                own[stage][kernel] += int(count)
    if sorted(own) != sorted(stages):
        raise NcuError(f"launched were {', '.join(own)} of {', '.join(stages)}")
    counts = {stage: sum(kernels.values()) for stage, kernels in own.items()}
    with_library = stages[0] if len(stages) == 1 else LIBRARY
    if with_library in counts:
        counts[with_library] += len(seen) - sum(counts.values())
    found = {}
    for stage, kernels in own.items():
        launches, seen = seen[:counts[stage]], seen[counts[stage]:]
        known = collections.Counter(kernel for kernel, _ in launches)
        if stage == with_library:
            known = collections.Counter({name: count for name, count in known.items() if name in kernels})
        if known != kernels:
            raise NcuError(f"{stage} launches {dict(kernels)}, ncu saw {dict(known)}")
        found[stage] = launches, kernels
    if seen:
        raise NcuError(f"ncu saw {len(seen)} kernels more")
    return found


def by_kernel(launches):
    """{kernel: [the values of each of its launches]}."""
    found = {}
    for kernel, values in launches:
        found.setdefault(kernel, []).append(values)
    return found


def merge(launches):
    """Launches of one kernel ({metric: value}) as one.

    What is counted (.sum) adds up; of launch figures the largest holds; averages and percentages
    are weighted by the launches' duration. A metric that a launch lacks is left out.
    """
    weights = [launch.get("gpu__time_duration.sum") or 0.0 for launch in launches]
    if not all(weights):
        weights = [1.0] * len(launches)
    merged = {}
    for metric in launches[0]:
        values = [launch.get(metric) for launch in launches]
        if None in values:
            continue
        if metric.endswith(".sum"):
            merged[metric] = sum(values)
        elif metric.startswith("launch__"):
            merged[metric] = max(values)
        else:
            merged[metric] = sum(v * w for v, w in zip(values, weights)) / sum(weights)
    return merged
