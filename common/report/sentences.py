"""Figures of the GPU's runs within the sentences, and the tables written by hand, of the texts.

A function below gives, for one page, pieces of it with {} where a figure stands, and the figures as
they follow from docs/results. `./ladder report --docs` puts them there. The words around them are
the author's, and so are the figures that follow from the kernels alone.
"""
import os
import re

import counters
from formats import significant
from results import BadInput

FIGURE = r"(\d[\d,]*(?:\.\d+)?)"
FLOAT = 4  # bytes
FFMA = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
READ, WRITTEN = "dram__bytes_read.sum", "dram__bytes_write.sum"


def renewed(old, page, data):
    """The text of that page with the figures of docs/results."""
    text = old
    for piece, *figures in sentences(page, data):
        if piece.count("{}") != len(figures):
            raise BadInput(f"{page}: '{piece}' is given {len(figures)} figures")
        pattern = r"\s+".join(re.escape(word).replace(r"\{\}", FIGURE) for word in piece.split())
        found = list(re.finditer(pattern, text))
        if len(found) != 1:
            raise BadInput(f"{page}: '{piece}' stands there {len(found)} times, not once")
        for i in range(len(figures), 0, -1):  # from the last: the places of the others stay
            first, end = found[0].span(i)
            text = text[:first] + figures[i - 1] + text[end:]
    return text


def sentences(page, data):
    """[(piece, figure, ...)]; none unless docs/results have the running example, by a GPU."""
    problem = next(iter(data.problems), None)
    counted = problem and next((p for p in problem.profiles if p.source == "ncu"), None)
    if page not in PAGES or not counted or not problem.bench or problem.name != "alexnet_conv1":
        return []
    try:
        return PAGES[page](Run(data.folder, data.bench, problem.bench, counted))
    except (KeyError, AttributeError, TypeError) as error:
        raise BadInput(f"{data.folder}: {page} shows what isn't there: {error!r}") from error


class Run:
    """The running example on the GPU: times, counters, and what the same run could have reached."""

    def __init__(self, folder, bench, problem, counted):
        self.folder = folder
        self.tflops, self.copy_rate = bench.fma_tflops, bench.copy_tb_per_s
        self.peak_tflops = bench.machine["peak_tflops"]
        self.cycles_per_ms = (bench.machine["multiprocessors"] *
                              bench.machine["max_sm_clock_mhz"] * 1e3)  # of all together
        self.stages, self.kernels = problem.stages, counted.stages
        self.flop, self.least_bytes = counted.flop, counted.least_bytes

    def cold(self, stage):
        """Median time in ms."""
        return self.stages[stage].cold.median

    def kernel(self, stage, name=None):
        """The stage's kernel of that name; without one, that which takes longest."""
        kernels = self.kernels[stage]
        return {k.name: k for k in kernels}[name] if name else counters.main_kernel(kernels)

    def gigabytes(self, stage, level):
        of_kernel = {known.name: known.of_kernel for known in counters.LEVELS}[level]
        return counters.of_stage(self.kernels[stage], of_kernel).value / 1e9

    def arithmetic_ms(self, flop):
        return flop / self.tflops / 1e9

    def copy_ms(self, size):
        return size / self.copy_rate / 1e9

    def wavefronts_ms(self, wavefronts):
        """At one per cycle and multiprocessor."""
        return wavefronts / self.cycles_per_ms

    def reading(self, name, label):
        """The number behind the label, a regular expression, in that text of docs/results."""
        path = os.path.join(self.folder, name)
        with open(path, encoding="utf-8") as file:
            found = re.search(label + r"\s+(\d+(?:\.\d+)?)", file.read())
        if not found:
            raise BadInput(f"{path}: no number behind '{label}'")
        return float(found[1])


def milliseconds(kernel):
    return kernel.metrics["gpu__time_duration.sum"] / 1e6


def loads(kernel, what="requests"):
    """Or "sectors"; asynchronous copies among them."""
    return kernel.metrics[f"l1tex__t_{what}_pipe_lsu{counters.LOADS}"]


