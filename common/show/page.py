"""The page to look at: everything that was measured and traced, in one HTML file without a network.

Figures and their wording are those of the tables: they are made by the same functions. What could not be read
is no error here: the page says what is missing, and which command makes it.
"""
import base64
import difflib
import json
import os
import re
import sys
import webbrowser
from typing import NamedTuple

from common.show import counter_tables, counters, files, floors, formats, records, shape, time_tables

HERE = os.path.dirname(os.path.abspath(__file__))
TRACE_VERSION = 3
PAGE_BYTES = 2_900_000  # of all that is in the page, pictures and warps included
MISSING = {"bench": "No times: nothing was timed on a GPU.", "profile": "No counters: nothing was counted.",
           "run": "No pictures: no stage has convolved the photograph, or they are gone.",
           "trace": "No addresses: no warp was traced."}
COMMANDS = {"bench": "./ladder bench", "profile": "./ladder profile", "run": "./ladder run",
            "trace": "./ladder --backend sim profile --trace build/report/trace.json"}


class Inputs(NamedTuple):
    """Paths, None for what there is none of."""
    benches: list
    profiles: list
    run: str | None          # run.json, beside what run has drawn
    trace: str | None
    root: str | None = None  # where the stages' folders are, for code that no trace holds
    show: str | None = None  # the stage to begin with; else the last
    kept: dict | None = None  # data of a page made before: its pictures and trace, where there are no newer


def write(path, inputs):
    """Writes the page, and returns its notices. Raises OSError where the file can't be written."""
    named = [*inputs.benches, *inputs.profiles, inputs.run, inputs.trace]
    with records.well_formed(", ".join(filter(None, named))):  # what is no reader's to know
        data = page_data(inputs)
        text = html(data)
    files.write(path, text)
    return data["notices"]


def show(path):
    """In the reader's browser, where there is a screen; else says where the page is."""
    if sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        if webbrowser.open("file://" + os.path.abspath(path)):
            return
    print("open it in a browser: " + os.path.abspath(path))


def html(data):
    """The whole file as text."""
    own, style, script = (files.read(os.path.join(HERE, "page." + kind))
                          for kind in ("html", "css", "js"))
    inside = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    parts = {"STYLE": style, "SCRIPT": script,
             "DATA": inside.replace("<", "\\u003c")}  # "</script>" would end it
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], own)


def data_of(path):
    """What a page made before has in it."""
    found = re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', files.read(path), re.DOTALL)
    if not found:
        raise records.BadInput(f"{path}: not made by ./ladder report")
    return json.loads(found[1])


# --- what the page shows -------------------------------------------------------------------------

def page_data(inputs):
    notices = []

    def attempt(kind, path, read):
        """What `read` makes of the file; None, and a notice, without it or where it is no good."""
        try:
            if path is not None and (found := read(path)):
                return found
            text, path = MISSING[kind], None
        except (records.BadInput, OSError) as error:
            text = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
        notices.append({"about": kind, "text": text, "command": COMMANDS[kind], "path": path})
        return None

    benches = [bench for path in inputs.benches or [None]
               if (bench := attempt("bench", path, records.read_bench))]
    profiles = [profile for path in inputs.profiles or [None]
                for profile in attempt("profile", path, records.read_profiles) or []]
    kept = inputs.kept or {}
    trace, pictures = kept.get("trace"), kept.get("pictures")
    if inputs.trace or not trace:
        trace = attempt("trace", inputs.trace, read_trace)
    if inputs.run or not pictures:
        pictures = attempt("run", inputs.run, read_pictures)
    cards = sorted(records.cards(benches, profiles), key=lambda card: len(card.stages()), reverse=True)
    problems = [problem for card in cards for problem in card.problems]
    return fitted({
        "notices": notices,
        "problems": [problem_data(problem, card) for card in cards for problem in card.problems],
        "changes": changes(code_of(problems, trace, inputs.root)), "pictures": pictures, "trace": trace,
        "limits": {stage: files.limit_of(stage) for stage in files.lessons()}, "show": inputs.show})


