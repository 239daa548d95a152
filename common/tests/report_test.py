#!/usr/bin/env python3
"""./ladder report: its tables, plots and generated blocks, and what it says of bad input.

All figures here are made up, but for those of docs/results.
"""
import contextlib
import copy
import dataclasses
import glob
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
REPORT = os.path.join(ROOT, "common/report/report.py")
sys.path.insert(0, os.path.dirname(REPORT))

import blocks  # noqa: E402  (found through the path above)
import counter_tables  # noqa: E402
import counters  # noqa: E402
import every_problem  # noqa: E402
import plan  # noqa: E402
import reliability  # noqa: E402
import report  # noqa: E402
import results  # noqa: E402
import sentences  # noqa: E402
import shape  # noqa: E402
import text  # noqa: E402
import time_tables  # noqa: E402

SHAPE = "n2 c1 4x4 k1 1x1 stride 1x1 pad 0x0 dil 1x1"  # moves 260 bytes, with its bias 264
STAGES = ["01_naive", "02_im2col_gemm", "03_shared_tiling"]
RUN_RECORD = {"stage": STAGES[0], "problem": "small", "backend": "gpu", "status": "pass",
              "max_error_ratio": 0.5, "message": "", "time_ms": 4.0, "tflops": 5.0}


def times(median):
    return {"median": median, "lower_quartile": 0.9 * median, "upper_quartile": 1.1 * median,
            "min": median / 2, "max": 2 * median, "count": 9}


def timed(milliseconds, **others):
    return {"status": "pass", "message": "", "max_error_ratio": 0.25,
            "cold_ms": times(milliseconds), "warm_ms": times(milliseconds / 2), **others}


def rival(name, precision, milliseconds, layout="nchw", **others):
    return timed(milliseconds, competitor=name, precision=precision, layout=layout,
                 library=f"{name} 1.0", algorithm="some algorithm", **others)


def bench_json(competitors=()):
    records = [timed(8.0 / 2**i, stage=stage) for i, stage in enumerate(STAGES)]
    return {"format": "convladder bench", "version": 1,
            "machine": {"gpu": "a GPU", "fma_tflops": 10.0, "copy_tb_per_s": 2.0},
            "problems": [{"problem": "small", "bias": True, "shape": SHAPE, "flop": 20e9,
                          "cold_floor_ms": 1.0, "error": "", "gpu_before": None, "gpu_after": None,
                          "competitors": list(competitors), "records": records}]}


