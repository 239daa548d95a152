"""The least time that a kernel can take on a GPU, and how near the stages come to it.

It is a bound, no estimate: the longest of what its multiplications, its wavefronts and its bytes take at the
rates of the GPU (common/machines). Latencies, other instructions, what misses the caches and how
blocks are shared out can only add to it.
"""
import glob
import math
import os
from typing import NamedTuple

from common.show import counters, files, formats, records, support

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "machines")
FORMAT, VERSION = "convladder machine", 1
RATES = ("multiprocessors", "clock_mhz", "fmas_per_cycle", "wavefronts_per_cycle", "dram_tb_per_s",
         "l2_bytes", "fma_tflops")
OTHER_RATES = ("launch_us", "tf32_tflops", "wgmma_tflops")  # where they have been measured
BY_DATA_SHEET = " (by the data sheet)"
TENSOR_FLOP = 2 * 16 * 8 * 8  # of an instruction of stage 12
WGMMA_FLOP = 2 * 64 * 8  # of each column of the sum of one of stage 14, in TF32


def data_sheets():
    """{name: (the GPU's name, {rate: value}, its compute capability)} of GPUs that were not measured."""
    known = {}
    for row in files.read_rows(os.path.join(FOLDER, "data_sheets.csv")):
        rates = {name: float(row[name]) for name in RATES + OTHER_RATES if row.get(name)}
        # 32 banks of 4 bytes; a Turing multiprocessor moves only 64 bytes in a cycle
        rates["wavefronts_per_cycle"] = 0.5 if row["compute_capability"] == "7.5" else 1.0
        rates["fma_tflops"] = 2e-6 * (rates["multiprocessors"] * rates["fmas_per_cycle"] *
                                      rates["clock_mhz"])
        known[row["name"]] = row["gpu"] + BY_DATA_SHEET, rates, row["compute_capability"]
    return known


def cannot_run(gpu, stages):
    """{stage: the compute capability that it needs} of those that the GPU hasn't, as its data sheet says."""
    own = next((capability for name, _, capability in data_sheets().values() if name == gpu), "")
    needs = {stage: next((files.capability_of(name) for name in files.stage_names()
                          if f"{stage}_".startswith(f"{name}_")), "") for stage in stages}
    return {stage: need for stage, need in needs.items()
            if own and need and (own != need if need == "9.0" else float(own) < float(need))}


def names():
    """The short names of all GPUs that are known: first those that were measured."""
    records = glob.glob(os.path.join(FOLDER, "*.json"))
    measured = (os.path.splitext(os.path.basename(path))[0] for path in records)
    return [*sorted(measured), *data_sheets()]


def read_machine(path):
    """(the GPU's name, {rate: value}) of a file, or of a GPU by its short name: h200. Raises BadInput; where
    there is neither, ends with a usage error."""
    if os.sep not in path and not os.path.isfile(path):
        name, known = path.lower(), data_sheets()
        measured = os.path.join(FOLDER, name + ".json")
        if name in known:
            return known[name][:2]
        if not os.path.exists(measured):
            support.fail(f"--machine {path}: no such file, and no GPU that is known: {', '.join(names())}", 2)
        path = measured
    value = records.read_file(path, FORMAT, VERSION)
    with records.well_formed(path):
        gpu, given, rates = value.get("gpu"), value.get("rates"), {}
        if not isinstance(gpu, str) or not gpu.removeprefix("NVIDIA ") or not gpu.isprintable():
            raise ValueError("'gpu' is no name of one")
        if not isinstance(given, list) or not all(isinstance(rate, dict) for rate in given):
            raise ValueError("'rates' is no list of objects")
        for rate in given:
            name = str(rate.get("name"))
            if name in rates:
                raise ValueError(f"{name!r} is there twice")
            rates[name] = rate.get("value")
        for name in RATES + OTHER_RATES:
            rate = rates.get(name, 1 if name in OTHER_RATES else None)
            if type(rate) not in (int, float) or not 1e-9 < rate < 1e15:
                raise ValueError(f"'{name}' is missing, or no rate of a GPU")
        return gpu, rates


