#!/usr/bin/env python3
"""Tests of counters: their list, tables of the committed records, what ncu prints, and least times.

With CONVLADDER_PROGRAM, a program that counts, also of what `./ladder profile` makes of its records.
"""
import copy
import json
import os
import shlex
import subprocess
import sys
import unittest

from common.tests.folder_test import FolderTest, called

from common.measure import ncu, profile, readings, sanitize
from common.show import counter_tables, counters, floors, last, metrics
from common.show.files import ROOT
from common.show.records import read_bench, read_json, read_profiles

DATA = os.path.join(ROOT, "common/tests/data")
TABLE = shlex.quote(f"{DATA}/ncu_output.txt")
PROGRAM = os.environ.get("CONVLADDER_PROGRAM")


def committed(name):
    return read_profiles(os.path.join(ROOT, f"docs/results/profile_{name}.json"))[0]


def rows_of(markdown):
    """A table's rows as {first cell: {heading: cell}}; of equal headings the first counts."""
    header, _, *rows = [[cell.strip() for cell in line[1:-1].split(" | ")]
                        for line in markdown.splitlines()]
    return {row[0]: dict(reversed(list(zip(header, row)))) for row in rows}


class Metrics(unittest.TestCase):
    def test_each_metric_stands_once_and_says_what_it_means(self):
        names = [metric.metric for metric in metrics.ALL]
        self.assertEqual(sorted(set(names)), sorted(names))
        for metric in metrics.ALL:
            self.assertTrue(metric.meaning, metric.metric)
            self.assertIn(metric.unit, counter_tables.TEXTS, metric.metric)
            self.assertEqual(bool(metric.table), bool(metric.heading), metric.metric)

    def test_all_that_was_recorded_is_known(self):
        names = {metric.metric for metric in metrics.ALL}
        for name in ("h200", "sim"):
            for kernels in committed(name).stages.values():
                for kernel in kernels:
                    self.assertLessEqual(set(kernel.metrics), names)
        read = set().union(*(kernel.metrics for kernels in committed("h200").stages.values()
                             for kernel in kernels))
        self.assertEqual(set(metrics.read_by("profile")), read)


class Tables(unittest.TestCase):
    """The tables are of the records in docs/results, whose figures are added up here once more."""

    @staticmethod
    def of_warps(*arguments):
        return dict(counter_tables.tables(*arguments))["What their warps ask for:"]

    def test_the_bytes_of_a_stage(self):
        for name, headings in (("h200", {"requested", "L1", "L2", "DRAM"}),
                               ("sim", {"requested", "L1", "touched"})):
            known = committed(name)
            rows = rows_of(counter_tables.traffic_table(known))
            self.assertEqual(list(rows), list(known.stages))
            self.assertLessEqual(headings, set(rows["01_naive"]))
        profile = committed("h200")
        naive = rows_of(counter_tables.traffic_table(profile))["01_naive"]
        sectors, asked = (sum(kernel.metrics[name] for kernel in profile.stages["01_naive"]
                              for name in metrics.parts_of(total))
                          for total in ("sectors", "requested_bytes"))
        self.assertEqual(naive["L1"], f"{32 * sectors / 1e9:.0f} GB")
        least = 4 * (256 * 3 * 224 * 224 + 96 * 3 * 11 * 11 + 96 + 256 * 96 * 55 * 55)
        self.assertEqual(profile.least_bytes, least)
        self.assertEqual(naive["÷ least"], f"{asked / least:.0f}")  # the first such column

    def test_a_stage_by_the_one_before_and_by_the_last_time(self):
        now = committed("h200")
        then = copy.deepcopy(now)
        kernel, = then.stages["05_fused_bias"]
        for name in kernel.metrics:
            kernel.metrics[name] /= 2
        table = self.of_warps(now, {"05_fused_bias": then})
        header = [cell.strip() for cell in table.splitlines()[0][1:-1].split(" | ")]
        row = next([cell.strip() for cell in line[1:-1].split(" | ")] for line in table.splitlines()
                   if "05_fused_bias" in line)
        place = header.index("FFMA")
        self.assertEqual(header[place:place + 3], ["FFMA", "÷ before", "÷ last time"])
        self.assertEqual(row[place + 2], "2.00")
        before, = (kernel for kernel in now.stages["04_register_blocking"] if "tiled" in kernel.name)
        name = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
        own, = now.stages["05_fused_bias"]
        self.assertAlmostEqual(float(row[place + 1]), own.metrics[name] / before.metrics[name], 2)

    def test_a_library_that_was_not_counted_is_compared_with_nothing(self):
        rows = rows_of(self.of_warps(committed("sim")))
        self.assertRegex(rows["02_im2col_gemm"]["requests"], r" \*$")
        self.assertEqual(rows["03_shared_tiling"]["÷ before"], "")
        tables = dict(counter_tables.tables(committed("sim")))
        self.assertRegex("".join(tables.values()), r"\| 02_im2col_gemm \| cublasSgemm \* \|")

