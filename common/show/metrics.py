"""The counters, by metrics.csv, which names each of them once. Its columns:

  metric   Nsight Compute's name, or one made in its manner for what the simulator alone counts
  unit     count, sectors (of 32 bytes), bytes, ns, percent or ratio
  read     who asks Nsight Compute for it: profile (./ladder profile), and of readings.py stages, shared,
           copies, global, atomics, constants, hints and matrices; nobody for what it doesn't have
  sums     the sums that it is a part of: goals of exercises, and other tables, name these
  heading  its short name in tables
  table    of `./ladder profile`'s tables of kernels, the one that has it as a column: global, shared, work or
           kernel; none: it is in the records, and a part of other figures
  meaning  what it says

A new metric needs a row here and, where the simulator is to count it, a line of
common/simulator/counts.cpp.
"""
import os
from typing import NamedTuple

from common.show import files


class Metric(NamedTuple):
    """A row of metrics.csv."""
    metric: str
    unit: str
    read: str
    sums: str
    heading: str
    table: str
    meaning: str


ALL = [Metric(**row) for row in files.read_rows(os.path.join(os.path.dirname(__file__), "metrics.csv"))]


def read_by(reader):
    """The names of those that this reader asks Nsight Compute for."""
    return [metric.metric for metric in ALL if reader in metric.read.split()]


def parts_of(name):
    """The names of the metrics that this sum consists of."""
    return [metric.metric for metric in ALL if name in metric.sums.split()]


def sums():
    """{sum: the names of its metrics}."""
    return {name: parts_of(name) for metric in ALL for name in metric.sums.split()}


def columns(table):
    """The metrics that are columns of the table of this name."""
    return [metric for metric in ALL if metric.table == table]
