"""A folder for a test, and programs made up in it: what a machine with a GPU would have there."""
import contextlib
import io
import json
import os
import sys
import tempfile
import textwrap
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MEASURE = os.path.join(ROOT, "common", "measure")


def called(function, *arguments):
    """What it returns or ends with, its standard output and standard error."""
    with (contextlib.redirect_stdout(io.StringIO()) as out,
          contextlib.redirect_stderr(io.StringIO()) as err):
        try:
            result = function(*arguments)
        except SystemExit as end:
            result = end.code
    return result, out.getvalue(), err.getvalue()


class FolderTest(unittest.TestCase):
    """Gives each test a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def files(self):
        return sorted(os.listdir(self.folder))

    def save(self, name, value):
        """A text as it is, all else as JSON; the file's path."""
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(value if isinstance(value, str) else json.dumps(value))
        return self.path(name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def program(self, name, source):
        """Makes a program of Python source; its words are in sys.argv. -S: it starts sooner without the
        machine's packages. Where nobody reads what it prints, it ends without a word."""
        self.save(name, f"#!{sys.executable} -S\nimport json, os, signal, sys, time\n"
                        "signal.signal(signal.SIGPIPE, signal.SIG_DFL)\n" + textwrap.dedent(source))
        os.chmod(self.path(name), 0o755)
        return self.path(name)


class FakeProgramTest(FolderTest):
    """With the folder first in the PATH."""

    def setUp(self):
        super().setUp()
        self.addCleanup(os.environ.update, PATH=os.environ["PATH"])
        os.environ["PATH"] = self.folder + os.pathsep + os.environ["PATH"]
