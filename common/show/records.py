"""Reads the JSON that bench, profile, run and check write, and refuses what is not that.

The functions named read_... raise BadInput: one line that names the file and what is wrong with it.
"""
import json
import math
from dataclasses import dataclass, replace

from common.show import metrics

BENCH_FORMAT, BENCH_VERSION = "convladder bench", 1
PROFILE_VERSION, RUN_VERSION = 1, 1
RATES = {"DRAM": "copy_tb_per_s", "L1": "l1_read_tb_per_s",  # level: member of the machine
         "L2": "l2_read_tb_per_s"}
STATUSES = ("pass", "fail", "rejected", "skipped", "impossible")
PRECISIONS = ("fp32", "tf32")
LAYOUTS = ("nchw", "nhwc")


class BadInput(Exception):
    """A file that can't be reported on."""


@dataclass(frozen=True)
class Statistics:
    """Of times in milliseconds."""
    median: float
    lower_quartile: float
    upper_quartile: float
    count: int
    least: float


@dataclass(frozen=True)
class Timing:
    """One stage, or one competitor, on one problem. No times unless the status is "pass"."""
    status: str
    message: str
    max_error_ratio: float | None
    cold: Statistics | None
    warm: Statistics | None
    host_late: int | None  # runs whose times may contain the host's; None: bench didn't look


@dataclass(frozen=True)
class Competitor:
    name: str       # "cudnn" or "pytorch"
    precision: str  # of PRECISIONS
    layout: str     # of LAYOUTS
    library: str    # with its version
    algorithm: str
    timing: Timing


@dataclass(frozen=True)
class BenchProblem:
    """One problem of a bench: its stages in ladder order, and what they ran against."""
    name: str
    shape: str   # "n256 c3 224x224 k96 11x11 stride 4x4 pad 2x2 dil 1x1"; empty: rejected
    bias: bool
    flop: float
    floor_ms: float  # the least time that the machine's peak and copy rate allow, cold
    error: str       # what kept it from being measured; empty: nothing
    throttled: list  # why the GPU lowered its clock, if it did
    stages: dict     # name: Timing
    competitors: list

    def rival(self, name, precision):
        """The Timing of the first such competitor; None without."""
        return next((each.timing for each in self.competitors
                     if (each.name, each.precision) == (name, precision)), None)


@dataclass(frozen=True)
class Standing:
    """A stage beside a competitor, over many problems."""
    stage: str
    competitor: str  # "cuDNN TF32"
    problems: int    # on which both have passed
    won: int         # of these: where the stage is faster
    mean: float | None  # geometric, of how many times as fast it is


@dataclass(frozen=True)
class Bench:
    path: str
    machine: dict        # as in the file: gpu, driver, cuda_runtime and other versions
    fma_tflops: float    # FP32 ceiling: a loop of FMAs, measured in the same run
    tb_per_s: dict        # likewise: {"DRAM": of a copy, "L1" and "L2": of reads, if known}
    problems: list
    standings: list       # of all stages beside all competitors, in the file's order


@dataclass(frozen=True)
class Kernel:
    """One kernel of a stage, all its launches added up."""
    name: str
    library: bool  # not the stage's own
    metrics: dict  # Nsight Compute's name: value
    floor: tuple | None = None  # the least milliseconds that it can take, and what limits it
    whole_floor: tuple | None = None  # likewise, on the problem that was cut down


@dataclass(frozen=True)
class Profile:
    """One problem's kernels by one source of counts."""
    path: str
    source: str  # "ncu", "simulator" or "cuda_runtime"
    name: str
    shape: str
    bias: bool
    flop: float
    least_bytes: float  # that the problem must move; 0: the records don't say
    stages: dict  # name: [Kernel], in ladder order
    machine: str = ""      # the GPU that was read, or whose least times these are
    whole_shape: str = ""  # of the problem that was cut down to this one
    whole_flop: float = 0


@dataclass(frozen=True)
class RunRecord:
    """One stage on one problem, as run and check report it."""
    stage: str
    problem: str
    backend: str
    status: str
    max_error_ratio: float | None
    message: str
    time_ms: float | None  # on a GPU only: what a simulation took says nothing
    tflops: float | None


