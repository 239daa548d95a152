"""./ladder report: its tables and generated blocks, and what it says of bad input.

All figures here are made up, but for those of docs/results.
"""
import functools
import json
import operator
import os
import re
import unittest

from common.show import blocks, files, records, report, text, time_tables
from common.tests.folder_test import ROOT, FolderTest, called

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
              "launches": 1, "source": source, "library": False, "flop": 20e9,
              "least_bytes": 264}
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


class Folder(FolderTest):
    """What is read from files."""

    def bench(self, value):
        return records.read_bench(self.save("bench.json", value))

    def profiles(self, value):
        return records.read_profiles(self.save("profile.json", value))

    def page(self, value):
        """The report of a bench alone."""
        bench = self.bench(value)
        return text.report(bench, records.join(bench, []), [])

    def run_report(self, *arguments):
        return called(report.main, [*arguments, "--out", self.folder])


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
            self.assertIn(f"02_im2col_gemm: {status}: wrong at n 0", self.page(value))

    def test_a_failed_competitor_is_listed_and_compared_with_nothing(self):
        value = bench_json([{**rival("cudnn", "fp32", 4.0), "status": "fail", "message": "died"}])
        self.assertNotIn("× cuDNN FP32", self.table(value)[0])
        bench = self.bench(value)
        row, = rows_of(time_tables.competitors_table(bench.problems[0], bench))
        self.assertEqual((row["cold [ms]"], row["message"]), ("fail", "died"))

    def test_a_library_that_has_not_used_tf32_does_not_stand_beside_it(self):
        for used, cell in ((True, "0.500 (0 of 1)"), (False, None)):
            bench = self.bench(bench_json([rival("cudnn", "tf32", 4.0, tf32_used=used)]))
            first, *_ = rows_of(time_tables.standings_table(bench))
            self.assertEqual(first.get("× cuDNN TF32"), cell)

    def test_a_rejected_problem(self):
        value = bench_json()
        value["problems"].append({"problem": "grouped", "bias": True, "error": "groups = 2",
                                  "gpu_before": None, "gpu_after": None, "records": [
                                      {"stage": STAGES[0], "status": "rejected", "message": "",
                                       "cold_ms": None, "warm_ms": None}]})
        self.assertIn("Not measured: groups = 2", self.page(value))

class Traffic(Folder):
    def test_batches_and_sources_are_not_mixed(self):
        other = [{**record, "shape": SHAPE.replace("n2", "n1")} for record in profile_json()]
        bench = self.bench(bench_json())
        problems = records.join(bench, self.profiles(other + profile_json("simulator")))
        self.assertEqual([(p.shape[:2], p.bench is not None, [q.source for q in p.profiles])
                          for p in problems],
                         [("n2", True, ["simulator"]), ("n1", False, ["ncu"])])

class CommandLine(Folder):
    def expect_error(self, arguments, pattern, status=1):
        ended, _, said = self.run_report(*arguments)
        self.assertEqual(ended, status, said)
        self.assertRegex(said, "^ladder report: error: .*" + pattern)
        self.assertEqual(said.count("\n"), 1, said)
        self.assertNotIn("report.md", self.files())

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
        for place, member, wrong, pattern in (
                (["machine"], "fma_tflops", "10", "machine: .*'fma_tflops' is \"10\""),
                (["machine"], "l2_read_tb_per_s", 0, "'l2_read_tb_per_s' is 0, not"),
                (["problems", 0], "flop", "many", "'flop' is \"many\""),
                (["problems", 0, "records", 0], "status", "fine", "'status' is"),
                (["problems", 0, "records", 0], "cold_ms", 7, "object was expected"),
                (["problems", 0, "records", 0, "cold_ms"], "median", -1, "'median'"),
                (["problems", 0, "records", 0, "cold_ms"], "median", float("nan"), "'median'"),
                (["problems", 0, "records", 0, "cold_ms"], "median", 99, "around"),
                (["problems", 0], "competitors", [rival("cudnn", "fp16", 1.0)],
                 "'precision' is \"fp16\", not one of fp32, tf32")):
            value = bench_json()
            functools.reduce(operator.getitem, place, value)[member] = wrong
            self.expect_bad("--bench", value, pattern)
        self.expect_bad("--profile", [kernel(STAGES[0], 1, **{"dram__bytes_read.sum": "7"})],
                        "'dram__bytes_read.sum' is \"7\"")

    def test_usage(self):
        for arguments in (["--frobnicate"], ["--check"], ["--docs"], ["--bench"]):
            self.expect_error(arguments, "", status=2)
        for option in ("--bench", "--run"):
            self.expect_error([option, "a.json", option, "b.json"],
                              f"{option} b.json: there is {option} a.json already", status=2)

    def test_run_and_check(self):
        for source, time in (("cuda_events", 4.0), ("simulator_wall_time", None)):
            path = self.save("run.json", {"stages": [{**RUN_RECORD, "time_source": source}]})
            self.assertEqual(records.read_runs(path)[0].time_ms, time)
        failed = {**RUN_RECORD, "status": "fail", "time_source": "cuda_events"}
        row, = rows_of(time_tables.runs_table(records.read_runs(self.save("check.json", [failed]))))
        self.assertEqual((row["check"], "warm [ms]" in row), ("fail", False))


