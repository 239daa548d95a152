"""Programs made up for a test, for the PATH: what a machine with a GPU would have there. And a call
whose output is kept."""
import contextlib
import io
import os
import sys
import tempfile
import textwrap
import unittest

PROFILE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "profile")
sys.path.insert(0, PROFILE)


def called(function, *arguments):
    """What it returns or ends with, its standard output and standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            result = function(*arguments)
        except SystemExit as end:
            result = end.code
    return result, out.getvalue(), err.getvalue()


class FakeProgramTest(unittest.TestCase):
    """Gives each test a folder of its own, first in the PATH."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.addCleanup(os.environ.update, PATH=os.environ["PATH"])
        os.environ["PATH"] = self.folder + os.pathsep + os.environ["PATH"]

    def path(self, name):
        return os.path.join(self.folder, name)

    def program(self, name, source):
        """Makes a program of Python source; its words are in sys.argv. -S: it starts sooner without the
        machine's packages. Where nobody reads what it prints, it ends without a word."""
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(f"#!{sys.executable} -S\nimport json, os, signal, sys, time\n"
                       "signal.signal(signal.SIGPIPE, signal.SIG_DFL)\n" + textwrap.dedent(source))
        os.chmod(self.path(name), 0o755)

    def files(self):
        return sorted(os.listdir(self.folder))
