#!/usr/bin/env python3
"""Tests of common/report/renew.sh, in a checkout of stubs: a GPU's machine, as far as it prints."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Every stub writes down what it was called with, and fails where a file says so.
STUB = """#!/bin/bash
echo "$(basename "$0") $*" >>calls
if grep -qsF -- "$1 $2" failing || grep -qsx -- "$(basename "$0")" failing; then echo "1 failed"; exit 3; fi
while [[ $# -gt 1 ]]; do
  [[ $1 != --json ]] || echo '{"format": "convladder bench", "source": "'"$(cat source)"'", "new": 1}' >"$2"
  [[ $1 != --machine ]] || echo '{}' >"$2"
  shift
done
echo 'all "well", 0 failed'
"""


class Renew(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in ("common/report/renew.sh", "common/cmake/KernelsDigest.cmake", "common/cmake/Gpus.cmake"):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        for name in ("ladder", "build/gpu/bin/memory_rates", "build/gpu/bin/pitfall_times"):
            self.write(name, STUB)
        for name in ("common/profile/read_ncu.py", "docs/experiments/run.py"):
            self.write(name, "import hashlib, sys\nopen('calls', 'a').write(' '.join(sys.argv) + '\\n')\n"
                             "if sys.argv[-1] == 'patterns':\n"
                             "    text = open('common/profile/bank_patterns.cu', 'rb').read()\n"
                             "    made_by = f'of {hashlib.sha256(text).hexdigest()}'\n"
                             "    open('common/tests/data/ncu_patterns.csv', 'w').write(made_by)\n"
                             "sys.exit(sys.argv[-1] in open('failing').read().split())\n")
        self.write("common/machines/README.md", "")
        self.write("bin/nvidia-smi", "#!/bin/bash\necho NVIDIA H200\n")
        for stage in ("01_one", "02_two"):
            self.write(f"{stage}/CMakeLists.txt", "")
            self.write(f"{stage}/one.cu", "int a;\n")
        self.write("build/gpu/needs.tsv", "")
        self.write("docs/results/campaigns.csv", "campaign,command,device,kernels,ended with\n"
                   'tests,./old,NVIDIA H200,0123,"old, 1"\nother,./x,NVIDIA H200,0123,kept\n'
                   "tests,./x,simulator,0123,kept\n")
        self.write("common/profile/count_floors.py", "print('a_layer')")
        self.write("source", "ncu")
        self.write("failing", "")
        self.write("common/profile/bank_patterns.cu", "a pattern\n")
        self.write("common/tests/data/ncu_patterns.csv", "of other patterns\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def read(self, name):
        return (self.root / name).read_text()

    def renew(self, *words):
        """Its status, what it says, and what it has called."""
        (self.root / "calls").unlink(missing_ok=True)
        done = subprocess.run(["bash", self.root / "common/report/renew.sh", *words], text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False,
                              env={**os.environ, "PATH": f"{self.root}/bin:{os.environ['PATH']}"})
        calls = self.root / "calls"
        return done.returncode, done.stdout, calls.read_text() if calls.exists() else ""

    def test_everything_once(self):
        status, said, calls = self.renew()
        self.assertEqual(status, 0, said)
        self.assertEqual(json.loads(self.read("docs/results/bench_h200.json"))["new"], 1)
        self.assertEqual(json.loads(self.read("docs/results/layers_h200.json"))["new"], 1)
        self.assertEqual(json.loads(self.read("docs/results/profile_h200.json"))["new"], 1)
        self.assertIn("all", self.read("docs/results/memory_rates_h200.txt"))
        for call in ("--backend gpu bench --bias 1 --repeats 5 --json", "report --docs",
                     "--shape=a_layer", "read_ncu.py stages", "read_ncu.py patterns",
                     "--times-only --stale --repeats 7 --json"):
            self.assertIn(call, calls)
        status, said, calls = self.renew()
        self.assertEqual((status, calls), (0, "docs/experiments/run.py --docs\nladder report --docs\n"))
        self.assertIn("bench: done before", said)

    def test_other_kernels_are_measured_anew(self):
        self.renew()
        self.write("01_one/one.cu", "int a;  // a comment makes no other\n")
        self.assertNotIn("bench", self.renew()[2])
        self.write("01_one/one.cu", "int b;\n")
        self.assertIn("bench", self.renew()[2])

    def test_single_accesses_are_read_once_for_each_text_of_theirs(self):
        self.assertIn("patterns", self.renew()[2])
        self.assertNotIn("patterns", self.renew()[2])
        for text in ("another pattern\n", "a third\n"):
            self.write("common/profile/bank_patterns.cu", text)
            self.assertIn("patterns", self.renew()[2])

    def test_a_campaigns_row_takes_the_place_of_the_last(self):
        self.renew()
        rows = self.read("docs/results/campaigns.csv").splitlines()
        self.assertEqual(rows[1:3], ["other,./x,NVIDIA H200,0123,kept", "tests,./x,simulator,0123,kept"])
        self.assertRegex(rows[3], r'^tests,\./ladder --backend gpu test,NVIDIA H200,[0-9a-f]{12},'
                                  r'"all \'well\', 0 failed"$')
        self.assertEqual(len(rows), 6)

    def test_no_step_begins_when_the_time_is_up(self):
        status, said, calls = self.renew("--minutes", "0")
        self.assertEqual((status, "bench" in calls), (0, False))
        self.assertIn("left for the next call, after 0 minutes: build test bench tf32 layers machine",
                      said)

    def test_a_failed_step_keeps_what_there_was_and_is_tried_again(self):
        self.write("docs/results/memory_rates_h200.txt", "old\n")
        self.write("failing", "memory_rates\n--backend gpu test\nstages\n")
        status, said, calls = self.renew()
        self.assertEqual(status, 1)
        self.assertIn("memory_rates: FAILED, status 3", said)
        self.assertEqual(self.read("docs/results/memory_rates_h200.txt"), "old\n")
        self.assertIn("patterns", calls)  # the others go on
        self.write("failing", "")
        status, said, calls = self.renew()
        self.assertEqual(status, 0, said)
        self.assertIn("memory_rates", calls)
        self.assertIn("read_ncu.py stages", calls)
        self.assertNotIn("read_ncu.py patterns", calls)

    def test_a_failed_campaign_says_so_in_its_row(self):
        self.write("failing", "ladder\n")
        self.assertEqual(self.renew()[0], 1)
        self.assertIn('"1 failed"', self.read("docs/results/campaigns.csv"))

    def test_counts_of_the_simulator_are_no_readings(self):
        self.write("source", "simulator")
        status, said, _ = self.renew()
        self.assertEqual(status, 1)
        self.assertIn("profile: FAILED", said)
        self.assertFalse((self.root / "docs/results/profile_h200.json").exists())

    def test_results_of_another_gpu_stay(self):
        self.write("docs/results/bench_l4.json", "")
        status, said, calls = self.renew()
        self.assertEqual((status, calls), (1, ""))
        self.assertIn("bench_l4.json is of another GPU than this one (NVIDIA H200)", said)

    def test_another_gpu_is_measured_too(self):
        self.renew()
        for name in ("bench", "layers"):
            (self.root / f"docs/results/{name}_h200.json").unlink()
        self.write("bin/nvidia-smi", "#!/bin/bash\necho NVIDIA GeForce RTX 4090\n")
        status, said, _ = self.renew()
        self.assertEqual(status, 0, said)
        self.assertTrue((self.root / "docs/results/bench_geforce_rtx_4090.json").exists())

    def test_an_interrupted_step_ends_it(self):
        self.write("ladder", "#!/bin/bash\nkill -INT $PPID; exit 130\n")
        status, said, calls = self.renew()
        self.assertEqual((status, calls), (130, ""), said)

    def test_without_a_gpu_it_lists_and_does_nothing(self):
        self.write("bin/nvidia-smi", "#!/bin/bash\nexit 9\n")
        status, said, calls = self.renew()
        self.assertEqual((status, calls), (1, ""))
        self.assertIn("no GPU here", said)
        status, said, _ = self.renew("--list")
        self.assertEqual(status, 0)
        self.assertIn("        experiments\n", said)
        for words in (["--minutes", "few"], ["--fast"]):
            self.assertEqual(self.renew(*words)[0], 2)


if __name__ == "__main__":
    unittest.main()
