#!/usr/bin/env python3
"""Tests of common/measure/ncu.py and profile_gpu.py, with an ncu that only prints like one."""
import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest
from unittest import mock

from common.tests.fake_program import MEASURE, FakeProgramTest, called

from common.measure import ncu, profile_gpu, read_ncu

# What the made-up GPU has launched: {stage: [(kernel as ncu prints it, {metric: value as text})]}.
NAIVE = "convladder::<unnamed>::conv2d_naive(convladder::ConvShape, int, const float *, float *)"
IM2COL = "convladder::<unnamed>::im2col(convladder::ConvShape, int, float *)"
FUSED = "void convladder::<unnamed>::conv2d_fused_bias<(int)11, (int)4, (int)8>(float *, bool)"
GEMM = "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x32x8_stage3_ffma_execute_kernel__5x_cublas"


def launch(sectors, nanoseconds, **others):
    return {"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": f"{sectors // 4:,}",
            "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": "0",
            "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": f"{sectors:,}",
            "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": "0",
            "dram__bytes_read.sum": "2,048", "dram__bytes_write.sum": "1,024",
            "lts__t_sectors_srcunit_tex_op_read.sum": "100",
            "lts__t_sectors_srcunit_tex_op_write.sum": "28",
            "l1tex__data_pipe_lsu_wavefronts.sum": f"{sectors // 4:,}",
            "gpu__time_duration.sum": f"{nanoseconds:,}", "lts__t_sector_hit_rate.pct": "75.50",
            "launch__registers_per_thread": "32", "sm__throughput.avg.pct_of_peak_sustained_elapsed":
            "n/a", **others}


LAUNCHES = {
    "01_naive": [(NAIVE, launch(4_000_000, 1_000_000))],
    "02_im2col_gemm": [(IM2COL, launch(1000, 1000)),
                       (GEMM, launch(2000, 3000)),
                       (IM2COL, launch(3000, 3000, **{"lts__t_sector_hit_rate.pct": "25.5",
                                                      "launch__registers_per_thread": "40"})),
                       (GEMM, launch(2000, 3000))],
    "05_fused_bias": [(FUSED, launch(500, 2000))],
}
OWN = {"01_naive": [("conv2d_naive", 1)], "02_im2col_gemm": [("im2col", 2)],
       "05_fused_bias": [("conv2d_fused_bias", 1)]}

NCU = """
words = sys.argv[1:]
metrics = words[words.index("--metrics") + 1].split(",")
command = words[words.index("--metrics") + 2:]
with open(FOLDER + "/calls", "a") as calls:
    print(json.dumps(words), file=calls)
for unknown in UNKNOWN:
    if unknown in metrics:
        print("==ERROR== Failed to find metric regex:^(%s)(\\\\.|$)" % unknown.split(".")[0])
        sys.exit(9)
stages = [command[i + 1] for i, word in enumerate(command) if word == "--stage"]
launches = [launch for stage in stages for launch in LAUNCHES[stage]]
print("==PROF== Connected to process 4711 (%s)" % command[0])
print("alexnet_conv1: n256 c3 224x224, bias")
for stage in stages:
    print(stage + ": launched once, result NOT checked (--once):", *("%s*%d" % own for own in OWN[stage]))
for kernel, _ in launches:
    print('==PROF== Profiling "%s" - 0: 0%%....50%%....100%% - 9 passes' % kernel)
print("==PROF== Disconnected from process 4711")
print('"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size",'
      '"Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"')
for number, (kernel, values) in enumerate(launches):
    for metric in metrics:
        if metric in values:
            print('"%d","4711","convladder","127.0.0.1","%s","1","7","(256, 1, 1)","(64, 1, 1)","0",'
                  '"9.0","Command line profiler metrics","%s","","%s"'
                  % (number, kernel, metric, values[metric]))
"""

