"""Bugs to be planted in the stages: the .bugs files of this folder, and planting one.

A file is called after its stage. Its bugs look like this:

    bug filter_flipped: what is wrong, in a few words
    detector data race
    in common/core/add_bias.cu
    - what stands there
    + what stands there instead

`detector` names what the counting simulator must report ("data race", or "data race or never
written": which of the two is found first depends on the order of the threads); `test` the one test
that must fail; without either, at least three problems of stage_test.cpp must. `in` names the file
to be changed, by default the stage's own. Lines with - and lines with + behind them are one
replacement, and a bug may have several; what stands there must be found exactly once, whatever its
line breaks and indentation. Lines that begin with # are comments.

A stage made from one before it has most of that one's bugs, too. Its file begins with

    like 05_fused_bias
    without tile_wrapped tile_transposed
    like 03_shared_tiling: pad_h_ignored

which takes over all bugs of stage 05 but those that `without` names, and one of stage 03. What is
described anew under the same name is not taken over.
"""
import dataclasses
import glob
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
SOUND = "sound"  # the name of the bug that is none
FOLDER = os.path.dirname(os.path.abspath(__file__))


class BadBug(Exception):
    """A .bugs file that can't be read, or doesn't fit the source any more."""


@dataclasses.dataclass
class Edit:
    """One replacement in one file; None is the stage's own."""
    file: str = None
    old: list = dataclasses.field(default_factory=list)  # lines
    new: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Bug:
    """One bug as its file describes it; without edits, the stage as it stands."""
    place: str  # FILE:LINE
    stage: str
    name: str
    about: str
    detector: str = None
    test: str = None
    edits: list = dataclasses.field(default_factory=list)

    @property
    def title(self):
        return f"{self.stage}.{self.name}"

    def files(self, root):
        """What must be compiled for this bug: the stage's source, and what else is changed."""
        own = source_of(root, self.stage)
        return list(dict.fromkeys([own] + [edit.file or own for edit in self.edits]))

    def take(self, word, rest):
        """Takes a line that describes it; False for one that does not."""
        last = self.edits[-1] if self.edits else Edit()
        if word in ("detector", "test"):
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


def source_of(root, stage):
    """The stage's .cu file, relative to the root."""
    found = glob.glob(os.path.join(glob.escape(os.path.join(root, stage)), "*.cu"))
    if len(found) != 1:
        raise BadBug(f"{stage}: one .cu file is expected there, {len(found)} found")
    return os.path.relpath(found[0], root)


def read(path):
    """The bugs of one file, what it takes over comes last."""
    folder, file = os.path.split(path)
    stage, own, taken = os.path.splitext(file)[0], {}, {}
    with open(path, encoding="utf-8") as lines:
        text = lines.read()
    for number, line in enumerate(text.splitlines(), 1):
        place = f"{file}:{number}"
        word, _, rest = line.rstrip().partition(" ")
        name, colon, tail = rest.partition(": ")
        if word in ("", "#"):
            continue
        if word == "bug" and colon and re.fullmatch(r"\w+", name):
            if name in own:
                raise BadBug(f"{place}: {name} is there twice")
            bug = own[name] = Bug(place, stage, name, tail)
        elif word == "like":
            there = {bug.name: dataclasses.replace(bug, stage=stage)
                     for bug in read(os.path.join(folder, name + ".bugs"))}
            taken |= chosen(there, tail.split() or there, place)
        elif word == "without":
            out = chosen(taken, rest.split(), place)
            taken = {name: bug for name, bug in taken.items() if name not in out}
        elif not own or not bug.take(word, rest):
            raise BadBug(f"{place}: a file has lines that begin with 'like STAGE', 'without NAME' "
                         "or 'bug NAME: ', and below a bug in, detector, test, - and, after -, +")
    for bug in own.values():
        if not bug.edits or not all(edit.new for edit in bug.edits):
            raise BadBug(f"{bug.place}: {bug.name}: a replacement needs lines with - and with +")
    if not own:
        raise BadBug(f"{path}: no bugs of its own")
    return list(own.values()) + [bug for name, bug in taken.items() if name not in own]


def chosen(bugs, names, place):
    """Those of {name: bug} that are called so."""
    for name in names:
        if name not in bugs:
            raise BadBug(f"{place}: there is no bug '{name}' to be taken over or left out")
    return {name: bugs[name] for name in names}


def read_all():
    """All bugs; those of a stage begin with the one that is none, with no edits."""
    bugs = []
    for path in sorted(glob.glob(os.path.join(FOLDER, "*.bugs"))):
        of_stage = read(path)
        bugs += [Bug(path, of_stage[0].stage, SOUND, "the stage as it stands"), *of_stage]
    return bugs


def find(title):
    """The bug called STAGE.NAME."""
    for bug in read_all():
        if bug.title == title:
            return bug
    raise BadBug(f"there is no bug called '{title}'")


def replaced(text, edit, file, place):
    """The file's `text` with the edit made."""
    words = " ".join(edit.old).split()
    pattern = re.compile(r"\s+".join(map(re.escape, words)))
    found = pattern.findall(text)
    if len(found) != 1:
        raise BadBug(f"{place}: '{' '.join(words)}' stands {len(found)} times in {file}, not "
                     "once: has the source changed? The bug must follow it")
    return pattern.sub(lambda _: "\n".join(edit.new), text)


def plant(bug, out, root=ROOT):
    """Writes all bug.files(), changed, below the folder `out`."""
    texts, own = {}, source_of(root, bug.stage)
    for file in bug.files(root):
        with open(os.path.join(root, file), encoding="utf-8") as source:
            texts[file] = source.read()
    for edit in bug.edits:
        file = edit.file or own
        texts[file] = replaced(texts[file], edit, file, f"{bug.place}: {bug.name}")
    for file, text in texts.items():
        path = os.path.join(out, file)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as copy:
            copy.write(text)
