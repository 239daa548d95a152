"""The marks of a class: judged kernels as what graders read, Gradescope's results.json or JUnit's XML.

Half of an exercise's points are for a kernel that is right, and free of races and stray accesses. The other
half is shared by the goals; each must be met on all problems. docs/teaching.md says more.
"""
import datetime
import os
import platform
import re
import xml.etree.ElementTree as xml

from common.show import files
from common.show.support import write_json
from common.variants.task import number

POINTS = 10  # of an exercise whose goal.json names no others


def marks_of(task, record):
    """[{name, max_score, score, output}] of one exercise; `record` is None where nothing was handed in."""
    points, goals = task.goal.get("points", POINTS), {goal["name"]: goal for goal in task.goal["goals"]}
    counted = record and record["kind"] in ("", "counters")
    said = "not handed in" if record is None else record["message"] or "passed"
    marks = [("right, without races or stray accesses", 1 if goals else 2, counted,
              "passed" if counted else said)]
    for goal in goals:
        own = [each for each in record["goals"] if each["name"] == goal] if counted else []
        missed = next((each for each in own if not each["met"]), None)
        text = "met" if own and not missed else "not judged: " + said if not own else (
            f"counted {number(missed['counted'], missed['bound'])}, must be "
            f"{missed['relation'].replace('_', ' ')} {number(missed['bound'])}, on {missed['problem']}")
        marks.append((goal, 1 / len(goals), own and not missed, text))
    return [{"name": f"{task.name}: {name}", "max_score": round(points / 2 * share, 4),
             "score": round(points / 2 * share, 4) if passed else 0, "output": text,
             "status": "passed" if passed else "failed"}
            for name, share, passed, text in marks]


def gradescope(entries, seconds, sandbox):
    """`entries`: [(task, record or None)] of one student: of several files of an exercise the best."""
    best = {}
    for task, record in entries:
        marks = [{**mark, **{key: task.goal[key] for key in ["visibility"] if key in task.goal}}
                 for mark in marks_of(task, record)]
        best[task.name] = max(best.get(task.name, marks), marks,
                              key=lambda each: sum(mark["score"] for mark in each))
    found = {"output": sandbox, "execution_time": round(seconds, 1), "tests": sum(best.values(), [])}
    board = [{"name": record["exercise"], "value": record["score"], "order": "asc"}
            for _, record in entries if record and record.get("score") is not None]
    return found | ({"leaderboard": board} if board else {})


def junit(entries, seconds, sandbox):
    """One test suite for each exercise and file, as Ant writes it: the strictest readers want that."""
    top, now = xml.Element("testsuites"), datetime.datetime.now().isoformat(timespec="seconds")
    for i, (task, record) in enumerate(entries):
        marks = marks_of(task, record)
        time = str(round(seconds / len(entries), 3))
        suite = xml.SubElement(
            top, "testsuite", id=str(i), package="exercises", name=record["file"] if record else task.name,
            timestamp=now, hostname=platform.node() or "localhost", tests=str(len(marks)), errors="0",
            failures=str(sum(mark["status"] == "failed" for mark in marks)), skipped="0", time=time)
        xml.SubElement(suite, "properties")
        for mark in marks:
            case = xml.SubElement(suite, "testcase", classname=task.name, name=mark["name"], time="0")
            if mark["status"] == "failed":
                xml.SubElement(case, "failure", type=record["kind"] if record else "missing",
                               message=mark["output"]).text = mark["output"]
        xml.SubElement(suite, "system-out").text = sandbox
        xml.SubElement(suite, "system-err")
    xml.indent(top)
    text = xml.tostring(top, encoding="unicode", xml_declaration=True) + "\n"
    return re.sub("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", text)  # what XML may not hold


def write(path, chosen, records, seconds, sandbox):
    """Writes the marks; all of the exercises `chosen` must be handed in. A file called .xml is JUnit's."""
    handed_in = {record["exercise"] for record in records}
    by_name = {task.name: task for task in chosen}
    entries = [(by_name[record["exercise"]], record) for record in records]
    entries += [(task, None) for task in chosen if task.name not in handed_in]
    if os.path.splitext(path)[1] == ".xml":
        files.write(path, junit(entries, seconds, sandbox))
    else:
        write_json(path, gradescope(entries, seconds, sandbox))
