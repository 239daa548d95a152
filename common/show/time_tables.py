"""Tables of times: stages as rows in ladder order, columns without any data left out.

  python3 -m common.show.time_tables FILE   those of a file that ./ladder bench wrote
"""
from statistics import geometric_mean
from typing import NamedTuple

from common.show import formats, records
from common.show.formats import markdown, milliseconds, percent, ratio, significant
from common.show.support import fail, run_main

COMPETITORS = {"cudnn": "cuDNN", "cudnn_any": "cuDNN, any plan,", "pytorch": "PyTorch"}
LAYERS = "Median times with a cold L2 [ms], and the share of the FP32 ceiling:\n"


class TimeCells(NamedTuple):
    """What a stage or competitor took, as text; where there is no time, `cold` is the status."""
    cold: str
    quartiles: str = ""
    warm: str = ""
    tflops: str = ""
    ceiling: str = ""  # share of the FP32 ceiling


HEADINGS = TimeCells("cold [ms]", "quartiles [ms]", "warm [ms]", "TFLOP/s", "of FP32 ceiling")


def tflops(timing, flop):
    return flop / timing.cold.median * 1e-9


def time_ratio(above, below):
    """The quotient of two timings' cold medians; None without one of them."""
    if not above or not below or not above.cold or not below.cold:
        return None
    return above.cold.median / below.cold.median


def competitor_title(competitor):
    """The precision is part of the name: FP32 and TF32 never stand in one column."""
    layout = " NHWC" if competitor.layout == "nhwc" else ""
    name = COMPETITORS.get(competitor.competitor, competitor.competitor)
    return f"{name} {competitor.precision.upper()}{layout}"


def ladder_of_competitors(problem):
    """FP32 before TF32, cuDNN before PyTorch, NCHW before NHWC."""
    return sorted(problem.competitors, key=lambda c: (c.precision, c.competitor, c.layout))


def time_cells(timing, flop, bench, precision="fp32"):
    if not timing or not timing.cold:
        return TimeCells(timing.status if timing else "")
    cold, rate = timing.cold, tflops(timing, flop)
    return TimeCells(
        cold=milliseconds(cold.median),
        quartiles=f"{milliseconds(cold.lower_quartile)}–{milliseconds(cold.upper_quartile)}",
        warm=milliseconds(timing.warm.median) if timing.warm else "",
        tflops=significant(rate),
        ceiling=percent(100 * rate / bench.fma_tflops) if precision == "fp32" else "")


def machine(bench):
    """What was measured on, and the two ceilings of the same run."""
    known = [bench.machine["gpu"]]
    for member, name in (("driver", "driver"), ("cuda_runtime", "CUDA"), ("cudnn", "cuDNN"),
                         ("pytorch", "PyTorch")):
        if bench.machine.get(member):
            known.append(f"{name} {bench.machine[member]}")
    ceiling, copy = map(significant, (bench.fma_tflops, bench.tb_per_s["DRAM"]))
    return (f"{', '.join(known)}. FP32 ceiling {ceiling} TFLOP/s (a loop of FMAs), copy {copy} "
            f"TB/s, both measured in the same run.\n")


BEST = "the ladder's best"


def with_best(problem):
    """Its stages' timings, and last, where there are several in FP32, the fastest of those, as BEST."""
    timed = [problem.stages[name] for name in records.without_forms(problem.stages) if name != "auto"]
    timed = [each for each in timed if each.cold and each.precision == "fp32"]
    if len(timed) < 2:
        return problem.stages
    return {**problem.stages, BEST: min(timed, key=lambda each: each.cold.median)}


def times_table(problem, bench):
    """The stages on a problem. A stage that failed has its status and no time."""
    rivals = ladder_of_competitors(problem)
    header = ["stage", *HEADINGS, "cold ÷ before",
              *("× " + competitor_title(rival) for rival in rivals)]
    rows, before = [], None
    for name, timing in with_best(problem).items():
        if name == BEST:
            name, before = f"{BEST} ({timing.stage[:2]})", None
        rows.append([name, *time_cells(timing, problem.flop, bench),
                     ratio(time_ratio(timing, before)),
                     *(ratio(time_ratio(rival, timing)) for rival in rivals)])
        before = timing
    return markdown(header, rows)


def competitors_table(problem, bench):
    """The libraries that ran in the same rounds."""
    header = ["competitor", *HEADINGS, "max error / allowed", "algorithm", "library", "message"]
    rows = [[competitor_title(rival),
             *time_cells(rival, problem.flop, bench, rival.precision),
             ratio(rival.max_error_ratio), rival.algorithm, rival.library,
             rival.message] for rival in ladder_of_competitors(problem)]
    return markdown(header, rows)


