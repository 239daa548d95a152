"""./ladder report: tables of times, and whether the committed texts are as it makes them. All figures here
are made up, but for those of docs/results.
"""
import os
import re
import unittest

from common.show import (
    blocks, counters, files, records, report, time_tables)
from common.tests.folder_test import ROOT, FolderTest, called
from common.tests.page_test import small_trace
from common.variants.task import read_all

SHAPE = "n2 c1 4x4 k1 1x1 stride 1x1 pad 0x0 dil 1x1"  # moves 260 bytes, with its bias 264
STAGES = ["01_naive", "02_im2col_gemm", "03_shared_tiling"]


def timed(milliseconds, **others):
    times = {"lower_quartile": 0.9, "median": 1, "upper_quartile": 1.1, "min": 0.5, "max": 2}
    cold, warm = ({name: factor * median for name, factor in times.items()} | {"count": 9}
                  for median in (milliseconds, milliseconds / 2))
    return {"status": "pass", "message": "", "max_error_ratio": 0.25, "cold_ms": cold, "warm_ms": warm,
            **others}


def rival(name, precision, milliseconds, layout="nchw", **others):
    return timed(milliseconds, **{"competitor": name, "precision": precision, "layout": layout,
                                  "library": f"{name} 1.0", "algorithm": "some algorithm", **others})


def bench_json(*competitors):
    records = [timed(8.0 / 2**i, stage=stage, fraction_of_ceiling=0.5) for i, stage in enumerate(STAGES)]
    return {"format": "convladder bench", "version": 1,
            "machine": {"gpu": "a GPU", "fma_tflops": 10.0, "copy_tb_per_s": 2.0},
            "problems": [{"problem": "small", "bias": True, "shape": SHAPE, "flop": 20e9,
                          "cold_floor_ms": 1.0, "error": "", "gpu_before": None, "gpu_after": None,
                          "competitors": list(competitors), "records": records}]}


def rows_of(markdown):
    """The rows of a table, as {heading: cell}."""
    header, _, *rows = [[cell.strip() for cell in line[1:-1].split(" | ")] for line in markdown.splitlines()]
    return [dict(zip(header, row, strict=True)) for row in rows]


class Times(FolderTest):
    def tables(self, value):
        """The rows of the stages, those of the competitors, and all that is said of the first problem."""
        bench = records.read_bench(self.save("bench.json", value))
        parts = list(time_tables.parts(bench.problems[0], bench))
        tables = [rows_of(part) for part in parts if part.startswith("|")]
        return [*tables, []][:2] + ["".join(parts)]

    def test_what_has_failed_has_no_time_and_is_compared_with_nothing(self):
        for status in ("fail", "impossible", "skipped"):
            failed = {"status": status, "message": "wrong at n 0"}
            value = bench_json(rival("cudnn", "fp32", 4.0, **failed))
            value["problems"][0]["records"][1].update(failed)
            stages, rivals, said = self.tables(value)
            self.assertEqual({*stages[1].values()}, {"02_im2col_gemm", status, ""})
            self.assertNotIn("cold ÷ before", stages[2])
            self.assertIn(f"02_im2col_gemm: {status}: wrong at n 0", said)
            self.assertNotIn("× cuDNN FP32", stages[0])
            self.assertEqual((rivals[0]["cold [ms]"], rivals[0]["message"]), (status, "wrong at n 0"))

    def test_a_library_that_has_not_used_tf32_does_not_stand_beside_it(self):
        for used, cell in ((True, "0.500 (0 of 1)"), (False, None)):
            path = self.save("bench.json", bench_json(rival("cudnn", "tf32", 4.0, tf32_used=used)))
            first, *_ = rows_of(time_tables.standings_table(records.read_bench(path)))
            self.assertEqual(first.get("× cuDNN TF32"), cell)

    def test_a_problem_that_was_rejected(self):
        value = bench_json()
        value["problems"] = [{"problem": "grouped", "bias": True, "error": "groups = 2", "records": [
            {"stage": STAGES[0], "status": "rejected", "message": "", "cold_ms": None, "warm_ms": None}]}]
        self.assertIn("Not measured: groups = 2", self.tables(value)[2])

    def test_batches_and_sources_are_not_mixed(self):
        bench, *profiles = (read(os.path.join(ROOT, blocks.FOLDER, name + ".json")) for read, name in (
            (records.read_bench, "bench_h200"), (records.read_profiles, "profile_sim"),
            (records.read_profiles, "profile_h200")))
        self.assertEqual([(problem.shape[:4], problem.bench is not None, problem.profiles[0].source)
                          for problem in records.join(bench, sum(profiles, [])) if problem.profiles],
                         [("n256", True, "ncu"), ("n1 c", False, "simulator")])