def stores(kernel, what="requests"):
    return kernel.metrics[f"l1tex__t_{what}_pipe_lsu{counters.STORES}"]


def wavefronts(kernel, op):
    return kernel.metrics[f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum"]


def copy_wavefronts(kernel):
    return kernel.metrics["smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum"]


def copy_requests(kernel):
    return sum(kernel.metrics["sm__sass_l1tex_t_requests_pipe_lsu_mem_global_op_ldgsts_cache_" +
                              f"{way}.sum"] for way in counters.COPY_WAYS)


def millions(value, decimals):
    return f"{value / 1e6:,.{decimals}f}"


def two(value):
    return significant(value, 2)


def whole(value):
    return f"{value:.0f}"


# ---- The lessons ---------------------------------------------------------------------------------

def naive(run):
    stage, conv = "01_naive", run.kernel("01_naive")
    warps, taps = 256 * 9075, 363
    requests, sectors = warps * 2 * taps, warps * taps * 17.5
    l1, l2, dram = (significant(run.gigabytes(stage, level)) for level in ("L1", "L2", "DRAM"))
    rate, peak = run.gigabytes(stage, "L1") / run.cold(stage), run.cycles_per_ms * 128 / 1e9
    return [
        ("| load requests of the convolution | 1,686.6 M | {} M |", millions(loads(conv), 1)),
        ("| sectors of these | 14.76 G | {} G |", f"{loads(conv, 'sectors') / 1e9:.2f}"),
        ("{} % fewer requests:", f"{100 - 100 * loads(conv) / requests:.1f}"),
        ("{} % more sectors:", f"{100 * loads(conv, 'sectors') / sectors - 100:.1f}"),
        ("has {} GB at L1 and only {} GB at L2: {} % of the sectors were in L1. {} GB reaches "
         "DRAM.", l1, l2, significant(conv.metrics["l1tex__t_sector_hit_rate.pct"]), dram),
        ("Not DRAM: {} GB takes {} ms at the {} TB/s that a copy reaches.", dram,
         two(run.copy_ms(run.gigabytes(stage, "DRAM") * 1e9)), significant(run.copy_rate)),
        ("54.0 GFLOP take {} ms at the measured ceiling. It takes {} ms.",
         two(run.arithmetic_ms(run.flop)), significant(run.cold(stage))),
        ("{} GB in {} ms are {} TB/s, {} % of it.", l1, significant(run.cold(stage)),
         significant(rate), whole(100 * rate / peak)),
        ("is to its peak, says {} %.",
         whole(conv.metrics["sm__throughput.avg.pct_of_peak_sustained_elapsed"])),
    ]


def im2col_gemm(run):
    kernels = [run.kernel("02_im2col_gemm", "im2col"), run.kernel("02_im2col_gemm"),
               run.kernel("02_im2col_gemm", "add_bias_kernel")]
    spent = list(map(milliseconds, kernels))
    columns = [[millions(kernel.metrics[way], 0) for kernel in kernels] +
               [millions(sum(kernel.metrics[way] for kernel in kernels), 0)]
               for way in (READ, WRITTEN)]
    columns.append([f"{time:.3f}" for time in [*spent, sum(spent)]])
    rows = ("| im2col | 154 | {} | 1,127 | {} | {} |", "| product | 1,127 | {} | 297 | {} | {} |",
            "| add_bias | 297 | {} | 297 | {} | {} |",
            "| together | 1,578 | {} | 1,722 | {} | {} |")
    ceiling = two(run.arithmetic_ms(run.flop))
    return [
        ("At the {} TB/s of a copy that is {} ms.", significant(run.copy_rate),
         two(run.copy_ms(3.3e9))),
        ("The product has 54.0 GFLOP, {} ms at the FP32 ceiling.", ceiling),
        *zip(rows, *columns),
        ("The product takes {} ms, not {}.", significant(spent[1]), ceiling),
        ("It does {} G multiply-adds where 27.0 G are needed",
         significant(kernels[1].metrics[FFMA] / 1e9)),
        ("{} % of the time the product, {} % writing a matrix that nobody wanted, {} % the bias.",
         *(whole(100 * spent[i] / sum(spent)) for i in (1, 0, 2))),
    ]


def shared_tiling(run):
    conv = run.kernel("03_shared_tiling")
    requests, reads = 72600 * 32 * 12 * 2, 72600 * 32 * 368 // 4 * 6  # predicted
    more_reads = 100 * wavefronts(conv, "ld") / reads - 100
    asked = wavefronts(conv, "ld") + wavefronts(conv, "st")
    return [
        ("the arithmetic, {} ms. Global memory", two(run.arithmetic_ms(run.flop))),
        ("| load requests of the convolution | 55.8 M | {} M |", millions(loads(conv), 1)),
        ("| shared loads: wavefronts | 1,282 M | {} M |", millions(wavefronts(conv, "ld"), 0)),
        ("368 for 363 taps | 27.36 G | {} G |", f"{conv.metrics[FFMA] / 1e9:.2f}"),
        ("the bias pass included | 1,046 MB | {} MB |",
         f"{1000 * run.gigabytes('03_shared_tiling', 'DRAM'):,.0f}"),
        ("{} % fewer requests:", whole(100 - 100 * loads(conv) / requests)),
        ("{} % more wavefronts,", f"{more_reads:.1f}"),
        ("In time: {} ms for the kernel alone.", significant(milliseconds(conv))),
        ("Loads and stores of shared memory, {} M wavefronts, take {} ms of it",
         millions(asked, 0), two(run.wavefronts_ms(asked))),
    ]


def register_blocking(run):
    stage = "04_register_blocking"
    conv, bias = run.kernel(stage), run.kernel(stage, "add_bias_kernel")
    arithmetic = two(run.arithmetic_ms(2 * 6050 * 128 * 96 * 368))
    more_sectors = stores(conv, "sectors") / stores(run.kernel("03_shared_tiling"), "sectors")
    return [
        ("the arithmetic, {} ms with the 368 taps", arithmetic),
        ("| shared loads: wavefronts | 124.7 M | {} M |", millions(wavefronts(conv, "ld"), 1)),
        ("| copies: wavefronts | 42 M | {} M |", millions(copy_wavefronts(conv), 1)),
        ("copies among them | 19,481,000 | {} |", f"{loads(conv):,}"),
        ("368 for 363 taps | 27.36 G | {} G |", f"{conv.metrics[FFMA] / 1e9:.2f}"),
        ("In time: {} ms for the kernel, {} ms for the bias pass; arithmetic and shared memory "
         "would take {} and {} ms.", significant(milliseconds(conv)), two(milliseconds(bias)),
         arithmetic, two(run.wavefronts_ms(counters.shared_wavefronts(conv)))),
        ("Occupancy is {} %, 12 of 64 warps: {} registers per thread",
         whole(conv.metrics["sm__warps_active.avg.pct_of_peak_sustained_active"]),
         whole(conv.metrics["launch__registers_per_thread"])),
        ("The stores touch {} times the sectors", two(more_sectors)),
    ]


def fused_bias(run):
    conv = run.kernel("05_fused_bias")
    arithmetic = two(run.arithmetic_ms(2 * 6160 * 128 * 96 * 363))
    reached = run.arithmetic_ms(run.flop) / run.cold("05_fused_bias")
    explained = 55 / 56 * 1056 / 1156 * 6160 / (3 * 132 * 16)
    return [
        ("are 55.0 GFLOP, {} ms at the ceiling. DRAM: {} ms.", arithmetic,
         two(run.copy_ms(run.least_bytes))),
        ("| shared loads: wavefronts | 72.3 M | {} M |", millions(wavefronts(conv, "ld"), 1)),
        ("copies among them | 7,003,920 | {} |", f"{loads(conv):,}"),
        ("| sectors per store | 4 or 5 | {} |",
         significant(stores(conv, "sectors") / stores(conv))),
        ("rows of 56 for 55 | 27.48 G | {} G |", f"{conv.metrics[FFMA] / 1e9:.2f}"),
        ("| DRAM | 452 MB | {} MB |", whole(1000 * run.gigabytes("05_fused_bias", "DRAM"))),
        ("wavefronts of the copies, {} M, and of the transposition, {} M.",
         millions(copy_wavefronts(conv), 1), millions(wavefronts(conv, "st"), 1)),
        ("{} M requests, {} wavefronts for each.", millions(copy_requests(conv), 2),
         two(copy_wavefronts(conv) / copy_requests(conv))),
        ("In time: {} ms, against {} ms of arithmetic and {} ms of shared memory.",
         significant(milliseconds(conv)), arithmetic,
         two(run.wavefronts_ms(counters.shared_wavefronts(conv)))),
        ("At last the arithmetic itself: {} % of what", whole(100 * reached)),
        ("Multiplied, {} %. What was reached is {} % of that", whole(100 * explained),
         whole(100 * reached / explained)),
        ("At a copy's rate it is {} ms for 256 images.",
         two(run.copy_ms(2 * 256 * 96 * 55 * 55 * FLOAT))),
    ]


# ---- docs ----------------------------------------------------------------------------------------

def memory(run):
    dram, l2, l1, shared = (run.reading("memory_rates_h200.txt", label) for label in
                            ("DRAM: .*once", "L2: .*times", "L1: .*each", "memory: .*block"))
    copy = significant(run.copy_rate)

    def line(rate):
        flop_per_byte = run.peak_tflops / rate
        return f"{flop_per_byte:.1f}", whole(flop_per_byte * FLOAT / 2)

    return [
        ("= 33.5 TB/s; read at {} TB/s", significant(shared)),
        ("of 256 KiB | read at {} TB/s", significant(l1)),
        ("60 MiB | read at {} TB/s", significant(l2)),
        ("4.8 TB/s; read at {} TB/s; a copy on the device reached {} TB/s", significant(dram),
         copy),
        ("| DRAM, {} TB/s | {} FLOP per byte | {} multiply-adds |", copy, *line(run.copy_rate)),
        ("| L2, {} TB/s | {} FLOP per byte | {} multiply-adds |", significant(l2), *line(l2)),
    ]


def pytorch(run):
    def row(number):
        return [significant(run.reading("kernelbench_h200.txt", rf"1/{number}:[\s\S]*?{name}"), 4)
                for name in (r"05_fused_bias", r"Conv2d, FP32", r"default \(TF32\)")]

    return [("| 50, with bias | {} | {} | {} |", *row(50)),
            ("| 63, no bias | {} | {} | {} |", *row(63))]


def pitfalls(run):
    def time(label):
        return run.reading("pitfall_times_h200.txt", label)

    def layer(label):
        return run.reading("pytorch_defaults_h200.txt", label)

    return [
        ("it took {} ms with the sizes as arguments and {} ms with constants, where stage 05 takes "
         "{}.", significant(time("sizes as arguments")), significant(time("sizes as constants")),
         two(run.cold("05_fused_bias"))),
        ("the copy ({} ms, batch 256) and of a kernel without the tests behind it ({} ms, against "
         "{} with them)", two(time("copy alone")), significant(time("after the copy")),
         significant(time("tested, no copy"))),
        ("one image's product took {} ms with a handle made once, and {} ms with one made in each",
         two(time("made once")), two(time("in each call"))),
        ("in time ({} ms against {}) and in error ({} times what float32 may err, against {} "
         "times)",
         significant(layer("TF32 allowed:")), significant(layer("float32 only:")),
         two(layer("TF32 allowed: .* allowed")), two(layer("float32 only: .* allowed"))),
        ("measures the queueing: {} ms for a kernel of {} ms",
         two(time("not waiting for the kernel")), significant(time("CUDA events"))),
    ]


PAGES = {"01_naive/README.md": naive, "02_im2col_gemm/README.md": im2col_gemm,
         "03_shared_tiling/README.md": shared_tiling,
         "04_register_blocking/README.md": register_blocking, "05_fused_bias/README.md": fused_bias,
         "docs/memory.md": memory, "docs/pytorch.md": pytorch, "docs/pitfalls.md": pitfalls}
