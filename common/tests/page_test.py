"""The page of ./ladder report: what is in it, what it says of bad input, and, where Chromium is, what it
draws."""
import copy
import json
import os
import re
import shutil
import subprocess
import unittest
from unittest import mock

from common.measure import profile
from common.show import page, records, report
from common.tests.folder_test import ROOT, FolderTest, called

RESULTS = os.path.join(ROOT, "docs/results")
PUBLISHED = os.path.join(RESULTS, "index.html")
MOST_BYTES = 3_000_000
SHAPE = "n1 c1 8x8 k1 1x1 stride 1x1 pad 0x0 dil 1x1"
NOTHING = page.Inputs([], [], None, None)
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def small_trace(stage="01_naive", source="a\nb\n"):
    """One load of two floats by one lane, three times: a sector each."""
    instruction = {"line": "x.cu:2", "inlined": [], "space": "global", "operation": "load",
                   "bytes": 8, "memory": "input", "requests": 1, "cost": 1, "conflicts": 0,
                   "unique_bytes": 8}
    kernel = {"kernel": "k", "launches": 1, "grid": [1, 1, 1], "block": [32, 1, 1], "shared": [],
              "instructions": [instruction],
              "warps": [{"block": 0, "warp": 0, "cut": [], "runs": [[3, 0, 0, 0, 8]]}]}
    stages = [{"stage": stage, "files": {"x.cu": source}, "patterns": [[0] + 31 * [None]],
               "services": [[1, 0]],
               "memory": [{"name": "input", "begin": 0, "bytes": 256}], "kernels": [kernel]}]
    return {"format": "convladder trace", "version": 3, "problem": "small", "shape": SHAPE,
            "bias": True, "stages": stages}


