"""The same judgement on a GPU: results, Nsight Compute's counters, and the time."""
import json
import os
import re
import sys
import tempfile

from common.show import files
from common.variants import judge
from common.measure import ncu
from common.variants import task as tasks
from common.show.support import fail, write_json

RESULTS = os.path.join(files.ROOT, "docs", "results", "exercises_{}.json")
BEGIN, END = "<!-- generated: time -->\n", "<!-- end -->"


def lines(verdict):
    """What the screen says of the times, and of counters that are missing."""
    for problem, record in verdict.timed.items():
        yield (f"{record['device']}: {record['milliseconds']:.4g} ms on {problem} (median of "
               f"{record['runs']}, caches warm)")
    if verdict.note:
        yield verdict.note


def as_json(verdict):
    return {"counted": verdict.values, "note": verdict.note,
            "milliseconds": {problem: timed["milliseconds"]
                             for problem, timed in verdict.timed.items()}}


def kernels_of(launches):
    """ncu's launches as the simulator's records, one for each kernel."""
    by_name = {}
    for kernel, values in launches:
        by_name.setdefault(kernel, []).append(values)
    records = []
    for kernel, every in by_name.items():
        record = {"kernel": kernel, "launches": len(every), **ncu.merge(every)}
        grids = [values.get("launch__grid_size") for values in every]
        if None not in grids:
            record["blocks"] = sum(grids)
        if "launch__shared_mem_per_block_static" in record:
            record["shared_bytes"] = record["launch__shared_mem_per_block_static"]
        record["tensor_instructions"] = record.get(ncu.TENSOR[0])
        records.append({key: value for key, value in record.items() if value is not None})
    return records


def judge_task(task, source, build):
    """The Verdict, with Nsight Compute's counts of what is right."""
    def count(verdict, program, folder):
        counted = {}
        try:
            for problem, row in task.counted().items():
                words = judge.program_words(program, folder, {"count": {problem: row}})
                counted[problem] = kernels_of(ncu.run(list(ncu.ALL), words)[0])
            verdict.values = {result.name: result.value for result in task.results(counted, on_gpu=True)}
        except ncu.NcuError as error:
            verdict.note = f"no counters of the GPU: {error}"
    return judge.judge(build, source, {"check": task.checked(), "time": task.timed()}, afterwards=count)


def time_of(task, text, build):
    """{problem: record} of a kernel that is right; else why it has none."""
    with tempfile.NamedTemporaryFile("w", suffix=".cu", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        verdict = judge.judge(build, file.name, {"check": task.checked(), "time": task.timed()})
    return ({}, verdict.message) if verdict.kind else (verdict.timed, "")


def sentence(record):
    """What an exercise's page says of a measurement."""
    parts = []
    for problem, after in record["after"].items():
        before = record["before"].get(problem)
        text = f"{problem}: {after['milliseconds']:.4g} ms"
        if before:
            text = (f"{problem}: {before['milliseconds']:.4g} ms at the start, "
                    f"{after['milliseconds']:.4g} ms solved "
                    f"(÷ {before['milliseconds'] / after['milliseconds']:.3g})")
        parts.append(f"{after['device']}, {text}. Median of {after['runs']}, caches warm.\n")
    return "".join(parts)


def write_page(task, record):
    path = task.path("README.md")
    text = task.text("README.md")
    part = re.compile(re.escape(BEGIN) + r".*?" + re.escape(END), re.S)
    if len(part.findall(text)) != 1:
        raise tasks.BadTask(f"{path}: needs one '{BEGIN.strip()}' ... '{END}'")
    with open(path, "w", encoding="utf-8") as file:
        file.write(part.sub(lambda _: BEGIN + "\n" + sentence(record) + "\n" + END, text))


def measure(all_tasks, builds, path):
    """Times every start that is right, and every solution; the pages have the result afterwards. What
    can't be timed keeps the record that it has."""
    if "gpu" not in builds:
        fail("exercise --measure needs a GPU, and nvcc", 2)
    records, status = [], 0
    for task in all_tasks:
        if not task.timed():
            continue
        before, why = {}, ""
        if task.goal["start"] == judge.COUNTERS or task.goal.get("timed_start", False):
            before, why = time_of(task, task.start(), builds["gpu"])
        after, reason = time_of(task, task.solved(), builds["gpu"])
        if reason or why:
            print(f"{task.name}: not timed: {reason or why}", file=sys.stderr)
            status = 1
            continue
        record = {"exercise": task.name, "before": before, "after": after}
        records.append(record)
        print(f"{task.name}: {sentence(record)}", end="", flush=True)
        write_page(task, record)
    if records:
        device = next(iter(records[0]["after"].values()))["device"]
        path = path or RESULTS.format(re.sub(r"\W+", "_", device.replace("NVIDIA ", "").lower()))
        new = {record["exercise"] for record in records}
        old = json.loads(files.read_existing(path) or "[]")
        write_json(path, records + [record for record in old if record["exercise"] not in new])
    return status
