"""Tests of the exercises: what lies in their folders, the command, and what the judge says of kernels
that are right, wrong, or a danger to the machine.

Without arguments the tests that need no build. `judge`: a sample of the exercises, and the dangers;
`judge --all`: all exercises. These need build/sim-count with exercise_judge.
"""

import concurrent.futures
import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

from common.tests.folder_test import called

from common.variants import exercise, golf, gpu, handin, judge, variants
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
                self.assertNotEqual(task.solved(), task.start())
                self.assertLessEqual(task.text("solution.cu").count("\n"), 25)
                self.assertGreaterEqual(len(task.mistakes()), 3)
                self.assertEqual(len(task.hints()), 3)
                page = task.text("README.md")
                for part in ("**The task.**", "**Predict.**", gpu.BEGIN, gpu.END,
                             f"./ladder exercise {task.name}"):
                    self.assertIn(part, page)
                self.assertIn(f'{{"{task.name}", ', task.start())

    def test_the_page_lists_each_in_order(self):
        rows = [f"| [{task.name}](../{task.rung}/exercises/{task.name}/README.md) | {task.rung[:2]} | "
                f"{task.goal['idea']} |" for task in TASKS]
        page = (ROOT / "docs/exercises.md").read_text(encoding="utf-8")
        self.assertEqual([line for line in page.split("\n") if line.startswith("| [")], rows)

    def test_every_goal_is_a_formula_with_a_reason(self):
        for task in TASKS:
            with self.subTest(task.name):
                self.assertTrue(task.varied(1))
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

    def test_goals_on_what_did_not_run_are_missed(self):
        for task in TASKS:
            for counted in ({}, {problem: [] for problem in task.counted()}):
                results = task.results(counted)
                self.assertTrue(results and not any(result.met for result in results), task.name)
                self.assertIn("Nothing was counted", results[0].think)


class Messages(unittest.TestCase):
    def test_the_simulators_words_about_the_runtime_are_left_out(self):
        self.assertEqual(judge.plainer(
            "small integers: kernel launch: an illegal memory access was encountered (kernel f, block (0,0,0), thread "
            "(1,0,0): data race: reads 4 bytes at a.cu:3; and no barrier lies between)"),
            "f, block (0,0,0), thread (1,0,0) reads 4 bytes at a.cu:3; and no barrier lies between")

    def test_kinds(self):
        for message, kind in (("data race: x", judge.RACE), ("4 bytes out of bounds", judge.STRAY),
                              ("that nobody has written", judge.UNWRITTEN), ("=1, expected 2", judge.WRONG),
                              ("waits for ever at", judge.BARRIER), ("has come to no end", judge.ENDLESS)):
            self.assertEqual(judge.kind_of(message), kind)

    def test_names_with_arguments(self):
        self.assertEqual(handin.line_with("\n\nvoid f(a::B);\n", "x::(anonymous namespace)::f(a::B, int)"), 3)


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
        self.assertIn(f"0 of {len(TASKS)} done", text)

    def test_hints_come_one_after_the_other_and_are_remembered(self):
        texts = [self.run_command("coalesce", "--hint")[1] for _ in range(4)]
        self.assertIn("hint 1 of 3", texts[0])
        self.assertIn("hint 3 of 3", texts[2])
        self.assertIn("hint 3 of 3", texts[3])
        self.assertEqual(exercise.Notes().of("coalesce")["hints"], 3)

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
        for words in (["no_such"], ["--nonsense"], ["tail", "--hint", "--json", "x.json"], ["--hint"],
                      ["--folder", "x"], ["tail", "--folder", "x"], ["tail", "--all"], ["--json", "x.json"],
                      ["tail", "--hint", "--show"], ["tail", "--predict", "stores=nan"],
                      ["tail", "--predict", "stores=-5"], ["tail", "--predict", "loads=1"]):
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
        self.assertEqual([result.name for result in task.results({problem: [record]}, on_gpu=True)],
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
    """(Verdict, path, text on the screen) of a kernel."""
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, task.name + ".cu")
        pathlib.Path(source).write_text(text, encoding="utf-8")
        verdict, results = exercise.judge_task(task, source, {"sim-count": Build("sim-count")})
        screen = io.StringIO()
        with contextlib.redirect_stdout(screen):
            exercise.show(task, source, verdict, results, {})
        return verdict, source, screen.getvalue()


