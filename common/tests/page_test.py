#!/usr/bin/env python3
"""The page of ./ladder report: what is in it, what it says of bad input, and, in a browser, what it
draws. `page_test.py --browser` runs the latter tests, and is skipped where there is none.

CONVLADDER_PROGRAM=FILE: the browser tests also trace small problems with this program, which counts.
"""

import copy
import json
import os
import re
import shutil
import subprocess
import sys
import time
import unittest
from unittest import mock

from common.tests.fake_program import ROOT, FolderTest, called

from common.tests import browser
from common.show import page, report, results, show

RESULTS = os.path.join(ROOT, "docs/results")
PUBLISHED = os.path.join(RESULTS, "index.html")
MOST_BYTES = 3_000_000
SHAPE = "n1 c1 8x8 k1 1x1 stride 1x1 pad 0x0 dil 1x1"
NOTHING = page.Inputs(None, [], None, None)
INPUTS = page.Inputs(f"{RESULTS}/bench_h200.json",
                     [f"{RESULTS}/profile_h200.json", f"{RESULTS}/profile_sim.json"],
                     f"{RESULTS}/run_sim", f"{RESULTS}/trace_sim.json")


def data_of(path):
    """What a page holds."""
    with open(path, encoding="utf-8") as file:
        return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>',
                                    file.read(), re.DOTALL)[1])


def small_trace(stage="01_naive", source="a\nb\n", cost=1):
    """One load of two floats by one lane, three times: a sector each."""
    instruction = {"line": "x.cu:2", "inlined": [], "space": "global", "operation": "load",
                   "bytes": 8, "memory": "input", "requests": 1, "sectors": 1, "wavefronts": 0,
                   "conflicts": 0, "unique_bytes": 8}
    kernel = {"kernel": "k", "launches": 1, "grid": [1, 1, 1], "block": [32, 1, 1], "shared": [],
              "instructions": [instruction],
              "warps": [{"block": 0, "warp": 0, "cut": [], "runs": [[0, 0, 8, 3, cost, 0]]}]}
    stages = [{"stage": stage, "files": {"x.cu": source}, "patterns": [[0] + 31 * [None]],
               "memory": [{"name": "input", "begin": 0, "bytes": 256}], "kernels": [kernel]}]
    return {"format": "convladder trace", "version": 2, "problem": "small", "shape": SHAPE,
            "bias": True, "stages": stages}


