"""The parts of the committed texts that are generated from the files in docs/results.

A block stands between `<!-- generated: NAME -->` and `<!-- end -->`; `<!-- generated: NAME | WORD | WORD -->`
gives it arguments.
"""
import glob
import os
import re

from common.show import (
    counted, counter_tables, files, floors, formats, ladder_picture, page, records, time_tables)
from common.show.formats import ratio, significant

FOLDER = "docs/results"
BLOCK = re.compile(r"(<!-- generated: (\S+)((?: \| [^|\n]+?)*) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
FLOORS = "floors.csv"  # of docs/results: count_floors.py
PICTURE = "docs/pictures/ladder.svg"
COUNTED = "profile_sim.json"  # of docs/results: what the picture shows
COUNTS = "counts.csv"  # of docs/results: readings.py counts
READINGS = "common/tests/data/ncu_stages.csv"  # readings.py stages
CAMPAIGNS = "campaigns.csv"  # of docs/results: runs that take long, and how each ended


class Results:
    """What is committed in docs/results of the checkout at `root`."""

    def __init__(self, root):
        self.root, self.folder = root, os.path.join(root, FOLDER)
        benches = self.benches("bench_*.json")
        if len(benches) > 1:
            raise records.BadInput(f"{benches[1].path}: one bench_*.json is shown, and there are "
                                   f"{len(benches)}")
        self.bench = benches[0] if benches else None
        self.layers = self.benches("floors_*.json")  # times for floors.md alone
        self.profiles = self.paths("profile_*.json")
        self.problems = records.join(self.bench, [
            profile for path in self.profiles for profile in records.read_profiles(path)])

    def paths(self, pattern):
        """Of docs/results, in the order of their names."""
        return sorted(glob.glob(os.path.join(self.folder, pattern)))

    def benches(self, pattern):
        return [records.read_bench(path) for path in self.paths(pattern)]

    def page(self, trace=None, run=None):
        """index.html, for those who only look: the text of the file. The trace and the pictures are
        those that the page has already, unless newer are given."""
        old = self.page_path()
        return page.html(page.page_data(page.Inputs(
            self.bench.path if self.bench else None, self.profiles, run, trace,
            kept=page.data_of(old) if os.path.exists(old) else None)))

    def page_path(self):
        return os.path.join(self.folder, "index.html")

    def picture_path(self):
        return os.path.join(self.root, PICTURE)

    def picture(self):
        """The text of the front page's picture; nothing where nothing was counted."""
        if not os.path.exists(os.path.join(self.folder, COUNTED)):
            return ""
        return ladder_picture.draw(os.path.join(self.folder, COUNTED), {
            stage: idea_of(self.root, stage) for stage in files.rungs(self.root)})


def texts(root):
    """The files that may have generated parts."""
    names = ["README.md", "docs/reliability.md"]
    names += [f"{FOLDER}/{name}.md" for name in ("README", "floors", "counting")]
    names += [os.path.relpath(path, root)
              for pattern in ("README.md", "exercises/*/README.md")
              for path in sorted(glob.glob(os.path.join(root, "[0-9][0-9]_*", pattern)))]
    return [name for name in names if os.path.exists(os.path.join(root, name))]


def renewed(data, name):
    """The text of that file as it is, and as it would be with its generated parts made anew."""
    old = files.read(os.path.join(data.root, name))
    stage = os.path.dirname(name)
    makers = {"summary": summary, "report": full_report, "campaigns": campaigns,
              "floors": held_floors, "counting": held_counts, "layers": layers,
              "measured": lambda data, *rows: measured(data, stage, rows),
              "some_layers": lambda data, *names: some_layers(data, stage, names),
              "tf32": lambda data: tf32(data, stage),
              "time": lambda data: exercise_times(data, os.path.basename(stage)),
              "ladder": lambda data: ladder(data, stage)}

    def fill(match):
        if match[2] not in makers:
            raise records.BadInput(f"{name}: no block is called '{match[2]}'")
        words = [word.strip() for word in match[3].split(" | ")[1:]]
        return match[1] + makers[match[2]](data, *words) + match[5]

    if old.count("<!-- generated:") != len(BLOCK.findall(old)):
        raise records.BadInput(f"{name}: a generated block has no '<!-- end -->'")
    return old, BLOCK.sub(fill, old)


def stale(data):
    """One line for each text or picture that does not agree with the data."""
    complaints = []
    for name in texts(data.root):
        old, new = renewed(data, name)
        if old != new:
            complaints.append(f"{name}: a generated block disagrees with {FOLDER}")
    if files.read_existing(data.picture_path()) != data.picture():
        complaints.append(f"{PICTURE}: missing, or drawn from other data")
    if files.read_existing(data.page_path()) != data.page():
        complaints.append(f"{FOLDER}/index.html: missing, or made from other data")
    return complaints


# --- the blocks ----------------------------------------------------------------------------------

def full_report(data):
    """docs/results/README.md: the times of all problems, the traffic of the first; the page has the rest."""
    if not data.problems:
        return ""
    parts = []
    if data.bench:
        parts = [time_tables.machine(data.bench), time_tables.LAYERS, time_tables.layers_table(data.bench)]
    first = data.problems[0]
    for profile in first.profiles[:1]:
        parts += [f"{formats.title_of(first)}, counted by {counter_tables.source_of(profile)}:\n",
                  counter_tables.traffic_table(profile)]
    return "\n" + "\n".join(parts) + "\n"


def kernel_of(root, stage):
    """The text of the stage's .cu file."""
    path, = files.kernel_files(root, stage)
    return files.read(path)


def idea_of(root, stage):
    """In a few words, as the stage has registered it."""
    return re.search(r'REGISTER_STAGE\(\s*\{"[^"]*",\s*"([^"]*)"', kernel_of(root, stage))[1]


def limit_of(root, stage):
    """What the stage's page names in bold, first thing under its heading on what limits it."""
    page_text = files.read_existing(os.path.join(root, stage, "README.md"))
    found = re.search(r"^## What limits now\n\n\*\*([^*]+?)[.:]?\*\*", page_text, re.MULTILINE)
    return found[1] if found else ""


def summary(data):
    """README.md: each stage's idea, its time on the running example, and what limits it."""
    if not data.problems:
        return ""
    problem = data.problems[0]
    timings = problem.bench.stages if problem.bench else {}
    cudnn = records.rival(problem.bench, "cudnn", "fp32") if problem.bench else None
    rows = []
    for stage in files.rungs(data.root):
        timing = timings.get(stage)
        cells = time_tables.time_cells(timing, problem.bench and problem.bench.flop, data.bench)
        rows.append([f"[{stage[:2]}]({stage}/README.md)", idea_of(data.root, stage),
                     cells.cold or "not timed yet", cells.ceiling,
                     ratio(time_tables.time_ratio(cudnn, timing)), limit_of(data.root, stage)])
    parts = [formats.markdown(["stage", "idea", "time [ms]", "of FP32 ceiling",
                               "times as fast as cuDNN FP32", "what limits it"], rows)]
    if data.bench:
        parts.append(time_tables.machine(data.bench))
    return "\n" + "\n".join(parts) + "\n"


def ladder(data, stage):
    """A stage's README.md: the times of all stages in one line, this one's in bold."""
    if not data.bench:
        return ""
    problem = data.bench.problems[0]
    times = {name: timing.cold for name, timing in problem.stages.items()}
    cells = []
    for name in files.rungs(data.root):
        cell = f"{name[:2]} {significant(times[name].median) if times.get(name) else '–'}"
        cells.append(f"**{cell}**" if name == stage else cell)
    return f"\nMilliseconds of `{problem.name}` on an {data.bench.machine['gpu']}: {' · '.join(cells)}\n\n"


def stage_before(root, stage):
    """None for the first."""
    return dict(zip(files.stage_names(root)[1:], files.stage_names(root))).get(stage)


def layers(data):
    """README.md: what the stages come to over many layers."""
    return "".join(
        f"\nOver {len(bench.problems)} layers of published networks "
        "([common/layers.csv](common/layers.csv)), cold: the geometric mean of how many times as "
        "fast as the library a stage is, and on how many layers it is faster. "
        f"{bench.machine['gpu']}.\n\n{time_tables.standings_table(bench)}\n"
        for bench in data.benches("layers_*.json"))


def some_layers(data, stage, names):
    """A stage's README.md: the times of this stage and the one before on those of many layers."""
    before = stage_before(data.root, stage)
    known = {problem.name: (problem, bench) for bench in data.benches("layers_*.json")
             for problem in bench.problems if {before, stage} <= problem.stages.keys()}
    if not known:
        return ""
    rows = []
    for name in names:
        if name not in known:
            raise records.BadInput(f"{stage}/README.md: both stages were timed on no layer '{name}'")
        old, new, factor = time_tables.step_cells(*known[name], before, stage)
        rows.append([name, known[name][0].shape, old.cold, new.cold, factor])
    header = ["layer", "shape", f"{before} [ms]", f"{stage} [ms]", "÷ before"]
    return "\n" + formats.markdown(header, rows) + "\n"


def tf32(data, stage):
    """A stage's README.md: its times in TF32 beside those in FP32 and the library's in TF32, where the
    same problem has them."""
    fp32_problems = data.bench.problems if data.bench else []
    in_fp32 = {(problem.name, problem.shape): problem for problem in fp32_problems}
    rows = []
    for bench in data.benches("tf32_*.json"):
        for problem in bench.problems:
            known = in_fp32.get((problem.name, problem.shape))
            fp32 = known.stages.get(stage) if known else None
            cudnn = records.rival(known, "cudnn", "tf32") if known else None
            here = problem.stages.get(stage + " (TF32)")
            cells = [time_tables.time_cells(timing, problem.flop, bench, "tf32")
                     for timing in (fp32, here, cudnn)]
            rows.append([problem.name, cells[0].cold, cells[1].cold, cells[1].tflops, cells[2].cold,
                         ratio(time_tables.time_ratio(cudnn, here))])
    return "\n" + formats.markdown(["problem", "FP32 [ms]", "TF32 [ms]", "TF32: TFLOP/s",
                                    "cuDNN TF32 [ms]", "× cuDNN TF32"], rows) + "\n" if rows else ""


def exercise_times(data, exercise):
    """An exercise's README.md: what its kernel takes at the start, where that is right, and solved."""
    lines = []
    for record in (each for path in data.paths("exercises_*.json") for each in records.read_json(path)):
        for problem, after in record["after"].items() if record["exercise"] == exercise else ():
            text = f"{problem}: {after['milliseconds']:.4g} ms"
            if before := record["before"].get(problem):
                text = (f"{problem}: {before['milliseconds']:.4g} ms at the start, "
                        f"{after['milliseconds']:.4g} ms solved "
                        f"(÷ {before['milliseconds'] / after['milliseconds']:.3g})")
            lines.append(f"{after['device']}, {text}. Median of {after['runs']}, caches warm.\n")
    return "\n" + "".join(lines) + "\n" if lines else ""


def campaigns(data):
    """docs/reliability.md: a row for each run that takes long."""
    path = os.path.join(data.folder, CAMPAIGNS)
    rows = files.read_rows(path) if os.path.exists(path) else []
    if not rows:
        return ""
    return "\n" + formats.markdown(list(rows[0]), [[*row.values()] for row in rows]) + "\n"


def held_floors(data):
    """docs/results/floors.md: least times against measured ones."""
    path = os.path.join(data.folder, FLOORS)
    if not os.path.exists(path):
        return ""
    benches = [data.bench] * bool(data.bench) + data.layers
    held = floors.report(benches, floors.read_floors(path))
    return "\n" + held + "\n" if held else ""


def held_counts(data):
    """docs/results/counting.md: the simulator's counts against Nsight Compute's."""
    paths = [os.path.join(data.folder, COUNTS), os.path.join(data.root, READINGS)]
    if not all(map(os.path.exists, paths)):
        return ""
    return "\n" + counted.report(*map(counted.read_table, paths)) + "\n"


def measured(data, stage, rows):
    """A stage's README.md: this stage and the one before, on the first problem that has any of this
    stage: its time, and those counters that its page names. The one before is of problems that have
    both: other results may be of a ladder with other stages. Times and counters of different batches
    stand apart."""
    stages = sorted({name for problem in data.problems if stage in page.stages_of(problem)
                     for name in page.stages_of(problem)})
    if stage not in stages:
        return ""
    before = stages[stages.index(stage) - 1] if stage != stages[0] else None
    shown = []  # what is measured, in which words, and its rows
    if data.bench and any(stage in problem.stages for problem in data.bench.problems):
        first = next(problem for problem in data.bench.problems if stage in problem.stages)
        old, new, factor = time_tables.step_cells(first, data.bench, before, stage)
        shown.append((first, f"on an {data.bench.machine['gpu']}", [
            ["time [ms]", old.cold, new.cold, factor],
            [time_tables.HEADINGS.ceiling, old.ceiling, new.ceiling, ""]]))
    profile = next((profile for problem in data.problems for source in ("ncu", "simulator")
                    for profile in problem.profiles
                    if profile.source == source and stage in profile.stages), None)
    if profile:
        counted = counter_tables.step_rows(profile, before, stage)
        for name in rows:
            if name not in counted:
                raise records.BadInput(f"{stage}/README.md: '{name}' is none of {', '.join(counted)}")
        kept = [counted[name] for name in rows]
        of = shown[0][0] if shown else None
        if of and (of.name, of.shape, of.bias) == (profile.name, profile.shape, profile.bias):
            shown[0][2].extend(kept)
        else:
            shown.append((profile, f"counted by {counter_tables.source_of(profile)}", kept))
    parts = []
    for of, how, cells in shown:
        if cells:
            parts += [f"{formats.title_of(of)}, {how}:\n",
                      formats.markdown(["", before or "", stage, "÷ before"], cells)]
    return "\n" + "\n".join(parts).lstrip() + "\n"
