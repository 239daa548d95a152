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
"""
import glob
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
SOUND = "sound"  # the name of the bug that is none
FOLDER = os.path.dirname(os.path.abspath(__file__))


class BadBug(Exception):
    """A .bugs file that can't be read, or doesn't fit the source any more."""


class Edit:
    """One replacement in one file."""

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
        files = [source_of(root, self.stage)] + [edit.file for edit in self.edits]
        return list(dict.fromkeys(files))


def source_of(root, stage):
    """The stage's .cu file, relative to the root."""
    found = glob.glob(os.path.join(glob.escape(os.path.join(root, stage)), "*.cu"))
    if len(found) != 1:
        raise BadBug(f"{stage}: one .cu file is expected there, {len(found)} found")
    return os.path.relpath(found[0], root)


class Reader:
    """Takes the lines of one file, in order."""

    def __init__(self, stage, source):
        self.stage, self.source = stage, source
        self.bugs = []
        self.file = source  # that the next replacement is made in
        self.edit = None    # that the next line may belong to

    def take(self, line, place):
        word, _, rest = line.partition(" ")
        edit, self.edit = self.edit, None
        if not line or line.startswith("#"):
            return
        if word == "bug":
            self.begin(rest, place)
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
            raise BadBug(f"{place}: '{word}' is none of bug, in, detector, test, -, + and #")

    def begin(self, rest, place):
        name, colon, about = rest.partition(": ")
        if not colon or not re.fullmatch(r"\w+", name):
            raise BadBug(f"{place}: a bug begins with 'bug NAME: ...'")
        self.bugs.append(Bug(place, self.stage, name, about))
        self.file = self.source

    def next_edit(self):
        self.bugs[-1].edits.append(Edit(self.file))
        return self.bugs[-1].edits[-1]


def read(path, root=ROOT):
    """The bugs of one file, in order."""
    stage = os.path.splitext(os.path.basename(path))[0]
    reader = Reader(stage, source_of(root, stage))
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            reader.take(line.rstrip(), f"{os.path.basename(path)}:{number}")
    check(path, reader.bugs)
    return reader.bugs


def check(path, bugs):
    names = [bug.name for bug in bugs]
    for bug in bugs:
        if not bug.edits or not all(edit.new for edit in bug.edits):
            raise BadBug(f"{bug.place}: {bug.name}: a replacement needs lines with - and with +")
        if names.count(bug.name) > 1:
            raise BadBug(f"{bug.place}: {bug.name} is there twice")
    if not bugs:
        raise BadBug(f"{path}: no bugs")


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


def replaced(text, edit, place):
    """`text` with the edit made."""
    words = " ".join(edit.old).split()
    pattern = re.compile(r"\s+".join(map(re.escape, words)))
    found = pattern.findall(text)
    if len(found) != 1:
        raise BadBug(f"{place}: '{' '.join(words)}' stands {len(found)} times in {edit.file}, not "
                     "once: has the source changed? The bug must follow it")
    return pattern.sub(lambda _: "\n".join(edit.new), text)


def plant(bug, out, root=ROOT):
    """Writes all bug.files(), changed, below the folder `out`."""
    texts = {}
    for file in bug.files(root):
        with open(os.path.join(root, file), encoding="utf-8") as source:
            texts[file] = source.read()
    for edit in bug.edits:
        texts[edit.file] = replaced(texts[edit.file], edit, f"{bug.place}: {bug.name}")
    for file, text in texts.items():
        path = os.path.join(out, file)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as copy:
            copy.write(text)