class Exercises(unittest.TestCase):
    """Every start fails for its reason, every solution passes, every mistake is seen."""
    chosen = [TASK[name] for name in SAMPLE]

    def test_each(self):
        kernels = []
        for task in self.chosen:
            kernels.append((task, "start", task.start(), task.goal["start"]))
            kernels.append((task, "solution", task.solved(), ""))
            kernels += [(task, mistake.name, mistake.apply(task.solved()), mistake.expect)
                        for mistake in task.mistakes()]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            verdicts = list(pool.map(lambda kernel: judged(kernel[0], kernel[2]), kernels))
        for (task, name, _, expected), (verdict, _, text) in zip(kernels, verdicts):
            with self.subTest(f"{task.name}: {name}"):
                self.assertLessEqual(text.count("\n"), 23, text)  # a screen, with what comes after
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
    def play(self, text):
        with tempfile.TemporaryDirectory() as folder:
            source, found = os.path.join(folder, "golf.cu"), os.path.join(folder, "found.json")
            pathlib.Path(source).write_text(text, encoding="utf-8")
            status, *_ = called(exercise.main, ["--golf", source, "--json", found])
            record, = json.loads(pathlib.Path(found).read_text(encoding="utf-8"))
        return status, record

    def test_our_best_has_the_score_that_its_page_says(self):
        kernel = (ROOT / variants.kernel_of("05_fused_bias")).read_text(encoding="utf-8")
        status, record = self.play(kernel.replace("TM = 12", "TM = 16").replace("(THREADS, 3)", "(THREADS)"))
        self.assertEqual(status, 0, record)
        self.assertIn(f"| {record['score']:,} | stage 05's kernel with `TM = 16`",
                      golf.TASK.text("README.md"))

    def test_zeros_where_it_would_cost_have_no_score(self):
        right = golf.TASK.start()
        status, record = self.play(right.replace("c < shape.C;", "c < shape.C && shape.CRS() <= 200;"))
        self.assertEqual((status, record["kind"], record["score"]), (1, judge.WRONG, None))


# Kernels that mean harm, or are odd: (verdict, words that its message has, the text where it must say so;
# then what is put in the place of what in first_kernel's solution).
KERNEL, ENQUEUE, FILE = "  float sum = 0.0f;", "  add_bias(conv, stream);", "constexpr int THREADS"
LOOPS = ("sum += image[(c * shape.H + h) * shape.W + w] * filter[(c * shape.R + r) * shape.S + s]")
HOSTILE = {
    "does not compile": (judge.COMPILE, "error: ", "nothing", KERNEL, "int x = nothing;"),
    "nowhere defined": (judge.REFUSED, "nowhere defined", "gone", ENQUEUE, "extern void gone(); gone();"),
    "80 KB shared": (judge.REFUSED, "80,000 bytes", "much", KERNEL,
                     "__shared__ float much[20000]; much[threadIdx.x] = 1;"),
    "endless loop": (judge.ENDLESS, "no end after", "shape.stride_h - s", "++c", "c += 0"),
    "endless barriers": (judge.ENDLESS, "no end after", "while", "  if (kpq",
                         "  while (true) __syncthreads();\n  if (kpq"),
    "endless in a register": (judge.ENDLESS, "no end", "", KERNEL, "if (kpq >= 0) for (;;) {}"),
    "endless on the host": (judge.ENDLESS, "no end", "volatile", ENQUEUE, "volatile int x = 1; while (x) {}"),
    "no stage": (judge.CRASH, "holds 0 stages", "", "CONVLADDER_REGISTER_STAGE(", "const Stage unused("),
    "divides by zero": (judge.CRASH, "divides", "const int x", KERNEL,
                        "const int x = 7 / (shape.K - shape.K); if (x) return;"),
    "null pointer": (judge.CRASH, "SIGSEGV", "volatile", ENQUEUE, "*reinterpret_cast<volatile int*>(8) = 1;"),
    "100 GB": (judge.CRASH, "memory", "", ENQUEUE,
               "float* volatile x = new float[25000000000ull]; delete[] x;"),
    "writes everywhere": (judge.STRAY, "writes 4 bytes of global memory out of bounds", "1000003",
                          "_pitch() + kpq]", "_pitch() + kpq * 1000003]"),
    # Right where it is checked, wrong where it is counted.
    "wrong on large ones": (judge.WRONG, "expected", "", KERNEL, "float sum = p >= 40 ? 1e9f : 0.0f;\n#"),
    # Nothing is counted.
    "kernel renamed": (judge.COUNTERS, "loads per warp and tap: -", "", "conv2d", "conv2e"),
    "without the kernel": (judge.UNWRITTEN, "never written", "", "  launch(conv2d", "  if (0) launch(conv2d"),
    "host in the kernel's place": (judge.CRASH, "device memory outside of a kernel", "conv.output[0]",
                                   ENQUEUE, "conv.output[0] = conv.input[0];"),
    # What the counts don't see.
    "no_sanitize": (judge.REFUSED, "attribute no_sanitize", "helper", FILE,
                    "__attribute__((noinline, no_sanitize(\"thread\"))) float helper(const float* x) "
                    "{ return *x; }", LOOPS, "sum += helper(image)"),
    "no_sanitize as C++ has it": (judge.REFUSED, "no_sanitize", "helper", FILE,
                                  "[[gnu::noinline, gnu::no_sanitize_thread]] float helper(const float* x) "
                                  "{ return *x; }", LOOPS, "sum += helper(image)"),
    "assembly": (judge.REFUSED, "assembly", "asm", KERNEL,
                 "float y; asm volatile(\"movss (%1), %0\" : \"=x\"(y) : \"r\"(image));"),
    "pragma": (judge.REFUSED, "pragma", "#pragma", FILE, "#pragma GCC optimize(\"O0\")"),
    "condition": (judge.REFUSED, "#ifdef", "#ifdef", FILE, "#ifdef __CUDACC__\n#endif"),
    "memcpy": (judge.REFUSED, "memcpy is called", "__builtin_memcpy", KERNEL,
               "float y[8]; __builtin_memcpy(y, filter, 32); if (y[7] == 1e9f) return;"),
    "string in a kernel": (judge.REFUSED, "would not be counted", "", KERNEL,
                           "std::string y(reinterpret_cast<const char*>(image), kpq); "
                           "if (y[0] == 77) return;"),
    "function by its address": (judge.REFUSED, "would not be counted", "", FILE,
                                "inline float (*volatile taken)(float) = [](float x) { return x; };",
                                LOOPS, "sum += taken(image[0])"),
    "atomics": (judge.REFUSED, "atomic operation", "", KERNEL,
                "__atomic_fetch_add(reinterpret_cast<int*>(output), 1, 0);"),
    "static of a function": (judge.REFUSED, "initialised when", "static int once", KERNEL,
                             "static int once = static_cast<int>(threadIdx.x); if (once == 77) return;"),
    # Ways out of the process, and into the simulator.
    "counts taken away": (judge.REFUSED, "take_kernel_counts", "take_kernel_counts", ENQUEUE,
                          "simulator::take_kernel_counts();"),
    "ends the process": (judge.REFUSED, "exit", "std::exit", ENQUEUE, "std::exit(0);"),
    "fork": (judge.REFUSED, "fork", "fork", FILE, "extern \"C\" int fork(); const int child = fork();"),
    "setsid": (judge.REFUSED, "setsid", "setsid", FILE, "extern \"C\" int setsid(); const int s = setsid();"),
    "forged findings": (judge.REFUSED, "write", "write(int", FILE,
                        "extern \"C\" long write(int, const void*, unsigned long);\n"
                        "const long forged = write(1, \"\\n{\\\"end\\\":true}\\n\", 15);"),
    "printed findings": ("", "", "", ENQUEUE, "std::printf(\"\\n{\\\"end\\\": true}\\n\");"),
    "a library's function redefined": ("", "", "", FILE, "}\nstruct Comparison;\ninline int compare() "
                                       "{ return 1; }\nnamespace {"),
}


