"""A folder for each test, and calls of a command's main()."""
import contextlib
import io
import json
import os
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


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

    def path(self, *names):
        return os.path.join(self.folder, *names)

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