def without_forms(problem):
    """The problem without its stages' forms, which are no steps of the ladder."""
    def kept(stages):
        return {name: stages[name] for name in records.without_forms(stages)}

    bench = problem.bench and records.Record(**{**vars(problem.bench), "stages": kept(problem.bench.stages)})
    return problem._replace(bench=bench, profiles=[
        profile._replace(stages=kept(profile.stages)) for profile in problem.profiles])


def problem_data(problem, card):
    problem, bench = without_forms(problem), card.bench
    timed = problem.bench
    where = f", on {counter_tables.with_article(card.gpu)}" if timed else ""
    return {"title": formats.title_of(problem) + where,
            "machine": time_tables.machine(bench) if bench else "", "stages": problem.stages(),
            "times": {name: time_data(timing, timed.flop, bench)
                      for name, timing in timed.stages.items()} if timed else {},
            "columns": [time_column(timed, bench)] if timed else [],
            "rivals": [{"title": time_tables.competitor_title(rival),
                        **time_data(rival, timed.flop, bench, rival.precision)}
                       for rival in time_tables.ladder_of_competitors(timed)] if timed else [],
            "profiles": [profile_data(problem, profile, bench) for profile in problem.profiles]}


def time_data(timing, flop, bench, precision="fp32"):
    cells = time_tables.time_cells(timing, flop, bench, precision)
    return {"ms": timing.cold.median if timing.cold else None, "text": cells.cold,
            "quartiles": cells.quartiles, "tflops": cells.tflops, "ceiling": cells.ceiling}


def time_column(timed, bench):
    """As column_data(): a stage without a time has its status."""
    timings = timed.stages.values()
    cells = [[timing.cold.median if timing.cold else None,
              time_tables.time_cells(timing, timed.flop, bench).cold,
              formats.ratio(time_tables.time_ratio(timing, before))]
             for before, timing in zip([None, *timings], timings)]
    return {"heading": "time, cold L2 [ms]", "cells": dict(zip(timed.stages, cells))}


def profile_data(problem, profile, bench):
    columns = [column_data(column, profile) for column in [counter_tables.FLOOR] + counter_tables.COLUMNS]
    limits = {stage: floors.of_stage(kernels) for stage, kernels in profile.stages.items()}
    levels = [level for level in counters.LEVELS  # at which this source has counted something
              if any(counters.of_stage(kernels, level.of_kernel) for kernels in profile.stages.values())]
    data = {"source": counter_tables.source_of(profile), "stages": list(profile.stages),
            "columns": [column for column in columns if column["cells"]],
            "floors": {stage: floor[1] for stage, floor in limits.items() if floor},
            "levels": [level.name for level in levels],
            "meanings": {level.name: level.meaning for level in levels},
            "least": profile.least_bytes, "least_text": formats.size(profile.least_bytes)}
    points = roofline_points(problem, profile) if problem.bench else {}
    if points:
        data["roofline"] = {"points": points, "peak": bench.fma_tflops, "slopes": {
            level: bench.tb_per_s[level] for level in points if level in bench.tb_per_s}}
    return data


def roofline_points(problem, profile):
    """{level: [(stage, FLOP per byte, TFLOP/s)]} of the stages that were timed and counted."""
    points = {}
    for level in counters.LEVELS:
        for stage, timing in problem.bench.stages.items():
            kernels = profile.stages.get(stage)
            if level.name == "requested" or not timing.cold or not kernels:
                continue
            intensity = counters.flop_per_byte(kernels, profile.flop, level)
            if intensity is not None:
                rate = time_tables.tflops(timing, profile.flop)
                points.setdefault(level.name, []).append((stage, intensity, rate))
    return points


