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

A stage made from the one before it has most of that one's bugs, too. Its file begins with

    like 05_fused_bias
    without tile_wrapped tile_transposed

which takes over all bugs of that stage but those that `without` names, and those that are described
anew under the same name; `only` names those that are taken over instead.
"""
import copy
import glob
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
SOUND = "sound"  # the name of the bug that is none
FOLDER = os.path.dirname(os.path.abspath(__file__))


class BadBug(Exception):
    """A .bugs file that can't be read, or doesn't fit the source any more."""


class Edit:
    """One replacement in one file; None is the stage's own."""

    def __init__(self, file):
        self.file = file
        self.old, self.new = [], []  # lines


class Bug:
    """One bug as its file describes it; without edits, the stage as it stands."""

    def __init__(self, place, stage, name, about):
        self.place = place  # FILE:LINE
        self.stage, self.name, self.about = stage, name, about
        self.detector = self.test = None
        self.edits = []

    @property
    def title(self):
        return f"{self.stage}.{self.name}"

    def files(self, root):
        """What must be compiled for this bug: the stage's source, and what else is changed."""
        own = source_of(root, self.stage)
        return list(dict.fromkeys([own] + [edit.file or own for edit in self.edits]))


def source_of(root, stage):
    """The stage's .cu file, relative to the root."""
    found = glob.glob(os.path.join(glob.escape(os.path.join(root, stage)), "*.cu"))
    if len(found) != 1:
        raise BadBug(f"{stage}: one .cu file is expected there, {len(found)} found")
    return os.path.relpath(found[0], root)


class Reader:
    """Takes the lines of one file, in order."""

    def __init__(self, stage, bugs_of):
        self.stage, self.bugs_of = stage, bugs_of
        self.bugs, self.taken_over = [], {}
        self.file = None  # that the next replacement is made in
        self.edit = None  # that the next line may belong to

    def take(self, line, place):
        word, _, rest = line.partition(" ")
        edit, self.edit = self.edit, None
        if not line or line.startswith("#"):
            return
        if word == "bug":
            self.begin(rest, place)
        elif word == "like":
            self.take_over(self.bugs_of(rest))
        elif word in ("without", "only"):
            names = rest.split()
            for name in names:
                if name not in self.taken_over:
                    raise BadBug(f"{place}: there is no bug '{name}' to be taken over or left out")
            self.taken_over = {name: bug for name, bug in self.taken_over.items()
                               if (name in names) == (word == "only")}
        elif not self.bugs:
            raise BadBug(f"{place}: a bug begins with 'bug NAME: ...'")
        elif word == "in":
            self.file = rest
        elif word in ("detector", "test"):
            setattr(self.bugs[-1], word, rest)
        elif word == "-":
            self.edit = edit if edit and not edit.new else self.next_edit()
            self.edit.old.append(rest)
        elif word == "+" and edit:
            self.edit = edit
            edit.new.append(rest)
        elif word == "+":
            raise BadBug(f"{place}: + without a - before it")
        else:
            raise BadBug(f"{place}: '{word}' is none of like, without, only, bug, in, detector, "
                         "test, -, + and #")

    def begin(self, rest, place):
        name, colon, about = rest.partition(": ")
        if not colon or not re.fullmatch(r"\w+", name):
            raise BadBug(f"{place}: a bug begins with 'bug NAME: ...'")
        self.bugs.append(Bug(place, self.stage, name, about))
        self.file = None

    def take_over(self, bugs):
        for bug in bugs:
            self.taken_over[bug.name] = copy.copy(bug)
            self.taken_over[bug.name].stage = self.stage

    def all_bugs(self):
        for bug in self.bugs:
            self.taken_over.pop(bug.name, None)
        return self.bugs + list(self.taken_over.values())

    def next_edit(self):
        self.bugs[-1].edits.append(Edit(self.file))
        return self.bugs[-1].edits[-1]


def read(path, root=ROOT):
    """The bugs of one file, what it takes over comes last."""
    folder, file = os.path.split(path)
    reader = Reader(os.path.splitext(file)[0],
                    lambda stage: read(os.path.join(folder, stage + ".bugs"), root))
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            reader.take(line.rstrip(), f"{file}:{number}")
    check(path, reader.bugs)
    return reader.all_bugs()


def check(path, bugs):
    names = [bug.name for bug in bugs]
    for bug in bugs:
        if not bug.edits or not all(edit.new for edit in bug.edits):
            raise BadBug(f"{bug.place}: {bug.name}: a replacement needs lines with - and with +")
        if names.count(bug.name) > 1:
            raise BadBug(f"{bug.place}: {bug.name} is there twice")
    if not bugs:
        raise BadBug(f"{path}: no bugs of its own")


def read_all(root=ROOT):
    """All bugs; those of a stage begin with the one that is none, with no edits."""
    bugs = []
    for path in sorted(glob.glob(os.path.join(FOLDER, "*.bugs"))):
        of_stage = read(path, root)
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
