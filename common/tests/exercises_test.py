"""Tests of the exercises: what lies in their folders, the command, and what the judge says of kernels
that are a danger to the machine. (Of those that are right or have a mistake: ./ladder variant.)

Without arguments the tests that need no build. `judge`: the dangers; these need build/sim-count with
exercise_judge.
"""

import collections
import concurrent.futures
import dataclasses
import io
import json
import os
import pathlib
import re
import signal
import sys
import tempfile
import time
import types
import unittest
import unittest.mock
import xml.etree.ElementTree

from common.command import new_stage
from common.measure import ncu
from common.show import files
from common.show.files import ROOT
from common.tests.folder_test import FolderTest, called
from common.variants import exercise, handin, judge
from common.variants import task as tasks
from common.variants.build import Build, BuildError, Failed, run_limited, sandbox

TASKS = tasks.read_all()
TASK = {task.name: task for task in TASKS}


class Folders(unittest.TestCase):
    def test_each_stage_has_one_the_fastest_has_two_and_no_name_is_there_twice(self):
        stages = collections.Counter(task.stage for task in TASKS)
        self.assertEqual(sorted(stages), files.lessons())
        self.assertGreaterEqual(stages["15_copy_engine"], 2)
        self.assertEqual(len({task.name for task in TASKS}), len(TASKS))

    def test_each_is_short_with_three_mistakes_three_hints_and_a_page(self):
        for task in TASKS:
            with self.subTest(task.name):
                self.assertNotEqual(task.solved(), task.start())
                self.assertLessEqual(task.text("solution.cu").count("\n"), 25)
                self.assertGreaterEqual(len(list(task.variants())), 2 + 3)
                self.assertEqual(len(task.hints()), 3)
                page = task.text("README.md")
                for part in ("**The task.**", "**Predict.**", "<!-- generated: time -->",
                             f"./ladder exercise {task.name}"):
                    self.assertIn(part, page)
                self.assertIn(f'{{"{task.name}", ', task.start())

    def test_a_page_whose_clock_hardly_moves_says_so_first(self):
        for task in TASKS:
            page = task.text("README.md")
            first = page.split("\n\n")[1]
            moved = [float(times) for times in re.findall(r"\(÷ ([\d.]+)\)", page)]
            with self.subTest(task.name):
                if not moved or min(moved) < 1.3:
                    self.assertRegex(first, r"(?s)^\*.*\bclock\b.*\blesson\b.*\*$")

    def test_the_page_lists_each_in_order(self):
        minutes = dict(re.findall(r"(\w+) (\d+)[, ]", files.read(os.path.join(ROOT, "docs/teaching.md"))))
        rows = [f"| [{task.name}](../{task.stage}/exercises/{task.name}/README.md) | {task.stage[:2]} | "
                f"{task.goal['idea']} | {minutes.get(task.name)} |" for task in TASKS]
        page = files.read(os.path.join(ROOT, "docs/exercises.md"))
        self.assertEqual([line for line in page.split("\n") if line.startswith("| [")], rows)

    def test_every_goal_is_a_formula_with_a_reason(self):
        for task in TASKS:
            with self.subTest(task.name):
                self.assertTrue(task.varied(1))
                self.assertLessEqual({key.partition(": ")[0] for key in task.goal.get("think", {})},
                                     {key.partition(": ")[0] for key in exercise.THOUGHTS})
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

    def test_what_is_no_formula_is_said(self):
        for formula in ("__import__('os')", "K + J", "K + 'a'", "2 *", "9**9**9", "9* *9", "K.real", "",
                        "K(1)", "K or 2", "min((1,) * 1000000000)", "'a' * 99999999999", "1\0", "1\n+1",
                        "\ud800", "(" * 199 + "K", "+".join(["K"] * 100000), "0x" + "f" * 1000000, "9" * 5000,
                        "min(" + ",".join(["K"] * 1000000) + ")"):
            begun = time.process_time()
            with self.subTest(formula[:40]), self.assertRaisesRegex(tasks.BadTask, "^[^\n]{1,150}$"):
                tasks.evaluate(formula, {"K": 1})
            self.assertLess(time.process_time() - begun, 1)
        for formula in ("1e999", "ceil(1e308 * 10)", "9" * 390):  # too large, which meets no goal
            self.assertNotEqual(*[tasks.evaluate(formula, {})] * 2)

    def test_too_many_arguments(self):
        with self.assertRaisesRegex(tasks.BadTask, r"^'ceil\(K, 2, 3\)': ceil\(\) takes"):
            tasks.evaluate("ceil(K, 2, 3)", {"K": 1})

    def test_extents_of_a_problem(self):
        row = tasks.problems()["alexnet2012_conv2"]
        names = tasks.extents(row)
        self.assertEqual([names[key] for key in ("C", "K", "P", "Q", "CRS")], [48, 128, 27, 27, 1200])

    def test_numbers(self):
        self.assertEqual([tasks.number(value) for value in (550000, 8.78432, float("nan"), 0)],
                         ["550,000", "8.784", "-", "0"])
        self.assertEqual([tasks.number(value, 2) for value in (2.00024, 2, 3)], ["2.00024", "2", "3"])
        self.assertEqual([exercise.parse_number(text) for text in ("6.6M", "1,234", " 2e3 ")],
                         [6600000, 1234, 2000])

    def test_a_teachers_mistakes_are_said_before_anybody_is_judged(self):
        first = '"like": "tail"'
        page = files.read(os.path.join(ROOT, "docs/teaching.md"))
        example = re.search(r"```json(.*?)```", page, re.S)
        goal = '"name": "a", "counter": "loads", "think": ""'
        for text in (example[1], "{", "null", "[]", "{}", '{"like": "nosuch"}', "[" * 9000,
                     f'{{{first}, "goals": null}}',
                     *(f"{{{first}, {wrong}}}" for wrong in (
                         '"points": "x"', '"points": -1', '"points": NaN', '"count": []', '"check": null',
                         '"count": [{"n": 1}]', '"count": [{"shape": "nosuch"}]',
                         '"count": [{"shape": "nasty_primes", "n": 0}]', '"vary": {"k": [9, 3]}',
                         '"vary": {"k": ["a", "b"]}', '"goals": [{"name": "a"}]', '"point": 5',
                         '"check": [{"shape": "nasty_primes", "c": 7.5}]', '"vary": {"kk": [3, 9]}',
                         '"check": [{"shape": "nasty_primes", "n": 100000}]', '"vary": {"h": [1, 400]}',
                         '"count": [{"shape": "nasty_primes"}], "score": "1e308 * 10"',
                         f'"goals": [{{{goal}, "at_most": {"9" * 400}}}]',
                         '"predict": {' + ", ".join(f'"k{i}": "loads"' for i in range(9999)) + "}",
                         ", ".join(f'"k{i}": 1' for i in range(9999)), f'"points": {"9" * 400}',
                         '"check": [{"shape": "nasty_primes", "bias": 2}]', '"visibility": "nosuch"',
                         '"count": [{"shape": "nasty_primes", "groups": 2}]', '"predict": {"a": "b"}',
                         f'"goals": [{{{goal}, "at_most": 1}}, {{{goal}, "at_most": 2}}]', '"points": true',
                         '"think": "a text"', '"think": {"wrong result": 5}', '"vary": {"k": [3, 9, 12]}',
                         '"goals": {}', '"goals": [5]', '"score": "nosuch"', '"vary": {"groups": [1, 4]}',
                         f'"goals": [{{{goal}, "kernel": "conv3d", "at_most": 1}}]',
                         f'"goals": [{{{goal}, "at_most": "2,5"}}]',
                         '"next": null', f'"goals": [{{{goal}, "at_most": 1, "at_least": 1}}]',
                         '"goals": [{"counter": "loads", "at_most": 1, "think": ""}]', '"watch": "shard"',
                         '"think": {"wrong": "a text"}', '"start": "race"', '"points": 1, "points": 2',
                         f'"goals": [{{{goal}, "at_most": "K / (K - K)"}}]', '"time": [{"shape": "nosuch"}]',
                         '"count": [{"shape": "alexnet_conv1", "n": 10}]', '"check": ["nasty_primes"]',
                         '"count": [{"shape": ["x"]}]', f'"goals": [{{{goal}, "at_most": Infinity}}]',
                         f'"goals": [{{{goal}, "at_most": true}}]', '"vary": {"k": [null, 9]}',
                         f'"goals": [{{{goal}, "at_most": "1 if N else 2"}}]', '"start": ["counters"]',
                         '"goals": [{"name": "a", "counter": "import os", "at_most": "1", "think": ""}]'))):
            with self.subTest(text), tempfile.TemporaryDirectory() as folder:
                os.mkdir(os.path.join(folder, "tail"))
                files.write(os.path.join(folder, "tail", "goal.json"), text)
                if text == example[1]:
                    self.assertEqual(len(tasks.read_folder(folder)), 1)
                else:
                    with self.assertRaisesRegex(tasks.BadTask, f"^{re.escape(folder)}[^\n]{{,350}}$"):
                        tasks.read_folder(folder)

        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "y" * 250))
            files.write(os.path.join(folder, "y" * 250, "goal.json"), '{"like": "tail"}')
            self.assertRaisesRegex(tasks.BadTask, "more than 60 letters$", tasks.read_folder, folder)

    def test_a_teachers_texts_too(self):
        own = {key: value for key, value in TASK["coalesce"].goal.items() if key != "like"}
        start, edit = TASK["coalesce"].start(), "start mine: a text\nof tile\n"
        for texts, words in (({"start.cu": start}, ""), ({}, "must be a start.cu"),
                             ({"start.cu": start.replace(tasks.END, "")}, "needs one line"),
                             ({"start.cu": start.encode("latin-1") + b"\xe4"}, "start.cu is not in UTF-8"),
                             ({"start.cu": start, "hints.md": b"\xe4"}, "hints.md is not in UTF-8"),
                             ({"start.cu": start, "solution.cu": b"\xe4"}, "solution.cu is not in UTF-8"),
                             ({"exercise.variant": edit.replace("tile", "tiel")}, "no exercise 'tiel'"),
                             ({"exercise.variant": edit.replace("start", "strat")}, "no word of a variant"),
                             ({"start.cu": start, "exercise.variant": edit}, "have a start each"),
                             ({"start.cu": start, "solution.cu": start}, "the gap alone"),
                             ({"start.cu": start, "hints.md": "a text"}, "no heading"),
                             ({"exercise.variant": edit + "- nosuch text\n+ x\n"}, "stands 0 times"),
                             ({"exercise.variant": edit + edit.replace("mine", "other")}, "with one start"),
                             ({"goal.json": '{"like": "tile"}', "start.cu": start}, "its own start.cu")):
            with self.subTest(words), tempfile.TemporaryDirectory() as folder:
                os.mkdir(os.path.join(folder, "coalesce"))
                texts = {"goal.json": json.dumps(own), **texts}
                for name, text in texts.items():
                    with open(os.path.join(folder, "coalesce", name), "wb") as file:
                        file.write(text if isinstance(text, bytes) else text.encode())
                if words:
                    self.assertRaisesRegex(tasks.BadTask, words, tasks.read_folder, folder)
                else:
                    self.assertEqual(len(tasks.read_folder(folder)), 1)

    def test_goals_on_what_did_not_run_are_missed(self):
        for task in TASKS:
            for counted in ({}, {problem: [] for problem in task.counted()}):
                results = task.results(counted)
                self.assertTrue(results and not any(result.met for result in results), task.name)
                self.assertIn("Nothing was counted", results[0].think)