class Dangers(unittest.TestCase):
    """Whatever a kernel does, there is a message with file and line."""

    def test_hostile_kernels(self):
        texts = {name: TASK["first_kernel"].solved() for name in HOSTILE}
        for name, (_, _, _, *edits) in HOSTILE.items():
            for place, new in zip(edits[::2], edits[1::2]):
                self.assertIn(place, texts[name])
                if place in (KERNEL, ENQUEUE, FILE):
                    new = new[:-1] + "//" + place if new.endswith("#") else f"{new}\n{place}"
                texts[name] = texts[name].replace(place, new)
        with (unittest.mock.patch.object(TASK["first_kernel"], "seconds", 3),
              concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool):
            found = list(pool.map(lambda text: judged(TASK["first_kernel"], text), texts.values()))
        for (name, (kind, message, at, *_)), (verdict, source, _) in zip(HOSTILE.items(), found):
            with self.subTest(name):
                self.assertEqual(verdict.kind, kind, verdict.message)
                self.assertRegex(verdict.message, message or "^$")
                if at:
                    line = 1 + texts[name][:texts[name].index(at)].count("\n")
                    self.assertRegex(verdict.message, rf"{os.path.basename(source)}:{line}\b")

    def test_json_of_a_folder_of_many(self):
        with tempfile.TemporaryDirectory() as folder:
            right = TASK["first_kernel"].solved()
            for name, text in (("anna", right), ("bela", right.replace(KERNEL, "int x = nothing;"))):
                os.mkdir(os.path.join(folder, name))
                pathlib.Path(folder, name, "first_kernel.cu").write_text(text, encoding="utf-8")
            path = os.path.join(folder, "found.json")
            status = called(exercise.main, ["--all", "--folder", folder, "--json", path])[0]
            found = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        self.assertEqual(status, 1)
        self.assertEqual([record["status"] for record in found], ["pass", "fail"])
        self.assertEqual(found[1]["kind"], judge.COMPILE)
        self.assertTrue(all(goal["met"] for goal in found[0]["goals"]))


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
