"""Tests of docs/experiments: each patch applies, compiles and is told of in its lesson, and the
lessons have what was measured.

With CONVLADDER_COMPILE_COMMANDS (a build's compile_commands.json) the patched kernels are compiled.
"""

import contextlib
import io
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
from docs.experiments import run
from common.show import files

COMPILE_COMMANDS = os.environ.get("CONVLADDER_COMPILE_COMMANDS")


@contextlib.contextmanager
def patched(experiment):
    """The patched kernel, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        yield run.patched(experiment, folder)


def compile_command(file):
    """How the build compiles that kernel, as words without source and output."""
    for entry in json.loads(pathlib.Path(COMPILE_COMMANDS).read_text()):
        if pathlib.Path(entry["file"]) == ROOT / file:
            words = shlex.split(entry["command"])
            words[words.index("-o"):words.index("-o") + 2] = []
            return [word for word in words if word not in ("-c", entry["file"])]
    raise AssertionError(f"{COMPILE_COMMANDS} has no {file}")


def record(name="01_x", before=100, after=50, ms=(None, None), failure=""):
    def side(count, time):
        return {"cold_ms": time, "machine": "", "counted": [
            {"stage": "01_naive", "problem": "alexnet_conv1", "bias": True, "kernel": "k",
             "shape": "n2 c3 224x224 k96 11x11 stride 4x4 pad 2x2 dil 1x1", "launches": 1,
             "source": "simulator", "library": False, "flop": 1000,
             "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": count,
             "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": 0}]}
    return {"name": name, "before": side(before, ms[0]),
            "after": None if failure else side(after, ms[1]), "failure": failure}


class Patches(unittest.TestCase):
    def test_each_stage_has_three_at_least(self):
        stages = [experiment.stage for experiment in run.all_experiments()]
        for stage in files.rungs():
            self.assertGreaterEqual(stages.count(stage), 3, f"docs/experiments has too few patches of "
                                    f"{stage}: see docs/adding-a-stage.md, Once it is a rung")

    def test_each_changes_its_stage_alone_and_can_be_taken_back(self):
        for experiment in run.all_experiments():
            with self.subTest(experiment.name), patched(experiment) as source:
                original = (ROOT / experiment.file).read_bytes()
                self.assertEqual(experiment.name[:3], experiment.stage[:3])
                self.assertNotEqual(source.read_bytes(), original)
                experiment.apply(source.parents[1], reverse=True)
                self.assertEqual(source.read_bytes(), original)

    @unittest.skipUnless(COMPILE_COMMANDS, "no CONVLADDER_COMPILE_COMMANDS")
    def test_each_compiles_without_a_warning(self):
        for experiment in run.all_experiments():
            with self.subTest(experiment.name), patched(experiment) as source:
                # No -fsyntax-only: that leaves templates alone.
                done = subprocess.run([*compile_command(experiment.file), "-O0", "-Werror", "-S",
                                       "-o", os.devnull, str(source)], cwd=ROOT, text=True,
                                      capture_output=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_one_that_does_not_fit_is_refused(self):
        experiment = run.all_experiments()[0]
        with patched(experiment) as source, self.assertRaises(run.Failed):
            experiment.apply(source.parents[1])  # a second time


class Lessons(unittest.TestCase):
    def test_each_patch_has_a_question_an_answer_and_a_measurement(self):
        measured = {r["name"] for path in run.RECORDS.glob("experiments_sim.json")
                    for r in run.read_records(path)["experiments"]}
        for experiment in run.all_experiments():
            lesson = (ROOT / experiment.stage / "README.md").read_text(encoding="utf-8")
            self.assertIn(f"(../docs/experiments/{experiment.path.name})", lesson)
            self.assertIn(f"<!-- experiment: {experiment.name} -->", lesson)
            self.assertIn(f"({experiment.path.name})", (run.HERE / "README.md").read_text())
            self.assertIn(experiment.name, measured)

    def test_their_tables_are_up_to_date(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.assertEqual(run.write_docs(check=True), 0, said.getvalue())

    def test_the_front_pages_picture_has_the_same_counts(self):
        """Where its records and the experiments' have a stage on one problem; the experiments' may be older
        than a counter."""
        drawn = json.loads((run.RECORDS / "profile_sim.json").read_text(encoding="utf-8"))
        compared = set()
        for record in run.read_records(run.RECORDS / "experiments_sim.json")["experiments"]:
            kernels = record["before"]["counted"]
            if kernels[0]["shape"] == drawn[0]["shape"]:
                stage = kernels[0]["stage"]
                known = [{name: kernel.get(name) for name in kernels[0]}
                         for kernel in drawn if kernel["stage"] == stage]
                self.assertEqual(known, [{name: kernel.get(name) for name in kernels[0]}
                                         for kernel in kernels])
                compared.add(stage)
        self.assertGreaterEqual(compared, {"01_naive", "02_im2col_gemm"})


class OnGpu(unittest.TestCase):
    """What becomes of the files that bench and profile write, with real ones of an H200."""

    def measure(self, times_only, own_source="ncu"):
        commands = []

        def fake_run(command, folder, environment=None):
            commands.append(" ".join(map(str, command)))
            if "--json" in command:
                made = "bench" if "bench" in command else "profile"
                text = (run.RECORDS / f"{made}_h200.json").read_text(encoding="utf-8")
                pathlib.Path(command[-1]).write_text(text.replace('"ncu"', f'"{own_source}"'))

        with unittest.mock.patch("run.run", fake_run), unittest.mock.patch("run.judge.Build"):
            bench = run.Bench("gpu", 9, times_only)
            folder = pathlib.Path("there")
            return bench.measure(folder, "01_naive", "alexnet_conv1", None), commands[2:]

    def test_time_counters_and_the_machine(self):
        found, commands = self.measure(times_only=False)
        self.assertEqual(found["machine"], "NVIDIA H200")
        self.assertGreater(found["cold_ms"], 0)
        self.assertEqual({record["source"] for record in found["counted"]}, {"ncu"})
        self.assertIn("there/convladder bench --stage 01_naive --shape alexnet_conv1 ", commands[0])
        self.assertIn("common.measure.profile --program there/convladder --stage 01_naive --shape alexnet_conv1 ", commands[1])

    def test_counters_can_be_left_out_or_be_refused(self):
        found, commands = self.measure(times_only=True)
        self.assertEqual((found["counted"], len(commands)), ([], 1))
        self.assertEqual(self.measure(False, own_source="simulator")[0]["counted"], [])
        self.assertIn("| time, cold [ms] |", run.table_of(
            {"name": "x", "before": found, "after": found, "failure": ""}))

    def attempt(self, checks, broken, reason="out of memory"):
        """Of an experiment whose check fails, if it has `checks`, and whose command `broken` does."""
        def fake_run(command, folder, environment=None):
            if "check" in command and checks is not None:
                pathlib.Path(command[-1]).write_text(json.dumps(checks))
            if broken in command:
                raise run.Failed(f"'{broken}' ended with 1: {reason}")
            return ""

        with (unittest.mock.patch("run.run", fake_run), unittest.mock.patch("run.judge.Build"),
              tempfile.TemporaryDirectory(dir=ROOT) as folder,
              unittest.mock.patch.object(run.Bench, "unchanged", return_value={})):
            return run.Bench("gpu", 9, True).attempt(run.all_experiments()[0], pathlib.Path(folder))

    def test_only_wrong_results_are_a_failure_of_the_change(self):
        wrong = [{"status": "pass", "message": ""}, {"status": "fail", "message": "3 outputs"}]
        self.assertEqual(self.attempt(wrong, "check")["failure"], "3 outputs")
        said = "03_x: fail: 7 outputs"  # of a race, which the check has not met
        self.assertEqual(self.attempt(wrong[:1], "bench", said)["failure"], said)
        for checks, broken in ((None, "check"), (wrong[:1], "check"), (wrong[:1], "bench")):
            with self.assertRaises(run.Failed):
                self.attempt(checks, broken)


class Tables(unittest.TestCase):
    def test_what_changed_what_stayed_and_where(self):
        for each, words in (
            (record(), ["`alexnet_conv1`, batch 2, counted by the counting simulator:",
                        "| requests | 100 | 50 | 0.500 |"]),
            ({**record(), "problem": "other"}, ["`other`, batch 2"]),
            (record(after=100), ["Unchanged: requests."]),
            (record(after=101), ["less than 2 %: requests."]),
            (record(failure="data race: lines"), ["data race: lines"]),  # a result, too
        ):
            for word in words:
                self.assertIn(word, run.table_of(each))
        self.assertNotIn("requests", run.table_of(record(before=0, after=0)))
        rows = run.table_of(record(ms=(2.0, 3.0))).split("\n")
        self.assertIn("| time, cold [ms] | 2.000 | 3.000 | 1.50 |", rows[4])  # the first row

    def test_records_replace_those_of_the_same_name(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "records.json"
            for each in (record("02_b"), record("01_a", after=1), record("02_b", after=7)):
                run.keep(path, "sim", each)
            kept = run.read_records(path)["experiments"]
            self.assertEqual([r["name"] for r in kept], ["01_a", "02_b"])
            self.assertEqual(kept[1], record("02_b", after=7))

    def test_records_of_these_kernels_need_not_be_made_again(self):
        chosen = run.all_experiments()[:2]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "records.json"
            self.assertEqual(run.without_current(chosen, path), chosen)
            run.keep(path, "sim", {**record(chosen[0].name), "kernels": chosen[0].digest()})
            run.keep(path, "sim", {**record(chosen[1].name), "kernels": "of others"})
            self.assertEqual(run.without_current(chosen, path), chosen[1:])

    def test_a_file_of_another_kind_is_refused(self):
        with self.assertRaises(run.results.BadInput):
            run.read_records(run.RECORDS / "bench_h200.json")


if __name__ == "__main__":
    unittest.main()
