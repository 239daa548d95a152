"""From the counters of kernels to the figures of stages.

A figure of a stage is the sum over its kernels. Where a library's kernels were not counted (the
simulator can't), the sum is partial: it is marked, and never compared with anything.
"""
from typing import NamedTuple
from collections.abc import Callable

from common.show import metrics

SECTOR_BYTES = 32


class Figure(NamedTuple):
    value: float
    partial: bool = False  # without a library's kernels


class Level(NamedTuple):
    """A place where bytes are counted on their way from the kernel's threads to DRAM."""
    name: str
    meaning: str
    of_kernel: Callable  # Kernel -> bytes, or None where they were not counted


def sum_of(*names, factor=1):
    """A function of a kernel: the metrics' sum, times the factor; None unless all are there."""
    def of_kernel(kernel):
        values = [kernel.metrics.get(name) for name in names]
        return None if None in values else factor * sum(values)
    return of_kernel


def total(name, factor=1):
    """As sum_of(), for the metrics of a sum that metrics.csv names."""
    return sum_of(*metrics.parts_of(name), factor=factor)


requested_bytes = total("requested_bytes")
requests = total("requests")
l1_bytes = total("sectors", SECTOR_BYTES)
l2_bytes = total("l2_sectors", SECTOR_BYTES)
dram_bytes = total("dram_bytes")
touched_bytes = total("touched_sectors", SECTOR_BYTES)
bank_conflicts = total("conflicts")
shared_wavefronts = total("wavefronts")
profiled_ms = sum_of("gpu__time_duration.sum", factor=1e-6)

LEVELS = [
    Level("requested", "bytes that the warps ask for, each word once per request", requested_bytes),
    Level("L1", "32-byte sectors asked of L1", l1_bytes),
    Level("L2", "32-byte sectors that L1 asks of L2, reads and writes", l2_bytes),
    Level("DRAM", "bytes read from and written to DRAM", dram_bytes),
    Level("touched", "different sectors that each kernel touches at all, which DRAM would move if "
          "the caches held all that a kernel needs", touched_bytes),
]


def shared_per_block(kernel):
    """Bytes; what the driver keeps for itself (1 KiB on recent GPUs) is not among them."""
    static = kernel.metrics.get("launch__shared_mem_per_block_static")
    dynamic = kernel.metrics.get("launch__shared_mem_per_block_dynamic", 0)
    return None if static is None else static + dynamic


def of_stage(kernels, of_kernel):
    """The Figure of a stage with these kernels; None where one of the stage's own kernels has none."""
    values = [of_kernel(kernel) for kernel in kernels]
    unknown = [kernel for kernel, value in zip(kernels, values) if value is None]
    if len(unknown) == len(kernels) or not all(kernel.library for kernel in unknown):
        return None
    return Figure(sum(value for value in values if value is not None), bool(unknown))


def quotient(above, below):
    """One Figure by another, as a plain number; None where one is missing, partial or zero."""
    if not above or not below or above.partial or below.partial or below.value == 0:
        return None
    return above.value / below.value


def flop_per_byte(kernels, flop, level):
    """The stage's arithmetic intensity, by the bytes that cross one level; None if not all did."""
    crossed = of_stage(kernels, level.of_kernel)
    return quotient(Figure(flop), crossed)


def main_kernel(kernels):
    """The one that takes longest; without times, the one that asks L1 for most; else the largest
    grid. Registers, occupancy and stalls are a kernel's, not a stage's: this one's are shown."""
    for weight in (profiled_ms, l1_bytes, sum_of("launch__grid_size")):
        known = [kernel for kernel in kernels if weight(kernel) is not None]
        if known:
            return max(known, key=weight)
    return None
