"""Checks the links of all pages: files exist, headings exist, and lines are where they are said to be.

A link to a line names a piece of that line as its title: [P()](conv_shape.h#L45 "int P() const").
A line that has moved is told of; `--fix` corrects its number.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r'\]\(([^()\s]+)(?:\s+"((?:[^"\\]|\\.)*)")?\)')
FENCE = re.compile(r"^\s*```")


def pages(root):
    """The Markdown files of the repository."""
    folders = [folder for folder in root.iterdir()
               if folder.is_dir() and folder.name != "build" and not folder.name.startswith(".")]
    return sorted([*root.glob("*.md"), *(page for folder in folders for page in folder.rglob("*.md"))])


def anchor(title):
    """The anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def anchors(text):
    """The anchors of all headings of a page."""
    return set(map(anchor, re.findall(r"^#+ +(.*)$", text, re.MULTILINE)))


def wrong_target(page, target, title):
    """What is wrong with a link of `page`, and the target as it should be: (message, better)."""
    name, _, fragment = target.partition("#")
    path = (page.parent / name).resolve() if name else page
    if not path.exists():
        return f"{target}: no such file", None
    if not fragment:
        return None, None
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return (None if fragment in anchors(text) else f"{target}: no such heading"), None
    if not re.fullmatch(r"L\d+", fragment):
        return f"{target}: neither a page's heading nor a line (#L12)", None
    if not title:
        return f'{target}: give a piece of the line as title: (FILE#L12 "piece")', None
    lines = [i for i, line in enumerate(text.split("\n"), 1) if title in line]
    if int(fragment[1:]) in lines:
        return None, None
    if len(lines) != 1:
        return f"{target}: {title!r} is on {len(lines)} lines of that file", None
    return f"{target}: {title!r} is on line {lines[0]} now", f"{name}#L{lines[0]}"


def check(page, fix):
    """What is wrong on one page: errors, and lines that have moved. `fix` corrects the latter."""
    errors, moved, text, in_fence = [], [], page.read_text(encoding="utf-8"), False
    for number, line in enumerate(text.split("\n"), 1):
        in_fence ^= bool(FENCE.match(line))
        for target, title in [] if in_fence else LINK.findall(line):
            if re.match(r"[a-z]+:", target):
                continue  # another site's
            message, better = wrong_target(page, target, title.replace('\\"', '"'))
            if better and fix:
                text = text.replace(f"({target} ", f"({better} ")
            elif message:
                (moved if better else errors).append(f"{page}:{number}: {message}")
    if fix:
        page.write_text(text, encoding="utf-8")
    return errors, moved


def main(words):
    found = [check(page, words == ["--fix"]) for page in [*pages(ROOT), *ROOT.glob("docs/*.ipynb")]]
    errors, moved = (sum(lists, []) for lists in zip(*found))
    sys.stderr.writelines(complaint + "\n" for complaint in errors + moved)
    if moved:
        print("lines have moved: common/site/links.py --fix corrects their numbers", file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