class Members:
    """The members of a JSON object, each read with a check of its type."""

    def __init__(self, value, where):
        if not isinstance(value, dict):
            raise BadInput(f"{where}: an object was expected, not {shortened(value)}")
        self.value, self.where = value, where

    def _checked(self, name, wanted, fits, default=None):
        value = self.value.get(name, default)
        if fits(value):
            return value
        if name not in self.value:
            raise BadInput(f"{self.where}: member '{name}' is missing")
        raise BadInput(f"{self.where}: '{name}' is {shortened(value)}, not {wanted}")

    def text(self, name, default=None):
        return self._checked(name, "a string", lambda value: isinstance(value, str), default)

    def among(self, name, values):
        return self._checked(name, "one of " + ", ".join(values), lambda value: value in values)

    def flag(self, name, default=None):
        return self._checked(name, "true or false", lambda value: isinstance(value, bool), default)

    def positive(self, name):
        return self._checked(name, "a number above 0", lambda value: is_number(value) and value > 0)

    def optional(self, name):
        """A number, or None where the writer had none (null)."""
        return self._checked(name, "a number", lambda value: value is None or is_number(value))

    def objects(self, name, default=None):
        value = self._checked(name, "a list", lambda value: isinstance(value, list), default)
        return [Members(item, f"{self.where}: {name}[{i}]") for i, item in enumerate(value)]

    def require_version(self, wanted, default=None):
        """`default`: what a missing version stands for."""
        found = self.value.get("version", default)
        if found != wanted:
            raise BadInput(f"{self.where}: version {shortened(found)}; this report reads version "
                           f"{wanted}")


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def shortened(value):
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "..."