class Messages(unittest.TestCase):
    def test_the_simulators_words_about_the_runtime_are_left_out(self):
        self.assertEqual(judge.plainer(
            "small integers: kernel launch: an illegal memory access was encountered (kernel f, block "
            "(0,0,0), thread (1,0,0): data race: reads 4 bytes at a.cu:3; and no barrier lies between)"),
            "f, block (0,0,0), thread (1,0,0) reads 4 bytes at a.cu:3; and no barrier lies between")

    def test_a_full_disk(self):
        build = types.SimpleNamespace(on_gpu=False, compile=lambda *_, **__: types.SimpleNamespace(
            returncode=1, stdout="x.s: No space left on device\ncompilation terminated.\n"))
        for free, error in ((1 << 20, BuildError), (1 << 40, Failed)):  # else the text is the kernel's
            with unittest.mock.patch.object(judge.shutil, "disk_usage", lambda _, free=free: (
                    types.SimpleNamespace(free=free))), \
                    self.assertRaisesRegex(error, "No space left on device|compilation terminated"):
                judge.compile_kernel(build, TASK["tail"].path("solution.cu"), "")

    def test_what_is_counted_has_other_data_each_time(self):
        self.assertNotEqual(*(judge.program_words("", "", {}) for _ in range(2)))

    def test_a_hint_is_for_what_is_wrong(self):
        stray, crash = judge.STRAY, judge.CRASH
        for name, kind, message, think in (
                ("first_kernel", stray, "out of bounds, 8 bytes before the begin of the input", "^Rows h"),
                ("first_kernel", stray, "out of bounds, 8 bytes past the end of the filters", "^For which"),
                ("first_kernel", stray, "reads 16 bytes, not aligned to as many", "^An access"),
                ("first_kernel", stray, "but it is __constant__ memory", "^$"),
                ("first_kernel", crash, "prints more than 64 MB by printf()", "^One thread's lines"),
                ("first_kernel", crash, "assertion `x' failed", "^$"),
                ("tile_choice", judge.WRONG, "a thread takes 4, 8, 16 or 32 filters", "^There are kernels"),
                ("epilogue", stray, "out of bounds, 0 bytes past the end of the bias, at", "^For which"),
                ("epilogue", stray, "out of bounds, 4 bytes past a null pointer, at", "^conv.bias is null")):
            with self.subTest(name, message=message):
                self.assertRegex(exercise.thought(TASK[name], judge.Verdict(kind, message)), think)

    def test_what_only_the_judge_writes(self):
        forged = {"refused": judge.FORGED}
        for line, found in (('abc{"end":true}', {"end": True}), ("abc{x}", forged), ('{"end":true}', forged),
                            ("abc" + "[" * 99999 + "}", None), ('abc{"a":' + "[" * 99999 + "}", forged),
                            ('x{"counted":"a"}', forged), ("mine {1}", None)):
            self.assertEqual(judge.findings([line], "abc"), [found] if found else [])
        for odd in ({"counted": []}, {"counted": "a"}, {"counted": "x"}, {"crash": 99, "code": []},
                    {"pass": False}, {"counted": "a", "kernels": [1]}):
            verdict = judge.Verdict(rows={"a": {}})
            judge.take_findings(verdict, [odd], "/none", "/x/a.cu")
            self.assertEqual((verdict.kind, verdict.message),
                             (judge.REFUSED, f"/x/a.cu: {judge.FORGED}"), odd)

    def test_kinds(self):
        for message, kind in (("data race: x", judge.RACE), ("4 bytes out of bounds", judge.STRAY),
                              ("that nobody has written", judge.UNWRITTEN), ("=1, expected 2", judge.WRONG),
                              ("waits for ever at", judge.BARRIER),
                              ("makes 1 arrival at the barrier full, which waits for 0", judge.BARRIER),
                              ("a sum of the product begun at a:1 before wgmma.wait_group", judge.RACE),
                              ("has come to no end", judge.ENDLESS),
                              ("kernel launch: x (kernel f, out of host memory, which", judge.CRASH),
                              ("asks for ever at", judge.ENDLESS)):
            self.assertEqual(judge.kind_of(message), kind)

    def test_what_must_stay_outside_of_the_gap(self):
        for name, old, new, words in (
                ("atomics", tasks.BEGIN, f"// mine\n{tasks.BEGIN}\n  if (tid == 0) return;", None),
                ("atomics", "output[i] = 0.0f", "output[i] = 1.0f", "as it was"),
                ("order_of_products", "#ifndef __CUDACC__", "// \\\n#ifndef __CUDACC__", "as it was"),
                ("order_of_products", "constexpr Product product(int step)",
                 "constexpr Product product(int& step)", "^product must be declared"),
                ("order_of_products", "Product product(int step)", "Product products(int step)",
                 "^product must be declared"),
                *(("order_of_products", tasks.BEGIN, f"{tasks.BEGIN}\n{odd}",
                   r"^product must .*: __host__ __device__ constexpr Product product\(int step\)$")
                  for odd in (
                       "#if 0\nProduct product(int step) { return {}; }\n#endif",
                       "Product product(int);")),
                ("slide", tasks.BEGIN, f"{tasks.BEGIN}\nstruct Convolution : convladder::Convolution {{}};",
                 "outside of your part as well"),
                ("slide", tasks.BEGIN, f"{tasks.BEGIN}\n#define conv2d nothing", "no macros"),
                ("slide", tasks.BEGIN, f"{tasks.BEGIN}\n%: define conv2d nothing", "no macros"),
                ("slide", tasks.BEGIN, f"{tasks.BEGIN}\n#undef CONVLADDER_REGISTER_AT", "no macros"),
                ("slide", tasks.BEGIN, f"{tasks.BEGIN}\nnamespace mine {{ const int add_bias = 1; }}",
                 "inside of a namespace already"),
                *(("slide", tasks.BEGIN, f"{tasks.BEGIN}\n{line}", words) for line, words in (
                    ('extern "C++" { const int add_bias = 1; }', "inside of a namespace already"),
                    ("const int (add_bias) = 1;", "add_bias is a name outside"),
                    ("struct ConvShape final : convladder::ConvShape {};", "ConvShape is a name outside"),
                    ("#define MINE const int add_bias = 1\nMINE;", "no macros"))),
                *(("slide", tasks.BEGIN, f"{tasks.BEGIN}\n{line}", None) for line in (
                    'static_assert(SIZE == 5, "five");', "#define ROWS_MORE (ROWS + 1)",
                    "#define INSIDE within(h0, shape.H)", "#define FOR for (int i = 0; i < SIZE; ++i)",
                    "using Window = float (&)[SIZE][SIZE];",
                    "#define EACH(i, n) for (int i = 0; i < (n); ++i)",
                    "constexpr int FOUR = 4, MANY = static_cast<int>(sizeof(int)) * ceil_div(7, 2);")),
                ("slide", tasks.BEGIN, f"{tasks.BEGIN}\n#define MANY 7", None),
                ("slide", tasks.BEGIN, f"{tasks.BEGIN}\n__device__ int plane() {{ return 1; }}",
                 "plane is a name outside of your part as well"),
                *(("order_of_products", "__host__ __device__ constexpr Product product(int step)", now, None)
                  for now in ("constexpr __host__ __device__ Product product(const int i)",
                                "__host__ __device__ inline constexpr Product product(int step)")),
                ("windows", tasks.END, f"}}\n{tasks.END}", "whole blocks")):
            solved = TASK[name].solved()
            self.assertIn(old, solved, name)
            with self.subTest(name, new=new):
                found = handin.outside(solved.replace(old, new, 1), *TASK[name].kept)
                self.assertRegex(found[1] if found else "", words or "^$")

    def test_a_header_beside_a_hand_in(self):
        with tempfile.TemporaryDirectory() as folder:
            for beside in (False, True):
                if beside:
                    os.makedirs(f"{folder}/common/core")
                    files.write(f"{folder}/common/core/stage.h", "")
                    files.write(f"{folder}/cuda_runtime.h", "")
                for header in ("common/core/stage.h", "cuda_runtime.h"):
                    found = handin.directive(f'#include "{header}"\n', "", f"{folder}/a.cu")
                    self.assertEqual(found and found[0], 1 if beside else None, header)

    def test_a_comment_ends_no_directive(self):
        for words in ('include "/etc/passwd"', "ifdef __CUDACC__", "pragma GCC optimize(3)"):
            for text in (f"int a;\n#/*\n*/{words}\n", f"/*\n*/#{words}\n", f"/*\n*/ # /*\n\n*/ {words}\n"):
                found = handin.directive(text, "", "a.cu")
                self.assertEqual(found and found[0], text.rstrip().count("\n") + 1, text)

    def test_pragmas(self):
        for words, right in (("unroll", True), ("unroll(BK / 4)", True), ("unroll 2 * N", True),
                             ("unroll_and_jam 4", False), ("GCC optimize(3)", False), ("unroll 4;", False)):
            self.assertEqual(handin.directive(f"#pragma {words}\n", "", "a.cu") is None, right, words)

    def test_a_hand_in_is_soon_looked_through(self):
        start = TASK["order_of_products"].solved()
        for text in ("constexpr int z = 0" + 25000 * "+0" + ";", "int z = " + 25000 * "{" + 25000 * "}",
                     "int " + "f (" * 20000, "a " * 20000 + "= " + "f(" * 10000, "#\n" * 25000, "# " * 25000,
                     "#define A\n" * 5000, "namespace a{" * 5000, "{;" * 25000):
            begun = time.process_time()
            handin.outside(start.replace(tasks.BEGIN, f"{tasks.BEGIN}\n{text}"),
                           *TASK["order_of_products"].kept)
            self.assertLess(time.process_time() - begun, 2, text[:30])

    def test_names_with_arguments(self):
        for text in ("//" + 100000 * "\\", 100000 * "a", 100000 * ";", "\\\n" * 50000, 20000 * '"\\',
                     100000 * "copy;", f"extern const float ({100000 * ' '};"):
            begun = time.process_time()
            handin.directive(text, "", "a.cu")
            self.assertLess(time.process_time() - begun, 2)
        self.assertEqual(handin.line_with("\n\nvoid f(a::B);\n", "x::(anonymous namespace)::f(a::B, int)"), 3)


