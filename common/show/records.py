"""The records that bench and profile write as JSON, and their one reader.

A member of a JSON object is an attribute here, of the same name. Another format, another version, and what is
cut short or lacks a member are refused, by BadInput: one line that names the file. The members:

  of a Bench      machine: gpu, fma_tflops (the FP32 ceiling, of a loop of FMAs in the same run),
                  copy_tb_per_s, l1_read_tb_per_s, l2_read_tb_per_s, versions; problems
  of a problem    problem (here: name), shape ("n256 c3 224x224 k96 ... dil 1x1"), bias, flop; error: what
                  kept it from being measured; gpu_before, gpu_after: null, or throttle_reasons; records: a
                  timing for each stage; competitors: a timing for each library, precision and layout
  of a timing     status (pass, fail, rejected, skipped, impossible), message, max_error_ratio, cold_ms and
                  warm_ms: null, or median, lower_quartile, upper_quartile, min and count, in milliseconds;
                  host_late: runs whose times may contain the host's; precision; stage or competitor ("cudnn",
                  "cudnn_any", "pytorch"), layout, library, algorithm, tf32_used
  of a kernel     of all its launches, by one source of counts: stage, kernel (here: name), launches, library,
                  problem, shape, bias, source ("ncu" or "simulator"), flop and least_bytes of
                  the problem, and counters (here: metrics), whose names have a "__" or a "."; floor_ms,
                  floor_limit: its least time on the `machine`; of a problem that was cut down whole_shape,
                  whole_flop, whole_floor_ms, whole_floor_limit
"""
import contextlib
import json
import math
from types import SimpleNamespace
from typing import NamedTuple

from common.show import files, metrics

LACKING = {  # what stands for a member that some records lack
    "shape": "", "flop": 0, "error": "", "gpu_before": None, "gpu_after": None, "competitors": (),
    "precision": "fp32", "throttle_reasons": (), "message": "", "max_error_ratio": None, "host_late": None,
    "library": "", "algorithm": "", "tf32_used": True, "bias": True, "least_bytes": 0, "machine": "",
    "floor_ms": None, "floor_limit": "", "whole_shape": "", "whole_flop": 0, "whole_floor_ms": None,
    "whole_floor_limit": ""}


class BadInput(Exception):
    """A file that can't be reported on."""


class Record(SimpleNamespace):
    """A JSON object."""

    def __getattr__(self, name):
        if name in LACKING:
            return LACKING[name]
        raise AttributeError(f"member '{name}' is missing")

    # A timing has no times unless it has passed.
    cold = property(lambda self: self.cold_ms if self.status == "pass" else None)
    warm = property(lambda self: self.warm_ms if self.status == "pass" else None)


def record_of(value):
    """The JSON value with its objects as Records."""
    if isinstance(value, dict):
        return Record(**{name: record_of(own) for name, own in value.items()})
    return [record_of(own) for own in value] if isinstance(value, list) else value


def finite(text):
    """The number; Python's reader takes NaN and Infinity as well, which a browser's refuses."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is no finite number")
    return value


def read_json(path):
    try:
        return json.loads(files.read(path), parse_float=finite, parse_constant=finite)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    except RecursionError as error:
        raise BadInput(f"{path}: not JSON, or nested too deep") from error
    except ValueError as error:
        raise BadInput(f"{path}: not JSON, or cut short: {error}") from error


@contextlib.contextmanager
def well_formed(path):
    """What lacks a member, or has one of another type, is refused as well."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise BadInput(f"{path}: not as its writer makes it: {error}") from error


def require_version(record, wanted, where):
    found = record.get("version", 1)  # the oldest have none
    if found != wanted:
        raise BadInput(f"{where}: version {json.dumps(found)}; this report reads version {wanted}")


def read_file(path, form, version):
    """The JSON object of a file that says of itself which format it has."""
    value = read_json(path)
    found = value.get("format") if isinstance(value, dict) else None
    if found != form:
        raise BadInput(f"{path}: its format is {json.dumps(found)}, not \"{form}\"")
    require_version(value, version, path)
    return value


def require_times(timing):
    """Tables divide by them."""
    for times in (timing.cold, timing.warm):
        if times and not 0 < times.lower_quartile <= times.median <= times.upper_quartile < math.inf:
            raise ValueError(f"quartiles {times.lower_quartile} and {times.upper_quartile} around median "
                             f"{times.median}")


class Bench(NamedTuple):
    path: str
    machine: dict
    fma_tflops: float
    tb_per_s: dict  # {"DRAM": of a copy, "L1" and "L2": of reads, if known}
    problems: list