SHAPE = "n2 c1 4x4 k1 1x1 stride 1x1 pad 0x0 dil 1x1"  # moves 260 bytes, with its bias 264
CONVLADDER = """
words = sys.argv[1:]
if "--shape" in words and "nowhere" in words:
    print("convladder: error: problem 'nowhere' is unknown", file=sys.stderr)
    sys.exit(2)
wanted = [words[i + 1] for i, word in enumerate(words) if word == "--stage"]
records = [{"version": VERSION, "stage": stage, "problem": "alexnet_conv1", "shape": SHAPE,
            "bias": True, "kernel": kernel, "launches": launches, "source": "cuda_runtime",
            "library": False, "flop": 6144.0, "machine": MACHINE, "launch__registers_per_thread": 30}
           for stage, kernels in OWN.items() for kernel, launches in kernels
           if not wanted or stage in wanted]
print("alexnet_conv1: n256 c3 224x224, bias; backend: gpu (made up)\\n")
for stage in WRONG:
    print(stage + ": wrong: 3 of 64 outputs")
records = [record for record in records if record["stage"] not in WRONG]
if records:
    json.dump(records, open(words[words.index("--json") + 1], "w"))
    print("\\nwhat the runtime knows")
sys.exit(bool(WRONG))
"""


class ProfileTest(FakeProgramTest):
    def setUp(self):
        super().setUp()
        self.json = self.path("profile.json")
        self.convladder()
        self.ncu()
        last = mock.patch.object(profile_gpu, "LAST", self.path("last"))
        last.start()
        self.addCleanup(last.stop)

    def convladder(self, wrong=(), shape=SHAPE, version=1, machine="NVIDIA H200"):
        self.program("convladder", f"OWN = {OWN!r}\nWRONG = {wrong!r}\nSHAPE = {shape!r}\n"
                                   f"VERSION = {version}\nMACHINE = {machine!r}\n" + CONVLADDER)

    def ncu(self, source=NCU, unknown=(), own=OWN):
        self.program("ncu", f"FOLDER = {self.folder!r}\nLAUNCHES = {LAUNCHES!r}\n"
                            f"OWN = {own!r}\nUNKNOWN = {unknown!r}\n" + source)

    def profile(self, *words):
        return called(profile_gpu.main, ["--bin", self.folder, "--json", self.json, *words])

    def records(self):
        return json.loads(self.read(self.json))

    def calls(self):
        return [json.loads(line) for line in self.read("calls").splitlines()]

    def test_one_record_per_stage_and_kernel(self):
        status, _, err = self.profile()
        self.assertEqual((status, err), (0, ""))
        self.assertEqual([(r["stage"], r["kernel"], r["launches"], r["library"])
                          for r in self.records()],
                         [("01_naive", "conv2d_naive", 1, False),
                          ("02_im2col_gemm", "im2col", 2, False), ("02_im2col_gemm", GEMM, 2, True),
                          ("05_fused_bias", "conv2d_fused_bias", 1, False)])
        for record in self.records():
            self.assertEqual((record["source"], record["problem"], record["flop"], record["bias"],
                              record["version"]), ("ncu", "alexnet_conv1", 6144.0, True, 1))

    def test_launches_of_a_kernel_are_merged(self):
        self.profile()
        im2col = self.records()[1]
        self.assertEqual(im2col["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"], 4000)
        self.assertEqual(im2col["gpu__time_duration.sum"], 4000)
        self.assertEqual(im2col["launch__registers_per_thread"], 40)
        self.assertEqual(im2col["lts__t_sector_hit_rate.pct"], (75.5 * 1000 + 25.5 * 3000) / 4000)
        self.assertNotIn("sm__throughput.avg.pct_of_peak_sustained_elapsed", im2col)  # n/a

    def test_the_stages_are_compared(self):
        out = self.profile()[1]
        rows = {line.split("  ")[0]: line.split() for line in out.splitlines()}
        self.assertEqual(rows["02_im2col_gemm"][1:7],  # L1 bytes, / least, / before; then L2's
                         ["256", "kB", "970", "0.00200", "16.4", "kB"])
        self.assertEqual(rows["05_fused_bias"][-4:], ["3.07", "kB", "11.6", "0.250"])
        self.assertRegex(out, r"requests +sectors / load .* FLOP / DRAM byte .* profiled \[ms\]\n")
        self.assertEqual(rows["02_im2col_gemm: im2col"][1:], ["im2col", "40", "38.0", "%"])
        self.assertIn(f"\n02_im2col_gemm: {GEMM[:27]}... * ", out)
        self.assertIn("\n* a library's kernel\n", out)

    def test_the_floor_stands_beside_the_time(self):
        out = self.profile()[1]
        naive = self.records()[0]  # a million wavefronts in 1 ms
        self.assertAlmostEqual(naive["floor_ms"], 1e6 / (132 * 1.98e6))
        self.assertEqual(naive["floor_limit"], "L1's data pipe")
        self.assertRegex(out,
                         r"01_naive: conv2d_naive +0\.003826 +L1's data pipe +1\.000 +0\.00383\n")

    def test_a_gpu_without_rates_has_no_floors(self):
        self.convladder(machine="some GPU")
        status, out, _ = self.profile()
        self.assertEqual(status, 0)
        self.assertIn("no least times: common/machines has no some GPU", out)
        self.assertNotIn("floor_ms", self.records()[0])
        rates = os.path.join(profile_gpu.ROOT, "common/machines/h200.json")
        self.assertIn("at least [ms]", self.profile("--machine", rates)[1])

    def test_a_wrong_stage_is_not_counted(self):
        self.convladder(["02_im2col_gemm"])
        status, out, _ = self.profile()
        self.assertEqual(status, 1)
        self.assertIn("02_im2col_gemm: wrong: 3 of 64 outputs\n", out)
        self.assertEqual([record["stage"] for record in self.records()],
                         ["01_naive", "05_fused_bias"])

    def test_with_no_stage_right_nothing_is_counted(self):
        self.convladder(list(OWN))
        status, out, _ = self.profile()
        self.assertEqual(status, 1)
        self.assertIn("01_naive: wrong", out)
        self.assertNotIn("requests", out)
        self.assertFalse(set(self.files()) & {"profile.json", "calls", "last"})

    def test_the_last_time_is_compared_with(self):
        self.assertNotIn("last time", self.profile()[1])
        with mock.patch.dict(LAUNCHES, {"05_fused_bias": [(FUSED, launch(1000, 8000))]}):
            self.ncu()
            out = self.profile("--stage", "05_fused_bias")[1]
        header, _, row = out.split("÷ last time")[1].splitlines()[:3]
        last = dict(zip(re.split("  +", header.strip()), row.split()[1:]))
        self.assertEqual([last[name] for name in ("L1", "DRAM", "requests", "profiled [ms]")],
                         ["2.00", "1.00", "2.00", "4.00"])

    def test_another_shape_or_version_is_no_last_time(self):
        self.profile()
        self.convladder(shape=SHAPE.replace("n2", "n1"))
        self.assertNotIn("last time", self.profile()[1])
        for text in (None, "nothing of ours"):
            for name in os.listdir(self.path("last")):
                kept = self.read("last/" + name).replace('"version": 1', '"version": 8')
                self.save("last/" + name, text or kept)
            status, out, _ = self.profile()
            self.assertEqual((status, "last time" in out), (0, False))

    def test_another_version_is_an_error(self):
        self.convladder(version=7)
        self.expect_failure("version 7; this report reads version 1", left=["profile.json"])

    def test_a_link_stays_a_link(self):
        os.symlink("target.json", self.json)
        self.assertEqual(self.profile()[0], 0)
        self.assertTrue(os.path.islink(self.json))
        self.assertEqual(len(self.records()), 4)

    def test_standard_output_that_is_full_or_closed_is_an_error(self):
        source = ("import sys\nfrom common.measure import profile_gpu\nfrom common.show import support\n"
                  "profile_gpu.LAST = sys.argv.pop(1)\nsupport.run_main(profile_gpu.main)\n")
        script = [sys.executable, "-c", source.format(MEASURE=MEASURE), self.path("last"), "--bin",
                  self.folder, "--json", self.json, "--n", "1"]
        for stream in ("/dev/full", "&-"):
            done = subprocess.run(["sh", "-c", f'"$@" >{stream}', "sh", *script],
                                  stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertRegex(done.stderr, r"^ladder: error: standard output .*\n$")

    def test_options_reach_the_program_and_stages_are_chosen(self):
        status, _, _ = self.profile("--stage", "05_fused_bias", "--n=2", "--bias", "0")
        self.assertEqual(status, 0)
        self.assertEqual(len(self.calls()), 1)
        self.assertEqual(self.calls()[0][-7:], ["run", "--once", "--stage", "05_fused_bias",
                                                "--n=2", "--bias", "0"])
        for option in ("--csv", "--print-units", "--clock-control"):
            self.assertIn(option, self.calls()[0])

    def test_metrics_that_the_gpu_lacks_are_left_out(self):
        lacking = ["lts__t_sector_hit_rate.pct", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"]
        self.ncu(unknown=lacking)
        status, out, err = self.profile()
        self.assertEqual(status, 0)
        for metric in lacking:
            self.assertEqual(err.count(metric), 1)  # said once, not for every stage
            self.assertNotIn(metric, self.records()[0])
        self.assertIn("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", self.records()[0])
        self.assertIn("-", out)

    def expect_failure(self, pattern, *words, left=()):
        status, _, err = self.profile(*words)
        self.assertEqual(status, 1, err)
        self.assertRegex(err, pattern)
        self.assertEqual(err.count("\n"), 1, err)
        self.assertEqual([name for name in self.files() if "profile.json" in name], list(left))

    def test_ncu_or_the_program_under_it_fails(self):
        table = '"ID","Kernel Name","Metric Name","Metric Value"'
        for source, pattern in (
                ("print('==PROF== Connected', flush=True)\nos.kill(os.getpid(), signal.SIGSEGV)",
                 r"^ladder: error: ncu .*==PROF== Connected \(status -11\)"),
                ("print('==PROF== Connected')\nprint('convladder: error: out of memory', "
                 "file=sys.stderr)\nsys.exit(1)", "convladder: error: out of memory"),
                ("print('==ERROR== Profiling failed because a driver resource was unavailable.')\n"
                 "sys.exit(9)", "a driver resource was unavailable"),
                ("print('==WARNING== No kernels were profiled.')",
                 "no counters.*No kernels were profiled"),
                *((f"print({garbage!r})", "ncu's table") for garbage in (
                    '"ID","Metric Name"\n"0","x"', table, table + '\n"zero","k","m","1"',
                    table + '\n"0","k","m"', table + '\n"0","k","m","1'))):
            self.ncu(source)
            self.expect_failure(pattern)

    def test_a_launch_is_missing(self):
        self.ncu(NCU.replace("enumerate(launches)", "enumerate(launches[:2])"))
        self.expect_failure("02_im2col_gemm launches im2col 2 times, ncu saw 1", left=["profile.json"])

    def test_what_is_wrong_with_the_command_is_said_before_anything_is_measured(self):
        for words, expected, said in (
                (["--json", ""], 2, "^ladder: error: --json needs a value: --json FILE\n$"),
                (["--json", self.path("nowhere/profile.json")], 1, "there is no folder .*\n$"),
                (["--machine", self.path("ncu")], 1, "not JSON"),
                (["--shape", "nowhere"], 2, "^$")):  # the program says that
            status, _, err = self.profile(*words)
            self.assertEqual(status, expected)
            self.assertRegex(err, said)
            self.assertFalse(set(self.files()) & {"profile.json", "calls"})

    def test_an_interrupted_run_leaves_no_file(self):
        self.ncu(f"open({self.path('begun')!r}, 'w')\ntime.sleep(60)")
        script = subprocess.Popen(
            [sys.executable, "-m", "common.measure.profile_gpu", "--bin", self.folder,
             "--json", self.json], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not os.path.exists(self.path("begun")) and script.poll() is None:
            time.sleep(0.02)
        script.send_signal(signal.SIGINT)
        _, err = script.communicate(timeout=30)
        self.assertEqual((script.returncode, err), (130, "\nladder: interrupted\n"))
        self.assertNotIn("profile.json", "".join(self.files()))

    def fall_back(self, *words):
        self.program("ladder", """
            words = sys.argv[1:]
            assert words[:3] == ["--backend", "sim", "profile"], words
            json.dump([{"stage": "01_naive", "source": "simulator", "words": words}],
                      open(words[words.index("--json") + 1], "w"))
            """)
        with mock.patch.object(profile_gpu, "LADDER", self.path("ladder")):
            return self.profile(*words)

    def test_refused_counters_end_in_the_simulators_counts(self):
        self.ncu("print('==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access "
                 "NVIDIA GPU Performance Counters on the target device 0.')")
        status, out, err = self.fall_back("--n", "2")
        self.assertEqual(status, 0)
        self.assertRegex(err, "NVreg_RestrictProfilingToAdminUsers=0")
        self.assertIn("what the runtime knows", out)
        self.assertEqual([record["source"] for record in self.records()],
                         ["cuda_runtime"] * 3 + ["simulator"])
        self.assertEqual(self.records()[3]["words"][-2:], ["--n", "2"])

    def test_no_ncu_ends_in_the_simulators_counts(self):
        os.remove(self.path("ncu"))
        with mock.patch.dict(os.environ, PATH=self.folder):
            status, _, err = self.fall_back()
        self.assertEqual((status, len(self.records())), (0, 4))
        self.assertIn("no ncu in the PATH", err)

    def test_reports_for_the_window(self):
        self.ncu("with open(FOLDER + '/calls', 'a') as calls:\n"
                 "    print(json.dumps(sys.argv[1:]), file=calls)")
        with mock.patch.object(profile_gpu, "REPORT", self.folder):
            status, out, _ = self.profile("--ui", "--stage", "01_naive", "--n", "2")
        self.assertEqual(status, 0)
        words = self.calls()[0]
        self.assertEqual(words[:2], ["--set", "full"])
        self.assertEqual(words[-4:], ["--stage", "01_naive", "--n", "2"])
        self.assertIn("ncu " + " ".join(words), out)  # ready to be used again
        self.assertFalse(os.path.exists(self.json))


    def test_launches_of_several_stages_are_told_apart(self):
        problem = dict.fromkeys(read_ncu.EXTENTS, "1") | {"name": "one", "bias": "1"}

        def read():
            with mock.patch.dict(os.environ, PATH=f"{self.folder}:{os.environ['PATH']}"):
                return read_ncu.launches_of(self.folder, list(OWN), problem, list(ncu.ALL))

        found = read()
        self.assertEqual({stage: [kernel for kernel, _ in launches] for stage, launches in found.items()},
                         {"01_naive": ["conv2d_naive"], "02_im2col_gemm": ["im2col", GEMM] * 2,
                          "05_fused_bias": ["conv2d_fused_bias"]})
        rows = [row[1:4] for stage in found for row in read_ncu.rows_of_stage(problem, stage, found[stage])]
        self.assertEqual(rows, [["01_naive", "conv2d_naive", "1"], ["02_im2col_gemm", "im2col", "2"],
                                ["02_im2col_gemm", GEMM, "2"], ["05_fused_bias", "conv2d_fused_bias", "1"]])
        for own in ({**OWN, "05_fused_bias": [("another", 1)]}, {**OWN, "02_im2col_gemm": [("im2col", 3)]},
                    {**OWN, "01_naive": [("conv2d_naive", 2)]}):
            self.ncu(own=own)
            with self.assertRaisesRegex(ncu.NcuError, "one, .* launches .*, ncu saw"):
                read()


    def test_single_accesses_are_read_with_the_names_of_their_launches(self):
        for name in ("bank_patterns", "nvidia-smi"):
            self.program(name, "")
        self.ncu("if '--version' in sys.argv:\n    print('Version 1')\n    sys.exit()\n"
                 "words = sys.argv[sys.argv.index('--metrics') + 1:]\n"
                 "print('launched shared_read,4,one')\nprint('launched shared_read,8,two')\n"
                 "print('\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Value\"')\n"
                 "for number in range(2):\n"
                 "    print('\"%d\",\"k\",\"%s\",\"7\"' % (number, words[0].split(',')[0]))\n")
        out = self.path("patterns.csv")
        with mock.patch.dict(os.environ, PATH=f"{self.folder}:{os.environ['PATH']}"):
            status, said, err = called(read_ncu.main, ["patterns", "--bin", self.folder, "--out", out])
        self.assertEqual((status, err), (None, ""))
        self.assertIn("6 rows", said)  # of three runs
        rows = self.read("patterns.csv").splitlines()
        self.assertRegex(rows[0], r"^# made by: common/measure/read_ncu.py patterns of [0-9a-f]{64}$")
        self.assertEqual([row[:17] for row in rows[3:5]], ["shared_read,4,one", "shared_read,8,two"])
        self.assertIn(",7,", rows[3])


class NcuTest(unittest.TestCase):
    def test_plain_names(self):
        for name, plain in ((NAIVE, "conv2d_naive"), (FUSED, "conv2d_fused_bias"), (GEMM, GEMM),
                            ("void (anonymous namespace)::k<3>(float*)", "k"), ("k", "k"),
                            ("_ZN1a12_GLOBAL__N_x4packINS0_5TilesILi3EEEEEvi", "pack")):
            self.assertEqual(ncu.plain_name(name), plain)

    def test_no_metric_is_asked_for_twice(self):
        self.assertEqual(len(ncu.ALL), len(set(ncu.ALL)))

    def test_merging_without_durations_and_without_values(self):
        launches = [{"a.pct": 10, "b.sum": 1, "c.sum": None}, {"a.pct": 20, "b.sum": 2, "c.sum": 3}]
        self.assertEqual(ncu.merge(launches), {"a.pct": 15, "b.sum": 3})


if __name__ == "__main__":
    unittest.main()
