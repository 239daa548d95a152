#!/usr/bin/env python3
"""Programs in plain CUDA, in programs/: each says in its head what ./ladder sim must show of it.

  // options: --count               of sim
  // seen: text                     in what is printed; {mark}: FILE:LINE of the line that ends with "// mark"
  // status: 1                      the exit status
"""
import glob
import os
import re
import subprocess
import sys
import unittest

from common.show.files import ROOT

FOLDER = os.path.join(ROOT, "common", "tests", "programs")


def directives(text, name):
    return re.findall(rf"^// {name}: (.*)$", text, re.MULTILINE)


def line_of(text, file, mark):
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(rf"  // {re.escape(mark)}( .*)?$", line):
            return f"{file}:{number}"
    raise AssertionError(f"{file} has no line with // {mark}")


class Programs(unittest.TestCase):
    def check(self, path):
        with open(path, encoding="utf-8") as source:
            text = source.read()
        file = os.path.basename(path)
        options = [word for line in directives(text, "options") for word in line.split()]
        done = subprocess.run([sys.executable, "-B", "-m", "common.command.sim", file, *options], check=False,
                              cwd=FOLDER, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, "PYTHONPATH": ROOT})
        printed = done.stdout.replace("common/tests/programs/", "")
        for seen in directives(text, "seen"):
            wanted = re.sub(r"\{([\w ]+)\}", lambda mark: line_of(text, file, mark[1]), seen)
            self.assertIn(wanted, printed, path)
        self.assertEqual([done.returncode], [int(status) for status in directives(text, "status")], printed)


for each in sorted(glob.glob(os.path.join(FOLDER, "*.cu"))):
    name = os.path.basename(each).removesuffix(".cu")
    setattr(Programs, f"test_{name}", lambda self, path=each: self.check(path))

if __name__ == "__main__":
    unittest.main()