def parts(problem, bench):
    """All that is known of the times of a problem: tables, and remarks of a line each."""
    if problem.stages:
        yield times_table(problem, bench)
    if problem.error:
        yield f"Not measured: {problem.error}\n"
    for stage, timing in problem.stages.items():
        if timing.message and timing.message != problem.error:
            yield f"{stage}: {timing.status}: {timing.message}\n"
    throttled = {reason for state in (problem.gpu_before, problem.gpu_after) if state
                 for reason in state.throttle_reasons}
    if throttled:
        yield f"The GPU lowered its clock: {', '.join(sorted(throttled))}.\n"
    rivals = ladder_of_competitors(problem)
    if rivals:
        yield competitors_table(problem, bench)
    for name, timing in [*problem.stages.items(), *((competitor_title(rival), rival) for rival in rivals)]:
        if timing.cold and timing.host_late:
            yield (f"{name}: in {timing.host_late} of {timing.cold.count} runs the GPU may have waited for "
                   "the host; that time is in these.\n")


def layers_table(bench):
    """One row per problem, one column per stage: the cold median, and its share of the ceiling."""
    stages = sorted({name for problem in bench.problems for name in problem.stages})
    rows = []
    for problem in bench.problems:
        cells = [time_cells(problem.stages.get(name), problem.flop, bench) for name in stages]
        rows.append([problem.name, *(f"{cell.cold} ({cell.ceiling})" if cell.ceiling else cell.cold
                                     for cell in cells)])
    return markdown(["problem", *stages], rows)


def standings_table(bench, shown=()):
    """Puts each stage, or those that are to be shown, beside each competitor, over the problems on which both
    have passed: the geometric mean of how many times as fast the stage is, and on how many it is faster.
    Where a library may use TF32 and has not, it is no competitor in TF32."""
    quotients = {}  # {stage: {competitor: [of each such problem]}}
    for problem in bench.problems:
        for stage, timing in with_best(problem).items():
            for rival in problem.competitors if stage in (shown or [stage]) else ():
                found = quotients.setdefault(stage, {}).setdefault(competitor_title(rival), [])
                quotient = time_ratio(rival, timing) if rival.tf32_used else None
                found += [quotient] if quotient else []
    competitors = list(dict.fromkeys(name for found in quotients.values() for name in found))
    rows = []
    for stage, found in sorted(quotients.items()):
        cells = [f"{ratio(geometric_mean(each))} ({sum(quotient > 1 for quotient in each)} of {len(each)})"
                 if each else "" for each in map(found.get, competitors)]
        rows.append([stage, *cells])
    return markdown(["stage", *("× " + name for name in competitors)], rows)


def losses(bench, least=1.05):
    """Where a stage is slower than the last one before it that is at least as exact, a line for each stage:
    the layers, and how many times as long it takes. (A product in TF32 has no share of FP32's ceiling.)"""
    is_exact = {name: problem.stages[name].fraction_of_ceiling is not None for problem in bench.problems
                for name in records.without_forms(problem.stages)
                if name != "auto" and problem.stages[name].cold}
    for stage in sorted(is_exact):
        before = max((name for name in is_exact if name < stage and is_exact[name] >= is_exact[stage]),
                     default=None)
        quotients = ((time_ratio(problem.stages.get(stage), problem.stages.get(before)), problem.name)
                     for problem in bench.problems)
        slower = [(times, name) for times, name in quotients if times and times > least]
        if slower:
            yield f"- {stage} after {before}: " + ", ".join(
                f"{name} × {ratio(times)}" for times, name in sorted(slower, reverse=True)) + "\n"


def step_cells(problem, bench, before, now):
    """The TimeCells of two neighbouring stages on one problem, and the quotient of their cold medians."""
    old, new = (problem.stages.get(stage) for stage in (before, now))
    return [*(time_cells(timing, problem.flop, bench) for timing in (old, new)),
            ratio(time_ratio(new, old))]


def main(words):
    try:
        bench = records.read_bench(words[0])
    except records.BadInput as error:
        fail(str(error))
    for problem in bench.problems:
        print(f"{formats.title_of(problem)}\n")
        print("\n".join(formats.aligned(part) if part.startswith("|") else part
                        for part in parts(problem, bench)))
    if len(bench.problems) > 1 and any(problem.competitors for problem in bench.problems):
        print(f"Over {len(bench.problems)} problems: the geometric mean of how many times as fast as the "
              "library\na stage is, and on how many it is faster. TF32 keeps 10 bits of each factor.\n")
        print(formats.aligned(standings_table(bench)))
    return 0


if __name__ == "__main__":
    run_main(main)
