"""The report as Markdown."""
from common.show import counter_tables, floors, formats, time_tables
from common.show.counters import LEVELS

LAYERS = "Median times with a cold L2 [ms], and the share of the FP32 ceiling:\n"
HOW_TO_READ = (
    "Stages stand in the ladder's order. *÷ before* is against the row above; *÷ least* against "
    "the bytes that the problem must move: the input under any tap, filters, bias and output, once "
    "each. *× cuDNN* and *× PyTorch*: how many times faster than the library the stage is. FP32 "
    "and TF32 (10 bits of mantissa instead of 23) stand in different columns. Time: medians of "
    "runs after the L2 was flushed (cold), and right after such a run (warm). A flush writes twice the "
    "L2, so that a cold run pays for writing that back, too. The GPU begins a run when the host has "
    "enqueued all of it; where it may not have, a line says so.\n"
    "\n"
    "A library in FP32 can lie below the floor in FP32, and above 100 % of the FP32 "
    "ceiling: its algorithm (FFT, Winograd; the name is in its table) then needs fewer "
    "multiplications than the direct convolution's, which the floor and the TFLOP/s count.\n"
    "\n"
    "Figures with a `*` leave out a library's kernels, which that source doesn't count; nothing is "
    "compared with them. Where a stage is compared by registers, occupancy, hit "
    "rates, shares of busy cycles or stalls, they are its longest kernel's; all others are sums over its "
    "kernels.\n"
    "\n" + "".join(f"- *{level.name}*: {level.meaning}.\n" for level in LEVELS) +
    "- *requests*: instructions of warps that go to global memory, asynchronous copies among "
    "them; *sectors / load* and *sectors / store*: how many 32-byte sectors such an instruction "
    "touches.\n"
    "- *shared wavefronts*: passes through the banks of shared memory, for loads, stores and "
    "copies; *bank conflicts*: those that conflicts of loads and stores cost (copies left out).\n"
    "- *FP32 ceiling*: what a loop of nothing but FMAs reaches, instructions that multiply and "
    "add (a thread's FMA in FP32 is an *FFMA*).\n"
    "- *The other columns*: `common/show/metrics.csv` says what each means. *Stalled* are cycles of the "
    "*cycles / instruction*.\n"
    "- *at least*: what a stage can't be faster than, by its counts and the rates of the GPU "
    "(docs/results/floors.md says how); *share of it*: of the time under the profiler.\n")


def report(bench, problems, runs):
    """Everything, as Markdown."""
    parts = [machine(bench)] if bench else []
    if bench and len(bench.problems) > 1:
        parts += [LAYERS, time_tables.layers_table(bench)]
    for problem in problems:
        parts += [f"## {formats.title_of(problem)}\n", *about(problem, bench)]
    if runs:
        parts += ["## Checked by run and check\n", time_tables.runs_table(runs)]
    return "\n".join(parts + ["## How to read this\n", HOW_TO_READ])


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
