#!/usr/bin/env python3
"""Holds the ladder's steps small, from stage 03 on: how many lines of code a stage changes of the
one before, and how long its file is. Prints the table."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The stages that bring more than the others: what they may change (else 40 lines), and their length
# (else 120).
FIRST, CHANGED = "03", {7: 60, 10: 80, 11: 60, 12: 295}
LENGTH = {7: 150, 8: 150, 9: 165, 10: 190, 11: 245, 12: 305}
COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//.*')


def code_lines(text):
    """The lines with their comments taken off and without indentation; blank ones are left out."""
    lines = [COMMENT.sub(lambda match: match[1] or "", line).strip() for line in text.splitlines()]
    return [line for line in lines if line]


def changed_lines(old, new):
    """The least number of lines to remove from `old` and to add to it, together, that gives `new`."""
    row = list(range(len(new) + 1))
    for i, line in enumerate(old, 1):
        above, row[0] = row[0], i
        for j, other in enumerate(new, 1):
            above, row[j] = row[j], above if line == other else 1 + min(row[j], row[j - 1])
    return row[-1]


class StepsTest(unittest.TestCase):
    def test_lines_are_counted(self):
        old = code_lines('a;\n\n// why\n  b;  // and how\nc("//", 1);  // x\n')
        self.assertEqual(old, ["a;", "b;", 'c("//", 1);'])
        self.assertEqual(changed_lines(old, old), 0)
        self.assertEqual(changed_lines(old, ["b;", "d;", 'c("//", 1);']), 2)
        self.assertEqual(changed_lines(old, ["a;", "e;", 'c("//", 1);', "f;"]), 3)
        self.assertEqual(changed_lines([], old), 3)

    def test_steps_are_small(self):
        paths = sorted(path for path in ROOT.glob("[01][0-9]_*/*.cu") if path.parent.name >= FIRST)
        self.assertGreaterEqual(len(paths), 7)
        print(f"{'stage':22}  {'lines':>5}  {'at most':>7}  {'changed':>7}  {'at most':>7}")
        before = None
        for path in paths:
            name = path.parent.name
            stage = int(name[:2])
            text = path.read_text(encoding="utf-8")
            lines, most_lines = len(text.splitlines()), LENGTH.get(stage, 120)
            code = code_lines(text)
            changed = changed_lines(before, code) if before else 0
            most_changed = CHANGED.get(stage, 40)
            step = f"{changed:7}  {most_changed:7}" if before else ""
            print(f"{name:22}  {lines:5}  {most_lines:7}  {step}".rstrip())
            with self.subTest(stage=name):
                self.assertLessEqual(lines, most_lines, "lines")
                self.assertLessEqual(changed, most_changed, "lines changed")
            before = code


if __name__ == "__main__":
    unittest.main()