def column_data(column, profile):
    """{stage: [value, as the tables have it, by how much it changed from the stage before]}."""
    stages = list(profile.stages)
    figures = [column.figure(profile, stage) for stage in stages]
    return {"heading": column.heading, "cells": {
        stage: [figure.value, counter_tables.cell(figure, column.text),
                formats.ratio(counters.quotient(figure, before))]
        for stage, before, figure in zip(stages, [None, *figures], figures) if figure}}


def code_of(problems, trace, root):
    """{stage: its kernel's file, as the trace has it, else as its folder has it}."""
    code = {}
    for stage in trace["stages"] if trace else []:
        own = [name for name in stage["files"] if not name.startswith("common/")]
        if own:
            code[stage["stage"]] = stage["files"][own[0]]
    for name in {name for problem in problems for name in problem.stages()} - set(code):
        if root and name in files.stage_names():
            code[name] = files.kernel(name)
    return dict(sorted(code.items()))


def changes(code):
    """{stage: the stage before it, and how the code changed: [kind, line], where lines that are the
    same in both are left out but for two around a change}."""
    stages, all_changes = list(code), {}
    for before, now in zip(stages, stages[1:]):
        old, new = (code[stage].splitlines() for stage in (before, now))
        kinds = {"-": "gone", "+": "new", " ": "same", "@": "cut"}
        lines = list(difflib.unified_diff(old, new, n=2, lineterm=""))[2:]  # without the names
        all_changes[now] = {"before": before, "lines": [
            [kinds[line[0]], "…" if line[0] == "@" else line] for line in lines]}
    return all_changes


# --- the trace and the pictures -------------------------------------------------------------------

def read_trace(path):
    """What `profile --trace` wrote; common/measure/trace_file.h says what is in it."""
    trace = records.read_file(path, "convladder trace", TRACE_VERSION)
    with records.well_formed(path):
        trace["extents"] = shape.extents(shape.parse(trace["shape"]))
        for stage in trace["stages"]:
            for kernel in stage["kernels"]:
                for warp in kernel["warps"]:
                    if len(warp["runs"]) != len(kernel["instructions"]):
                        raise ValueError("a warp without all instructions")
    return trace


def fitted(data):
    """The data with as many of the trace's warps as there is room for: the first of every kernel,
    then the second, ... `left_out` says how many are not there."""
    trace = data["trace"]
    if not trace:
        return data
    kernels = [kernel for stage in trace["stages"] for kernel in stage["kernels"]]
    warps = [kernel["warps"] for kernel in kernels]
    for kernel in kernels:
        kernel["warps"] = []
    room = PAGE_BYTES - len(html(data).encode())
    trace["left_out"] = trace.get("left_out", 0)
    for i in range(max(map(len, warps), default=0)):
        for kernel, own in zip(kernels, warps):
            if i >= len(own):
                continue
            size = len(json.dumps(own[i], separators=(",", ":"))) + 1
            if size <= room:
                kernel["warps"].append(own[i])
                room -= size
            else:
                trace["left_out"] += 1
    return data


def read_pictures(path):
    """The three pictures that `run` draws beside its run.json, as data URLs, and where in them which
    filter and which map stands; None where one is not there: no maps are, where no stage has passed."""
    run = records.read_json(path)
    if not isinstance(run, dict) or "pictures" not in run:
        raise records.BadInput(f"{path}: not made by run")
    with records.well_formed(path):
        records.require_version(run, 1, path)
        own = shape.parse(run["shape"])
        data = {**{name: getattr(own, name) for name in ("H", "W", "K", "R", "S", "P", "Q")},
                "stride": [own.stride_h, own.stride_w], "pad": [own.pad_h, own.pad_w], **run["pictures"],
                "backend": run["backend"], "of": run["data"]}
    for name in ("input", "filters", "feature_maps"):
        picture = os.path.join(os.path.dirname(path), name + ".png")
        if not os.path.exists(picture):
            return None
        data[name] = "data:image/png;base64," + base64.b64encode(files.read_bytes(picture)).decode()
    return data