class WhatNcuPrints(FolderTest):
    """What was recorded of it on an H200, and what it says where something is wrong."""
    STAGE = "02_im2col_gemm"

    def ncu(self, script):
        """Makes `script` the ncu of this test."""
        self.save("ncu", "#!/bin/sh\n" + script)
        os.chmod(self.path("ncu"), 0o755)
        self.addCleanup(os.environ.update, PATH=os.environ["PATH"])
        os.environ["PATH"] = self.folder + os.pathsep + os.environ["PATH"]

    def read(self):
        own = {"kernel": "im2col", "version": 1, "stage": self.STAGE, "problem": "alexnet_conv1",
               "shape": "n1", "bias": True, "flop": 1, "least_bytes": 1, "machine": "NVIDIA H200"}
        return called(profile.read_counters, "convladder", [own], [])

    def test_launches_of_a_kernel_become_a_record(self):
        self.ncu(f"cat {TABLE}")
        ((im2col, gemm, bias), failed), *_ = self.read()
        self.assertEqual(failed, 0)
        self.assertEqual((im2col["kernel"], im2col["launches"], im2col["library"], im2col["source"]),
                         ("im2col", 2, False, "ncu"))
        self.assertEqual(im2col["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"], 4000)
        self.assertEqual(im2col["launch__registers_per_thread"], 40)
        self.assertEqual(im2col["lts__t_sector_hit_rate.pct"], (75.5 * 1000 + 25.5 * 3000) / 4000)
        self.assertTrue(gemm["library"])
        self.assertNotIn("lts__t_sector_hit_rate.pct", gemm)  # n/a
        self.assertEqual(bias["gpu__time_duration.sum"], 398048)
        (_, rows), *_ = called(next, readings.of_stages([], [self.STAGE], [], self.path("none.csv")))
        self.assertEqual([row[2:4] for row in rows][::2], [["im2col", "2"], ["add_bias_kernel", "1"]])

    def test_what_goes_wrong_is_said(self):
        for script, pattern in (
                ("echo '==PROF== Connected'; kill -SEGV $$", r"Connected \(status -11\)"),
                ("echo 'convladder: error: out of memory' >&2; exit 1", "error: out of memory"),
                ("echo '==ERROR== a driver resource was unavailable.'; exit 9", "driver resource"),
                ("echo '==WARNING== No kernels were profiled.'", "no counters.*No kernels"),
                (f"head -n 12 {TABLE}; echo '\"0\",\"cut'", "ncu's table can't be read"),
                (f"grep -v -e '^\"[24]' {TABLE}", "launches .*'im2col': 2.*, ncu saw .*'im2col': 1"),
                (f"sed s/im2col.2/im2col*3/ {TABLE}", "'im2col': 3.*, ncu saw .*'im2col': 2")):
            self.ncu(script)
            (found, failed), said, error = self.read()
            self.assertEqual((found, failed, said), ([], 1, f"{self.STAGE}: not counted\n"))
            self.assertRegex(error, pattern)
        self.ncu("echo '==ERROR== ERR_NVGPUCTRPERM - no permission'")
        with self.assertRaisesRegex(ncu.CountersUnavailable, "NVreg_Restrict"):
            self.read()
        os.environ["PATH"] = self.path("nowhere")
        with self.assertRaisesRegex(ncu.CountersUnavailable, "no ncu in the PATH"):
            self.read()

    def test_a_metric_that_the_gpu_lacks_is_left_out(self):
        lacking = "lts__t_sector_hit_rate.pct"
        self.ncu(f"case $* in *{lacking}*) echo '==ERROR== Failed to find metric "
                 f"regex:^(lts__t_sector_hit_rate)(\\.|$)'; exit 9;; esac\ncat {TABLE}")
        (found, failed), _, said = self.read()
        self.assertIn(lacking, said)
        self.assertEqual((len(found), failed), (3, 0))

    def test_plain_names(self):
        for name, plain in (("void convladder::<unnamed>::conv2d<(int)11, (int)4>(float *, bool)", "conv2d"),
                            ("void (anonymous namespace)::k<3>(float*)", "k"), ("k", "k"),
                            ("_ZN1a12_GLOBAL__N_x4packINS0_5TilesILi3EEEEEvi", "pack")):
            self.assertEqual(ncu.plain_name(name), plain)


