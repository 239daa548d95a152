#!/usr/bin/env python3
"""A stage and the one before it: the code that differs, and the counters of both.

  ./ladder diff STAGE [OPTION...]

STAGE is a stage's name, or its beginning: 04. Options are those of ./ladder profile, which counts, but
--brief, --json, --machine, --show and --trace; without any, AlexNet's first layer on one image. Status 1 if
a result is wrong.
"""
import difflib
import os
import sys
import tempfile

from common.command.machine import foreground, python
from common.show import counter_tables, files, formats, records
from common.show.files import stage_names
from common.show.support import ROOT, fail, run_main


def main(words):
    """words: the program to profile, a stage's whole name, and options."""
    profile = python("common.measure.profile", "--program", words[0])
    words = words[1:]
    if words[:1] in (["--help"], ["-h"]):
        print(__doc__.strip())
        return 0
    names, after = stage_names(), words[0]
    if after == names[0]:
        fail(f"{after} is the first stage: there is none before it", 2)
    # A side rung takes some problems alone, and is before none.
    before = [name for name in names[:names.index(after)] if not files.is_side_rung(name)][-1]
    options = words[1:] or ["--shape", "alexnet_conv1", "--batch", "1"]
    if words[1:] and not words[1].startswith("-") or "--stage" in words:
        fail("diff takes one stage, and puts it beside the one before it: ./ladder diff 04", 2)
    old, new = files.kernel_file(before), files.kernel_file(after)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "profile.json")
        said = os.path.join(folder, "said.txt")
        with open(said, "w", encoding="utf-8") as file:
            status = foreground(*profile, "--stage", before, "--stage", after, "--json", path, *options,
                                stdout=file)
        if status:
            print("".join(line for line in files.read(said).splitlines(keepends=True)
                          if not line.startswith("wrote " + path)), end="")
            return status
        profiles = records.read_profiles(path)
        for stage in (before, after):
            if any(stage not in profile.stages for profile in profiles):
                print(f"ladder: error: diff: {stage} has no counts on this problem:", file=sys.stderr,
                      flush=True)
                foreground(*profile, "--stage", stage, "--json", path, *options)  # says why
                return 1
    print("\n".join(difflib.unified_diff(
        files.kernel(before).splitlines(), files.kernel(after).splitlines(), os.path.relpath(old, ROOT),
        os.path.relpath(new, ROOT), n=2, lineterm="")))
    for profile in profiles:
        print(f"\n{formats.title_of(profile)}; counted by {counter_tables.source_of(profile)}\n")
        table = formats.aligned(counter_tables.step_table(profile, before, after))
        print(table + ("* without a library's kernels\n" if " *" in table else ""))
    return 0


if __name__ == "__main__":
    run_main(main)