class CommittedTexts(unittest.TestCase):
    def test_they_agree_with_the_results(self):
        self.assertEqual(blocks.stale(blocks.Results(ROOT)), [])

    def test_all_of_them_have_their_block(self):
        wanted = {"README.md": ["summary", "layers"], "docs/results/README.md": ["report"],
                  "docs/reliability.md": ["campaigns"]}
        wanted.update((name, ["ladder", "measured"]) for name in blocks.texts(ROOT)
                      if name[0].isdigit() and name < "90")
        wanted["11_split_k/README.md"].append("some_layers")
        wanted["12_tensor_cores/README.md"].append("tf32")
        self.assertEqual(len(wanted), 3 + len(files.rungs()))
        for name, names in wanted.items():
            with open(os.path.join(ROOT, name), encoding="utf-8") as file:
                self.assertEqual(re.findall(r"<!-- generated: (\w+).* -->", file.read()), names,
                                 f"{name}: <!-- generated: ... --> as in the stages before")

    def test_every_stage_says_what_limits_it(self):
        for stage in files.rungs():
            limit = blocks.limit_of(ROOT, stage)
            self.assertTrue(0 < len(limit) <= 40, f"{stage}/README.md, What limits now, begins with bold "
                            f"words, 40 letters at most, not with '{limit}'")


