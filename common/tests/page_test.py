#!/usr/bin/env python3
"""The page of ./ladder report: what is in it, what it says of bad input, and, in a browser, what it
draws. `page_test.py --browser` runs the latter tests, and is skipped where there is none.

CONVLADDER_PROGRAM=FILE: the browser tests also trace small problems with this program, which counts.
"""

import contextlib
import copy
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RESULTS = os.path.join(ROOT, "docs/results")
PUBLISHED = os.path.join(RESULTS, "index.html")
sys.path[:0] = [os.path.join(ROOT, "common", room) for room in ("page", "report", "tests")]

import browser  # noqa: E402  (found through the path above)
import page  # noqa: E402
import report  # noqa: E402
import results  # noqa: E402
import show  # noqa: E402

MOST_BYTES = 3_000_000
SHAPE = "n1 c1 8x8 k1 1x1 stride 1x1 pad 0x0 dil 1x1"
NOTHING = page.Inputs(None, [], None, None)
INPUTS = page.Inputs(
    f"{RESULTS}/bench_h200.json",
    [f"{RESULTS}/profile_h200.json", f"{RESULTS}/profile_sim.json"],
    f"{RESULTS}/run_sim",
    f"{RESULTS}/trace_sim.json",
)


def data_of(path):
    """What a page holds."""
    with open(path, encoding="utf-8") as file:
        return json.loads(
            re.search(
                r'<script type="application/json" id="data">(.*?)</script>', file.read(), re.DOTALL
            )[1]
        )


def small_trace(stage="01_naive", source="a\nb\n"):
    """One load of two floats by one lane, which starts 28 bytes into a sector: two sectors."""
    instruction = {
        "line": "x.cu:2",
        "inlined": [],
        "space": "global",
        "operation": "load",
        "bytes": 8,
        "memory": "input",
        "requests": 1,
        "sectors": 1,
        "wavefronts": 0,
        "conflicts": 0,
        "unique_bytes": 8,
    }
    kernel = {
        "kernel": "k",
        "launches": 1,
        "grid": [1, 1, 1],
        "block": [32, 1, 1],
        "shared": [],
        "instructions": [instruction],
        "warps": [{"block": 0, "warp": 0, "cut": [], "runs": [[0, 0, 8, 3, 1, 0]]}],
    }
    return {
        "format": "convladder trace",
        "version": 2,
        "problem": "small",
        "shape": SHAPE,
        "bias": True,
        "stages": [
            {
                "stage": stage,
                "files": {"x.cu": source},
                "patterns": [[0] + 31 * [None]],
                "memory": [{"name": "input", "begin": 0, "bytes": 256}],
                "kernels": [kernel],
            }
        ],
    }


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def save(self, name, value):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(value if isinstance(value, str) else json.dumps(value))
        return path

    def notices(self, inputs):
        return {notice["about"]: notice for notice in page.page_data(inputs)["notices"]}