class LeastTimes(FolderTest):
    """Worked out by hand: each of ten multiprocessors begins 100 FMAs and a wavefront a microsecond, and DRAM
    moves a sector."""
    RATES = {"multiprocessors": 10, "clock_mhz": 1, "fmas_per_cycle": 100, "wavefronts_per_cycle": 1,
             "dram_tb_per_s": 32e-6, "l2_bytes": 320, "fma_tflops": 0.002}

    def test_of_a_launch(self):
        equal = {"blocks": 10, "products": [[500, 10]]}
        tensor = {"blocks": 11, "tensor_instructions": [[3, 11]]}
        for work, rates, microseconds, limit in (
                (equal | {"wavefronts": [[4, 10]]}, {}, 5, "multiplications"),
                (equal | {"wavefronts": [[6, 10]]}, {}, 6, "L1's data pipe"),
                (equal | {"sectors_read": 7, "first": True}, {}, 7, "DRAM"),
                # One multiprocessor has to do a whole block, or two of 11.
                (equal | {"blocks": 1, "products": [[500, 1]]}, {}, 5, "multiplications"),
                ({"blocks": 11, "products": [[500, 11]]}, {}, 10, "multiplications"),
                ({"blocks": 1000, "products": [[500, 10]]}, {}, 500, "multiplications"),  # of a sample
                # Where blocks are unequal, it may have the smallest; or the average, if that is more.
                ({"blocks": 11, "products": [[100, 1], [500, 10]]}, {}, 6, "multiplications"),
                ({"blocks": 11, "products": [[0, 10], [5000, 1]]}, {}, 5, "multiplications"),
                # Ten sectors may stay in L2, and ten may lie there before, but for the first launch.
                ({"blocks": 1, "sectors_read": 12, "sectors_written": 15, "first": True}, {}, 17, "DRAM"),
                ({"blocks": 1, "sectors_read": 12, "sectors_written": 15}, {}, 7, "DRAM"),
                ({"blocks": 0, "library_products": 5000}, {}, 5, "multiplications"),
                (tensor, {}, 0, "launch"),  # whose rate isn't known
                (tensor, {"tf32_tflops": 10 * 2048e-6}, 6, "tensor cores"),
                (equal, {"launch_us": 2}, 5, "multiplications"),
                ({"blocks": 1}, {"launch_us": 2}, 2, "launch")):
            milliseconds, by = floors.of_launch({"sectors_read": 0, "sectors_written": 0} | work,
                                                self.RATES | rates)
            self.assertAlmostEqual(milliseconds, 1e-3 * microseconds, 9, work)
            self.assertEqual(by, limit, work)

    def test_of_what_nsight_compute_has_read(self):
        for counted_by_it, milliseconds, limit in (
                ({"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": 3e6}, 3, "multiplications"),
                ({"l1tex__data_pipe_lsu_wavefronts.sum": 60e3}, 6, "L1's data pipe"),
                ({"sm__inst_executed_pipe_tensor_op_gmma.sum": 1, "smsp__inst_executed.sum": 80e3,
                  "smsp__issue_active.avg.pct_of_peak_sustained_active": 20,
                  "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": 50}, 5, "tensor cores"),
                ({"dram__bytes_read.sum": 32e3, "dram__bytes_write.sum": 96e3}, 4, "DRAM")):
            floor = floors.of_counters(counted_by_it, self.RATES)
            self.assertAlmostEqual(floor[0], milliseconds)
            self.assertEqual(floor[1], limit)
        self.assertIsNone(floors.of_counters({"dram__bytes_read.sum": 1}, self.RATES))

    def test_what_runs_one_after_the_other_adds_up(self):
        self.assertEqual(floors.sum_of([(1, "DRAM"), (2, "multiplications"), (1.5, "DRAM")]), (4.5, "DRAM"))
        reads = {"blocks": 1, "sectors_read": 13, "sectors_written": 0, "times": 2}
        milliseconds, limit = floors.of_work([reads, reads | {"times": 1, "first": True}], self.RATES)
        self.assertAlmostEqual(milliseconds, 1e-3 * (3 + 3 + 13))
        self.assertEqual(limit, "DRAM")

    def test_no_committed_floor_is_above_a_measured_time(self):
        for kernels in committed("h200").stages.values():
            for kernel in kernels:
                self.assertLessEqual(kernel.floor_ms, 1.01 * counters.profiled_ms(kernel))
        _, h200 = floors.machine_of("NVIDIA H200")
        ceiling = 2e-6 * h200["fmas_per_cycle"] * h200["multiprocessors"] * h200["clock_mhz"]
        self.assertLessEqual(h200["fma_tflops"], ceiling)
        timed = read_bench(os.path.join(ROOT, "docs/results/layers_h200.json"))
        cases = floors.cases([timed], floors.read_floors(os.path.join(ROOT, "docs/results/floors.csv")))
        self.assertGreaterEqual(len(cases), 40)
        self.assertEqual(floors.above_time(cases), [])
        self.assertEqual(len(floors.above_time([cases[0]._replace(share=1.02)])), 1)

    def test_gpus_are_known_by_name(self):
        self.assertEqual(floors.read_machine("H200"), floors.read_machine(profile.H200))
        for name, (gpu, rates, capability) in floors.data_sheets().items():
            self.assertEqual(floors.read_machine(name), (gpu, rates))
            self.assertEqual(floors.machine_of(gpu.removesuffix(floors.BY_DATA_SHEET)), (gpu, rates))
            self.assertGreaterEqual(float(capability), 7.5)
            self.assertTrue(set(floors.RATES) <= set(rates), name)
        # What the data sheets say of FP32: products and sums, in TFLOPS.
        for name, tflops in (("t4", 8.1), ("rtx3060", 12.7), ("rtx3090", 35.6), ("rtx4090", 82.6),
                             ("a100", 19.5), ("l4", 30.3)):
            self.assertAlmostEqual(floors.read_machine(name)[1]["fma_tflops"], tflops, delta=0.05)
        self.assertEqual(floors.machine_of("NVIDIA X"), ("NVIDIA X", None))
        self.assertEqual(floors.cannot_run("NVIDIA H200", ["14_warpgroups"]), {})
        for name, needs in (("t4", {"12_tensor_cores": "8.0", "15_copy_engine_nhwc": "9.0"}),
                            ("a100", {"15_copy_engine_nhwc": "9.0"})):
            gpu, _ = floors.read_machine(name)
            found = floors.cannot_run(gpu, ["01_naive", "12_tensor_cores", "15_copy_engine_nhwc"])
            self.assertEqual(found, needs)
        status, _, said = called(floors.read_machine, "x")
        self.assertEqual(status, 2)
        self.assertRegex(said, "^ladder: error: --machine x: no such file, .*: h100, h200, t4, ")


