"""The parts of the committed texts that are generated from the files in docs/results.

A block stands between `<!-- generated: NAME -->` and `<!-- end -->`; figures in the sentences
between blocks are those of sentences.py.
"""
import glob
import hashlib
import os
import re

import counter_tables
import every_problem
import formats
import reliability
import results
import sentences
import text
import time_tables
from plan import planned_plots

FOLDER = "docs/results"
BLOCK = re.compile(r"(<!-- generated: (\S+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
README_PLOTS = ("time", "traffic")  # the first of each kind


class Results:
    """What is committed in docs/results of the checkout at `root`."""

    def __init__(self, root):
        self.root, self.folder = root, os.path.join(root, FOLDER)
        self.paths = sorted(glob.glob(os.path.join(self.folder, "bench_*.json")))
        if len(self.paths) > 1:
            raise results.BadInput(f"{self.paths[1]}: one bench_*.json is shown, and there are "
                                   f"{len(self.paths)}")
        self.bench = results.read_bench(self.paths[0]) if self.paths else None
        profiles = sorted(glob.glob(os.path.join(self.folder, "profile_*.json")))
        self.paths += profiles
        self.problems = results.join(
            self.bench, [profile for path in profiles for profile in results.read_profiles(path)])
        self.plots = planned_plots(self.bench, self.problems)

    def digest(self):
        """Of all the data: each plot bears it, so that one of older data is found out."""
        digest = hashlib.sha256()
        for path in self.paths:
            with open(path, "rb") as file:
                digest.update(file.read())
        return "data " + digest.hexdigest()

    def plot_path(self, plot):
        return os.path.join(self.folder, plot.file + ".svg")


def texts(root):
    """The files that may have generated parts."""
    names = ["README.md", FOLDER + "/README.md", "docs/reliability.md"]
    names += [os.path.relpath(path, root)
              for path in sorted(glob.glob(os.path.join(root, "[0-9][0-9]_*", "README.md")))]
    names += [name for name in sentences.PAGES if name not in names]
    return [name for name in names if os.path.exists(os.path.join(root, name))]


def renewed(data, name):
    """The text of that file as it is, and as it would be with its generated parts made anew."""
    with open(os.path.join(data.root, name), encoding="utf-8") as file:
        old = file.read()
    makers = {"summary": summary, "report": full_report,
              "every_problem": lambda data: every_problem.block(data.folder),
              "measured": lambda data: measured(data, os.path.dirname(name))}
    for block, maker in reliability.BLOCKS.items():
        makers[block] = lambda data, maker=maker: maker(data.folder)

    def fill(match):
        if match[2] not in makers:
            raise results.BadInput(f"{name}: no block is called '{match[2]}'")
        return match[1] + makers[match[2]](data) + match[4]

    if old.count("<!-- generated:") != len(BLOCK.findall(old)):
        raise results.BadInput(f"{name}: a generated block has no '<!-- end -->'")
    return old, sentences.renewed(BLOCK.sub(fill, old), name, data)


def stale(data):
    """One line for each text or plot that does not agree with the data."""
    complaints = []
    for name in texts(data.root):
        old, new = renewed(data, name)
        if reliability.without_here(old) != reliability.without_here(new):
            complaints.append(f"{name}: a generated block or figure disagrees with {FOLDER}")
    for plot in data.plots:
        if not is_current(data.plot_path(plot), data.digest()):
            complaints.append(f"{FOLDER}/{plot.file}.svg: missing, or drawn from other data")
    return complaints


def is_current(path, digest):
    if not os.path.exists(path):
        return False
    with open(path, encoding="utf-8") as file:
        return digest in file.read()


# --- the blocks ----------------------------------------------------------------------------------

def full_report(data):
    """docs/results/README.md: everything."""
    if not data.problems:
        return ""
    return "\n" + text.report(data.bench, data.problems, [], data.plots) + "\n"


def summary(data):
    """README.md: the running example's times and traffic, and two plots."""
    if not data.problems:
        return ""
    problem = data.problems[0]
    parts = [f"{formats.title_of(problem)}.\n"]
    if problem.bench:
        parts += [text.machine(data.bench),
                  time_tables.times_table(problem.bench, data.bench, brief=True)]
    profile = best_profile(problem)
    if profile:
        parts += [f"Bytes, counted by {counter_tables.source_of(profile)}:\n",
                  counter_tables.traffic_table(profile)]
    for kind in README_PLOTS:
        plot = next((plot for plot in data.plots if plot.kind == kind), None)
        if plot:
            parts.append(text.image(plot._replace(file=f"{FOLDER}/{plot.file}")))
    return "\n" + "\n".join(parts) + "\n"


def best_profile(problem):
    """Nsight Compute's counters before the simulator's; None without either."""
    order = {"ncu": 0, "simulator": 1}
    known = [profile for profile in problem.profiles if profile.source in order]
    return min(known, key=lambda profile: order[profile.source], default=None)


def measured(data, stage):
    """A stage's README.md: this stage and the one before, on every problem; and the counters of
    the first problem that has any."""
    stages = sorted({name for problem in data.problems for name in text.stages_of(problem)})
    if stage not in stages:
        return ""
    before = stages[stages.index(stage) - 1] if stage != stages[0] else None
    words = f"../{FOLDER}/README.md#how-to-read-this"
    parts = [f"What the words of these tables mean: [how to read this]({words}).\n"]
    if data.bench:
        parts += [text.machine(data.bench), text.COLD_MEDIANS,
                  time_tables.step_times_table(data.bench, before, stage)]
    profile = next(filter(None, (best_profile(problem) for problem in data.problems)), None)
    if profile:
        parts += [f"{formats.title_of(profile)}, counted by {counter_tables.source_of(profile)}:\n",
                  counter_tables.step_table(profile, before, stage)]
    parts.append(f"More: [results](../{FOLDER}/README.md).\n")
    return "\n" + "\n".join(parts) + "\n"