class Blocks(Folder):
    """On a checkout in small."""
    README = STAGES[1] + "/README.md"

    def setUp(self):
        super().setUp()
        os.makedirs(self.path(blocks.FOLDER))
        for stage in STAGES[:2]:
            self.add_stage(stage, "int same;\n")
        for name, block in (("README.md", "summary"), (blocks.FOLDER + "/README.md", "report"),
                            (self.README, "measured | DRAM")):
            self.save(name, f"before\n<!-- generated: {block} -->\nold\n<!-- end -->\nafter\n")

    def add_stage(self, stage, code=""):
        os.makedirs(self.path(stage))
        self.save(stage + "/CMakeLists.txt", "")
        self.save(stage + "/kernel.cu",
                  f'{code}CONVLADDER_REGISTER_STAGE(\n    {{"{stage}", "of {stage}"}});\n')

    def results(self, **files):
        """Saves them in docs/results: {name: JSON, or text of a CSV}."""
        for name, value in files.items():
            kind = "csv" if isinstance(value, str) else "json"
            self.save(f"{blocks.FOLDER}/{name}.{kind}", value)

    def renew(self):
        data = blocks.Results(self.folder)
        for name in blocks.texts(self.folder):
            self.save(name, blocks.renewed(data, name)[1])
        self.save(blocks.FOLDER + "/index.html", data.page())
        return blocks.Results(self.folder)

    def made(self, block, **files):
        """What the block becomes with these results, where the page has nothing else."""
        self.save(self.README, f"<!-- generated: {block} -->\n<!-- end -->\n")
        self.results(**files)
        self.renew()
        begin, end = f"<!-- generated: {block} -->\n", "<!-- end -->\n"
        return self.read(self.README).removeprefix(begin).removesuffix(end)

    def test_without_results_they_are_empty(self):
        self.renew()
        for name in blocks.texts(self.folder):
            self.assertRegex(self.read(name),
                             r"^before\n<!-- generated: .+ -->\n<!-- end -->\nafter\n$")
        for block in ("campaigns", "layers", "some_layers | small"):
            self.assertEqual(self.made(block), "")

    def test_they_follow_the_json_and_what_is_stale_is_noticed(self):
        self.results(bench_gpu=bench_json(), profile_gpu=profile_json())
        data = self.renew()
        self.assertEqual(blocks.stale(data), [])
        shown = self.read(self.README)
        self.assertIn("| time [ms] | 8.000 | 4.000 | 0.500 |", shown)
        self.assertIn("| DRAM | 1.06 kB | 528 B | 0.500 |", shown)
        self.save("README.md", self.read("README.md").replace("8.000", "8.001"))
        self.assertEqual([complaint.split(":")[0] for complaint in blocks.stale(data)], ["README.md"])

    def test_some_of_many_layers(self):
        self.assertIn(f"| small | {SHAPE} | 8.000 | 4.000 | 0.500 |\n",
                      self.made("some_layers | small", layers_gpu=bench_json()))
        with self.assertRaisesRegex(records.BadInput, "on no layer 'large'"):
            self.made("some_layers | large")

    def test_times_in_tf32(self):
        value = bench_json()
        value["problems"][0]["records"] = [timed(2.0, stage=STAGES[1] + " (TF32)")]
        self.assertIn("| small | 4.000 | 2.000 | 10.0 | 3.000 | 1.50 |\n", self.made(
            "tf32", bench_gpu=bench_json([rival("cudnn", "tf32", 3.0)]), tf32_gpu=value))

    def test_the_front_page_has_a_row_for_each_folder(self):
        self.add_stage("03_new")
        self.save("03_new/README.md", "## What limits now\n\n**Shared memory.** It is.\n")
        row, = [line for line in self.made("summary", bench_gpu=bench_json()).splitlines()
                if "03_new" in line]
        self.assertEqual(row, "| [03](03_new/README.md) | of 03_new | not timed yet |  "
                         "| Shared memory |")

    def test_a_counter_that_nobody_counts(self):
        with self.assertRaisesRegex(records.BadInput, "'DRUM' is none of L1, L2"):
            self.made("measured | DRUM", profile_gpu=profile_json())

    def test_broken_markers(self):
        for broken, message in (("<!-- generated: summary -->\n", "no '<!-- end -->'"),
                                ("<!-- generated: sumary -->\n<!-- end -->\n", "called 'sumary'")):
            self.save("README.md", broken)
            with self.assertRaisesRegex(records.BadInput, message):
                blocks.renewed(blocks.Results(self.folder), "README.md")

    def test_layers(self):
        """Only what both have passed is compared."""
        skipped = {**rival("cudnn", "tf32", 4.0), "status": "skipped"}
        value = bench_json([rival("cudnn", "fp32", 4.0), skipped])
        other, = bench_json([rival("cudnn", "fp32", 1.0), rival("cudnn", "tf32", 2.0)])["problems"]
        other["records"][0]["status"] = "impossible"
        made = self.made("layers", layers_gpu={**value, "problems": value["problems"] + [other]})
        self.assertIn("\nOver 2 layers of published networks", made)
        self.assertIn("| stage | × cuDNN FP32 | × cuDNN TF32 |\n| --- | --: | --: |\n"
                      "| 01_naive | 0.500 (0 of 1) |  |\n"
                      "| 02_im2col_gemm | 0.500 (0 of 2) | 0.500 (0 of 1) |\n"
                      "| 03_shared_tiling | 1.00 (1 of 2) | 1.00 (0 of 1) |\n", made)

if __name__ == "__main__":
    unittest.main()