class Sanitizer(FolderTest):
    """What its tools print decides, not their status alone."""

    def test_what_is_a_pass(self):
        many = ("========= ERROR SUMMARY: 769 errors\n========= ERROR SUMMARY: 669 errors were not printed. "
                "Use --print-limit option to adjust the number of printed errors\n")
        clean, right = "========= ERROR SUMMARY: 0 errors\n", "52 passed, 0 failed, 0 rejected, 0 skipped\n"
        races = "========= RACECHECK SUMMARY: 3 hazards displayed (3 errors, 0 warnings)\n"
        for tool, log, reports, passed in (
                ("memcheck", right + clean, 0, True), ("memcheck", right + many, 769, True),
                ("racecheck", right + races, 3, True),
                ("racecheck", right + clean, None, True),  # another tool's
                ("memcheck", "========= Error: process was terminated\n", None, False),
                ("memcheck", right.replace("0 failed", "1 failed") + clean, 0, False),
                ("memcheck", right.replace("52", "0") + clean, 0, False), ("memcheck", clean, 0, False)):
            self.assertEqual(sanitize.summary(tool, log), (reports, passed), log)

@unittest.skipUnless(PROGRAM, "CONVLADDER_PROGRAM names no program that counts")
class OfTheProgram(FolderTest):
    SMALL = ["--shape", "nasty_primes", "--stage", "05_fused_bias", "--stage", "06_async_copies"]

    def profile(self, *words):
        command = [sys.executable, "-m", "common.measure.profile", "--program", PROGRAM, "--json",
                   self.path("profile.json"), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def test_the_tables_and_the_last_time(self):
        self.profile(*self.SMALL)
        records = read_json(self.path("profile.json"))
        names = {metric.metric for metric in metrics.ALL}
        for record in records:
            self.assertLessEqual({name for name in record if "." in name}, names)
            self.assertNotIn("work", record)
        path = last.path_of([record for record in records if record["stage"] == "05_fused_bias"], False)
        kept = read_json(path)
        name = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
        kept[0][name] += kept[0]["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"]
        kept[0]["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"] = 0
        for member in ("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
                       "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"):
            kept[0][member] *= 2
        with open(path, "w", encoding="utf-8") as file:
            json.dump(kept, file)
        status, out, _ = self.profile(*self.SMALL)
        self.assertEqual(status, 0, out)
        self.assertRegex(out, r"05_fused_bias: right \(max error")
        self.assertRegex(out, r"\n05_fused_bias +conv2d_tiled +[1-9]")
        self.assertRegex(out, r"stage +requests +÷ before +÷ last time")
        self.assertRegex(out, r"\n05_fused_bias +[\d.]+ k? +0\.500 ")
        self.assertRegex(out, r"at least on an H200 \[ms\] +limited by")
        self.assertRegex(self.profile("--brief", *self.SMALL)[1],
                         r"\AWhat each stage asks of memory .*:\nstage +requests .*\n-.*\n"
                         r"05_fused_bias .*\n06_async_copies .*\n\./ladder profile: .*\n\Z")
        for text in ("nothing of ours", json.dumps([{**kept[0], "version": 8}])):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            self.assertEqual(self.profile("--stage", "05_fused_bias", *self.SMALL[:2])[0], 0)

    def test_a_part_says_what_the_whole_takes(self):
        """One image of four: as much as counting all four says, or hardly less."""
        shapes = self.save("shapes.csv", "name,n,c,h,w,k,r,s,pad_h,pad_w\nwhole,4,8,20,28,40,3,3,1,1\n")
        whole = ["--shapes", shapes, "--shape", "whole", "--bias", "1"]
        kernels = {}
        for words in (whole, whole + ["--batch", "1"]):
            status, out, err = self.profile(*words)
            self.assertEqual(status, 0, out + err)
            for record in read_json(self.path("profile.json")):
                kernels.setdefault((record["stage"], record["kernel"]), []).append(record)
        for kernel, (counted_whole, part) in kernels.items():
            self.assertLessEqual(part["whole_floor_ms"], counted_whole["floor_ms"] * 1.0001, kernel)
            self.assertGreaterEqual(part["whole_floor_ms"], counted_whole["floor_ms"] * 0.8, kernel)
        self.profile(*whole, "--batch", "1", "--h", "9", "--stage", "03_shared_tiling")
        self.assertEqual(read_json(self.path("profile.json"))[0]["whole_shape"], counted_whole["shape"])

    def test_what_is_wrong_with_the_command_is_said(self):
        for words, expected, said in (
                (["--json", self.path("nowhere/profile.json")], 1, "there is no folder"),
                (["--machine", self.save("no.json", "[]")], 1, "its format is null"),
                (["--shape", "nowhere"], 2, "nowhere"), (["--block", "1"], 2, "--trace")):
            status, _, err = self.profile(*words)
            self.assertEqual(status, expected, err)
            self.assertRegex(err, said)


if __name__ == "__main__":
    unittest.main()
