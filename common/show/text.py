"""The report as Markdown."""
from common.show import counter_tables, floors, formats, time_tables

LAYERS = "Median times with a cold L2 [ms], and the share of the FP32 ceiling:\n"
HOW_TO_READ = "What the columns mean: docs/results/README.md#how-to-read-this\n"


def report(bench, problems, runs):
    """Everything, as Markdown."""
    parts = [machine(bench)] if bench else []
    if bench and len(bench.problems) > 1:
        parts += [LAYERS, time_tables.layers_table(bench)]
    for problem in problems:
        parts += [f"## {formats.title_of(problem)}\n", *about(problem, bench)]
    if runs:
        parts += ["## Checked by run and check\n", time_tables.runs_table(runs)]
    return "\n".join(parts + [HOW_TO_READ])


def machine(bench):
    """What was measured on, and the two ceilings of the same run."""
    known = [bench.machine["gpu"]]
    for member, name in (("driver", "driver"), ("cuda_runtime", "CUDA"), ("cudnn", "cuDNN"),
                         ("pytorch", "PyTorch")):
        if bench.machine.get(member):
            known.append(f"{name} {bench.machine[member]}")
    ceiling, copy = map(formats.significant, (bench.fma_tflops, bench.tb_per_s["DRAM"]))
    return (f"{', '.join(known)}. FP32 ceiling {ceiling} TFLOP/s (a loop of FMAs), copy {copy} "
            f"TB/s, both measured in the same run.\n")


def timings(problem):
    """Of a BenchProblem: (name, Timing) of the stages, then of the competitors."""
    rivals = time_tables.ladder_of_competitors(problem)
    return [*problem.stages.items(),
            *((time_tables.competitor_title(rival), rival) for rival in rivals)]


def about(problem, bench):
    """Times, then what each source has counted."""
    parts = times(problem.bench, bench) if problem.bench else []
    for profile in problem.profiles:
        parts.append(f"### Counted by {counter_tables.source_of(profile)}\n")
        parts += [f"{what}\n\n{table}" for what, table in
                  counter_tables.tables(profile, rates=floors.machine_of(profile.machine))]
    return parts


def times(problem, bench):
    parts = ["### Time\n"]
    if problem.stages:
        parts.append(time_tables.times_table(problem, bench))
    if problem.error:
        parts.append(f"Not measured: {problem.error}\n")
    parts += [f"{stage}: {timing.status}: {timing.message}\n"
              for stage, timing in problem.stages.items()
              if timing.message and timing.message != problem.error]
    if problem.throttled:
        parts.append(f"The GPU lowered its clock: {', '.join(problem.throttled)}.\n")
    if problem.competitors:
        parts.append(time_tables.competitors_table(problem, bench))
    parts += [f"{name}: in {timing.host_late} of {timing.cold.count} runs the GPU may have waited "
              "for the host; that time is in these.\n"
              for name, timing in timings(problem) if timing.cold and timing.host_late]
    return parts


def stages_of(problem):
    timed = list(problem.bench.stages) if problem.bench else []
    return timed + [name for profile in problem.profiles for name in profile.stages]
