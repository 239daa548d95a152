"""A configured preset as a source of commands: how it compiles a kernel, and how it links a program. One
kernel's object then takes another's place.
"""
import json
import os
import re
import shlex
import subprocess

from common.show.files import ROOT

EXEMPLAR = "01_naive/naive.cu"  # every kernel is compiled as this one is


class BuildError(Exception):
    """This machine's fault, or the build's: not that of the kernel that is compiled."""


class Build:
    """build/PRESET, which must be configured."""

    def __init__(self, preset):
        self.preset = preset
        self.folder = os.path.join(ROOT, "build", preset)
        self.on_gpu = preset == "gpu"
        self._links = {}

    def make(self, *targets):
        """Builds the targets. Raises BuildError, with what the build printed."""
        done = subprocess.run([self._cached("CMAKE_COMMAND"), "--build", self.folder, "--parallel",
                               str(os.cpu_count()), "--target", *targets], text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            raise BuildError(f"{done.stdout}\nbuilding {' '.join(targets)} failed")

    def compile_words(self):
        """(folder, words): where this build compiles a kernel, and how, without source and output."""
        path = os.path.join(self.folder, "compile_commands.json")
        with open(path, encoding="utf-8") as file:
            for entry in json.load(file):
                if entry["file"] == os.path.join(ROOT, EXEMPLAR):
                    words = shlex.split(entry["command"])
                    words[words.index("-o"):words.index("-o") + 2] = []
                    return entry["directory"], [word for word in words if word not in ("-c", entry["file"])]
        raise BuildError(f"{path} has no {EXEMPLAR}")

    def link_words(self, target, objects, replaced, program):
        """(folder, words): links bin/`target` as `program`, with `objects` first, so that their
        definitions win, and without the kernel `replaced` (the name of its source)."""
        if target not in self._links:
            self._links[target] = self._read_link(target)
        folder, words = self._links[target]
        own = [word for word in words if word.endswith(f"/{replaced}.o")]
        if len(own) != 1:
            raise BuildError(f"{self.folder} links {replaced} {len(own)} times into {target}")
        first = next(i for i, word in enumerate(words) if word.endswith(".o"))
        words = [word for word in words[:first] + objects + words[first:] if word != own[0]]
        words[words.index("-o") + 1] = program
        return folder, words

    def _read_link(self, target):
        for folder, _, files in os.walk(self.folder):  # of make
            if folder.endswith(f"/CMakeFiles/{target}.dir") and "link.txt" in files:
                with open(os.path.join(folder, "link.txt"), encoding="utf-8") as file:
                    return os.path.dirname(os.path.dirname(folder)), shlex.split(file.read())
        listed = subprocess.run([self._cached("CMAKE_MAKE_PROGRAM"), "-C", self.folder, "-t", "commands",
                                 target], capture_output=True, text=True, check=False)
        commands = [part for line in listed.stdout.splitlines() for part in line.split("&&")
                    if f" -o bin/{target} " in part]
        if len(commands) != 1:
            raise BuildError(f"how {self.folder} links {target} can't be told")
        return self.folder, shlex.split(commands[0])

    def _cached(self, name):
        with open(os.path.join(self.folder, "CMakeCache.txt"), encoding="utf-8") as file:
            return re.search(rf"^{name}:\w+=(.*)$", file.read(), re.MULTILINE).group(1)