def read_json(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: not JSON, or cut short: {error}") from error


def read_bench(path):
    """The file that bench wrote, as a Bench."""
    members = Members(read_json(path), path)
    if members.value.get("format") != BENCH_FORMAT:
        found = shortened(members.value.get("format"))
        raise BadInput(f"{path}: not made by bench: its format is {found}, not \"{BENCH_FORMAT}\"")
    members.require_version(BENCH_VERSION)
    machine = Members(members.value.get("machine"), f"{path}: machine")
    machine.text("gpu")
    return Bench(path, machine.value, machine.positive("fma_tflops"),
                 {level: machine.positive(name) for level, name in RATES.items()
                  if level == "DRAM" or name in machine.value},
                 [bench_problem(problem) for problem in members.objects("problems")],
                 [Standing(record.text("stage"), record.text("competitor"),
                           record.optional("problems"), record.optional("won"),
                           record.optional("geometric_mean"))
                  for record in members.objects("standings", default=[])])


def bench_problem(problem):
    shape = problem.text("shape", default="")
    stages = {record.text("stage"): timing(record) for record in problem.objects("records")}
    return BenchProblem(
        name=problem.text("problem"), shape=shape, bias=problem.flag("bias"),
        flop=problem.positive("flop") if shape else 0,
        floor_ms=problem.positive("cold_floor_ms") if shape else 0,
        error=problem.text("error", default=""), throttled=throttle_reasons(problem),
        stages=dict(sorted(stages.items())),
        competitors=[competitor(record) for record in problem.objects("competitors", default=[])])


def throttle_reasons(problem):
    """As the GPU named them before and after the timed runs, each once. null: it wasn't asked."""
    states = [problem.value.get(when) for when in ("gpu_before", "gpu_after")]
    return sorted({reason for state in states if isinstance(state, dict)
                   for reason in state.get("throttle_reasons", [])})


def competitor(record):
    return Competitor(name=record.text("competitor"),
                      precision=record.among("precision", PRECISIONS),
                      layout=record.among("layout", LAYOUTS),
                      library=record.text("library", default=""),
                      algorithm=record.text("algorithm", default=""), timing=timing(record))


def timing(record):
    status = record.among("status", STATUSES)
    times = (statistics(record, "cold_ms"), statistics(record, "warm_ms"))
    cold, warm = times if status == "pass" else (None, None)
    return Timing(status, record.text("message", default=""), record.optional("max_error_ratio"),
                  cold, warm, record.optional("host_late"))


def statistics(record, name):
    if record.value.get(name) is None:
        return None
    times = Members(record.value[name], f"{record.where}: {name}")
    lower, median, upper = (times.positive(member)
                            for member in ("lower_quartile", "median", "upper_quartile"))
    if not lower <= median <= upper:
        raise BadInput(f"{times.where}: quartiles {lower:g} and {upper:g} around median {median:g}")
    return Statistics(median, lower, upper, times.positive("count"), times.positive("min"))


def read_profiles(path):
    """What profile wrote, as one Profile per problem and source, in the file's order."""
    records = read_json(path)
    if not isinstance(records, list):
        raise BadInput(f"{path}: not made by profile: a list of records was expected")
    profiles = {}
    for i, item in enumerate(records):
        record = Members(item, f"{path}: record {i}")
        record.require_version(PROFILE_VERSION, default=1)
        kernel = Kernel(record.text("kernel"), record.flag("library"), counters_of(record),
                        floor(record, ""), floor(record, "whole_"))
        problem = (path, record.text("source"), record.text("problem"), record.text("shape"),
                   record.flag("bias", default=True))
        profile = profiles.setdefault(problem, Profile(
            *problem, record.positive("flop"), record.optional("least_bytes") or 0, {},
            record.text("machine", default=""), record.text("whole_shape", default=""),
            record.optional("whole_flop") or 0))
        profile.stages.setdefault(record.text("stage"), []).append(kernel)
    return [known(replace(profile, stages=dict(sorted(profile.stages.items()))))
            for profile in profiles.values()]


def floor(record, prefix):
    """Of a kernel; None in records without."""
    milliseconds = record.optional(prefix + "floor_ms")
    return None if milliseconds is None else (milliseconds, record.text(prefix + "floor_limit"))


def known(profile):
    """The profile, unless it has no counter that is known: then they have other names."""
    names = [name for kernels in profile.stages.values() for kernel in kernels
             for name in kernel.metrics]
    if {metric.metric for metric in metrics.ALL} & set(names):
        return profile
    found = f"only {shortened(names[0])} and the like" if names else "none at all"
    raise BadInput(f"{profile.path}: {profile.name}, source '{profile.source}': no counters that "
                   f"the tables show, {found}")


def counters_of(record):
    """The counters of a record: its numbers whose names are Nsight Compute's (all have a "__" or
    a "."), without those that the source could not give (null)."""
    names = [name for name in record.value if "__" in name or "." in name]
    return {name: record.optional(name) for name in names if record.optional(name) is not None}


def read_runs(path):
    """What run or check wrote, as a list of RunRecords in ladder order within each problem."""
    value = read_json(path)
    if isinstance(value, dict):  # run's: one problem, with what it ran on
        Members(value, path).require_version(RUN_VERSION, default=1)
        value = value.get("stages")
    if not isinstance(value, list):
        raise BadInput(f"{path}: not made by run or check: a list of records was expected")
    return [run_record(Members(item, f"{path}: record {i}")) for i, item in enumerate(value)]


def run_record(record):
    record.require_version(RUN_VERSION, default=1)
    status = record.among("status", STATUSES)
    timed = status == "pass" and record.value.get("time_source") == "cuda_events"
    return RunRecord(record.text("stage"), record.text("problem"), record.text("backend"), status,
                     record.optional("max_error_ratio"), record.text("message", default=""),
                     record.positive("time_ms") if timed else None,
                     record.positive("tflops") if timed else None)


@dataclass(frozen=True)
class Problem:
    """What all files together say of one problem."""
    name: str
    shape: str
    bias: bool
    bench: BenchProblem | None
    profiles: list


def join(bench, profiles):
    """The problems of a Bench (or None), then those that only Profiles know, each in its file's
    order. Times and counters meet where name, extents and bias agree: batch 1 isn't batch 256."""
    measured = {(p.name, p.shape, p.bias): p for p in (bench.problems if bench else [])}
    keys = list(dict.fromkeys([*measured, *((p.name, p.shape, p.bias) for p in profiles)]))
    return [Problem(*key, measured.get(key),
                    [p for p in profiles if (p.name, p.shape, p.bias) == key]) for key in keys]