def kernel(stage, factor, source="ncu", **others):
    """A record of profile: `factor` scales all that is counted."""
    record = {"stage": stage, "problem": "small", "shape": SHAPE, "bias": True, "kernel": "conv",
              "launches": 1, "source": source, "library": False, "flop": 20e9}
    for op in ("ld", "st"):
        record[f"l1tex__t_requests_pipe_lsu_mem_global_op_{op}.sum"] = 10 * factor
        record[f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum"] = 100 * factor
    if source == "ncu":
        record.update({"lts__t_sectors_srcunit_tex_op_read.sum": 20 * factor,
                       "lts__t_sectors_srcunit_tex_op_write.sum": 10 * factor,
                       "dram__bytes_read.sum": 264 * factor, "dram__bytes_write.sum": 0,
                       "launch__registers_per_thread": 32})
    return {**record, **others}


def profile_json(source="ncu"):
    return [kernel(stage, 4 / 2**i, source) for i, stage in enumerate(STAGES)]


class Folder(unittest.TestCase):
    """With a folder of its own."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def save(self, name, value):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(value if isinstance(value, str) else json.dumps(value))
        return self.path(name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def bench(self, value):
        return results.read_bench(self.save("bench.json", value))

    def profiles(self, value):
        return results.read_profiles(self.save("profile.json", value))

    def run_report(self, *arguments, python=()):
        command = [sys.executable, *python, REPORT, *arguments]
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        return subprocess.run(command, capture_output=True, text=True, env=environment)


def rows_of(markdown):
    """The rows of a table, as {heading: cell}; equal headings get '2', '3' appended."""
    cells = [[cell.strip() for cell in line[1:-1].split(" | ")] for line in markdown.splitlines()]
    header = [name if i == cells[0].index(name) else f"{name} {cells[0][:i + 1].count(name)}"
              for i, name in enumerate(cells[0])]
    return [dict(zip(header, row, strict=True)) for row in cells[2:]]


class Times(Folder):
    def table(self, value):
        bench = self.bench(value)
        return rows_of(time_tables.times_table(bench.problems[0], bench))

    def test_figures(self):
        rows = self.table(bench_json())
        self.assertEqual([row["stage"] for row in rows], STAGES)
        self.assertEqual(rows[1], {"stage": "02_im2col_gemm", "cold [ms]": "4.000",
                                   "quartiles [ms]": "3.600–4.400", "warm [ms]": "2.000",
                                   "TFLOP/s": "5.00", "of FP32 ceiling": "50.0 %",
                                   "cold ÷ before": "0.500"})

    def test_the_ladders_order_whatever_the_file_has(self):
        value = bench_json()
        value["problems"][0]["records"].reverse()
        self.assertEqual([row["stage"] for row in self.table(value)], STAGES)

    def test_precisions_have_columns_of_their_own(self):
        rows = self.table(bench_json([rival("pytorch", "tf32", 1.0, "nhwc"),
                                      rival("pytorch", "tf32", 2.0), rival("pytorch", "fp32", 8.0),
                                      rival("cudnn", "fp32", 4.0)]))
        self.assertEqual(list(rows[1].items())[-4:],
                         [("× cuDNN FP32", "1.00"), ("× PyTorch FP32", "2.00"),
                          ("× PyTorch TF32", "0.500"), ("× PyTorch TF32 NHWC", "0.250")])

    def test_no_share_of_the_fp32_ceiling_for_tf32(self):
        bench = self.bench(bench_json([rival("cudnn", "fp32", 4.0), rival("cudnn", "tf32", 4.0)]))
        rows = rows_of(time_tables.competitors_table(bench.problems[0], bench))
        self.assertEqual([row["of FP32 ceiling"] for row in rows], ["50.0 %", ""])

    def test_a_failed_stage_has_no_time(self):
        for status in ("fail", "impossible", "skipped"):
            value = bench_json([rival("cudnn", "fp32", 4.0)])
            value["problems"][0]["records"][1].update(status=status, message="wrong at n 0")
            rows = self.table(value)
            self.assertEqual({*rows[1].values()}, {"02_im2col_gemm", status, ""})
            self.assertNotIn("cold ÷ before", rows[2])
            bench = self.bench(value)
            self.assertIn(f"02_im2col_gemm: {status}: wrong at n 0",
                          text.report(bench, results.join(bench, []), [], []))

    def test_a_failed_competitor_is_listed_and_compared_with_nothing(self):
        value = bench_json([{**rival("cudnn", "fp32", 4.0), "status": "fail", "message": "died"}])
        self.assertNotIn("× cuDNN FP32", self.table(value)[0])
        bench = self.bench(value)
        row, = rows_of(time_tables.competitors_table(bench.problems[0], bench))
        self.assertEqual((row["cold [ms]"], row["message"]), ("fail", "died"))

    def test_a_rejected_problem(self):
        value = bench_json()
        value["problems"].append({"problem": "grouped", "bias": True, "error": "groups = 2",
                                  "gpu_before": None, "gpu_after": None, "records": [
                                      {"stage": STAGES[0], "status": "rejected", "message": "",
                                       "cold_ms": None, "warm_ms": None}]})
        bench = self.bench(value)
        page = text.report(bench, results.join(bench, []), [], [])
        self.assertIn("Not measured: groups = 2", page)
        self.assertEqual([p.name for plot in plan.planned_plots(bench, [])
                          for p in plot.arguments[0]], ["small"])

    def test_a_lowered_clock_is_told(self):
        value = bench_json()
        value["problems"][0]["gpu_after"] = {"throttle_reasons": ["sw_power_cap"]}
        bench = self.bench(value)
        self.assertIn("lowered its clock: sw_power_cap",
                      text.report(bench, results.join(bench, []), [], []))

    def test_a_late_host_is_told(self):
        late = rival("cudnn", "fp32", 4.0, host_late=3)
        value = bench_json([late, rival("cudnn", "tf32", 4.0, host_late=0)])
        for record in value["problems"][0]["records"]:
            record["host_late"] = 0
        bench = self.bench(value)
        page = text.report(bench, results.join(bench, []), [], [])
        self.assertIn("\ncuDNN FP32: in 3 of 9 runs the GPU may have waited for the host", page)
        self.assertEqual(page.count("waited for the host"), 1)
        self.assertIn(text.HELD, page)

    def test_where_nobody_asked_for_the_host_nothing_is_said_of_it(self):
        bench = self.bench(bench_json([rival("cudnn", "fp32", 4.0)]))
        self.assertNotIn("host", text.report(bench, results.join(bench, []), [], []))


class Traffic(Folder):
    def test_bytes_by_the_least_and_by_the_stage_before(self):
        profile, = self.profiles(profile_json())
        rows = rows_of(counter_tables.traffic_table(profile))
        self.assertEqual(list(rows[1].values()),
                         ["02_im2col_gemm", "12.8 kB", "48.5", "0.500", "1.92 kB", "7.27", "0.500",
                          "528 B", "2.00", "0.500"])

    def test_columns_without_data_are_left_out(self):
        profile, = self.profiles(profile_json("simulator"))
        header = counter_tables.traffic_table(profile).splitlines()[0]
        self.assertEqual(header, "| stage | L1 | ÷ least | ÷ before |")

    def test_a_library_that_was_not_counted(self):
        records = profile_json("simulator")
        library = {key: value for key, value in records[1].items() if "." not in key}
        records.append({**library, "kernel": "gemm", "library": True})
        profile, = self.profiles(records)
        rows = rows_of(counter_tables.traffic_table(profile))
        self.assertEqual(list(rows[1].values()), ["02_im2col_gemm", "12.8 kB *", ""])
        self.assertNotIn("÷ before", rows[2])
        warps = rows_of(counter_tables.stage_table(profile, counter_tables.warp_columns(profile)))
        self.assertEqual(warps[1]["requests"], "40 *")

    def test_an_own_kernel_that_was_not_counted(self):
        records = profile_json()
        records.append({**kernel(STAGES[1], 1), "dram__bytes_read.sum": None})
        profile, = self.profiles(records)
        dram, = [level for level in counters.LEVELS if level.name == "DRAM"]
        self.assertIsNone(counters.of_stage(profile.stages[STAGES[1]], dram.of_kernel))

    def test_requested_bytes_need_those_of_copies(self):
        loads = {"smsp__sass_data_bytes_mem_global_op_ld.sum": 100,
                 "smsp__sass_data_bytes_mem_global_op_st.sum": 20}
        ways = ("access", "bypass")
        copies = {f"sm__sass_l1tex_t_requests_pipe_lsu_mem_global_op_ldgsts_cache_{way}.sum": 1
                  for way in ways}
        copied = {f"sm__sass_data_bytes_mem_global_op_ldgsts_cache_{way}.sum": 3 for way in ways}
        for metrics, requested in (({**loads, **copies}, None), ({**loads, **copied}, 126),
                                   ({**loads, **dict.fromkeys(copies, 0)}, 120), (loads, None)):
            self.assertEqual(counters.requested_bytes(results.Kernel("k", 1, False, metrics)),
                             requested)

    def test_registers_are_the_longest_kernels(self):
        records = [kernel(STAGES[0], 1, **{"gpu__time_duration.sum": 1e6}),
                   kernel(STAGES[0], 1, kernel="long", launch__registers_per_thread=99,
                          launch__shared_mem_per_block_static=100,
                          launch__shared_mem_per_block_dynamic=28,
                          **{"gpu__time_duration.sum": 3e6})]
        profile, = self.profiles(records)
        row, = rows_of(counter_tables.kernel_table(profile))
        self.assertEqual((row["longest kernel"], row["registers"], row["shared / block"]),
                         ("long", "99", "128 B"))
        warps, = rows_of(counter_tables.stage_table(profile, counter_tables.warp_columns(profile)))
        self.assertEqual(warps["profiled [ms]"], "4.000")

    def test_a_step(self):
        profile, = self.profiles(profile_json())
        table = counter_tables.step_table(profile, *STAGES[:2])
        rows = {row["counted"]: row for row in rows_of(table)}
        self.assertEqual(list(rows["DRAM"].values()), ["DRAM", "1.06 kB", "528 B", "0.500"])
        self.assertEqual(rows["registers"]["÷ before"], "1.00")

    def test_batches_and_sources_are_not_mixed(self):
        other = [{**record, "shape": SHAPE.replace("n2", "n1")} for record in profile_json()]
        bench = self.bench(bench_json())
        problems = results.join(bench, self.profiles(other + profile_json("simulator")))
        self.assertEqual([(p.shape[:2], p.bench is not None, [q.source for q in p.profiles])
                          for p in problems],
                         [("n2", True, ["simulator"]), ("n1", False, ["ncu"])])

    def test_roofline_points(self):
        bench = self.bench(bench_json())
        problem, = results.join(bench, self.profiles(profile_json()))
        points = plan.roofline_points(problem, problem.profiles[0])
        self.assertEqual(list(points), ["L1", "L2", "DRAM"])
        self.assertEqual([stage for stage, _, _ in points["DRAM"]], STAGES)
        self.assertEqual(points["DRAM"][0][1:], (20e9 / 1056, 2.5))


class Shapes(unittest.TestCase):
    def test_least_bytes(self):
        self.assertEqual(shape.least_bytes(SHAPE, bias=False), 260)
        self.assertEqual(shape.least_bytes(SHAPE, bias=True), 264)
        # stride 3 under a filter of 1: a third of each axis is met
        self.assertEqual(shape.least_bytes("n1 c1 9x9 k1 1x1 stride 3x3 pad 0x0 dil 1x1", False),
                         4 * (9 + 1 + 9))

    def test_they_are_those_of_bench(self):
        for path in glob.glob(os.path.join(ROOT, blocks.FOLDER, "bench_*.json")):
            for problem in results.read_json(path)["problems"]:
                self.assertEqual(shape.least_bytes(problem["shape"], problem["bias"]),
                                 problem["least_bytes"])


class CommandLine(Folder):
    def expect_error(self, arguments, pattern, status=1):
        done = self.run_report(*arguments, "--out", self.folder)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertRegex(done.stderr, "^ladder report: error: .*" + pattern)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertFalse(os.path.exists(self.path("report.md")))

    def expect_bad(self, option, value, pattern):
        path = self.save("bad.json", value)
        self.expect_error([option, path], re.escape(path) + ".*" + pattern)

    def test_files_that_are_none(self):
        self.expect_error(["--bench", self.path("none.json")], "none.json: No such file")
        self.expect_error(["--profile", self.folder], "Is a directory")
        for option in ("--bench", "--profile", "--run"):
            self.expect_bad(option, json.dumps(bench_json())[:-40], "not JSON, or cut short")
            self.expect_bad(option, "", "not JSON, or cut short")
            self.expect_bad(option, "7", "")

    def test_files_of_another_kind(self):
        self.expect_bad("--bench", profile_json(), "an object was expected")
        self.expect_bad("--profile", bench_json(), "not made by profile")
        self.expect_bad("--run", bench_json(), "not made by run or check")
        self.expect_bad("--run", profile_json(), "'status' is missing")
        self.expect_bad("--bench", {"format": "something"}, "its format is \"something\"")

    def test_other_versions(self):
        self.expect_bad("--bench", {**bench_json(), "version": 2}, "version 2; .* reads version 1")
        records = profile_json()
        for last in ({"version": 99}, {"version": None}, {"version": "1"}):
            self.expect_bad("--profile", records[:-1] + [{**records[-1], **last}],
                            f"record 2: version {json.dumps(last['version'])}; .* reads version 1")
        self.expect_bad("--run", {"version": 99, "stages": []}, "version 99; .* reads version 1")
        self.expect_bad("--run", [{**RUN_RECORD, "version": 99}], "record 0: version 99; .* reads")

    def test_version_1_may_be_missing(self):
        for others in ({}, {"version": 1}):
            self.assertEqual(len(self.profiles([kernel(STAGES[0], 1, **others)])), 1)
            for runs in ([{**RUN_RECORD, **others}], {"stages": [RUN_RECORD], **others}):
                self.assertEqual(len(results.read_runs(self.save("run.json", runs))), 1)

    def test_counters_of_other_names(self):
        renamed = [{name.replace("__", "__new_"): value for name, value in record.items()}
                   for record in profile_json()]
        wanted = "small, source 'ncu': no counters that the tables show, only \"l1tex__new_"
        self.expect_bad("--profile", renamed, wanted)
        self.expect_bad("--profile", profile_json("simulator") + renamed, wanted)
        bare = {name: value for name, value in renamed[0].items() if "__" not in name}
        self.expect_bad("--profile", [bare], "no counters that the tables show, none at all")
        runtimes = {**bare, "launch__registers_per_thread": 32, "launch__grid_size": 4}
        self.assertEqual(len(self.profiles([runtimes])), 1)

    def test_members_that_are_wrong(self):
        for change, pattern in [
                (lambda v: v["machine"].pop("fma_tflops"), "machine: .*'fma_tflops' is missing"),
                (lambda v: v["machine"].update(l2_read_tb_per_s=0), "'l2_read_tb_per_s' is 0, not"),
                (lambda v: v["problems"][0].update(flop="many"), "'flop' is \"many\""),
                (lambda v: v["problems"][0]["records"][0].update(status="fine"), "'status' is"),
                (lambda v: v["problems"][0]["records"][0].update(cold_ms=7), "object was expected"),
                (lambda v: v["problems"][0]["records"][0]["cold_ms"].update(median=-1), "'median'"),
                (lambda v: v["problems"][0]["records"][0]["cold_ms"].update(median=float("nan")),
                 "'median'"),
                (lambda v: v["problems"][0]["records"][0]["cold_ms"].update(median=99), "around"),
                (lambda v: v["problems"][0].update(competitors=[rival("cudnn", "fp16", 1.0)]),
                 "'precision' is \"fp16\", not one of fp32, tf32")]:
            value = copy.deepcopy(bench_json())
            change(value)
            self.expect_bad("--bench", value, pattern)
        self.expect_bad("--profile", [{**kernel(STAGES[0], 1), "shape": "square"}], "no shape")
        self.expect_bad("--profile", [kernel(STAGES[0], 1, **{"dram__bytes_read.sum": "7"})],
                        "'dram__bytes_read.sum' is \"7\"")

    def test_usage(self):
        for arguments in (["--frobnicate"], ["--check"], ["--docs"], ["--bench"]):
            self.expect_error(arguments, "", status=2)
        for option in ("--bench", "--run"):
            self.expect_error([option, "a.json", option, "b.json"],
                              f"{option} b.json: there is {option} a.json already", status=2)

    def test_without_matplotlib_there_are_tables(self):
        done = self.run_report("--bench", self.save("bench.json", bench_json()), "--profile",
                               self.save("profile.json", profile_json()), "--out", self.folder,
                               python=["-S"])  # without the folders of installed packages
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("no plots: matplotlib is missing", done.stdout)
        self.assertIn("| 03_shared_tiling |", self.read("report.md"))
        self.assertNotIn(".svg", self.read("report.md"))
        self.assertFalse(glob.glob(self.path("*.svg")) + glob.glob(self.path("*.part")))

    def test_steps_have_the_code(self):
        path = self.save("profile.json", profile_json())
        self.run_report("--profile", path, "--out", self.folder)
        steps = self.read("steps.md")
        self.assertEqual(re.findall("^## (.*)", steps, re.MULTILINE),
                         ["01_naive → 02_im2col_gemm", "02_im2col_gemm → 03_shared_tiling"])
        self.assertIn("\n-__global__ void conv2d_naive(", steps)
        self.assertIn("\n+__global__ void im2col(", steps)

    def test_run_and_check(self):
        for source, time in (("cuda_events", 4.0), ("simulator_wall_time", None)):
            path = self.save("run.json", {"stages": [{**RUN_RECORD, "time_source": source}]})
            self.assertEqual(results.read_runs(path)[0].time_ms, time)
        failed = {**RUN_RECORD, "status": "fail", "time_source": "cuda_events"}
        row, = rows_of(time_tables.runs_table(results.read_runs(self.save("check.json", [failed]))))
        self.assertEqual((row["check"], "warm [ms]" in row), ("fail", False))


class CommittedTexts(unittest.TestCase):
    def test_they_agree_with_the_results(self):
        self.assertEqual(blocks.stale(blocks.Results(ROOT)), [])

    def test_all_of_them_have_their_block(self):
        wanted = {"README.md": ["summary"], "docs/results/README.md": ["report", "every_problem"],
                  "docs/reliability.md": list(reliability.BLOCKS)}
        wanted.update((name, ["measured"]) for name in blocks.texts(ROOT) if name[0].isdigit())
        self.assertEqual(len(wanted), 8)
        for name, names in wanted.items():
            with open(os.path.join(ROOT, name), encoding="utf-8") as file:
                self.assertEqual(re.findall("<!-- generated: (.*) -->", file.read()), names, name)


class Sentences(unittest.TestCase):
    """On the committed texts and results, of which single figures are changed."""

    def setUp(self):
        self.data = blocks.Results(ROOT)

    def page(self, name):
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            return file.read()

    def test_every_page_has_some(self):
        for name in sentences.PAGES:
            self.assertGreater(len(sentences.sentences(name, self.data)), 1, name)

    def test_a_changed_figure_is_put_right(self):
        page = "04_register_blocking/README.md"
        wrong = re.sub(r"In time: [\d.]+ ms", "In time: 1,234.5 ms", self.page(page))
        self.assertNotEqual(wrong, self.page(page))
        self.assertEqual(sentences.renewed(wrong, page, self.data), self.page(page))

    def test_other_results_give_other_figures(self):
        self.data.bench = dataclasses.replace(self.data.bench, copy_tb_per_s=3.3)
        text = sentences.renewed(self.page("docs/memory.md"), "docs/memory.md", self.data)
        self.assertIn("a copy on the device reached 3.30 TB/s", text)
        self.assertIn("| DRAM, 3.30 TB/s | 20.3 FLOP per byte | 41 multiply-adds |", text)

    def test_a_sentence_that_was_rewritten(self):
        page = "docs/pytorch.md"
        for text, times in ((self.page(page).replace("| 63, no bias |", "| 63 |"), 0),
                            (self.page(page) * 2, 2)):
            with self.assertRaisesRegex(results.BadInput, f"{page}: .* stands there {times} times"):
                sentences.renewed(text, page, self.data)

    def test_results_that_lack_something(self):
        self.data.problems[0].bench.stages.pop("05_fused_bias")
        with self.assertRaisesRegex(results.BadInput, "05_fused_bias/README.md shows .*05_fused"):
            sentences.sentences("05_fused_bias/README.md", self.data)
        with tempfile.TemporaryDirectory() as self.data.folder:
            report.write(os.path.join(self.data.folder, "kernelbench_h200.txt"), "nothing\n")
            with self.assertRaisesRegex(results.BadInput, "kernelbench_h200.txt: no number behind"):
                sentences.sentences("docs/pytorch.md", self.data)


class Blocks(Folder):
    """On a checkout in small."""

    def setUp(self):
        super().setUp()
        os.makedirs(self.path(blocks.FOLDER))
        os.makedirs(self.path(STAGES[1]))
        for name, block in (("README.md", "summary"), (blocks.FOLDER + "/README.md", "report"),
                            (STAGES[1] + "/README.md", "measured")):
            self.save(name, f"before\n<!-- generated: {block} -->\nold\n<!-- end -->\nafter\n")

    def renew(self):
        """As --docs does, but with plots that bear the digest and nothing else."""
        data = blocks.Results(self.folder)
        for name in blocks.texts(self.folder):
            self.save(name, blocks.renewed(data, name)[1])
        for plot in data.plots:
            self.save(f"{blocks.FOLDER}/{plot.file}.svg", data.digest())
        return blocks.Results(self.folder)

    def test_without_results_they_are_empty(self):
        self.renew()
        for name in blocks.texts(self.folder):
            self.assertRegex(self.read(name),
                             r"^before\n<!-- generated: \w+ -->\n<!-- end -->\nafter\n$")

    def test_they_follow_the_json(self):
        self.save(blocks.FOLDER + "/bench_gpu.json", bench_json())
        self.save(blocks.FOLDER + "/profile_gpu.json", profile_json())
        self.assertEqual(blocks.stale(self.renew()), [])
        self.assertIn("| small | 8.000 | 4.000 | 0.500 |", self.read(STAGES[1] + "/README.md"))
        self.assertIn("| DRAM | 1.06 kB | 528 B | 0.500 |", self.read(STAGES[1] + "/README.md"))
        self.assertIn("](docs/results/time.svg)", self.read("README.md"))
        self.assertIn("](roofline_small_n2_ncu.svg)", self.read(blocks.FOLDER + "/README.md"))

    def test_other_json_is_noticed(self):
        value = bench_json()
        self.save(blocks.FOLDER + "/bench_gpu.json", value)
        self.renew()
        value["problems"][0]["records"][1]["cold_ms"]["median"] = 4.4
        self.save(blocks.FOLDER + "/bench_gpu.json", value)
        complaints = "\n".join(blocks.stale(blocks.Results(self.folder)))
        for name in ("README.md", "docs/results/README.md", "02_im2col_gemm/README.md",
                     "docs/results/time.svg"):
            self.assertRegex(complaints, f"(?m)^{re.escape(name)}: ")

    def test_a_changed_text_is_noticed(self):
        self.save(blocks.FOLDER + "/bench_gpu.json", bench_json())
        self.renew()
        self.save("README.md", self.read("README.md").replace("2.50", "2.51"))
        self.assertEqual(blocks.stale(blocks.Results(self.folder)),
                         ["README.md: a generated block or figure disagrees with docs/results"])

    def test_broken_markers(self):
        for broken, message in (("<!-- generated: summary -->\n", "no '<!-- end -->'"),
                                ("<!-- generated: sumary -->\n<!-- end -->\n", "called 'sumary'")):
            self.save("README.md", broken)
            with self.assertRaisesRegex(results.BadInput, message):
                blocks.renewed(blocks.Results(self.folder), "README.md")

    def test_two_machines(self):
        self.save(blocks.FOLDER + "/bench_a.json", bench_json())
        self.save(blocks.FOLDER + "/bench_b.json", bench_json())
        with self.assertRaisesRegex(results.BadInput, "bench_b.json: .* there are 2"):
            blocks.Results(self.folder)


class Reliability(Folder):
    def bugs(self, **changes):
        counted = {"ran": 9, "failed": 4, "reports": {"real numbers": 1, "small integers": 3}}
        bug = {"stage": STAGES[0], "bug": "wrong", "about": "a | b", "problems": counted,
               "test": "Nan", "counting": None, "caught": True, **changes}
        return {"format": "convladder known bad kernels", "version": 1, "enough": 3,
                "bugs": [bug], "sound": [{**bug, "bug": "sound", "passed": True}]}

    def known_bad(self, value):
        self.save("known_bad.json", value)
        return reliability.known_bad(self.folder)

    def test_bugs(self):
        text = self.known_bad(self.bugs())
        self.assertIn("1 bugs, 1 caught: 1 by 3 or more of the small problems, 0 by the counting "
                      "simulator, 1 by the test", text)
        self.assertIn("1 of 1 stages without a bug", text)
        self.assertIn("| `wrong` | a \\| b | 4 of 9 | small integers 3, real numbers 1 | `Nan` |",
                      text)
        survivor = self.known_bad(self.bugs(caught=False))
        self.assertIn("1 bugs, 0 caught: 0 by 3", survivor)
        self.assertIn("| `Nan` | **no** |", survivor)

    def test_random_problems(self):
        counts = {"problems": 8, "failed": 1, "misaligned": 4}
        self.save("fuzz_h200.json", {"format": "convladder fuzz", "version": 1, "device": "H200",
                                     "stages": {STAGES[0]: counts}})
        self.assertIn(f"| H200 | problems | of which off their alignment | failed |\n"
                      f"| --- | --: | --: | --: |\n| {STAGES[0]} | 8 | 4 | 1 |",
                      reliability.random_problems(self.folder))

    def test_random_files(self):
        counts = {"runs": 7, "seconds": 6, "edges": 5, "crashes": 4}
        self.save("fuzz_readers.json", {"format": "convladder reader fuzz", "version": 1,
                                        "fuzzer": "F", "targets": {"npy": counts}})
        text = reliability.random_files(self.folder)
        self.assertIn("| reader of tensors (.npy) | 7 | 6 | 5 | 4 |", text)
        self.assertNotIn("Kernels", text)
        with open(os.path.join(ROOT, "common/tests/fuzz/CMakeLists.txt"), encoding="utf-8") as file:
            targets = re.search(r"set\(fuzz_targets (.*)\)", file.read())[1].split()
        self.assertEqual(sorted(reliability.FUZZED), sorted(targets))

    def suites(self, stages, **members):
        self.save("suite_sim.json", {"format": "convladder suites", "version": 1, "backend": "sim",
                                     "device": "simulator", "stages": stages, **members})
        return reliability.suites(self.folder)

    def test_suites(self):
        def record(passed, counts=(), skipped=(), failed=()):
            return {"passed": passed, "failed": dict(failed), "skipped": dict(skipped),
                    "counts": dict(counts)}

        text = self.suites({
            STAGES[0]: {"FaultsTest.Run": record(1, {"faults": 38}),
                        "BeyondThirtyOneBits.IsRight":
                            record(2, skipped={"needs 1.5 GiB": ["a"], "needs 20 GiB": ["b", "c"]}),
                        "CApi.BadInputIsRejected": record(1, {"cases": 1})},
            STAGES[1]: {"FaultsTest.Run": record(0, failed={"": "memory was lost"}),
                        "New.Test": record(0, skipped={"needs 1 GPU": [""]})}})
        self.assertIn("### simulator\n\n9 tests of 2 stages: 4 passed, 1 failed, 4 skipped.", text)
        self.assertIn(f"|  | test | {STAGES[0]} | {STAGES[1]} |\n| --- | --- | --: | --: |\n"
                      "| bad input | `CApi.BadInputIsRejected` | 1 of 1: 1 case |  |\n"
                      "| limits | `BeyondThirtyOneBits.IsRight` | 2 of 5 |  |\n"
                      "| faults, many calls | `FaultsTest.Run` | 1 of 1: 38 faults | "
                      "0 of 1 (**1 failed**) |\n"
                      "| others | `New.Test` |  | 0 of 1 |\n", text)
        self.assertIn("| skipped | times | why |\n| --- | --: | --- |\n"
                      "| `BeyondThirtyOneBits.IsRight` | 3 | needs … GiB |\n"
                      "| `New.Test` | 1 | needs 1 GPU |\n", text)
        self.assertIn("No run of it stands in [results](results/README.md) (`suite_h200.json`)",
                      text)

    def test_bad_suites(self):
        for stages in ([], {STAGES[0]: [7]}, {STAGES[0]: {"A.b": {"passed": 1}}}):
            with self.assertRaisesRegex(results.BadInput, "suite_sim.json: .* record was expected"):
                self.suites(stages)
        with self.assertRaisesRegex(results.BadInput, 'suite_sim.json: "convladder suites" was'):
            self.suites({}, format="convladder fuzz")

    def test_whether_the_kernels_are_those_here(self):
        here = reliability.kernels_digest()
        for kernels, said in ((here, f"Kernels: `{here}`, those here when this page was made."),
                              ("0123", "Kernels: `0123`, others than those here when this page")):
            text = self.known_bad({**self.bugs(), "kernels": kernels})
            self.assertIn(said, text)
            self.assertIn(f"Kernels: `{kernels}`.", reliability.without_here(text))
        line, = reliability.of_other_kernels(self.folder)
        self.assertRegex(line, f'known_bad.json: of the kernels "0123", those here are {here}')
        self.assertIn("Kernels: the file doesn't say which.", self.known_bad(self.bugs()))
        self.assertEqual(reliability.of_other_kernels(self.folder), [])

    def test_sanitizer(self):
        record = {"tool": "memcheck", "stage": STAGES[0], "problems": 2, "checks": 8, "reports": 0,
                  "status": "pass", "message": ""}
        broken = {**record, "reports": None, "status": "fail", "message": "no summary"}
        self.save("sanitizer_h200.json", {
            "format": "convladder sanitizer", "version": 1, "gpu": "H200", "problems": ["a", "b"],
            "compute_sanitizer": "2025.3", "max_gmac": 0.001, "cut_down": ["b"],
            "records": [record, broken]})
        text = reliability.sanitizer(self.folder)
        self.assertIn("`./ladder sanitize --max-gmac 0.001` on an H200;", text)
        self.assertIn("2 problems, of which 1 cut down to that many billion multiply-adds", text)
        self.assertIn(f"| memcheck | {STAGES[0]} | 8 | 0 | pass |", text)
        self.assertIn("| 8 | ? | fail no summary |", text)

    def test_without_files(self):
        for maker in reliability.BLOCKS.values():
            self.assertIn("No run of it stands in", maker(self.folder))
        self.assertEqual(reliability.of_other_kernels(self.folder), [])

    def test_bad_files(self):
        for value, pattern in [([], "found not an object"), ({"format": "x"}, 'found "x"'),
                               ({**self.bugs(), "version": 2}, "version 2; .* reads version 1"),
                               ({**self.bugs(), "bugs": [7]}, "a record was expected")]:
            with self.assertRaisesRegex(results.BadInput, pattern):
                self.known_bad(value)


@unittest.skipUnless(importlib.util.find_spec("matplotlib"), "matplotlib is not installed")
class Plots(Folder):
    def setUp(self):
        super().setUp()
        rivals = [rival("cudnn", "fp32", 3.0), rival("pytorch", "tf32", 0.5, "nhwc")]
        self.bench_path = self.save("bench.json", bench_json(rivals))
        self.profile_path = self.save("profile.json", profile_json())
        bench = results.read_bench(self.bench_path)
        problems = results.join(bench, results.read_profiles(self.profile_path))
        self.plots = plan.planned_plots(bench, problems)

    def test_all_kinds_are_written(self):
        with contextlib.redirect_stdout(io.StringIO()):
            status = report.main(["--bench", self.bench_path, "--profile", self.profile_path,
                                  "--out", self.folder])
        self.assertEqual(status, 0)
        for name in ("time", "traffic_small_n2_ncu", "roofline_small_n2_ncu"):
            with open(self.path(name + ".png"), "rb") as file:
                self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")
            self.assertIn("</svg>", self.read(name + ".svg"))
            self.assertIn(f"({name}.svg)", self.read("report.md"))

    def test_text_stays_inside_and_does_not_overlap(self):
        import plots as drawing
        self.assertEqual([plot.kind for plot in self.plots], ["time", "traffic", "roofline"])
        for plot in self.plots:
            figure = drawing.draw(plot)
            figure.canvas.draw()
            axes = figure.axes[0]
            labels = [label for label in [*axes.texts, *axes.get_yticklabels()] if label.get_text()]
            self.assertGreater(len(labels), 4)
            boxes = [label.get_window_extent() for label in labels]
            for i, box in enumerate(boxes):
                self.assertTrue(figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1, plot.file)
                for other in boxes[:i]:
                    self.assertFalse(box.shrunk(0.9, 0.7).overlaps(other.shrunk(0.9, 0.7)),
                                     f"{plot.file}: {labels[i].get_text()}")
            drawing.close(figure)

    def roofline(self, source="ncu", **rates):
        """{label: line} of the roofline's legend; `rates` are members of the machine."""
        import plots as drawing
        value = bench_json()
        value["machine"].update(rates)
        bench = self.bench(value)
        plot, = [plot for plot in plan.planned_plots(
            bench, results.join(bench, self.profiles(profile_json(source))))
            if plot.kind == "roofline"]
        figure = drawing.draw(plot)
        self.addCleanup(drawing.close, figure)
        figure.canvas.draw()
        legend, = figure.subfigs[1].legends
        box = legend.get_window_extent()
        self.assertTrue(figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1)
        lines = {line.get_label(): line for line in figure.axes[0].lines}
        return {text.get_text(): lines[text.get_text()] for text in legend.get_texts()}

    def test_a_sloped_roof_per_level(self):
        lines = self.roofline(l2_read_tb_per_s=8.04, l1_read_tb_per_s=32.0)
        self.assertEqual(list(lines), [
            "L1, reads only: 32.0 TB/s", "L1", "L2, reads only: 8.04 TB/s", "L2",
            "DRAM copy: 2.00 TB/s", "DRAM", "loop of FMAs: 10.0 TFLOP/s"])
        roofs = {name: line for name, line in lines.items() if "TB/s" in name}
        for (name, roof), level, rate in zip(roofs.items(), ("L1", "L2", "DRAM"), (32, 8.04, 2)):
            self.assertEqual(roof.get_color(), lines[level].get_color(), name)
            for intensity, height in roof.get_xydata():
                self.assertAlmostEqual(height, rate * intensity)
            self.assertAlmostEqual(roof.get_ydata()[1], 10)  # where the flat one begins

    def test_no_roof_without_its_rate(self):
        self.assertEqual(list(self.roofline()), ["L1", "L2", "DRAM copy: 2.00 TB/s", "DRAM",
                                                 "loop of FMAs: 10.0 TFLOP/s"])
        self.assertEqual(list(self.roofline("simulator", l1_read_tb_per_s=32.0)),
                         ["L1, reads only: 32.0 TB/s", "L1", "DRAM copy: 2.00 TB/s",
                          "loop of FMAs: 10.0 TFLOP/s"])

    def test_a_library_below_the_floor_is_explained(self):
        import plots as drawing
        for rivals, wanted in (([rival("cudnn", "fp32", 0.9)], True),  # the floor: 1 ms
                               ([rival("cudnn", "fp32", 1.1), rival("cudnn", "tf32", 0.5)], False)):
            note = drawing.floor_note(self.bench(bench_json(rivals)).problems)
            self.assertEqual("FFT, Winograd" in note, wanted)

    def test_the_same_data_give_the_same_file_which_bears_their_digest(self):
        import plots as drawing
        files = []
        for _ in range(2):
            figure = drawing.draw(self.plots[0])
            files.append(drawing.render(figure, "svg", "data 123"))
            drawing.close(figure)
        self.assertEqual(*files)
        self.assertIn(b"data 123", files[0])


class EveryProblem(Folder):
    """The last stage's times against those of the stage before it."""

    def problems(self, **ratios):
        value = bench_json()
        [model] = value["problems"]
        value["problems"] = [
            {**model, "problem": name,
             "records": [timed(2.0, stage=STAGES[-2]), timed(2.0 * ratio, stage=STAGES[-1])]}
            for name, ratio in ratios.items()]
        value["problems"].insert(0, {"problem": "grouped", "bias": True, "error": "groups = 2",
                                     "records": [], "competitors": []})
        self.save(every_problem.FILE, value)

    def test_ratios_and_those_that_lose(self):
        self.problems(a=0.25, b=1.0, c=1.04, d=1.06)
        found = every_problem.ratios(results.read_bench(self.path(every_problem.FILE)))
        self.assertEqual([f"{name} {ratio:.2f}" for name, ratio in found.items()],
                         ["a 0.25", "b 1.00", "c 1.04", "d 1.06"])
        self.assertEqual(every_problem.slower(found), ["d"])
        block = every_problem.block(self.folder)
        self.assertIn("4 problems", block)
        self.assertIn("It takes longer on 2 of them, and more than 1.05 times as long on 1.", block)
        self.assertIn("| d | 1.060 |\n| c | 1.040 |\n| b | 1.000 |\n| a | 0.250 |", block)

    def test_without_times(self):
        self.assertIn("No run of it stands here", every_problem.block(self.folder))
        self.problems()
        self.assertIn("No problem was timed in both", every_problem.block(self.folder))

    def test_no_committed_time_is_a_loss(self):
        path = os.path.join(ROOT, "docs/results", every_problem.FILE)
        if not os.path.exists(path):
            self.skipTest(f"no {every_problem.FILE}")
        self.assertEqual(every_problem.slower(every_problem.ratios(results.read_bench(path))), [])


if __name__ == "__main__":
    unittest.main()