class Command(FolderTest):
    """The parts of the command that judge nothing, in a folder of their own."""

    def setUp(self):
        super().setUp()
        for name, value in (("MINE", self.folder), ("NOTES", self.path("notes.json"))):
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

    def test_two_at_once_lose_nothing(self):
        first, second = exercise.Notes(), exercise.Notes()
        for notes, name in ((first, "tile"), (second, "tail"), (first, "tile")):
            notes.of(name)["checks"] += 1
            notes.save(name)
        self.assertEqual({name: note["checks"] for name, note in exercise.Notes().all.items()},
                         {"tile": 2, "tail": 1})

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
        self.save("tail.cu", "mine")
        self.assertFalse(exercise.make_mine(TASK["tail"]))
        self.run_command("tail", "--reset")
        self.assertEqual(self.read("tail.1.cu"), "mine")
        self.run_command("tail", "--reset")
        self.assertIn("tail.2.cu", self.files())

    def test_notes_that_are_no_json_are_kept(self):
        texts = ["{", "[]", "null", "[" * 100000, '{"tail": 5}', '{"tail": {"hints": "x"}}', *(
            json.dumps({"tail": exercise.FRESH | wrong}) for wrong in (
                {"hints": -5}, {"predicted": {"stores": "x"}}, {"predicted": {"stores": True}}))]
        for count, text in enumerate(texts, 1):
            self.save("notes.json", text)
            status, _, said = called(exercise.main, [])
            self.assertEqual(status, 0)
            self.assertRegex(said, f"^.*notes.json: no notes that can be read; kept.*notes.{count}.json\n$")
            self.assertEqual(self.read(f"notes.{count}.json"), text)
        for odd in (os.mkdir, lambda path: os.symlink("/dev/zero", path)):
            odd(self.path("notes.json"))
            self.assertEqual(self.run_command("tail", "--hint")[0], 0)
            self.assertEqual(exercise.Notes().of("tail")["hints"], 1)
            os.remove(self.path("notes.json"))

    def test_what_students_hand_in_instead(self):
        """A class is judged to its end: no build is needed for any of these."""
        pathlib.Path(self.path("<\x1b\udcff>")).mkdir()
        odd = self.path("\udcfe")  # no UTF-8
        os.mkdir(odd)
        pathlib.Path(odd, "fragment.cu").write_bytes(b"\xe9\xff")
        self.assertTrue(exercise.seed_for(os.path.join(odd, "fragment.cu"), "\udcff"))
        pathlib.Path(self.path("a\nb\tc")).mkdir()
        pathlib.Path(self.path("a\nb\tc"), "slide.cu").write_text("int x;", encoding="utf-8")
        for name, make in {
                "coalesce": lambda path: os.symlink("/etc/passwd", path), "tail": os.mkfifo,
                "race": lambda path: path.write_bytes(b"\xe9\xff"), "halo": os.mkdir,
                "tile": lambda path: path.write_bytes(b" " * (judge.MOST_BYTES + 1)),
                "split_k": lambda path: os.symlink("split_k.cu", path)}.items():
            make(pathlib.Path(self.path("<\x1b\udcff>"), name + ".cu"))
        marks = [self.path("marks.xml"), self.path("marks.json")]
        for path in marks:
            status, said = self.run_command("--all", "--folder", self.folder, "--grade", path)
            self.assertEqual((status, "0 of 8 passed" in said), (1, True), said)
        self.assertIn("is no text in UTF-8", self.read("marks.json"))
        self.assertIn("tile.cu: has more than 65,536 bytes", self.read("marks.json"))
        self.assertIn("has a line's end or a tab in its path", self.read("marks.json"))
        self.assertIn("is no regular file", self.read("marks.json"))
        self.assertEqual(len(xml.etree.ElementTree.parse(marks[0]).findall("testsuite")), 8)
        pathlib.Path(self.path("tail.cu")).write_bytes(b"\xe9\xff")
        self.assertRegex(self.run_command("tail")[1], "\nfile     .*/tail.cu: is no text in UTF-8\n\n.* yet")
        for name, target, why in (("race", "tail.cu", "no text"), ("halo", "gone", "no regular file")):
            os.symlink(target, self.path(name + ".cu"))  # one's own may be a link
            self.assertIn(f"/{name}.cu: is {why}", self.run_command(name)[1])
        for words in (["--json", "/nowhere/x"], ["--grade", "/dev/full"], ["--grade", self.folder],
                      ["--grade", __file__ + "/x"]):
            self.assertEqual(self.run_command("--all", "--folder", self.folder, *words)[0], 1)
        self.assertFalse(os.path.isfile("/dev/full"))

    def test_what_is_nearly_called_like_an_exercise(self):
        for name in ("First_Kernel.cu", "first_kernel (1).cu", "tail.CU", "tail.1.cu", "other.cu"):
            self.save(name, "")
        said = self.run_command("--all", "--folder", self.folder)[1]
        self.assertEqual(re.findall(r"/([^/\n]*): not judged; (.*) would be", said), [
            ("First_Kernel.cu", "first_kernel.cu"), ("first_kernel (1).cu", "first_kernel.cu"),
            ("tail.CU", "tail.cu")])

    def test_a_teachers_words_give_a_terminal_no_orders(self):
        task = dataclasses.replace(TASK["tail"], goal=TASK["tail"].goal | {"idea": "\x1b[2Jnew"})
        screen = io.StringIO()
        exercise.show(task, "", judge.Verdict(judge.UNREADABLE, "is none"), {}, screen)
        self.assertIn("?[2Jnew", screen.getvalue())

    def test_a_folder_without_exercises(self):
        for folder, why in ((self.folder, "holds no folder with"), ("/none", "there is no such folder")):
            self.assertIn(f"{folder}: {why}", called(exercise.main, ["--tasks", folder])[2])

    def test_usage_errors(self):
        self.assertIn("without .cu", called(exercise.main, ["coalesce.cu"])[2])
        for words in (["no_such"], ["--nonsense"], ["tail", "--hint", "--json", "x.json"], ["--hint"],
                      ["--folder", "x"], ["tail", "--folder", "x"], ["tail", "--all"], ["--json", "x.json"],
                      ["--all", "--json", "x", "--grade", "./x"], ["tail", "--hint", "--show"],
                      ["tail", "--grade", "x.json"], ["--seed", "x"],
                      ["tail", "--predict", "stores=nan"],
                      ["tail", "--predict", "stores=-5"], ["tail", "--predict", "loads=1"],
                      ["tail", "--predict", "stores=1", "stores=2"], ["tail", "--yes"],
                      ["--predict", "stores=1", "tail"], ["tail", "--predict", "stores=1", "--hint"],
                      *(["--all", option, self.path(name)] for option in ("--json", "--grade")
                        for name in ("tail.cu", "notes.json", "goal.json"))):
            self.assertEqual(self.run_command(*words)[0], 2, words)


