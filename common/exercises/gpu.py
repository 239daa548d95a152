"""The same judgement on a GPU: results, Nsight Compute's counters, and the time."""
import contextlib
import dataclasses
import os
import re
import sys
import tempfile

import judge
import ncu
import task as tasks
from support import fail, write_json

RESULTS = os.path.join(judge.ROOT, "docs", "results", "exercises_{}.json")
BEGIN, END = "<!-- generated: time -->\n", "<!-- end -->"


@dataclasses.dataclass
class GpuVerdict:
    kind: str = ""
    message: str = ""
    values: dict = dataclasses.field(default_factory=dict)  # goal's name: what ncu counted
    timed: dict = dataclasses.field(default_factory=dict)  # problem: record
    note: str = ""  # why there are no counters

    def lines(self):
        for problem, record in self.timed.items():
            yield (f"{record['device']}: {record['milliseconds']:.4g} ms on {problem} (median of "
                   f"{record['runs']}, caches warm)")
        if self.note:
            yield self.note

    def record(self):
        return {"counted": self.values, "note": self.note,
                "milliseconds": {problem: record["milliseconds"]
                                 for problem, record in self.timed.items()}}


@contextlib.contextmanager
def compiled(source, build):
    scratch = os.path.join(build.folder, "exercises")
    os.makedirs(scratch, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        yield build.compile(source, folder), folder


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
    verdict = GpuVerdict()
    try:
        with compiled(source, build) as (program, folder):
            words = judge.run_words(program, folder,
                                    {"--check": task.checked(), "--time": task.timed()})
            done = judge.limited(words, folder, None)
            found = judge.Verdict()
            judge.take_findings(found, judge.read_findings(os.path.join(folder, "findings")),
                                program, source)
            verdict.kind, verdict.message, verdict.timed = found.kind, found.message, found.timed
            if done.returncode != 0 and not verdict.kind:
                verdict.kind = judge.CRASH
                verdict.message = f"ended with status {done.returncode}"
            if verdict.kind:
                return verdict
            counted = {}
            for problem, row in task.counted().items():
                words = judge.run_words(program, folder, {"--count": {problem: row}})
                counted[problem] = kernels_of(ncu.run(list(ncu.ALL), words)[0])
            verdict.values = {result.name: result.value for result in task.results(counted)}
    except judge.Failed as failure:
        verdict.kind, verdict.message = failure.kind, str(failure)
    except ncu.NcuError as error:
        verdict.note = f"no counters of the GPU: {error}"
    return verdict


def time_of(task, text, build):
    """{problem: record} of a kernel that is right; else why it has none."""
    try:
        with tempfile.NamedTemporaryFile("w", suffix=".cu", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            return time_of_file(task, file.name, build)
    except judge.Failed as failure:
        return {}, str(failure)


def time_of_file(task, source, build):
    with compiled(source, build) as (program, folder):
        words = judge.run_words(program, folder, {"--check": task.checked(), "--time": task.timed()})
        judge.limited(words, folder, None)
        found = judge.Verdict()
        judge.take_findings(found, judge.read_findings(os.path.join(folder, "findings")), program,
                            source)
        return (found.timed, "") if not found.kind else ({}, found.kind)


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
    """Times every start that is right, and every solution; the pages have the result afterwards."""
    if "gpu" not in builds:
        fail("exercise --measure needs a GPU, and nvcc", 2)
    records, status = [], 0
    for task in all_tasks:
        if not task.timed():
            continue
        before, why = {}, "not right"
        comparable = task.goal["start"] == judge.COUNTERS or task.goal.get("timed_start", False)
        if comparable:
            before, why = time_of(task, task.text("start.cu"), builds["gpu"])
        after, reason = time_of(task, task.solved(), builds["gpu"])
        if not after or comparable and not before:
            print(f"{task.name}: not timed: {reason or why}", file=sys.stderr)
            status = 1
            continue
        record = {"exercise": task.name, "before": before, "after": after}
        records.append(record)
        print(f"{task.name}: {sentence(record)}", end="", flush=True)
        write_page(task, record)
    if records:
        device = next(iter(records[0]["after"].values()))["device"]
        write_json(path or RESULTS.format(re.sub(r"\W+", "_", device.replace("NVIDIA ", "").lower())),
                   records)
    return status, records
