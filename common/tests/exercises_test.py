"""Tests of the exercises: what lies in their folders, the command, and what the judge says of kernels
that are right, wrong, or a danger to the machine.

Without arguments the tests that need no build. `judge`: a sample of the exercises, and the dangers;
`judge --all`: all exercises. These need build/sim-count with exercise_judge.
"""

import concurrent.futures
import json
import os
import pathlib
import sys
import tempfile
import time
import unittest
import unittest.mock

from common.tests.folder_test import called

from common.variants import exercise, golf, gpu, judge
from common.command import new_stage
from common.variants.build import Build
from common.variants import task as tasks

ROOT = pathlib.Path(__file__).resolve().parents[2]

SAMPLE = ("tail", "race")  # in every run of the tests
TASKS = tasks.read_all()
TASK = {task.name: task for task in TASKS}


class Folders(unittest.TestCase):
    def test_there_are_fourteen_and_no_name_is_there_twice(self):
        names = [task.name for task in TASKS]
        self.assertGreaterEqual(len(names), 14)
        self.assertEqual(len(set(names)), len(names))

    def test_each_is_short_with_three_mistakes_three_hints_and_a_page(self):
        for task in TASKS:
            with self.subTest(task.name):
                self.assertNotEqual(task.solved(), task.text("start.cu"))
                self.assertLessEqual(task.text("solution.cu").count("\n"), 25)
                self.assertGreaterEqual(len(task.mistakes()), 3)
                self.assertEqual(len(task.hints()), 3)
                page = task.text("README.md")
                for part in ("**The task.**", "**Predict.**", gpu.BEGIN, gpu.END,
                             f"./ladder exercise {task.name}"):
                    self.assertIn(part, page)
                self.assertIn(f'{{"{task.name}", ', task.text("start.cu"))

    def test_the_page_lists_each_in_order(self):
        rows = [f"| [{task.name}](../{task.rung}/exercises/{task.name}/README.md) | {task.rung[:2]} | "
                f"{task.goal['idea']} |" for task in TASKS]
        page = (ROOT / "docs/exercises.md").read_text(encoding="utf-8")
        self.assertEqual([line for line in page.split("\n") if line.startswith("| [")], rows)

    def test_every_goal_is_a_formula_with_a_reason(self):
        for task in TASKS:
            with self.subTest(task.name):
                metrics = {metric: 1 for names in tasks.COUNTERS.values() for metric in names}
                kernels = [{**metrics, "kernel": name} for name in ("conv2d", "add_parts")]
                results = task.results({problem: kernels for problem in task.counted()})
                self.assertEqual(len(results), len(task.goal["goals"]) * len(task.counted()))
                for goal in task.goal["goals"]:
                    self.assertTrue(goal["because"] and goal["think"], goal["name"])
                self.assertEqual(set(task.predictable({problem: kernels for problem in task.counted()})),
                                 set(task.goal["predict"]))


class Formulas(unittest.TestCase):
    def test_arithmetic(self):
        self.assertEqual(tasks.evaluate("2 * ceil(K, 32) + max(1, -N)", {"K": 33, "N": 4}), 5)
        nothing = tasks.evaluate("K / 0", {"K": 1})
        self.assertNotEqual(nothing, nothing)  # NaN meets no goal

    def test_nothing_else(self):
        for formula in ("__import__('os')", "K.real", "'a'", "[K]", "K ** 9", "lambda: 1", "2 *"):
            with self.subTest(formula), self.assertRaises(tasks.BadTask):
                tasks.evaluate(formula, {"K": 1})

    def test_extents_of_a_problem(self):
        row = judge.problems()["alexnet2012_conv2"]
        names = tasks.extents(row)
        self.assertEqual([names[key] for key in ("C", "K", "P", "Q", "CRS")], [48, 128, 27, 27, 1200])

    def test_numbers(self):
        self.assertEqual([tasks.number(value) for value in (550000, 8.78432, float("nan"), 0)],
                         ["550,000", "8.784", "-", "0"])
        self.assertEqual([exercise.parse_number(text) for text in ("6.6M", "1,234", " 2e3 ")],
                         [6600000, 1234, 2000])


