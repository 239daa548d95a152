"""The page to look at: everything that was measured and traced, in one HTML file without a network.

Figures and their wording are those of the report's tables: they are made by the same functions. What
could not be read is no error here: the page says what is missing, and which command makes it.
"""
import base64
import difflib
import json
import os
import re
import struct
import sys
import webbrowser
from typing import NamedTuple

from common.show import counter_tables, counters, files, floors, formats, records, shape, text, time_tables

HERE = os.path.dirname(os.path.abspath(__file__))
TRACE_FORMAT, TRACE_VERSION = "convladder trace", 3
PAGE_BYTES = 2_900_000  # of all that is in the page, pictures and warps included
GAP, FILTER_SCALE, MAP_SCALE, COLUMNS = 6, 6, 2, 12  # of the pictures that run draws
COMMANDS = {"bench": "./ladder bench", "profile": "./ladder profile", "run": "./ladder run",
            "trace": "./ladder --backend sim profile --trace build/report/trace.json"}


class Inputs(NamedTuple):
    """Paths, None for what there is none of."""
    bench: str | None
    profiles: list
    pictures: str | None     # the folder of run.json and what run has drawn
    trace: str | None
    root: str | None = None  # where the stages' folders are, for code that no trace holds
    show: str | None = None  # the stage to begin with; else the last
    kept: dict | None = None  # data of a page made before: its pictures and trace, where there are no newer


def write(path, inputs):
    """Writes the page. Raises OSError where the file can't be written."""
    files.write(path, html(page_data(inputs)))


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
    inside = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
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
    bench = attempt(notices, "bench", inputs.bench, records.read_bench)
    profiles = [profile for path in inputs.profiles or [None]
                for profile in attempt(notices, "profile", path, records.read_profiles) or []]
    kept = inputs.kept or {}
    trace, pictures = kept.get("trace"), kept.get("pictures")
    if inputs.trace or not trace:
        trace = attempt(notices, "trace", inputs.trace, read_trace)
    if inputs.pictures or not pictures:
        pictures = attempt(notices, "run", inputs.pictures, read_pictures)
    problems = records.join(bench, profiles)
    code = code_of(problems, trace, inputs.root)
    data = {"notices": notices, "machine": text.machine(bench) if bench else None,
            "problems": [problem_data(problem, bench) for problem in problems],
            "changes": changes(code), "pictures": pictures, "trace": trace,
            "show": inputs.show}
    return fitted(data)


def attempt(notices, kind, path, read):
    """What `read` makes of the file; None, and a notice, without it or where it is no good."""
    try:
        if path is None:
            raise records.BadInput({"bench": "No times: nothing was timed on a GPU.",
                                    "profile": "No counters: nothing was counted.",
                                    "run": "No pictures: the photograph wasn't convolved.",
                                    "trace": "No addresses: no warp was traced."}[kind])
        return read(path)
    except (records.BadInput, OSError) as error:
        notices.append({"about": kind, "text": str(error), "command": COMMANDS[kind]})
        return None