class Data(FolderTest):
    def test_all_in_one_file_that_is_not_too_large(self):
        with open(PUBLISHED, encoding="utf-8") as file:
            text = file.read()
        self.assertLess(len(text.encode()), MOST_BYTES)
        self.assertNotRegex(text, r"""(src|href)=["']?(https?:)?//|@import|url\(["']?http""")
        self.assertNotRegex(text, r"\{\{\w+\}\}")

    def test_figures_are_those_of_the_tables(self):
        problem = page.page_data(INPUTS)["problems"][0]
        with open(f"{RESULTS}/README.md", encoding="utf-8") as file:
            tables = file.read()
        for stage, (_, shown, _) in problem["columns"][0]["cells"].items():
            self.assertRegex(tables, rf"\| {stage} \| {re.escape(shown)} \|")
        cells = {column["heading"]: column["cells"] for column in problem["profiles"][0]["columns"]}
        row = [re.escape(text) for level in ("requested", "L1")
               for text in cells[level]["04_register_blocking"][1:]]
        pattern = r"\| 04_register_blocking \| {} \| [\d.]+ \| {} \| {} \| [\d.]+ \| {} \|"
        self.assertRegex(tables, pattern.format(*row))

    def test_what_the_lines_cost_is_what_the_kernels_cost(self):
        counted = {(record["stage"], record["kernel"]): record
                   for record in results.read_json(f"{RESULTS}/profile_sim.json")}
        compared = 0
        for stage in page.page_data(INPUTS)["trace"]["stages"]:
            for kernel in stage["kernels"]:
                record = counted.get((stage["stage"], kernel["kernel"]))
                if record:  # else counted under another stage's name
                    self.assertEqual(sum(one["sectors"] for one in kernel["instructions"]),
                                     sum(record[f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum"]
                                         for op in ("ld", "st")))
                    compared += 1
        self.assertGreater(compared, 8)

    def test_a_large_trace_loses_warps_and_says_so(self):
        trace = small_trace()
        kernel = trace["stages"][0]["kernels"][0]
        warp = {**kernel["warps"][0], "runs": [[0, 0, 8, 3, 1, 0] * 30_000]}
        kernel["warps"] = [{**warp, "block": block} for block in range(16)]
        data = page.page_data(NOTHING._replace(trace=self.save("trace.json", trace)))
        kept = len(data["trace"]["stages"][0]["kernels"][0]["warps"])
        self.assertGreater(kept, 1)
        self.assertEqual(data["trace"]["left_out"], 16 - kept)
        self.assertLess(len(page.html(data).encode()), MOST_BYTES)

    def test_nothing_ends_the_data_too_soon(self):
        trace = self.save("trace.json", small_trace(source="</script><b>\n<!-- \n"))
        page.write(self.path("index.html"), NOTHING._replace(trace=trace))
        stage, = data_of(self.path("index.html"))["trace"]["stages"]
        self.assertEqual(stage["files"]["x.cu"], "</script><b>\n<!-- \n")

    def test_pictures_without_a_png_library(self):
        self.assertEqual(page.png_of(b"\1\2\3" * 6, 3, 2)[16:24], b"\0\0\0\3\0\0\0\2")
        self.save("input.ppm", "P6\n3 2\n255\n" + "\1\2\3" * 6)
        self.assertEqual(page.read_picture(self.path("input")), page.png_of(b"\1\2\3" * 6, 3, 2))


class BadInput(FolderTest):
    def notices(self, **inputs):
        notices = page.page_data(NOTHING._replace(**inputs))["notices"]
        return {notice["about"]: notice for notice in notices}

    def test_nothing_at_all(self):
        notices = self.notices()
        for about, command in (("bench", "bench"), ("profile", "profile"), ("run", "run"),
                               ("trace", "profile --trace")):
            self.assertRegex(notices.pop(about)["command"],
                             rf"^\./ladder (--backend sim )?{command}")
        self.assertEqual(notices, {})

    def test_files_that_are_no_good(self):
        half = json.dumps(small_trace())[:200]
        version = r"version \d; this report reads version \d"
        for about, value, said in (
                ("trace", {**small_trace(), "version": 1}, version),
                ("bench", {"format": "convladder bench", "version": 7}, version),
                ("trace", {"format": "x"}, "not made by profile --trace"),
                *((about, text, "not JSON, or cut short") for about in ("trace", "bench")
                  for text in ("", half, "[1, 2"))):
            notices = self.notices(**{about: self.save("bad.json", value)})
            self.assertRegex(notices[about]["text"], said)

    def test_a_trace_that_lacks_something(self):
        for spoil in (lambda trace, kernel: trace.pop("stages"),
                      lambda trace, kernel: trace.update(shape="n1"),
                      lambda trace, kernel: kernel.pop("warps"),
                      lambda trace, kernel: kernel["warps"][0].pop("cut"),
                      lambda trace, kernel: trace["stages"][0].update(patterns=None),
                      lambda trace, kernel: kernel["warps"][0].update(runs=[])):
            trace = small_trace()
            spoil(trace, trace["stages"][0]["kernels"][0])
            notices = self.notices(trace=self.save("trace.json", trace))
            self.assertIn("not a whole trace", notices["trace"]["text"])

    def test_pictures_of_another_run_or_cut_short(self):
        for name in ("input.png", "filters.png", "feature_maps.png", "run.json"):
            shutil.copy(f"{RESULTS}/run_sim/{name}", self.folder)
        self.assertNotIn("run", self.notices(pictures=self.folder))
        self.save("run.json", {"shape": SHAPE})
        self.assertIn("of another run", self.notices(pictures=self.folder)["run"]["text"])
        shutil.copy(f"{RESULTS}/run_sim/run.json", self.folder)
        os.truncate(self.path("filters.png"), 1000)
        self.assertIn("cut short", self.notices(pictures=self.folder)["run"]["text"])
        os.remove(self.path("filters.png"))
        self.assertIn("isn't there", self.notices(pictures=self.folder)["run"]["text"])

    def test_report_writes_the_page_before_it_fails(self):
        half = self.save("half.json", "{")
        self.assertEqual(called(report.main, ["--profile", half, "--out", self.folder])[0], 1)
        notices = data_of(self.path("index.html"))["notices"]
        self.assertIn("half.json: not JSON", " ".join(notice["text"] for notice in notices))


class Show(FolderTest):
    """What ./ladder profile --show makes of what was there."""

    def test_a_changed_stage_keeps_what_it_was(self):
        old, new = small_trace(), small_trace(source="b\na\n")
        old["stages"] += small_trace("02_im2col_gemm")["stages"]
        joined = show.joined_trace(old, new)
        self.assertEqual([(stage["stage"], stage["files"]["x.cu"]) for stage in joined["stages"]],
                         [("01_naive", "b\na\n"), ("01_naive, before", "a\nb\n"),
                          ("02_im2col_gemm", "a\nb\n")])
        self.assertEqual(show.joined_trace(joined, copy.deepcopy(new)), joined)

    def test_another_problem_begins_anew(self):
        new = {**small_trace(), "bias": False}
        self.assertEqual(show.joined_trace(small_trace(), new), new)

    def test_the_files_are_its_own(self):
        for option in ("--json", "--trace=x.json"):
            status, _, said = called(show.main, ["program", "--show", option, "x.json"])
            self.assertEqual(status, 2)
            self.assertIn("leave out --json and --trace", said)

    def test_a_stage_that_is_wrong_shows_nothing(self):
        with mock.patch.object(show, "REPORT", self.folder):
            self.assertEqual(show.main(["false", "--show"]), 1)
        self.assertEqual(self.files(), [])

    def test_a_stage_of_ones_own(self):
        counts = {"version": 1, "stage": "11_my_idea", "problem": "small", "shape": SHAPE,
                  "bias": True, "kernel": "k", "launches": 1, "source": "simulator",
                  "library": False, "flop": 128, "sectors_touched_read.sum": 3,
                  "sectors_touched_write.sum": 1}
        program = self.program("program", f"""
            trace = {small_trace("11_my_idea")!r}
            for option, value in ("--trace", trace), ("--json", [{counts!r}]):
                json.dump(value, open(sys.argv[sys.argv.index(option) + 1], "w"))
            """)
        with (mock.patch.object(show, "REPORT", self.path("report")),
              mock.patch.dict(os.environ, {"DISPLAY": "", "WAYLAND_DISPLAY": ""})):
            status, said, _ = called(show.main, [program, "--stage", "11_my_idea", "--show"])
        self.assertEqual(status, 0)
        self.assertIn("open it in a browser", said)
        data = data_of(self.path("report/index.html"))
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


class InABrowser(FolderTest):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser()
        cls.js = cls.browser.run
        cls.data = data_of(PUBLISHED)
        cls.problem = cls.data["problems"][0]
        cls.profile = cls.problem["profiles"][0]
        cls.kernels = [(stage["stage"], kernel) for stage in cls.data["trace"]["stages"]
                       for kernel in stage["kernels"]]

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()

    def setUp(self):
        super().setUp()
        self.browser.errors.clear()
        self.browser.requested.clear()

    def tearDown(self):
        self.assertEqual(self.browser.errors, [])
        others = [url for url in self.browser.requested if not url.startswith(("file:", "data:"))]
        self.assertEqual(others, [], "the page asks for what isn't in it")

    def open(self, path=PUBLISHED, **how):
        self.browser.open(path, **how)

    def show(self, **inputs):
        """A page of these inputs."""
        page.write(self.path("index.html"), NOTHING._replace(**inputs))
        self.open(self.path("index.html"))

    def texts(self, selector):
        return self.js(f"[...document.querySelectorAll({json.dumps(selector)})]"
                       ".map(e => e.textContent)")

    def text(self, selector):
        return self.texts(selector)[0]

    def count(self, selector):
        return self.js(f"document.querySelectorAll({json.dumps(selector)}).length")

    def choose(self, name, value, event="change"):
        self.js(f"(e => {{ e.value = {json.dumps(value)};"
                f"         e.dispatchEvent(new Event('{event}')); }})"
                f"(document.getElementById({json.dumps(name)}))")

    def click(self, selector):
        self.js(f"document.querySelector({json.dumps(selector)}).click()")

    def place_of(self, selector, block):
        """Left, top, width and height, when it has been scrolled to."""
        return self.js(f"(e => (e.scrollIntoView({{block: '{block}', behavior: 'instant'}}),"
                       " (r => [r.x, r.y, r.width, r.height])(e.getBoundingClientRect())))"
                       f"(document.querySelector({json.dumps(selector)}))")

    def test_rungs(self):
        self.open()
        cells = self.problem["columns"][0]["cells"]
        self.assertEqual(self.texts("button.rung .name"), list(cells))
        for stage, (_, shown, factor) in cells.items():
            self.click(f"#rung-{stage}")
            self.assertEqual(self.texts(f"#rung-{stage} .value"),
                             [f"{shown} " + (f"× {factor}" if factor else "")])
            self.assertEqual(self.texts("[aria-pressed=true].rung .name"), [stage])
            self.assertEqual(self.texts("#details h3"), [stage])
            # Traffic by level is of those that Nsight Compute has read.
            read = stage in self.profile["columns"][0]["cells"]
            self.assertEqual(self.texts(".group.chosen h3"), [stage] if read else [])
        for column in self.profile["columns"]:  # every other figure
            self.choose("metric", column["heading"])
            shown = [re.split(" [×·] ", text)[0].strip()
                     for text in self.texts("button.rung .value")]
            self.assertEqual(shown, [column["cells"].get(stage, ["", "not measured"])[1]
                                     for stage in cells])

    def test_without_times_the_rungs_are_floors(self):
        self.show(profiles=[f"{RESULTS}/profile_sim.json"])
        profile = data_of(self.path("index.html"))["problems"][0]["profiles"][0]
        self.assertEqual(self.js("document.getElementById('metric').value"), "at least [ms]")
        for stage, limit in profile["floors"].items():
            _, shown, factor = profile["columns"][0]["cells"][stage]
            self.assertEqual(self.texts(f"#rung-{stage} .value"),
                             [f"{shown} " + (f"× {factor}" if factor else "") + f" · {limit}"])
        self.click("#rung-03_shared_tiling")
        self.assertIn("limited by: L1's data pipe.", self.text("#details p"))

    def test_neighbours(self):
        self.open()
        self.click("#rung-05_fused_bias")
        expected = [[column["heading"], column["cells"]["04_register_blocking"][1],
                     *column["cells"]["05_fused_bias"][1:]]
                    for column in self.problem["columns"] + self.profile["columns"]]
        self.assertEqual(self.js("[...document.querySelectorAll('#steps tr')].slice(1)"
                                 ".map(r => [...r.children].map(c => c.textContent))"), expected)
        self.assertTrue(any("bias" in line for line in self.texts("pre.code .new")))
        self.click("#rung-01_naive")
        self.assertIn("first rung", self.text("#neighbours .body"))

    def test_sectors_and_wavefronts_drawn_are_those_counted(self):
        self.open()
        checked = set()
        for stage, kernel in self.kernels:
            self.choose("stage-0", stage)
            own = [other for name, other in self.kernels if name == stage]
            self.choose("kernel-0", str(own.index(kernel)))
            for i, instruction in enumerate(kernel["instructions"]):
                line = "#line-0-" + instruction["line"].rsplit(":", 1)[1]
                if not self.count(line):
                    continue  # in another file than the kernel's heaviest line
                self.click(line)
                if self.count("#instruction-0"):
                    self.choose("instruction-0", str(i))
                runs, shared = kernel["warps"][0]["runs"][i], instruction["space"] == "shared"
                unit = "wavefront" if shared else "sector"
                self.assertIn(f"{instruction[unit + 's']:,} {unit}", self.text("#counts-0"))
                if not runs:
                    self.assertIn("never comes", self.text("#figure-0"))
                    continue
                drawn = [int(self.js("document.querySelector('#figure-0 svg').dataset.drawn")),
                         self.count("#figure-0 :is(g.sector, g.wavefront)"),
                         self.count("#figure-0 g.wavefront:has(.conflict)")]
                self.assertEqual(drawn, [runs[4], runs[4], runs[5] if shared else 0],
                                 (stage, instruction))
                checked.add((stage, kernel["kernel"], instruction["line"], shared))
        self.assertGreater(len({one[:2] for one in checked}), 9)  # kernels
        self.assertGreater(len(checked), 60)
        self.assertEqual({one[3] for one in checked}, {False, True})

    def test_all_that_is_in_the_page_agrees_with_the_counts(self):
        self.open()
        result = self.js(CHECK_ALL + "(9)")
        self.assertEqual(result["wrong"], [])
        self.assertGreater(result["checked"], 20_000)

    def test_block_warp_and_time(self):
        self.open()
        self.choose("stage-0", "04_register_blocking")
        kernel, = [kernel for stage, kernel in self.kernels
                   if (stage, kernel["kernel"]) == ("04_register_blocking", "conv2d_tiled")]
        chosen = kernel["warps"][4]  # the middle block's middle warp
        for name in ("block", "warp"):
            self.choose(name + "-0", str(chosen[name]))
        self.assertEqual(
            self.js("['block-0', 'warp-0'].map(id => +document.getElementById(id).value)"),
            [chosen["block"], chosen["warp"]])
        before = self.texts("#figure-0")
        self.choose("iteration-0", 7, "input")
        self.assertIn("Time 8 of", self.text("#time-0"))
        self.assertNotEqual(self.texts("#figure-0"), before)

    def test_two_side_by_side_and_stacked(self):
        for width, side_by_side in ((1280, True), (390, False)):
            self.open(width=width)
            self.choose("stage-0", "04_register_blocking")
            self.choose("stage-1", "06_async_copies")
            one, other = self.js(
                "[...document.querySelectorAll('.panel')].map(p => p.getBoundingClientRect().top)")
            self.assertEqual(one == other, side_by_side)
            self.assertLessEqual(self.js("document.documentElement.scrollWidth"), width)

    def test_lanes_light_up(self):
        self.open()
        self.choose("stage-0", "01_naive")
        self.js("document.querySelector('#figure-0 .lane').focus()")
        self.browser.press("ArrowRight")
        self.assertEqual(self.js("document.activeElement.textContent"), "1")
        self.assertGreater(self.count("#figure-0 .cell.lit"), 0)
        self.assertRegex(self.text("#figure-0 .told"),
                         r"^lane 1: input\[0\]\[0\]\[\d+\]\[\d+\], byte \d+$")

    def test_by_keyboard(self):
        self.open()
        reached = set()
        while "pictures" not in reached:
            self.browser.press("Tab")
            where, outline = self.js("(e => [(e.closest('section') || {}).id || e.tagName, "
                                     "getComputedStyle(e).outlineStyle])(document.activeElement)")
            self.assertTrue(where == "BODY" or outline != "none", "the focus can't be seen")
            self.assertFalse(where == "BODY" and reached, "the end, and no pictures")
            reached.add(where)
        self.assertLessEqual({"ladder", "neighbours", "warp", "roofline", "traffic"}, reached)
        self.js("document.getElementById('rung-02_im2col_gemm').focus()")
        self.browser.press("Enter")
        self.assertEqual(self.js("document.activeElement.id"), "rung-02_im2col_gemm")
        self.assertEqual(self.texts("#details h3"), ["02_im2col_gemm"])

    def test_roofline_and_traffic_tell_their_values(self):
        self.open()
        marks = self.js("[...document.querySelectorAll('.mark')].map(m => m.dataset.tip)")
        points = self.profile["roofline"]["points"]
        self.assertEqual([mark.split(": ")[0] for mark in marks],
                         [f"{stage}, {level}" for level in points for stage, *_ in points[level]])
        left, top, width, height = self.place_of(".mark", "center")
        time.sleep(0.1)  # scrolling hides the tip
        self.browser.point(left + width / 2, top + height / 2)
        self.assertIn("FLOP per byte", self.text("#tip:not([hidden])"))
        columns = {column["heading"]: column["cells"] for column in self.profile["columns"]}
        self.assertEqual(self.texts("#traffic .value"),
                         [columns[level][stage][1] for stage in self.profile["stages"]
                          for level in self.profile["levels"] if stage in columns[level]])

    def test_pictures(self):
        self.open()
        left, top, width, _ = self.place_of("#maps", "start")
        own = self.data["pictures"]
        step = own["Q"] * own["map_scale"] + own["gap"]
        scale = width / (own["gap"] + own["columns"] * step)
        k, p, q = 14, 5, 20  # row 1, column 2 of the maps
        x, y = (own["gap"] + place * step + own["map_scale"] * (at + 0.5)
                for place, at in ((2, q), (1, p)))
        self.browser.point(left + x * scale, top + y * scale)
        self.assertEqual(self.texts("#told"), [f"Filter {k}, output row {p}, column {q}: "
                                               "input rows 18 to 28, columns 78 to 88."])

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
                colours.add(self.js("getComputedStyle(document.body).backgroundColor"))
                self.assertLessEqual(self.js("document.documentElement.scrollWidth"), width)
                self.assertGreaterEqual(self.js(
                    "Math.min(...[...document.querySelectorAll('body *')]"
                    ".filter(e => e.textContent.trim() && e.getClientRects().length)"
                    ".map(e => parseFloat(getComputedStyle(e).fontSize)))"), 11)
        self.assertEqual(len(colours), 2)

    def test_bad_input_is_told(self):
        half = self.save("half.json", '{"format": ')
        cut = {"bench": half, "profiles": [half], "pictures": self.folder, "trace": half}
        commands = ["./ladder bench", "./ladder profile", "profile --trace", "./ladder run"]
        for inputs, words in (({}, ["No times", "No counters", "No addresses", "No pictures"]),
                              (cut, ["not JSON, or cut short"])):
            self.show(**inputs)
            shown = " ".join(self.texts(".notice"))
            for word in words + commands:
                self.assertIn(word, shown)

    def test_a_wrong_count_is_told(self):
        self.show(trace=self.save("trace.json", small_trace(cost=5)))
        self.assertIn("Drawn: 1; counted: 5", " ".join(self.texts(".notice")))
        self.assertEqual(len(self.js(CHECK_ALL + "(1)")["wrong"]), 3)

    @unittest.skipUnless("CONVLADDER_PROGRAM" in os.environ, "no program that counts is named")
    def test_what_the_program_counts_today(self):
        trace, counts = self.path("trace.json"), self.path("profile.json")
        for shape in ("nasty_primes", "nasty_groups"):
            subprocess.run([os.environ["CONVLADDER_PROGRAM"], "profile", "--shape", shape,
                            "--trace", trace, "--json", counts], check=True,
                           stdout=subprocess.DEVNULL)
            self.show(profiles=[counts], trace=trace)
            result = self.js(CHECK_ALL + "(1)")
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
