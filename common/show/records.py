"""The records that bench, profile, run and check write as JSON, and their one reader: whatever is not as
it should be is refused.

Each class is the schema of one kind of record: its fields are the members of an object in JSON, some under
another name (`key`). The functions named read_... raise BadInput: one line that names the file and what is
wrong with it.
"""
import functools
import json
import math
from dataclasses import dataclass, field, fields, replace

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


class Members:
    """The members of a JSON object, each read with a check of its type. A `default` stands for a member
    that is missing; without one it must be there."""

    def __init__(self, value, where):
        if not isinstance(value, dict):
            raise BadInput(f"{where}: an object was expected, not {shortened(value)}")
        self.value, self.where = value, where

    def _checked(self, name, wanted, fits, default=None):
        if name not in self.value and default is not None:
            return default
        value = self.value.get(name)
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

    def positive(self, name, default=None):
        return self._checked(name, "a number above 0", lambda value: is_number(value) and value > 0, default)

    def optional(self, name):
        """A number, or None where the writer had none (null)."""
        return self._checked(name, "a number", lambda value: value is None or is_number(value))

    def objects(self, name, schema=None, default=None):
        """Those of a list: of the class `schema`, or as Members."""
        value = self._checked(name, "a list", lambda value: isinstance(value, list), default)
        members = [Members(item, f"{self.where}: {name}[{i}]") for i, item in enumerate(value)]
        return [each.as_(schema) for each in members] if schema else members

    def optional_object(self, name, schema):
        value = self.value.get(name)
        return None if value is None else Members(value, f"{self.where}: {name}").as_(schema)

    def as_(self, schema):
        """The object of that class, whose fields member() makes."""
        values = {each.name: each.metadata["read"](self, each.metadata["key"] or each.name)
                  for each in fields(schema)}
        try:
            return schema(**values)
        except ValueError as error:
            raise BadInput(f"{self.where}: {error}") from error

    def require_version(self, wanted, default=None):
        """`default`: what a missing version stands for."""
        found = self.value.get("version", default)
        if found != wanted:
            raise BadInput(f"{self.where}: version {shortened(found)}; this report reads version "
                           f"{wanted}")


def member(read, *arguments, key=None):
    """A field of a schema. `read` is a method of Members, `key` its name in JSON if it has another."""
    return field(metadata={"read": lambda members, name: read(members, name, *arguments), "key": key})


@dataclass(frozen=True)
class Statistics:
    """Of times in milliseconds."""
    median: float = member(Members.positive)
    lower_quartile: float = member(Members.positive)
    upper_quartile: float = member(Members.positive)
    count: int = member(Members.positive)
    least: float = member(Members.positive, key="min")

    def __post_init__(self):
        if not self.lower_quartile <= self.median <= self.upper_quartile:
            raise ValueError(f"quartiles {self.lower_quartile:g} and {self.upper_quartile:g} around median "
                             f"{self.median:g}")


@dataclass(frozen=True)
class Timing:
    """Of a stage or a competitor, on one problem."""
    status: str = member(Members.among, STATUSES)
    message: str = member(Members.text, "")
    max_error_ratio: float | None = member(Members.optional)
    cold_ms: Statistics | None = member(Members.optional_object, Statistics)
    warm_ms: Statistics | None = member(Members.optional_object, Statistics)
    host_late: int | None = member(Members.optional)  # runs whose times may contain the host's; None: unknown

    # No times unless it has passed.
    cold = property(lambda self: self.cold_ms if self.status == "pass" else None)
    warm = property(lambda self: self.warm_ms if self.status == "pass" else None)


@dataclass(frozen=True)
class StageTiming(Timing):
    stage: str = member(Members.text)


@dataclass(frozen=True)
class Competitor(Timing):
    name: str = member(Members.text, key="competitor")  # "cudnn", "cudnn_any" or "pytorch"
    precision: str = member(Members.among, PRECISIONS)
    layout: str = member(Members.among, LAYOUTS)
    library: str = member(Members.text, "")  # with its version
    algorithm: str = member(Members.text, "")
    tf32_used: bool = member(Members.flag, True)  # in TF32, by its error; older records don't say


@dataclass(frozen=True)
class BenchProblem:
    """One problem of a bench: its stages, and what they ran against."""
    name: str = member(Members.text, key="problem")
    shape: str = member(Members.text, "")  # "n256 c3 224x224 k96 ... dil 1x1"; empty: rejected
    bias: bool = member(Members.flag)
    flop: float = member(Members.positive, 0)
    floor_ms: float = member(Members.positive, 0, key="cold_floor_ms")  # by peak and copy rate
    error: str = member(Members.text, "")  # what kept it from being measured; empty: nothing
    gpu_before: dict | None = member(lambda members, name: members.value.get(name))  # None: it wasn't asked
    gpu_after: dict | None = member(lambda members, name: members.value.get(name))
    records: list = member(Members.objects, StageTiming)
    competitors: list = member(Members.objects, Competitor, [])

    @functools.cached_property
    def stages(self):
        """{name: StageTiming}, in ladder order."""
        return {each.stage: each for each in sorted(self.records, key=lambda each: each.stage)}

    @property
    def throttled(self):
        """Why the GPU lowered its clock, before and after the timed runs, each once."""
        return sorted({reason for state in (self.gpu_before, self.gpu_after) if isinstance(state, dict)
                       for reason in state.get("throttle_reasons", [])})

    def rival(self, name, precision):
        """The first such competitor; None without."""
        return next((each for each in self.competitors
                     if (each.name, each.precision) == (name, precision)), None)


@dataclass(frozen=True)
class Bench:
    path: str
    machine: dict      # as in the file: gpu, driver, cuda_runtime and other versions
    fma_tflops: float  # FP32 ceiling: a loop of FMAs, measured in the same run
    tb_per_s: dict     # likewise: {"DRAM": of a copy, "L1" and "L2": of reads, if known}
    problems: list


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
    stage: str = member(Members.text)
    problem: str = member(Members.text)
    status: str = member(Members.among, STATUSES)
    backend: str = member(Members.text)
    max_error_ratio: float | None = member(Members.optional)
    message: str = member(Members.text, "")
    time_source: str | None = member(lambda members, name: members.value.get(name))
    all_time_ms: float | None = member(Members.optional, key="time_ms")
    all_tflops: float | None = member(Members.optional, key="tflops")

    # On a GPU only: what a simulation took says nothing.
    timed = property(lambda self: self.status == "pass" and self.time_source == "cuda_events")
    time_ms = property(lambda self: self.all_time_ms if self.timed else None)
    tflops = property(lambda self: self.all_tflops if self.timed else None)


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
                 members.objects("problems", BenchProblem))


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
    records = [Members(item, f"{path}: record {i}") for i, item in enumerate(value)]
    for record in records:
        record.require_version(RUN_VERSION, default=1)
    return [record.as_(RunRecord) for record in records]


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