class CommandLine(FolderTest):
    def test_usage(self):
        for option in ("--frobnicate", "--check", "--docs", "--bench"):
            status, _, said = called(report.main, [option, "--out", self.folder])
            self.assertEqual(status, 2)
            self.assertRegex(said, "^ladder: error: .*\n$")

    def test_a_page_of_somebody_elses_is_kept(self):
        path = self.save("index.html", "mine")
        with self.assertRaises(SystemExit):
            report.main(["--bench", self.save("bench.json", bench_json()), "--out", self.folder])
        self.assertEqual(files.read(path), "mine")

    def test_odd_files(self):
        run = {"shape": SHAPE, "pictures": {}, "backend": "sim", "data": "random"}
        half = bench_json()
        half["problems"][0]["problem"] = "\ud800"  # half a character
        idle, flat, trace = bench_json(), bench_json(), small_trace()
        trace["stages"] = [{"stage": 1, "kernels": [], "files": True}]
        idle["machine"]["fma_tflops"], flat["problems"][0]["flop"] = 0, {}
        os.mkfifo(self.path("input.png"))
        os.mkdir(self.path("none_passed"))
        for name in ("input", "filters"):
            self.save(f"none_passed/{name}.png", "")
        for words, status, pattern in (
                (["--bench", self.save("bench.json", half)], 0, "^$"),
                (["--bench", self.save("idle.json", idle)], 1, "idle.json: not as its writer"),
                (["--bench", self.save("flat.json", flat)], 1, "flat.json: not as its writer"),
                (["--trace", self.save("trace.json", trace)], 1, "trace.json: not as its writer"),
                (["--run", self.save("run.json", run)], 1, "input.png: Not a regular file"),
                (["--run", self.save("none_passed/run.json", run)], 0, "^$")):
            found, _, said = called(report.main, [*words, "--out", self.folder])
            self.assertEqual(found, status, said)
            self.assertRegex(said, pattern)


class CommittedTexts(unittest.TestCase):
    def test_they_agree_with_the_results(self):
        self.assertEqual(blocks.stale(blocks.Results()), [])

    def test_all_of_them_have_their_block(self):
        wanted = {"README.md": ["path", "summary"], "docs/cuda.md": ["gpus"],
                  "docs/profiling.md": ["profiled"],
                  "docs/results/README.md": ["report", "layers", "layers"],
                  "docs/reliability.md": ["campaigns", "programs", "known_bugs"],
                  "docs/your-own-kernel.md": ["programs"]}
        wanted.update((name, ["time"] if "exercises" in name else ["ladder", "measured", "waits"])
                      for name in blocks.texts() if name[0].isdigit() and name < "90" and
                      not name.endswith("details.md"))
        wanted.update((f"{name}/README.md", []) for name in files.lessons() if files.is_side_rung(name))
        self.assertEqual(len(wanted), 6 + len(files.lessons()) + len(read_all()))
        for name, names in wanted.items():
            details = os.path.join(ROOT, os.path.dirname(name), "details.md")  # may have a lesson's last
            text = files.read(os.path.join(ROOT, name)) + files.read_existing(details)
            found = re.findall(r"<!-- generated: (\w+).* -->", text)
            found = [block for block in found if block not in ("some_layers", "experiments")]
            self.assertEqual(found, names, f"{name}: <!-- generated: ... --> as in the stages before")

    def test_every_stage_says_what_limits_it(self):
        for stage in files.lessons():
            limit = files.limit_of(stage)
            self.assertTrue(0 < len(limit) <= 40, f"{stage}/README.md, What limits now, begins with bold "
                            f"words, 40 letters at most, not with '{limit}'")

    def test_no_limit_is_named_that_a_counter_contradicts(self):
        """docs/profiling.md has these rules in words. Shares are of cycles, and of issue slots."""
        rules = {"L1's data pipe": lambda pipe, fma, filled: pipe > 75 and pipe > fma,
                 "Arithmetic": lambda pipe, fma, filled: fma > 70 and fma > pipe,
                 "Other instructions": lambda pipe, fma, filled: filled > 85 and fma < 70,
                 "Waiting": lambda pipe, fma, filled: filled < 85 and max(pipe, fma) <= 70}
        rules["Shared memory"] = rules["L1's data pipe"]
        [many_channels] = records.read_profiles(os.path.join(ROOT, blocks.FOLDER, "profile_h200_vgg.json"))
        for profile in records.read_profiles(os.path.join(ROOT, blocks.FOLDER, "profile_h200.json")):
            for stage in [each for each in profile.stages if each in files.stage_names()]:
                limit, kernel = files.limit_of(stage), counters.main_kernel(profile.stages[stage])
                words = next((words for words in rules if limit.startswith(words)), None)
                if kernel.library:
                    self.assertIn("library", limit)
                    continue
                if limit == "Tensor cores, on VGG's layer":
                    self.assertGreater(counters.main_kernel(many_channels.stages[stage]).metrics[
                        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"], 80)
                    continue
                self.assertIsNotNone(words, f"{stage}: '{limit}' begins with none of {', '.join(rules)}")
                pipe, filled, instructions, fmas = (kernel.metrics[name] for name in (
                    "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",
                    "smsp__issue_active.avg.pct_of_peak_sustained_active", "smsp__inst_executed.sum",
                    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"))
                shares = pipe, filled * fmas / 32 / instructions, filled
                self.assertTrue(rules[words](*shares), f"{stage}: '{limit}', and {shares}")


if __name__ == "__main__":
    unittest.main()
