"""Variants: a kernel, an edit, and what must then be seen. One text format for four kinds:

    experiment 03_small_tiles: what it changes, for a learner to predict
    bug filter_flipped: what is wrong, for the checks to see
    start tile: how an exercise's kernel begins, made from another exercise's solution
    mistake no_first_barrier: what the exercises' judge must say of it

Below that line, in any order:

    expect data race or never written    what must be reported; without it, wrong results
    test NAME                            a bug's: the one test of the stage's suite that must fail
    of NAME                              a start's: the exercise whose solution is changed
    on PROBLEM, batch N                  an experiment's: what is counted, if not one image of AlexNet's layer
    wrong since ...                      an experiment's: what it leaves out; it is timed all the same
    in common/core/indexing.h            the file that the edits below change, if not the kernel
    - what stands there
    + what stands there instead

Lines with - and the lines with + behind them are one edit, and a variant may have several. What stands
there must be found exactly once, whatever its line breaks and indentation. `+` alone: nothing instead.
Lines that begin with # are comments.

common/variants/STAGE.variant has a stage's experiments and bugs (hostile/STAGE.variant those whose results
may be right all the same), EXERCISE/exercise.variant an exercise's mistakes, which change its solution, and
its start. A stage made from one before it has most of that one's bugs:

    like 05_fused_bias                   all of its bugs,
    without tile_wrapped                 but not these;
    like 03_shared_tiling: pad_h_ignored  and these of another

A bug that is described anew under the same name is not taken over.
"""
import dataclasses
import glob
import os
import re

from common.show import files
from common.show.files import ROOT

FOLDER = os.path.dirname(os.path.abspath(__file__))
KINDS = ("experiment", "bug", "start", "mistake")


class BadVariant(Exception):
    """A file that can't be read, or an edit that doesn't fit the source any more."""


@dataclasses.dataclass
class Edit:
    """One replacement; `file` is None in the kernel itself."""
    file: str = None
    old: list = dataclasses.field(default_factory=list)  # lines
    new: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Variant:
    place: str  # FILE:LINE
    kind: str
    stage: str  # or the exercise
    name: str
    about: str
    expect: str = ""
    test: str = ""
    wrong: str = ""
    of: str = ""
    on: str = "alexnet_conv1"
    batch: str = "1"
    edits: list = dataclasses.field(default_factory=list)

    @property
    def title(self):
        """Unique: an experiment's name alone, since it begins with its stage's number."""
        return self.name if self.kind == "experiment" else f"{self.stage}.{self.name}"

    def take(self, word, rest):
        """Takes a line that describes it; False for one that does not."""
        last = self.edits[-1] if self.edits else Edit()
        if word in ("expect", "test", "of", "on", "batch", "wrong"):
            setattr(self, word, rest)
        elif word == "in":
            self.edits.append(Edit(rest))
        elif word == "-":
            if last.new or not self.edits:
                self.edits.append(Edit(last.file))
            self.edits[-1].old.append(rest)
        elif word == "+" and last.old:
            last.new.append(rest)
        else:
            return False
        return True

    def apply(self, text, file=None):
        """`text` with the edits of that file made; of the kernel without one."""
        for edit in self.edits:
            if edit.file == file:
                text = self._replaced(text, edit)
        return text

    def _replaced(self, text, edit):
        words = " ".join(edit.old).split()
        pattern = re.compile(r"\s+".join(map(re.escape, words)))
        found = list(pattern.finditer(text))
        if len(found) != 1:
            raise BadVariant(f"{self.place}: {self.name}: '{' '.join(words)}' stands {len(found)} times in "
                             f"{edit.file or 'the kernel'}, not once: has it changed? The edit must follow")
        begin, end = found[0].span()
        line = text[text.rfind("\n", 0, begin) + 1:begin]
        indent = "\n" + line[:len(line) - len(line.lstrip())]
        return text[:begin] + indent.join(edit.new).replace(indent + "\n", "\n\n") + text[end:]

    def write(self, folder):
        """Writes the changed kernel and the other changed files below `folder`, at their paths. Returns
        the kernel's path, and those of the others."""
        own = os.path.relpath(files.kernel_file(self.stage), ROOT)
        paths = []
        for file in [None] + sorted({edit.file for edit in self.edits if edit.file}):
            path = os.path.join(folder, file or own)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as copy:
                copy.write(self.apply(files.read(os.path.join(ROOT, file or own)), file))
            paths.append(path)
        return paths[0], paths[1:]


def read(path, owner=None):
    """The variants of one file, those taken over last. `owner`: the stage or exercise, if the file isn't
    called after it."""
    folder, file = os.path.split(path)
    stage, own, taken = owner or os.path.splitext(file)[0], {}, {}
    for number, line in enumerate(files.read(path).splitlines(), 1):
        place = f"{os.path.relpath(path, ROOT)}:{number}"
        word, _, rest = line.rstrip().partition(" ")
        name, colon, tail = rest.partition(": ")
        if word in ("", "#"):
            continue
        if word in KINDS and colon and re.fullmatch(r"\w+", name):
            if name in own:
                raise BadVariant(f"{place}: {name} is there twice")
            variant = own[name] = Variant(place, word, stage, name, tail)
            variant.expect = tail if word == "mistake" else ""
        elif word == "like":
            try:
                others = read(os.path.join(folder, name + ".variant"))
            except RecursionError:
                raise BadVariant(f"{place}: like {name}, which is like this one") from None
            there = {bug.name: dataclasses.replace(bug, stage=stage) for bug in others if bug.kind == "bug"}
            taken |= _chosen(there, tail.split() or there, place)
        elif word == "without":
            out = _chosen(taken, rest.split(), place)
            taken = {name: bug for name, bug in taken.items() if name not in out}
        elif not own or not variant.take(word, rest):
            raise BadVariant(f"{place}: '{word}' is no word of a variant; variants.py lists them")
    for variant in own.values():
        if not (variant.edits or variant.of) or not all(edit.old and edit.new for edit in variant.edits):
            raise BadVariant(f"{variant.place}: {variant.name}: an edit needs lines with - and with +")
    return list(own.values()) + [bug for name, bug in taken.items() if name not in own]


def _chosen(variants, names, place):
    for name in names:
        if name not in variants:
            raise BadVariant(f"{place}: there is no bug '{name}' to be taken over or left out")
    return {name: variants[name] for name in names}


def of_stages():
    """All experiments and bugs, by stage."""
    return [variant for folder in ("", "hostile")
            for path in sorted(glob.glob(os.path.join(glob.escape(FOLDER), folder, "*.variant")))
            for variant in read(path)]
