"""The simulator's counts beside Nsight Compute's readings: equal, or as near as deviations.csv says.

common/measure/readings.py makes the readings on an H200. CONVLADDER_BIN is where the programs of a build
that counts are. CONVLADDER_STAGE names the stage to be counted; one that has no readings is skipped.
"""
import os
import subprocess
import unittest

from common.measure import readings
from common.show import counted, files

BIN = os.environ.get("CONVLADDER_BIN")
DATA = os.path.join(files.ROOT, "common/tests/data")


def numbers(values):
    """The launches and counters among the values, as numbers."""
    return {name: float(value) for name, value in values.items()
            if value and (name == "launches" or "." in name)}


@unittest.skipUnless(BIN, "CONVLADDER_BIN names no folder")
class Readings(unittest.TestCase):
    deviations = counted.deviations()

    def compare(self, key, counts, reading, least):
        """Returns the figures, which must be as many as `least`, those that are 0 in both included."""
        counts, reading = {key: counts}, {key: reading}
        figures = counted.figures(counts, reading)
        both = [name for name in reading[key] if counted.ALSO.get(name, name) in counts[key]]
        self.assertGreaterEqual(len(both), least, key)
        for figure in figures + counted.pipe_figures(counts, reading):
            self.assertFalse(counted.too_far(figure, self.deviations), figure)
        return figures


class OfTheStages(Readings):
    def test_agree(self):
        stage = os.environ["CONVLADDER_STAGE"]
        known = {key: reading for key, reading in
                 counted.read_table(os.path.join(DATA, "ncu_stages.csv")).items() if key[1] == stage}
        if not known:
            self.skipTest("there is no reading of it")
        figures, read = [], {name for name, *_ in known}
        self.assertGreaterEqual(len(read), 1 if files.is_side_rung(stage) else 20, "problems that were read")
        for problem in readings.problems():
            if problem["name"] not in read:  # the GPU's time did not reach for it
                continue
            for record in readings.count(os.path.join(BIN, "convladder"), problem, "--stage", stage):
                key = (problem["name"], stage, record["kernel"])
                self.assertIn(key, known, "no reading: make them again")
                figures += self.compare(key, numbers(record), known[key], 6)
        print(f"{stage}: {sum(f.counted == f.read for f in figures)} of {len(figures)} figures are equal")


def is_understood(kind, size, pattern):
    """No rule is known for the wavefronts of copies of 16 bytes that land in no order."""
    return (not kind.startswith("copy") or size < 16 or
            not pattern.startswith(("random", "stride", "filters", "strips", "bits_reversed")))


class OfSingleAccesses(Readings):
    def test_agree(self):
        rows = files.read_rows(os.path.join(DATA, "ncu_patterns.csv"))
        launched = [line.split()[1:] for accesses in readings.PATTERN_METRICS for line in
                    subprocess.run([os.path.join(BIN, "bank_patterns"), accesses], check=True, text=True,
                                   stdout=subprocess.PIPE).stdout.splitlines()]
        self.assertEqual([name for name, *_ in launched],
                         [",".join((row["kind"], row["bytes"], row["pattern"])) for row in rows],
                         "other patterns: make the readings again")
        understood = whole = 0
        for (name, *counts), row in zip(launched, rows):
            kind, size, pattern = row["kind"], int(row["bytes"]), row["pattern"]
            counts, row = numbers(dict(count.split("=") for count in counts)), numbers(row)
            if not is_understood(kind, size, pattern):
                del row["smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum"]
            elif kind.startswith("copy"):
                understood += 1
            if kind == "copy_global" and size == 16:  # which L1's own counter sees differently
                del row["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"]
            # All that the pipe takes, but for the one wavefront that any of these launches takes besides.
            whole += kind.startswith("global") and counts[counted.AT_LEAST] + 1 == row[counted.PIPE]
            self.compare((pattern, "", name), counts, row, 6 if kind.startswith("global") else 4)
        self.assertEqual(understood, 462, "of 531 copies")
        self.assertGreaterEqual(whole, 755, "launches whose counts are all that the pipe takes")


class OfTheDevice(Readings):
    def test_agree(self):
        """Nothing is off, but for what the compiler knows of an address."""
        rows = files.read_rows(os.path.join(DATA, "ncu_device.csv"))
        launched = [line.split()[1:] for group in readings.DEVICE_METRICS for line in
                    subprocess.run([os.path.join(BIN, "device_patterns"), group], check=True, text=True,
                                   stdout=subprocess.PIPE).stdout.splitlines()]
        self.assertEqual([name for name, *_ in launched],
                         [",".join((row["kind"], row["type"], row["pattern"])) for row in rows])
        compared = 0
        for (name, *counts), row in zip(launched, rows):
            counts, read = numbers(dict(count.split("=") for count in counts)), numbers(row)
            pipe = read.pop(counted.PIPE, None)
            if row["kind"] == "global_count":  # all lanes' sum is sent as one, since they add to one word
                continue
            if row["type"] == "half2":  # its address may be one of shared memory, as far as is known
                read = {metric: value for metric, value in read.items() if "shared" not in metric}
            if "idc__requests.sum" in read:  # two are for the kernel's arguments
                requests = read.pop("idc__requests.sum")
                if row["kind"] == "constant":
                    self.assertEqual(counts["constant_words.sum"] + 2, requests, name)
            if row["kind"].startswith(("load_", "sum_")) and "columns" in row["type"]:
                pipe = None  # they are turned by the banks as well
            self.assertEqual({metric: counts.get(metric, 0) for metric in read}, read, name)
            self.assertTrue(pipe is None or counts[counted.AT_LEAST] <= pipe, name)
            compared += len(read)
        self.assertGreater(compared, 3000)


if __name__ == "__main__":
    unittest.main()