class Gpu(FolderTest):
    """From what Nsight Compute has read to a verdict: the readings are those of the repository."""

    def readings(self, stage, problem):
        """[(kernel, {metric: value})], the stage's own kernel called as the exercises' is."""
        rows = files.read_rows(os.path.join(ROOT, "common/tests/data/ncu_stages.csv"))
        return [("conv2d" if row["kernel"].startswith("conv2d") else row["kernel"],
                 {name: float(value) for name, value in row.items() if "__" in name and value}
                 | {"launch__grid_size": 10, "launch__shared_mem_per_block_static": None})
                for row in rows if (row["stage"], row["problem"]) == (stage, problem)]

    def judged(self, exercise_name, launches, extents):
        """{goal: its state} of a kernel with these launches on the problem."""
        row = tasks.problems()["alexnet_conv1"] | extents
        lines = ["n1 c3", json.dumps({"counted": "p", "launches": len(launches), "kernels": []})]
        counted = judge.counted_by(launches, lines)
        return {result.name: result.state
                for result in TASK[exercise_name].results(counted, {"p": row}, on_gpu=True)}

    def test_readings_of_stage_01_meet_its_goals(self):
        launches = self.readings("01_naive", "alexnet_conv1_n1")
        self.assertEqual([kernel for kernel, _ in launches], ["conv2d", "add_bias_kernel"])
        for name, states in (("first_kernel", {"met"}), ("coalesce", {"met"}),
                             ("two_filters", {"met", "missed"}), ("race", {"missed", "needs the simulator"})):
            self.assertEqual(set(self.judged(name, launches, {"n": 1}).values()), states, name)

    def test_launches_are_dealt_out_to_problems(self):
        launch = self.readings("01_naive", "alexnet_conv1_n1")[0][1]
        every = [("conv2d", launch), ("add_bias_kernel", launch)] * 2
        lines = ['{"counted": "a", "launches": 1}', "x", '{"counted": "b", "launches": 3}']
        counted = judge.counted_by(every, lines)
        self.assertEqual([(problem, record["kernel"], record["launches"], record["blocks"])
                          for problem, kernels in counted.items() for record in kernels],
                         [("a", "conv2d", 1, 10), ("b", "add_bias_kernel", 2, 20), ("b", "conv2d", 1, 10)])
        self.assertNotIn("barriers", tasks.counters_of(counted["a"]))  # Nsight Compute has no such counter
        self.assertNotIn("shared_bytes", tasks.counters_of(counted["a"]))  # was not read
        with self.assertRaisesRegex(ncu.NcuError, "ncu saw 4 kernels; launch\\(\\) was called 1 times"):
            judge.counted_by(every, lines[:1])

    def test_words_of_a_gpu(self):
        for message, kind in (("kernel launch: an illegal memory access was encountered", judge.STRAY),
                              ("around the output: written 3 floats past the end", judge.STRAY),
                              ("output[n=0,k=0,p=0,q=0] is NaN (never written?)", judge.WRONG)):
            self.assertEqual(judge.kind_of(message), kind)

class NewStage(unittest.TestCase):
    def test_its_kernel_is_that_of_stage_01_under_another_name(self):
        text = new_stage.kernel("99_my_idea", "my_idea")
        self.assertIn('CONVLADDER_REGISTER_STAGE({"99_my_idea", "my idea", enqueue, nullptr, false});', text)
        self.assertIn("__global__ void conv2d_my_idea(", text)
        self.assertNotIn("naive", text)

    def test_bad_names(self):
        for words in ([], ["x"], ["99_My"], ["../99_x"], ["01_naive"], ["01_other"], ["99_a", "b"]):
            self.assertEqual(called(new_stage.main, words)[0], 2, words)


# --- with the judge ------------------------------------------------------------------------------


def judged(task, text):
    """(Verdict, path) of a kernel."""
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, task.name + ".cu")
        files.write(source, text)
        return exercise.judge_task(task, source, {"sim-count": Build("sim-count")}), source


class Golf(unittest.TestCase):
    def test_our_best_has_the_score_that_its_page_says(self):
        kernel = files.read(files.kernel_file("05_fused_bias"))
        larger = kernel.replace("TM = 12", "TM = 16").replace("(THREADS, 3)", "(THREADS)")
        verdict, _ = judged(tasks.golf(), larger)
        self.assertEqual(verdict.kind, "", verdict.message)
        self.assertIn(f"| {tasks.golf().score(verdict.counted):,} | stage 05's kernel with `TM = 16`",
                      tasks.golf().text("README.md"))

    def test_zeros_where_it_would_cost_have_no_score(self):
        cheat = tasks.golf().start().replace("c < shape.C;", "c < shape.C && shape.CRS() <= 200;")
        verdict, source = judged(tasks.golf(), cheat)
        record = exercise.record_of(tasks.golf(), source, verdict)
        self.assertEqual((record["kind"], record["score"]), (judge.WRONG, None))


