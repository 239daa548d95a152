"""Programs of PyPI's that this project uses and does not ship, each set in build/tools/NAME."""
import os
import shutil
import subprocess
import sys

from common.command import machine
from common.command.machine import say
from common.show import files
from common.show.files import ROOT

PINNED = {"site": ["mkdocs-material==9.8.1"],
          "notebook": ["nbclient==0.11.0", "ipykernel==7.4.0"],
          "schemas": ["check-jsonschema==0.39.0", "reuse==6.2.0", "xmlschema==4.3.2", "zizmor==1.32.0"]}


class Lacking(Exception):
    """There is no such environment, and none can be made: why."""


def folder(name, *parts):
    return os.path.join(ROOT, "build", "tools", name, *parts)


def python(name):
    """The path of the environment's Python; makes the environment the first time."""
    words, mark = PINNED[name], folder(name, "made_of.txt")
    if files.read_existing(mark) == " ".join(words):
        return folder(name, "bin", "python")
    say(f"installing with pip: {' '.join(words)}")
    shutil.rmtree(folder(name), ignore_errors=True)
    if not machine.printed(sys.executable, "-I", "-c", "import ensurepip; print(1)"):
        machine.install("python3-venv")
    for step in ([sys.executable, "-I", "-m", "venv", folder(name)],
                 [folder(name, "bin", "python"), "-I", "-m", "pip", "install", "--quiet",
                  "--disable-pip-version-check", "--retries", "1", *words]):
        done = subprocess.run(step, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            lines = done.stdout.strip().splitlines() or ["no reason given"]
            raise Lacking(f"{' '.join(words)} can't be installed (no network?): {lines[-1]}")
    files.write(mark, " ".join(words))
    return folder(name, "bin", "python")