class Data(FolderTest):
    def test_all_in_one_file_that_is_not_too_large(self):
        with open(PUBLISHED, encoding="utf-8") as file:
            text = file.read()
        self.assertLess(len(text.encode()), MOST_BYTES)
        self.assertNotRegex(text, r"""(src|href)=["']?(https?:)?//|@import|url\(["']?http""")
        self.assertNotRegex(text, r"\{\{\w+\}\}")

    def test_figures_are_those_of_the_tables(self):
        problem = next(each for each in page.data_of(PUBLISHED)["problems"] if each["title"].endswith("H200"))
        with open(f"{RESULTS}/README.md", encoding="utf-8") as file:
            tables = file.read()
        cells = problem["columns"][0]["cells"]
        row = r" .*\| ".join(re.escape(shown) for _, shown, _ in cells.values())  # forms stand between
        self.assertRegex(tables, rf"\| alexnet_conv1 \| {row} \|")
        cells = {column["heading"]: column["cells"] for column in problem["profiles"][0]["columns"]}
        row = [re.escape(text) for level in ("requested", "L1")
               for text in cells[level]["04_register_blocking"][1:]]
        pattern = r"\| 04_register_blocking \| {} \| [\d.]+ \| {} \| {} \| [\d.]+ \| {} \|"
        self.assertRegex(tables, pattern.format(*row))

    def test_what_the_lines_cost_is_what_the_kernels_cost(self):
        counted = {(record["stage"], record["kernel"]): record
                   for record in records.read_json(f"{RESULTS}/profile_sim.json")}
        compared = 0
        for stage in page.data_of(PUBLISHED)["trace"]["stages"]:
            for kernel in stage["kernels"]:
                record = counted.get((stage["stage"], kernel["kernel"]))
                if record:  # else counted under another stage's name
                    self.assertEqual(sum(one["cost"] for one in kernel["instructions"]
                                         if one["space"] == "global"),
                                     sum(record[f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum"]
                                         for op in ("ld", "st")))
                    compared += 1
        self.assertGreater(compared, 8)

    def test_a_large_trace_loses_warps_and_says_so(self):
        trace = small_trace()
        kernel = trace["stages"][0]["kernels"][0]
        warp = {**kernel["warps"][0], "runs": [[3, 0, 0, 0, 8] * 36_000]}
        kernel["warps"] = [{**warp, "block": block} for block in range(16)]
        data = page.page_data(NOTHING._replace(trace=self.save("trace.json", trace)))
        kept = len(data["trace"]["stages"][0]["kernels"][0]["warps"])
        self.assertGreater(kept, 1)
        self.assertEqual(data["trace"]["left_out"], 16 - kept)
        self.assertLess(len(page.html(data).encode()), MOST_BYTES)

    def test_a_page_keeps_its_trace_and_nothing_ends_the_data_too_soon(self):
        trace = self.save("trace.json", small_trace(source="</script><b>\n<!-- \n"))
        page.write(self.path("index.html"), NOTHING._replace(trace=trace))
        kept = page.data_of(self.path("index.html"))
        page.write(self.path("again.html"), NOTHING._replace(kept=kept))
        stage, = page.data_of(self.path("again.html"))["trace"]["stages"]
        self.assertEqual(stage["files"]["x.cu"], "</script><b>\n<!-- \n")


class BadInput(FolderTest):
    def notices(self, **inputs):
        notices = page.page_data(NOTHING._replace(**inputs))["notices"]
        return {notice["about"]: notice for notice in notices}

    def test_nothing_at_all(self):
        commands = {about: notice["command"] for about, notice in self.notices().items()}
        self.assertEqual(set(commands), {"bench", "profile", "run", "trace"})
        for about, command in commands.items():
            self.assertIn({"trace": "profile --trace"}.get(about, about), command)

    def test_pictures_that_are_gone(self):
        run = {"shape": SHAPE, "pictures": {}, "backend": "sim", "data": "x"}
        notice = self.notices(run=self.save("run.json", run))["run"]
        self.assertRegex(notice["text"], "^No pictures: .* gone")
        self.assertIsNone(notice["path"])  # no failure of report

    def test_report_writes_the_page_before_it_fails(self):
        half = self.save("half.json", "{")
        self.assertEqual(called(report.main, ["--profile", half, "--out", self.folder])[0], 1)
        notices = page.data_of(self.path("index.html"))["notices"]
        self.assertIn("half.json: not JSON", " ".join(notice["text"] for notice in notices))


class Show(FolderTest):
    """What ./ladder profile --show makes of what was there."""

    def test_a_changed_stage_keeps_what_it_was(self):
        old, new = small_trace(), small_trace(source="b\na\n")
        old["stages"] += small_trace("02_im2col_gemm")["stages"]
        joined = profile.joined_trace(old, new)
        self.assertEqual([(stage["stage"], stage["files"]["x.cu"]) for stage in joined["stages"]],
                         [("01_naive", "b\na\n"), ("01_naive, before", "a\nb\n"),
                          ("02_im2col_gemm", "a\nb\n")])
        self.assertEqual(profile.joined_trace(joined, copy.deepcopy(new)), joined)
        other = {**new, "bias": False}  # another problem begins anew
        self.assertEqual(profile.joined_trace(joined, other), other)

    def test_a_stage_that_is_wrong_shows_nothing(self):
        with mock.patch.object(profile, "REPORT", self.folder):
            status, *_ = called(profile.main, ["--program", shutil.which("false"), "--show"])
        self.assertEqual((status, self.files()), (1, []))

    def test_no_file_that_is_named_is_overwritten(self):
        path = self.path("one.json")
        for words in (["--trace", path], [f"--trace={path}"], ["--filters", path], ["--machine", path]):
            with mock.patch.object(profile.floors, "read_machine"):
                status, _, said = called(profile.main, ["--program", "x", "--json", path, *words])
            self.assertEqual((status, said), (2, f"ladder: error: {path}: would be overwritten\n"))


@unittest.skipUnless(BROWSER, "no Chromium here (apt-get install chromium)")
class InABrowser(FolderTest):
    """Loads a page without a window and evaluates an expression in it."""

    def evaluate(self, path, expression, width=1280):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        first = """<head><script>
            const thrown = []; window.addEventListener("error", event => thrown.push(event.message));
            </script>"""
        last = f"""<script>
            window.addEventListener("load", () => {{
              let value; try {{ value = {expression}; }} catch (error) {{ thrown.push(String(error)); }}
              const own = document.createElement("pre"); own.id = "result";
              own.textContent = JSON.stringify({{value, thrown}}); document.body.replaceChildren(own);
            }});</script></body>"""
        page_path = self.save("evaluated.html", text.replace("<head>", first, 1).replace("</body>", last, 1))
        done = subprocess.run([BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom",
                               f"--window-size={width},900", f"--user-data-dir={self.path('profile')}",
                               "--virtual-time-budget=20000", "file://" + page_path],
                              capture_output=True, text=True, timeout=180, check=False)
        found = re.search(r'<pre id="result">(.*?)</pre>', done.stdout, re.DOTALL)
        self.assertTrue(found, done.stderr[-2000:])
        answer = json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
        self.assertEqual(answer["thrown"], [])
        return answer.get("value")

    def test_stages_and_steps_are_those_of_the_data(self):
        problem = page.data_of(PUBLISHED)["problems"][0]
        cells = problem["columns"][0]["cells"]
        shown = self.evaluate(PUBLISHED, """(() => {
          const texts = selector => [...document.querySelectorAll(selector)].map(e => e.textContent);
          const opens = ["stage-0", "stage-1"].map(id => document.getElementById(id).value);
          document.getElementById("stage-05_fused_bias").click();
          const steps = [...document.querySelectorAll("#steps tr")].slice(1).map(
            row => [...row.children].map(cell => cell.textContent));
          return {opens, stages: texts("button.stage .name"), values: texts("button.stage .value"), steps,
                  marks: document.querySelectorAll(".mark").length,
                  first: (document.getElementById("stage-01_naive").click(), texts("#neighbours .body")[0])};
        })()""")
        self.assertEqual(shown["opens"], ["01_naive", "04_register_blocking"])
        self.assertEqual(shown["stages"], list(cells))
        self.assertEqual(shown["values"], [f"{text} " + (f"× {factor}" if factor else "")
                                           for _, text, factor in cells.values()])
        self.assertEqual(shown["steps"], [
            [column["heading"], column["cells"]["04_register_blocking"][1],
             *column["cells"]["05_fused_bias"][1:]]
            for column in problem["columns"] + problem["profiles"][0]["columns"]])
        points = problem["profiles"][0]["roofline"]["points"]
        self.assertEqual(shown["marks"], sum(map(len, points.values())))
        self.assertIn("first stage", shown["first"])

    def test_what_is_drawn(self):
        trace = self.save("trace.json", small_trace())
        page.write(self.path("page.html"), NOTHING._replace(trace=trace))
        notices, sectors, used = self.evaluate(self.path("page.html"), """[
            [...document.querySelectorAll(".notice")].map(e => e.textContent).join(" "),
            document.querySelectorAll("g.sector").length,
            [...document.querySelectorAll("g.sector .used")].map(e => e.getAttribute("data-tip"))]""")
        self.assertIn("No times", notices)
        self.assertEqual((sectors, used), (1, ["lane 0", "lane 0"]))


if __name__ == "__main__":
    unittest.main()