def read_bench(path):
    """The file that bench wrote; of each problem `stages` is {name: timing}, in ladder order."""
    value = read_file(path, "convladder bench", 1)
    with well_formed(path):
        machine, problems = value["machine"], record_of(value["problems"])
        for problem in problems:
            problem.name = problem.problem
            problem.stages = dict(sorted((each.stage, each) for each in problem.records))
            for timing in [*problem.records, *problem.competitors]:
                require_times(timing)
        rates = {"DRAM": machine["copy_tb_per_s"], "L1": machine.get("l1_read_tb_per_s"),
                 "L2": machine.get("l2_read_tb_per_s")}
        return Bench(path, machine, machine["fma_tflops"],
                     {level: rate for level, rate in rates.items() if rate}, problems)


def rival(problem, name, precision):
    """The first such competitor of a problem; None without."""
    return next((each for each in problem.competitors
                 if (each.competitor, each.precision) == (name, precision)), None)


def without_forms(names):
    """The stages without their forms: 15_copy_engine_tf32 is one of 15_copy_engine."""
    return [name for name in names if not any(name.startswith(other + "_") for other in names)]


class Profile(NamedTuple):
    """One problem's kernels by one source of counts; the rest is what all their records say."""
    source: str
    name: str
    shape: str
    bias: bool
    flop: float
    least_bytes: float
    machine: str
    whole_shape: str
    whole_flop: float
    stages: dict  # name: [kernel], in ladder order


def read_profiles(path):
    """What profile wrote, as one Profile per problem and source, in the file's order."""
    return profiles_of(read_json(path), path)


def profiles_of(value, path):
    found = {}
    if not isinstance(value, list):
        raise BadInput(f"{path}: not made by profile: a list of records was expected")
    if not value:
        raise BadInput(f"{path}: has no record of a kernel")
    with well_formed(path):
        for i, members in enumerate(value):
            require_version(members, 1, f"{path}: record {i}")
            kernel = record_of(members)
            kernel.name = kernel.kernel
            kernel.metrics = {name: +value for name, value in members.items()
                              if ("__" in name or "." in name) and value is not None}
            of = kernel.source, kernel.problem, kernel.shape, kernel.bias
            found.setdefault(of, []).append(kernel)
        return [profile_of(path, kernels) for kernels in found.values()]


def profile_of(path, kernels):
    first, names = kernels[0], [name for kernel in kernels for name in kernel.metrics]
    if not {metric.metric for metric in metrics.ALL} & set(names):  # they have other names
        found = f"only {names[0]} and the like" if names else "none at all"
        raise BadInput(f"{path}: {first.problem}, source '{first.source}': no counters that the tables show, "
                       f"{found}")
    stages = {name: [kernel for kernel in kernels if kernel.stage == name]
              for name in sorted({kernel.stage for kernel in kernels})}
    return Profile(first.source, first.problem, first.shape, first.bias, first.flop, first.least_bytes or 0,
                   first.machine, first.whole_shape, first.whole_flop or 0, stages)


class Problem(NamedTuple):
    """What all files together say of one problem."""
    name: str
    shape: str
    bias: bool
    bench: Record | None
    profiles: list

    def stages(self):
        """Those that were timed or counted on it, in ladder order."""
        timed = list(self.bench.stages) if self.bench else []
        return sorted({*timed, *(name for profile in self.profiles for name in profile.stages)})


def join(bench, profiles):
    """The problems of a Bench (or None), then those that only Profiles know, each in its file's
    order. Times and counters meet where name, extents and bias agree: batch 1 isn't batch 256."""
    measured = {(p.name, p.shape, p.bias): p for p in (bench.problems if bench else [])}
    keys = list(dict.fromkeys([*measured, *((p.name, p.shape, p.bias) for p in profiles)]))
    return [Problem(*key, measured.get(key),
                    [p for p in profiles if (p.name, p.shape, p.bias) == key]) for key in keys]


class Card(NamedTuple):
    """A GPU, and the problems that it was measured on."""
    bench: Bench | None
    problems: list

    @property
    def gpu(self):
        return self.bench and self.bench.machine["gpu"]

    def stages(self):
        """Those that were timed or counted on it; the simulator counts all."""
        return {name for problem in self.problems for measured in (
            problem.bench, *(each for each in problem.profiles if each.source != "simulator")) if measured
            for name in measured.stages}


def cards(benches, profiles):
    """A Card for each Bench, at least one, that of most problems first. A card has the counters of its own
    GPU; the first has those of others as well, and the simulator's."""
    benches = sorted(benches, key=lambda bench: -len(bench.problems)) or [None]
    of = [next((bench for bench in benches if bench and each.machine.startswith(bench.machine["gpu"])),
               benches[0]) for each in profiles]
    return [Card(bench, join(bench, [each for each, owner in zip(profiles, of) if owner is bench]))
            for bench in benches]