def machine_of(gpu):
    """(name, rates) of the GPU with that name; without rates where they are not known."""
    known = dict(map(read_machine, sorted(glob.glob(os.path.join(FOLDER, "*.json")))))
    sheets = {name: rates for name, rates, _ in data_sheets().values()}
    by_sheet = gpu + BY_DATA_SHEET
    return (by_sheet, sheets[by_sheet]) if gpu not in known and by_sheet in sheets else (gpu, known.get(gpu))


# --- of kernels ----------------------------------------------------------------------------------

def longest(parts):
    """(milliseconds, limit) of {limit: milliseconds, or None}; None without any."""
    known = [(time, limit) for limit, time in parts.items() if time is not None]
    return max(known, key=lambda part: part[0], default=None)


def sum_of(floors):
    """(milliseconds, limit) of what runs one after the other; the limit is that of most of the time."""
    limits = {}
    for time, limit in floors:
        limits[limit] = limits.get(limit, 0) + time
    return sum(limits.values()), max(limits, key=limits.get, default="launch")


def of_tensor_cores(metrics, rates):
    """Milliseconds of a kernel's tensor instructions: those of a warp by the rate of a loop of them; those of
    a warpgroup, which are of many sizes, by the cycles in which they were under way, at the highest clock."""
    if metrics.get("sm__inst_executed_pipe_tensor_op_gmma.sum"):
        shares = [metrics.get(f"{name}.avg.pct_of_peak_sustained_active")
                  for name in ("sm__pipe_tensor_cycles_active", "smsp__issue_active")]
        instructions = metrics.get("smsp__inst_executed.sum")
        if None in (*shares, instructions):
            return None
        schedulers = 4 * rates["multiprocessors"]
        return instructions / schedulers * shares[0] / shares[1] / (1e3 * rates["clock_mhz"])
    count = metrics.get("sm__inst_executed_pipe_tensor_op_hmma.sum")
    return None if count is None else count * TENSOR_FLOP / (1e9 * rates.get("tf32_tflops", math.inf))


def of_counters(metrics, rates):
    """(milliseconds, what limits it) of a kernel that Nsight Compute has read, all launches together; None
    without any of these counters."""
    per_cycle = 1e3 * rates["clock_mhz"] * rates["multiprocessors"]  # and per millisecond
    kernel = records.Record(metrics=metrics)

    def time(amount, rate):
        return None if amount is None else amount / rate

    return longest({
        "multiplications": time(metrics.get("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"),
                                rates["fmas_per_cycle"] * per_cycle),
        "tensor cores": of_tensor_cores(metrics, rates),
        "L1's data pipe": time(metrics.get("l1tex__data_pipe_lsu_wavefronts.sum"),
                               rates["wavefronts_per_cycle"] * per_cycle),
        "DRAM": time(counters.dram_bytes(kernel), 1e9 * rates["dram_tb_per_s"])})


def busiest(amounts, blocks, multiprocessors):
    """What one of the multiprocessors has to do at the least, whichever blocks it was given: some
    multiprocessor has its share of the blocks, rounded up, and the share's smallest blocks at the least.

    amounts: [[amount, how many blocks ask for as much]], in rising order; they may be of a sample of the
    launch's blocks.
    """
    counted = sum(count for _, count in amounts)
    if not counted:
        return 0
    ratio = blocks / counted
    share, least = math.ceil(blocks / multiprocessors), 0
    for amount, count in amounts:
        taken = min(share, count * ratio)
        least += taken * amount
        share -= taken
    total = sum(amount * count for amount, count in amounts)
    return max(total * ratio / multiprocessors, least)


def of_launch(work, rates):
    """(milliseconds, what limits it) of one launch that the simulator has counted: an entry of a record's
    `work`. What the launch reads may lie in L2 already unless it is the stage's first, and what it writes
    may stay there."""
    all_of_them = rates["multiprocessors"]
    cycles = 1e3 * rates["clock_mhz"]  # in a millisecond

    def most(name):
        return busiest(work.get(name, []), work["blocks"], all_of_them)

    products = max(most("products"), work.get("library_products", 0) / all_of_them)
    read, written = (counters.SECTOR_BYTES * work[name] for name in ("sectors_read", "sectors_written"))
    moved = (max(0, read - (0 if work.get("first") else rates["l2_bytes"])) +
             max(0, written - rates["l2_bytes"]))
    return longest({
        "launch": 1e-3 * rates.get("launch_us", 0),
        "multiplications": products / rates["fmas_per_cycle"] / cycles,
        "tensor cores": all_of_them * (
            TENSOR_FLOP * most("tensor_instructions") / (1e9 * rates.get("tf32_tflops", math.inf)) +
            WGMMA_FLOP * most("wgmma_columns") / (1e9 * rates.get("wgmma_tflops", math.inf))),
        "L1's data pipe": most("wavefronts") / rates["wavefronts_per_cycle"] / cycles,
        "DRAM": moved / (1e9 * rates["dram_tb_per_s"])})


