"""The marks of a class, as far as they need no checker: schemas_test.py has that."""
import dataclasses
import json
import unittest
import xml.etree.ElementTree as xml

from common.show import files
from common.tests.folder_test import FolderTest
from common.variants import grade
from common.variants import task as tasks

TASK = {task.name: task for task in tasks.read_all()}


def record(name, kind="", met=True, **members):
    goals = [{"name": goal["name"], "problem": "alexnet_conv1", "counted": 7.5, "relation": "at_most",
              "bound": 8, "met": met} for goal in TASK[name].goal["goals"]]
    return {"exercise": name, "file": f"anna/{name}.cu", "kind": kind, "goals": goals,
            "message": kind and "tail.cu:3: why & where <here>"} | members


RECORDS = [record("coalesce"), record("race", "counters", met=False), record("tail", "data race"),
           record("first_kernel", score=12)]


class Written(FolderTest):
    def written(self, name, chosen=("coalesce", "race", "tail", "first_kernel", "swizzle")):
        grade.write(self.path(name), [TASK[each] for each in chosen], RECORDS, 4.2, "no network")
        return self.path(name)


class Marks(Written):
    def test_half_is_for_what_is_right_and_half_for_the_goals(self):
        found = json.loads(files.read(self.written("results.json")))
        points = {}
        for test in found["tests"]:
            self.assertEqual(test["status"], "passed" if test["score"] else "failed")
            name = test["name"].partition(":")[0]
            score, most = points.get(name, (0, 0))
            points[name] = score + test["score"], most + test["max_score"]
        for name, share in (("coalesce", 10), ("race", 5), ("tail", 0), ("first_kernel", 10), ("swizzle", 0)):
            self.assertAlmostEqual(points[name][0], share, places=2, msg=name)
            self.assertAlmostEqual(points[name][1], 10, places=2, msg=name)
        self.assertEqual(found["leaderboard"], [{"name": "first_kernel", "value": 12, "order": "asc"}])

    def test_what_is_handed_in_twice_counts_once(self):
        task, right, wrong = TASK["coalesce"], RECORDS[0], record("coalesce", "data race")
        once = grade.gradescope([(task, right)], 1, "")["tests"]
        for records in ([right, right], [wrong, right], [right, wrong]):
            self.assertEqual(grade.gradescope([(task, each) for each in records], 1, "")["tests"], once)

    def test_what_has_passed_for_no_points_has_passed(self):
        task = dataclasses.replace(TASK["coalesce"], goal=TASK["coalesce"].goal | {"points": 0})
        self.assertEqual({mark["status"] for mark in grade.marks_of(task, RECORDS[0])}, {"passed"})

    def test_junit_says_the_same(self):
        found = xml.parse(self.written("results.xml")).getroot()
        marks = json.loads(files.read(self.written("results.json")))["tests"]
        self.assertEqual([case.get("name") for case in found.iter("testcase")],
                         [mark["name"] for mark in marks])
        self.assertEqual(sum(int(suite.get("failures")) for suite in found),
                         sum(mark["status"] == "failed" for mark in marks))


if __name__ == "__main__":
    unittest.main()