class Messages(unittest.TestCase):
    def test_the_simulators_words_about_the_runtime_are_left_out(self):
        self.assertEqual(judge.plainer(
            "small integers: kernel launch: illegal memory access (kernel f, block (0,0,0), thread "
            "(1,0,0): data race: reads 4 bytes at a.cu:3; and no barrier lies between)"),
            "f, block (0,0,0), thread (1,0,0) reads 4 bytes at a.cu:3; and no barrier lies between")

    def test_kinds(self):
        for message, kind in (("data race: x", judge.RACE), ("4 bytes out of bounds", judge.STRAY),
                              ("that nobody has written", judge.UNWRITTEN), ("=1, expected 2", judge.WRONG),
                              ("waits for ever at", judge.BARRIER), ("has come to no end", judge.ENDLESS)):
            self.assertEqual(judge.kind_of(message), kind)

    def test_names_with_arguments(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.cu")
            pathlib.Path(path).write_text("\n\nvoid f(a::B);\n", encoding="utf-8")
            self.assertEqual(judge.line_with(path, "x::(anonymous namespace)::f(a::B, int)"), 3)


class Command(unittest.TestCase):
    """The parts of the command that judge nothing, in a folder of their own."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        for name, value in (("MINE", self.folder.name),
                            ("NOTES", os.path.join(self.folder.name, "notes.json"))):
            self.addCleanup(setattr, exercise, name, getattr(exercise, name))
            setattr(exercise, name, value)

    def run_command(self, *words):
        return called(exercise.main, list(words))[:2]

    def test_the_list_names_every_exercise_and_the_next(self):
        status, text = self.run_command()
        self.assertEqual(status, 0)
        for task in TASKS:
            self.assertIn(f" {task.name} ", text)
        self.assertIn(f"next   {TASKS[0].name}", text)

    def test_hints_come_one_after_the_other_and_are_remembered(self):
        texts = [self.run_command("coalesce", "--hint")[1] for _ in range(4)]
        self.assertIn("hint 1 of 3", texts[0])
        self.assertIn("hint 3 of 3", texts[2])
        self.assertIn("hint 3 of 3", texts[3])
        self.assertIn("3 hints", self.run_command("--progress")[1])

    def test_the_solution_is_for_those_who_have_passed(self):
        self.assertEqual(self.run_command("tail", "--solution")[0], 1)
        self.assertEqual(self.run_command("tail", "--solution", "--yes")[1], TASK["tail"].solved())

    def test_nothing_written_is_lost(self):
        path = pathlib.Path(self.folder.name, "tail.cu")
        path.write_text("mine", encoding="utf-8")
        self.assertFalse(exercise.make_mine(TASK["tail"]))
        self.run_command("tail", "--reset")
        self.assertEqual(pathlib.Path(self.folder.name, "tail.1.cu").read_text(encoding="utf-8"), "mine")
        self.run_command("tail", "--reset")
        self.assertTrue(pathlib.Path(self.folder.name, "tail.2.cu").exists())

    def test_notes_that_are_no_json_are_kept(self):
        pathlib.Path(exercise.NOTES).write_text("{", encoding="utf-8")
        self.assertEqual(self.run_command()[0], 0)
        self.assertTrue(os.path.exists(exercise.NOTES + ".unreadable"))

    def test_usage_errors(self):
        for words in (["no_such"], ["--nonsense"], ["tail", "--hint", "--json", "x.json"]):
            self.assertEqual(self.run_command(*words)[0], 2, words)


class Gpu(unittest.TestCase):
    """What needs no GPU: from what was read there to goals and pages."""

    def test_launches_of_a_kernel_become_one_record(self):
        launch = {"gpu__time_duration.sum": 5, "launch__grid_size": 10, "launch__block_size": None,
                  "launch__shared_mem_per_block_static": 8192,
                  "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": 7,
                  "sm__inst_executed_pipe_tensor_op_hmma.sum": 3}
        records = gpu.kernels_of([("conv2d", launch), ("add_bias_kernel", launch), ("conv2d", launch)])
        self.assertEqual([record["kernel"] for record in records], ["conv2d", "add_bias_kernel"])
        counters = tasks.counters_of(records, "conv2d")
        names = ("blocks", "loads", "shared_bytes", "launches", "tensor_instructions")
        self.assertEqual([counters[name] for name in names], [20, 14, 8192, 2, 6])
        self.assertNotIn("barriers", counters)  # Nsight Compute has no such counter

    def test_a_goal_on_what_a_gpu_does_not_count_is_left_out(self):
        task = TASK["race"]
        problem = next(iter(task.counted()))
        record = {"kernel": "conv2d", "blocks": 4, tasks.COUNTERS["loads"][0]: 5}
        self.assertEqual([result.name for result in task.results({problem: [record]})],
                         ["loads of the kernel"])

    def test_pages_get_what_was_measured(self):
        timed = {"milliseconds": 2.0, "runs": 50, "device": "NVIDIA X"}
        record = {"before": {"a": {**timed, "milliseconds": 8.0}}, "after": {"a": timed}}
        self.assertEqual(gpu.sentence(record), "NVIDIA X, a: 8 ms at the start, 2 ms solved (÷ 4). "
                                               "Median of 50, caches warm.\n")
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "README.md")
            page.write_text(f"x\n{gpu.BEGIN}\nold\n\n{gpu.END}\ny\n", encoding="utf-8")
            gpu.write_page(tasks.Task("t", folder, {}), record)
            text = page.read_text(encoding="utf-8")
        self.assertEqual(text, f"x\n{gpu.BEGIN}\n{gpu.sentence(record)}\n{gpu.END}\ny\n")


class NewStage(unittest.TestCase):
    def test_its_kernel_is_that_of_stage_01_under_another_name(self):
        text = new_stage.kernel("99_my_idea", "my_idea")
        self.assertIn('CONVLADDER_REGISTER_STAGE({"99_my_idea", "my idea", enqueue, nullptr, false});', text)
        self.assertIn("__global__ void conv2d_my_idea(", text)
        self.assertNotIn("naive", text)

    def test_bad_names(self):
        for words in ([], ["x"], ["99_My"], ["../99_x"], ["01_naive"], ["99_a", "b"]):
            self.assertEqual(called(new_stage.main, words)[0], 2, words)


# --- with the judge ------------------------------------------------------------------------------


def judged(task, text):
    """(Verdict, results, path) of a kernel."""
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, task.name + ".cu")
        pathlib.Path(source).write_text(text, encoding="utf-8")
        builds = {"sim-count": Build("sim-count")}
        verdict, results = exercise.judge_task(task, source, builds)
        return verdict, results, source


class Exercises(unittest.TestCase):
    """Every start fails for its reason, every solution passes, every mistake is seen."""
    chosen = [TASK[name] for name in SAMPLE]

    def test_each(self):
        kernels = []
        for task in self.chosen:
            kernels.append((task, "start", task.text("start.cu"), task.goal["start"]))
            kernels.append((task, "solution", task.solved(), ""))
            kernels += [(task, mistake.name, mistake.apply(task.solved()), mistake.expect)
                        for mistake in task.mistakes()]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            verdicts = list(pool.map(lambda kernel: judged(kernel[0], kernel[2]), kernels))
        for (task, name, _, expected), found in zip(kernels, verdicts):
            with self.subTest(f"{task.name}: {name}"):
                verdict, results, source = found
                _, text, _ = called(exercise.show, task, verdict, results, {})
                self.assertLessEqual(text.count("\n"), 22, text)  # a screen, with what comes after
                text = " ".join(text.split())
                if name in ("start", "solution"):
                    self.assertEqual(verdict.kind, expected, text)
                else:
                    self.assertNotEqual(verdict.kind, "", text)
                    self.assertIn(expected, f"{verdict.kind} {text}")

    def test_a_learners_kernel_on_the_page(self):
        with tempfile.TemporaryDirectory() as folder:
            page, trace = (os.path.join(folder, name) for name in ("page.py", "trace.json"))
            pathlib.Path(page).write_text(
                "import subprocess, sys\n"
                "program, *words = sys.argv[1:]\n"
                "assert words.pop() == '--show'\n"
                f"sys.exit(subprocess.call([program, 'profile', *words, '--trace', {trace!r}]))\n",
                encoding="utf-8")
            with unittest.mock.patch.multiple(exercise, MINE=folder, PAGE=[page],
                                              NOTES=os.path.join(folder, "notes.json")):
                status, *text = called(exercise.main, ["coalesce", "--show"])
            self.assertEqual(status, 0, text)
            traced = json.loads(pathlib.Path(trace).read_text(encoding="utf-8"))
        self.assertEqual([stage["stage"] for stage in traced["stages"]], ["coalesce"])


class Golf(unittest.TestCase):
    def test_our_best_has_the_score_that_its_page_says(self):
        builds = {"sim-count": Build("sim-count")}
        (status, records), *text = called(golf.play, os.path.join(golf.FOLDER, "best.cu"), builds)
        self.assertEqual(status, 0, text)
        page = pathlib.Path(golf.FOLDER, "README.md").read_text(encoding="utf-8")
        self.assertIn(f"| {records[0]['score']:,} | [best.cu](best.cu)", page)


class Dangers(unittest.TestCase):
    """Whatever a kernel does, there is a message with file and line."""
    task = TASK["first_kernel"]
    right = task.solved()

    def expect(self, kind, message, text, at=""):
        begun = time.monotonic()
        verdict, _, source = judged(self.task, text)
        self.assertEqual(verdict.kind, kind, verdict.message)
        self.assertRegex(verdict.message, message)
        if at:
            line = 1 + text[:text.index(at)].count("\n")
            self.assertRegex(verdict.message, rf"{os.path.basename(source)}:{line}\b")
        self.assertLess(time.monotonic() - begun, 20 * max(1, os.getloadavg()[0] / os.cpu_count()))

    def enqueue(self, statement):
        return self.right.replace("  add_bias(conv, stream);", f"  {statement}\n  add_bias(conv, stream);")

    def kernel(self, statement):
        return self.right.replace("  float sum = 0.0f;", f"  {statement}\n  float sum = 0.0f;")

    def test_does_not_compile(self):
        self.expect(judge.COMPILE, "error: ", self.kernel("int x = nothing;"), "nothing")
        self.expect(judge.COMPILE, "nowhere defined", self.enqueue("extern void gone(); gone();"), "gone")
        much = self.kernel("__shared__ float much[20000]; much[threadIdx.x] = 1;")
        self.expect(judge.COMPILE, "80,000 bytes", much, "much")

    def test_comes_to_no_end(self):
        self.expect(judge.ENDLESS, "no end after", self.right.replace("++c", "c += 0"), "shape.stride_h - s")
        barriers = self.right.replace("  if (kpq", "  while (true) __syncthreads();\n  if (kpq")
        self.expect(judge.ENDLESS, "no end after", barriers, "while")
        with unittest.mock.patch.object(judge, "RUN_SECONDS", 2):
            self.expect(judge.ENDLESS, "no end", self.kernel("if (kpq >= 0) for (;;) {}"))
            host = self.enqueue("volatile int x = 1; while (x) {}")
            self.expect(judge.ENDLESS, "no end", host, "volatile")

    def test_crashes(self):
        self.expect(judge.CRASH, "holds 0 stages", "")
        self.expect(judge.CRASH, "ends the process", self.enqueue("std::exit(0);"))
        self.expect(judge.CRASH, "divides",
                    self.kernel("const int x = 7 / (shape.K - shape.K); if (x) return;"), "const int x")
        self.expect(judge.CRASH, "SIGSEGV", self.enqueue("*reinterpret_cast<volatile int*>(8) = 1;"),
                    "volatile")
        vector = "#include <vector>\n" + self.enqueue("std::vector<float> v(25000000000ull);")
        self.expect(judge.CRASH, "memory", vector, "std::vector")

    def test_writes_everywhere(self):
        text = self.right.replace("shape.output_pitch() + kpq]", "shape.output_pitch() + kpq * 1000003]")
        self.expect(judge.STRAY, "writes 4 bytes of global memory out of bounds", text, "1000003")

    def test_json_of_a_folder_of_many(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("anna", self.right), ("bela", self.kernel("int x = nothing;"))):
                os.mkdir(os.path.join(folder, name))
                pathlib.Path(folder, name, "first_kernel.cu").write_text(text, encoding="utf-8")
            path = os.path.join(folder, "found.json")
            status = called(exercise.main, ["--all", "--folder", folder, "--json", path])[0]
            records = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        self.assertEqual(status, 1)
        self.assertEqual([record["status"] for record in records], ["pass", "fail"])
        self.assertEqual(records[1]["kind"], judge.COMPILE)
        self.assertTrue(all(goal["met"] for goal in records[0]["goals"]))


def suite(words):
    loader = unittest.defaultTestLoader
    if words[:1] != ["judge"]:
        cases = [Folders, Formulas, Messages, Command, Gpu, NewStage]
    elif "--all" in words:
        Exercises.chosen = TASKS
        cases = [Exercises, Golf]
    else:
        cases = [Exercises, Dangers]
    return unittest.TestSuite(loader.loadTestsFromTestCase(case) for case in cases)


if __name__ == "__main__":
    outcome = unittest.TextTestRunner(verbosity=1).run(suite(sys.argv[1:]))
    sys.exit(0 if outcome.wasSuccessful() else 1)
