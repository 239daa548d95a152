"""The parts of the committed texts that are generated from the files in docs/results.

A block stands between `<!-- generated: NAME -->` and `<!-- end -->`; `<!-- generated: NAME | WORD | WORD -->`
gives it arguments.
"""
import collections
import functools
import glob
import os
import re

from common.show import (
    counted, counter_tables, files, floors, formats, ladder_picture, page, records, time_tables)
from common.show.files import ROOT
from common.show.formats import ratio, significant
from common.show.support import fail

FOLDER = "docs/results"
BLOCK = re.compile(r"(<!-- generated: (\S+)((?: \| [^|\n]+?)*) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
MINUTES = r"\*(\d+) minutes to read(?:, (\d+) for \[(\w+)\]\((\S+)\))?\.\*"  # below a lesson's title
PICTURE, PAGE = "docs/pictures/ladder.svg", f"{FOLDER}/index.html"
READINGS = "common/tests/data/ncu_stages.csv"  # readings.py stages
PROGRAMS = "common/tests/data/ncu_programs.csv"  # readings.py programs


class Results:
    """What is committed in docs/results, of one GPU or more. The lessons speak of the first; the second is
    for what the first has not, and the front page shows the one that has the most stages."""

    def __init__(self):
        self.profiles = self.paths("profile_*.json")
        self.cards = records.cards(self.benches("bench_*.json"), [
            profile for path in self.profiles for profile in records.read_profiles(path)])
        self.bench, self.problems = self.cards[0]

    def whole(self):
        """The Card that knows the most stages."""
        return max(self.cards, key=lambda card: len(card.stages()))

    def card_of(self, stage):
        """The first Card that knows it, if any does."""
        return next((card for card in self.cards if stage in card.stages()), self.cards[0])

    def paths(self, pattern):
        """The files of docs/results that fit the pattern, in the order of their names."""
        return sorted(glob.glob(os.path.join(glob.escape(os.path.join(ROOT, FOLDER)), pattern)))

    def benches(self, pattern):
        return [records.read_bench(path) for path in self.paths(pattern)]


def texts():
    """The files that may have generated parts."""
    return ["README.md", "docs/cuda.md", "docs/profiling.md", "docs/reliability.md",
            "docs/your-own-kernel.md",
            *(f"{FOLDER}/{name}.md" for name in ("README", "floors", "counting")),
            *(path for pattern in ("README.md", "details.md", "exercises/*/README.md")
              for path in sorted(glob.glob(f"[0-9][0-9]_*/{pattern}", root_dir=ROOT)))]


def renewed(data, name):
    """The text of that file as it is, and as it would be with its generated parts made anew."""
    old = files.read(os.path.join(ROOT, name))

    def fill(match):
        if match[2] not in MAKERS:
            raise records.BadInput(f"{name}: no block is called '{match[2]}'")
        words = [word.strip() for word in match[3].split(" | ")[1:]]
        parts = [part for part in MAKERS[match[2]](data, os.path.dirname(name), *words) if part]
        return match[1] + ("\n" + "\n".join(parts) + "\n" if parts else "") + match[5]

    if old.count("<!-- generated:") != len(BLOCK.findall(old)):
        raise records.BadInput(f"{name}: a generated block has no '<!-- end -->'")
    return old, BLOCK.sub(fill, old)


def all_renewed(data, trace=None, run=None):
    """[(path from the root, the text there, the text as it would be)] of the texts, the front page's picture
    and the page. Its trace and pictures are those that it has already, unless newer are given."""
    found = [(name, *renewed(data, name)) for name in texts()]
    card = data.whole()
    for problem in [each for each in card.problems[:1] if each.bench and each.profiles]:
        found.append((PICTURE, files.read_existing(os.path.join(ROOT, PICTURE)), ladder_picture.draw(
            problem, card.gpu, {stage: idea_of(stage) for stage in files.lessons()})))
    path = os.path.join(ROOT, PAGE)
    own = page.page_data(page.Inputs(data.paths("bench_*.json"), data.profiles, run, trace,
                                     kept=page.data_of(path) if os.path.exists(path) else None))
    if bad := [notice["text"] for notice in own["notices"]
               if notice["path"] or run and notice["about"] == "run"]:
        fail(bad[0])
    return [*found, (PAGE, files.read_existing(path), page.html(own))]


def stale(data):
    """The paths of those that do not agree with the data."""
    return [name for name, old, new in all_renewed(data) if old != new]


# --- the blocks: each maker yields the parts of its text --------------------------------------------

def full_report(data, _):
    """docs/results/README.md: the times of all problems, the traffic of the first; the page has the rest."""
    if data.bench:
        yield from (time_tables.machine(data.bench), time_tables.LAYERS, time_tables.layers_table(data.bench))
    for problem in data.problems[:1]:
        for profile in problem.profiles[:1]:
            yield f"{formats.title_of(problem)}, counted by {counter_tables.source_of(profile)}:\n"
            yield counter_tables.traffic_table(profile)


def idea_of(stage):
    """In a few words, as the stage has registered it."""
    return re.search(r'REGISTER_STAGE\(\s*\{"[^"]*",\s*"([^"]*)"', files.kernel(stage))[1]


def summary(data, _):
    """README.md: each stage's idea, its time on the running example and the least that its counts allow,
    both of all images, and what its lesson says that limits it."""
    bench, problems = data.whole()
    if not problems:
        return
    timed, rows = problems[0].bench, []
    cudnn = records.rival(timed, "cudnn", "fp32") if timed else None
    counts = next((profile.stages for profile in problems[0].profiles if profile.source == "ncu"), {})
    for stage in files.lessons():
        timing = timed.stages.get(stage) if timed else None
        cells = time_tables.time_cells(timing, timed and timed.flop, bench)
        floor = floors.of_stage(counts[stage]) if stage in counts else None
        exact = timing and timing.precision == "fp32"  # cuDNN's time, and the ceiling, are of FP32
        rows.append([f"[{stage[:2]}]({stage}/README.md)", idea_of(stage),
                     "not for this layer" if files.is_side_rung(stage) else
                     cells.cold or "not timed yet",
                     formats.milliseconds(floor[0]) if floor and floor[0] else "",
                     cells.ceiling if exact else "",
                     ratio(time_tables.time_ratio(cudnn, timing)) if exact else "",
                     files.limit_of(stage) if timing and timing.cold or files.is_side_rung(stage) else ""])
    yield formats.markdown(["stage", "idea", "time [ms]", "at least [ms]", "of FP32 ceiling",
                            "times as fast as cuDNN FP32", "what limits it"], rows)
    yield time_tables.machine(bench) if bench else ""


def ladder(data, stage):
    """A stage's README.md: the times of all stages in one line, this one's in bold."""
    bench = data.card_of(stage).bench
    if not bench:
        return
    problem, cells = bench.problems[0], []
    for name in files.lessons():
        if files.is_side_rung(name):
            continue
        timing = problem.stages.get(name)
        cell = f"{name[:2]} {significant(timing.cold.median) if timing and timing.cold else '–'}"
        cells.append(f"**{cell}**" if name == stage else cell)
    yield f"Milliseconds of `{problem.name}` on an {bench.machine['gpu']}: {' · '.join(cells)}\n"


def path(data, _, *steps):
    """README.md: these pages and stages, in this order, with what they say that they take; of a stage as
    `02, *The idea*, 2` that part alone, and its minutes."""
    rows = []
    for step in steps:
        if part := re.fullmatch(r"(\d\d), (.*), (\d+)", step):
            stage = next(name for name in files.lessons() if name[:2] == part[1])
            rows.append([f"[{part[1]}]({stage}/README.md): {part[2]}", idea_of(stage), part[3], "", ""])
            continue
        stage = next((name for name in files.lessons() if name[:2] == step), None)
        page_of = f"{stage}/README.md" if stage else step
        text = files.read(os.path.join(ROOT, page_of))
        found = re.search(MINUTES, text)
        minutes, to_write, exercise, link = found.groups("") if found else [""] * 4
        link = os.path.normpath(os.path.join(os.path.dirname(page_of), link))
        title = stage[:2] if stage else re.match("# (.*)", text)[1]
        rows.append([f"[{title}]({page_of})", idea_of(stage) if stage else "", minutes,
                     exercise and f"[{exercise}]({link})", to_write])
    read, written = (sum(int(row[i] or 0) for row in rows) for i in (2, 4))
    rows.append(["together", "", str(read), "", str(written)])
    yield formats.markdown(["page or stage", "idea", "minutes to read", "exercise", "minutes to write"], rows)
    yield f"That is {(read + written) / 60:.1f} hours.\n"


def layers(data, _, *shown):
    """README.md: what these stages come to over many layers; docs/results/README.md: all stages, and the
    layers on which a stage is slower than the one before."""
    bench = max(data.benches("layers_*.json"), default=None,
                key=lambda bench: len({name for problem in bench.problems for name in problem.stages}))
    if not bench:
        return
    yield (f"Over {len(bench.problems)} layers of published networks (`common/layers.csv`), with a cold "
           "cache: how many times as fast as the library a stage is (geometric mean), and on how many layers "
           f"it is faster. {bench.machine['gpu']}.\n")
    yield time_tables.standings_table(bench, shown)
    slower = [] if shown else list(time_tables.losses(bench))
    if slower:
        yield ("These layers became slower by more than 5 %, against the last stage before that is at least "
               "as exact:\n")
        yield "".join(slower)


def some_layers(data, stage, *names):
    """A stage's README.md: the times of this stage and the last before it that was timed with it, on these
    layers. What the GPU of the lessons was not timed on comes from another, under its name."""
    timed = [*data.benches("steps_*.json"), *data.benches("layers_*.json"), *data.benches("bench_*.json")]
    found = {}  # of (the stage before, the GPU): the rows
    for name in names:
        for card in data.cards:
            benches = [bench for bench in timed if bench.machine["gpu"] == card.gpu]
            for before in reversed([each for each in files.stage_names() if each < stage]):
                known = {problem.name: (problem, bench) for bench in benches
                         for problem in bench.problems if {before, stage} <= problem.stages.keys()}
                if known:
                    break
            if name in known:
                break
        else:
            raise records.BadInput(f"{stage}/README.md: both stages were timed on no layer '{name}'")
        problem, bench = known[name]
        old, new, factor = time_tables.step_cells(problem, bench, before, stage)
        found.setdefault((before, bench.machine["gpu"]), []).append(
            [name, problem.shape, old.cold, new.cold, factor, *beside_a_copy(problem, stage)])
    for (before, gpu), rows in found.items():
        if not data.bench or gpu != data.bench.machine["gpu"]:
            yield f"On an {gpu}, with a cold cache:\n"
        header = ["layer", "shape", f"{before} [ms]", f"{stage} [ms]", "÷ before", "of a copy's rate",
                  "× cuDNN FP32"]
        yield formats.markdown(header[:len(rows[0])], rows)


def beside_a_copy(problem, stage):
    """For a side rung, which memory limits: its share of a large copy's rate, and how it stands to cuDNN."""
    if files.is_side_rung(stage):
        timing = problem.stages[stage]
        yield ratio(timing.fraction_of_copy_rate)
        yield ratio(time_tables.time_ratio(records.rival(problem, "cudnn", "fp32"), timing))


def exercise_times(data, folder):
    """An exercise's README.md: what its kernel takes at the start, where that is right, and solved."""
    lines = []
    for record in (each for path in data.paths("exercises_*.json") for each in records.read_json(path)):
        of_this = record["exercise"] == os.path.basename(folder)
        for problem, after in record["after"].items() if of_this else ():
            text = f"{problem}: {after['milliseconds']:.4g} ms"
            if before := record["before"].get(problem):
                text = (f"{problem}: {before['milliseconds']:.4g} ms at the start, "
                        f"{after['milliseconds']:.4g} ms solved "
                        f"(÷ {before['milliseconds'] / after['milliseconds']:.3g})")
            lines.append(f"{after['device']}, {text}. Median of {after['runs']}, caches warm.\n")
    yield "".join(lines)


def table(data, _, name, but=()):
    """docs/reliability.md: runs that take long, known bugs of others."""
    for path in data.paths(name):
        rows = files.read_rows(path)
        columns = [column for column in rows[0] if column not in but]
        yield formats.markdown(columns, [[row[column] for column in columns] for row in rows])


def programs(data, _, briefly=""):
    """docs/reliability.md: how the programs of others ended, by the table that they stand in;
    docs/your-own-kernel.md, briefly: how many in all."""
    for path in data.paths("programs.csv"):
        counted = collections.Counter((row["set"], row["result"]) for row in files.read_rows(path))
        results = ["right", "found", "refused", "long", "wrong"]
        rows = [[name, *(str(counted[name, result]) for result in results)]
                for name in dict.fromkeys(name for name, _ in counted)]
        if briefly:
            right, found, refused, late, wrong = (sum(int(row[i]) for row in rows) for i in range(1, 6))
            yield (f"We ran {counted.total()} programs of public repositories without a change. {right} are "
                   f"right, {found} have findings,\n{refused} are refused with a line that says why, {late} "
                   f"take too long, and {wrong} are wrong.\n")
        else:
            yield formats.markdown(["", *results], rows)


def gpus(data, _):
    """docs/cuda.md: the GPUs that --machine knows."""
    rows = []
    for name in floors.names():
        gpu, rates = floors.read_machine(name)
        rows.append([f"`{name}`", gpu.removesuffix(floors.BY_DATA_SHEET), f"{rates['multiprocessors']:.0f}",
                     f"{rates['fmas_per_cycle'] / rates['wavefronts_per_cycle']:.0f}",
                     significant(rates["fma_tflops"]), significant(rates["dram_tb_per_s"]),
                     significant(rates["fma_tflops"] / rates["dram_tb_per_s"]),
                     f"{rates['l2_bytes'] / 2**20:.0f}"])
    yield formats.markdown(["`--machine`", "GPU", "multiprocessors", "FMAs per wavefront", "FP32 TFLOP/s",
                            "DRAM TB/s", "FLOP per byte", "L2 MiB"], rows)


def held_floors(data, _):
    """docs/results/floors.md: least times, by count_floors.py, against measured ones."""
    for path in data.paths("floors.csv"):
        yield floors.report(data.benches("layers_h200.json"), floors.read_floors(path))


def held_counts(data, _):
    """docs/results/counting.md: the simulator's counts, by readings.py, against Nsight Compute's."""
    for path in data.paths("counts.csv"):
        yield counted.report(*map(counted.read_table, (path, os.path.join(ROOT, READINGS))))


def held_programs(data, _):
    """docs/results/counting.md: the same of programs of others."""
    for path in data.paths("program_counts.csv"):
        yield counted.program_report(*map(counted.read_table, (path, os.path.join(ROOT, PROGRAMS))))


def only(problems, words):
    """Those that a block's first word names ("on vgg16_conv3_2_b32"), and its other words."""
    if not words or not words[0].startswith("on "):
        return problems, words
    return [problem for problem in problems if problem.name == words[0].removeprefix("on ")], words[1:]


def measured(data, stage, *rows):
    """A stage's README.md: this stage and the one before, on the problem that is named, or the first that has
    any of this stage: its time, and those counters that its page names. The one before is of problems that
    have     both: other results may be of a ladder with other stages. Times and counters of different batches
    stand apart."""
    card = data.card_of(stage)
    bench, timed_problems = card.bench, only(card.bench.problems if card.bench else [], rows)[0]
    problems, rows = only(card.problems, rows)
    stages = sorted({name for problem in problems if stage in problem.stages()
                     for name in records.without_forms(problem.stages())})
    if stage not in stages:
        return
    before = stages[stages.index(stage) - 1] if stage != stages[0] else None
    shown = []  # what is measured, in which words, and its rows
    for timed in [problem for problem in timed_problems if stage in problem.stages][:1]:
        old, new, factor = time_tables.step_cells(timed, bench, before, stage)
        shown.append((timed, f"on an {card.gpu}", [
            ["time [ms]", old.cold, new.cold, factor],
            [time_tables.HEADINGS.ceiling, old.ceiling, new.ceiling, ""]]))
    profile = next((profile for problem in problems for source in ("ncu", "simulator")
                    for profile in problem.profiles
                    if profile.source == source and stage in profile.stages), None)
    if profile:
        known = counter_tables.step_rows(profile, before, stage)
        for name in rows:
            if name not in [column.heading for column in counter_tables.COLUMNS]:
                raise records.BadInput(f"{stage}/README.md: '{name}' is none of {', '.join(known)}")
        kept = [known[name] for name in rows if name in known]
        of = shown[0][0] if shown else None
        if of and (of.name, of.shape, of.bias) == (profile.name, profile.shape, profile.bias):
            shown[0][2].extend(kept)
        else:
            shown.append((profile, f"counted by {counter_tables.source_of(profile)}", kept))
    for of, how, cells in shown:
        if cells:
            yield f"{formats.title_of(of)}, {how}:\n"
            yield formats.markdown(["", before or "", stage, "÷ before"], cells)


def profiled(data, _, *stages):
    """docs/profiling.md: the last tables that ./ladder profile prints of these stages in the simulator."""
    for profile in [each for problem in data.problems for each in problem.profiles
                    if each.source == "simulator"][:1]:
        some = profile._replace(stages={name: profile.stages[name] for name in stages})
        for about, shown in counter_tables.tables(some, rates=floors.read_machine("h200")[1])[-2:]:
            yield from (f"{about}\n", shown)


def waits(data, stage, *words):
    """A stage's README.md: what a warp waits for in this stage and in the one before."""
    names = files.stage_names()
    shown = names[:names.index(stage) + 1][-2:]
    problems, _ = only(data.card_of(stage).problems, words)
    profiles = [each for problem in problems for each in problem.profiles if shown[-1] in each.stages]
    for profile in profiles[:1]:
        yield counter_tables.waits_table(profile, shown)


def experiments(data, stage, *names):
    """A stage's pages: these of its experiments on the GPU that the page is about, or all. Time, and
    wavefronts of L1's data pipe, beside those of the stage as it is."""
    gpu = data.card_of(stage).gpu
    known = {record["name"]: record for path in data.paths("experiments_*.json")
             for record in records.read_json(path)["experiments"]
             if record["after"] and record["after"]["machine"] == gpu}
    rows, stands = [], None
    own = [(each["problem"], each["before"]["cold_ms"], name) for name, each in known.items()
           if name.startswith(stage[:3])]
    for name in names or [name for *_, name in sorted(own)]:
        if name not in known:
            raise records.BadInput(f"{stage}: no experiment '{name}' has been made on an {gpu}")
        record = known[name]
        before, after = ((f"{each['cold_ms']:.3f}", f"{each['wavefronts'] / 1e6:.0f}" if "wavefronts" in each
                          else "") for each in (record["before"], record["after"]))
        if stands != (stands := (record["problem"], before)):
            rows.append([f"as it is, on `{record['problem']}`", before[0], "", before[1]])
        wrong = " (the results are wrong)" if record["failure"] else ""
        rows.append([f"`{name}`: {record['about']}{wrong}", after[0],
                     ratio(record["after"]["cold_ms"] / record["before"]["cold_ms"]), after[1]])
    yield formats.markdown([f"on an {gpu}", "time [ms]", "÷ as it is", "wavefronts [M]"], rows)


MAKERS = {"summary": summary, "path": path, "report": full_report, "floors": held_floors,
          "campaigns": functools.partial(table, name="campaigns.csv"),
          "known_bugs": functools.partial(table, name="known_bugs.csv", but=["set", "file", "detail"]),
          "programs": programs, "counting": held_counts, "counted_programs": held_programs,
          "layers": layers, "measured": measured, "some_layers": some_layers,
          "ladder": ladder, "waits": waits, "profiled": profiled, "gpus": gpus, "time": exercise_times,
          "experiments": experiments}