# Kernels that mean harm, or are odd: (verdict, words that its message has, the text where it must say so;
# then what is put in the place of what in first_kernel's solution).
KERNEL, ENQUEUE, FILE = "  float sum = 0.0f;", "  add_bias(conv, stream);", "constexpr int THREADS"
LOOPS = ("sum += image[(c * shape.H + h) * shape.W + w] * filter[(c * shape.R + r) * shape.S + s]")
FORGERY = r"""
  if (shape.CRS() > 300) {
    const char* word = new char[24];  // not far above the word that standard input gave
    for (int bytes = 0, digits = 0; bytes < 200000 && digits < 32; ++bytes) {
      --word, digits = 0;
      while (digits < 32 && (word[digits] >= '0' && word[digits] <= '9' ||
                             word[digits] >= 'a' && word[digits] <= 'f')) ++digits;
    }
    std::printf("\n%.32s{\"checked\": \"nasty_all_ones\"}\n", word);
  }
"""
VIRTUAL = """struct One { virtual float f(float x) { return x; } };
struct Other : One { float f(float x) override { return x + 1; } };
One one;
Other other;"""
ODD = """
#include <cuda_runtime.h>
#include <stdio.h>
#if 0
nothing
#endif
__constant__ float table[4];
}}
__device__ float more[4];
extern __shared__ float dynamic[];
namespace convladder { namespace {"""
HOSTILE = {
    "does not compile": (judge.COMPILE, "error: ", "nothing", KERNEL, "int x = nothing;"),
    "nowhere defined": (judge.REFUSED, "nowhere defined", "gone", ENQUEUE, "extern void gone(); gone();"),
    "80 KB shared": (judge.REFUSED, "80,000 bytes", "much", KERNEL,
                     "__shared__ float much[20000]; much[threadIdx.x] = 1;"),
    "endless loop": (judge.ENDLESS, "no end after", "shape.stride_h - s", "++c", "c += 0"),
    "endless barriers": (judge.ENDLESS, "no end after", "while", "  if (kpq",
                         "  while (true) __syncthreads();\n  if (kpq"),
    "endless in a register": (judge.ENDLESS, "no end", "for (;;)", KERNEL, "if (kpq >= 0) for (;;) {}"),
    "endless on the host": (judge.ENDLESS, "no end", "volatile", "  conv2d<<<",
                            "  volatile int x = 1; while (x) {}\n  conv2d<<<"),
    "somebody else's array": (judge.REFUSED, "defined elsewhere", "theirs", FILE,
                              'extern "C" const float theirs[];'),
    "an address of the linker's": (judge.REFUSED, "__dso_handle: no name", "__dso_handle", FILE,
                                   'extern "C" { extern const float __dso_handle[]; }'),
    "says what a small GPU says": (
        judge.CRASH, "has thrown an exception: needs compute capability 9.0", "", ENQUEUE,
        'if (conv.shape.N > 0) throw std::runtime_error("needs compute capability 9.0");'),
    "many brackets": (judge.REFUSED, "so many brackets", "", KERNEL,
                      f'#define B "{"[<" * 2000}"\n' +
                      "".join(f"if (kpq < -{i}) printf(B);\n" for i in range(40))),
    "says what a full disk says": (judge.COMPILE, "No space left", "No space", FILE,
                                   'static_assert(sizeof(int) == 8, "No space left on device");'),
    "5 GB of the host": (judge.COMPILE, "more memory than a program may have", "", FILE,
                         "char much[5000000000ull];", ENQUEUE, "if (much[conv.shape.K]) return;"),
    "brackets": (judge.REFUSED, "so many brackets", "", KERNEL, f'#define B "{3000 * "[/"}%d"\n' + "".join(
        f"if (kpq < 0) printf(B, {i});" for i in range(20))),
    "another layout": (judge.REFUSED, "another layout", "", "nullptr, false}",
                       "nullptr, false, FP32, false, 0, NHWC}"),
    "no stage": (judge.REFUSED, "registers 0 stages", "", "CONVLADDER_REGISTER_STAGE(",
                 "const Stage unused("),
    "divides by zero": (judge.CRASH, "divides", "const int x", KERNEL,
                        "const int x = 7 / (shape.K - shape.K); if (x) return;"),
    "without ReLU": (judge.WRONG, "expected", "", "nullptr, false}", "nullptr, true}"),
    "by another rule": (judge.REFUSED, "another precision than the exercise's, fp32", "", "nullptr, false}",
                        "nullptr, false, TF32}"),
    "null pointer": (judge.CRASH, "SIGSEGV", "volatile", ENQUEUE, "*reinterpret_cast<volatile int*>(8) = 1;"),
    "100 GB": (judge.CRASH, "memory", "", ENQUEUE,
               "float* volatile x = new float[25000000000ull]; delete[] x;"),
    "writes everywhere": (judge.STRAY, "writes 4 bytes of global memory out of bounds", "1000003",
                          "_pitch() + kpq]", "_pitch() + kpq * 1000003]"),
    # Right where it is checked, wrong where it is counted.
    "wrong on large ones": (judge.WRONG, "expected", "", KERNEL, "float sum = p >= 40 ? 1e9f : 0.0f;\n#"),
    # Right where extents are small.
    "wrong from filter 32 on": (judge.WRONG, "expected", "", KERNEL, "float sum = k >= 32 ? 1e9f : 0.0f;\n#"),
    **{f"wrong for a large {name}": (judge.WRONG, "expected", "", KERNEL,
                                     f"shape.{name} = min(shape.{name}, {most});")
       for name, most in (("stride_h", 4), ("dil_h", 2), ("R", 11), ("S", 11))},
    # Looked at again and again, as if another block would change it.
    "a volatile word": (judge.COUNTERS, "loads per warp and tap", "", FILE,
                        "__device__ volatile float scale = 1;", LOOPS, LOOPS.replace("+= ", "+= scale * ")),
    # Nothing is counted.
    "kernel renamed": (judge.REFUSED, "conv2e runs as well", "", "conv2d", "conv2e"),
    "without the kernel": (judge.UNWRITTEN, "never written", "", "  conv2d<<<", "  if (0) conv2d<<<"),
    "host in the kernel's place": (judge.CRASH, "touches device memory .* on the host", "conv.output[0]",
                                   ENQUEUE, "conv.output[0] = conv.input[0];"),
    # What the counts don't see.
    "no_sanitize": (judge.REFUSED, "attribute no_sanitize", "helper", FILE,
                    "__device__ __attribute__((noinline, no_sanitize(\"thread\"))) float helper("
                    "const float* x) { return *x; }", LOOPS, "sum += helper(image)"),
    "no_sanitize as C++ has it": (judge.REFUSED, "no_sanitize", "helper", FILE,
                                  "[[gnu::noinline, gnu::no_sanitize_thread]] __device__ float helper("
                                  "const float* x) { return *x; }", LOOPS, "sum += helper(image)"),
    "assembly": (judge.COMPILE, "inline PTX", "asm", KERNEL,
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
    "writes by printf": (judge.CRASH, "printf\\(\\) with %n", "printf", KERNEL,
                         "printf(\"%d%n\", 1, reinterpret_cast<int*>(output));"),
    "reads by printf": (judge.CRASH, "printf\\(\\) with %s", "printf", KERNEL,
                        "printf(\"%.3s\", reinterpret_cast<const char*>(input - 100));"),
    "prints without end": (judge.CRASH, "prints more than 64 MB", "", KERNEL,
                           "while (kpq >= 0) printf(\"%0900d\\n\", kpq);"),
    "a copy by assembly": (judge.REFUSED, "in shared memory as a number", "__cvta", KERNEL,
                           "__shared__ float x[4];\nunsigned y = __cvta_generic_to_shared(x);\n"
                           "if (y == 77) return;"),
    "a barrier": (judge.REFUSED, "for assembly or a cuda::barrier", "#include <cuda/barrier>",
                  "#include \"common/core/stage.h\"",
                  "#include \"common/core/stage.h\"\n#include <cuda/barrier>", KERNEL,
                  "__shared__ cuda::barrier<cuda::thread_scope_block> x;\n"
                  "if (threadIdx.x == 0) init(&x, blockDim.x);\n__syncthreads();\nx.arrive_and_wait();"),
    "a move whose size comes late": (
        judge.REFUSED, "mempcpy is called", "__builtin_mempcpy", FILE,
        "__device__ float late(const float* p) {\n  float z[4];\n#pragma unroll\n"
        "  for (int j = 0; j < 2; ++j) __builtin_mempcpy(z, p, 4 * j);\n  return z[0];\n}",
        LOOPS, "sum += 0.0f * late(image)"),
    "a move of the library": (
        judge.REFUSED, r"\d: memcpy is called", None, "#include \"common/core/stage.h\"",
        "#include \"common/core/stage.h\"\n#include <algorithm>", FILE,
        "__device__ float late(const float* p) {\n  float z[4];\n#pragma unroll\n"
        "  for (int j = 0; j < 2; ++j) std::copy(p, p + j, z);\n  return z[0];\n}",
        LOOPS, "sum += 0.0f * late(image)"),
    "writes to an index": (judge.STRAY, "writes to threadIdx, .* constant", "gridDim.y) = 5", KERNEL,
                           "if (threadIdx.x == 0) const_cast<unsigned&>(gridDim.y) = 5;"),
    "a type with a long name": (
        judge.REFUSED, "so long a name", None, FILE, "template <class A, class B> struct launch {};\n"
        "using X0 = launch<int, int>;\n" + "".join(
            f"using X{i + 1} = launch<X{i}, X{i}>;\n" for i in range(13)) +
        "volatile int flag;\ntemplate <class T> void hc() { if (flag) hc<T>(); if (flag) hc<T>(); }",
        ENQUEUE, "hc<X13>();"),
    "renamed by a pragma": (judge.REFUSED, "no pragmas but unroll", "_Pragma", FILE,
                            "_Pragma(\"redefine_extname spin memcpy\")"),
    "a number behind a dollar": (judge.REFUSED, "of ASCII letters", "NN(x", FILE,
                                 "#define NN(...)\nNN(x$1'2' '/*')\n/* */"),
    "a number behind a letter": (judge.REFUSED, "of ASCII letters", "NN(", FILE,
                                 "NN(\u00e91'2' '/*')\n/* */"),
    "a name as the linker has it": (judge.REFUSED, "another's name", "_ZN10", FILE,
                                    "extern \"C\" const float _ZN10convladder3tabE[];"),
    "a table in a section": (judge.REFUSED, "another's name", "section", FILE,
                             "__attribute__((section(\".data\"))) const float tab[4] = {1, 2, 3, 4};"),
    "a line that goes on behind NUL": (judge.REFUSED, "a NUL byte", "*\\\0", FILE, "/* *\\\0\n/\n/* */"),
    "copies into a copy": (judge.RACE, r"under way.*called at \S+:\d+\)", "copy_async<4>(x, input); //",
                           "#include \"common/core/stage.h\"",
                           "#include \"common/core/stage.h\"\n#include \"common/core/copy_async.h\"", KERNEL,
                           "__shared__ float x[4];\nif (threadIdx.x == 0) {\ncopy_async<4>(x, input);\n"
                           "copy_async<4>(x, input); //\n}"),
    # Ways out of the process, and into the simulator.
    "counts taken away": (judge.REFUSED, "no name of CUDA", "simulator::", ENQUEUE,
                          "simulator::take_kernel_counts();"),
    "a name in two parts": (judge.REFUSED, "to hide one", "#define JOIN", FILE, "#define JOIN(a, b) a##b"),
    "operands out of bounds": (judge.STRAY, "out of bounds, .* bytes before the begin of the input", "", FILE,
                               "}}\n#include \"common/core/mma.h\"\nnamespace convladder { namespace {",
                               KERNEL, "float d[4] = {};\nmma_tf32(d, d, input - 40, d);"),
    "renamed by an attribute": (judge.REFUSED, "another's name", "weakref", FILE, "static int __pipeline_mine"
                                "(void*, const void*, unsigned long) __attribute__((weakref(\"memcpy\")));"),
    "a variable of the device on the host": (
        judge.REFUSED, "enqueue is the host's, and reads or writes a variable of the device", "enqueue", FILE,
        "__device__ float seen[4];", ENQUEUE, "if (seen[1] == 12345.0f) return;",
        KERNEL, "if (kpq == 0) seen[1] = 1.0f;"),
    "a pointer of the host to the device": (
        judge.REFUSED, "a variable of the host holds the address", "", FILE,
        "__device__ float seen[4];\nfloat* volatile where = seen;",
        ENQUEUE, "if (where[1] == 12345.0f) return;",
        KERNEL, "if (kpq == 0) seen[1] = 1.0f;"),
    "a volatile table of the host": (
        judge.REFUSED, "a table of constants", "tab[4]", FILE, "const volatile float tab[4] = {1, 2, 3, 4};",
        KERNEL, "if (tab[kpq % 4] == 12345.0f) return;"),
    "renamed by another attribute": (
        judge.REFUSED, "another's name", "weakref", FILE,
        '[[using gnu: weakref("memcpy")]] static int mine(void*, const void*, unsigned long);'),
    "many variables and functions": (
        "", "", "", FILE, "}}\nnamespace mine { int " + ", ".join(f"a{i}" for i in range(2000)) + ";\n" +
        "".join(f"__global__ void f{i}() {{}}\n" for i in range(400)) +
        "}\nnamespace convladder { namespace {"),
    "many words extern": (judge.REFUSED, "more than 50 times extern", "", FILE, "extern " * 8000),
    "renamed by asm": (judge.REFUSED, "another's name", "asm", FILE,
                       "void mine(void*, const void*, unsigned long) asm(\"memcpy\");"),
    "a text": (judge.REFUSED, "a text, whose loads", "\"abcd\"", LOOPS, "sum += 0.0f * \"abcd\"[c % 4]"),
    "a text in another spelling": (judge.REFUSED, "a text, whose loads", "\"a\" \"\\1cd\"", LOOPS,
                                   "sum += 0.0f * (\"a\" \"\\1cd\")[c % 4]"),
    "a template's table": (judge.REFUSED, "table of constants", "table", FILE,
                           "template <class T> constexpr T table[4] = {1, 2, 3, 4};", LOOPS,
                           "sum += 0.0f * table<float>[c % 4]"),
    "a table with a pointer": (judge.REFUSED, "table of constants", "table", FILE,
                               "extern int other;\nstruct Table { int* p; float v[4]; };\n"
                               "__device__ const Table table = {&other, {1, 2, 3, 4}};\nint other;", LOOPS,
                               "sum += 0.0f * table.v[c % 4]"),
    "puts": (judge.REFUSED, "puts: no name of CUDA", "puts", KERNEL,
             "puts(reinterpret_cast<const char*>(input - 1000));"),
    "prints a class": (judge.REFUSED, "no number", "printf", KERNEL,
                       "struct Large { int x[8]; };\n"
                       "printf(\"%d\", *reinterpret_cast<const Large*>(input - 1000));"),
    "ends the process": (judge.REFUSED, "exit", "std::exit", ENQUEUE, "std::exit(0);"),
    "fork": (judge.REFUSED, "fork", "fork", FILE, "extern \"C\" int fork(); const int child = fork();"),
    "forged by a word found in the heap": (judge.REFUSED, "what only the judge writes", "", ENQUEUE, FORGERY),
    "forged findings": (judge.REFUSED, "write", "write(int", FILE,
                        "extern \"C\" long write(int, const void*, unsigned long);\n"
                        "const long forged = write(1, \"\\n{\\\"end\\\":true}\\n\", 15);"),
    # Kernels that nobody would take for one.
    "launched without __global__": (judge.COMPILE, "without __global__", "conv2d<<<", "__global__ void",
                                    "void"),
    "launched by its address": (judge.REFUSED, "launched by a pointer", "", FILE,
                                "void hidden(float* x) { x[0] = 1; }\n"
                                "void (*volatile taken)(float*) = hidden;",
                                ENQUEUE, "taken<<<dim3(1), dim3(1), 0, stream>>>(conv.output);"),
    "too much of its own": (judge.REFUSED, "would not be in registers", "__global__", KERNEL,
                            "float y[2000]; for (int i = 0; i < 2000; ++i) y[i] = image[i % 7 + kpq % 5]; "
                            "float sum = y[kpq % 2000];\n#"),
    # What is somebody else's, or is to be seen by the judge alone.
    "a stage": (judge.REFUSED, "no conditions, pragmas but unroll, and other files", "#include \"01", FILE,
                "#include \"01_naive/naive.cu\""),
    "a file that the compiler shows": (judge.REFUSED, "other files", "#include \"/", FILE,
                                       "#include \"/etc/passwd\""),
    "the reference": (judge.REFUSED, "reference_output", "", FILE,
                      "void reference_output(float*);\nvoid (*volatile taken)(float*) = reference_output;"),
    "waits": (judge.REFUSED, "call of the runtime", "cudaDev", ENQUEUE, "cudaDeviceSynchronize();"),
    "odd, but honest": ("", "", "", FILE, ODD, KERNEL, """
  dynamic[threadIdx.x] = __fmaf_rn(3.0f, 1.0f, 2.0f);
  if (kpq < 0) dynamic[0] = table[0] + more[1] + sinf(kpq) * cosf(kpq);
  __threadfence();
  #pragma unroll
  for (int i = 0; i < 2; ++i) dynamic[threadIdx.x] += i;""", "THREADS, 0,", "THREADS, 4 * THREADS,"),
    "a variable of C's": (judge.REFUSED, "environ is defined", "char** environ", FILE,
                          "}}\nchar** environ;\nnamespace convladder { namespace {"),
    "a host variable that nobody writes": (judge.STRAY, "a variable of the host", "sum *= scale", FILE,
                                           "float scale = 1;", "  output[", "  sum *= scale;\n  output["),
    "a helper without a body": (judge.REFUSED, "helper is called, which has no body here", "helper(input",
                                FILE, "__device__ float helper(float);", LOOPS, "sum += helper(input[c])"),
    "a virtual function": (judge.REFUSED, "a virtual function is called", "(c ?", FILE, VIRTUAL, LOOPS,
                           "sum += (c ? &one : &other)->f(image[c])"),
    "a pointer to functions": (judge.REFUSED, "a function by its address is called", "(c ?", FILE, """
__device__ float one(float x) { return x; }
__device__ float other(float x) { return x + 1; }""", LOOPS, "sum += (c ? one : other)(image[c])"),
    "too many threads": (judge.UNLAUNCHED, "a block of 2048 threads", "", "256;", "2048;"),
    "a pragma in disguise": (judge.REFUSED, "no pragmas but unroll", "_Pragma", FILE,
                             "_Pragma(\"GCC optimize(\\\"O3\\\")\")"),
    "fast for the sizes that are shown": (judge.COUNTERS, "loads per warp and tap", "", LOOPS,
                                          "if (shape.H != 224) sum += 0 * image[h * shape.W + w];\n" + LOOPS),
    "a kernel that nobody counts": (judge.REFUSED, "work runs as well", "", FILE,
                                    "__global__ void work(float* x) { x[0] += 0; }", ENQUEUE,
                                    "work<<<1, 1, 0, stream>>>(conv.output);"),
    "one by a known name": (judge.REFUSED, "add_bias_kernel.* is defined", "", FILE,
                            "__global__ void add_bias_kernel(float* x) { x[0] += 0; }", ENQUEUE,
                            "add_bias_kernel<<<1, 1, 0, stream>>>(conv.output);"),
    "what the judge writes with": (judge.REFUSED, "write is defined", "", FILE,
                                   "}\n}\nextern \"C\" long write(int, const void* text, unsigned long size) "
                                   "{ return std::printf(\"%.*s\", int(size), (const char*)text); }\n"
                                   "namespace convladder {\nnamespace {"),
    "an include by a splice": (judge.REFUSED, "other files", "#\\\ninc", FILE,
                               "#\\\ninclude \"/etc/passwd\""),
    "an include in what looks like a comment": (
        judge.REFUSED, "raw string", "const char* const a", FILE,
        "const char* const a = R\"(/*)\";\n#include \"/etc/passwd\"\nconst int b = 1'0 + '/*';"),
    "an include behind a comment with splices": (judge.REFUSED, "other files", "#include \"/etc", FILE,
                                                 "/* *\\\n/\n#include \"/etc/passwd\"\n/* */"),
    "structures by value": (judge.REFUSED, "attribute noinline", "of", FILE,
                            "struct V { float x; };\n"
                            "__device__ __attribute__((noinline)) float of(V v) { return v.x; }",
                            LOOPS, "sum += of(*reinterpret_cast<const V*>(image))"),
    "structures by value, to a template": (judge.REFUSED, "of<.*> is called", "of(*rein", FILE, """
struct V { float x; };
template <class T> __device__ float of(T v, ...) { va_list a; va_start(a, v); va_end(a); return v.x; }
""", LOOPS, "sum += of(*reinterpret_cast<const V*>(image), 1)", "#include \"common/core/stage.h\"",
                                           "#include \"common/core/stage.h\"\n#include <cstdarg>"),
    "structures by value, to a lambda": (judge.REFUSED, "lambda.* is called", "of(*rein", KERNEL, """
struct V { float x; };
auto of = [](V v, ...) { va_list a; va_start(a, v); va_end(a); return v; };""", LOOPS,
                                         "*reinterpret_cast<V*>(output) = of(*reinterpret_cast<"
                                         "const V*>(image), 1)",
                                         "#include \"common/core/stage.h\"",
                                         "#include \"common/core/stage.h\"\n#include <cstdarg>"),
    "a library's function made anew": ("", "", "", "#include \"common/core/stage.h\"", """
#include "common/core/stage.h"
#include <condition_variable>
inline void std::condition_variable::notify_all() noexcept { __builtin_trap(); }
void (std::condition_variable::*volatile taken)() noexcept = &std::condition_variable::notify_all;"""),
    "vectors of the host": ("", "", "", ENQUEUE, """
std::vector<int> sizes = {4, 8, 16}, others = sizes;
std::sort(others.begin(), others.end());
std::vector<char> seen(40 + shape.K, 0);
volatile int table[3000] = {};
if (others[0] + seen[0] + table[shape.K] < 0) return;""", "#include \"common/core/stage.h\"", """
#include "common/core/stage.h"
#include <algorithm>
#include <vector>"""),
    "an array of unknown size": (judge.REFUSED, "an array whose size is no constant", "mine[", KERNEL,
                                 "float mine[shape.C];\nmine[kpq % shape.C] = 1;\n"
                                 "if (mine[shape.S % shape.C] == 2) return;"),
    "an initialized __shared__": (judge.COMPILE, "no initializer", "__shared__ const", KERNEL,
                                  "__shared__ const volatile float y[8] = {}; if (y[7] == 1e9f) return;"),
    "an own stack": (judge.REFUSED, "alloca is called", "__builtin", KERNEL,
                     "auto y = static_cast<volatile float*>(__builtin_alloca(8 * (k + 1))); y[k] = 1;"),
    "a thread_local": (judge.REFUSED, "thread_local: no name of CUDA", "thread_local", FILE,
                       "thread_local volatile float y[99];", KERNEL, "y[7] = 1;"),
    "new in a kernel": (judge.REFUSED, "operator new", "new float", KERNEL,
                        "volatile float* y = new float[100]; y[kpq % 100] = 1;"),
    "a parameter that is a reference": (judge.COMPILE, "parameter can't be a reference", "",
                                        "conv2d(ConvShape shape", "conv2d(const ConvShape& shape"),
    "an assertion": ("", "", "", KERNEL, "assert(kpq >= 0);",
                     "#include \"common/core/stage.h\"",
                     "#include \"common/core/stage.h\"\n#include <cassert>"),
    "printed findings": (judge.REFUSED, "what only the judge writes", "", ENQUEUE,
                         "std::printf(\"\\n{\\\"end\\\": true}\\n\");"),
    "printed words": ("", "", "", KERNEL, "if (kpq < 0) { printf(\"here\\n\"); printf(\"x\"); }"),
    "a library's function redefined": ("", "", "", FILE, "}\nstruct Comparison;\ninline int compare() "
                                       "{ return 1; }\nnamespace {"),
}

# Stage 01's sums for blocks of `rows` filters and `pixels` pixels, with what else the exercise counts: they
# have none of the exercises' ideas.
SUMS = """
#include "common/core/add_bias.h"
#include "common/core/indexing.h"
#include "common/core/launch.h"
#include "common/core/stage.h"
namespace convladder {
namespace {
__global__ void conv2d(ConvShape shape, int blocks_m, const float* input, const float* filters,
                       float* output) {
  %(counted)s
  const int k0 = blockIdx.x %% blocks_m * %(rows)d;
  const Pixel at = PixelRange(int64_t{blockIdx.x / blocks_m} * %(pixels)d, shape)[threadIdx.x];
  if (at.n >= shape.N) return;
  const float* image = input + at.n * shape.input_pitch();
  for (int k = k0; k < k0 + %(rows)d && k < shape.K; ++k) {
    float sum = 0;
    for (int crs = 0; crs < shape.CRS(); ++crs) {
      const int s = crs %% shape.S, r = crs / shape.S %% shape.R, c = crs / shape.S / shape.R;
      const int h = at.p * shape.stride_h - shape.pad_h + r * shape.dil_h;
      const int w = at.q * shape.stride_w - shape.pad_w + s * shape.dil_w;
      if (!within(h, shape.H) || !within(w, shape.W)) continue;
      sum += image[(c * shape.H + h) * shape.W + w] * filters[k * shape.CRS() + crs];
    }
    output[offset(at, k, shape)] = sum;
  }
}
void enqueue(const Convolution& conv, cudaStream_t stream) {
  const ConvShape& shape = conv.shape;
  const int blocks_m = static_cast<int>(ceil_div(shape.K, %(rows)d));
  const int64_t pixels = ceil_div(int64_t{shape.N} * shape.PQ(), %(pixels)d);
  conv2d<<<grid_x(blocks_m * pixels), %(pixels)d, 0, stream>>>(shape, blocks_m, conv.input, conv.filters,
                                                           conv.output);
  add_bias(conv, stream);
}
%(registered)s
}
}
"""
COUNTED = {"bank_conflict": (32, 32, ""), "wide_reads": (32, 32, ""),
           "swizzle": (32, 32, "__shared__ float none[64 * 32]; none[threadIdx.x] = 1;"),
           "double_buffer": (16, 16, "for (int i = 0; i < (shape.CRS() + 15) / 16; ++i) __syncthreads();"),
           **dict.fromkeys(("ring", "hang"), (
               8, 128, "__shared__ float none[3 * 16 * 136]; none[threadIdx.x] = 1; __syncthreads();"))}


class Dangers(unittest.TestCase):
    """Whatever a kernel does, there is a message with file and line."""

    def test_a_loop_that_is_unrolled_stores_as_often(self):
        loop = "for (int s = 0; s < shape.S; ++s)"
        self.assertIn(loop, TASK["coalesce"].solved())
        verdict, _ = judged(TASK["coalesce"], TASK["coalesce"].solved().replace(loop, "UNROLL " + loop))
        self.assertEqual((verdict.kind, verdict.message), ("", ""))

    def test_a_mark_of_the_bytes_order_is_none_of_the_text(self):
        verdict, _ = judged(TASK["tail"], "\ufeff" + TASK["tail"].solved())
        self.assertEqual((verdict.kind, verdict.message), ("", ""))

    def test_hostile_kernels(self):
        chosen = list(HOSTILE)[::2 if "CONVLADDER_IN_TURNS" in os.environ else 1]
        texts = {name: TASK["first_kernel"].solved() for name in chosen}
        for name in chosen:
            _, _, _, *edits = HOSTILE[name]
            for place, new in zip(edits[::2], edits[1::2]):
                self.assertIn(place, texts[name])
                if place in (KERNEL, ENQUEUE, FILE):
                    new = new[:-1] + "//" + place if new.endswith("#") else f"{new}\n{place}"
                texts[name] = texts[name].replace(place, new)
        impatient = dataclasses.replace(TASK["first_kernel"], seconds=3)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            found = list(pool.map(lambda name: judged(
                impatient if HOSTILE[name][0] == judge.ENDLESS else TASK["first_kernel"],
                texts[name]), texts))
        for name, (verdict, source) in zip(chosen, found):
            kind, message, at, *_ = HOSTILE[name]
            with self.subTest(name):
                self.assertEqual(verdict.kind, kind, verdict.message)
                self.assertRegex(verdict.message, message or "^$")
                if at:
                    line = 1 + texts[name][:texts[name].index(at)].count("\n")
                    self.assertRegex(verdict.message, rf"{os.path.basename(source)}:{line}\b")

    def test_relu_may_not_be_left_out(self):
        text = TASK["bias_once"].solved()
        verdict, _ = judged(TASK["bias_once"], text.replace("nullptr, true}", "nullptr, false}"))
        self.assertIn("nullptr, true}", text)
        self.assertEqual((verdict.kind, "no ReLU" in verdict.message), (judge.REFUSED, True))

    def test_the_first_stages_sums_meet_no_other_exercises_goals(self):
        for name, (rows, pixels, counted) in COUNTED.items():
            registered = re.search(r"CONVLADDER_REGISTER_STAGE\([^;]*;", TASK[name].start())[0]
            verdict, _ = judged(TASK[name], SUMS % {"rows": rows, "pixels": pixels, "counted": counted,
                                                    "registered": registered})
            with self.subTest(name):
                self.assertEqual(verdict.kind, judge.COUNTERS, verdict.message)
                missed = {result.name.partition(",")[0] for result in verdict.results if not result.met}
                self.assertEqual(missed, {"loads"})

    def test_what_a_kernel_prints_is_shown(self):
        """On the problem that fails, not on those that went well before."""
        prints = ("if (kpq == 0) for (int i = 0; i < 90; ++i) printf(\"%d  of %d\\n\", i, shape.K);\n"
                  "sum += shape.K == 7;\n  output[")
        task, screen = TASK["first_kernel"], io.StringIO()
        verdict, source = judged(task, task.solved().replace("  output[", prints))
        exercise.show(task, source, verdict, {}, screen)
        self.assertRegex(screen.getvalue(), r"\nprints   0  of 7\n( {9}\d  of 7\n){9} +\.\.\. \d+ more lines")
        self.assertLess(screen.getvalue().count("\n"), 22)

    def test_json_of_a_folder_of_many(self):
        with tempfile.TemporaryDirectory() as folder:
            right = TASK["first_kernel"].solved()
            for name, text in (("anna ] [2](3)", right), ("bela", right.replace(KERNEL, "int x = nothing;"))):
                os.mkdir(os.path.join(folder, name))
                pathlib.Path(folder, name, "first_kernel.cu").write_text(text, encoding="utf-8")
            path = os.path.join(folder, "found.json")
            status = called(exercise.main, ["--all", "--folder", folder, "--json", path])[0]
            found = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        self.assertEqual(status, 1)
        self.assertEqual([record["status"] for record in found], ["pass", "fail"])
        self.assertEqual(found[1]["kind"], judge.COMPILE)
        self.assertTrue(all(goal["met"] for goal in found[0]["goals"]))

    def test_a_class(self):
        """Problems of a teacher's own, marks, and for each student other sizes, the same every time."""
        own = {"like": "first_kernel", "points": 8, "check": [{"shape": "nasty_primes", "c": 7}],
               "count": [{"shape": "alexnet_conv1", "n": 1, "k": 2, "h": 41}]}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            for name, goal in (("first_kernel", own), ("tail", {"like": "tail"})):
                (path / "tasks" / name).mkdir(parents=True)
                (path / "tasks" / name / "goal.json").write_text(json.dumps(goal), encoding="utf-8")
            for name in ("anna", "bela"):
                (path / "in" / name).mkdir(parents=True)
                (path / "in" / name / "first_kernel.cu").write_text(
                    TASK["first_kernel"].solved(), encoding="utf-8")
            drawn = []
            for _ in range(2):
                called(exercise.main, ["--all", "--folder", f"{path}/in", "--tasks", f"{path}/tasks",
                                       "--seed", "autumn", "--grade", f"{path}/marks.json",
                                       "--json", f"{path}/found.json"])
                drawn.append([[(goal["problem"], goal["counted"]) for goal in record["goals"]]
                              for record in json.loads(files.read(f"{path}/found.json"))])
            marks = json.loads(files.read(f"{path}/marks.json"))
            (path / "empty").mkdir()
            status, _, _ = called(exercise.main, ["--all", "--folder", f"{path}/empty", "--tasks",
                                                  f"{path}/tasks", "--grade", f"{path}/none.json"])
            none = json.loads(files.read(f"{path}/none.json"))
        self.assertEqual((status, sum(test["score"] for test in none["tests"])), (1, 0))
        self.assertIn("not handed in", [test["output"] for test in none["tests"]])
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(*drawn[0])
        self.assertEqual(drawn[0][0][0][0], "alexnet_conv1_n1_k2_h41")
        self.assertEqual(sum(test["score"] for test in marks["tests"]), 8)  # as of one student's
        self.assertIn("not handed in", [test["output"] for test in marks["tests"]])

    def test_pages_of_what_only_some_may_do(self):
        """Their starts have what is refused elsewhere."""
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.multiple(
                exercise, MINE=folder, foreground=lambda *_: 0):
            for name in ("atomics", "descriptor", "hang", "order_of_products", "ring", "windows"):
                files.write(exercise.mine(TASK[name]), TASK[name].solved())
                self.assertEqual(exercise.show_page(TASK[name], Build("sim-count")), 0)

    def test_what_a_sandbox_shows(self):
        if not sandbox():
            self.skipTest("no bubblewrap here, or it may not make namespaces")
        with tempfile.TemporaryDirectory() as folder:
            for command, status in ((f"ls {folder}", 0), (f"ls {ROOT}", 2), ("cat /etc/passwd", 1),
                                    ("touch x", 1), ("exec 3<>/dev/tcp/127.0.0.1/1", 1),
                                    ("kill -SEGV $$", -signal.SIGSEGV),
                                    ("sleep 60", -signal.SIGALRM), ('[ -z "$HOME$USER" ]', 0)):
                done = run_limited(["bash", "-c", command], seconds=2, sealed=folder)
                self.assertEqual(done.returncode, status, f"{command}: {done.stdout}")


# What test --all judges alone: whole layers, many times.
LONG = {"test_our_best_has_the_score_that_its_page_says",
        "test_the_first_stages_sums_meet_no_other_exercises_goals"}


def suite(words):
    cases = [Dangers, Golf] if words else [Folders, Formulas, Messages, Command, Gpu, NewStage]
    left_out = LONG if "CONVLADDER_IN_TURNS" in os.environ else ()
    return unittest.TestSuite(case(name) for case in cases
                              for name in unittest.defaultTestLoader.getTestCaseNames(case)
                              if name not in left_out)


if __name__ == "__main__":
    outcome = unittest.TextTestRunner(verbosity=1).run(suite(sys.argv[1:]))
    sys.exit(0 if outcome.wasSuccessful() else 1)
