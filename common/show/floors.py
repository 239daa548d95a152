"""The least time that a kernel can take on a GPU: by Nsight Compute's counters of it, and by the simulator's
of whole stages (docs/results/floors.csv), held against measured times.

The first is what common/measure/floor.h does with the simulator's counts: the longest of what the counters
say took its time at the rates of common/machines/*.json.
"""
import glob
import math
import os
from typing import NamedTuple

from common.show import counters, files, formats, results

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "machines")
FORMAT, VERSION = "convladder machine", 1
TENSOR_FLOP = 2 * 16 * 8 * 8  # of an instruction of stage 12; other kernels here have none


def read_machine(path):
    """(the GPU's name, {rate: value}). Raises BadInput."""
    file = results.Members(results.read_json(path), path)
    if file.value.get("format") != FORMAT:
        raise results.BadInput(f"{path}: its format is not \"{FORMAT}\"")
    file.require_version(VERSION)
    return file.text("gpu"), {rate.text("name"): rate.positive("value")
                              for rate in file.objects("rates")}


def machine_of(gpu):
    """The rates of the GPU with that name; None where no file has them."""
    known = dict(map(read_machine, sorted(glob.glob(os.path.join(FOLDER, "*.json")))))
    return known.get(gpu)


def of_counters(metrics, rates):
    """(milliseconds, what limits it) of a kernel with these counters, all its launches together; None
    without any of them."""
    per_cycle = 1e3 * rates["clock_mhz"] * rates["multiprocessors"]  # and per millisecond
    kernel = results.Kernel("", False, metrics)
    parts = {
        "multiplications": (metrics.get("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"),
                            rates["fmas_per_cycle"] * per_cycle),
        "tensor cores": (metrics.get("sm__inst_executed_pipe_tensor_op_hmma.sum"),
                         1e9 * rates.get("tf32_tflops", math.inf) / TENSOR_FLOP),
        "L1's data pipe": (metrics.get("l1tex__data_pipe_lsu_wavefronts.sum"),
                           rates["wavefronts_per_cycle"] * per_cycle),
        "DRAM": (counters.dram_bytes(kernel),
                 1e9 * rates["dram_tb_per_s"])}
    known = [(amount / rate, limit) for limit, (amount, rate) in parts.items() if amount is not None]
    return max(known, default=None)


# --- held against the clock ----------------------------------------------------------------------

COLUMNS = ["problem", "shape", "counted", "stage", "floor_ms", "limit"]
TOLERANCE = 0.01  # of the clock, which may be above the highest that the driver names
SHORT = {"multiplications": "FMA", "L1's data pipe": "L1", "tensor cores": "tensor"}
EXTREMES = 6  # cases in the table of the highest shares, and of the lowest


class Case(NamedTuple):
    """A stage on a layer that has both a time and a least time, in milliseconds."""
    problem: str
    stage: str
    floor: float
    limit: str
    measured: float  # the fastest run with a cold L2

    @property
    def share(self):
        return self.floor / self.measured


def read_floors(path):
    """{(problem, shape): {stage: (milliseconds, limit)}} as count_floors.py wrote it. Raises BadInput."""
    floors = {}
    for row in files.read_rows(path):
        if list(row) != COLUMNS:
            raise results.BadInput(f"{path}: its columns aren't {', '.join(COLUMNS)}")
        floors.setdefault((row["problem"], row["shape"]), {})[row["stage"]] = (
            float(row["floor_ms"]), row["limit"])
    return floors


def cases(benches, floors):
    """In the order of the Benches, of which the first counts. With bias: the floors are of layers that
    have one."""
    found = {}
    for problem in (problem for bench in benches for problem in bench.problems if problem.bias):
        known = floors.get((problem.name, problem.shape), {})
        for stage, timing in problem.stages.items():
            if timing.cold and stage in known:
                found.setdefault((problem.name, stage),
                                 Case(problem.name, stage, *known[stage], timing.cold.least))
    return list(found.values())


def above_time(all_cases):
    return [case for case in all_cases if case.share > 1 + TOLERANCE]


def share_table(all_cases):
    """A row per layer, a column per stage."""
    stages = sorted({case.stage for case in all_cases})
    known = {(case.problem, case.stage): case for case in all_cases}
    rows = []
    for problem in dict.fromkeys(case.problem for case in all_cases):
        own = [known.get((problem, stage)) for stage in stages]
        rows.append([problem] + [f"{case.share:.2f} {SHORT.get(case.limit, case.limit)}" if case else ""
                                 for case in own])
    return formats.markdown(["layer", *stages], rows)


def case_table(some_cases, issue):
    """`issue`: {(problem, stage): share of the issue slots that are busy, percent}."""
    rows = []
    for case in some_cases:
        slots = issue.get((case.problem, case.stage))
        rows.append([case.problem, case.stage, formats.milliseconds(case.floor),
                     formats.milliseconds(case.measured), f"{case.share:.3f}", case.limit,
                     "" if slots is None else formats.percent(slots)])
    return formats.markdown(["layer", "stage", "at least [ms]", "measured [ms]", "share", "limited by",
                             "issue slots busy"], rows)


def busy_issue_slots(profiles):
    """Of the longest kernel of each stage, where Nsight Compute has read it."""
    name = "smsp__issue_active.avg.pct_of_peak_sustained_active"
    known = {}
    for profile in profiles:
        for stage, kernels in profile.stages.items():
            main = counters.main_kernel(kernels)
            if main and name in main.metrics:
                known[profile.name, stage] = main.metrics[name]
    return known


def report(benches, floors, profiles):
    """docs/results/floors.md: what the floors are of the times; empty without both."""
    all_cases = cases(benches, floors)
    if not all_cases:
        return ""
    issue = busy_issue_slots(profiles)
    by_share = sorted(all_cases, key=lambda case: case.share)
    layers = len({case.problem for case in all_cases})
    return "\n".join([
        f"{len(all_cases)} cases, stages on {layers} layers: the floor is above the measured time in "
        f"{len(above_time(all_cases))} of them. Share of the time that the floor explains, and what "
        "sets it:\n", share_table(all_cases),
        "The highest shares:\n", case_table(by_share[::-1][:EXTREMES], issue),
        "The lowest:\n", case_table(by_share[:EXTREMES], issue)])