def of_work(launches, rates):
    """(milliseconds, what limits it) of all launches of a kernel."""
    return sum_of((work.get("times", 1) * time, limit)
                  for work in launches for time, limit in [of_launch(work, rates)])


def add(records, rates, gpu):
    """Puts the least time of each kernel into its record of profile, in the place of its `work`."""
    for record in records:
        found = {prefix: of_work(record.pop(prefix + "work"), rates) for prefix in ("", "whole_")
                 if prefix + "work" in record}
        if not found:
            counted = {name: value for name, value in record.items() if "__" in name}
            found = {"": of_counters(counted, rates)}
        for prefix, floor in found.items():
            if floor:
                record.update({"machine": gpu, prefix + "floor_ms": floor[0],
                               prefix + "floor_limit": floor[1]})


def of_stage(kernels, whole=False):
    """(milliseconds, what limits most of them) that the kernels take one after the other; None where one
    of them has none. whole: of the problem that was cut down."""
    floors = [(kernel.whole_floor_ms, kernel.whole_floor_limit) if whole else
              (kernel.floor_ms, kernel.floor_limit) for kernel in kernels]
    return sum_of(floors) if floors and all(time is not None for time, _ in floors) else None


# --- held against the clock ----------------------------------------------------------------------

COLUMNS = ["problem", "shape", "counted", "stage", "floor_ms", "limit"]
TOLERANCE = 0.01  # of the clock, which may be above the highest that the driver names


class Case(NamedTuple):
    """A stage on a layer that has both a time and a least time, in milliseconds."""
    share: float  # of the time, that the floor is
    stage: str
    problem: str
    floor: float
    measured: float  # the fastest run with a cold L2
    limit: str


def read_floors(path):
    """{(problem, shape, stage): (milliseconds, limit)} as count_floors.py wrote it. Raises BadInput."""
    rows = files.read_rows(path)
    if rows and list(rows[0]) != COLUMNS:
        raise records.BadInput(f"{path}: its columns aren't {', '.join(COLUMNS)}")
    return {(row["problem"], row["shape"], row["stage"]): (float(row["floor_ms"]), row["limit"])
            for row in rows}


def cases(benches, floors):
    """In the order of the Benches, of which the first counts."""
    found = {}
    for problem in (problem for bench in benches for problem in bench.problems):
        for stage, timing in problem.stages.items():
            floor, limit = floors.get((problem.name, problem.shape, stage), (None, ""))
            if timing.cold and floor:
                found.setdefault((problem.name, stage), Case(
                    floor / timing.cold.min, stage, problem.name, floor, timing.cold.min, limit))
    return list(found.values())


def above_time(all_cases):
    return [case for case in all_cases if case.share > 1 + TOLERANCE]


def report(benches, floors):
    """docs/results/floors.md: what share of each stage's time its floor is, where most and least;
    empty without both."""
    all_cases, rows = cases(benches, floors), []
    for stage in sorted({case.stage for case in all_cases}):
        own = sorted(case for case in all_cases if case.stage == stage)
        rows += [[stage, layers, f"{case.share:.3f}", case.problem, formats.milliseconds(case.floor),
                  formats.milliseconds(case.measured), case.limit]
                 for case, layers in ((own[-1], str(len(own))), (own[0], ""))]
    return rows and "\n".join([
        f"{len(all_cases)} cases, stages on {len({case.problem for case in all_cases})} layers: the floor is "
        f"above the measured time in {len(above_time(all_cases))} of them. The highest share of the time "
        "that it explains of each stage, and the lowest:\n",
        formats.markdown(["stage", "layers", "share", "on", "at least [ms]", "measured [ms]",
                          "limited by"], rows)])