def problem_data(problem, bench):
    timed = problem.bench
    return {"title": formats.title_of(problem),
            "stages": sorted(set(text.stages_of(problem))),
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
    stages = list(profile.stages)
    columns = [column_data(column, profile) for column in [counter_tables.FLOOR] + counter_tables.COLUMNS]
    limits = {stage: floors.of_stage(kernels) for stage, kernels in profile.stages.items()}
    levels = traffic_levels(profile)
    data = {"source": counter_tables.source_of(profile), "stages": stages,
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


def traffic_levels(profile):
    """The levels at which this source has counted something."""
    return [level for level in counters.LEVELS
            if any(counters.of_stage(kernels, level.of_kernel)
                   for kernels in profile.stages.values())]


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
    for name in {name for problem in problems for name in text.stages_of(problem)} - set(code):
        for path in files.kernel_files(root, name)[:1] if root else []:
            code[name] = files.read(path)
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


# --- the trace -----------------------------------------------------------------------------------

def read_trace(path):
    """What `profile --trace` wrote; common/measure/trace_file.h says what is in it."""
    trace = records.read_json(path)
    if not isinstance(trace, dict) or trace.get("format") != TRACE_FORMAT:
        raise records.BadInput(f"{path}: not made by profile --trace: its format isn't "
                               f"\"{TRACE_FORMAT}\"")
    records.Members(trace, path).require_version(TRACE_VERSION)
    try:
        trace["extents"] = shape.extents(shape.parse(trace["shape"]))
        for stage in whole(trace, "problem", stages=list)["stages"]:
            whole(stage, "stage", files=dict, memory=list, patterns=list, services=list,
                  kernels=list)
            for kernel in stage["kernels"]:
                whole(kernel, "kernel", grid=list, shared=list, instructions=list, warps=list)
                for instruction in kernel["instructions"]:
                    whole(instruction, "line", "space", "operation", "memory", **dict.fromkeys(
                        ("bytes", "requests", "cost", "conflicts", "unique_bytes"), int))
                for warp in kernel["warps"]:
                    whole(warp, block=int, warp=int, cut=list, runs=list)
                    if len(warp["runs"]) != len(kernel["instructions"]):
                        raise ValueError("a warp without all instructions")
    except (KeyError, TypeError, ValueError) as error:
        raise records.BadInput(f"{path}: not a whole trace: {error!r}") from error
    return trace


def whole(value, *names, **types):
    """The object, which must have members of these names and types. Raises KeyError, TypeError."""
    for name, kind in {**dict.fromkeys(names, object), **types}.items():
        if not isinstance(value[name], kind):
            raise TypeError(f"'{name}' is {records.shortened(value[name])}")
    return value


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


# --- pictures ------------------------------------------------------------------------------------

def read_pictures(folder):
    """The three pictures that `run` draws beside its run.json, as data URLs, and where in them which
    filter and which map stands."""
    run_path = os.path.join(folder, "run.json")
    run = records.read_json(run_path)
    try:
        own = shape.parse(run["shape"])
    except (KeyError, TypeError, ValueError) as error:
        raise records.BadInput(f"{run_path}: not made by run: it has no shape") from error
    data = {**{name: getattr(own, name) for name in ("H", "W", "K", "R", "S", "P", "Q")},
            "stride": [own.stride_h, own.stride_w], "pad": [own.pad_h, own.pad_w],
            "columns": COLUMNS, "gap": GAP, "filter_scale": FILTER_SCALE, "map_scale": MAP_SCALE,
            "backend": run.get("backend", ""), "of": run.get("data", "")}
    sizes = {"input": (own.W, own.H),
             "filters": montage_size(own.K, own.S * FILTER_SCALE, own.R * FILTER_SCALE),
             "feature_maps": montage_size(own.K, own.Q * MAP_SCALE, own.P * MAP_SCALE)}
    for name, size in sizes.items():
        png = read_picture(os.path.join(folder, name + ".png"))
        found = struct.unpack(">II", png[16:24])
        if found != size:
            raise records.BadInput(f"{folder}/{name}.png: {found[0]}x{found[1]} pixels, where run.json's "
                                   f"shape gives {size[0]}x{size[1]}: of another run")
        data[name] = "data:image/png;base64," + base64.b64encode(png).decode()
    return data


def montage_size(count, width, height):
    """Of so many pictures, in rows of COLUMNS."""
    return GAP + COLUMNS * (width + GAP), GAP + -(-count // COLUMNS) * (height + GAP)


def read_picture(path):
    """A PNG as it is. Raises BadInput where it is none, or cut short."""
    if not os.path.exists(path):
        raise records.BadInput(f"{path}: isn't there")
    with open(path, "rb") as file:
        content = file.read()
    if not content.startswith(b"\x89PNG\r\n") or b"IEND" not in content[-12:]:
        raise records.BadInput(f"{path}: no picture, or cut short")
    return content