class Data(Folder):
    def test_all_in_one_file_that_is_not_too_large(self):
        with open(PUBLISHED, encoding="utf-8") as file:
            text = file.read()
        self.assertLess(len(text.encode()), MOST_BYTES)
        self.assertNotRegex(text, r"""(src|href)=["']?(https?:)?//|@import|url\(["']?http""")
        self.assertNotRegex(text, r"\{\{\w+\}\}")

    def test_figures_are_those_of_the_tables(self):
        data = page.page_data(INPUTS)
        with open(f"{RESULTS}/README.md", encoding="utf-8") as file:
            tables = file.read()
        problem = data["problems"][0]
        for stage, (_, shown, _) in problem["columns"][0]["cells"].items():
            self.assertRegex(tables, rf"\| {stage} \| {re.escape(shown)} \|")
        levels = {
            column["heading"]: column["cells"] for column in problem["profiles"][0]["columns"]
        }
        row = (
            levels["requested"]["04_register_blocking"][1:],
            levels["L1"]["04_register_blocking"][1:],
        )
        self.assertRegex(
            tables,
            r"\| 04_register_blocking \| {} \| [\d.]+ \| {} \| {} \| [\d.]+ \| {} \|".format(
                *(re.escape(text) for pair in row for text in pair)
            ),
        )

    def test_what_the_lines_cost_is_what_the_kernels_cost(self):
        data = page.page_data(INPUTS)
        counted = {
            (record["stage"], record["kernel"]): record
            for record in results.read_json(f"{RESULTS}/profile_sim.json")
        }
        compared = 0
        for stage in data["trace"]["stages"]:
            for kernel in stage["kernels"]:
                record = counted.get((stage["stage"], kernel["kernel"]))
                if not record:
                    continue  # counted under another stage's name
                sectors = sum(one["sectors"] for one in kernel["instructions"])
                self.assertEqual(
                    sectors,
                    sum(
                        record[f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum"]
                        for op in ("ld", "st")
                    ),
                )
                compared += 1
        self.assertGreater(compared, 8)

    def test_a_large_trace_loses_warps_and_says_so(self):
        trace = small_trace()
        kernel = trace["stages"][0]["kernels"][0]
        warp = kernel["warps"][0]
        warp["runs"] = [[0, 0, 8, 3, 1, 0] * 30_000]
        kernel["warps"] = [{**warp, "block": block} for block in range(16)]
        data = page.page_data(NOTHING._replace(trace=self.save("trace.json", trace)))
        kept = len(data["trace"]["stages"][0]["kernels"][0]["warps"])
        self.assertGreater(kept, 1)
        self.assertEqual(data["trace"]["left_out"], 16 - kept)
        self.assertLess(len(page.html(data).encode()), MOST_BYTES)

    def test_nothing_ends_the_data_too_soon(self):
        trace = self.save("trace.json", small_trace(source="</script><b>\n<!-- \n"))
        page.write(os.path.join(self.folder, "index.html"), NOTHING._replace(trace=trace))
        data = data_of(os.path.join(self.folder, "index.html"))
        self.assertEqual(data["trace"]["stages"][0]["files"]["x.cu"], "</script><b>\n<!-- \n")

    def test_pictures_without_a_png_library(self):
        self.assertEqual(page.png_of(b"\1\2\3" * 6, 3, 2)[16:24], b"\0\0\0\3\0\0\0\2")
        path = os.path.join(self.folder, "input")
        with open(path + ".ppm", "wb") as file:
            file.write(b"P6\n3 2\n255\n" + b"\1\2\3" * 6)
        self.assertEqual(page.read_picture(path), page.png_of(b"\1\2\3" * 6, 3, 2))


class BadInput(Folder):
    def test_nothing_at_all(self):
        notices = self.notices(NOTHING)
        self.assertEqual(set(notices), {"bench", "profile", "run", "trace"})
        for about, command in (
            ("bench", "bench"),
            ("profile", "profile"),
            ("run", "run"),
            ("trace", "profile --trace"),
        ):
            self.assertRegex(notices[about]["command"], rf"^\./ladder (--backend sim )?{command}")

    def test_other_versions(self):
        for name, value in (
            ("trace", {**small_trace(), "version": 1}),
            ("profile", [{"version": 9}]),
            ("bench", {"format": "convladder bench", "version": 7}),
        ):
            path = self.save(name + ".json", value)
            inputs = NOTHING._replace(
                **{"profiles" if name == "profile" else name: [path] if name == "profile" else path}
            )
            self.assertRegex(
                self.notices(inputs)[name]["text"], r"version \d; this report reads version \d"
            )

    def test_half_a_file(self):
        whole = json.dumps(small_trace())
        for text in ("", whole[: len(whole) // 2], "[1, 2"):
            path = self.save("half.json", text)
            for name, inputs in (
                ("trace", NOTHING._replace(trace=path)),
                ("bench", NOTHING._replace(bench=path)),
                ("profile", NOTHING._replace(profiles=[path])),
            ):
                self.assertIn("not JSON, or cut short", self.notices(inputs)[name]["text"])

    def test_a_trace_that_lacks_something(self):
        for spoil in (
            lambda trace: trace.pop("stages"),
            lambda trace: trace.update(shape="n1"),
            lambda trace: trace["stages"][0]["kernels"][0].pop("warps"),
            lambda trace: trace["stages"][0]["kernels"][0]["warps"][0].pop("cut"),
            lambda trace: trace["stages"][0].update(patterns=None),
            lambda trace: trace["stages"][0]["kernels"][0]["warps"][0].update(runs=[]),
        ):
            trace = small_trace()
            spoil(trace)
            inputs = NOTHING._replace(trace=self.save("trace.json", trace))
            self.assertIn("not a whole trace", self.notices(inputs)["trace"]["text"])
        inputs = NOTHING._replace(trace=self.save("trace.json", {"format": "x"}))
        self.assertIn("not made by profile --trace", self.notices(inputs)["trace"]["text"])

    def test_pictures_of_another_run_or_cut_short(self):
        for name in ("input.png", "filters.png", "feature_maps.png", "run.json"):
            shutil.copy(f"{RESULTS}/run_sim/{name}", self.folder)
        inputs = NOTHING._replace(pictures=self.folder)
        self.assertNotIn("run", self.notices(inputs))
        self.save("run.json", {"shape": SHAPE})
        self.assertIn("of another run", self.notices(inputs)["run"]["text"])
        shutil.copy(f"{RESULTS}/run_sim/run.json", self.folder)
        with open(f"{self.folder}/filters.png", "r+b") as file:
            file.truncate(1000)
        self.assertIn("cut short", self.notices(inputs)["run"]["text"])
        os.remove(f"{self.folder}/filters.png")
        self.assertIn("isn't there", self.notices(inputs)["run"]["text"])

    def test_report_writes_the_page_before_it_fails(self):
        half = self.save("half.json", "{")
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            status = report.main(["--profile", half, "--out", self.folder])
        self.assertEqual(status, 1)
        notices = data_of(os.path.join(self.folder, "index.html"))["notices"]
        self.assertIn("half.json: not JSON", " ".join(notice["text"] for notice in notices))


class Show(Folder):
    """What ./ladder profile --show makes of what was there."""

    def test_a_changed_stage_keeps_what_it_was(self):
        old, new = small_trace(), small_trace(source="b\na\n")
        old["stages"] += small_trace("02_im2col_gemm")["stages"]
        joined = show.joined_trace(old, new)
        self.assertEqual(
            [stage["stage"] for stage in joined["stages"]],
            ["01_naive", "01_naive, before", "02_im2col_gemm"],
        )
        self.assertEqual(joined["stages"][0]["files"], {"x.cu": "b\na\n"})
        self.assertEqual(joined["stages"][1]["files"], {"x.cu": "a\nb\n"})
        again = show.joined_trace(joined, copy.deepcopy(new))
        self.assertEqual(again, joined)

    def test_another_problem_begins_anew(self):
        new = {**small_trace(), "bias": False}
        self.assertEqual(show.joined_trace(small_trace(), new), new)

    def test_the_files_are_its_own(self):
        for option in ("--json", "--trace=x.json"):
            with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit) as end:
                show.main(["program", "--show", option, "x.json"])
            self.assertEqual(end.exception.code, 2)
            self.assertIn("leave out --json and --trace", said.getvalue())

    def test_a_stage_that_is_wrong_shows_nothing(self):
        with mock.patch.object(show, "REPORT", self.folder):
            self.assertEqual(show.main(["false", "--show"]), 1)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_stage_of_ones_own(self):
        program = self.save(
            "program.py",
            f"""#!{sys.executable}
import json, sys
for option, value in (("--trace", {small_trace("11_my_idea")!r}), ("--json", [
    {{"version": 1, "stage": "11_my_idea", "problem": "small", "shape": "{SHAPE}", "bias": True,
      "kernel": "k", "launches": 1, "source": "simulator", "library": False, "flop": 128,
      "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 3, "sectors_touched_read.sum": 3,
      "sectors_touched_write.sum": 1}}])):
    json.dump(value, open(sys.argv[sys.argv.index(option) + 1], "w"))
""",
        )
        os.chmod(program, 0o755)
        with (
            mock.patch.object(show, "REPORT", self.folder),
            mock.patch.dict(os.environ, {"DISPLAY": "", "WAYLAND_DISPLAY": ""}),
            contextlib.redirect_stdout(io.StringIO()) as said,
        ):
            self.assertEqual(show.main([program, "--stage", "11_my_idea", "--show"]), 0)
        self.assertIn("open it in a browser", said.getvalue())
        data = data_of(os.path.join(self.folder, "index.html"))
        self.assertEqual(data["show"], "11_my_idea")
        self.assertEqual(data["problems"][0]["stages"], ["11_my_idea"])
        self.assertEqual(data["trace"]["stages"][0]["stage"], "11_my_idea")


# Every nth execution in the page, drawn and counted.
CHECK_ALL = """(nth => {
  const wrong = [];
  let checked = 0;
  const warps = data.trace.stages.flatMap(({stage, patterns, kernels}) =>
    kernels.flatMap(kernel => kernel.warps.map(own => [stage, patterns, kernel, own])));
  for (const [stage, patterns, kernel, own] of warps) {
    kernel.instructions.forEach((instruction, n) => {
      for (let i = executions(instruction, own.runs[n]) - 1; i >= 0; i -= nth, ++checked) {
        const one = access(patterns, instruction, own.runs[n], i);
        const conflicts = one.space === "shared" ? wavefrontsOf(one).filter(pass => pass.conflict).length : 0;
        const right = drawn(one) === one.cost && conflicts === one.conflicts;
        if (!right) wrong.push(`${stage} ${instruction.line} ${i}`);
      }
    });
  }
  return {checked, wrong};
})"""


class InABrowser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser()
        cls.data = data_of(PUBLISHED)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()

    def setUp(self):
        self.browser.errors.clear()
        self.browser.requested.clear()

    def tearDown(self):
        self.assertEqual(self.browser.errors, [])

    def open(self, path=PUBLISHED, **how):
        self.browser.open(path, **how)

    def run_script(self, script):
        return self.browser.run(script)

    def texts(self, selector):
        return self.run_script(
            f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)"
        )

    def choose(self, name, value):
        self.run_script(
            f"(e => {{ e.value = {json.dumps(value)}; e.dispatchEvent(new Event('change')); }})"
            f"(document.getElementById({json.dumps(name)}))"
        )

    def click(self, selector):
        self.run_script(f"document.querySelector({json.dumps(selector)}).click()")

    def test_nothing_comes_from_elsewhere(self):
        self.open()
        self.assertEqual(
            [url for url in self.browser.requested if not url.startswith(("file:", "data:"))], []
        )

    def test_rungs(self):
        self.open()
        cells = self.data["problems"][0]["columns"][0]["cells"]
        self.assertEqual(self.texts("button.rung .name"), list(cells))
        for stage, (_, shown, factor) in cells.items():
            self.click(f"#rung-{stage}")
            self.assertEqual(
                self.texts(f"#rung-{stage} .value"),
                [f"{shown} " + (f"× {factor}" if factor else "")],
            )
            self.assertEqual(self.texts("[aria-pressed=true].rung .name"), [stage])
            self.assertEqual(self.texts("#details h3"), [stage])
            # Traffic by level is of those that Nsight Compute has read.
            read = stage in self.data["problems"][0]["profiles"][0]["columns"][0]["cells"]
            self.assertEqual(self.texts(".group.chosen h3"), [stage] if read else [])
        for column in self.data["problems"][0]["profiles"][0]["columns"]:  # every other figure
            self.choose("metric", column["heading"])
            shown = [
                re.split(" [×·] ", text)[0].strip() for text in self.texts("button.rung .value")
            ]
            self.assertEqual(
                shown, [column["cells"].get(stage, ["", "not measured"])[1] for stage in cells]
            )

    def test_without_times_the_rungs_are_floors(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "page.html")
            page.write(path, page.Inputs(None, [f"{RESULTS}/profile_sim.json"], None, None))
            profile = data_of(path)["problems"][0]["profiles"][0]
            self.open(path)
        self.assertEqual(
            self.run_script("document.getElementById('metric').value"), "at least [ms]"
        )
        cells = profile["columns"][0]["cells"]
        for stage, limit in profile["floors"].items():
            _, shown, factor = cells[stage]
            self.assertEqual(
                self.texts(f"#rung-{stage} .value"),
                [f"{shown} " + (f"× {factor}" if factor else "") + f" · {limit}"],
            )
        self.click("#rung-03_shared_tiling")
        self.assertIn("limited by: L1's data pipe.", self.texts("#details p")[0])

    def test_neighbours(self):
        self.open()
        self.click("#rung-05_fused_bias")
        problem = self.data["problems"][0]
        columns = problem["columns"] + problem["profiles"][0]["columns"]
        expected = [
            [
                column["heading"],
                column["cells"]["04_register_blocking"][1],
                *column["cells"]["05_fused_bias"][1:],
            ]
            for column in columns
        ]
        rows = self.run_script(
            "[...document.querySelectorAll('#steps tr')]"
            ".slice(1).map(r => [...r.children].map(c => c.textContent))"
        )
        self.assertEqual(rows, expected)
        added = [line[2:] for line in self.texts("pre.code .new")]
        self.assertTrue(any("bias" in line for line in added))
        self.click("#rung-01_naive")
        self.assertIn("first rung", self.texts("#neighbours .body")[0])

    def test_sectors_and_wavefronts_drawn_are_those_counted(self):
        self.open()
        checked = set()
        for traced in self.data["trace"]["stages"]:
            self.choose("stage-0", traced["stage"])
            for number, kernel in enumerate(traced["kernels"]):
                self.choose("kernel-0", str(number))
                for i, instruction in enumerate(kernel["instructions"]):
                    line = instruction["line"].rsplit(":", 1)[1]
                    if not self.run_script(f"!!document.getElementById('line-0-{line}')"):
                        continue  # in another file than the kernel's heaviest line
                    self.click(f"#line-0-{line}")
                    if self.run_script("!!document.getElementById('instruction-0')"):
                        self.choose("instruction-0", str(i))
                    runs = kernel["warps"][0]["runs"][i]
                    text = self.texts("#counts-0")[0]
                    cost = instruction[
                        "wavefronts" if instruction["space"] == "shared" else "sectors"
                    ]
                    self.assertIn(
                        f"{cost:,} {'wavefront' if instruction['space'] == 'shared' else 'sector'}",
                        text,
                    )
                    if not runs:
                        self.assertIn("never comes", self.texts("#figure-0")[0])
                        continue
                    drawn = self.run_script(
                        "(s => [+s.dataset.drawn, s.querySelectorAll('g.sector, g.wavefront').length])"
                        "(document.querySelector('#figure-0 svg'))"
                    )
                    self.assertEqual(drawn, [runs[4], runs[4]], (traced["stage"], instruction))
                    if instruction["space"] == "shared":
                        self.assertEqual(
                            self.run_script(
                                "[...document.querySelectorAll('#figure-0 g.wavefront')]"
                                ".filter(w => w.querySelector('.conflict')).length"
                            ),
                            runs[5],
                        )
                    checked.add(
                        (
                            traced["stage"],
                            kernel["kernel"],
                            instruction["line"],
                            instruction["space"],
                        )
                    )
        self.assertGreater(len({one[:2] for one in checked}), 9)  # kernels
        self.assertGreater(len(checked), 60)
        self.assertTrue({one[3] for one in checked} == {"global", "shared"})

    def test_all_that_is_in_the_page_agrees_with_the_counts(self):
        self.open()
        result = self.run_script(CHECK_ALL + "(9)")
        self.assertEqual(result["wrong"], [])
        self.assertGreater(result["checked"], 20_000)

    def test_block_warp_and_time(self):
        self.open()
        self.choose("stage-0", "04_register_blocking")
        kernel = next(
            kernel
            for stage in self.data["trace"]["stages"]
            if stage["stage"] == "04_register_blocking"
            for kernel in stage["kernels"]
            if kernel["kernel"] == "conv2d_tiled"
        )
        chosen = kernel["warps"][4]  # the middle block's middle warp
        self.choose("block-0", str(chosen["block"]))
        self.choose("warp-0", str(chosen["warp"]))
        self.assertEqual(
            self.run_script(
                "[document.getElementById('block-0').value"
                ", document.getElementById('warp-0').value].map(Number)"
            ),
            [chosen["block"], chosen["warp"]],
        )
        before = self.texts("#figure-0")
        self.run_script(
            "(e => { e.value = 7; e.dispatchEvent(new Event('input')); })"
            "(document.getElementById('iteration-0'))"
        )
        self.assertIn("Time 8 of", self.texts("#time-0")[0])
        self.assertNotEqual(self.texts("#figure-0"), before)

    def test_two_side_by_side_and_stacked(self):
        for width, side_by_side in ((1280, True), (390, False)):
            self.open(width=width)
            self.choose("stage-0", "04_register_blocking")
            self.choose("stage-1", "06_async_copies")
            tops = self.run_script(
                "[...document.querySelectorAll('.panel')].map(p => p.getBoundingClientRect().top)"
            )
            self.assertEqual(len(tops), 2)
            self.assertEqual(tops[0] == tops[1], side_by_side)
            self.assertLessEqual(self.run_script("document.documentElement.scrollWidth"), width)

    def test_lanes_light_up(self):
        self.open()
        self.choose("stage-0", "01_naive")
        self.run_script("document.querySelector('#figure-0 .lane').focus()")
        self.browser.press("ArrowRight")
        self.assertEqual(self.run_script("document.activeElement.textContent"), "1")
        self.assertGreater(
            self.run_script("document.querySelectorAll('#figure-0 .cell.lit').length"), 0
        )
        self.assertRegex(
            self.texts("#figure-0 .told")[0], r"^lane 1: input\[0\]\[0\]\[\d+\]\[\d+\], byte \d+$"
        )

    def test_by_keyboard(self):
        self.open()
        reached = set()
        for _ in range(400):
            self.browser.press("Tab")
            self.assertTrue(
                self.run_script(
                    "(e => e === document.body || (s => s.outlineStyle !== 'none')(getComputedStyle(e)))"
                    "(document.activeElement)"
                ),
                "the focus can't be seen",
            )
            reached.add(
                self.run_script(
                    "(e => (e.closest('section') || {}).id || e.tagName)(document.activeElement)"
                )
            )
            if "pictures" in reached:
                break
        self.assertLessEqual(
            {"ladder", "neighbours", "warp", "roofline", "traffic", "pictures"}, reached
        )
        self.run_script("document.getElementById('rung-02_im2col_gemm').focus()")
        self.browser.press("Enter")
        self.assertEqual(self.run_script("document.activeElement.id"), "rung-02_im2col_gemm")
        self.assertEqual(self.texts("#details h3"), ["02_im2col_gemm"])

    def test_roofline_and_traffic_tell_their_values(self):
        self.open()
        roof = self.data["problems"][0]["profiles"][0]["roofline"]
        marks = self.run_script("[...document.querySelectorAll('.mark')].map(m => m.dataset.tip)")
        expected = [
            f"{stage}, {level}: "
            for level, points in roof["points"].items()
            for stage, *_ in points
        ]
        self.assertEqual([mark[: mark.index(": ") + 2] for mark in marks], expected)
        self.run_script(
            "document.querySelector('.mark').scrollIntoView({block: 'center', behavior: 'instant'})"
        )
        x, y = self.run_script(
            "(r => [r.x + r.width / 2, r.y + r.height / 2])"
            "(document.querySelector('.mark').getBoundingClientRect())"
        )
        time.sleep(0.1)  # scrolling hides the tip
        self.browser.point(x, y)
        self.assertIn(
            "FLOP per byte",
            self.run_script(
                "document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent"
            ),
        )
        values = self.texts("#traffic .value")
        columns = {
            column["heading"]: column["cells"]
            for column in self.data["problems"][0]["profiles"][0]["columns"]
        }
        profile = self.data["problems"][0]["profiles"][0]
        self.assertEqual(
            values,
            [
                columns[level][stage][1]
                for stage in profile["stages"]
                for level in profile["levels"]
                if stage in columns[level]
            ],
        )

    def test_pictures(self):
        self.open()
        self.run_script(
            "document.getElementById('maps').scrollIntoView({block: 'start', behavior: 'instant'})"
        )
        left, top, width = self.run_script(
            "(r => [r.x, r.y, r.width])(document.getElementById('maps').getBoundingClientRect())"
        )
        own = self.data["pictures"]
        natural = own["gap"] + own["columns"] * (own["Q"] * own["map_scale"] + own["gap"])
        k, p, q = 14, 5, 20  # row 1, column 2 of the maps
        step = own["Q"] * own["map_scale"] + own["gap"]
        point = [
            own["gap"] + place * step + own["map_scale"] * (at + 0.5)
            for place, at in ((2, q), (1, p))
        ]
        self.browser.point(left + point[0] * width / natural, top + point[1] * width / natural)
        self.assertEqual(
            self.texts("#told"),
            [f"Filter {k}, output row {p}, column {q}: input rows 18 to 28, columns 78 to 88."],
        )

    def test_every_problem(self):
        self.open()
        for i, problem in enumerate(self.data["problems"]):
            self.choose("problem", str(i))
            self.assertEqual(self.texts("button.rung .name"), problem["stages"])

    def test_dark_and_light_and_readable(self):
        colours = set()
        for dark in (False, True):
            for width in (1280, 390):
                self.open(width=width, dark=dark)
                colours.add(self.run_script("getComputedStyle(document.body).backgroundColor"))
                self.assertLessEqual(self.run_script("document.documentElement.scrollWidth"), width)
                self.assertGreaterEqual(
                    self.run_script(
                        "Math.min(...[...document.querySelectorAll('body *')]"
                        ".filter(e => e.textContent.trim() && e.getClientRects().length)"
                        ".map(e => parseFloat(getComputedStyle(e).fontSize)))"
                    ),
                    11,
                )
        self.assertEqual(len(colours), 2)

    def test_bad_input_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            half = os.path.join(folder, "half.json")
            with open(half, "w", encoding="utf-8") as file:
                file.write('{"format": ')
            for inputs, words in (
                (NOTHING, ["No times", "No counters", "No addresses", "No pictures"]),
                (page.Inputs(half, [half], folder, half), ["not JSON, or cut short"]),
            ):
                path = os.path.join(folder, "index.html")
                page.write(path, inputs)
                self.open(path)
                shown = " ".join(self.texts(".notice"))
                for word in words + [
                    "./ladder bench",
                    "./ladder profile",
                    "profile --trace",
                    "./ladder run",
                ]:
                    self.assertIn(word, shown)

    def test_a_wrong_count_is_told(self):
        trace = small_trace()
        trace["stages"][0]["kernels"][0]["warps"][0]["runs"] = [[0, 0, 8, 3, 5, 0]]
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/trace.json", "w", encoding="utf-8") as file:
                json.dump(trace, file)
            page.write(f"{folder}/index.html", NOTHING._replace(trace=f"{folder}/trace.json"))
            self.open(f"{folder}/index.html")
            self.assertIn("Drawn: 1; counted: 5", " ".join(self.texts(".notice")))
            self.assertEqual(len(self.run_script(CHECK_ALL + "(1)")["wrong"]), 3)

    @unittest.skipUnless("CONVLADDER_PROGRAM" in os.environ, "no program that counts is named")
    def test_what_the_program_counts_today(self):
        with tempfile.TemporaryDirectory() as folder:
            for shape in ("nasty_primes", "nasty_groups"):
                trace = f"{folder}/trace.json"
                subprocess.run(
                    [
                        os.environ["CONVLADDER_PROGRAM"],
                        "profile",
                        "--shape",
                        shape,
                        "--trace",
                        trace,
                        "--json",
                        f"{folder}/profile.json",
                    ],
                    check=True,
                    stdout=subprocess.DEVNULL,
                )
                page.write(
                    f"{folder}/index.html",
                    NOTHING._replace(profiles=[f"{folder}/profile.json"], trace=trace),
                )
                self.open(f"{folder}/index.html")
                result = self.run_script(CHECK_ALL + "(1)")
                self.assertEqual(result["wrong"], [])
                self.assertGreater(result["checked"], 1000)


if __name__ == "__main__":
    in_browser = "--browser" in sys.argv
    if in_browser:
        sys.argv.remove("--browser")
        if not browser.program():
            print("skipped: no browser here (apt-get install chromium)")
            sys.exit(77)
        del Data, BadInput, Show
    else:
        del InABrowser
    unittest.main()
